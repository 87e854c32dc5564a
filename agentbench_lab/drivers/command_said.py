"""What a program says beside its messages, kept with its trial: noise on stdout, and stderr."""

from __future__ import annotations

from collections.abc import Sequence

from agentbench_lab.errors import counted

KEPT = 100_000
"""Bytes of each stream that are kept, from its beginning; a run keeps less of it."""
TAIL = 2_000
SECRET_FROM = 6
"""Characters that a secret has at least: what is shorter would be found everywhere."""


class Said:
    """Both streams of one trial, without the values of the variables that were handed on as secrets."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self.secrets = [secret for secret in secrets if len(secret) >= SECRET_FROM]
        self._out, self._err = bytearray(), bytearray()
        self._tail = b""
        self.skipped = 0
        self._again = ""

    def hear(self, chunk: bytes) -> None:
        """More of stderr."""
        room = KEPT - len(self._err)
        if room > 0:
            self._err += chunk[:room]
        self._tail = (self._tail + chunk)[-TAIL:]

    def noise(self, line: bytes) -> None:
        """A line of stdout that is no message."""
        self.skipped += 1
        self.printed(line + b"\n")

    def printed(self, data: bytes) -> None:
        """More of stdout that is kept as it is."""
        room = KEPT - len(self._out)
        if room > 0:
            self._out += data[:room]

    def stdout(self) -> str:
        return self.clean(self._out.decode(errors="replace"))

    def stderr(self) -> str:
        return self.clean(self._err.decode(errors="replace"))

    def with_last(self, why: str) -> str:
        """A reason, and behind it the last line of stderr, where there is one."""
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return self.clean(f"{why}; its last words: {lines[-1].strip()[:200]}" if lines else why)

    def clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "«redacted»")
        return text

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
