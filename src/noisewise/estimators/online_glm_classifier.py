"""OnlineGLMClassifier: classes learnt row by row, with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..confidence import Interval
from ..inputs import one_of
from ..protocols import Array
from ..support.printing import count_of
from .class_model import ClassModel
from .curved_model import CurvedModel
from .estimator_state import AnyModel, EstimatorState, Rows, start_model
from .online_estimator import OnlineEstimator
from .scikit_learn import ClassifierMixin
from .summary import Summary, summarise
from .table_rows import any_weight, classes_of, weights_of

SEVERAL = "auto", "multinomial", "ovr"
LINEAR, AGAINST = ", and log odds linear in the features", "of each class against the rest"


@dataclass(eq=False, repr=False)
class OnlineGLMClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """Logistic regression that learns rows as they come and chooses its own ridge.

    A scikit-learn classifier. Two classes need one mixture of ridges, for the probability of the
    second class. Three or more have multinomial regression with a mixture of ridges; in a stream it
    is mixed with logistic regressions of each class against the rest and with the frequencies of
    classes, and the log loss of all rows is at most 0.60 above that of the first, 0.92 above the
    second and 3.0 above the third.

    Parameters
    ----------
    ridge : "auto" or float > 0
        A number is the ridge for features scaled to variance 1.
    fit_intercept : bool
        Whether to add an intercept.
    multi_class : {"auto", "multinomial", "ovr"}
        For three or more classes: the mixture, where ``ridge`` is "auto"; multinomial regression
        alone; or one-versus-rest alone, whose probabilities are divided by their sum.

    Attributes
    ----------
    classes_ : (k,) array
        The labels, in order; words, numbers or True and False.
    coef_ : (1, d) array, or (k, d) for k > 2 classes
        Coefficients of the log odds, averaged over the ridges. Those of several classes are of the
        multinomial model and add up to 0, so that the log odds of two classes have the difference
        of theirs; with "ovr" they are of each class against the rest.
    intercept_ : (1,) or (k,) array
        Likewise.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Only after a data frame whose columns have names. Later frames may have them in any order.

    Examples
    --------
    >>> model = OnlineGLMClassifier().fit([[0.0], [1.0], [8.0], [9.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[0.5], [7.0]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.predict_proba([[7.0]]).round(1)
    array([[0.2, 0.8]])

    Notes
    -----
    A weight multiplies the loss of a row. A row of weight 2 is predicted once and two copies twice,
    so scikit-learn's ``check_sample_weight_equivalence_on_dense_data`` and ``..._on_sparse_data``
    do not hold. The rows are kept, so memory grows with them. `fit` is a batch: the order of rows
    does not matter. `partial_fit` is a stream, whose ridges are weighed by how well each row was
    predicted from earlier ones, and `refit` fits its rows as a batch.
    """

    ridge: str | float = "auto"
    fit_intercept: bool = True
    multi_class: str = "auto"

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineGLMClassifier:
        """Start again, and fit all rows as a batch: their order does not matter."""
        fitted, rows = self._fresh()._take(X, y, None, sample_weight)
        fitted.gather(*rows)
        self._fitted = fitted.refitted()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineGLMClassifier:
        """Learn more rows as a stream, one after the other; after `fit`, go on from there.

        ``classes`` are all labels there will be, in the first call; without, those of its ``y``.
        """
        self._learn(*self._take(X, y, classes, sample_weight))
        return self

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Learn more rows as `partial_fit` does; return the probabilities of classes before."""
        return _probabilities(self._learn(*self._take(X, y, classes, sample_weight)))

    def _take(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[EstimatorState, Rows]:
        """Return what has been learnt, or a fresh state, and rows with the places of classes."""
        afresh = "_fitted" not in vars(self)
        x, names = self._read(X, afresh)
        labels = classes_of(y, len(x), type(self).__name__)
        w = weights_of(sample_weight, len(x))
        if afresh:
            any_weight(w)
            fitted = self._start(labels, classes, x.shape[1], names)
        else:
            fitted = self._learnt
            self._check_classes(classes)
        fitted.check()
        return fitted, (x, _places(fitted, labels), w, None)

    def _start(
        self,
        labels: NDArray[np.generic],
        classes: ArrayLike | None,
        d: int,
        names: list[str] | None,
    ) -> EstimatorState:
        given = labels if classes is None else classes_of(classes, None, type(self).__name__)
        known = np.unique(given)
        if len(known) < 2:
            raise ValueError(
                "This estimator needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {known.tolist()[0]!r}; partial_fit takes all of them as "
                "classes="
            )
        K, kind = len(known), one_of("multi_class", self.multi_class, SEVERAL)
        if K == 2 or kind == "ovr":
            models = [
                start_model("binomial", self.ridge, "auto", self.fit_intercept, d)
                for _ in range(1 if K == 2 else K)
            ]
            return EstimatorState(models, names, known.tolist(), known.dtype.str)
        several = ClassModel.start(K, self.ridge, self.fit_intercept, d, kind == "auto")
        return EstimatorState([], names, known.tolist(), known.dtype.str, several=several)

    def _check_classes(self, classes: ArrayLike | None) -> None:
        if classes is None:
            return
        given = np.unique(classes_of(classes, None, type(self).__name__))
        if given.tolist() != self._learnt.classes:
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                f"{self._learnt.classes!r}"
            )

    def _suits(self, state: EstimatorState) -> bool:
        return state.classes is not None and all(
            isinstance(each, CurvedModel) and each.method.family == "binomial"
            for each in state.models
        )

    @property
    def classes_(self) -> NDArray[np.generic]:
        """The labels, in order."""
        return self._learnt.labels

    @property
    def coef_(self) -> Array:
        """The coefficients of the log odds."""
        if (several := self._learnt.several) is not None:
            return several.state.coefficients
        return np.array([each.coefficients()[0] for each in self._learnt.models])

    @property
    def intercept_(self) -> Array:
        """The intercepts of the log odds."""
        if (several := self._learnt.several) is not None:
            return several.state.intercepts
        return np.array([each.coefficients()[1] for each in self._learnt.models])

    def summary(self, delta: float = 0.05, feature_names: Sequence[str] | None = None) -> Summary:
        """Return a table of coefficients of the log odds, with their intervals.

        Of two classes, it is for the second. Of several, each but the first has lines of its own:
        the log odds against the first in the multinomial model, fitted to the rows of the two. With
        ``multi_class="ovr"`` each has lines for that class against the rest. ``feature_names`` are
        as in `OnlineGLM.summary`.
        """
        columns, fitted, classes = self._names(feature_names), self._learnt, self.classes_.tolist()
        odds = f"the log odds of {classes[1]!r} against {classes[0]!r}"
        models: dict[str, AnyModel] = {}
        if fitted.several is not None:
            odds = f"the log odds of each class against {classes[0]!r}, multinomial model"
            for k, pair in fitted.several.against_first().items():
                models[f"{classes[k]}: "] = pair
        elif len(classes) > 2:
            odds = "the log odds of each class against the rest"
            keys = [f"{name}: " for name in classes]
            models = dict(zip(keys, fitted.models, strict=True))
        else:
            models = {"": fitted.models[0]}
        title = f"{self!r}, {count_of(fitted.count, 'row')}"
        return summarise(title, models, columns, "auto", delta, f"Coefficients of {odds}.")

    def predict_interval(
        self,
        X: ArrayLike,
        delta: float = 0.05,
        *,
        anytime: bool = True,
        simultaneous: bool = False,
    ) -> Interval:
        r"""Return intervals for the probability of each class at each row, (n, k) arrays.

        Intervals are around maximum likelihood without ridge, so a prediction may lie outside. Of
        several classes they rest on the multinomial model. There rows of two classes alone are a
        logistic regression, with an interval for their log odds; those of a class and each other
        one, at :math:`\delta/(k-1)`, bound its probability. They are wider than need be, by a
        third for three classes and twice as wide for ten. With ``multi_class="ovr"`` they rest on
        the logistic regression of that class against the rest. That may hold for some classes, but
        hardly for all at once.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that an interval may miss.
        anytime : bool
            Whether to hold at all times at once, however often you look. False gives textbook
            intervals, for one row at one sample size fixed in advance.
        simultaneous : bool
            Whether to hold for all rows, classes and times at once.

        Returns
        -------
        Interval
            Unpacks into lower and upper, and says what it promises and what that rests on.
        """
        x, fitted = self._rows(X), self._learnt
        fitted.check()
        self._check_promise(delta, anytime, simultaneous)
        if fitted.several is not None:
            return fitted.several.pairs().interval(x, delta, anytime, simultaneous, fitted.classes)
        part = delta / len(fitted.models) if simultaneous else delta
        found = [
            each.interval(x, "auto", part, anytime, simultaneous, "mean") for each in fitted.models
        ]
        low, high = (np.column_stack(each) for each in zip(*found, strict=True))
        rests_on = "; ".join(dict.fromkeys(each.rests_on for each in found))
        if len(found) == 1:
            low, high = np.hstack([1 - high, low]), np.hstack([1 - low, high])
            return Interval(low, high, found[0].promise, rests_on + LINEAR, found[0].note)
        named = zip(self.classes_.tolist(), found, strict=True)
        note = "; ".join(f"{name}: {each.note}" for name, each in named if each.note)
        return Interval(low, high, found[0].promise, f"{rests_on}{LINEAR} {AGAINST}", note)

    def _shares(self, x: Array) -> Array:
        """Return the probability that each model gives to its class."""
        fitted = self._learnt
        fitted.check()
        if fitted.several is not None:
            return fitted.several.predict(x)
        return np.column_stack([each.predict(x) for each in fitted.models])

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the log odds of the second class, or of each of several against the rest."""
        p = self._shares(self._rows(X))
        odds = np.log(p) - np.log1p(-p)
        return odds if odds.shape[1] > 1 else odds[:, 0]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class at each row."""
        return _probabilities(self._shares(self._rows(X)))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of the probability of each class."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Return the most probable class at each row; of equals, the first."""
        p = self._shares(self._rows(X))
        best = p.argmax(axis=1) if p.shape[1] > 1 else (p[:, 0] > 0.5).astype(np.int64)
        return self.classes_[best]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy: the share of rows, by weight, whose class is predicted."""
        found = self.predict(X)
        labels = classes_of(y, len(found), type(self).__name__)
        w = any_weight(weights_of(sample_weight, len(found)))
        return float(np.average(found == labels, weights=w))


def _probabilities(p: Array) -> Array:
    """Return the probability of each class: of two, or of several that sum up to 1."""
    return p / p.sum(axis=1, keepdims=True) if p.shape[1] > 1 else np.hstack([1 - p, p])


def _places(fitted: EstimatorState, labels: NDArray[np.generic]) -> Array:
    """Return the place of each label among the classes."""
    place = {label: i for i, label in enumerate(fitted.classes or ())}
    found = [place.get(label, -1) for label in labels.tolist()]
    if -1 in found:
        at = found.index(-1)
        raise ValueError(
            f"y has the class {labels.tolist()[at]!r} at row {at}, not among {fitted.classes!r}; "
            "name all classes in the first call of partial_fit, as classes="
        )
    return np.array(found, dtype=float)
