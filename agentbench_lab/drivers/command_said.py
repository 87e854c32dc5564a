"""What a program says beside its messages, kept with its trial: noise on stdout, and stderr."""

from __future__ import annotations

from typing import Any

from agentbench_lab.drivers import keys
from agentbench_lab.errors import counted

KEPT = 100_000
"""Bytes of each stream that are kept, from its beginning; a run keeps less of it."""
TAIL = 2_000


class Said:
    """Both streams of one trial, without secrets: what was handed on, and the token of the trial's own tools.

    `own` is what this program was handed on, which alone is taken out of what is graded.
    """

    def __init__(self, own: keys.Secrets = ()) -> None:
        self.token = ""
        self._own = own
        self._out, self._err = bytearray(), bytearray()
        self._tail = b""
        self._room = keys.room()
        self.skipped = 0
        self._again = ""

    def hear(self, chunk: bytes) -> None:
        """More of stderr."""
        self._add(self._err, chunk)
        self._tail = (self._tail + chunk)[-TAIL - self._room :]

    def noise(self, line: bytes) -> None:
        """A line of stdout that is no message."""
        self.skipped += 1
        self.printed(line + b"\n")

    def printed(self, data: bytes) -> None:
        """More of stdout that is kept as it is."""
        self._add(self._out, data)

    def _add(self, kept: bytearray, data: bytes) -> None:
        kept += data[: max(0, self.limit(KEPT) - len(kept))]

    def stdout(self) -> str:
        return self.begun(self._out, KEPT)

    def stderr(self) -> str:
        return self.begun(self._err, KEPT)

    def limit(self, kept: int, *, graded: bool = False) -> int:
        """Bytes that `begun` needs, to keep as many as these."""
        return kept + (keys.room(self._own) if graded else self._room)

    def begun(self, data: bytes | bytearray, kept: int, *, graded: bool = False) -> str:
        """The beginning of a stream, of which `limit(kept)` bytes were taken at most; what was cut off there may have begun
        a secret, which cannot be told from its beginning."""
        text = data.decode(errors="replace")
        limit = self.limit(kept, graded=graded)
        clean = self.without_own(text) if graded else self.clean(text)
        return keys.begun(clean, kept, limit - kept if len(data) == limit else 0)

    def with_last(self, why: str) -> str:
        """A reason, and behind it the last line of stderr, where there is one."""
        tail = self.clean(self._tail.decode(errors="replace"))
        if len(self._tail) == TAIL + self._room:
            # what it begins with may end a secret, of as many bytes
            tail = tail.encode(errors="replace")[self._room :].decode(errors="ignore")
        lines = tail.strip().splitlines()
        return f"{self.clean(why)}; its last words: {lines[-1].strip()[:200]}" if lines else self.clean(why)

    def clean(self, text: str) -> str:
        """A text that is kept beside the grade, without any secret."""
        return self._without_token(keys.without(text))

    def without_own(self, text: str) -> str:
        """A text that is graded, without what this program was handed on."""
        return self._without_token(keys.without(text, self._own))

    def without_own_in(self, value: Any) -> Any:
        """The same for a JSON value."""
        return keys.without_in(value, self.without_own)

    def _without_token(self, text: str) -> str:
        return text.replace(self.token, keys.REDACTED) if self.token else text

    def again(self, why: str) -> None:
        """The program was begun once more within the trial."""
        self._again = self.clean(why)

    def notes(self) -> tuple[str, ...]:
        skipped = (
            f"skipped, since no message: {counted(self.skipped, 'line')} on stdout" if self.skipped else ""
        )
        return tuple(filter(None, (self._again, skipped)))


def how(code: int | None) -> str:
    """How a program ended, in words."""
    if code is None:
        return "it was ended: exit null"
    return f"exit {code}" if code >= 0 else f"ended by signal {-code}"


__all__ = ["Said", "how"]
