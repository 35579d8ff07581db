"""The limit: one symmetric rank-one update and one matrix-vector product, as one fused sweep."""

import ctypes

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address

FAST = {"reassoc", "contract", "arcp", "nsz"}


@njit(fastmath=FAST, cache=True)
def _sweeps(a, d, x):
    d = np.uint64(d)
    P = np.uint64(2) * d
    x0 = np.uint64(0)
    for t in range(x.shape[0] // d):
        old = np.uint64(t & 1) * d
        new = d - old
        for i in range(d):
            row = P + i * d
            change = 1e-9 * a[old + i]
            total = 0.0
            for j in range(d):
                value = a[row + j] - change * a[old + j]
                a[row + j] = value
                total += value * x[x0 + j]
            a[new + i] = total
        x0 += d


def fused(x):
    """Return a function that does the sweeps of a whole stream."""
    d, flat = x.shape[1], x.reshape(-1)
    a = np.zeros(2 * d + d * d)
    a[2 * d :: d + 1] = 1.0
    return lambda: _sweeps(a, d, flat)


def _blas(name, count):
    kind = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * count)
    return kind(get_cython_function_address("scipy.linalg.cython_blas", name))


_symv, _syr = _blas("dsymv", 10), _blas("dsyr", 7)


@njit
def _pairs(P, d, x, k, uplo, n, one, zero, tiny, step):
    for t in range(x.shape[0]):
        _symv(
            uplo.ctypes,
            n.ctypes,
            one.ctypes,
            P.ctypes,
            n.ctypes,
            x[t].ctypes,
            step.ctypes,
            zero.ctypes,
            k.ctypes,
            step.ctypes,
        )
        _syr(uplo.ctypes, n.ctypes, tiny.ctypes, k.ctypes, step.ctypes, P.ctypes, n.ctypes)


def blas(x):
    """Return a function that does the same with BLAS, dsymv and dsyr from compiled code."""
    d = x.shape[1]
    P, k = np.eye(d), np.zeros(d)
    uplo, n, step = np.array([ord("L")], np.uint8), np.array([d], np.int32), np.ones(1, np.int32)
    one, zero, tiny = np.ones(1), np.zeros(1), np.full(1, -1e-9)
    return lambda: _pairs(P, d, x, k, uplo, n, one, zero, tiny, step)
