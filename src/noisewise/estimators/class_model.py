"""Several classes: a mixture of multinomial regression, one-versus-rest and frequencies."""

from dataclasses import dataclass

import numpy as np

from ..protocols import Array
from ..regression.intervals.class_intervals import ClassPairs
from ..regression.intervals.curved_intervals import CurvedFit
from ..regression.mixtures.batch_multinomial import batch_state
from ..regression.mixtures.multinomial import MultinomialMixture
from ..regression.mixtures.multinomial_state import MultinomialState
from ..regression.mixtures.ridge_mixture import FIRST_DROP, LIGHTEST, RidgeMixture
from ..regression.mixtures.ridge_mixture_state import LEAST_WEIGHT
from ..storage.states import COUNT, check_fields, check_list, check_type, field_values
from ..support.printing import OneLine
from .curved_model import CurvedModel, own_ridge

PRIORS = 0.55, 0.05, 0.40  # multinomial, frequencies, one-versus-rest


@dataclass(eq=False, repr=False)
class ClassModel(OneLine):
    r"""What `OnlineGLMClassifier` asks of a model of several classes.

    Its probabilities are those of three experts i, by weights
    :math:`\pi_i e^{-L_i/W}`: priors, losses, and the largest weight of a row, at least 1. The loss
    is at most :math:`L_i + W\ln(1/\pi_i)` for each, and that of rows whose weight is a record:
    0.60 nats behind `MultinomialMixture`, 0.92 behind one-versus-rest and 3.0 behind the
    frequencies of classes, where no weight is above 1. One-versus-rest is dropped, if its weight is
    below 1e-6, after 64, 128, 256, ... rows.
    """

    method: MultinomialMixture
    state: MultinomialState
    rest: list[CurvedModel]  # each class against the rest, or none
    priors: Array  # as PRIORS, without the last if there is no ``rest``
    losses: Array
    frequencies: Array  # weights of the classes seen
    heaviest: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        check_type("ClassModel.method", self.method, MultinomialMixture)
        check_type("ClassModel.state", self.state, MultinomialState)
        check_list("ClassModel.rest", self.rest, CurvedModel)
        K, experts = self.method.classes, 3 if self.rest else 2
        check_fields(self, priors=(experts,), losses=(experts,), frequencies=(K,), count=COUNT)
        check_fields(self, heaviest="nonnegative")
        if len(self.rest) not in (0, K) or any(
            each.method.family != "binomial" or each.state.dim != self.state.dim
            for each in self.rest
        ):
            raise ValueError(f"ClassModel.rest are not {K} regressions of shares")
        if min(self.priors.min(), self.frequencies.min()) < 0 or abs(self.priors.sum() - 1) > 1e-9:
            raise ValueError("ClassModel holds a prior or frequency that is negative")
        self.check()
        self._gathered: list[tuple[Array, Array, Array]] = []

    @classmethod
    def start(
        cls, classes: int, ridge: str | float, fit_intercept: bool, dim: int, mixed: bool
    ) -> "ClassModel":
        """Return a model that has learnt nothing; not ``mixed``, it is the multinomial alone.

        So it is if a ridge is given. Without an intercept frequencies are no expert.
        """
        own = own_ridge(ridge)
        method = MultinomialMixture(classes, fit_intercept, own)
        rest, priors = [], np.array([1.0, 0.0])
        if own is None and mixed:
            rest = [
                CurvedModel.start("binomial", ridge, "auto", fit_intercept, dim)
                for _ in range(classes)
            ]
            priors = np.array(PRIORS) * (1.0, fit_intercept, 1.0)
        return cls(
            method, method.start(dim), rest, priors / priors.sum(), np.zeros(len(priors)),
            np.zeros(classes),
        )  # fmt: skip

    __getstate__ = field_values

    def __setstate__(self, held: dict[str, object]) -> None:
        vars(self).update(held)
        self._gathered = []

    def check(self) -> None:
        """Raise unless all have learnt the same rows."""
        self.method.check_state(self.state)
        for each in self.rest:
            each.check()
        if {self.state.count, *(each.state.count for each in self.rest)} != {self.count}:
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")

    def learn(self, x: Array, labels: Array, w: Array) -> Array:
        """Learn checked rows; return the probabilities of classes before each."""
        x, labels, w = self.method.checked(x, labels, w, self.state.dim)
        out, first = np.empty((len(x), self.method.classes)), 0
        while first < len(x):
            next_drop = max(FIRST_DROP, 1 << self.count.bit_length())
            learnt = np.flatnonzero(w[first:] > 0)[: next_drop - self.count]
            last = first + int(learnt[-1]) + 1 if self.count + len(learnt) == next_drop else len(x)
            part = slice(first, last)
            out[part] = self._learn(x[part], labels[part], w[part])
            if self.count == next_drop:
                self._drop()
            first = last
        return out

    def _learn(self, x: Array, labels: Array, w: Array) -> Array:
        """Learn rows, and weigh the experts by what each gave to the labels."""
        K, row = self.method.classes, np.arange(len(x))
        seen = np.eye(K)[labels.astype(np.int64)] * w[:, None]
        before = np.cumsum(np.vstack([self.frequencies, seen]), axis=0)
        given = [self.method.update(self.state, x, labels, w), _shares(before[:-1])]
        if self.rest:
            own = [each.learn(x, 1.0 * (labels == k), w) for k, each in enumerate(self.rest)]
            given.append(_normalised(np.column_stack(own)))
        own_losses = np.array([-w * np.log(p[row, labels.astype(np.int64)]) for p in given])
        losses = np.cumsum(np.column_stack([self.losses, own_losses]), axis=1)
        heaviest = np.maximum.accumulate(np.append(self.heaviest, w))
        weights = self._weights(losses[:, :-1], heaviest[:-1])
        self.losses, self.heaviest = losses[:, -1].copy(), float(heaviest[-1])
        self.frequencies, self.count = before[-1].copy(), self.count + int((w > 0).sum())
        return np.einsum("et,etk->tk", weights, np.array(given))

    def _weights(self, losses: Array, heaviest: float | Array) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(self.priors).reshape(-1, *(1,) * (losses.ndim - 1))
        logs = logs - losses / np.maximum(1.0, heaviest)
        weights = np.exp(logs - logs.max(axis=0))
        return np.asarray(weights / weights.sum(axis=0))

    @property
    def weights(self) -> Array:
        """The weights of the multinomial, of frequencies and of one-versus-rest."""
        return self._weights(self.losses, self.heaviest)

    def _drop(self) -> None:
        """Forget one-versus-rest where it has little weight."""
        if self.rest and self.weights[-1] < LEAST_WEIGHT:
            self.rest, priors = [], self.priors[:2]
            self.priors, self.losses = priors / priors.sum(), self.losses[:2].copy()

    def gather(self, x: Array, labels: Array, w: Array) -> None:
        """Take in checked rows for `refitted`, without predicting them."""
        x, labels, w = self.method.checked(x, labels, w, self.state.dim)
        self._gathered.append((x[w > 0], labels[w > 0], np.maximum(w[w > 0], LIGHTEST)))

    def refitted(self) -> "ClassModel":
        """Return the multinomial model of the same rows fitted as a batch.

        Its fit has weighed large ridges against small ones: frequencies have no weight.
        """
        self.check()
        if self._gathered:
            x, labels, w = map(np.concatenate, zip(*self._gathered, strict=True))
            z, origin = x - x[0], x[0]
            if not self.method.fit_intercept:
                z, origin = x, np.zeros(x.shape[1])
        else:
            z, labels, w = self.state.kept
            origin = self.state.shift
        state = batch_state(self.method, z, labels, w, origin)
        seen = np.eye(self.method.classes)[labels.astype(np.int64)].T @ w
        return ClassModel(
            self.method, state, [], np.array([1.0, 0.0]), np.zeros(2), seen, float(w.max()), len(w)
        )

    def predict(self, x: Array) -> Array:
        """Return the probabilities of classes at each row."""
        given = [
            self.method.predict(self.state, x),
            np.broadcast_to(_shares(self.frequencies[None]), (len(x), self.method.classes)),
        ]
        if self.rest:
            given.append(_normalised(np.column_stack([each.predict(x) for each in self.rest])))
        return np.einsum("e,etk->tk", self.weights, np.array(given))

    def pairs(self) -> ClassPairs:
        """Return the rows for intervals, kept until more are learnt."""
        kept: tuple[int, ClassPairs] | None = vars(self).get("_pairs")
        if kept is None or kept[0] != self.count:
            z, labels, w = self.state.kept
            shift, intercept = self.state.shift, self.method.fit_intercept
            kept = self.count, ClassPairs(z, labels, w, shift, self.method.classes, intercept)
            self._pairs = kept
        return kept[1]

    def against_first(self) -> "dict[int, PairModel]":
        """Return each class but the first against that, where one of both was seen."""
        coef, at_zero, pairs = self.state.coefficients, self.state.intercepts, self.pairs()
        found = {}
        for k in range(1, self.method.classes):
            fit, own = pairs.fit(k, 0), (coef[k] - coef[0], float(at_zero[k] - at_zero[0]))
            if fit is not None:
                found[k] = PairModel(self.method.fit_intercept, fit, *own)
        return found


class PairModel(CurvedModel):
    """One class against another, for a table: the fit of their rows, and given coefficients."""

    def __init__(
        self, fit_intercept: bool, fit: CurvedFit, coefficients: Array, intercept: float
    ) -> None:
        self.method = RidgeMixture("binomial", fit_intercept)
        self._fit, self._coefficients, self._intercept = fit, coefficients, intercept

    def fitted(self) -> CurvedFit:
        """Return the unregularised fit."""
        return self._fit

    def coefficients(self) -> tuple[Array, float]:
        """Return the coefficients and the intercept of the predictions."""
        return self._coefficients, self._intercept


def _shares(counts: Array) -> Array:
    """Return frequencies, half a row of each class added."""
    return _normalised(counts + 0.5)


def _normalised(p: Array) -> Array:
    return np.asarray(p / p.sum(axis=1, keepdims=True))
