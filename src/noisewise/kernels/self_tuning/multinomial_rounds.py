"""Rows of several classes learnt by a stack of experts, compiled for `MultinomialMixture`.

``theta`` has K x p coefficients of each expert. ``inverse`` is that of its matrix, either of all
K p coefficients, or of p x p, one for all classes.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from ..compiling.compile_options import INNER, PART, entry
from ..matrices.dense import dot, log_sum_exp, softmax, times, update_inverse

DEEPEST = 15.0  # scores this far below the largest are as good as any below
STEPS, HALVINGS = 40, 40
SOLVABLE = 1e12  # the largest product of a weight and a variance of scores
EXACT = 1e-11  # relative step at which the solution is taken


@njit(**PART)
def eliminate(M, B):
    """Set B to the solution of M X = B, by Gauss with pivots; M is used up."""
    n, m = B.shape
    for i in range(n):
        best = i
        for r in range(i + 1, n):
            if abs(M[r, i]) > abs(M[best, i]):
                best = r
        for j in range(n):
            M[i, j], M[best, j] = M[best, j], M[i, j]
        for j in range(m):
            B[i, j], B[best, j] = B[best, j], B[i, j]
        for r in range(i + 1, n):
            f = M[r, i] / M[i, i]
            for j in range(i, n):
                M[r, j] -= f * M[i, j]
            for j in range(m):
                B[r, j] -= f * B[i, j]
    for i in range(n - 1, -1, -1):
        for j in range(m):
            total = B[i, j]
            for r in range(i + 1, n):
                total -= M[i, r] * B[r, j]
            B[i, j] = total / M[i, i]


@njit(**INNER)
def curved(p, w, S, M):
    """Set I + W S, with W = w (diag p - pp')."""
    K = p.shape[0]
    for j in range(K):
        mean = 0.0
        for c in range(K):
            mean += p[c] * S[c, j]
        for i in range(K):
            M[i, j] = w * p[i] * (S[i, j] - mean) + (1.0 if i == j else 0.0)


@njit(**INNER)
def moved(s0, S, a, s):
    """Set s0 + S a, and return a'S a."""
    square = times(S, a, s)
    for i in range(a.shape[0]):
        s[i] += s0[i]
    return square


@njit(**INNER)
def held(S, w):
    """Return a weight, held where I + W S would be singular to working precision."""
    most = 0.0
    for k in range(S.shape[0]):
        most = max(most, S[k, k])
    return min(w, SOLVABLE / most) if most > 0.0 else w


@njit(**PART)
def proximal(s0, S, label, w, a, p):
    """Set the a that minimises a'S a/2 and the loss at scores s0 + S a, and p there."""
    K = a.shape[0]
    M, r = np.empty((K, K)), np.empty((K, 1))
    s, trial = s0.copy(), np.empty(K)
    for k in range(K):
        a[k] = 0.0
    value = w * (log_sum_exp(s) - s[label])
    for _ in range(STEPS):
        softmax(s, math.inf, p)
        for k in range(K):
            r[k, 0] = w * ((1.0 if k == label else 0.0) - p[k]) - a[k]
        curved(p, w, S, M)
        eliminate(M, r)
        size, t = 0.0, 1.0
        for k in range(K):
            size = max(size, abs(r[k, 0]))
        for _ in range(HALVINGS):
            for k in range(K):
                trial[k] = a[k] + t * r[k, 0]
            found = 0.5 * moved(s0, S, trial, s)
            found += w * (log_sum_exp(s) - s[label])
            if found <= value + 1e-12 * abs(value) + 1e-300:
                break
            t *= 0.5
        value = found
        for k in range(K):
            a[k] = trial[k]
        if size <= EXACT * w:
            break
    softmax(s, math.inf, p)


@njit(**PART)
def learn_exactly(theta, P, x, s0, label, w):
    """Learn a row with the inverse of all coefficients."""
    K, p = theta.shape
    V, S, a, share = np.zeros((K, K * p)), np.empty((K, K)), np.empty(K), np.empty(K)
    for k in range(K):
        for j in range(p):
            xj, row = x[j], k * p + j
            for r in range(K * p):
                V[k, r] += xj * P[row, r]
    for k in range(K):
        for c in range(K):
            total = 0.0
            for i in range(p):
                total += V[k, c * p + i] * x[i]
            S[k, c] = total
    w = held(S, w)
    proximal(s0, S, label, w, a, share)
    for c in range(K):
        for k in range(K):
            for i in range(p):
                theta[c, i] += a[k] * V[k, c * p + i]
    M, W, T = np.empty((K, K)), np.empty((K, K)), np.zeros((K, K * p))
    curved(share, w, S, M)
    for i in range(K):
        for j in range(K):
            W[i, j] = w * share[i] * ((1.0 if i == j else 0.0) - share[j])
    eliminate(M, W)
    for k in range(K):
        for c in range(K):
            f = 0.5 * (W[k, c] + W[c, k])
            for r in range(K * p):
                T[k, r] += f * V[c, r]
    for r in range(K * p):
        for k in range(K):
            f = V[k, r]
            for c in range(K * p):
                P[r, c] -= f * T[k, c]


@njit(**PART)
def learn_by_bound(theta, P, x, s0, label, w):
    """Learn a row with Boehning's bound, one matrix for all classes."""
    K, p = theta.shape
    v, S, a, share = np.empty(p), np.zeros((K, K)), np.empty(K), np.empty(K)
    q = times(P, x, v)
    for k in range(K):
        S[k, k] = q
    w = held(S, w)
    proximal(s0, S, label, w, a, share)
    for k in range(K):
        for i in range(p):
            theta[k, i] += a[k] * v[i]
    update_inverse(P, v, q, 0.5 * w, 1.0)


@njit(**PART)
def mix(x, theta, log_priors, losses, heaviest, s, share, out):
    """Set scores and probabilities of each expert at a row, and those of the mixture.

    Experts have weights at rate 1, or one over the largest weight of a row above that.
    """
    E, K, _ = theta.shape
    rate, weights = 1.0 / max(1.0, heaviest), np.empty(E)
    for e in range(E):
        weights[e] = log_priors[e] - rate * losses[e]
    softmax(weights, math.inf, weights)
    for k in range(K):
        out[k] = 0.0
    for e in range(E):
        for k in range(K):
            s[e, k] = dot(x, theta[e, k])
        softmax(s[e], DEEPEST, share[e])
        for k in range(K):
            out[k] += weights[e] * share[e, k]


LINE, TABLE, STACK = float64[::1], float64[:, ::1], float64[:, :, ::1]


@entry(void(TABLE, int64[::1], LINE, STACK, STACK, LINE, LINE, LINE, TABLE))
def learn(x, labels, w, theta, inverse, log_priors, losses, heaviest, out):
    """Learn rows in order; set the probabilities given to classes before each."""
    E, K, p = theta.shape
    s, share = np.empty((E, K)), np.empty((E, K))
    for t in range(x.shape[0]):
        mix(x[t], theta, log_priors, losses, heaviest[0], s, share, out[t])
        heaviest[0] = max(heaviest[0], w[t])
        for e in range(E):
            losses[e] -= w[t] * math.log(share[e, labels[t]])
            if inverse.shape[1] == p:
                learn_by_bound(theta[e], inverse[e], x[t], s[e], labels[t], w[t])
            else:
                learn_exactly(theta[e], inverse[e], x[t], s[e], labels[t], w[t])


@entry(void(TABLE, STACK, LINE, LINE, LINE, TABLE))
def predict(x, theta, log_priors, losses, heaviest, out):
    """Set the probabilities of classes at each row; the state is only read."""
    E, K, _ = theta.shape
    s, share = np.empty((E, K)), np.empty((E, K))
    for t in range(x.shape[0]):
        mix(x[t], theta, log_priors, losses, heaviest[0], s, share, out[t])
