"""OnlineGLM: regression that learns row by row, without a number to choose."""

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike

from ..confidence import Interval
from ..inputs import flag, one_of, probability, shown
from ..noise import SubGaussian
from ..protocols import Array
from ..regression.intervals import quantile
from ..regression.normal_equations import LeastSquares, NormalEquations
from ..regression.self_tuned import SelfTuned, SelfTunedState
from .scikit_learn import BaseEstimator, NotFittedError, RegressorMixin
from .summary import Summary
from .tables import column_names, column_order, labels_of, rows_of, weights_of


class OnlineGLM(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression that learns rows as they come and chooses its own ridge and forgetting.

    A scikit-learn estimator around `SelfTuned`, with intervals around weighted least squares. Units
    of labels and features do not matter, and how rows are split into batches does not either. It
    works without scikit-learn, too.

    Parameters
    ----------
    family : "gaussian"
        How labels vary around their mean.
    ridge : "auto" or float > 0
        A number is the ridge on features of variance 1.
    forgetting : "auto", float or tuple of floats, in (0, 1]
        Factors by which older rows count less, combined; 1 forgets nothing.
    fit_intercept : bool
        If False, the model goes through the origin.
    noise : "auto" or SubGaussian
        What intervals assume: Gaussian noise of unknown sd, or noise whose scale is known.

    Attributes
    ----------
    coef_ : (d,) array
    intercept_ : float
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Only after a data frame whose columns have names. Later frames may have them in any order.
    method_, state_ : SelfTuned, SelfTunedState
        What predicts; `nw.save` writes these two.

    Examples
    --------
    >>> model = OnlineGLM().fit([[0.0], [1.0], [3.0], [2.0], [4.0]], [1.0, 3.1, 6.9, 5.0, 9.0])
    >>> model.predict([[5.0]]).round(1)
    array([10.9])
    >>> lower, upper = model.predict_interval([[5.0]], anytime=False)
    >>> lower.round(1), upper.round(1)
    (array([10.7]), array([11.2]))

    Notes
    -----
    A weight is the inverse noise variance of a row up to a factor, not a number of copies: two
    equal rows say more of the noise, and of forgetting, than one of weight 2. So scikit-learn's
    ``check_sample_weight_equivalence_on_dense_data`` and ``..._on_sparse_data`` are not promised; a
    row of weight 0 is as none. `fit` learns rows in their order. Sparse matrices become dense.
    """

    def __init__(
        self,
        family: str = "gaussian",
        ridge: str | float = "auto",
        forgetting: str | float | tuple[float, ...] = "auto",
        fit_intercept: bool = True,
        noise: str | SubGaussian = "auto",
    ) -> None:
        self.family = family
        self.ridge = ridge
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.noise = noise

    method_: SelfTuned
    state_: SelfTunedState
    _sums: NormalEquations

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "OnlineGLM":
        """Forget what was learnt, and learn the rows in their order."""
        return self._learn(X, y, sample_weight, afresh=True)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "OnlineGLM":
        """Learn more rows."""
        return self._learn(X, y, sample_weight, afresh="state_" not in vars(self))

    def _learn(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, afresh: bool
    ) -> "OnlineGLM":
        if afresh:
            names = column_names(X)
            x = rows_of(X, names)
        else:
            x = self._rows(X)
        labels = labels_of(y, len(x), type(self).__name__)
        w = weights_of(sample_weight, len(x))
        if not afresh:
            if len(x) == 1:  # the quick way
                self.method_.update(self.state_, x[0], float(labels[0]), float(w[0]))
            else:
                self.method_.update(self.state_, x, labels, w)
            self._sums.update(x, labels, w)
            return self
        if not w.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        self._known_sigma()
        method = self._method()
        state = method.start(x.shape[1])
        method.update(state, x, labels, w)
        self.method_ = method
        self.state_ = state
        self._sums = NormalEquations.start(x.shape[1], method.fit_intercept)
        self._sums.update(x, labels, w)
        self.n_features_in_ = x.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        return self

    def _method(self) -> SelfTuned:
        if self.family != "gaussian":
            raise ValueError(f"family is {shown(self.family)}; pass 'gaussian'")
        return SelfTuned(self.ridge, self.forgetting, flag("fit_intercept", self.fit_intercept))

    def _known_sigma(self) -> float | None:
        """Return the noise's scale where it is known."""
        if isinstance(self.noise, SubGaussian):
            return self.noise.sigma
        if not isinstance(self.noise, str) or self.noise != "auto":
            raise ValueError(f"noise is {shown(self.noise)}; pass 'auto' or SubGaussian(sigma)")
        return None

    def _check_fitted(self) -> None:
        if "state_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or "
                "'partial_fit' with appropriate arguments before using this estimator."
            )

    def _rows(self, X: ArrayLike) -> Array:
        """Return rows with the columns in the order they were learnt."""
        self._check_fitted()
        given = column_names(X)
        known = None
        if "feature_names_in_" in vars(self):
            known = self.feature_names_in_.tolist()
        name = type(self).__name__
        if given is None and known is not None:
            words = f"X does not have valid feature names, but {name} was fitted with feature names"
            warnings.warn(words, stacklevel=4)
        elif given is not None and known is None:
            words = f"X has feature names, but {name} was fitted without feature names"
            warnings.warn(words, stacklevel=4)
        order = column_order(known, given) if known and given else None
        x = rows_of(X, given)
        if x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features, but {name} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return x if order is None else x[:, order]

    @property
    def coef_(self) -> Array:
        """The coefficients of the predictions."""
        self._check_fitted()
        return self.state_.coef

    @property
    def intercept_(self) -> float:
        """The intercept of the predictions."""
        self._check_fitted()
        return self.state_.intercept

    def predict(self, X: ArrayLike) -> Array:
        """Return the mean at each row, as it would be predicted for the next one.

        It is within the range of the labels seen, widened by a quarter.
        """
        x = self._rows(X)
        return np.asarray(self.method_.predict(self.state_, x))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination, R^2; 1 is best, a constant mean has 0."""
        means = self.predict(X)
        labels = labels_of(y, len(means), type(self).__name__)
        w = weights_of(sample_weight, len(means))
        if not w.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        left = float(w @ (labels - means) ** 2)
        total = float(w @ (labels - w @ labels / w.sum()) ** 2)
        if len(labels) < 2:
            warnings.warn("R^2 score is not well-defined with less than two samples.", stacklevel=2)
            return math.nan
        return 1 - left / total if total else float(not left)

    def predict_interval(
        self,
        X: ArrayLike,
        delta: float = 0.05,
        *,
        anytime: bool = True,
        simultaneous: bool = False,
        kind: str = "mean",
    ) -> Interval:
        """Return lower and upper bounds of the mean, or of a new label, at each row.

        Bounds are around weighted least squares, without ridge and forgetting; they are infinite
        where the rows learnt say too little.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        anytime : bool
            Hold at all times at once. Else at one time fixed in advance, for one row: what
            textbooks give.
        simultaneous : bool
            Hold for all rows and all times at once, so also for rows chosen by looking at the data.
            Else for each row that was fixed in advance, which is narrower.
        kind : "mean" or "observation"
            "observation" is for one new label of weight 1. With ``noise="auto"`` it holds at one
            time only.

        Returns
        -------
        Interval
            Unpacks into lower and upper, and says what it promises and what that rests on.
        """
        x = self._rows(X)
        probability("delta", delta)
        one_of("kind", kind, ("mean", "observation"))
        flag("anytime", anytime)
        flag("simultaneous", simultaneous)
        sigma, fit = self._known_sigma(), self._sums.solve(anytime)
        a, notes = self._sums.directions(x), [self._forgetting_note()]
        promise = _promise(anytime, simultaneous)
        if kind == "mean":
            half = _half_width(fit, a, sigma, delta, anytime, simultaneous)
        elif sigma is None or not anytime:
            half = _textbook_label(fit, a, sigma, delta)
            promise = "one new label, one time"
            if anytime:
                notes.append("labels of unknown noise have no anytime interval")
        else:
            half = _half_width(fit, a, sigma, delta / 2, anytime, simultaneous)
            half += sigma * math.sqrt(2 * math.log(4 / delta))
            promise = f"one new label, {promise.replace('all times', 'any time')}"
        centre = self._sums.label_origin + fit.scores(a)
        centre = np.where(np.isfinite(half), centre, 0.0)
        rests_on = _assumptions(sigma, anytime and kind == "mean", simultaneous)
        return Interval(
            centre - half, centre + half, promise, rests_on, "; ".join(filter(None, notes))
        )

    def _forgetting_note(self) -> str:
        kept = float(self.state_.shares[self.state_.forgetting == 1].sum())
        if kept >= 0.5:
            return ""
        return "predictions forget, and intervals are for a mean that does not change"

    def summary(self, delta: float = 0.05) -> Summary:
        """Return a table of coefficients, with intervals that hold at all times and textbook ones.

        It prints as text and draws itself in notebooks.
        """
        self._check_fitted()
        probability("delta", delta)
        sums, sigma, d = self._sums, self._known_sigma(), self.n_features_in_
        fit, a = sums.solve(anytime=True), np.eye(d, d + sums.intercept)
        named = "feature_names_in_" in vars(self)
        names = self.feature_names_in_.tolist() if named else [f"x{i}" for i in range(d)]
        if sums.intercept:
            a = np.vstack([a, sums.directions(np.zeros((1, d)))])
            names.append("intercept")
        centre = fit.scores(a) + sums.label_origin * (np.arange(len(a)) == d)

        def interval(anytime: bool) -> Interval:
            half = _half_width(fit, a, sigma, delta, anytime, False)
            middle = np.where(np.isfinite(half), centre, 0.0)
            promise = _promise(anytime, False).replace("row", "coefficient")
            rests_on = _assumptions(sigma, anytime, False)
            return Interval(middle - half, middle + half, promise, rests_on)

        coefficients = (*self.coef_.tolist(), *([self.intercept_] if sums.intercept else ()))
        level = f"{100 * (1 - delta):g} %"
        anytime, textbook = interval(True), interval(False)
        notes = (
            f"anytime: {level} at all times at once; textbook: {level} at one time fixed in "
            "advance;",
            "each for one coefficient, around least squares without ridge.",
            f"They rest on {anytime.rests_on}.",
            self._forgetting_note(),
        )
        title = f"{self!r}, {sums.count} rows, R^2 of least squares {_explained(fit):.3f}"
        return Summary(
            title, tuple(names), coefficients, anytime, textbook, tuple(filter(None, notes))
        )


def _promise(anytime: bool, simultaneous: bool) -> str:
    if anytime and simultaneous:
        return "all rows, all times"
    return f"a row fixed in advance, {'all times' if anytime else 'one time'}"


def _assumptions(sigma: float | None, anytime: bool, simultaneous: bool) -> str:
    noise = "Gaussian noise of unknown sd" if sigma is None else f"sub-Gaussian noise, {sigma:g}"
    if not anytime:
        return noise if sigma is None else f"Gaussian noise of sd {sigma:g}"
    if not simultaneous:
        return f"{noise}, and rows that do not depend on past labels"
    if sigma is None:
        return f"{noise}, and rows that do not depend on the scale of past labels"
    return noise


def _half_width(
    fit: LeastSquares,
    a: Array,
    sigma: float | None,
    delta: float,
    anytime: bool,
    simultaneous: bool,
) -> Array:
    if anytime and simultaneous:
        return fit.simultaneous_half_width(a, sigma, delta)
    return fit.half_width(a, sigma, delta, anytime)


def _textbook_label(fit: LeastSquares, a: Array, sigma: float | None, delta: float) -> Array:
    """Return half the interval of a new label of weight 1, at one time."""
    variance, freedom = (fit.variance, fit.freedom) if sigma is None else (sigma**2, math.inf)
    if not freedom:
        return np.full(len(a), math.inf)
    return quantile(freedom, delta) * np.sqrt(variance * (1 + fit.shares(a)))


def _explained(fit: LeastSquares) -> float:
    """Return the share of the labels' squares, around their mean if fitted, that is explained."""
    sums, total = fit.sums, fit.sums.squares
    if sums.intercept and sums.total:
        total -= sums.moment[-1] ** 2 / sums.total
    return 1 - fit.left / total if total > 0 else math.nan
