"""How kernels are compiled: Python calls entries, kernels call parts.

An entry is compiled, or loaded, when it is first called. Parts are not cached: code made around a
loaded part rounds differently from code made around a compiled one, so a result would depend on the
disk.

Three files use what numba does not document, and only in the versions they are tested with
(`TESTED`): `linked_parts.py`, `borrowed.py` and `vector_sweep.py`. Without them everything works as
documented, but slower.
"""

import gc
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper, wraps
from numbers import Real
from threading import RLock
from typing import Generic, Protocol, TypeVar

import numba
import numpy as np
from numba import config, njit, types

from ...support.forking import Inside
from ...support.supported import NUMBA_BEYOND, NUMBA_FIRST
from . import cache
from .compile_note import noted

COMPILED = not config.DISABLE_JIT
TESTED = COMPILED and NUMBA_FIRST <= numba.version_info[:2] < NUMBA_BEYOND

# sums may be reordered, but NaN and infinity keep their meaning: the input checks need them
FAST = ("reassoc", "contract", "arcp", "nsz")
SPEED = {"fastmath": {*FAST}, "no_cfunc_wrapper": True, "error_model": "numpy"}
PART = {**SPEED, "no_cpython_wrapper": True}
RARE = {**PART}  # parts that run seldom, of which short code is made
if TESTED:
    from .linked_parts import PartCompiler, RareCompiler, load_lightly

    PART["pipeline_class"] = PartCompiler
    # llvmlite of older versions gives the attribute for short code to what a function returns
    RARE["pipeline_class"] = RareCompiler if numba.version_info[:2] >= (0, 68) else PartCompiler
    cache.lightly = load_lightly
INNER = {**PART, "forceinline": True}
ORDERED = {**PART, "fastmath": {"contract"}}  # parts in which the order of operations matters
R = TypeVar("R", covariant=True)
entries: list["Entry[object]"] = []  # of the modules imported so far
_lock = RLock()


if TESTED:
    from .borrowed import Borrowed as Borrowed
    from .borrowed import borrow as borrow
else:

    def Borrowed(kind: types.Type) -> types.Type:  # type: ignore[no-redef]
        """Return the type of an argument that is taken in the documented way."""
        return kind

    @njit(**INNER)
    def borrow(argument):  # type: ignore[no-untyped-def]
        """Return the argument."""
        return argument


class Signature(Protocol):
    """What numba makes of `float64(int64)`."""

    args: tuple[types.Type, ...]


def _forked() -> None:
    """Nobody compiles in a child yet."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def without_collector() -> Iterator[None]:
    """Let garbage lie: to look for it takes an eighth of the time of compiling."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Entry(Generic[R]):
    """A kernel as Python sees it until its first call; then the module holds the compiled one."""

    def __init__(self, function: Callable[..., R], signature: Signature, nogil: bool) -> None:
        update_wrapper(self, function)
        self.function, self.signature, self.nogil = function, signature, nogil
        self.compiled: Callable[..., R] | None = None
        entries.append(self)

    def __call__(self, *arguments: object) -> R:
        """Run the kernel."""
        return (self.compiled or self.compile())(*arguments)

    def compile(self) -> Callable[..., R]:
        """Return the kernel, compiled or loaded, and put it in its module where the entry was."""
        with _lock, Inside(self):
            if self.compiled is None:
                with noted(), without_collector():
                    self.kernel = kernel = cache.compile_or_load(
                        self.function, self.signature, {"nogil": self.nogil, **SPEED}
                    )
                direct = kernel.compile(self.signature)
                kernel.disable_compile()
                documented = types.Array, types.Number
                usual = all(isinstance(each, documented) for each in self.signature.args)
                self.compiled = kernel if usual else direct  # the former looks types up
                home, name = sys.modules.get(self.function.__module__), self.function.__name__
                if getattr(home, name, None) is self:
                    setattr(home, name, self.compiled)
        return self.compiled

    def found(self) -> bool:
        """Compile or load the kernel; return whether it was found on disk."""
        self.compile()
        return bool(self.kernel.stats.cache_hits)


def entry(
    signature: Signature, nogil: bool = True
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Make a function, or a part, one that Python calls, for these types alone.

    One that learns a row holds the interpreter's lock: no other thread meets a half-learnt row.
    """

    def made(function: Callable[..., R]) -> Callable[..., R]:
        function = getattr(function, "py_func", function)
        return Entry(function, signature, nogil) if COMPILED else strict(signature, function)

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
            and (given.ndim, given.dtype) == (kind.ndim, str(kind.dtype))
            and given.flags.c_contiguous
            and given.flags.writeable
        ):
            return given
    elif isinstance(given, Real):
        return float(given) if isinstance(kind, types.Float) else math.trunc(given)
    raise TypeError(f"no matching definition for {type(given).__name__}; {kind} is taken")
