"""What ends a trial or a run from within a driver: whose fault it is, and what it cost all the same."""

from __future__ import annotations

from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Usage

LONGEST_WAIT_S = 600.0
"""A Retry-After beyond this is not waited for: the trial is excluded, and can be run again another day."""


class InfrastructureError(Exception):
    """What a driver raises when the other side failed it: a refused connection, a rate limit, a server's error.

    It is no fault of the agent's. Before any output of a model and any tool call the trial is tried again, after
    `retry_after` seconds where the other side named them; else, and when no try is left, the trial is excluded.
    `usage` is what the failed try has cost all the same. A `final` error would be the same again: it is not tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.usage, self.final = retry_after, usage, final


class Misconfigured(LabError):
    """What a driver raises when no trial can go on as it was set up: a wrong key, a model that is not there.

    It is nobody's sample: it stops the whole run with its one line, and what was finished is kept, with a card.
    """


class OutOfTime(TimeoutError):
    """The trial's own limit of time, told apart from a TimeoutError that a driver raised; it ends as `timeout`.

    A driver that keeps the limit itself raises it, as one does that ends a program of its own by then.
    `notes` say what became of the agent; `usage` is what it has used beyond what `ctx.spend` was told.
    """

    def __init__(self, *notes: str, usage: Usage | None = None) -> None:
        super().__init__(*notes)
        self.notes, self.usage = notes, usage


class Nonsense(ValueError):
    """What a driver gave back is no transcript; the message says why."""
