"""MultinomialMixture: several classes with no number to choose, a Bayes mixture over ridges."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import dimension, features, integer, rows
from ...numerics.blas import one_thread
from ...protocols import Array
from ...support.ownership import Owned, writes
from ..history import History
from .multinomial_newton import Table, by_newton
from .multinomial_state import MultinomialState
from .ridge_mixture import FIRST_DROP, LIGHTEST, StandardisedMixture, running_sums, runs

GRID: Array = 4.0 ** np.arange(-4.0, 4.0)
PRIOR = (1 + np.log10(GRID) ** 2) ** -0.5
PRIOR /= PRIOR.sum()
GROWTH = 10  # experts are solved for again when rows have grown by one in so many
MOST = 200  # coefficients up to which experts have a matrix of all of them
NEAR, EXACT = 1e-4, 1e-16  # squared distances to minimisers, of a stream and of a batch
STREAM, BATCH = 10, 1000  # conjugate gradients of a step


@dataclass(frozen=True)
class MultinomialMixture(StandardisedMixture):
    r"""Multinomial regression that learns its ridge; no number needs to be given.

    An expert follows the minimiser :math:`\Theta`, K x (d + 1), of the logarithmic loss of
    probabilities :math:`p_k \propto e^{\theta_k\cdot z + b_k}` and

    .. math:: \frac12 cd\sum_{kj}\theta_{kj}^2 + \frac K2\Bigl(\ln\sum_ke^{b_k}
              - \frac1K\sum_kb_k\Bigr),\qquad c = 4^{-4}, \ldots, 4^3,

    z the features less their mean, over their standard deviation: the second term is the loss of
    K/2 rows at the mean, of which each class has an equal share, so that without features the
    estimate is that of Krichevsky and Trofimov. With prior
    :math:`\pi_c \propto (1 + \log_{10}^2c)^{-1/2}` and losses :math:`L_c` so far, the mixture is

    .. math:: \hat p = \sum_cw_c\,p(\cdot\mid c),\quad w_c \propto \pi_c e^{-L_c/W},

    W the largest weight of a row so far, at least 1. Its loss is at most
    :math:`L_c + \ln(1/\pi_c)` for each expert c still alive, if weights are at most 1: for
    :math:`w \le 1`, :math:`\hat p^w \ge \sum_cw_c\,p_c^w`, and the product of these sums over rows
    is :math:`\sum_c\pi_ce^{-L_c}`. With larger weights it is :math:`L_c + W\ln(1/\pi_c)` and the
    loss of rows whose weight is a record.

    A row is learnt by an exact proximal step: with P the inverse of the Hessian,
    :math:`\Theta` moves to the minimiser of :math:`\frac12\|\Theta - \Theta_0\|^2_{P^{-1}}` and the
    row's loss, :math:`\Theta_0 + P(I\otimes x)a`, found by Newton's method for the K numbers a.
    Experts are solved for again, and features standardised afresh, when rows have grown by a tenth,
    and before a row that moves a variance by a factor of 2. Beyond 200 coefficients P is Boehning's
    bound, one matrix for all classes. From 64 rows on, experts of weight below 1e-6 are dropped
    when they would be solved for. Scores more than 15 below the largest count as 15 below.

    Parameters
    ----------
    classes : int
        Labels are 0, ..., classes - 1.
    fit_intercept : bool
        Without, features are not shifted, and scaled by their mean squares.
    ridge : float > 0, optional
        Multiplies the squared norm of the coefficients of standardised features: one expert, with
        :math:`cd = 2\cdot` ridge.

    Examples
    --------
    Of three classes the first seen has :math:`(1 + \frac12)/(1 + \frac32)`.

    >>> mixture = MultinomialMixture(classes=3)
    >>> state = mixture.start(dim=1)
    >>> mixture.update(state, [[2.0]], [1.0]).round(3), mixture.predict(state, [[2.0]]).round(2)
    (array([[0.333, 0.333, 0.333]]), array([[0.2, 0.6, 0.2]]))

    References
    ----------
    Boehning (1992), Multinomial logistic regression algorithm. Vovk (1990), Aggregating strategies.
    """

    classes: int
    fit_intercept: bool = True
    ridge: float | None = None

    def __post_init__(self) -> None:
        integer("classes", self.classes, least=2)
        super().__post_init__()

    def start(self, dim: int) -> MultinomialState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        ridges, log_priors = self.ridges(d, GRID, PRIOR)
        E, K, p = len(ridges), self.classes, d + self.fit_intercept
        shift, total, squares, centre, variances = (np.zeros(d) for _ in range(5))
        state = MultinomialState(
            d, ridges, log_priors, np.zeros(E), np.zeros(1), np.zeros((E, K, p)),
            np.zeros((E, p, p)), shift, total, squares, centre, variances, History.start(d, 0),
        )  # fmt: skip
        self.renew(state, variances)
        return state

    def check_state(self, state: MultinomialState) -> None:
        """Raise unless the state is of these classes, and has an intercept if this has one."""
        found = state.classes, state.theta.shape[2] > state.dim
        if found != (self.classes, self.fit_intercept):
            raise ValueError(
                f"the state is of classes={found[0]} and fit_intercept={found[1]}, not of "
                f"{self!r}; pass a state that this spec started"
            )

    def predict(self, state: MultinomialState, x: ArrayLike) -> Array:
        """Return the probabilities of the classes at each row of ``x``."""
        x, _ = features(x, state.dim)
        self.check_state(state)
        with Owned(state):
            return self._predict(state, x)

    def _predict(self, state: MultinomialState, x: Array) -> Array:
        """Return the probabilities at each row as if it were the next."""
        z = x - state.shift if state.count else np.zeros_like(x)
        totals, squares = state.total + z, state.squares + z * z
        variances = self.variance(state.count + 1, totals, squares)
        out = self._shares(state, z)
        for i in np.flatnonzero(state.outgrown(variances)).tolist():
            other = copy(state)
            self.renew(other, variances[i], totals[i] / (state.count + 1))
            out[i] = self._shares(other, z[i : i + 1])[0]
        return out

    def _shares(self, state: MultinomialState, z: Array) -> Array:
        from ...kernels.self_tuning import multinomial_rounds

        out = np.empty((len(z), self.classes))
        multinomial_rounds.predict(
            state.scaled(z), state.theta, state.log_priors, state.losses, state.heaviest, out
        )
        return out

    @writes
    def update(
        self, state: MultinomialState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> Array:
        """Learn the rows in order; return the probabilities of the classes before each."""
        self.check_state(state)
        x, y, w = self.checked(x, y, weight, state.dim)
        out = np.empty((len(x), self.classes))
        for part, learnt in runs(w):
            if learnt:
                out[part] = self._learn(state, x[part], y[part], np.maximum(w[part], LIGHTEST))
            else:
                out[part] = self._predict(state, x[part])
        return out

    def checked(
        self, x: ArrayLike, y: ArrayLike, weight: ArrayLike, dim: int
    ) -> tuple[Array, Array, Array]:
        """Return rows, labels and weights, or raise."""
        x, y, w, _ = rows(x, y, weight, dim)
        features(x, dim)  # `rows` lets long ones pass whose weight is small
        wrong = (y % 1 != 0) | (y < 0) | (y >= self.classes)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(f"y is {y[at]:g} at row {at}; labels are 0, ..., {self.classes - 1}")
        return x, y, w

    def _learn(self, state: MultinomialState, x: Array, y: Array, w: Array) -> Array:
        """Learn rows of positive weight; return their probabilities before."""
        from ...kernels.self_tuning import multinomial_rounds

        if not state.count and self.fit_intercept:
            state.shift = x[0].copy()
        z, done, out = x - state.shift, 0, np.empty((len(x), self.classes))
        totals, squares = running_sums(state.total, z), running_sums(state.squares, z * z)
        counts = state.count + np.arange(1.0, len(x) + 1)[:, None]
        variances, labels = self.variance(counts, totals, squares), y.astype(np.int64)
        while done < len(x):
            if state.outgrown(variances[done]):
                self.renew(state, variances[done], totals[done] / counts[done])
            new = (state.variances == 0) & (variances[done] > 0)
            state.variances = np.where(new, variances[done], state.variances)
            end = min(len(x), done + state.due - state.count)
            ahead = variances[done + 1 : end]
            stop = state.outgrown(ahead) | ((state.variances == 0) & (ahead > 0)).any(axis=1)
            end = done + 1 + int(np.argmax(stop)) if stop.any() else end
            part = slice(done, end)
            state.history.append(z[part], y[part], w[part])
            multinomial_rounds.learn(
                state.scaled(z[part]), labels[part], w[part], state.theta, state.inverse,
                state.log_priors, state.losses, state.heaviest, out[part],
            )  # fmt: skip
            state.total, state.squares = totals[end - 1].copy(), squares[end - 1].copy()
            done = end
            if state.count == state.due:
                self.renew(state, variances[end - 1], totals[end - 1] / state.count)
                state.due = self.next_renewal(state.count)
                if state.count >= FIRST_DROP:
                    state.drop()
        return out

    @staticmethod
    def next_renewal(count: int) -> int:
        """Return the count at which experts are solved for again."""
        return count + max(1, count // GROWTH)

    @one_thread
    def renew(self, state: MultinomialState, variance: Array, centre: Array | None = None) -> None:
        """Scale features by other variances, and solve for the experts, in arrays of their own."""
        theta, d = state.theta.copy(), state.dim
        raw = theta[:, :, :d] * state.units
        if self.fit_intercept and centre is not None:
            theta[:, :, -1] += raw @ (centre - state.centre)
            state.centre = centre.copy()
        state.variances = np.where(variance > 0, variance, state.variances)
        theta[:, :, :d] = raw * np.sqrt(state.variances)
        table = self.table(state)
        inverse = []
        for i in reversed(range(len(theta))):  # the largest ridge has the shortest way
            begin, ridge = theta[i : i + 1 + state.batch], float(state.ridges[i] * state.dim)
            theta[i], matrix = self.solve(table, begin, ridge, state.batch)
            inverse.append(matrix)
        state.theta, state.inverse = theta, np.array(inverse[::-1])

    def table(self, state: MultinomialState) -> Table:
        """Return the rows as experts see them, after that of the prior."""
        z, labels, w = state.kept
        x, y = state.scaled(z), np.eye(self.classes)[labels.astype(np.int64)]
        if not self.fit_intercept:
            return Table(x, y, w, False)
        first = np.zeros((1, x.shape[1]))
        first[0, -1], K = 1.0, self.classes
        shares = np.full((1, K), 1 / K)
        return Table(np.vstack([first, x]), np.vstack([shares, y]), np.append(K / 2, w), True)

    def solve(self, table: Table, begin: Array, ridge: float, batch: bool) -> tuple[Array, Array]:
        """Return the minimiser of a ridge, and the matrix of its row steps.

        ``begin`` are points to begin at, the best of them.
        """
        inner = 0 if begin[0].size <= MOST else BATCH if batch else STREAM
        return by_newton(table, [*begin], ridge, EXACT if batch else NEAR, inner)
