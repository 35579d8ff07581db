"""Arguments turned into arrays, or into one clear sentence about what is wrong with them."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
from numpy import ndarray
from numpy.ma import MaskedArray
from numpy.typing import ArrayLike

from .protocols import trait
from .support.arrays import LARGEST, Array

FLOAT = np.dtype(np.float64)
LEAST_PROBABILITY = 1e-100  # the inverse of its square is still a number
MOST = 2**62  # counts are taken times a few
WIDEST = 10**6  # number of features


def shown(value: object) -> str:
    """Return how a value reads in a sentence, on one line and cut where it is long."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes out no integer of more than 4300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 100 else text[:97] + "..."


def refuse_class(name: str, value: object) -> None:
    """Raise if a class was passed where an instance belongs."""
    if isinstance(value, type):
        raise ValueError(f"{name} is {shown(value)}; pass an instance, {value.__name__}(...)")


def finite(name: str, value: object, wanted: str = "a finite number") -> float:
    """Return ``value``, a real number, as a finite float."""
    number = math.inf
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer beyond the largest float
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} is {shown(value)}; pass {wanted}")
    return number


def positive(name: str, value: object, *, zero: bool = False) -> float:
    """Return ``value`` as a finite float above zero (or at least zero)."""
    wanted = "a finite number " + (">= 0" if zero else "> 0")
    number = finite(name, value, wanted)
    if number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} is {shown(value)}; pass {wanted}")
    if number > LARGEST or (number < 1 / LARGEST and not zero):
        raise ValueError(
            f"{name} is {shown(value)}, too {'large' if number > 1 else 'small'} to compute with; "
            f"rescale, or pass a number from {0 if zero else 1 / LARGEST:g} to {LARGEST:g}"
        )
    return number


def probability(name: str, value: object, *, zero: bool = False) -> float:
    """Return ``value`` as a float below 1 and above zero (or at least zero)."""
    number = positive(name, value, zero=zero)
    if number >= 1:
        raise ValueError(f"{name} is {value!r}; pass a number strictly between 0 and 1")
    if 0 < number < LEAST_PROBABILITY:
        raise ValueError(
            f"{name} is {value!r}, too small to compute with; pass at least {LEAST_PROBABILITY:g}"
        )
    return number


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} is {shown(value)}; pass True or False")
    return bool(value)


def generator(rng: object) -> None:
    """Raise if ``rng`` can't be drawn from."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng is {shown(rng)}; pass a numpy Generator, such as numpy.random.default_rng(0)"
        )


def coerce_positive(
    spec: object, *names: str, by: Callable[..., float] = positive, **how: bool
) -> None:
    """Set the named fields of a frozen spec to the numbers that they are read as."""
    for name in names:
        object.__setattr__(spec, name, by(name, vars(spec)[name], **how))


def integer(name: str, value: object, *, least: int = 1, most: int = MOST) -> int:
    """Return ``value`` as an int of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {shown(value)}; pass an integer >= {least}")
    if int(value) > most:
        raise ValueError(f"{name} is {shown(value)}; pass an integer <= {most}")
    return int(value)


def dimension(value: object) -> int:
    """Return the number of features as an int of at least 1."""
    return integer("dim", value, most=WIDEST)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is {shown(value)}; pass one of {', '.join(map(repr, allowed))}")
    return str(value)


def numbers(name: str, value: object, *, check: bool = True) -> Array:
    """Return ``value`` as a float array; ``check`` that it holds no NaN or infinity."""
    if type(value) is float or type(value) is np.float64:
        value = np.asarray(value)
    elif type(value) is not ndarray or value.dtype is not FLOAT or not value.flags.aligned:
        value = _floats(name, value)
    array: Array = value
    if check and not np.isfinite(array).all():
        first = np.argwhere(~np.isfinite(np.atleast_1d(array)))[0]
        at = ", ".join(map(str, first))
        raise ValueError(
            f"{name} holds {np.atleast_1d(array)[tuple(first)]} at index ({at}); "
            "drop or fill such rows before passing them"
        )
    return array


def _floats(name: str, value: object) -> Array:
    """Return what is no plain array of floats as one, without masks, words, dates or pairs."""
    if _masked(value):
        raise ValueError(f"{name} is masked; fill it or drop what is masked before passing it")
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":  # numpy would read words, dates, complex numbers
            raise TypeError(f"it holds {given.dtype.name}")
        if given.dtype.kind == "O":
            for each in given.flat:
                if not isinstance(each, Real | Decimal):
                    raise TypeError(f"it holds {shown(each)}")
        with np.errstate(over="ignore"):  # a long double may become infinite, which is refused
            array = given.astype(FLOAT, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} can't be read as numbers ({error}); pass a float array") from None
    return array if array.flags.aligned else array.copy()


def named_columns(name: str, table: object) -> list[object] | None:
    """Return the names of the columns of a data frame or Arrow table, None for what has none."""
    kind = type(table)
    if kind is ndarray:
        return None
    if trait(kind, "collect", None) and trait(kind, "collect_schema", None):
        raise ValueError(
            f"{name} is a {kind.__name__}, a query that has not been run; pass the table that its "
            "collect() returns"
        )
    # the columns of an Arrow table are arrays
    where = "columns" if trait(kind, "column_names", None) is None else "column_names"
    columns: Iterable[object] | None = trait(table, where, None)
    return None if columns is None or callable(columns) else list(columns)


