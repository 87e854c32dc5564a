"""A conversation: an agent and a simulated user take turns over one world.

Each turn of the agent is one call of its driver with the user's last words as the request, all that was said before as
the history, and the trial's own tools. The user is a driver too, without tools: what the agent said last is its request,
the history is seen from its side, and its policy is the scenario that no agent is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Case, Expect, Goal, Message, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.drivers.returned import as_transcript, only_in
from agentbench_lab.transcripts import Observation, Transcript, Usage
from agentbench_lab.users import STOP_TOKEN, without_stop
from agentbench_lab.worlds.capabilities import Registry
from agentbench_lab.worlds.toolbox import Ending, LedgerRow, Ran, Tool, Toolbox

DEFAULT_USER = "scripted"
ROLE = f"""You play a person who has written to an agent, and you write what this person says next: a short message in
plain words, and nothing else. Do not play the agent, and do not help it. Tell what you know when you are asked for it.
When what you came for is done, or is refused for good, answer with {STOP_TOKEN} and nothing else."""
"""What every simulated user is told, before its scenario."""

Step = Callable[[], Any]
_UNKNOWN = Usage()


class UserSide(Struct, frozen=True, gc=False, omit_defaults=True):
    """Who played the user, and what that used: kept apart from what the agent used."""

    driver: str
    model: str | None = None
    usage: Usage = _UNKNOWN


class Talk(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is kept of a conversation beside its messages: the agent's turns, and what ended it.

    `ended_by`: `ending` (the agent refused, answered or named a goal), `agent_stop` and `user_stop` (the stop token),
    `max_turns`, `no_words` (the agent said nothing), or how the agent's last turn stopped; None where it was cut off.
    """

    turns: int
    user: UserSide
    ended_by: str | None = None


