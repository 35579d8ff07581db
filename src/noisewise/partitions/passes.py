"""Passes over partitions, in this process or on Dask; sums are the same to the last bit."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..regression.sums import Sums, added
from .reading import Source

Found = TypeVar("Found")
FAN = 16  # sums added by one task: a power of two, so that the tree is the same


class Here:
    """Partitions read one after the other in this process."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources

    def first(self, work: Callable[[Source], Found]) -> Found:
        """Return what the first partition gives."""
        return work(self.sources[0])

    def total(self, work: Callable[[Source], Sums]) -> Sums:
        """Return the sum over all partitions."""
        return added(map(work, self.sources))


class OnDask(Here):
    """Partitions read by Dask's workers, which also add up; one sum comes back per pass."""

    def first(self, work: Callable[[Source], Found]) -> Found:
        """Return what the first partition gives."""
        return self._delayed(work, self.sources[0]).compute()

    def total(self, work: Callable[[Source], Sums]) -> Sums:
        """Return the sum over all partitions, added in the same order as in one process."""
        from dask import delayed

        level = [self._delayed(work, each) for each in self.sources]
        join = delayed(added, pure=False)
        while len(level) > 1:
            level = [join(level[i : i + FAN]) for i in range(0, len(level), FAN)]
        return level[0].compute()

    def _delayed(self, work: Callable[[Source], Found], source: Source) -> Any:
        from dask import delayed

        return delayed(_named, pure=False)(work, source.name, source.given)


def _named(work: Callable[[Source], Found], name: str, given: Any) -> Found:
    """Do the work for a partition that a delayed one has become."""
    return work(Source(name, given))


def passes_over(sources: Sequence[Source]) -> Here:
    """Return where partitions are read: on Dask if one is delayed or a client is there.

    Arrays that this process holds are not sent.
    """
    if any(hasattr(each.given, "__dask_graph__") for each in sources):
        return OnDask(sources)
    held = any(isinstance(each.given, tuple | list) for each in sources)
    return OnDask(sources) if _has_client() and not held else Here(sources)


def _has_client() -> bool:
    distributed = sys.modules.get("distributed")  # where it was not imported there is none
    if distributed is None:
        return False
    try:
        distributed.get_client()
    except ValueError:
        return False
    return True
