"""CSV and Parquet files read as data frames, chunk by chunk."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

from ..partitions.partition_rows import parquet, require_once
from ..partitions.sources import SUFFIXES, files_in
from ..storage.files import require_regular

CHUNK, CELLS = 50_000, 4_000_000  # rows, and cells, of a chunk
SEPARATORS = ",;\t"
WHOLE = r"\s*[-+]?[0-9]+\s*"
LONGEST = 1_000_000  # characters of a line that are looked at


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what can go wrong while a file is read into one sentence."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty; pass a file with a line of column names") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 (byte {error.start}); save it as CSV in UTF-8, or as "
            "Parquet"
        ) from None
    except (pd.errors.ParserError, csv.Error, gzip.BadGzipFile, EOFError) as error:
        words = " ".join(str(error).split())
        raise ValueError(f"{path} can't be read as CSV: {words}") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read ({error.strerror or error})") from None
    except ImportError as error:
        raise ValueError(f"{path} can't be read: {' '.join(str(error).split())}") from None


def names_of(path: Path, folder: bool = False) -> list[str]:
    """Return the names of the columns; of a folder, if that is allowed, those of all its files."""
    require_regular(path)
    if path.is_dir() and not folder:
        raise ValueError(f"{path} is a folder; pass a CSV or Parquet file")
    if path.is_dir():
        first, *others = files_in(path)
        names = names_of(first)
        for other in others:
            for name in {*names} ^ {*names_of(other)}:
                word = "lacks" if name in names else "also has"
                raise ValueError(
                    f"{other} has other columns than {first.name}: it {word} {name!r}; a folder "
                    "holds files of the same columns"
                )
        return names
    with readable(path):
        if _is_parquet(path):
            names = list(parquet(str(path), path).schema_arrow.names)
            require_once(str(path), names)
            return names
        separator = _separator(path)
        head = pd.read_csv(
            path, sep=separator, nrows=1, header=None, dtype="str", keep_default_na=False
        )
        require_once(str(path), list(filter(None, head.iloc[0])))  # pandas would number them
        return list(map(str, pd.read_csv(path, sep=separator, nrows=0).columns))


def _separator(path: Path) -> str:
    """Return the separator that the first line has most of; refuse longer rows below it.

    pandas would take their first fields for row numbers, and the rest for other columns.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    if path.suffix in (".bz2", ".xz", ".zip", ".zst"):
        return ","
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        first = file.readline(LONGEST)
        separator = max(SEPARATORS, key=first.count)
        lines = csv.reader([first, file.readline(LONGEST)], delimiter=separator)
        head, *rest = [len(line) for line in lines] or [0]
    if rest and rest[0] > head:
        raise ValueError(
            f"{path} has {head} column names but {rest[0]} values in its first row; correct it"
        )
    return separator


def chunks(
    path: Path, columns: Sequence[str], words: Sequence[str] = (), named: Sequence[str] = ()
) -> Iterator[pd.DataFrame]:
    """Yield the columns as data frames of some thousand rows; those in ``words`` as text.

    In columns ``named`` integers beyond 64 bits are names, and stay as they are.
    The index is the number of a row in its file; of a folder's, ``attrs`` has the file's name.
    """
    if path.is_dir():
        for file in files_in(path):
            empty = True
            for frame in chunks(file, columns, words, named):
                frame.attrs["file"] = file.name
                empty = empty and not len(frame)
                yield frame
            if empty:
                raise ValueError(f"{file} holds no row; remove it from the folder")
        return
    most = min(CHUNK, 1 + CELLS // max(len(names_of(path)), 1))
    with readable(path):
        if not _is_parquet(path):
            with pd.read_csv(
                path,
                sep=_separator(path),
                dtype=dict.fromkeys(words, "str"),
                chunksize=most,
                low_memory=False,
            ) as reader:
                for frame in reader:  # of all columns: given usecols, pandas cuts long lines
                    yield _with_large_numbers(frame[list(columns)], [*words, *named])
            return
        import pyarrow as pa

        start = 0
        for batch in parquet(str(path), path).iter_batches(batch_size=most, columns=list(columns)):
            frame = batch.to_pandas(ignore_metadata=True)
            for field in batch.schema:
                if pa.types.is_decimal(field.type):
                    frame[field.name] = frame[field.name].astype("float64")
            frame.index = range(start, start + len(frame))
            start += len(frame)
            for name in words:
                given = frame[name].astype("object")
                frame[name] = given.where(given.isna(), given.astype("str"))
            yield frame


def _with_large_numbers(frame: pd.DataFrame, words: Sequence[str]) -> pd.DataFrame:
    """Return columns of integers beyond 64 bits, which pandas leaves as text, as floats."""
    large = {}
    for name in frame.columns.difference(list(words)):
        if is_object_dtype(frame[name]) or is_string_dtype(frame[name]):
            there = frame[name].dropna().astype("str")
            if len(there) and there.str.fullmatch(WHOLE).all():
                large[name] = there.map(float).reindex(frame.index)  # beyond 1e308 it is infinite
    return frame.assign(**large) if large else frame
