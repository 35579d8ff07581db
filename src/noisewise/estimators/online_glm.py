"""OnlineGLM: regression that learns row by row, without a number to choose."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..confidence import Interval
from ..inputs import flag, one_of, probability, shown
from ..noise import SubGaussian
from ..protocols import Array
from ..regression.linear_intervals import LeastSquares, solve
from ..regression.normal_equations import NormalEquations
from ..regression.self_tuned import SelfTuned, SelfTunedState
from .pictures import plot_coefficients
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
    A weight is the inverse noise variance of a row up to a factor (which matters only to a given
    ``ridge`` or known ``noise``), not a number of copies: two equal rows say more of the noise, and
    of forgetting, than one of weight 2. So scikit-learn's
    ``check_sample_weight_equivalence_on_dense_data`` and ``..._on_sparse_data`` are not promised; a
    row of weight 0 is ignored. `fit` learns rows in the order given, and converts sparse matrices
    to dense arrays.
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
    _unit: float  # the first weight: predictions do not depend on the unit of weights

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "OnlineGLM":
        """Start again, and learn the rows in the order given."""
        self._learn(X, y, sample_weight, afresh=True)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "OnlineGLM":
        """Learn more rows."""
        self._learn(X, y, sample_weight, afresh="state_" not in vars(self))
        return self

    def update(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Learn more rows in order; return the mean predicted for each before its label."""
        return self._learn(X, y, sample_weight, afresh="state_" not in vars(self))

    def _learn(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, afresh: bool
    ) -> Array:
        if afresh:
            names = column_names(X)
            x = rows_of(X, names)
        else:
            x = self._rows(X)
        labels = labels_of(y, len(x), type(self).__name__)
        w = weights_of(sample_weight, len(x))
        if not afresh:
            if len(x) == 1:  # the quick way
                weight = float(w[0]) / self._unit
                means = self.method_.update(self.state_, x[0], float(labels[0]), weight)
            else:
                means = self.method_.update(self.state_, x, labels, w / self._unit)
            self._sums.update(x, labels, w)
            return np.atleast_1d(means)
        if not w.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        self._known_sigma()
        method = self._method()
        state = method.start(x.shape[1])
        unit = float(w[w > 0][0]) if method.ridge == "auto" else 1.0
        means = method.update(state, x, labels, w / unit)
        self.method_ = method
        self.state_ = state
        self._unit = unit
        self._sums = NormalEquations.start(x.shape[1], method.fit_intercept)
        self._sums.update(x, labels, w)
        self.n_features_in_ = x.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        return np.asarray(means)

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
        """Return the rows of ``X``, its columns in the order of the first fit."""
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
        """Return the predicted mean at each row.

        Predictions stay within the range of the labels seen, widened by a quarter.
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
            "observation" is for one new label of weight 1. With ``noise="auto"`` it holds only at
            one time fixed in advance.

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
        fit, z = self._least_squares(anytime), self._sums.directions(x)
        found = fit.interval(z, self._known_sigma(), delta, anytime, simultaneous, kind)
        means = np.asarray(self.method_.predict(self.state_, x))
        outside = int(((means < found.lower) | (means > found.upper)).sum())
        notes = [found.note, self._forgetting_note()]
        if outside:
            notes.append(f"ridge, forgetting or clipping take {outside} predictions outside")
        found.note = "; ".join(filter(None, notes))
        return found

    def _least_squares(self, anytime: bool) -> LeastSquares:
        if self._sums.count != self.state_.count:
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")
        return solve(self._sums, anytime)

    def _forgetting_note(self) -> str:
        kept = float(self.state_.shares[self.state_.forgetting == 1].sum())
        if kept >= 0.5:
            return ""
        return "predictions discount old rows, but intervals assume that the mean does not change"

    def plot(self, delta: float = 0.05, *, standardised: bool = True, ax: Any = None) -> Any:
        """Draw the coefficients with intervals that hold at all times and textbook ones.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        standardised : bool
            Per standard deviation of each feature, so that features compare. Else per unit.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        flag("standardised", standardised)
        return plot_coefficients(
            self.summary(delta), self._spreads() if standardised else None, delta, ax
        )

    def _spreads(self) -> Array:
        """Return the standard deviation of each feature."""
        sums, d = self._sums, self.n_features_in_
        squares = np.diag(sums.gram)[:d] / sums.total
        return np.sqrt(np.maximum(squares - sums.means()[:d] ** 2, 0.0))

    def summary(self, delta: float = 0.05) -> Summary:
        """Return a table of coefficients, with intervals that hold at all times and textbook ones.

        It prints as text and draws itself in notebooks.
        """
        self._check_fitted()
        probability("delta", delta)
        sums, sigma, d = self._sums, self._known_sigma(), self.n_features_in_
        fit, z = self._least_squares(anytime=True), np.eye(d, d + sums.intercept)
        named = "feature_names_in_" in vars(self)
        names = self.feature_names_in_.tolist() if named else [f"x{i}" for i in range(d)]
        if sums.intercept:
            z = np.vstack([z, sums.directions(np.zeros((1, d)))])
            names.append("intercept")
        anytime, textbook = (fit.interval(z, sigma, delta, anytime) for anytime in (True, False))
        for each in (anytime, textbook):
            each.promise = each.promise.replace("a row", "a coefficient")
        coefficients = (*self.coef_.tolist(), *([self.intercept_] if sums.intercept else ()))
        level = f"{100 * (1 - delta):g} %"
        notes = (
            f"anytime: {level} at all times at once; textbook: {level} at one time fixed in "
            "advance;",
            "each for one coefficient, around least squares without ridge.",
            f"They rest on {anytime.rests_on}.",
            self._forgetting_note(),
        )
        title = f"{self!r}, {sums.count} rows, R^2 of least squares {fit.explained:.3f}"
        return Summary(
            title, tuple(names), coefficients, anytime, textbook, tuple(filter(None, notes))
        )
