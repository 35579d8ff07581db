"""Whole worlds played by one Gaussian posterior and an index of constant width, compiled.

UCB and Thompson sampling as other packages have them: studies compare with these settings.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from .arms import dot, first_best, set_forms
from .compile_options import PART, entry

LEAST_STEP = 1e-13
MOST_STEPS = 100


@njit(**PART)
def shift_of(start, square, y, w, logistic):
    """Return c with c + w (phi(start + c square) - y) = 0 and the weighted slope there.

    The mode of a likelihood times the Gaussian before lies at m + c P x. For the logistic link and
    y in [0, 1] it is found by Newton's method between -w and w.
    """
    if not logistic:
        return w * (y - start) / (1.0 + w * square), w
    low, high, c, slope = -w, w, 0.0, w
    for _ in range(MOST_STEPS):
        mean = 1.0 / (1.0 + math.exp(-(start + c * square)))
        slope = w * mean * (1.0 - mean)
        value = c + w * (mean - y)
        if value > 0.0:
            high = c
        else:
            low = c
        step = value / (1.0 + slope * square)
        if abs(step) * square < LEAST_STEP:
            break
        c = c - step if low < c - step < high else 0.5 * (low + high)
    return c, slope


@njit(**PART)
def add_to_factor(L, x, w):
    """Replace the lower factor of V by that of V + w x x'."""
    d = x.shape[0]
    v = np.sqrt(w) * x
    for k in range(d):
        r = math.sqrt(L[k, k] * L[k, k] + v[k] * v[k])
        c, s = r / L[k, k], v[k] / L[k, k]
        L[k, k] = r
        for i in range(k + 1, d):
            L[i, k] = (L[i, k] + s * v[i]) / c
            v[i] = c * v[i] - s * L[i, k]


@njit(**PART)
def set_draw(L, m, scale, z, theta):
    """Set theta = m + scale L^-T z, a draw with covariance scale^2 V^-1."""
    d = m.shape[0]
    for i in range(d - 1, -1, -1):
        value = z[i]
        for j in range(i + 1, d):
            value -= L[j, i] * theta[j]
        theta[i] = value / L[i, i]
    for i in range(d):
        theta[i] = m[i] + scale * theta[i]


@entry(
    void(
        float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1],
        float64[:, ::1], float64, float64, int64, float64[::1], float64[::1],
    )
)  # fmt: skip
def play(arms, rewards, weights, due, queue, normals, width, scale, logistic, m, played):
    """Set the arms played, and the posterior mean at the end in ``m``, zero before.

    ``arms`` has one block, or one per round. Reward s is learnt after decision ``due[s]``, in the
    order of ``queue``. ``normals``, a row per round, are drawn from where ``scale`` is positive.
    """
    N, K, d = arms.shape
    P, L, theta, h = np.eye(d), np.eye(d), np.empty(d), np.empty(d)
    index, forms, first = np.empty(K), np.empty(K), 0
    for t in range(rewards.shape[0]):
        x = arms[t % N]
        theta[:] = m
        if scale > 0.0:
            set_draw(L, m, scale, normals[t], theta)
        if width > 0.0:
            set_forms(x, P, forms)
        for k in range(K):
            index[k] = dot(theta, x[k])
            if width > 0.0:
                index[k] += width * math.sqrt(forms[k])
        played[t] = first_best(index)
        while first < rewards.shape[0] and due[int(queue[first])] == t:
            s = int(queue[first])
            k = int(played[s])
            row, start, square = arms[s % N, k], 0.0, 0.0
            for i in range(d):
                h[i] = dot(row, P[i])
                square += h[i] * row[i]
                start += m[i] * row[i]
            c, slope = shift_of(start, square, rewards[s, k], weights[s], logistic)
            for i in range(d):
                m[i] += c * h[i]
                for j in range(d):
                    P[i, j] -= h[i] * h[j] * slope / (1.0 + slope * square)
            if scale > 0.0:
                add_to_factor(L, row, slope)
            first += 1
