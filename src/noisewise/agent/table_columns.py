"""Columns of a table as arrays: what is missing becomes NaN, what can't be used infinite."""

from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence, Sized
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.ma import MaskedArray

from ..inputs import named_columns, shown
from ..protocols import Array, trait

Encoding = Callable[[object], Sequence[float]]
Column = Sequence[object] | np.ndarray


class Series(Protocol):
    """A column of pandas or polars."""

    def to_numpy(self) -> np.ndarray:
        """Return its values as an array."""

    def to_list(self) -> list[object]:
        """Return its values as a list."""


@runtime_checkable
class ArrowColumn(Protocol):
    """A column of Arrow."""

    def to_pylist(self) -> list[object]:
        """Return its values as a list."""


class Table(Protocol):
    """A data frame or an Arrow table."""

    def __getitem__(self, name: object) -> Series:
        """Return a column."""


def columns_of(name: str, table: object) -> dict[str, Any]:
    """Return the columns of a data frame, an Arrow table or a dictionary, by name.

    >>> columns_of("table", {"age": [31, None]})
    {'age': [31, None]}
    """
    if isinstance(table, Mapping):
        for each, column in table.items():
            listed = isinstance(column, Sized) and trait(column, "ndim", 1) > 0
            if isinstance(column, str | bytes) or not listed:
                raise ValueError(f"column {each!r} is {shown(column)}; pass a list or an array")
        return {str(each): column for each, column in table.items()}
    names = named_columns(name, table)
    if names is None:
        raise ValueError(
            f"{name} is {shown(table)}; pass a data frame, an Arrow table or a dictionary of "
            "columns"
        )
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"{name} has the column {twice!r} more than once; keep one of them")
    frame = cast(Table, table)
    return {str(each): _values(frame[each]) for each in names}


def _values(column: Series) -> Column:
    """Return the values of a column of pandas, polars or Arrow: numbers as an array, or a list."""
    coded = "dictionary" in str(trait(column, "type", ""))  # whose nulls Arrow would fill
    if not coded:
        values = column.to_numpy()
        if values.ndim == 1 and values.dtype.kind != "O":
            return values
    return column.to_pylist() if isinstance(column, ArrowColumn) else column.to_list()


def numbers_in(name: str, column: Column, most: float) -> Array:
    """Return numbers, NaN where one is missing, infinite where it is none or beyond ``most``.

    >>> numbers_in("age", [31, None, "old", 2e9], 1e6)
    array([31., nan, inf, inf])
    """
    if isinstance(column, MaskedArray):
        raise ValueError(f"column {name!r} is masked; fill it or drop what is masked")
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":
        values = np.array([number_of(each) for each in _listed(column)], dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"column {name!r} has shape {values.shape}; pass one number per row")
    values = values.astype(np.float64, copy=False)
    return np.where(np.abs(values) > most, np.inf, values)


def number_of(value: object) -> float:
    """Return a value as a number, NaN where it is missing, infinite where it is none."""
    if is_missing(value):
        return np.nan
    if not isinstance(value, Real | Decimal | np.bool_):
        return np.inf
    try:
        return float(value)
    except (OverflowError, ValueError):  # an integer beyond floats, a signalling NaN
        return np.inf


def is_missing(value: object) -> bool:
    """Return whether a value of a table is not there: None, NaN or a missing value of pandas."""
    if value is None or isinstance(value, str):
        return value is None
    different: object = value != value  # True of NaN, neither of pandas' NA
    return different is not False and (different is True or type(value).__name__ == "NAType")


def encoded(name: str, column: Column, width: int, encode: Encoding) -> Array:
    """Return ``width`` numbers for each value, by a function asked once for each different value.

    They are NaN where a value is missing, and infinite where the function refuses it.

    >>> encoded("word", ["x", None, "xyz", "x"], 1, lambda word: [len(word)])[:, 0]
    array([ 1., nan,  3.,  1.])
    """
    places: dict[tuple[type, object], int] = {}
    try:
        at = [places.setdefault((type(v), v), len(places)) for v in _listed(column)]
    except TypeError:
        raise ValueError(f"column {name!r} holds values that are no words or numbers") from None
    table = np.empty((len(places), width))
    for row, (_, value) in zip(table, places, strict=True):
        if is_missing(value):
            row[:] = np.nan
            continue
        try:
            row[:] = encode(value)
        except ValueError:
            row[:] = np.inf
    return table[np.array(at, dtype=np.int64)]


def read_back(column: Column | None) -> Column | None:
    """Return dictionaries that a CSV file holds as text, and anything else as it is."""
    if column is None:
        return None
    words = [each for each in column if isinstance(each, str)]
    if len(words) < len(column):
        return column
    try:
        return [literal_eval(each) for each in words]
    except (ValueError, SyntaxError):
        raise ValueError(
            "probabilities holds text that is no dictionary of action to probability; leave the "
            "column out, or write the log as Parquet"
        ) from None


def _listed(column: Column) -> list[object]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)
