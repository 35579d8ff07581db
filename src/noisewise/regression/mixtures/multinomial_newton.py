r"""Minimisers of the penalised multinomial loss, and the matrices of row steps.

With rows x of weight w and label shares y, the loss of :math:`\Theta` (K x p) is

.. math:: f(\Theta) = \sum_t w_t\bigl(\ln\sum_k e^{\theta_k\cdot x_t} - \sum_k y_{tk}\,
          \theta_k\cdot x_t\bigr) + \frac12\sum_k\sum_j \lambda_j\theta_{kj}^2.

Its Hessian is at most :math:`I \otimes B`, :math:`B = \frac12\sum_t w_tx_tx_t^\top +
\mathrm{diag}(\lambda)`, on steps whose classes add up to zero, and all steps are such.

References
----------
Boehning (1992), Multinomial logistic regression algorithm.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array

SUFFICIENT = 1e-4  # of what the slope promises, that a step must gain
SURE = 1e-8  # squared length of a step from which on rounding decides whether the loss falls
HALVINGS, STEPS = 40, 100
FINE = 1e-4  # of what is enough, to which a step is solved for


class Table(NamedTuple):
    """Rows with a constant last if there is one; the first of them is then that of the prior."""

    x: Array
    y: Array
    w: Array
    constant: bool

    def penalties(self, ridge: float) -> Array:
        """Return the ridge of each column; a constant has none."""
        found = np.full(self.x.shape[1], ridge)
        if self.constant:
            found[-1] = 0.0
        return found

    def look(self, theta: Array, penalty: Array) -> tuple[float, Array]:
        """Return loss and probabilities."""
        s = matmul(self.x, theta.T)
        s -= s.max(axis=1, keepdims=True)
        e = np.exp(s)
        total = e.sum(axis=1)
        loss = self.w @ (np.log(total) - np.einsum("ij,ij->i", self.y, s))
        return float(loss + 0.5 * (theta**2 @ penalty).sum()), e / total[:, None]

    def gradient(self, theta: Array, p: Array, penalty: Array) -> Array:
        """Return the gradient, given the probabilities."""
        return matmul(((p - self.y) * self.w[:, None]).T, self.x) + penalty * theta

    def hessian(self, p: Array, penalty: Array) -> Array:
        """Return the K p x K p Hessian, lifted along what is the same for all classes."""
        (n, q), K = self.x.shape, p.shape[1]
        root = self.x * np.sqrt(self.w)[:, None]
        A = (p[:, :, None] * root[:, None, :]).reshape(n, K * q)
        H = -matmul(A.T, A)
        rest = matmul(p, 1 - np.eye(K))  # 1 - p, to all digits
        for k in range(K):
            own = slice(k * q, k * q + q)
            H[own, own] = matmul((A[:, own] * rest[:, k : k + 1]).T, root)
        H[np.diag_indices(K * q)] += np.tile(penalty, K)
        if self.constant:
            H[q - 1 :: q, q - 1 :: q] += 1.0
        return H

    def times(self, v: Array, p: Array, penalty: Array) -> Array:
        """Return the Hessian times a step whose classes add up to zero."""
        u = matmul(self.x, v.T) * p
        u -= p * u.sum(axis=1, keepdims=True)
        return matmul((u * self.w[:, None]).T, self.x) + penalty * v

    def bound(self, penalty: Array) -> tuple[Array, float]:
        """Return the inverse of B, and log det B; with few rows by their Gram matrix."""
        x, w, lam = self.x, 0.5 * self.w, penalty
        if self.constant:  # the prior's row is all but the constant 0
            lam = lam.copy()
            lam[-1] += w[0]
            x, w = x[1:], w[1:]
        if 2 * len(x) >= x.shape[1]:
            c = linalg.factor(matmul((x * w[:, None]).T, x) + np.diag(lam))
            return linalg.invert(c), linalg.log_det(c)
        inverse, left = np.diag(1 / lam), x / lam
        if not len(x):
            return inverse, float(np.log(lam).sum())
        root = np.sqrt(w)[:, None]
        c = linalg.factor(matmul(root * left, (root * x).T) + np.eye(len(x)))
        half = np.asarray(linalg.lapack().dtrtrs(c, root * left, lower=1)[0])
        return inverse - matmul(half.T, half), linalg.log_det(c) + float(np.log(lam).sum())


def by_newton(
    table: Table, begin: Sequence[Array], ridge: float, enough: float, inner: int = 0
) -> tuple[Array, Array]:
    """Return the minimiser and the inverse Hessian, once a squared step is below ``enough``.

    Where ``inner`` conjugate gradients at most solve for a step, it is the inverse of B.
    """
    penalty = table.penalties(ridge)
    inverse = table.bound(penalty)[0] if inner else np.empty((0, 0))
    theta, value, p = _begun(table, begin, penalty)
    for _ in range(STEPS):
        g = table.gradient(theta, p, penalty)
        if inner:
            step = _solved(table, p, penalty, inverse, g, inner, FINE * enough)
        else:
            inverse = linalg.invert(linalg.factor(table.hessian(p, penalty)))
            step = matmul(inverse, g.ravel()).reshape(theta.shape)
        gain = float((g * step).sum())
        before, (theta, value, p) = theta, _searched(table, theta, step, gain, value, p, penalty)
        if gain <= enough or theta is before:
            break
    return theta, inverse


def _solved(
    table: Table, p: Array, penalty: Array, inverse: Array, g: Array, most: int, floor: float
) -> Array:
    """Return the solution of H v = g by conjugate gradients in the metric of B."""
    v, r = np.zeros_like(g), g
    z = matmul(r, inverse)
    d, size = z, float((r * z).sum())
    first = size
    for _ in range(most):
        Hd = table.times(d, p, penalty)
        along = float((d * Hd).sum())
        if not along > 0:
            break
        v, r = v + size / along * d, r - size / along * Hd
        z = matmul(r, inverse)
        size, before = float((r * z).sum()), size
        if size <= max(min(0.01, first) * first, floor):  # the nearer, the more exactly
            break
        d = z + size / before * d
    return v


def _begun(table: Table, begin: Sequence[Array], penalty: Array) -> tuple[Array, float, Array]:
    """Return the best of some points and 0, with its loss and probabilities."""
    points = [*begin, np.zeros_like(begin[0])]
    looks = [table.look(each, penalty) for each in points]
    best = min(range(len(looks)), key=lambda i: looks[i][0])
    return points[best], *looks[best]


def _searched(
    table: Table, theta: Array, step: Array, gain: float, value: float, p: Array, penalty: Array
) -> tuple[Array, float, Array]:
    """Return where a step leads to, halved until the loss falls, or where it began."""
    t = 1.0
    for _ in range(HALVINGS):
        point = theta - t * step
        found, shares = table.look(point, penalty)
        if gain < SURE or found <= value - SUFFICIENT * t * gain:
            return point, found, shares
        t /= 2
    return theta, value, p
