"""Finished batches of a study: Parquet files whose names say what they hold, with a checksum.

The checksum covers folder, name and content: a part that was damaged, cut short, renamed or taken
from another run is noticed. Parts are only a cache, so such a one is removed and its trials are run
again. Parts are read one after the other: at no time are all rows of a study in memory.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..storage import files
from ..support import provenance
from . import Record

NAME = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{16})\.parquet")
CHUNK = 1024  # trials of a cell read at once, whatever batches they were run in


class Span(NamedTuple):
    """Consecutive trials of a cell, from ``first`` to before ``last``, and the part with them."""

    cell: int
    first: int
    last: int
    part: Path


@dataclass
class Held:
    """What the parts of a folder hold of the first ``trials``: every one of every cell once."""

    trials: int
    spans: list[Span] = field(default_factory=list)
    marks: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    machines: list[dict[str, str]] = field(default_factory=list)
    heads: dict[tuple[object, ...], pd.DataFrame] = field(default_factory=dict)
    schemas: list[pa.Schema] = field(default_factory=list)

    def missing(self, cell: int) -> list[int]:
        """Return the trials of a cell that no part holds."""
        done = self.marks.get(cell, np.zeros(self.trials, dtype=bool))
        return np.flatnonzero(~done).tolist()

    @property
    def types(self) -> pd.Series:
        """The columns of the whole table with their types; what some cells lack is missing."""
        return pd.concat(list(self.heads.values())).dtypes

    @property
    def schema(self) -> pa.Schema:
        """The same as Parquet has it."""
        both = pa.unify_schemas(self.schemas, promote_options="permissive")
        floats = [name for name, kind in self.types.items() if pd.api.types.is_float_dtype(kind)]
        fields = {each.name: each for each in both}
        fields |= {name: pa.field(name, pa.float64()) for name in floats}
        return pa.schema([fields[name] for name in self.types.index])

    def chunks(self) -> Iterator[pd.DataFrame]:
        """Yield the rows by cell (the column ``_cell``) and trial, at most `CHUNK` trials at once.

        All have the columns and types of the whole table. How trials were run in batches makes no
        difference to where chunks begin.
        """
        types = self.types
        chunk: list[pd.DataFrame] = []
        at: tuple[int, int] | None = None
        for span in sorted(self.spans):
            if chunk and at != (span.cell, span.first // CHUNK):
                yield pd.concat(chunk, ignore_index=True)
                chunk = []
            at = span.cell, span.first // CHUNK
            frame = _frame(_content(span.part))
            del frame.attrs["machine"]
            frame = frame[frame["trial"].between(span.first, span.last - 1)]
            chunk.append(frame.reindex(columns=types.index).astype(types))
        yield pd.concat(chunk, ignore_index=True)

    @property
    def table(self) -> pd.DataFrame:
        """All rows at once."""
        return pd.concat(list(self.chunks()), ignore_index=True)


def runs(trials: list[int], size: int) -> Iterator[list[int]]:
    """Split sorted trials into consecutive runs of at most ``size``."""
    run: list[int] = []
    for trial in trials:
        if run and (trial != run[-1] + 1 or len(run) == size):
            yield run
            run = []
        run.append(trial)
    if run:
        yield run


def content_of(rows: list[Record]) -> bytes:
    """Return rows as the content of a part, with the machine that made them."""
    frame = pd.DataFrame(rows)
    frame.attrs["machine"] = provenance.machine()
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def keep(folder: Path, cell: int, trials: list[int], content: bytes) -> None:
    """Write the content of a part under a name that says what it holds."""
    span = f"{cell}-{trials[0]}-{trials[-1] + 1}"
    path = folder / f"{span}-{_checksum(folder, span, content)}.parquet"
    files.replace(path, lambda part: part.write_bytes(content))


def read(folder: Path, trials: int, tell: Callable[[str], object]) -> Held:
    """Return what is held of the first ``trials``; ``tell`` hears of parts that are not used.

    Where two parts hold the same trial, from two machines say, that of the lower name counts.
    """
    held = Held(trials)
    for path, cell, first, last in _named(folder, tell):
        if first >= trials:
            continue
        try:
            content = _content(path)
            frame = _frame(content)
            if {*frame["_cell"]} != {cell} or {*frame["trial"]} != {*range(first, last)}:
                raise Damaged("it holds other trials than its name says")
        except FileNotFoundError:  # found damaged by another run
            continue
        except Damaged as fault:
            tell(f"{path} is damaged ({fault}); removed, its trials are run again")
            path.unlink(missing_ok=True)
            continue
        machine = frame.attrs.pop("machine")
        if machine not in held.machines:
            held.machines.append(machine)
        marks = held.marks.setdefault(cell, np.zeros(trials, dtype=bool))
        new = (first + np.flatnonzero(~marks[first:last])).tolist()
        if not new:
            continue
        marks[new] = True
        held.heads.setdefault((*frame.columns, *frame.dtypes), frame.iloc[:1])
        schema = pq.read_schema(io.BytesIO(content)).remove_metadata()
        if schema not in held.schemas:
            held.schemas.append(schema)
        for run in runs(new, len(new)):
            for at in range(run[0] // CHUNK * CHUNK, run[-1] + 1, CHUNK):
                first, last = max(run[0], at), min(run[-1] + 1, at + CHUNK)
                held.spans.append(Span(cell, first, last, path))
    return held


class Damaged(Exception):
    """A part does not hold what its name says."""


def _content(path: Path) -> bytes:
    """Return the content of a part, as it was written."""
    content = path.read_bytes()
    span, _, checksum = path.stem.rpartition("-")
    if checksum != _checksum(path.parent, span, content):
        raise Damaged("its checksum is wrong")
    return content


def _frame(content: bytes) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(content))


def _named(folder: Path, tell: Callable[[str], object]) -> Iterator[tuple[Path, int, int, int]]:
    for path in sorted(folder.glob("*.parquet")):
        name = NAME.fullmatch(path.name)
        if name is None or not path.is_file():
            tell(f"{path} is no file named as parts are; left alone, not used")
            continue
        yield path, int(name[1]), int(name[2]), int(name[3])


def _checksum(folder: Path, span: str, content: bytes) -> str:
    return hashlib.sha256(f"{folder.name}/{span} ".encode() + content).hexdigest()[:16]
