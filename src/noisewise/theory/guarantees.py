r"""What the other regressors guarantee, for any labels: bounds of regret for weights 1.

All are in the units of `regret`, half the square for the identity link: for the full square they
double. Where rows are taken the bound is cumulative, ``(T,)``, one for every horizon. ``norm`` is
the length of the comparator u, ``loss`` its total loss :math:`\frac12\sum(y - u\cdot x)^2`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import column, dimension, features, integer, numbers, positive, probability
from ..model.glm import GLM
from ..numerics.linalg import minimax_directions, scaled_spectrum
from ..protocols import Array
from .regret import design_terms


def log_dets(x: ArrayLike, ridge: float = 0.5) -> Array:
    r"""Return :math:`\log\det(V_t/2\lambda)`, :math:`V_t = 2\lambda I + \sum_{s\le t}x_sx_s^\top`.

    >>> bool(np.allclose(log_dets([[1.0], [1.0]]), np.log([2.0, 3.0])))
    True
    """
    _, h = design_terms(GLM(), x, positive("ridge", ridge))
    return -np.cumsum(np.log1p(-h))


def worst_log_det(dim: int, horizon: int, feature_bound: float = 1.0, ridge: float = 0.5) -> float:
    r"""Return :math:`d\log(1 + TA^2/(2\lambda d))`, the largest of `log_dets` over designs."""
    d, T = dimension(dim), integer("horizon", horizon)
    A, lam = positive("feature_bound", feature_bound), positive("ridge", ridge)
    return d * math.log1p(T * A * A / (2 * lam * d))


def ridge_bound(log_det: ArrayLike, residual: ArrayLike, norm: float, ridge: float = 0.5) -> Array:
    r"""Return Ridge's bound :math:`\lambda\|u\|^2 + \frac12\max_t(y_t-\hat y_t)^2\log\det`.

    ``residual`` is the largest \|y - prediction\| so far; 2Y where labels and predictions, clipped
    perhaps, lie in [-Y, Y].

    >>> float(ridge_bound(log_det=1.0, residual=2.0, norm=1.0))
    2.5
    """
    r = numbers("residual", residual)
    return ridge * norm**2 + 0.5 * r**2 * numbers("log_det", log_det)


def forward_bound(log_det: ArrayLike, label_bound: float, norm: float, ridge: float = 0.5) -> Array:
    r"""Return Forward's bound :math:`\lambda\|u\|^2 + \frac12 Y^2\log\det`."""
    return ridge_bound(log_det, positive("label_bound", label_bound), norm, ridge)


def free_forward_bound(x: ArrayLike, label_bound: float) -> Array:
    r"""Return the bound of ``Forward(0)`` against all u, :math:`\frac12Y^2\sum x_t^\top G_t^+x_t`.

    :math:`G_t = \sum_{s\le t}x_sx_s^\top`; a row that adds to the span costs exactly Y^2/2. The
    span is the one ``Forward(0)`` sees, by the same cut: a direction too faint for it, below 1e-5
    of the others once features have equal second moments, is in neither.

    >>> free_forward_bound([[1.0], [1.0]], label_bound=1.0)
    array([0.5 , 0.75])
    """
    Y, rows = positive("label_bound", label_bound), _rows(x)
    G, rank, cost = np.zeros((rows.shape[1], rows.shape[1])), 0, []
    for block in np.array_split(rows, math.ceil(len(rows) / 256)):
        grams = G + np.cumsum(block[:, :, None] * block[:, None, :], axis=0)
        s, values, vectors, kept = scaled_spectrum(grams)
        along = np.square(np.einsum("ti,tij->tj", block / s, vectors))
        part = np.sum(np.divide(along, values, where=kept, out=np.zeros_like(along)), axis=1)
        ranks = kept.sum(axis=1)
        part[np.diff(ranks, prepend=rank) > 0] = 1.0
        cost.append(part)
        G, rank = grams[-1], ranks[-1]
    return 0.5 * Y * Y * np.cumsum(np.concatenate(cost))