def _masked(value: object, depth: int = 3) -> bool:
    """Return whether a value is masked or holds what is: numpy would drop the mask of rows."""
    if isinstance(value, list | tuple) and depth:
        return any(_masked(each, depth - 1) for each in value)
    return isinstance(value, MaskedArray)


def ready(x: object) -> TypeGuard[Array]:
    """Return whether ``x`` is as compiled code takes it: floats in one piece, to be written."""
    # unpickled arrays have a type of their own that is equal
    return type(x) is ndarray and (x.dtype is FLOAT or x.dtype == FLOAT) and x.flags.carray


def features(x: ArrayLike, dim: int, name: str = "x", *, check: bool = True) -> tuple[Array, bool]:
    """Return ``x`` as ``(n, dim)`` and whether it was a single row.

    ``check`` that its rows are finite, and not too long to compute with.
    """
    array = numbers(name, x, check=False)
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise ValueError(
            f"{name} has shape {array.shape}; pass ({dim},) for one row or (n, {dim}) for a block"
        )
    rows = np.atleast_2d(array)
    if check and len(rows):
        square = np.einsum("ij,ij->i", rows, rows)  # which does not warn of overflow
        if not square.max() <= LARGEST:  # NaN fails it too
            numbers(name, array)
            at = int(square.argmax())
            raise ValueError(
                f"{name} has norm {np.sqrt(square[at]):g} at row {at}, too large to compute with; "
                "rescale the features"
            )
    return rows, array.ndim == 1


def column(name: str, value: ArrayLike, count: int, single: bool, *, spread: bool = False) -> Array:
    """Return one number a row as ``(count,)``; with ``spread`` one number may serve all rows."""
    array = numbers(name, value)
    if array.ndim == 0 and (single or spread):
        return np.full(count, array)
    if array.shape != (count,) or single:
        shape = "a single number" if single else f"shape ({count},), one number a row of x"
        raise ValueError(f"{name} has shape {array.shape}; pass {shape}")
    return array


def as_contiguous(array: Array) -> Array:
    """Return the array as compiled code takes it, copied where strided, unaligned or read-only."""
    return np.require(array, requirements=("C", "A", "W"))


def weights(value: ArrayLike, count: int, single: bool) -> Array:
    """Return the weights as ``(count,)``, none of them negative."""
    array = column("weight", value, count, single, spread=True)
    if (array < 0).any():
        at = int(np.argmax(array < 0))
        raise ValueError(
            f"weight is {array[at]} at row {at}; weights multiply losses, pass numbers >= 0"
        )
    return array


def rows(
    x: ArrayLike, y: ArrayLike, weight: ArrayLike, dim: int
) -> tuple[Array, Array, Array, bool]:
    """Return a checked row or block: x (n, dim), y (n,), weights (n,), and whether it was a row."""
    if (
        type(x) is ndarray
        and x.dtype is FLOAT
        and x.shape == (dim,)
        and x.flags.aligned
        and isinstance(y, float)
        and isinstance(weight, float)
    ):  # one row of floats, the usual case, needs no conversion
        square = float(np.vdot(x, x))  # @ would warn of overflow
        size = max(weight * (square + abs(y)) * (1 + square), square, abs(y))
        if size <= LARGEST and weight >= 0:
            return x[None], np.array([y]), np.array([weight]), True
    x, single = features(x, dim, check=False)
    y = column("y", y, len(x), single)
    w = weights(weight, len(x), single)
    check_magnitude(x, y, w)
    return x, y, w, single


def check_magnitude(x: Array, y: Array, w: Array) -> None:
    """Raise if a row of ``x`` is not finite, or if sums of squares could overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.vecdot(x, x)
        size = np.maximum(w * (square + np.abs(y)) * (1 + square), np.abs(y))
    if len(x) and not size.max() <= LARGEST:
        numbers("x", x)
        at = int(np.argmax(size))
        raise ValueError(
            f"x has norm {np.sqrt(square[at]):g}, y is {y[at]:g} and weight {w[at]:g} at row {at}, "
            "too large to compute with; rescale the features, the labels or the weights"
        )


def with_slack(bound: float) -> float:
    """Return the norm up to which rows pass: the bound, and what scaling in float32 leaves over."""
    return bound * (1 + 1e-6)


def short_rows(x: Array, bound: float) -> None:
    """Raise if a row of checked features is longer than ``bound``."""
    square = np.vecdot(x, x)
    if len(x) and square[at := int(square.argmax())] > with_slack(bound) ** 2:
        raise ValueError(
            f"x has norm {np.sqrt(square[at]):.8g} at row {at}, above feature_bound {bound:.8g}; "
            "scale the features or pass a larger feature_bound"
        )


def short_steps(steps: Array, w: Array) -> None:
    """Raise if a gradient step goes twice as far as its label: then estimates would oscillate.

    ``steps`` are shares of the residual that a row of weight 1 takes away.
    """
    if len(w) and (w * steps)[at := int((w * steps).argmax())] >= 2:
        raise ValueError(
            f"weight is {w[at]:g} at row {at}, a step of {w[at] * steps[at]:.3g} times the "
            "residual, which oscillates from 2 on; pass weights of at most 1 (divide all by the "
            "largest), or a smaller rate"
        )
