"""How kernels are compiled: Python calls entries, kernels call parts.

Parts are not cached: code made around a loaded part rounds differently from code made around a
compiled one, so a result would depend on the disk.
"""

import math
from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import TypeVar

import numpy as np
from numba import config, njit, types
from numba.core.typing.templates import Signature

from .cache import CodeCache

# sums may be reordered, but NaN and infinity keep their meaning: the input checks need them
FAST = ("reassoc", "contract", "arcp", "nsz")
SPEED = {"fastmath": {*FAST}, "no_cfunc_wrapper": True}
PART = {**SPEED, "no_cpython_wrapper": True}
INNER = {**PART, "forceinline": True}
COMPILED = not config.DISABLE_JIT
R = TypeVar("R")


def entry(
    signature: Signature, nogil: bool = True
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Compile a function, or a part, that Python calls, for these types alone, or load its code.

    One that learns a row holds the interpreter's lock: no other thread meets a half-learnt row.
    """

    def made(function: Callable[..., R]) -> Callable[..., R]:
        function = getattr(function, "py_func", function)
        if not COMPILED:
            return strict(signature, function)
        kernel = njit(nogil=nogil, **SPEED)(function)
        kernel._cache = CodeCache(function)
        kernel.compile(signature)
        kernel.disable_compile()
        return kernel

    return made


def strict(signature: Signature, function: Callable[..., R]) -> Callable[..., R]:
    """Return the function as it is, for the arguments that its machine code would take."""

    @wraps(function)
    def called(*arguments: object) -> R:
        pairs = zip(signature.args, arguments, strict=True)
        fit = [fitting(kind, each) for kind, each in pairs]
        with np.errstate(all="ignore"):  # compiled code does not warn of NaN or infinity either
            return function(*fit)

    return called


def fitting(kind: types.Type, given: object) -> object:
    """Return an argument as its type says; raise `TypeError` where the compiled code would."""
    if isinstance(kind, types.Array):
        if (
            type(given) is np.ndarray
            and (given.ndim, given.dtype) == (kind.ndim, np.float64)
            and given.flags.c_contiguous
            and given.flags.writeable
        ):
            return given
    elif isinstance(given, Real):
        return float(given) if isinstance(kind, types.Float) else math.trunc(given)
    raise TypeError(f"no matching definition for {type(given).__name__}; {kind} is taken")
