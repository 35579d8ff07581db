"""What a user passes as partitions, made a list of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from .partition_rows import Source

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.dataframe import DataFrame, Series
    from dask.delayed import Delayed

    Lazy: TypeAlias = DaskArray | DataFrame | Series


@runtime_checkable
class Collection(Protocol):
    """A Dask array, data frame or series."""

    def to_delayed(self) -> Any:
        """Return its blocks."""


@runtime_checkable
class Blocks(Collection, Protocol):
    """A Dask array."""

    chunks: tuple[tuple[int, ...], ...]
    numblocks: tuple[int, ...]
    ndim: int
    rechunk: Callable[..., DaskArray]


SUFFIXES = (".parquet", ".pq")


def sources_of(partitions: object) -> list[Source]:
    """Return the partitions in order, none of them read."""
    if isinstance(partitions, str | Path):
        return _sources(files_in(Path(partitions)))
    if isinstance(partitions, tuple) and partitions and isinstance(partitions[0], Collection):
        return _sources(_blocks_of_arrays(partitions))
    if isinstance(partitions, Collection):
        return _sources(partitions.to_delayed())
    if not isinstance(partitions, Iterable):
        raise ValueError(
            f"partitions is a {type(partitions).__name__}; pass a list of (X, y) or (X, y, weight),"
            " of functions, Dask delayed ones or Parquet files, a Dask collection, or a folder"
        )
    found = _sources(partitions)
    if not found:
        raise ValueError("partitions is empty; pass at least one")
    return found


def _sources(given: Iterable[object]) -> list[Source]:
    return [
        Source(str(each), Path(each).absolute())  # workers may be in another folder
        if isinstance(each, str | Path)
        else Source(f"partition {i}", each)
        for i, each in enumerate(given)
    ]


def files_in(path: Path) -> list[Path]:
    """Return the Parquet files of a folder in the order of their names; a file is itself."""
    if not path.is_dir():
        if not path.exists():
            raise ValueError(f"{path} does not exist; pass a folder of Parquet files, or one")
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES)
    if not found:
        raise ValueError(f"{path} holds no Parquet file; pass a folder of .parquet files")
    return found


def blocks_in_turn(*collections: Lazy | None) -> Iterator[list[object]]:
    """Yield the blocks of Dask arrays or data frames, split alike, one at a time; None stays."""
    x = collections[0]
    delayed = [
        None if each is None else _delayed_like(x, each, name)
        for name, each in zip(("X", "y", "sample_weight", "offset"), collections, strict=False)
    ]
    for i in range(len(delayed[0] or ())):
        yield [None if each is None else each[i].compute() for each in delayed]


def _delayed_like(x: Lazy, other: Lazy, name: str) -> list[Delayed]:
    if not isinstance(other, Collection):
        raise ValueError(
            f"X is of Dask and {name} is a {type(other).__name__}; pass {name} as a Dask array or "
            "series of the same partitions"
        )
    if isinstance(other, Blocks) and isinstance(x, Blocks):
        chunks = {0: x.chunks[0]} | ({1: -1} if other.ndim == 2 else {})
        other = other.rechunk(chunks)
    blocks = list(np.ravel(other.to_delayed()))
    count = x.numblocks[0] if isinstance(x, Blocks) else x.npartitions
    if len(blocks) != count:
        raise ValueError(
            f"{name} has {len(blocks)} partitions and X {count}; split both alike (repartition)"
        )
    return blocks


def _blocks_of_arrays(arrays: tuple[DaskArray, ...]) -> list[Delayed]:
    """Return Dask arrays (X, y) or (X, y, weight) as one delayed tuple per block of rows."""
    from dask import delayed

    x, *others = arrays
    if not all(isinstance(each, Blocks) for each in arrays) or x.ndim != 2:
        raise ValueError("partitions holds Dask arrays and others; pass all as Dask arrays (X, y)")
    x = x.rechunk({1: -1})
    if any(each.shape != x.shape[:1] for each in others):
        shapes = ", ".join(str(each.shape) for each in arrays)
        raise ValueError(f"partitions holds arrays of shapes {shapes}; pass (n, d), (n,) and (n,)")
    others = [each.rechunk((x.chunks[0],)).to_delayed().ravel() for each in others]
    rows = zip(x.to_delayed().ravel(), *others, strict=True)
    return [delayed(tuple)(list(each)) for each in rows]
