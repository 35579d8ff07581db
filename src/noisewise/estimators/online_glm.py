"""OnlineGLM: regression that learns row by row, without a number to choose."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..confidence import Interval, joined
from ..inputs import flag, numbers, one_of, shown
from ..model.noise import Likelihood, SubGaussian
from ..partitions.sources import Collection, blocks_in_turn
from ..protocols import Array
from ..regression.intervals.linear_intervals import OUTSIDE as ROWS_OUTSIDE
from ..regression.intervals.linear_intervals import JointTest
from ..regression.intervals.span import words as tie_words
from ..support.printing import count_of
from .coefficient_plot import plot_coefficients
from .estimator_state import AnyModel, EstimatorState, Rows, least_label, start_model
from .linear_model import LinearModel
from .online_estimator import OnlineEstimator
from .scikit_learn import RegressorMixin
from .summary import Summary, summarise
from .table_rows import any_weight, labels_of, offsets_of, weights_of
from .width import warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.utils import Tags

OUTSIDE = "{} outside their intervals"
LYING = "of the predictions lies", "of the predictions lie"
WHY_OUTSIDE = (
    "predictions use a ridge, may forget and stay near the range of the labels seen, and intervals "
    "do not"
)
FEWER = "pass hashed=1024, which adds them up in 1,024 buckets, or fewer columns"
SHARES = "binomial", "logistic", "probit"
SCORES = {  # what a coefficient changes
    "gaussian": "mean",
    "identity": "mean",
    "binomial": "log odds",
    "logistic": "log odds",
    "poisson": "log mean",
    "exponential": "log mean",
}


@dataclass(eq=False, repr=False)
class OnlineGLM(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """Regression that learns rows as they come and chooses its own ridge and forgetting.

    A scikit-learn estimator that also works without scikit-learn. Numbers are learnt by
    `SelfTuned`, with intervals around weighted least squares; shares, counts and signs by
    `RidgeMixture`. The units of features (and of numeric labels) do not matter, nor how rows are
    split into batches.

    Parameters
    ----------
    family : str
        The kind of labels. "gaussian": numbers with noise; "binomial": 0 and 1, or shares with the
        number of trials as weights; "poisson": counts. Or the name of a link: "identity",
        "logistic" and "exponential" are the same three; "probit" is another link for 0 and 1, and
        "tanh" and "algebraic" are for signs, or means of signs.
    ridge : "auto" or float > 0
        A number is the ridge for features scaled to variance 1.
    forgetting : "auto", float or tuple of floats, in (0, 1]
        Forgetting factors, whose predictions are combined; 1 forgets nothing. For "gaussian" only.
    fit_intercept : bool
        Whether to add an intercept.
    noise : "auto", "likelihood", "asymptotic", SubGaussian or Likelihood
        What intervals assume. "auto": for "gaussian", noise of unknown standard deviation; for
        shares and counts, independent rows whose labels may scatter more than the family's, by as
        much as residuals show; labels 0 and 1 are taken as independent. `SubGaussian` (for
        "gaussian") is noise of known scale. For the others, "likelihood" says that labels scatter
        just as the family's do, `Likelihood` that they do so times a dispersion, and "asymptotic"
        that they may scatter less, too.
    nonlinear : bool
        Whether predictions also use two functions of each feature: asinh z and z^2, at most 9, with
        z the standardised feature. They then follow means that bend or saturate, at two to five
        times the cost. All else stays that of the linear model: coefficients, intervals, `summary`.
    hashed : int, optional
        Add up columns, each with a random sign, in so many buckets, which are the features then:
        for thousands of sparse columns in like units, such as words or levels. Coefficients and
        their intervals are those of buckets. 1024 is a good number.

    Attributes
    ----------
    coef_ : (d,) array
        Coefficients of the score. Families other than "gaussian" predict by a mixture over ridges;
        these are averages over it.
    intercept_ : float
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Only after a data frame whose columns have names. Later frames may have them in any order.
    method_, state_
        The learner, `SelfTuned` or `RidgeMixture`, and its state. Predictions are those of the
        learner within limits, and in a stream combined with the running mean; with ``nonlinear``
        also with learners of functions of the features.

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
    A weight is the inverse noise variance of a row; for "gaussian" a common factor matters only if
    ``ridge`` or ``noise`` is given. It is not a number of copies: two equal rows say more about the
    noise than one of weight 2. So scikit-learn's ``check_sample_weight_equivalence_on_dense_data``
    and ``..._on_sparse_data`` do not hold. A row of weight 0 is ignored. Most of its checks use
    labels outside [0, 1], which families other than "gaussian" and "poisson" refuse. Weights and
    labels below 1e-100 in size, and features below 1e-50, count as 0: rescale a column of such
    numbers. Memory does not grow with the number of rows for "gaussian", unless ``nonlinear``;
    other families keep the rows. The time of a row grows with the square of the number of columns;
    beyond 2,000 of them a warning says how long it will be. Sparse matrices are converted to dense
    arrays, after hashing if ``hashed`` is given, and take as long as these.

    `fit` is a batch: the order of rows does not matter. `partial_fit` is a stream, and `refit` fits
    the rows of a stream as a batch. Predictions and coefficients after `fit` are free of the order
    of rows to rounding, as are estimates, standard errors and textbook intervals; anytime intervals
    follow the order in which rows were learnt.
    """

    family: str = "gaussian"
    ridge: str | float = "auto"
    forgetting: str | float | tuple[float, ...] = "auto"
    fit_intercept: bool = True
    noise: str | SubGaussian | Likelihood = "auto"
    nonlinear: bool = False
    hashed: int | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = least_label(self.family) >= 0
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> OnlineGLM:
        """Start again, and fit all rows as a batch: their order does not matter.

        Nothing is forgotten, features are scaled by their variances over all rows, and the ridge is
        chosen, or ridges are weighed, by the evidence of all rows; so are linear and nonlinear
        learners. With a forgetting factor below 1
        given, rows are learnt in the order given instead, as by `partial_fit`. Dask arrays or data
        frames are computed and taken in block by block, with the same result.
        """
        fresh, given = self._fresh(), (X, y, sample_weight, offset)
        for block in blocks_in_turn(*given) if isinstance(X, Collection) else [given]:
            fitted, rows = fresh._take(*block, batch=True)
            fitted.gather(*rows)
            fresh._fitted = fitted
        self._fitted = fresh._learnt.refitted()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> OnlineGLM:
        """Learn more rows as a stream, one after the other; after `fit`, go on from there.

        ``offset`` is added to the score of each row, such as the logarithm of an exposure;
        families "gaussian" and "poisson" take one.
        """
        self._learn(*self._take(X, y, sample_weight, offset))
        return self

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Array:
        """Learn more rows as `partial_fit` does; return the mean predicted for each before."""
        return self._learn(*self._take(X, y, sample_weight, offset))

    def _take(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        *,
        batch: bool = False,
    ) -> tuple[EstimatorState, Rows]:
        """Return what has been learnt, or a fresh state, and rows to learn, checked."""
        afresh = "_fitted" not in vars(self)
        x, names = self._read(X, afresh)
        n, d = x.shape
        labels = labels_of(y, n, type(self).__name__)
        w, o = weights_of(sample_weight, n), offsets_of(offset, n)
        if not afresh:
            return self._learnt, (x, labels, w, o)
        any_weight(w)
        model = start_model(
            self.family, self.ridge, self.forgetting, self.fit_intercept, d, self.nonlinear
        )
        model.check_noise(self.noise)
        if said := warning(n, d, self.family, batch, FEWER):
            warnings.warn(said, stacklevel=3)
        given = 0 if self._buckets is None else np.shape(X)[1]
        return EstimatorState([model], names, given=given), (x, labels, w, o)

    @property
    def _model(self) -> AnyModel:
        return self._learnt.models[0]

    def _suits(self, state: EstimatorState) -> bool:
        return state.classes is None

    @property
    def method_(self) -> object:
        """The regressor that predicts."""
        return self._model.method

    @property
    def state_(self) -> object:
        """Its state."""
        return self._model.state

    @property
    def coef_(self) -> Array:
        """The coefficients of the predictions."""
        return self._model.coefficients()[0]

    @property
    def intercept_(self) -> float:
        """The intercept of the predictions."""
        return self._model.coefficients()[1]

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Array:
        """Return the predicted mean at each row.

        After `fit` what the learner says, for "gaussian" within the range of the labels seen
        widened by a quarter, for counts up to about twice the largest. In a stream a mixture of
        that, of the same within narrower limits and of the running mean, which is at worst a little
        worse than each of them, whatever the data. With a ``ridge`` given it is the learner's.
        """
        x = self._rows(X)
        return self._model.predict(x, offsets_of(offset, len(x)))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination, R^2; 1 is best, a constant mean has 0."""
        means = self.predict(X, offset)
        labels = labels_of(y, len(means), type(self).__name__)
        w = any_weight(weights_of(sample_weight, len(means)))
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
        offset: ArrayLike | None = None,
        trials: ArrayLike = 1,
    ) -> Interval:
        """Return an interval for the mean, or for a new label, at each row.

        Intervals are around weighted least squares, or maximum likelihood, without ridge and
        forgetting, so a prediction may lie outside. Where an interval is infinite, has no width or
        rests on little, its ``note`` says why and what it takes: intervals at all times begin at
        row 2d + 10, with d features, those of shares and counts at three events.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        anytime : bool
            Whether to hold at all times at once, however often you look; such intervals depend on
            the order in which rows were learnt. False gives textbook intervals, for one row at one
            sample size fixed in advance.
        simultaneous : bool
            Whether to hold for all rows and all times at once, so also for rows chosen by looking
            at the data. False is for rows fixed in advance, and narrower, but for labels 0 and 1
            with few events; textbook intervals are.
        kind : "mean" or "observation"
            "observation" is for one new label, of weight 1 unless ``trials`` or ``offset`` say
            otherwise. Unless the noise is known it holds at one sample size fixed in advance. For
            counts and shares it ends at whole numbers, and so covers more than 1 - delta where
            these are small.
        offset : (n,) array or float, optional
            Added to the score, as in `partial_fit`.
        trials : (n,) array or int
            For a new label of "binomial" or "probit": the trials that it is a share of.

        Returns
        -------
        Interval
            Unpacks into lower and upper, and says what it promises and what that rests on.
        """
        x = self._rows(X)
        self._check_promise(delta, anytime, simultaneous)
        one_of("kind", kind, ("mean", "observation"))
        o, k = offsets_of(offset, len(x)), self._trials(trials, kind, len(x))
        found = self._model.interval(x, self.noise, delta, anytime, simultaneous, kind, o, k)
        means = self._model.predict(x, o)
        outside = int(((means < found.lower) | (means > found.upper)).sum())
        if kind == "observation" and SCORES.get(self.family) != "mean":
            outside = 0  # the mean of counts, or of 0 and 1, need not be near one of them
        notes = [found.note]
        if ROWS_OUTSIDE in found.note:
            names = self._learnt.feature_words or [f"x{i}" for i in range(x.shape[1])]
            notes += [tie_words(each, names) for each in self._model.ties if each.dropped]
        if outside:
            lying = OUTSIDE.format(count_of(outside, *LYING))
            notes.append(f"{lying}: {WHY_OUTSIDE}")
        found.note = joined(*notes)
        return found

    def _trials(self, given: ArrayLike, kind: str, count: int) -> Array | float:
        """Return the trials of new shares, as many as rows or one number."""
        if isinstance(given, int | float) and given == 1:
            return 1.0
        trials = numbers("trials", given)
        if trials.shape not in ((), (count,)):
            raise ValueError(f"trials has shape {trials.shape}; pass a number, or one per row")
        if (trials < 1).any() or (trials != np.floor(trials)).any():
            raise ValueError("trials are not all whole numbers of at least 1; pass such")
        if kind != "observation" or self.family not in SHARES:
            raise ValueError(
                "trials are of new shares: pass them with kind='observation' and family 'binomial' "
                "or 'probit' only"
            )
        return np.broadcast_to(trials, count)

    @property
    def predict_proba(self) -> NoReturn:
        """Absent: `predict` gives the probability of 1 for "binomial"."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba: with family 'binomial' predict returns "
            "the probability of 1; for classes use OnlineGLMClassifier"
        )

    def plot(
        self,
        delta: float = 0.05,
        feature_names: Sequence[str] | None = None,
        *,
        standardised: bool = True,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw estimates of the coefficients with the intervals of `summary`.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        feature_names : sequence of str, optional
            As in `summary`.
        standardised : bool
            Per standard deviation of each feature, so that features compare. Else per unit.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        summary = self.summary(delta, feature_names)
        spreads = self._model.spreads() if flag("standardised", standardised) else None
        return plot_coefficients(summary, SCORES.get(self.family, "score"), spreads, delta, ax)

    def joint_test(
        self,
        features: Sequence[str | int],
        value: ArrayLike = 0.0,
        *,
        anytime: bool = True,
    ) -> JointTest:
        """Test several coefficients at once: is any of these effects real?

        The hypothesis, to be fixed in advance, is that the coefficients of all ``features`` are
        ``value``. For family "gaussian", around least squares without ridge and forgetting.

        Parameters
        ----------
        features : sequence of str or int
            Names of columns, or their positions.
        value : float or one for each feature
        anytime : bool
            Whether the p-value holds at all times at once, however often you look. False gives the
            textbook's F test, for one sample size fixed in advance.

        Returns
        -------
        JointTest
            Statistic, p-value and evidence, and what they rest on.
        """
        model = self._model
        if not isinstance(model, LinearModel):
            raise ValueError(
                f"joint_test is for family 'gaussian', this is {self.family!r}; use the intervals "
                "of `summary` with delta over the number of features"
            )
        d = model.sums.dim
        names = self._learnt.feature_words or [f"x{i}" for i in range(d)]
        wanted = [names.index(f) if f in names else f for f in features]
        positions = [f for f in wanted if isinstance(f, int | np.integer) and 0 <= f < d]
        if not wanted or len({*positions}) < len(wanted):
            raise ValueError(
                f"features is {shown(features)}; pass different names of columns, or positions "
                f"from 0 to {d - 1}"
            )
        values = numbers("value", value)
        if values.shape not in ((), (len(wanted),)):
            raise ValueError(f"value has shape {values.shape}; pass a number, or one per feature")
        flag("anytime", anytime)
        return model.joint_test(positions, values, self.noise, anytime)

    def summary(self, delta: float = 0.05, feature_names: Sequence[str] | None = None) -> Summary:
        """Return a table of coefficients, with intervals that hold at all times and textbook ones.

        It prints as text and draws itself in notebooks.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        feature_names : sequence of str, optional
            Where the features were an array: of a pipeline, its
            ``pipeline[:-1].get_feature_names_out()``.
        """
        model, columns = self._model, self._names(feature_names)
        title = f"{self!r}, {count_of(model.state.count, 'row')}{model.quality}"
        return summarise(title, {"": model}, columns, self.noise, delta)
