"""Models of several kinds behind one verb: learn rows, return what was predicted before each."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from ..confidence import Interval
from ..inputs import shown
from ..protocols import AnyRegressor, Array, Regressor, trait
from ..simulate import started


class Player(Protocol):
    """What takes part in an evaluation."""

    def update(self, x: Any, y: Array, w: Array) -> Array:
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.x


class EstimatorPlayer:
    """An estimator of noisewise, whose `update` returns what it predicted."""

    def __init__(
        self, model: Any, classes: Sequence[object] | None, columns: Sequence[str] | None = None
    ) -> None:
        self.model, self.classes, self.columns = model, classes, columns
        self.learnt = False

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Learn the rows in order; return the mean predicted before each label."""
        self.learnt = self.learnt or bool(w.any())
        if not self.learnt:  # an estimator does not start with rows of weight 0
            return np.zeros(y.shape)
        if self.classes is None:
            return np.asarray(self.model.update(self._named(x), y, w))
        labels = np.asarray(self.classes)[_codes(y)]
        means = self.model.update(self._named(x), labels, np.asarray(self.classes), w)
        return np.asarray(means[:, 1] if len(self.classes) == 2 else means)

    @property
    def has_intervals(self) -> bool:
        """Whether it can be asked for intervals by now."""
        return self.learnt and hasattr(self.model, "predict_interval")

    def interval(self, x: Array, delta: float, kind: str) -> Interval:
        """Return intervals at rows that were not learnt."""
        return cast(Interval, self.model.predict_interval(self._named(x), delta, kind=kind))

    def _named(self, x: Array) -> Array | NamedRows:
        return x if self.columns is None else NamedRows(x, self.columns)


class PartialFitPlayer:
    """An estimator with `partial_fit`, asked and taught row by row."""

    def __init__(self, model: Any, classes: Sequence[object] | None) -> None:
        self.model, self.classes = model, classes
        self.learnt = False
        if classes is not None and not hasattr(model, "predict_proba"):
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

    def _predict(self, row: Array) -> Any:
        if self.classes is None:
            return float(np.asarray(self.model.predict(row)).ravel()[0])
        found = self.model.predict_proba(row)[0]
        return found[1] if len(self.classes) == 2 else found


def _codes(y: Array) -> Any:
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
    if isinstance(model, Regressor) and not hasattr(model, "partial_fit"):
        return RegressorPlayer(model, x, w)
    if hasattr(model, "partial_fit") and hasattr(model, "get_params"):
        fresh = fresh_copy(model)
        classes = classes if family_of(model) == "classes" else None
        if type(model).__module__.startswith("noisewise."):
            return EstimatorPlayer(fresh, classes, columns)
        return PartialFitPlayer(fresh, classes)
    raise ValueError(
        f"model is {shown(model)}; pass OnlineGLM(), a regressor of noisewise, or an estimator "
        "with partial_fit"
    )


def fresh_copy(model: Any) -> Any:
    """Return an estimator with the same parameters that has learnt nothing."""
    return type(model)(**{name: deepcopy(v) for name, v in model.get_params(deep=False).items()})


def family_of(model: object) -> str:
    """Return how labels are scored: gaussian, binomial, poisson, or "classes" for a classifier."""
    tags: Any = None if hasattr(model, "family") else trait(model, "__sklearn_tags__", None)
    kind = trait(tags(), "estimator_type", "") if callable(tags) else ""
    if kind == "classifier" or hasattr(model, "predict_proba"):
        return "classes"
    link: object = trait(trait(trait(model, "glm", None), "link", None), "name", "")
    family = str(trait(model, "family", link))
    family = {"logistic": "binomial", "exponential": "poisson"}.get(family, family)
    return family if family in ("binomial", "poisson") else "gaussian"