def discounted_forward_bound(
    x: ArrayLike,
    y: ArrayLike,
    comparators: ArrayLike,
    ridge: float = 0.5,
    forgetting: float = 0.99,
    factors: int = 1,
) -> Array:
    r"""Return that of DiscountedForward against comparators :math:`u_1, u_2, \ldots`, ``(T, d)``.

    :math:`\gamma\lambda\|u_1\|^2 + \gamma\sum_{t>1}[F_{t-1}(u_t) - F_{t-1}(u_{t-1})]
    + \frac12\sum y_t^2\,x_t^\top V_t^{-1}x_t`, with
    :math:`F_t(u) = \lambda\gamma^t\|u\|^2 + \sum_{s\le t}\gamma^{t-s}\frac12(y_s - x_s\cdot u)^2`;
    :math:`(4\log k + \frac32)Y_t^2` more where k > 1 ``factors`` are mixed.

    >>> discounted_forward_bound([[1.0]], [1.0], [[1.0]], forgetting=0.5)
    array([0.58333333])
    """
    x, u = _rows(x), numbers("comparators", comparators)
    if u.shape != x.shape:
        raise ValueError(f"comparators has shape {u.shape}; pass {x.shape}, one for each row")
    labels, gamma = column("y", y, len(x), False), positive("forgetting", forgetting)
    lam, k = positive("ridge", ridge), integer("factors", factors)
    V, b, c = 2 * lam * np.eye(x.shape[1]), np.zeros(x.shape[1]), 0.0
    cost, before = np.empty(len(x)), u[0]
    for t, (row, label, now) in enumerate(zip(x, labels, u, strict=True)):
        ahead, behind = (0.5 * v @ V @ v - b @ v + c for v in (now, before))
        cost[t] = gamma * (ahead - (behind if t else 0.0))
        V, b, c = gamma * V + np.outer(row, row), gamma * b + label * row, gamma * c + label**2 / 2
        cost[t] += 0.5 * label**2 * float(row @ np.linalg.solve(V, row))
        before = now
    mixed = (4 * math.log(k) + 1.5) * (k > 1)
    return np.cumsum(cost) + mixed * np.square(np.maximum.accumulate(np.abs(labels)))


def aggregating_bound(label_bound: float, prior: float) -> float:
    r"""Return Aggregating's bound against an expert of this prior, :math:`Y^2\log(1/\pi)`."""
    p = 1.0 if prior == 1 else probability("prior", prior)
    return -(positive("label_bound", label_bound) ** 2) * math.log(p)


def gradient_descent_bound(
    loss: float, norm: float, rate: float = 0.5, feature_bound: float = 1.0
) -> float:
    r"""Return that of GradientDescent, :math:`\frac{\beta}{1-\beta}L(u) + X^2\|u\|^2/(2\beta)`.

    For ``normalised`` every loss is divided by the squared norm of its row, and X is 1.

    >>> gradient_descent_bound(loss=1.0, norm=1.0)
    2.0
    """
    beta = probability("rate", rate)
    return loss * beta / (1 - beta) + (feature_bound * norm) ** 2 / (2 * beta)


def gradient_descent_rate(loss: float, norm: float, feature_bound: float = 1.0) -> float:
    r"""Return the rate best for a comparator, :math:`q/(\sqrt{2L} + q)` with q = X \|u\|.

    `gradient_descent_bound` is then :math:`q\sqrt{2L} + \frac12q^2`.
    """
    q = positive("norm", norm) * positive("feature_bound", feature_bound)
    return q / (math.sqrt(2 * loss) + q)


def projected_descent_bound(gradients: ArrayLike, glm: GLM, rate: float = 0.5) -> Array:
    r"""Return that of ``GradientDescent(glm)``: :math:`B(1/\beta + 2\beta)\sqrt{\sum\|g_t\|^2}`.

    Holds against every u of the ball; 3B at the default rate. ``gradients`` are the lengths
    :math:`\|g_t\| = |\varphi(\hat z_t) - y_t|\,\|x_t\|`.
    """
    g = numbers("gradients", gradients)
    beta = positive("rate", rate)
    return glm.parameter_bound * (1 / beta + 2 * beta) * np.sqrt(np.cumsum(g * g))


def exponentiated_gradient_bound(
    loss: float,
    divergence: float,
    feature_range: float,
    bound: float | None = None,
    rate: float = 1 / 3,
) -> float:
    r"""Return that of EG, :math:`\frac{\beta}{1-\beta}L(u) + R^2D/(4\beta)`.

    ``divergence`` is D = KL(u, uniform), at most log d, and log 2d with ``bound``.
    """
    beta, R = probability("rate", rate), feature_range * (1.0 if bound is None else bound)
    return loss * beta / (1 - beta) + R * R * divergence / (4 * beta)


