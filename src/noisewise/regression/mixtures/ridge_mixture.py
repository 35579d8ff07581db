"""RidgeMixture: shares, counts and signs with no number to choose, a Bayes mixture over ridges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import dimension, features, flag, one_of, positive, rows
from ...kernels.glm import numbers
from ...model.families import FAMILIES, Family, family_name, model
from ...protocols import Array, FloatOrArray
from ...support.ownership import Owned, writes
from ..history import History
from . import wide_mixture as wide
from .ridge_mixture_state import NARROW, RidgeMixtureState
from .wide_mixture import FIRST

GRID: Array = 4.0 ** np.arange(-5.0, 6.0)
PRIOR = (1 + np.log10(GRID) ** 2) ** -0.5
PRIOR /= PRIOR.sum()
FIRST_DROP = 64  # and at all powers of 2 from there on
STILL = 1e-14  # a variance below that share of the mean square is rounding
AHEAD = 4096  # rows that are learnt at once: an interrupt is heard in between
LIGHTEST, HEAVIEST = 1e-100, 1e30  # weights, for which curvatures are positive and finite


class StandardisedMixture:
    """A mixture over ridges that shifts features by the first row, and scales them."""

    fit_intercept: bool
    ridge: float | None

    def __post_init__(self) -> None:
        flag("fit_intercept", self.fit_intercept)
        if self.ridge is not None:
            object.__setattr__(self, "ridge", positive("ridge", self.ridge))

    def ridges(self, dim: int, grid: Array, prior: Array) -> tuple[Array, Array]:
        """Return the ridges c of the experts, and the logarithms of their priors."""
        if self.ridge is None:
            return grid.copy(), np.log(prior)
        return np.array([2 * self.ridge / dim]), np.zeros(1)

    def variance(self, count: int | Array, total: Array, squares: Array) -> Array:
        """Return the variances that belong to sums, 0 where they are rounding."""
        square = squares / count
        v = square - (total / count) ** 2 if self.fit_intercept else square
        return np.where(v > STILL * square, v, 0.0)


@dataclass(frozen=True)
class RidgeMixture(StandardisedMixture):
    r"""Regression on shares, counts or signs that learns its ridge; no number needs to be given.

    Experts minimise the loss of the rows so far, as `FTRL` does, with penalty
    :math:`\frac12 cd\sum_i v_i\theta_i^2 + \ell(b)`,
    :math:`c = 4^{-5}, 4^{-4}, \ldots, 4^5`, v the running variances of the features, b the score at
    the first row and :math:`\ell` the loss there of one label halfway between the two (1/2, or 0
    for signs); for counts :math:`\ell(b) = \frac18 b^2`. With prior
    :math:`\pi_c \propto (1 + \log_{10}^2 c)^{-1/2}` and p(y | c) what an expert gives to a label
    before it is seen,

    .. math:: \hat p_t = \sum_c w_c\,p_t(\cdot \mid c),\quad
              w_c \propto \pi_c\prod_{s<t} p_s(y_s \mid c)

    For counts the mean returned is the weighted geometric mean of the experts' means: in the
    arithmetic one a single expert of no weight to speak of, extrapolating early, would be seen.
    Features are shifted by the first row, and rescaled whenever a variance has moved by a factor
    of 2; more than 50 are so at counts that grow by a quarter, and in between one alone whose
    variance grows by more than 4. Rows that span fewer directions than there are features are
    learnt in coordinates of these. Experts of weight below 1e-6 are dropped after 64, 128, 256, ...
    rows. The units of features do not matter.

    Parameters
    ----------
    family : {"binomial", "poisson", "probit", "tanh", "algebraic"}
        "binomial" and "probit": labels 0 and 1, or shares with the number of trials as weight;
        "poisson": counts; "tanh" and "algebraic": signs, or their means with their number as
        weight, the probability of 1 being half of 1 + mean. Links name families too: "logistic"
        and "exponential". "probit" and "algebraic" are not canonical: their experts minimise the
        loss of the link, which is convex, and are weighed by likelihood.
    fit_intercept : bool
        Without, features are not shifted, and v are their mean squares.
    ridge : float > 0, optional
        Multiplies the squared norm of the parameter of standardised features: one expert, with
        :math:`cd = 2\cdot` ridge.
    tolerance, certificate
        How closely experts follow their minimisers, see `FTRL`: by default predictions are within
        about 0.002 of those of exact experts, as measured. "rigorous" with tolerance 0.1 keeps the
        proved gap small at all times, for labels 0 and 1 at about the same cost; for counts, whose
        slopes differ by many orders of magnitude, it is a hundred times slower.

    Examples
    --------
    One success makes another more likely, as much as the estimate of Krichevsky and Trofimov does:
    :math:`(1 + \frac12)/(1 + 1)`.

    >>> mixture = RidgeMixture("binomial")
    >>> state = mixture.start(dim=1)
    >>> mixture.update(state, [2.0], 1.0), round(mixture.predict(state, [2.0]), 2)
    (0.5, 0.75)

    References
    ----------
    Vovk (1990), Aggregating strategies: the loss is at most that of each expert still alive and
    1.85 to 3.0 nats, the logarithm of its prior.
    """

    family: str = "binomial"
    fit_intercept: bool = True
    ridge: float | None = None
    tolerance: float = 0.003
    certificate: str = "calibrated"

    not_promised = (
        "weight two equals the row twice",  # of two predictions the second has learnt
        "rotation leaves predictions alone",  # each feature has its own scale
        "a zero row is legal",  # it is, but moves the intercept
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "family", family_name(self.family))
        super().__post_init__()
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance, zero=True))
        one_of("certificate", self.certificate, ("rigorous", "calibrated"))

    @property
    def label_range(self) -> tuple[float, float]:
        """The least and the largest label."""
        return self._family.label_range

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    def start(self, dim: int) -> RidgeMixtureState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        ridges, logs = self.ridges(d, GRID, PRIOR)
        basis = np.zeros((FIRST, d)) if d > NARROW else None
        columns = (d if basis is None else FIRST) + self.fit_intercept
        memory, history = self.memory(len(ridges), columns), History.start(columns, len(ridges))
        shift, total, squares, used = (np.zeros(d) for _ in range(4))
        state = RidgeMixtureState(
            d, memory, history, ridges, logs, shift, total, squares, used, basis=basis
        )
        state.prior_rows = int(self.fit_intercept and self._family.middle is not None)
        state.learners.unit[:] = state.learner_units
        if state.prior_rows:
            state.learn(np.zeros((1, d)), np.array([self._family.middle]), np.ones(1))
        return state

    def memory(self, learners: int, columns: int, count: int = 0) -> Array:
        """Return the memory of learners of so many columns; ``count`` rows they are to be given."""
        glm = model(self.family)
        link, M = glm.link.compiled, glm.self_concordance
        assert link is not None
        assert M is not None
        return numbers.start(
            learners,
            columns,
            code=link.code,
            bound=glm.score_bound,
            concordance=M,
            third=glm.third_derivative,
            spread=math.sqrt(glm.max_slope / glm.min_slope),
            tolerance=self.tolerance * math.sqrt(columns),
            calibrated=self.certificate == "calibrated",
            count=count,
        )

    def check_state(self, state: RidgeMixtureState) -> None:
        """Raise unless the state is of this family, and has an intercept if this has one."""
        glm, s = model(self.family), state.learners.numbers
        link = glm.link.compiled
        if link is None or (s["code"] != link.code).any() or (s["bound"] != glm.score_bound).any():
            raise ValueError(
                f"the state is of another model than {glm}; pass a state that this spec started"
            )
        if state.history.x.shape[1] != state.width + self.fit_intercept:
            raise ValueError(
                f"the state is not of fit_intercept={self.fit_intercept}; pass a state that "
                "this spec started"
            )

    def predict(self, state: RidgeMixtureState, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        x, single = features(x, state.dim)
        self.check_state(state)
        with Owned(state):
            mean = self._predict(state, x)
        return float(mean[0]) if single else mean

    def _predict(self, state: RidgeMixtureState, x: Array) -> Array:
        """Return the mean of each row as if it were the next."""
        z = x - state.shift if state.count else np.zeros_like(x)
        variance = self.variance(state.count + 1, state.total + z, state.squares + z * z)
        if state.dim > NARROW:
            return self._family.mix(state.weights[:, None], wide.scores(state, z, variance))
        scores = state.scores(z)
        for i in np.flatnonzero(state.outgrown(variance)):
            renewed = state.twin()
            renewed.rescale(variance[i])
            if state.batch:  # the order of rows must not be seen
                renewed.solve()
            scores[:, i] = renewed.scores(z[i : i + 1])[:, 0]
        return self._family.mix(state.weights[:, None], scores)

    @writes
    def update(
        self, state: RidgeMixtureState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label."""
        x, y, w, single = rows(x, y, weight, state.dim)
        self.check_state(state)
        self.refuse(state.dim, x, y, w)
        out = np.empty(len(x))
        for part, learnt in runs(w):
            if learnt:
                out[part] = self._learn(state, x[part], y[part], np.maximum(w[part], LIGHTEST))
            else:
                out[part] = self._predict(state, x[part])
        return float(out[0]) if single else out

    def solve(self, state: RidgeMixtureState) -> None:
        """Drive the gap to rounding error now."""
        self.check_state(state)
        with Owned(state):
            state.solve()

    def refuse(self, dim: int, x: Array, y: Array, w: Array) -> None:
        """Raise if a label is not of the family, or a number too large."""
        features(x, dim)  # `rows` lets long ones pass whose weight is small
        low, high = self.label_range
        wrong = ((y < low) | (y > high)) & (w > 0)  # a row of weight 0 is not learnt
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"y is {y[at]:g} at row {at}; labels of family {self.family!r} are "
                f"{self._family.words}"
            )
        if len(w) and (size := w * (1 + np.abs(y)))[at := int(np.argmax(size))] > HEAVIEST:
            raise ValueError(
                f"weight is {w[at]:g} and y {y[at]:g} at row {at}, too large to compute with; "
                "divide all weights by the largest"
            )

    def _learn(self, state: RidgeMixtureState, x: Array, y: Array, w: Array) -> Array:
        """Learn rows of positive weight; return their means before."""
        if not state.count and self.fit_intercept:
            state.shift = x[0].copy()
        z, done, out = x - state.shift, 0, np.empty(len(x))
        totals, squares = running_sums(state.total, z), running_sums(state.squares, z * z)
        counts = state.count + np.arange(1.0, len(x) + 1)[:, None]
        variances = self.variance(counts, totals, squares)
        while done < len(x):
            next_drop = max(FIRST_DROP, 1 << state.count.bit_length())
            ahead = slice(done, done + next_drop - state.count)
            ready = wide.ready if state.dim > NARROW else _ready
            end = done + ready(self, state, z[ahead], variances[ahead])
            part = slice(done, end)
            out[part] = self._play(state, z[part], y[part], w[part])
            state.total, state.squares = totals[end - 1], squares[end - 1]
            state.count, done = state.count + end - done, end
            if state.count == next_drop:
                state.drop()
            if state.dim > NARROW and state.count == state.next_look:
                wide.look(state, variances[end - 1])
        state.total, state.squares = state.total.copy(), state.squares.copy()
        return out

    def _play(self, state: RidgeMixtureState, z: Array, y: Array, w: Array) -> Array:
        """Let the experts learn, and weigh them; return the means of the mixture."""
        scores = state.learn(z, y, w)
        logs = running_sums(state.log_weights, (w * self.log_likelihood(scores, y)).T).T
        before = np.column_stack([state.log_weights, logs[:, :-1]])
        state.log_weights = logs[:, -1].copy()
        weights = np.exp(before - before.max(axis=0))
        return self._family.mix(weights / weights.sum(axis=0), scores)

    def log_likelihood(self, scores: Array, y: Array) -> Array:
        """Return the logarithm of the probability of labels; the extended loss is none."""
        return self._family.log_likelihood(self._family.clip(scores), y)


def _ready(mixture: RidgeMixture, state: RidgeMixtureState, z: Array, variances: Array) -> int:
    """Scale for the first of some rows; return how many of them that serves."""
    if state.outgrown(variances[0]):
        state.rescale(variances[0])
    outgrown = state.outgrown(variances[1:])
    return 1 + int(np.argmax(outgrown)) if outgrown.any() else len(z)


def runs(w: Array) -> Iterator[tuple[slice, bool]]:
    """Yield parts of the rows in order, and whether these have weight."""
    ends = {*(np.flatnonzero(np.diff(w > 0)) + 1).tolist(), *range(AHEAD, len(w), AHEAD)}
    first = 0
    for last in sorted({*ends, len(w)}):
        if last > first:
            yield slice(first, last), bool(w[first] > 0)
        first = last


def running_sums(start: Array, rows: Array) -> Array:
    """Return the sum after each row, added in turn."""
    sums = np.empty((len(rows) + 1, len(start)))
    sums[0], sums[1:] = start, rows
    return np.asarray(np.cumsum(sums, axis=0, out=sums)[1:])
