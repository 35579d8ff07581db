"""Passes over partitions, in this process or on Dask; sums are the same to the last bit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..regression.ftrl.sums import Sum, added
from ..support import worker_versions
from .partition_rows import Source

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client

Found = TypeVar("Found")
FAN = 16  # sums added by one task: a power of two, so that the tree is the same
SHARES = 16  # tasks per thread and pass, where there are partitions enough


class Here:
    """Partitions read one after the other in this process."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources

    def first(self, work: Callable[[Source], Found]) -> Found:
        """Return what the first partition gives."""
        return work(self.sources[0])

    def total(self, work: Callable[[Source], Sum]) -> Sum:
        """Return the sum over all partitions."""
        return added(map(work, self.sources))


class OnDask(Here):
    """Partitions read by Dask's workers, which also add up; one sum comes back per pass.

    Without a client they are read by Dask's threads in this process.
    """

    def __init__(self, sources: Sequence[Source], client: Client | None = None) -> None:
        super().__init__(sources)
        self.wanted: dict[str, str] = {}
        self.size = 1  # partitions read by one task, one after the other
        if client is None:
            return
        worker_versions.refuse_others(client)
        self.wanted = worker_versions.wanted()
        if not any(map(_delayed, sources)):  # a task holds all that was computed for it
            most = len(sources) // (SHARES * max(sum(client.nthreads().values()), 1))
            self.size = 1 << max(most.bit_length() - 1, 0)

    def first(self, work: Callable[[Source], Found]) -> Found:
        """Return what the first partition gives."""
        name, given = self.sources[0].name, self.sources[0].given
        found: Found = self._task(_first, work, name, given).compute()
        return found

    def total(self, work: Callable[[Source], Sum]) -> Sum:
        """Return the sum over all partitions, added in the same order as in one process."""
        level = []
        for i in range(0, len(self.sources), self.size):
            some = self.sources[i : i + self.size]
            names, given = [each.name for each in some], [each.given for each in some]
            level.append(self._task(_total, work, names, given))
        while len(level) > 1:
            level = [self._task(added, level[i : i + FAN]) for i in range(0, len(level), FAN)]
        found: Sum = level[0].compute()
        return found

    def _task(self, what: Callable[..., object], *args: object) -> Delayed:
        from dask import delayed

        return delayed(_checked, pure=False)(self.wanted, what, *args)


def _checked(wanted: dict[str, str], what: Callable[..., Found], *args: object) -> Found:
    """Do what is asked of a worker, if it has what is wanted; workers may join at any time."""
    if wanted:
        worker_versions.require(wanted)
    return what(*args)


def _first(work: Callable[[Source], Found], name: str, given: object) -> Found:
    return work(Source(name, given))


def _total(work: Callable[[Source], Sum], names: list[str], given: list[object]) -> Sum:
    return added(map(work, map(Source, names, given)))


def _delayed(source: Source) -> bool:
    return hasattr(source.given, "__dask_graph__")


def passes_over(sources: Sequence[Source]) -> Here:
    """Return where partitions are read: on Dask if one is delayed or a client is there.

    Arrays that this process holds are not sent.
    """
    client = _client()
    if any(map(_delayed, sources)):
        return OnDask(sources, client)
    held = any(isinstance(each.given, tuple | list) for each in sources)
    return Here(sources) if client is None or held else OnDask(sources, client)


def _client() -> Client | None:
    distributed = sys.modules.get("distributed")  # where it was not imported there is none
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
