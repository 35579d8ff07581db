"""A partition read as blocks of checked rows, where the work is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import named_columns, numbers, with_slack
from ..kernels.glm.layout import LARGEST
from ..model.glm import GLM
from ..protocols import Array
from ..storage.files import require_regular
from ..support.supported import install

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

BLOCK = 8192  # rows summed at once: with twenty features they stay in a processor's cache
PARQUET = 32_768  # rows read at once
Rows = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are label, weight and features."""

    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A partition as it is sent to a worker: what it is called, and how it is read.

    ``given`` is rows (x, y) or (x, y, weight), a data frame, a function that returns one of these,
    or the path of a Parquet file.
    """

    name: str
    given: object


def blocks(source: Source, columns: Columns, glm: GLM, *, checked: bool = True) -> Iterator[Rows]:
    """Yield the rows of a partition, checked or not, `BLOCK` at a time; at least one block.

    What is yielded is overwritten later: copy what is to be kept.
    """
    first, name = 0, source.name
    for x, y, w in _tables(source, columns):
        for at in range(0, len(x), BLOCK):
            here = slice(at, at + BLOCK)
            if checked:
                _check(name, first + at, x[here], y[here], w[here], columns, glm)
            yield x[here], y[here], w[here]
        first += len(x)
    if not first:
        raise ValueError(f"{name} holds no row; leave it out")


def feature_names(source: Source, columns: Columns) -> tuple[str, ...]:
    """Return the names of the features in the order of a table's columns; none for arrays."""
    given = _made(source)
    if isinstance(given, str):
        names = parquet(source.name, given).schema_arrow.names
    elif (found := named_columns(source.name, given)) is not None:
        names = list(map(str, found))
    else:
        return ()
    _require_target(source.name, columns, names)
    return tuple(each for each in names if each not in (columns.target, columns.weight))


def _made(source: Source) -> object:
    given = source.given() if callable(source.given) else source.given
    return str(given) if isinstance(given, Path) else given


def _tables(source: Source, columns: Columns) -> Iterator[Rows]:
    given, name = _made(source), source.name
    if isinstance(given, str):
        file = parquet(name, given)
        _require(name, columns, file.schema_arrow.names)
        wanted = [*columns.features, columns.target, *([columns.weight] if columns.weight else [])]
        room = np.empty((PARQUET, len(columns.features)))  # once: see `sums.square`
        for batch in file.iter_batches(batch_size=PARQUET, columns=wanted):
            yield _rows(name, columns, _arrow(batch), room)
    elif (found := named_columns(name, given)) is not None:
        names = list(map(str, found))  # those of a data frame may be numbers
        _require(name, columns, names)
        called, frame = dict(zip(names, found, strict=True)), cast("DataFrame", given)
        yield _rows(name, columns, lambda each: frame[called[each]].to_numpy())
    else:
        yield _arrays(name, given)


def parquet(name: str, path: str | Path) -> ParquetFile:
    """Open a Parquet file, called ``name`` in errors."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name} can't be read without {error.name}; install it with: {install('studies')}"
        ) from None
    require_regular(Path(path))
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name} is no Parquet file ({' '.join(str(error).split())})") from None
    except OSError as error:
        raise ValueError(f"{name} can't be read ({error.strerror or error})") from None


def require_once(name: str, columns: Iterable[str]) -> None:
    """Raise if a name stands over two columns of a table."""
    for each, count in Counter(columns).items():
        if count > 1:
            raise ValueError(f"{name} has {count} columns named {each!r}; rename or remove one")


def _require_target(name: str, columns: Columns, names: list[str]) -> None:
    if columns.target is None:
        raise ValueError(f"{name} is a table; say which column holds the labels: target=")
    for each in (columns.target, columns.weight):
        if each is not None and each not in names:
            raise ValueError(f"{name} has no column {each!r}; it has {', '.join(names[:10])}")
    require_once(name, names)


def _require(name: str, columns: Columns, names: list[str]) -> None:
    """Raise unless a table has the columns of the first one."""
    _require_target(name, columns, names)
    known = {*columns.features, columns.target, columns.weight}
    for words, odd in (
        ("lacks", [each for each in columns.features if each not in names]),
        ("also has", [each for each in names if each not in known]),
    ):
        if odd:
            raise ValueError(
                f"{name} has other columns than the first partition: it {words} {odd[0]!r}; pass "
                "partitions of the same columns"
            )


def _arrow(batch: RecordBatch) -> Callable[[str], ArrayLike]:
    return lambda each: batch.column(each).to_numpy(zero_copy_only=False)


def _rows(
    name: str, columns: Columns, column: Callable[[str], ArrayLike], room: Array | None = None
) -> Rows:
    """Return the columns of a table as rows, in the room given."""

    def floats(each: str) -> Array:
        try:
            return numbers(each, column(each), check=False)
        except ValueError:
            raise ValueError(f"{name}: column {each!r} holds no numbers; encode it") from None

    y = floats(str(columns.target))
    x = np.empty((len(y), len(columns.features))) if room is None else room[: len(y)]
    for j, each in enumerate(columns.features):
        x[:, j] = floats(each)
    return x, y, np.ones(len(y)) if columns.weight is None else floats(columns.weight)


def _arrays(name: str, given: object) -> Rows:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise ValueError(
            f"{name} is a {type(given).__name__}; pass (X, y) or (X, y, weight), a function that "
            "returns these, or the path of a Parquet file"
        )
    x, y, w = map(_floats, (name,) * 3, (*given, 1.0)[:3])
    if x.ndim != 2 or y.shape != (len(x),) or w.shape not in ((), y.shape):
        raise ValueError(
            f"{name} has X of shape {x.shape}, y of shape {y.shape} and weights of shape "
            f"{w.shape}; pass (n, d), (n,) and (n,)"
        )
    return x, y, np.array(np.broadcast_to(w, y.shape))


def _floats(name: str, value: ArrayLike) -> Array:
    try:
        return numbers(name, value, check=False)
    except ValueError:
        raise ValueError(f"{name} holds what is no number; encode it") from None


def _check(name: str, first: int, x: Array, y: Array, w: Array, columns: Columns, glm: GLM) -> None:
    """Raise if rows, of which the first has that number, can't be learnt; name the row."""
    with np.errstate(over="ignore", invalid="ignore"):
        length2 = np.vecdot(x, x)
        size = w * (length2 + np.abs(y)) * (1 + length2) + np.abs(y)
        good = (size <= LARGEST) & (w >= 0) & (length2 <= with_slack(glm.feature_bound) ** 2)
    if good.all():
        return
    i = int(np.argmin(good))
    where = f"at row {first + i} (counted from 0)"
    labels, weights = columns.target or "y", columns.weight or "weight"
    named = [(columns.features[j] if columns.features else f"X[:, {j}]") for j in range(x.shape[1])]
    for each, value in zip([*named, labels, weights], [*x[i], y[i], w[i]], strict=True):
        if not np.isfinite(value):
            raise ValueError(f"{name}: {each} is {value} {where}; drop or fill such rows")
    if w[i] < 0:
        raise ValueError(f"{name}: {weights} is {w[i]:g} {where}; pass weights of at least 0")
    if size[i] <= LARGEST:
        raise ValueError(
            f"{name}: the features have norm {np.sqrt(length2[i]):.8g} {where}, above "
            f"feature_bound {glm.feature_bound:.8g}; scale them or pass a larger feature_bound"
        )
    raise ValueError(f"{name}: numbers {where} are too large to compute with; rescale them")
