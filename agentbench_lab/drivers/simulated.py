"""The driver `simulated`: an error model over a case's own reference solution, and its closed form.

It is no agent. It is made to ask a question of the workbench itself: when steps fail in a way that is known exactly, does
what is measured agree with what must come out? And it draws, without a model, the shape of an answer to "does it pay to
take a request apart?".

The model. A worker has `m` calls to make, those of the reference solution that belong to what it was asked. It makes one
model call before each, and one to end. The context of its i-th model call, in tokens, is

    c(i) = first + (i - 1) * turn                       first = prompt + part * (parts it was asked for)

and under a scaffold `first` holds `brief` more, and `told` more for each part that was done before and is told about.
Its i-th call is right with the probability

    s(i) = success * exp(-max(0, c(i) - window) / attention)

independently of the others. A step that goes wrong is left out or made with a wrong value, one as often as the other, and
takes what is left of its part along: what was looked up wrongly is not changed rightly. An answer or a refusal that
ends a case is one more such step. Every model call costs c(i) tokens of input and `output` of output, also in a part
that is lost. A synthesis is one model call and never wrong.

A driver must never see a reference solution. This one is the exception: a run hands it over where the function asks for it
by the attribute `wants_gold`, and refuses to do so unless its evidence is `simulated` (running/fitted.py).
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.identity import version_of
from agentbench_lab.errors import LabError, counted, did_you_mean
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

LARGEST = 1_000_000_000
"""The largest number of tokens or of micros."""


class Parameters(Struct, frozen=True):
    """The parameters of the error model; all lengths in tokens, prices in micros of a dollar a token.

    `success` of a step while the context is within `window`; beyond it attention falls by 1/e each `attention`. `prompt`
    stands before every model call, `brief` beside it for a worker of a scaffold, `part` is the length of a part of the
    request, `turn` what a step adds to the context, `told` what is told of a part that is done.
    """

    success: float = 0.997
    window: int = 2_500
    attention: float = 24_000
    prompt: int = 2_000
    brief: int = 150
    part: int = 30
    turn: int = 120
    told: int = 40
    output: int = 40
    input_price: int = 1
    output_price: int = 4

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: Any = getattr(self, name)
            number = type(value) in (int, float) and not math.isnan(value)
            most = {"success": 1, "attention": math.inf}.get(name)
            if most is not None:
                sound, what = number and 0 < value <= most, "a number above 0"
                what += " and at most 1" if most == 1 else ""
            else:
                sound = type(value) is int and 0 <= value <= LARGEST
                what = f"a whole number from 0 to {LARGEST:,}"
            if not sound:
                near = _nearest(name, value) if number else ""
                raise LabError(f"simulated: {name} is {what}, not {value!r}{near}")


def _nearest(name: str, value: float) -> str:
    """The value that may have been meant; of a share above 1 that it is a percentage."""
    if name in ("success", "attention"):
        near = value / 100 if 2 <= value <= 100 else 1 if value > 1 else None
    else:
        near = round(min(max(value, 0), LARGEST))
    return (
        "" if near is None else f" (did you mean {near:g}?)" if near < 1_000 else f" (did you mean {near}?)"
    )


_USUAL = Parameters()


class Solution(Struct, frozen=True):
    """What the model goes by: the reference calls, how many each part takes, and how the case ends."""

    calls: tuple[Call, ...]
    sizes: tuple[int, ...]
    parts: tuple[str, ...] = ()
    answer: Any = None
    refuse: bool = False

    @property
    def width(self) -> int:
        """How many parts the request has."""
        return len(self.parts) or 1


def make(text: str) -> Simulated:
    """The driver of `simulated`, or of `simulated:KEY=VALUE,...` with parameters of its own."""
    return Simulated(parameters(text))


def parameters(text: str) -> Parameters:
    """Parameters written as `KEY=VALUE,...`; LabError for a key there is none of, or a value out of its range."""
    if text.startswith("["):
        raise LabError(
            f"simulated has no options in brackets: write simulated:{text.replace(']:', ',').strip('[],') or 'KEY=VALUE'}"
        )
    given: dict[str, Any] = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if key not in Parameters.__struct_fields__:
            raise LabError(
                f"simulated: no parameter {key!r}{did_you_mean(key, Parameters.__struct_fields__)}"
            )
        if not equals:
            raise LabError(f"simulated: {key!r} needs a value, as in {key}=1")
        if key in given:
            raise LabError(f"simulated: {key} is given twice")
        given[key] = _number(value)
    return Parameters(**given)


def _number(text: str) -> Any:
    """The number that a text is, else the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


