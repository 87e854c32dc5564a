"""Trials through any `concurrent.futures.Executor`, above all a Dask cluster's.

Short trials are grouped, since a task costs about two milliseconds there. The records of a group come back together
and are journaled by the one coordinator; a group whose worker is lost is run again elsewhere and counted once.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from agentbench_lab.errors import LabError
from agentbench_lab.running.kit import Kit, Wire, run_group, run_packed
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.trial import Record

_GROUP_S = 0.5
"""How long a group of trials should take: much longer than the cost of a task, short enough to lose little."""
_MOST = 500


def run_in_executor(
    kit: Kit,
    specs: Sequence[Spec],
    executor: Executor,
    slots: int,
    sink: Callable[[Record], None],
    stop: Callable[[], bool],
    share: Callable[[bytes], Any] = lambda data: data,
) -> None:
    """Run the specs in groups, about two groups under way for each of `slots`, records to `sink` as groups end.

    `share` turns the kit's bytes into what the tasks are given (a cluster gives its workers the bytes once, and the
    tasks their name).
    Raises LabError when the executor itself fails; what was finished has then been given to `sink`.
    """
    here = isinstance(executor, ThreadPoolExecutor)
    given: Any = kit if here else share(kit.packed())
    task = run_group if here else run_packed
    left = deque(specs)
    suspects: deque[Spec] = deque()
    size = 1
    under_way: dict[Future[bytes], tuple[float, list[Spec], bool]] = {}

    def submit(group: list[Spec], *, alone: bool = False) -> None:
        try:
            future = executor.submit(task, given, Wire.pack(group))
        except RuntimeError as error:
            if under_way:
                # it broke between two submissions, before the broken future was looked at
                raise _broken(error) from None
            raise LabError(f"the executor takes no more trials: {error}") from None
        under_way[future] = time.monotonic(), group, alone

    try:
        while ((left or suspects) and not stop()) or under_way:
            while left and not stop() and len(under_way) < 2 * slots:
                # towards the end groups shrink, so that no slot waits long for another
                most = max(1, min(size, -(-len(left) // slots)))
                submit([left.popleft() for _ in range(min(most, len(left)))])
            if suspects and not under_way and not stop():
                submit([suspects.popleft()], alone=True)
            if not under_way:
                continue
            done, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in done:
                began, group, alone = under_way.pop(future)
                try:
                    records = Wire.records(future.result())
                except Exception as error:
                    if type(error).__name__ != "KilledWorker":
                        raise _broken(error) from None
                    # a trial that kills its workers takes neighbours along: each is tried again with nothing beside it
                    if alone:
                        sink(kit.lost(group[0]).died("every worker that ran it was lost"))
                    else:
                        suspects.extend(group)
                    continue
                for record in records:
                    sink(record)
                each = max(1e-6, (time.monotonic() - began) / len(group) / 2)
                size = max(1, min(_MOST, int(_GROUP_S / each)))
    finally:
        # after Ctrl-C or a full disk nothing that waits shall still spend money
        for future in under_way:
            future.cancel()


def _broken(error: Exception) -> LabError:
    """What went wrong is no driver's doing, whose faults come back as records."""
    if isinstance(error, LabError):
        return error
    said = " ".join(str(error).split())
    why = f"{type(error).__name__}{f': {said}' if said else ''}"
    return LabError(f"the executor failed ({why}); what was finished is kept, and the run can go on")


@contextmanager
def dask_executor(where: str, workers: int) -> Iterator[tuple[Executor, int, Callable[[bytes], Any]]]:
    """An executor over a local Dask cluster (`where` empty) or the one at an address, its slots, and its `share`.

    Raises LabError when Dask is not installed (extra `cluster`) or the address does not answer.
    """
    try:
        import distributed
    except ImportError:
        raise LabError("executor dask needs the extra: pip install 'agentbench-lab[cluster]'") from None
    untyped: Any = distributed
    if where:
        try:
            client = untyped.Client(where, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise LabError(f"executor dask:{where}: no scheduler there ({error})") from None
        cluster = None
    else:
        cluster = untyped.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        )
        client = untyped.Client(cluster, set_as_default=False)
    given: set[str] = set()
    try:
        from agentbench_lab.running.plugin import give, take_back

        slots = sum(client.nthreads().values()) or 1

        def share(data: bytes) -> str:
            given.add(name := give(client, data))
            return name

        yield client.get_executor(pure=False), slots, share
    finally:
        with contextlib.suppress(Exception):
            # a cluster that is gone has nothing to forget
            for name in given if cluster is None else ():
                take_back(client, name)
        client.close()
        if cluster is not None:
            cluster.close()