class Conversation:
    """One conversation while it goes on. `messages` is the dialogue so far.

    `speaks`, when set, is told True as the user's turn begins and False as it ends: its time is not the agent's.
    """

    def __init__(
        self,
        agent: Loaded,
        user: Loaded,
        case: Case,
        task: Task,
        tools: Toolbox,
        ctx: Context,
        *,
        speaks: Callable[[bool], None] | None = None,
    ) -> None:
        assert case.user is not None
        self._agent, self._user = agent, user
        self._task, self._tools, self._ctx = task, tools, ctx
        self._max_turns = case.max_turns
        seed = user_seed(ctx.seed)
        self._told = Task("", (), policy=user_policy(case.user.scenario))
        self._silence = NoTools()
        self._user_ctx = Context(self._silence, self._told, seed=seed, trial=ctx.trial)
        self._user_ctx.config["script"] = case.user.script
        self._speaks, self._process = speaks, os.getpid()
        self._turns: list[Transcript] = []
        self._begun = 0
        self._ended_by: str | None = None
        self.user_speaks = False
        self.messages: list[Any] = []

    def start(self) -> Transcript | Awaitable[Transcript]:
        """Talk to the end: the agent's transcript of all turns, or an awaitable of it once a side gives an awaitable.

        Raises what a turn of the agent raises, and InfrastructureError where the user fails.
        """
        talk = self._talk()
        step = next(talk)
        while True:
            try:
                returned = step()
                only_in(self._process)
            except BaseException as error:
                talk.throw(error)
                raise
            if type(returned) is not Transcript and inspect.isawaitable(returned):
                return self._go_on(talk, returned)
            try:
                step = talk.send(returned)
            except StopIteration as over:
                whole: Transcript = over.value
                return whole

    async def _go_on(self, talk: Generator[Step, Any, Transcript], returned: Any) -> Transcript:
        """The rest of it on the running event loop."""
        while True:
            try:
                while type(returned) is not Transcript and inspect.isawaitable(returned):
                    returned = await returned
            except BaseException as error:
                talk.throw(error)
                raise
            try:
                step = talk.send(returned)
            except StopIteration as over:
                whole: Transcript = over.value
                return whole
            try:
                side = self._user if self.user_speaks else self._agent
                # what is no async function would hold up every other trial of this loop
                waits = inspect.iscoroutinefunction(side.function)
                returned = step() if waits else await asyncio.to_thread(step)
                only_in(self._process)
            except BaseException as error:
                talk.throw(error)
                raise

    def _talk(self) -> Generator[Step, Any, Transcript]:
        """Yields what is to be called next, and is sent what it gave back."""
        said: list[Message] = []
        request = self._task.request
        while True:
            self.messages.append({"role": "user", "content": request})
            words = yield from self._agent_turn(request, said)
            if self._ended_by is not None:
                return self._whole()
            said += [Message("user", request), Message("assistant", words)]
            request = yield from self._user_turn(said)
            if self._ended_by is not None:
                if request:
                    self.messages.append({"role": "user", "content": request})
                return self._whole()

    # ---- the agent

    def _agent_turn(self, request: str, said: Sequence[Message]) -> Generator[Step, Any, str]:
        self._begun += 1
        task = msgspec.structs.replace(self._task, request=request, history=tuple(said))
        (seat,) = self._ctx.seats(1)
        desk = self._tools.desk(seat.number)
        # a control tool ends the trial, whichever turn it is
        desk.ending = self._tools.ending
        ctx = self._ctx.child(seat, desk, task, name=f"turn {self._begun}")
        try:
            returned = yield lambda: self._agent.start(task, desk, ctx)
            turn = as_transcript(returned)
        except BaseException as error:
            self._ctx.settle(seat, error)
            raise
        spoken = isinstance(turn.answer, str) and not turn.text
        words, stopped = without_stop(turn.answer if spoken else turn.text)
        if spoken:
            # what was said in words is no answer beside the one that the control tool was given
            turn = msgspec.structs.replace(turn, answer=None if desk.ending.answered else words)
        self._turns.append(turn)
        self.messages += _agents_messages(turn, words, request, desk.ending, desk.close())
        self._ctx.settle(seat, turn)
        self._ended_by = self._agents_end(turn, words, spoken, stopped)
        return words

    def _agents_end(self, turn: Transcript, words: str, spoken: bool, stopped: bool) -> str | None:
        """What ends the conversation after the agent's turn; None where it goes on."""
        answered = turn.answer is not None and not spoken
        named = turn.inferred_goal is not None or turn.ambiguous_goals is not None or turn.reject
        if self._tools.ending.used or turn.refused or answered or named:
            return "ending"
        if turn.stop != "done" or not turn.terminated:
            return turn.stop
        if self._tools.spent:
            return "budget"
        if stopped:
            return "agent_stop"
        if not words:
            return "no_words"
        return "max_turns" if self._begun >= self._max_turns else None

    # ---- the user

    def _user_turn(self, said: Sequence[Message]) -> Generator[Step, Any, str]:
        """What the user says; `_ended_by` is set where that is the end of it."""
        history = tuple([_turned(message) for message in said[:-1]])
        task = msgspec.structs.replace(self._told, request=said[-1].text, history=history)
        root = self._user_ctx
        began = time.perf_counter()
        self._begin_user(True)
        root.deadline = self._ctx.deadline
        (seat,) = root.seats(1)
        ctx = root.child(seat, self._silence, task)
        try:
            returned = yield lambda: self._user.start(task, self._silence, ctx)
            turn = as_transcript(returned)
        except BaseException as error:
            root.settle(seat, error)
            if isinstance(error, Exception) and not isinstance(error, Misconfigured):
                raise _users_fault(error) from error
            raise
        finally:
            self._ctx.waited_s += time.perf_counter() - began
        root.settle(seat, turn)
        self._begin_user(False)
        text = turn.text or (turn.answer if isinstance(turn.answer, str) else "")
        words, stopped = without_stop(text)
        if stopped:
            self._ended_by = "user_stop"
        elif turn.stop not in ("done", "refused"):
            raise InfrastructureError(f"{_FAILED}: it stopped with {turn.stop}")
        elif not words:
            raise InfrastructureError(f"{_FAILED}: it said nothing")
        return words

    def _begin_user(self, begins: bool) -> None:
        self.user_speaks = begins
        if self._speaks is not None:
            self._speaks(begins)

    # ---- what is kept

    def _whole(self) -> Transcript:
        """All turns of the agent as one transcript: their claims in order, and the ending of the last."""
        turns, last = self._turns, self._turns[-1]
        candidates = [turn.candidate_results for turn in turns if turn.candidate_results is not None]
        return msgspec.structs.replace(
            last,
            calls=tuple([call for turn in turns for call in turn.calls]),
            proof=tuple([step for turn in turns for step in turn.proof]),
            notes=tuple([note for turn in turns for note in turn.notes]),
            candidate_results=tuple([call for calls in candidates for call in calls]) if candidates else None,
            status=next((turn.status for turn in reversed(turns) if turn.status is not None), None),
            result=next((turn.result for turn in reversed(turns) if turn.result is not None), None),
            recovered=any(turn.recovered for turn in turns),
            cached=any(turn.cached for turn in turns),
            heard=all(turn.heard for turn in turns),
            text=without_stop(last.text)[0],
            usage=self._ctx.spent,
            messages=tuple(self.messages),
        )

    @property
    def user_usage(self) -> Usage:
        """What the user's side has used; unknown where it does not say."""
        return self._user_ctx.spent if self._user_ctx.crew is not None else Usage.zero()

    @property
    def talk(self) -> Talk:
        """What is kept of it, as far as it has come."""
        side = UserSide(self._user.name, self._user.model, self.user_usage)
        return Talk(self._begun, side, self._ended_by)


