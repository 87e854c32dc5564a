"""What a Dask worker is given when it joins a cluster: the kit of the run, also when it replaces one that was lost.

Were the kit a task's result, a new worker would fetch it from another one, and wait half a minute for each that is no more.
"""

from __future__ import annotations

import hashlib
from typing import Any

from distributed import Client, WorkerPlugin

from agentbench_lab.running.kit import forget, held


class Holds(WorkerPlugin):  # type: ignore[misc,unused-ignore]
    """Puts a kit's bytes where `run_packed` finds them by their name."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self._data = name, data

    def setup(self, worker: Any) -> None:
        """The worker joins."""
        held[self.name] = self._data

    def teardown(self, worker: Any) -> None:
        """The run is over."""
        forget(self.name)


def give(client: Client, data: bytes) -> str:
    """Give every worker, now or later, a kit; the name that it has there."""
    name = f"agentbench-lab-{hashlib.sha256(data).hexdigest()[:16]}"
    client.register_plugin(Holds(name, data), name=name)  # type: ignore[no-untyped-call,unused-ignore]
    return name


def take_back(client: Client, name: str) -> None:
    """Let the workers forget it."""
    client.unregister_worker_plugin(name)  # type: ignore[no-untyped-call,unused-ignore]
