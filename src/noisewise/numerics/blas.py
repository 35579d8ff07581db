"""One BLAS thread inside our calls.

OpenBLAS shares even small products and factorisations among its threads, which then spin: several
times the CPU, and on a busy machine several times the time. So what calls it here runs on one
thread, and the caller's own setting is put back afterwards. It is one of the whole process: what
other threads of the caller multiply meanwhile has one thread too. The numpy and scipy of PyPI have
an OpenBLAS each. One built with OpenMP, or another library, is left alone.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from itertools import product
from pathlib import Path
from threading import RLock, get_ident
from typing import ParamSpec, TypeVar

import numpy as np

from ..support.arrays import Array
from ..support.interruptible import interruptible

P = ParamSpec("P")
R = TypeVar("R")
Pool = tuple[Callable[[], int], Callable[[int], None]]

LINKED = "numpy.linalg._umath_linalg", "scipy.linalg.cython_blas"
PTHREADS = 1  # what `openblas_get_parallel` says of a pool of its own
# entries of a matrix up to which no product is shared: OpenBLAS begins with 9216 and a vector, or
# with 64 x 64 x 64
SMALL_PRODUCT = 4000
LONG_PRODUCT = 5e9  # products of numbers during which an interrupt should be heard


def _pools() -> Iterator[Pool]:
    """Yield how to read and set the number of threads of each OpenBLAS in use."""
    known = set()
    for name in LINKED:
        module = import_module(name)
        package = Path(str(import_module(name.split(".")[0]).__file__)).parent
        bundled = package.with_name(f"{package.name}.libs").glob("*openblas*")
        for path in (module.__file__, *bundled):
            library = ctypes.PyDLL(str(path))  # an extension finds what it is linked to, too
            for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
                get, put, parallel = (
                    getattr(library, f"{prefix}openblas_{verb}{suffix}", None)
                    for verb in ("get_num_threads", "set_num_threads", "get_parallel")
                )
                if get is None or put is None or parallel is None or parallel() != PTHREADS:
                    continue
                address = ctypes.cast(put, ctypes.c_void_p).value
                if address not in known:
                    known.add(address)
                    yield get, put


@cache
def pools() -> tuple[Pool, ...]:
    """Return the pools of the process, looked for when needed: scipy takes a while to import."""
    return tuple(_pools())


_lock = RLock()  # a signal handler may call us while this thread holds it
_holders: set[int] = set()  # threads that are inside
_before: list[tuple[Callable[[int], None], int]] = []


def _enter(caller: int) -> None:
    """Set one BLAS thread, unless another caller has."""
    global _before
    with _lock:
        if _holders:
            _holders.add(caller)
            return
        before = []
        for get, put in pools():
            if (count := get()) > 1:
                before.append((put, count))
        _before = before
        _holders.add(caller)
        for put, _ in before:
            put(1)


def _leave(caller: int) -> None:
    """Put back what was before, if no other caller is left. Doing so twice does no harm."""
    with _lock:
        if len(_holders) == 1 and caller in _holders:
            for put, count in _before:
                put(count)
        _holders.discard(caller)


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function run with one BLAS thread, however it ends.

    Calls may be nested and come from several threads; the last to end puts the setting back.
    """

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        caller = get_ident()
        if caller in _holders:
            return function(*args, **kwargs)
        try:
            _enter(caller)
            return function(*args, **kwargs)
        finally:
            try:
                _leave(caller)
            finally:
                if caller in _holders:  # an interrupt has cut it short
                    _leave(caller)

    return alone


_matmul = one_thread(np.matmul)
_patient_matmul = one_thread(interruptible(np.matmul))


def matmul(a: Array, b: Array) -> Array:
    """Return ``a @ b``, one of them a matrix, on one thread."""
    if a.size <= SMALL_PRODUCT and b.size <= SMALL_PRODUCT:
        return a @ b
    long = a.size * (b.size // len(b)) > LONG_PRODUCT
    return (_patient_matmul if long else _matmul)(a, b)


def _after_fork() -> None:
    """Only the thread that forked goes on in a child."""
    global _lock
    _lock = RLock()
    if _holders - {get_ident()}:
        _holders.intersection_update({get_ident()})
        if not _holders:
            for put, count in _before:
                put(count)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)