_FAILED = "the simulated user failed"


def _users_fault(error: Exception) -> InfrastructureError:
    """What went wrong with the user, which is nothing of the agent's."""
    if isinstance(error, InfrastructureError):
        return InfrastructureError(f"{_FAILED}: {error}", retry_after=error.retry_after, final=error.final)
    return InfrastructureError(f"{_FAILED}: {type(error).__name__}: {error}")


def user_seed(seed: str) -> str:
    """What the random numbers of the user's side grow from, in the trial of this seed."""
    return hashlib.sha256(f"{seed}\0user".encode()).hexdigest()[:16]


def user_policy(scenario: str) -> str:
    """What a simulated user is told: its part, and what is particular to the case."""
    return f"{ROLE}\n\nWhat is so with this person:\n{scenario}" if scenario.strip() else ROLE


def user_version(user: Loaded) -> str:
    """Which user this is: the driver's version, and what it is told around its scenario, where it hears of that."""
    if user.name == DEFAULT_USER:
        return user.version
    return f"{user.version}+{hashlib.sha256(user_policy('what is so').encode()).hexdigest()[:16]}"


def _turned(message: Message) -> Message:
    """The message seen from the other side."""
    return Message("user" if message.role == "assistant" else "assistant", message.text)


def _agents_messages(
    turn: Transcript, words: str, request: str, ending: Ending, made: Sequence[LedgerRow]
) -> list[Any]:
    """The agent's part of a turn: its own messages as far as they are of this turn, else its calls and its words."""
    own = _of_this_turn(turn.messages, request)
    if not own:
        calls: list[dict[str, Any]] = [{"name": row.name, "arguments": row.input} for row in made]
        calls += _control_calls(turn, ending)
        own = [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
    if words and not (own and isinstance(own[-1], dict) and own[-1].get("content") == words):
        own.append({"role": "assistant", "content": words})
    return own


def _control_calls(turn: Transcript, ending: Ending) -> list[dict[str, Any]]:
    """How the agent ended the task, as a call."""
    if ending.refused is not None or turn.refused:
        reason = ending.refused or (turn.notes[-1] if turn.notes else "")
        return [{"name": "refuse", "arguments": {"reason": reason} if reason else {}}]
    if ending.answered:
        return [{"name": "answer", "arguments": {"value": ending.answer}}]
    return []


def _of_this_turn(messages: Sequence[Any], request: str) -> list[Any]:
    """What follows the user's last words in a driver's messages: the policy and the history are there in every turn."""
    for at in range(len(messages) - 1, -1, -1):
        one = messages[at]
        if isinstance(one, dict) and one.get("role") == "user" and one.get("content") == request:
            # within its turn an agent may be told in a user's name what its calls gave; no user says that
            return [
                {**each, "role": "tool"} if isinstance(each, dict) and each.get("role") == "user" else each
                for each in messages[at + 1 :]
            ]
    spoken = ("system", "developer", "user")
    return [one for one in messages if not (isinstance(one, dict) and one.get("role") in spoken)]


# ---- the user's tools


class NoTools(Toolbox):
    """What a simulated user has: no tool at all, not even those that end a task."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), ())

    @property
    def tools(self) -> tuple[Tool, ...]:
        return ()

    def call(self, name: str, input: Any = None) -> Observation:
        return Observation("undeclared", "there are no tools here; answer in words")


class _Nowhere:
    """A world with nothing in it."""

    name, kind, digest = "nowhere", "nothing", ""
    registry = Registry(())
    labels: frozenset[str] = frozenset()

    def fork(self) -> _Nowhere:
        return self

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        raise LookupError(name)

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        return ()

    def seen(self, expect: Expect) -> None:
        return None


__all__ = [
    "DEFAULT_USER",
    "ROLE",
    "Conversation",
    "NoTools",
    "Talk",
    "UserSide",
    "user_policy",
    "user_seed",
    "user_version",
]
