"""Trials through any `concurrent.futures.Executor`, above all a Dask cluster's.

Short trials are grouped, since a task costs about two milliseconds there. The records of a group come back together
and are journaled by the one coordinator; a group whose worker is lost is run again elsewhere and counted once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from typing import Any

from agentbench_lab.errors import LabError
from agentbench_lab.running.kit import Kit, Wire, run_packed
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

    `share` turns the kit's bytes into what the tasks are given (a cluster sends it to its workers once).
    """
    packed = share(kit.packed())
    left = deque(specs)
    size = 1
    alone: deque[Spec] = deque()
    under_way: dict[Future[bytes], tuple[float, list[Spec]]] = {}
    while ((left or alone) and not stop()) or under_way:
        while (left or alone) and not stop() and len(under_way) < 2 * slots:
            # towards the end groups shrink, so that no slot waits long for another
            most = max(1, min(size, -(-len(left) // slots)))
            group = [alone.popleft()] if alone else [left.popleft() for _ in range(min(most, len(left)))]
            under_way[executor.submit(run_packed, packed, Wire.pack(group))] = (time.monotonic(), group)
        done, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in done:
            began, group = under_way.pop(future)
            try:
                records = Wire.records(future.result())
            except Exception as error:
                # a trial that kills its worker takes its group along: each of them is tried again by itself
                if len(group) > 1:
                    alone.extend(group)
                else:
                    sink(kit.job(group[0]).died(f"its worker was lost: {type(error).__name__}"))
                continue
            for record in records:
                sink(record)
            each = max(1e-6, (time.monotonic() - began) / len(group) / 2)
            size = max(1, min(_MOST, int(_GROUP_S / each)))


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
    try:
        slots = sum(client.nthreads().values()) or 1
        yield client.get_executor(pure=False), slots, lambda data: client.scatter(data, broadcast=True)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()