class Simulated:
    """The error model as a driver; a run gives it the solutions, by the seed of each trial."""

    evidence = "simulated"
    wants_gold = True

    def __init__(
        self,
        parameters: Parameters = _USUAL,
        scaffold: str = "once",
        solutions: Mapping[str, Solution] | None = None,
        cases: Mapping[str, str] | None = None,
    ) -> None:
        self.parameters, self._scaffold = parameters, scaffold
        self._solutions, self._cases = dict(solutions or {}), dict(cases or {})
        values = msgspec.structs.asdict(parameters)
        changed = [f"{name}={value!r}" for name, value in values.items() if value != getattr(_USUAL, name)]
        self.name = ":".join(["simulated", *filter(None, [",".join(changed)])])
        words = ", ".join(f"{name}={value:g}" for name, value in values.items())
        self.banner = f"simulated: an error model that knows the reference solutions, not an agent; {words}"

    @property
    def version(self) -> str:
        """That of this file and of the parameters."""
        return version_of(functools.partial(type(self), self.parameters))

    def for_arm(
        self, scaffold: str, solutions: Mapping[str, Solution], cases: Mapping[str, str]
    ) -> Simulated:
        """The driver for one arm of a run: the solution by case id, and the case id by trial seed."""
        return type(self)(self.parameters, scaffold, solutions, cases)

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        seed = ctx.trial_seed
        solution = self._solutions.get(self._cases.get(seed, ""))
        if solution is None:
            raise LabError("simulated was given no reference solution; it can only be run by evaluate")
        part = ctx.part
        if ctx.role == "synthesis":
            self._think(ctx, self._first(solution.width) + self._told(solution.width))
            return Transcript(answer=solution.answer, refused=solution.refuse, driver="simulated")
        if ctx.role == "plan":
            self._think(ctx, self._first(solution.width), output=self.parameters.part * solution.width)
            return Transcript(answer=list(solution.parts) or [task.request], driver="simulated")
        return self._work(solution, part, tools, ctx)

    def _first(self, width: int) -> int:
        """Tokens that a worker of a scaffold begins with."""
        return self.parameters.prompt + self.parameters.brief + self.parameters.part * width

    def _told(self, parts: int) -> int:
        return self.parameters.told * parts

    def _work(self, solution: Solution, part: int | None, tools: Toolbox, ctx: Context) -> Transcript:
        """The calls of one part, or of the whole request where `part` is None."""
        if part is None:
            context = self.parameters.prompt + self.parameters.part * solution.width
            sizes, calls = solution.sizes, solution.calls
        else:
            threaded = "linear" in self._scaffold.split(":")
            context = self._first(1) + (self._told(part) if threaded else 0)
            before = sum(solution.sizes[:part])
            sizes = solution.sizes[part : part + 1]
            calls = solution.calls[before : before + sum(sizes)]
        random, lost, at = ctx.random, False, 0
        for size in sizes:
            lost = False
            for call in calls[at : at + size]:
                self._think(ctx, context)
                lost = not (random.random() < self._sure(context)) or lost
                made = _wrong(call, calls[:at], tools, random) if lost else call
                if made is not None:
                    tools.call(made.name, made.input)
                context += self.parameters.turn
                at += 1
        self._think(ctx, context)
        said = Transcript(text="It is done.", driver="simulated")
        if solution.answer is None and not solution.refuse:
            return said
        right = random.random() < self._sure(context) and not lost
        answer = solution.answer if right else _other(solution.answer, random)
        return msgspec.structs.replace(said, answer=answer, refused=solution.refuse and right)

    def _sure(self, context: int) -> float:
        """The probability that the next step is right."""
        beyond = max(0, context - self.parameters.window)
        return self.parameters.success * math.exp(-beyond / self.parameters.attention)

    def _think(self, ctx: Context, context: int, *, output: int | None = None) -> None:
        """One model call with so many tokens before it."""
        known = self.parameters
        said = known.output if output is None else output
        cost = context * known.input_price + said * known.output_price
        ctx.spend(Usage(context, 0, 0, said, 1, cost, 0.0))


