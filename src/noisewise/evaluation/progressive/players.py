"""Models of several kinds behind one verb: learn rows, return what was predicted before each."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ...confidence import Interval
from ...inputs import shown
from ...model.families import BY_LINK
from ...protocols import AnyRegressor, Array, Regressor, trait
from ...simulate import started


class Estimator(Protocol):
    """What scikit-learn's estimators and ours have, where they have it."""

    get_params: Callable[..., dict[str, object]]
    partial_fit: Callable[..., object]
    predict: Callable[..., Array]
    predict_proba: Callable[..., Array]
    update: Callable[..., Array]
    predict_interval: Callable[..., Interval]


def has(model: object, *names: str) -> bool:
    """Whether a model has these now: some methods of scikit-learn depend on parameters."""
    return all(hasattr(model, name) for name in names)


class Player(Protocol):
    """What takes part in an evaluation."""

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Learn the rows in order; return the mean predicted before each label."""


class RegressorPlayer:
    """A regressor of noisewise: its `update` returns what it predicted."""

    def __init__(self, model: AnyRegressor, x: Array, w: Array) -> None:
        self.model, self.state = model, started(model, x, w)

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Learn the rows in order; return the mean predicted before each label."""
        return np.asarray(self.model.update(self.state, x, y, w))


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows with names for their columns, as much of a data frame as our estimators look at."""

    x: Array
    columns: Sequence[str]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return self.x


class EstimatorPlayer:
    """An estimator of noisewise, whose `update` returns what it predicted."""

    def __init__(
        self,
        model: Estimator,
        classes: Sequence[object] | None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.model, self.classes, self.columns = model, classes, columns
        self.learnt = False

    def update(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> Array:
        """Learn the rows in order; return the mean predicted before each label."""
        self.learnt = self.learnt or bool(w.any())
        if not self.learnt:  # an estimator does not start with rows of weight 0
            return np.zeros(y.shape)
        if self.classes is None:
            return np.asarray(self.model.update(self._named(x), y, w, offset))
        labels = np.asarray(self.classes)[_codes(y)]
        means = self.model.update(self._named(x), labels, np.asarray(self.classes), w)
        return np.asarray(means[:, 1] if len(self.classes) == 2 else means)

    @property
    def has_intervals(self) -> bool:
        """Whether it can be asked for intervals by now."""
        return self.learnt and self.classes is None

    def interval(
        self, x: Array, delta: float, kind: str, offset: Array | None = None, **more: object
    ) -> Interval:
        """Return intervals at rows that were not learnt."""
        shift = {} if offset is None else {"offset": offset}
        return self.model.predict_interval(self._named(x), delta, kind=kind, **shift, **more)

    def has_label_intervals(self, family: str, w: Array) -> bool:
        """Whether there are intervals of labels of these weights; of one trial they say nothing."""
        if family == "binomial":
            return self.classes is None and bool((w == np.rint(w)).all() and w.max() > 1)
        return True

    def label_interval(
        self, family: str, x: Array, w: Array, delta: float, offset: Array | None = None
    ) -> Interval:
        """Return intervals of labels of these weights, at rows that were not learnt.

        A share of weight w has w trials, and w times a count of weight w is one of w times the
        exposure. In a textbook interval of a number, the squares of the uncertainty of the mean and
        of the noise, over the weight, are added.
        """
        if family == "binomial":
            return self.interval(x, delta, "observation", offset, trials=w)
        if (w == 1).all():
            return self.interval(x, delta, "observation", offset)
        if family == "poisson":
            exposure = np.log(w) if offset is None else np.log(w) + offset
            found = self.interval(x, delta, "observation", exposure)
            return Interval(found.lower / w, found.upper / w, found.promise, found.rests_on)
        label = self.interval(x, delta, "observation", offset, anytime=False)
        mean = self.interval(x, delta, "mean", offset, anytime=False)
        known = np.isfinite(label.upper) & np.isfinite(mean.upper)
        ends = (np.where(known, each, 0.0) for each in (*mean, *label))
        mean_low, mean_high, low, high = ends
        shared, whole = (mean_high - mean_low) / 2, (high - low) / 2
        half = np.sqrt(shared**2 + np.maximum(whole**2 - shared**2, 0.0) / w)
        half = np.where(known, half, np.inf)
        centre = (low + high) / 2
        return Interval(centre - half, centre + half, label.promise, label.rests_on)

    def _named(self, x: Array) -> Array | NamedRows:
        return x if self.columns is None else NamedRows(x, self.columns)


class PartialFitPlayer:
    """An estimator with `partial_fit`, asked and taught row by row."""

    def __init__(self, model: Estimator, classes: Sequence[object] | None) -> None:
        self.model, self.classes = model, classes
        self.learnt = False
        if classes is not None and not has(model, "predict_proba"):
            raise ValueError(
                f"model is {shown(model)}, which has no predict_proba and so no log loss; pass a "
                "classifier that predicts probabilities"
            )

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Learn the rows in order; return the mean predicted before each label."""
        labels = y if self.classes is None else np.asarray(self.classes)[_codes(y)]
        means = np.zeros(y.shape)
        weighted = not (w == 1).all()
        for i in range(len(x)):
            row, here = x[i : i + 1], slice(i, i + 1)
            if self.learnt:
                means[i] = self._predict(row)
            first = {} if self.classes is None or self.learnt else {"classes": self.classes}
            weight = {"sample_weight": w[here]} if weighted else {}
            self.model.partial_fit(row, labels[here], **first, **weight)
            self.learnt = True
        return means

    def _predict(self, row: Array) -> float | Array:
        if self.classes is None:
            return float(np.asarray(self.model.predict(row)).ravel()[0])
        found = self.model.predict_proba(row)[0]
        return float(found[1]) if len(self.classes) == 2 else found


