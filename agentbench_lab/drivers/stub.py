"""The floor of the ladder: a keyword names the tool, one word names the entity, and everything else is refused.

It exists so that the whole way from case to report runs with no model and no key. Its rows are stamped `stub-floor`:
they say how far a matcher of keywords comes, and are never the score of a router or a model.
"""

from __future__ import annotations

import re

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.grading.proof import receipt
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.capabilities import Capability
from agentbench_lab.worlds.toolbox import Toolbox

INTENTS = tuple(
    (re.compile(pattern, re.IGNORECASE), tool)
    for pattern, tool in (
        (r"\buntested\b", "tmct_untested"),
        (r"\bimpact|\bblast radius\b|\bdepends? on\b", "tmct_impact"),
        (r"\bcallees?\b|\bwhat \S+ calls\b", "tmct_callees"),
        (r"\bcallers?\b|\bwho calls\b|\b(functions?|methods?)\b.*\bcall(s|ing)?\b", "tmct_callers"),
        (r"\btests? (cover|for|that)|\btested by\b|\bcovering tests\b", "tmct_tests_for"),
        (r"\bexports?\b", "tmct_exports"),
        (r"\bsubclass(es)?\b", "tmct_subclasses"),
        (r"\bmembers?\b", "tmct_members"),
        (r"\bhistory\b", "tmct_history"),
        (r"\bsignature\b", "tmct_signature"),
        (r"\bco-?chang", "tmct_cochanges"),
        (r"\bsynonyms?\b|\banother word\b|\brelated\b", "tmct_related"),
        (r"\bdescribe\b|\bwhat is\b|\btell me about\b", "tmct_describe"),
        (r"\bsearch\b|\bfind\b", "tmct_search"),
    )
)
_STOPWORDS = """
    a about all an and another any are by call called calling calls can changing class code covers cover describe does do
    find for from function functions has have how i if in is it its list me member members method methods module modules
    my no none of on or our please search show signature synonym synonyms tell test tests that the their them these this
    those to us we what where which who whom whose why with word words you your
"""
_PASSED_OVER = frozenset(_STOPWORDS.split())


def stub(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """One keyword, one entity, one real call; a refusal otherwise."""
    tool = next((name for pattern, name in INTENTS if pattern.search(task.request)), None)
    if tool is None:
        return _refusal("no recognized intent")
    if tool not in tools.names:
        return _refusal(f"{tool} is not declared")
    capability = tools.registry.by_name[tool]
    key = _key(capability)
    entity = _entity(task.request) if key else None
    if key and entity is None:
        return _refusal("no entity named")
    call = Call(tool, {key: entity} if key else {})
    seen = tools.call(call.name, call.input)
    if not seen.ok:
        return _refusal(f"unresolvable: {seen.text}")
    return Transcript(
        calls=(call,),
        proof=receipt(tools.ledger[-1:]),
        usage=Usage.zero(),
        driver="stub-floor",
        notes=(seen.text[:240],),
    )


stub.evidence = "simulated"  # type: ignore[attr-defined]
stub.banner = "stub-floor: a keyword matcher, the floor of the ladder; not a model, not a router"  # type: ignore[attr-defined]


def _refusal(why: str) -> Transcript:
    return Transcript(refused=True, stop="refused", usage=Usage.zero(), driver="stub-floor", notes=(why,))


def _key(capability: Capability) -> str | None:
    """The one argument that the stub fills: the first required one, else `query`, else none."""
    if capability.required:
        return capability.required[0]
    return "query" if "query" in capability.accepted and capability.alternatives else None


def _entity(request: str) -> str | None:
    """The last word that looks like code (has a dot, a slash or a capital), else the last that is no stopword."""
    words = [word.lstrip("\"'`,;:?!()").rstrip("\"'`,;:?!().") for word in request.split()]
    words = [word for word in words if word]
    strong = [
        word
        for number, word in enumerate(words)
        if "." in word or "/" in word or (number > 0 and word[:1].isupper() and len(word) > 1)
    ]
    if strong:
        return strong[-1]
    plain = [word for word in words if word.casefold() not in _PASSED_OVER]
    return plain[-1] if plain else None