def exponentiated_gradient_rate(
    loss: float, divergence: float, feature_range: float, bound: float | None = None
) -> float:
    r"""Return the rate best for a comparator, :math:`q/(\sqrt{2L} + q)`, :math:`q = R\sqrt{D/2}`.

    `exponentiated_gradient_bound` is then :math:`R\sqrt{LD} + R^2D/4`.
    """
    R = feature_range * (1.0 if bound is None else bound)
    q = R * math.sqrt(positive("divergence", divergence) / 2)
    return q / (math.sqrt(2 * loss) + q)


def simplex_bound(
    x: ArrayLike, y: ArrayLike, predictions: ArrayLike, comparator: ArrayLike
) -> Array:
    r"""Return that of SimplexFTRL against a u of the simplex.

    :math:`\frac12\|u - 1/d\|^2 + \frac12\sum(\hat y_t - y_t)^2\,x_t^\top V_t^{-1}x_t` with
    :math:`V_t = I + \sum_{s\le t} x_sx_s^\top`; at most (1 + d log(1 + T))/2 for features and
    labels in [0, 1].
    """
    x = _rows(x)
    r = column("y", y, len(x), False) - column("predictions", predictions, len(x), False)
    far = numbers("comparator", comparator) - 1 / x.shape[1]
    _, h = design_terms(GLM(), x, 0.5)
    return 0.5 * float(far @ far) + 0.5 * np.cumsum(r * r * h)


def minimax_value(x: ArrayLike, label_bound: ArrayLike = 1.0) -> float:
    r"""Return the regret of Minimax on this design for labels +-Y: :math:`\frac12\sum Y_t^2 q_t`.

    :math:`q_t = x_t^\top P_t x_t`. It is the least any learner can guarantee for labels in the box
    if :math:`Y_t \ge \sum_{s<t}|x_t^\top P_t x_s|Y_s` for all t. With the labels themselves as
    ``label_bound`` it is the regret of Minimax on them, exactly.

    >>> round(minimax_value([[1.0], [1.0]]), 12)
    0.625
    """
    x = _rows(x)
    Y = column("label_bound", label_bound, len(x), False, spread=True)
    return 0.5 * float(Y**2 @ minimax_directions(x)[1])


def horizon_free_bound(x: ArrayLike, label_bound: float, norm: float, budget: float = 1.0) -> Array:
    r"""Return that of HorizonFreeMinimax, :math:`\frac b2\|u\|^2 + \frac12Y^2\sum x_t^\top P_tx_t`.

    The penalty :math:`P_t^{-1} - \sum x x^\top` begins as b I, b the budget, and only falls.

    >>> bool(np.allclose(horizon_free_bound([[1.0], [1.0]], 1.0, 0.0, 16 / 21), [0.375, 0.625]))
    True
    """
    Y, x = positive("label_bound", label_bound), _rows(x)
    P = np.eye(x.shape[1]) / positive("budget", budget)
    q = np.empty(len(x))
    for t, row in enumerate(x):
        k = P @ row
        b = float(row @ k)
        c = 4 / (1 + math.sqrt(1 + 4 * b)) ** 2
        P -= c * np.outer(k, k)
        q[t] = b * (1 - c * b)
    return 0.5 * budget * norm**2 + 0.5 * Y * Y * np.cumsum(q)


def newton_step_bound(
    glm: GLM, x: ArrayLike, residuals: ArrayLike, norm: float, initial: float = 1.0
) -> Array:
    r"""Return that of NewtonStep against u of the ball.

    :math:`\frac1{2\kappa}\sum(\varphi(\hat z_t)-y_t)^2\,x_t^\top V_t^{-1}x_t
    + \frac{\kappa\epsilon}2\|u\|^2`, epsilon the ``initial``; ``residuals`` are mean less label.
    """
    x = _rows(x)
    r, kappa = column("residuals", residuals, len(x), False), glm.min_slope
    _, h = design_terms(GLM(), x, positive("initial", initial) / 2)
    return np.cumsum(r * r * h) / (2 * kappa) + 0.5 * kappa * initial * norm**2


def _rows(x: ArrayLike) -> Array:
    array = numbers("x", x)
    return features(array, array.shape[-1])[0]
