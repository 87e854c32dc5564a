"""Which executor runs the trials: threads or an event loop here, processes, a Dask cluster, or any other Executor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.running.kit import Kit
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.pool import run_jobs
from agentbench_lab.running.trial import Record

EXECUTORS = ("threads", "processes", "dask")

Run = Callable[[Sequence[Spec], Callable[[Record], None], Callable[[], bool]], None]


class Engine:
    """Runs specs of one kit; a cluster is started once and serves every round of a run.

    `threads` is concurrency in this process, for drivers that wait (async drivers share one event loop); `processes` is
    for drivers that compute, or that must be ended when they hang; `dask` a local cluster of `workers` processes, and
    `dask:ADDRESS` one that is there already. Any concurrent.futures.Executor will do as well.
    """

    def __init__(self, kit: Kit, executor: str | Executor, workers: int) -> None:
        self._kit, self._executor, self._workers = kit, check_executor(executor), workers

    def run(self, rounds: Callable[[Run], None]) -> None:
        """Call `rounds` with the function that runs specs: (specs, sink, stop)."""
        if isinstance(self._executor, str) and self._executor.partition(":")[0] == "dask":
            from agentbench_lab.running.cluster import dask_executor, run_in_executor

            with dask_executor(self._executor.partition(":")[2], self._workers) as (pool, slots, share):
                rounds(
                    lambda specs, sink, stop: run_in_executor(
                        self._kit, specs, pool, slots, sink, stop, share=share
                    )
                )
        else:
            rounds(self._here)

    def _here(self, specs: Sequence[Spec], sink: Callable[[Record], None], stop: Callable[[], bool]) -> None:
        workers = min(self._workers, max(1, len(specs)))
        if isinstance(self._executor, Executor):
            from agentbench_lab.running.cluster import run_in_executor

            run_in_executor(self._kit, specs, self._executor, workers, sink, stop)
        elif self._executor == "processes":
            from agentbench_lab.running.processes import run_in_processes

            run_in_processes(self._kit, specs, workers, sink, stop)
        else:
            native = [inspect.iscoroutinefunction(driver.function) for driver in self._kit.drivers]
            waiting = [spec for spec in specs if native[spec.arm]]
            calling = [spec for spec in specs if not native[spec.arm]]
            if calling:
                run_jobs(self._kit.jobs(calling), workers, sink, stop)
            if waiting:
                from agentbench_lab.running.loop import run_in_loop

                run_in_loop(self._kit.jobs(waiting), workers, sink, stop)


def check_executor(executor: str | Executor) -> str | Executor:
    """The executor itself; LabError with the near match for a name that is none."""
    if isinstance(executor, Executor):
        return executor
    if not isinstance(executor, str):
        raise LabError(f"executor must be a name or a concurrent.futures.Executor, not {executor!r}")
    name, colon, _ = executor.partition(":")
    if name not in EXECUTORS or (colon and name != "dask"):
        raise LabError(f"no executor {executor!r}{did_you_mean(name, EXECUTORS)}; a cluster is dask:ADDRESS")
    return executor