def _wrong(call: Call, seen: Sequence[Call], tools: Toolbox, random: Random) -> Call | None:
    """A call that is plausible and wrong: one value is another one that was seen before under that name, or one that is
    alike. None: the step is left out.

    What comes later is never mixed up with what was earlier, so that two errors cannot make up for each other: the last
    change that an error took from its place is made by nobody.
    """
    if random.random() < 0.5 or not call.input:
        return None
    key = random.choice(sorted(call.input))
    value = call.input[key]
    schema = next((tool.input_schema for tool in tools.tools if tool.name == call.name), {})
    listed = schema.get("properties", {}).get(key, {}).get("enum", ())
    known = [other.input[key] for other in seen if key in other.input]
    others = [other for other in (listed or known) if other != value]
    return Call(call.name, {**call.input, key: random.choice(others) if others else _other(value, random)})


def _other(value: Any, random: Random) -> Any:
    """A value that is like this one and another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + random.choice((1, 2, 10))
    if isinstance(value, str):
        digits = [at for at, letter in enumerate(value) if letter in "0123456789"]
        if not digits:
            return f"{value}e" if re.search(r"\w$", value) else f"{value}~"
        at = digits[-1]
        return f"{value[:at]}{(int(value[at]) + random.randrange(1, 9)) % 10}{value[at + 1 :]}"
    if isinstance(value, list):
        return value[:-1] if value else [None]
    if isinstance(value, dict) and value:
        key = random.choice(sorted(value))
        return {**value, key: _other(value[key], random)}
    return "something else"


# ---- the closed form


class Expected(Struct, frozen=True):
    """What must come out: the probability that a case is solved, and what a trial uses on average."""

    success: float
    input_tokens: float
    output_tokens: float
    model_calls: float
    cost_micros: float

    @property
    def tokens(self) -> float:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def cost_per_solved(self) -> float:
        """Micros of a dollar for a solved case; infinite where none is."""
        return self.cost_micros / self.success if self.success else math.inf


def expected(
    known: Parameters,
    width: int,
    calls_per_part: int | Sequence[int],
    scaffold: str = "once",
    *,
    crash: float = 0.0,
) -> Expected:
    """The closed form of the error model, for a request of `width` parts that take `calls_per_part` calls each (one
    number for all, or one for each part) and end in a state, not an answer.

    For one worker with `m` calls that begins with `f` tokens (in sums, i runs from 0 to m - 1):

    - input: f + (f + turn) + ... + (f + m turn) = (m + 1) f + turn m (m + 1) / 2, and (m + 1) outputs;
    - success: all m steps right: success^m * exp(-E / attention), where E is the sum of what lies beyond the window. With
      j the first step beyond it (f + j turn > window) and n = m - j the number of those, E is an arithmetic series:
      E = n (f - window) + turn n (j + m - 1) / 2.

    once is one such worker with f = prompt + width * part. linear and fan_out_N have one for each part, with
    f = prompt + brief + part, to which linear adds `told` for each part before; successes multiply, tokens add. fan_out
    adds its synthesis, one call on prompt + brief + width * (part + told). `:plan` adds one on prompt + brief + width *
    part, whose output is width * part. A request of one part is done as once does it. durable changes nothing.

    `crash`, the probability q of a crash before each tool call and after each model call is accounted for (the driver
    `faulty`): a worker with m calls passes n = 2m + 1 such points, and 2i - 2 of them before its i-th account. Bare, all N
    points of a trial have to be passed: success falls by (1-q)^N, and a worker's account i is made with the probability
    (1-q)^(2i-2), where the waves before it came to their end. durable makes each worker's account i on average
    (1-q)^(2i-2-n) times until all n points are passed, and success stays. This holds where a worker is a step of its own,
    so not for durable:fan_out, whose steps are waves. Tokens are exact while no step goes wrong (a step left out has no
    tool call before which to crash), and close to it otherwise.

    Raises LabError for a scaffold of which nothing is known.
    """
    sizes = [calls_per_part] * width if isinstance(calls_per_part, int) else list(calls_per_part)
    if width < 1 or len(sizes) != width:
        raise LabError(f"expected: {counted(len(sizes), 'number')} of calls for {counted(width, 'part')}")
    name, durable = scaffold.removeprefix("durable:"), scaffold.startswith("durable:")
    head, _, plan = name.partition(":")
    fanned = re.fullmatch(r"fan_out_\d+", head) is not None
    if not (fanned or head in ("once", "linear")) or plan not in ("", "plan") or (plan and head == "once"):
        raise LabError(f"expected: nothing is known of scaffold {scaffold!r}")
    if durable and crash and fanned and width > 1:
        raise LabError(
            "expected: the steps of durable:fan_out are waves; under crashes nothing is known of them"
        )
    # waves of workers, each by the tokens it begins with, its calls, and the output of its model calls
    waves: list[list[_Worker]] = []
    if plan:
        waves.append([(known.prompt + known.brief + width * known.part, 0, width * known.part)])
    if head == "once" or width == 1:
        waves.append([(known.prompt + width * known.part, sum(sizes), known.output)])
    else:
        at_once = int(head.removeprefix("fan_out_")) if fanned else 1
        told = 0 if fanned else known.told
        first = known.prompt + known.brief + known.part
        workers = [(first + at * told, size, known.output) for at, size in enumerate(sizes)]
        waves += [workers[at : at + at_once] for at in range(0, width, at_once)]
        if fanned:
            both = width * (known.part + known.told)
            waves.append([(known.prompt + known.brief + both, 0, known.output)])
    return _summed(known, waves, durable, crash)


_Worker = tuple[int, int, int]


def _summed(known: Parameters, waves: Sequence[Sequence[_Worker]], durable: bool, crash: float) -> Expected:
    success, inputs, outputs, calls = 1.0, 0.0, 0.0, 0.0
    # the probability that a bare trial comes as far as this wave
    entered = 1.0
    for wave in waves:
        left = entered
        for first, steps, output in wave:
            success *= known.success**steps * math.exp(-_beyond(known, first, steps) / known.attention)
            if not crash:
                inputs += (steps + 1) * first + known.turn * steps * (steps + 1) / 2
                outputs += (steps + 1) * output
                calls += steps + 1
                continue
            points = 2 * steps + 1
            for account in range(steps + 1):
                passed = (1 - crash) ** (2 * account)
                times = passed / (1 - crash) ** points if durable else entered * passed
                inputs += times * (first + account * known.turn)
                outputs += times * output
                calls += times
            if not durable:
                left *= (1 - crash) ** points
        entered = left
    cost = inputs * known.input_price + outputs * known.output_price
    return Expected(success * entered, inputs, outputs, calls, cost)


def _beyond(known: Parameters, first: int, steps: int) -> float:
    """The sum, over a worker's steps, of the tokens of its context that lie beyond the window."""
    if not known.turn:
        return steps * max(0, first - known.window)
    clear = 0 if first > known.window else (known.window - first) // known.turn + 1
    if clear >= steps:
        return 0.0
    beyond = steps - clear
    return beyond * (first - known.window) + known.turn * beyond * (clear + steps - 1) / 2


def pays_from(
    known: Parameters,
    widths: Sequence[int],
    calls_per_part: int,
    scaffold: str,
    *,
    baseline: str = "once",
    margin: float = 0.02,
) -> int | None:
    """The least of the widths from which on a scaffold solves more than the baseline by over `margin`; None where it
    never does to the end."""
    found: int | None = None
    for width in sorted(widths):
        better = (
            expected(known, width, calls_per_part, scaffold).success
            - expected(known, width, calls_per_part, baseline).success
        )
        found = (found or width) if better > margin else None
    return found
