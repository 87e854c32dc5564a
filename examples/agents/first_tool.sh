#!/bin/sh
# One task after the other: call the first declared tool without arguments, and answer what it said.
while read -r line; do
  id=${line#*\"id\":\"} id=${id%%\"*}
  tool=${line#*\"tools\":[\"} tool=${tool%%\"*}
  echo "{\"id\":\"$id\",\"call\":{\"name\":\"$tool\",\"input\":{}}}"
  read -r result
  text=${result#*\"text\":\"} text=${text%%\",\"value\":*}
  echo "{\"id\":\"$id\",\"final\":{\"answer\":\"$text\"}}"
done
