"""Fields of a context or an action, each a number, one of several words, or a hashed word."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from numbers import Integral, Real
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from ...inputs import shown
from ...protocols import trait

HASHED = 16  # columns for the words of a field whose words were not listed
MOST_COLUMNS = 2**16
LARGEST = 2.0**53  # number of a context: up to there whole numbers are exact

# a number (None), one of the words of a tuple, or a word hashed to that many columns
Kind = None | tuple[str, ...] | int
Field = tuple[str, Kind]
Value = float | str


@runtime_checkable
class Keyed(Protocol):
    """Values by name: a dictionary, or a row of a data frame."""

    def keys(self) -> Iterable[object]:
        """Return the names."""

    def __getitem__(self, name: object) -> object:
        """Return the value of a name."""


class Series(Protocol):
    """A column of a data frame."""

    @property
    def name(self) -> object:
        """The name of the column."""

    @property
    def dtype(self) -> object:
        """What it holds; numpy's and pandas' types have a ``kind``."""

    def __iter__(self) -> Iterator[object]:
        """Iterate over the values."""


@runtime_checkable
class Frame(Protocol):
    """A data frame."""

    @property
    def columns(self) -> Iterable[object]:
        """The names of the columns."""

    def __getitem__(self, name: object) -> Series:
        """Return a column."""


def is_keyed(thing: object) -> TypeGuard[Keyed]:
    """Return whether values are found by their names."""
    return isinstance(thing, Mapping) or (isinstance(thing, Keyed) and trait(thing, "ndim", 1) == 1)


def word(where: str, value: object) -> str:
    """Return a category as a word; 3, 3.0 and "3" are the same.

    >>> word("field", 3.0), word("field", "de"), word("field", True)
    ('3', 'de', 'True')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Real) and _finite(value) and float(value).is_integer():
        return str(int(value) if isinstance(value, Integral) else int(float(value)))
    raise ValueError(f"{where} is {shown(value)}; pass a word or a whole number, a category")


def number(where: str, value: object, most: float = LARGEST) -> float:
    """Return a number that can be computed with, also beside ordinary ones."""
    if isinstance(value, Real | Decimal | np.bool_) and _finite(value):
        if abs(float(value)) <= most:
            return float(value)
        raise ValueError(
            f"{where} is {shown(value)}, beyond {most:.0e}, where other numbers of the field "
            "are lost in rounding; pass it in another unit, or leave this context out"
        )
    raise ValueError(
        f"{where} is {shown(value)}; pass a finite number, or declare the words of the field"
    )


