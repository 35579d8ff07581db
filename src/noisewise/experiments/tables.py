"""The table of a study, written and summarised chunk by chunk."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..protocols import Array
from . import moments
from .digest import Digest
from .parts import Held


def write(
    held: Held,
    path: Path,
    clocked: Iterable[str] = (),
    condense: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> tuple[str, pd.DataFrame]:
    """Write all rows held as one Parquet file; return its digest, and what a study summarises.

    That is what ``condense`` makes of chunks, joined, or without it the table itself. ``clocked``
    columns count for nothing in the digest, and the column of cells is not written.
    """
    found, lines = Digest(), []
    fields = [each for each in held.schema if each.name != "_cell"]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for chunk in held.chunks():
            found.add(chunk.drop(columns=list(clocked)))
            rows = chunk.drop(columns="_cell")
            writer.write_table(pa.Table.from_pandas(rows, writer.schema, preserve_index=False))
            lines.append(rows if condense is None else condense(rows))
    digest = found.finish(lambda name: _column(path, name))
    if condense is None:
        return digest, pd.concat(lines, ignore_index=True)
    return digest, moments.joined(lines)


def _column(path: Path, name: str) -> Iterator[Array]:
    """Yield the numbers of one column in pieces."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[name]):
            yield np.asarray(batch.column(0).to_numpy(zero_copy_only=False), dtype=np.float64)