def play(player: Player, family: str, x: Array, y: Array, w: Array, offset: Array | None) -> Array:
    """Let a player learn rows whose scores have an offset; return the mean before each label.

    A count of exposure e and weight w is e times a label of mean per unit and weight w e.
    """
    if offset is None:
        return player.update(x, y, w)
    if isinstance(player, EstimatorPlayer):
        return player.update(x, y, w, offset)
    if family == "gaussian":
        return player.update(x, y - offset, w) + offset
    exposure = np.exp(offset)
    return player.update(x, y / exposure, w * exposure) * exposure


def _codes(y: Array) -> NDArray[np.int64]:
    """Return the position of each label among the classes."""
    return (y if y.ndim == 1 else y.argmax(axis=1)).astype(np.int64)


def player(
    model: object,
    x: Array,
    w: Array,
    classes: Sequence[object] | None = None,
    columns: Sequence[str] | None = None,
) -> Player:
    """Return a fresh player of these rows; the model itself is left as it is.

    ``classes`` are what a classifier learns in place of labels 0, 1, ...
    """
    if isinstance(model, Regressor) and not has(model, "partial_fit"):
        return RegressorPlayer(model, x, w)
    if has(model, "partial_fit", "get_params"):
        fresh = fresh_copy(cast(Estimator, model))
        classes = classes if family_of(model) == "classes" else None
        if type(model).__module__.startswith("noisewise."):
            return EstimatorPlayer(fresh, classes, columns)
        return PartialFitPlayer(fresh, classes)
    raise ValueError(
        f"model is {shown(model)}; pass OnlineGLM(), a regressor of noisewise, or an estimator "
        "with partial_fit"
    )


def fresh_copy(model: Estimator) -> Estimator:
    """Return an estimator with the same parameters that has learnt nothing."""
    return type(model)(**{name: deepcopy(v) for name, v in model.get_params(deep=False).items()})


def family_of(model: object) -> str:
    """Return how labels are scored: gaussian, binomial, poisson, or "classes" for a classifier."""
    tags: object = None if has(model, "family") else trait(model, "__sklearn_tags__", None)
    kind = trait(tags(), "estimator_type", "") if callable(tags) else ""
    if kind == "classifier" or has(model, "predict_proba"):
        return "classes"
    link: object = trait(trait(trait(model, "glm", None), "link", None), "name", "")
    family = str(trait(model, "family", link))
    family = BY_LINK.get(family, family)
    return family if family in ("binomial", "poisson") else "gaussian"