def _finite(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except (OverflowError, ValueError):  # an integer beyond floats, a signalling NaN
        return False


def read(
    where: str, fields: Sequence[Field], row: object, most: float = LARGEST
) -> tuple[Value, ...]:
    """Return the value of each field, checked: numbers up to ``most``, categories as words."""
    values: Sequence[object]
    if is_keyed(row):
        names = row.keys()
        missing = [name for name, _ in fields if name not in names]
        if missing:
            raise ValueError(f"{where} has no {missing[0]!r}; it is {shown(row)}")
        values = [row[name] for name, _ in fields]
    else:
        dimension = np.ndim(row)  # type: ignore[arg-type]
        values = [row] if dimension == 0 else list(row)  # type: ignore[call-overload]
        if dimension > 1 or len(values) != len(fields):
            wanted = ", ".join(name for name, _ in fields)
            raise ValueError(f"{where} is {shown(row)}; pass values by name, or those of {wanted}")
    return tuple(
        _value(f"{where} {name!r}", kind, value, most)
        for (name, kind), value in zip(fields, values, strict=True)
    )


def _value(where: str, kind: Kind, value: object, most: float) -> Value:
    if kind is None:
        return number(where, value, most)
    category = word(where, value)
    if isinstance(kind, tuple) and category not in kind:
        raise ValueError(
            f"{where} is {shown(value)}, none of {shown(list(kind))}; declare a number of columns "
            f"instead, such as {HASHED}, and words are hashed"
        )
    return category


def columns(fields: Iterable[Field]) -> list[str]:
    """Return a name for each column.

    >>> columns([("age", None), ("country", ("de", "fr")), ("page", 2)])
    ['age', 'country=de', 'country=fr', 'page#0', 'page#1']
    """
    names = []
    for name, kind in fields:
        if kind is None:
            names.append(name)
        elif isinstance(kind, tuple):
            names += [f"{name}={level}" for level in kind]
        else:
            names += [f"{name}#{i}" for i in range(kind)]
    return names


def labels(fields: Sequence[Field], values: Sequence[Value]) -> list[str]:
    """Return a name for each column where the values are known: all of a word have that word's.

    >>> labels([("age", None), ("country", ("de", "fr")), ("page", 2)], [31.0, "fr", "home"])
    ['age', 'country=fr', 'country=fr', 'page=home', 'page=home']
    """
    names = []
    for (name, kind), value in zip(fields, values, strict=True):
        width = 1 if kind is None else len(kind) if isinstance(kind, tuple) else kind
        names += [name if kind is None else f"{name}={value}"] * width
    return names


def encode(fields: Sequence[Field], values: Sequence[Value]) -> list[float]:
    """Return the numbers of the columns: numbers themselves, 1 in the column of a word."""
    row: list[float] = []
    for (name, kind), value in zip(fields, values, strict=True):
        if kind is None:
            row.append(value)  # type: ignore[arg-type]
            continue
        start, width = len(row), len(kind) if isinstance(kind, tuple) else kind
        row += [0.0] * width
        at = kind.index(value) if isinstance(kind, tuple) else _bucket(f"{name}={value}", width)
        row[start + at] = 1.0
    return row


def _bucket(text: str, width: int) -> int:
    """Return a column for a word, the same in every process."""
    return (
        int.from_bytes(
            blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
        )
        % width
    )


def declared(context: object) -> tuple[Field, ...]:
    """Return the fields of a declaration, see `noisewise.Arms`, or those of a data frame.

    >>> declared({"age": float, "country": ["de", "fr"], "page": 2})
    (('age', None), ('country', ('de', 'fr')), ('page', 2))
    """
    pairs: Iterable[tuple[object, object]]
    if _is_count(context):
        pairs = [(f"x{i}", None) for i in range(int(context))]
    elif trait(context, "ndim", 0) == 2 and isinstance(context, Frame):
        pairs = [(name, _kind_of(context[name])) for name in context.columns]
    elif isinstance(context, Mapping):
        pairs = context.items()
    elif isinstance(context, list | tuple) and all(isinstance(name, str) for name in context):
        pairs = [(name, None) for name in context]
    elif isinstance(context, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in context):
        pairs = context
    else:
        raise ValueError(
            f"context is {shown(context)}; pass the kind of each field as a dictionary, the names "
            "of numbers as a list, how many numbers there are, or a data frame"
        )
    fields = tuple((str(name), _kind(str(name), kind)) for name, kind in pairs)
    if len({name for name, _ in fields}) < len(fields):
        raise ValueError(f"context is {shown(context)}, with a field twice; keep one of them")
    return fields


def of_example(context: object) -> tuple[Field, ...]:
    """Return the fields of a context that was not declared: numbers, and words to be hashed."""
    if not is_keyed(context):
        return declared(np.atleast_1d(np.asarray(context)).shape[0])
    names = context.keys()
    return tuple((str(n), HASHED if isinstance(context[n], str) else None) for n in names)


def _is_count(thing: object) -> TypeGuard[int]:
    whole = isinstance(thing, int | np.integer) and not isinstance(thing, bool)
    return bool(whole and 0 < thing <= MOST_COLUMNS)  # type: ignore[operator]


def _kind_of(column: Series) -> Kind:
    """Return the kind of a column of a data frame: its words are those it holds."""
    if trait(column.dtype, "kind", "O") in "biuf":
        return None
    return tuple(sorted({word(f"column {column.name!r}", value) for value in column}))


def _kind(name: str, kind: object) -> Kind:
    where = f"context {name!r}"
    if kind is None or kind is float or kind is int:
        return None
    if kind is str:
        return HASHED
    if _is_count(kind):
        return int(kind)
    if isinstance(kind, list | tuple) and kind:
        words = tuple(word(where, level) for level in kind)
        if len(set(words)) == len(words):
            return words
    raise ValueError(
        f"{where} is declared as {shown(kind)}; pass float for a number, a list of different "
        "words, or in how many columns unseen words are hashed"
    )
