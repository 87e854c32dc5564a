#!/bin/sh
# A code assistant of few words: it reads the request, picks a declared tool by its words, and the name it is about.
set -f

declared() { case $tools in *"\"$1\""*) return 0 ;; esac; return 1; }
quoted() { name=${request#*\\\"} name=${name%%\\\"*}; }

# The first word that looks like a name of code; else the last word.
named() {
  name='' last='' first=1
  for word in $request; do
    word=${word%[.,:?!]}
    last=$word
    case $word in
      */* | *_* | *[a-z.][A-Z]* | *.[a-z]*) name=${name:-$word} ;;
      [A-Z][a-z]*) [ "$first" = 1 ] || name=${name:-$word} ;;
    esac
    first=0
  done
  name=${name:-$last}
}

# The path in the request, if there is one.
path() {
  name=
  for word in $request; do case $word in */*) name=${word%[.,:?!]} ;; esac; done
}

pick() {
  tool='' key=
  case $request in
    *untested* | *"no test"*) tool=tmct_untested ;;
    *" tests cover"* | *"test that covers"*) tool=tmct_tests_for key=symbol ;;
    *subclasses* | *"built on top"*) tool=tmct_subclasses key=class ;;
    *members*) tool=tmct_members key=class ;;
    *export* | *"pass on"*) tool=tmct_exports key=module ;;
    *"same commit"*) tool=tmct_cochanges key=symbol ;;
    *history* | *"has changed"*) tool=tmct_history key=symbol ;;
    *"other word"*) tool=tmct_related key=term ;;
    *ignature*) tool=tmct_signature key=symbol ;;
    *"call edge"*) tool=tmct_calls key=symbol ;;
    *callees* | *"What does"*" call"*) tool=tmct_callees key=symbol ;;
    *callers* | *" calls "* | *" call "*) tool=tmct_callers key=symbol ;;
    *impact* | *affected* | *"feel it"*) tool=tmct_impact key=module ;;
    *overview* | *"lay of the land"*) tool=tmct_architecture key=package ;;
    *Search* | *mentions*) tool=tmct_search key=query ;;
    Describe*) tool=tmct_describe key=symbol ;;
  esac
}

while read -r line; do
  id=${line#*\"id\":\"} id=${id%%\"*}
  request=${line#*\"request\":\"} request=${request%%\",\"tools\":*}
  tools=${line#*\"tools\":[} tools=${tools%%]*}
  case $line in
    *'"role":"synthesis"'*)
      refused=false
      case $request in *"it was refused"*) refused=true ;; esac
      printf '{"id":"%s","final":{"refused":%s}}\n' "$id" "$refused"
      continue
      ;;
  esac
  pick
  if [ -z "$tool" ] || ! declared "$tool"; then
    printf '{"id":"%s","final":{"refused":true,"notes":["no declared tool fits"]}}\n' "$id"
    continue
  fi
  case $tool in
    tmct_search) quoted ;;
    tmct_architecture) path ;;
    *) named ;;
  esac
  input=
  if [ -n "$key" ] && [ -n "$name" ]; then input="\"$key\":\"$name\""; fi
  case $tool/$request in tmct_search/*classes*) input="$input,\"kind\":\"Class\"" ;; esac
  printf '{"id":"%s","call":{"name":"%s","input":{%s}}}\n' "$id" "$tool" "$input"
  read -r result
  # what went well is claimed by itself
  printf '{"id":"%s","final":{}}\n' "$id"
done
