"""What a state may hold, checked when it is made: a file may say anything."""

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import DTypeLike

from ..inputs import finite, flag, integer
from ..support.arrays import Array

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COUNT, FINITE, POSITIVE, NONNEGATIVE, FLAG = "count", "finite", "positive", "nonnegative", "flag"

# beyond, products of two or three numbers of a state would overflow
LARGEST = 1e110

Shape = tuple[int, ...]


def check_fields(state: object, **wanted: str | Shape | type) -> None:
    """Raise unless each named field is of its kind.

    A kind is one of the words above, the shape of an array of finite floats, or a class.
    """
    for name, kind in wanted.items():
        where, value = f"{type(state).__name__}.{name}", vars(state)[name]
        if isinstance(kind, tuple):
            check_array(where, value, kind)
        elif isinstance(kind, type):
            check_type(where, value, kind)
        elif kind == COUNT:
            integer(where, value, least=0)
        elif kind == FLAG:
            flag(where, value)
        else:
            number = finite(where, value)
            if (kind != FINITE and number < 0) or (kind == POSITIVE and number == 0):
                raise ValueError(f"{where} is {number!r}; a {kind} number belongs there")


def field_values(state: object) -> dict[str, object]:
    """Return the fields alone of a dataclass, without what was computed from them."""
    return {each.name: vars(state)[each.name] for each in fields(cast("DataclassInstance", state))}


def restore_writable(state: object, held: dict[str, object]) -> None:
    """Set the fields of an unpickled state, with copies of arrays that lie in a mapped file."""
    for name, value in held.items():
        vars(state)[name] = [*map(_own, value)] if isinstance(value, list) else _own(value)


def _own(value: object) -> object:
    mapped = isinstance(value, np.ndarray) and (
        type(value) is not np.ndarray or not value.flags.writeable
    )
    return np.array(value) if mapped else value


def check_type(name: str, value: object, kind: type) -> None:
    """Raise unless ``value`` is of a class."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is a {type(value).__name__}; a {kind.__name__} belongs there")


def check_array(name: str, value: object, shape: Shape, dtype: DTypeLike = np.float64) -> None:
    """Raise unless ``value`` is an array of that shape and type, in one piece, of finite numbers.

    A matrix may lie by columns, as LAPACK returns it; `check_rows` is for what kernels are given.
    """
    check_finite(name, check_layout(name, value, shape, dtype))


def check_finite(name: str, value: Array) -> None:
    """Raise if an array holds NaN or what is too large to compute with."""
    if not (np.abs(value) <= LARGEST).all():  # NaN fails it too
        raise ValueError(f"{name} holds a number that is not finite, or above {LARGEST:g}")


def check_layout(name: str, value: object, shape: Shape, dtype: DTypeLike = np.float64) -> Array:
    """Return an array if it is of that shape and type, in one piece, to be written."""
    if type(value) is not np.ndarray or value.dtype != np.dtype(dtype):
        found = value.dtype.str if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"{name} is of type {found}; an array of {np.dtype(dtype)} belongs there")
    if value.shape != shape:
        raise ValueError(f"{name} has shape {value.shape}; {shape} belongs there")
    if not (value.flags.forc and value.flags.behaved):
        raise ValueError(f"{name} lies in memory in pieces, unaligned or read-only; pass a copy")
    return value


def check_rows(name: str, *values: Array) -> None:
    """Raise unless arrays lie in memory row by row, as kernels read them."""
    if not all(value.flags.c_contiguous for value in values):
        raise ValueError(f"{name} holds a matrix that lies in memory by columns; pass a copy")


def check_list(name: str, value: Iterable[object], kind: type) -> None:
    """Raise unless ``value`` is a list of things of a class."""
    check_type(name, value, list)
    for each in value:
        check_type(name, each, kind)


def check_semidefinite(name: str, matrix: Array) -> None:
    """Raise unless a matrix is symmetric, and no diagonal or 2 x 2 minor rules out that it is >= 0.

    Its other eigenvalues are not computed: a state is made often enough.
    """
    diagonal = np.diag(matrix)
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    most = np.outer(roots, roots)  # the product of squares might underflow
    slack = 1e-6 * most.max(initial=0.0)
    if diagonal.min(initial=0.0) < -slack or (np.abs(matrix - matrix.T) > slack).any():
        raise ValueError(f"{name} is not symmetric with a diagonal >= 0")
    if (np.abs(matrix) > most + slack).any():
        raise ValueError(f"{name} is not positive semi-definite")


def check_generator(text: object) -> None:
    """Raise unless the text is the state of numpy's default generator, as JSON."""
    try:
        held = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        held = None
    most = {"has_uint32": 2, "uinteger": 2**32, "state": 2**128, "inc": 2**128}
    inside = held.pop("state", None) if isinstance(held, dict) else None
    if isinstance(held, dict) and isinstance(inside, dict):
        name, numbers = held.pop("bit_generator", None), {**held, **inside}
        known = name == "PCG64" and len(held) == len(inside) == 2 and numbers.keys() == most.keys()
        if known and all(type(n) is int and 0 <= n < most[key] for key, n in numbers.items()):
            return
    raise ValueError("generator is not the state of a numpy Generator of type PCG64")
