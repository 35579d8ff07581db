"""How kernels are compiled: Python calls entries, kernels call parts.

An entry is compiled, or loaded, when it is first called. Parts are not cached: code made around a
loaded part rounds differently from code made around a compiled one, so a result would depend on the
disk.
"""

import math
import os
import sys
from collections.abc import Callable
from functools import update_wrapper, wraps
from numbers import Real
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np
from numba import config, njit, types
from numba.core.typing.templates import Signature
from numba.np.numpy_support import as_dtype

from ..forking import Inside
from .cache import CodeCache
from .compile_note import noted
from .linked_parts import PartCompiler

# sums may be reordered, but NaN and infinity keep their meaning: the input checks need them
FAST = ("reassoc", "contract", "arcp", "nsz")
SPEED = {"fastmath": {*FAST}, "no_cfunc_wrapper": True, "error_model": "numpy"}
ALONE = {**SPEED, "no_cpython_wrapper": True}
PART = {**ALONE, "pipeline_class": PartCompiler}
INNER = {**PART, "forceinline": True}
ORDERED = {**PART, "fastmath": {"contract"}}  # parts in which the order of operations matters
COMPILED = not config.DISABLE_JIT
R = TypeVar("R")
entries: list["Entry[Any]"] = []  # of the modules imported so far
_lock = RLock()


def _forked() -> None:
    """Nobody compiles in a child yet."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Given(types.Type):  # type: ignore[misc]
    """The type of an argument that is read as it lies in memory, see given.py."""

    def __init__(self, of: types.Type) -> None:
        self.of = of
        super().__init__(f"Given({of})")


class Entry(Generic[R]):
    """A kernel as Python sees it until its first call; then the module holds the compiled one."""

    def __init__(self, function: Callable[..., R], signature: Signature, nogil: bool) -> None:
        update_wrapper(self, function)
        self.function, self.signature, self.nogil = function, signature, nogil
        self.compiled: Callable[..., R] | None = None
        entries.append(self)

    def __call__(self, *arguments: Any) -> R:
        """Run the kernel."""
        return (self.compiled or self.compile())(*arguments)

    def compile(self) -> Callable[..., R]:
        """Return the kernel, compiled or loaded, and put it in its module where the entry was."""
        with _lock, Inside(self):
            if self.compiled is None:
                self.kernel = kernel = njit(nogil=self.nogil, **SPEED)(self.function)
                kernel._cache = CodeCache(self.function)
                with noted():
                    direct = kernel.compile(self.signature)
                kernel.disable_compile()
                given = any(isinstance(each, Given) for each in self.signature.args)
                self.compiled = direct if given else kernel  # which looks types up first
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
    kind = kind.of if isinstance(kind, Given) else kind
    if isinstance(kind, types.Array):
        if (
            type(given) is np.ndarray
            and (given.ndim, given.dtype) == (kind.ndim, as_dtype(kind.dtype))
            and given.flags.c_contiguous
            and given.flags.writeable
        ):
            return given
    elif isinstance(given, Real):
        return float(given) if isinstance(kind, types.Float) else math.trunc(given)
    raise TypeError(f"no matching definition for {type(given).__name__}; {kind} is taken")
