"""What an estimator has learnt, and what a file holds of it: the model of a family, or several.

Estimators contain no mathematics; they ask a model for it. Every model has a ``method`` (a spec)
and its ``state``, and the same verbs: `start`, `learn` (which returns what was predicted before),
`gather` (rows without predicting them) and `refitted` (all of them as a batch), `predict`,
`interval`, `coefficients`, `coefficient_interval`, `spreads` (of features), `check` (was an update
interrupted half-way?) and `check_noise` (can intervals rest on that?); ``centre``, ``quality`` and
``caution`` are words for a table. Estimators check rows; an ``offset`` is added to scores.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..inputs import flag, one_of, shown
from ..model.families import BY_LINK, FAMILIES
from ..protocols import Array
from ..storage.states import COUNT, check_fields, check_list, check_type
from ..support.printing import OneLine
from .class_model import ClassModel
from .curved_model import CurvedModel
from .linear_model import LinearModel

Label = str | bool | int | float
Rows = tuple[Array, Array, Array, Array | None]  # features, labels or places, weights, offsets
AnyModel = LinearModel | CurvedModel
KINDS: dict[str, type[AnyModel]] = {
    "gaussian": LinearModel,
    "identity": LinearModel,
    **dict.fromkeys((*FAMILIES, *BY_LINK), CurvedModel),
}


def start_model(
    family: str,
    ridge: str | float,
    forgetting: str | float | tuple[float, ...],
    fit_intercept: bool,
    dim: int,
    nonlinear: bool = False,
) -> AnyModel:
    """Return the model of a family that has learnt nothing."""
    kind = KINDS[one_of("family", family, tuple(KINDS))]
    if flag("nonlinear", nonlinear):
        for name, given, wanted in (
            ("ridge", ridge, "auto"),
            ("fit_intercept", fit_intercept, True),
        ):
            if not isinstance(given, type(wanted)) or given != wanted:
                raise ValueError(
                    f"nonlinear is True and {name} {shown(given)}; functions of the features need "
                    f"{name}={wanted!r}: leave one of the two out"
                )
    return kind.start(family, ridge, forgetting, fit_intercept, dim, nonlinear)


def least_label(family: object) -> float:
    """Return the least label of a family, -infinity where there is none."""
    name = BY_LINK.get(family, family) if isinstance(family, str) else ""
    return FAMILIES[name].label_range[0] if name in FAMILIES else -math.inf


@dataclass(eq=False, repr=False)
class EstimatorState(OneLine):
    """Models, the names of columns and of classes.

    ``models`` has one entry, or one for each of three or more classes, or none where these have one
    model together, ``several``. ``columns`` is None where features have no names. ``classes`` is
    None for a regressor; ``label_type`` is numpy's name for the type of the labels. ``given`` is
    the number of columns that are hashed, 0 where none are.
    """

    models: list[AnyModel]
    columns: list[str] | None = None
    classes: list[Label] | None = None
    label_type: str = ""
    given: int = 0
    several: ClassModel | None = None

    def __post_init__(self) -> None:
        check_type("EstimatorState.models", self.models, list)
        if self.several is not None:
            check_type("EstimatorState.several", self.several, ClassModel)
        if bool(self.models) == (self.several is not None) or not all(
            isinstance(each, AnyModel) for each in self.models
        ):
            raise ValueError("EstimatorState.models holds what is no model, or none")
        self.check()
        check_fields(self, given=COUNT)
        d = self.width
        if self.columns is not None:
            check_list("EstimatorState.columns", self.columns, str)
            if not len(self.columns) == len(set(self.columns)) == d:
                raise ValueError(f"EstimatorState.columns are not {d} different names")
        if self.classes is not None:
            self._check_classes(self.classes)
        elif len(self.models) > 1 or self.several is not None:
            raise ValueError("EstimatorState.models are more than one, without classes")

    def _check_classes(self, classes: list[Label]) -> None:
        check_type("EstimatorState.classes", classes, list)
        check_type("EstimatorState.label_type", self.label_type, str)
        words = all(isinstance(each, str) for each in classes)
        numbers = all(isinstance(each, bool | int | float) for each in classes)
        k = len(set(classes)) if words or numbers else 0
        if k < 2 or sorted(set(classes)) != classes:
            raise ValueError("EstimatorState.classes are not two or more different labels in order")
        together = 0 if self.several is None else self.several.method.classes
        if (together or len(self.models)) != (1 if k == 2 else k):
            raise ValueError(f"EstimatorState.models are not those of {k} classes")
        try:
            kept = self.labels.tolist() == classes
        except (TypeError, ValueError, OverflowError):
            kept = False
        if not kept:
            raise ValueError(f"EstimatorState.label_type {self.label_type!r} is not of its classes")

    def check(self) -> None:
        """Raise unless all models have learnt the same rows."""
        for each in self.models:
            each.check()
        if self.several is not None:
            self.several.check()
        elif len({(each.state.dim, each.state.count) for each in self.models}) != 1:
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")

    def _labels(self, labels: Array) -> list[Array]:
        """Return the labels of each model: of classes, is it its own?"""
        if self.classes is None:
            return [labels]
        own = (1,) if len(self.models) == 1 else range(len(self.models))
        return [1.0 * (labels == k) for k in own]

    def learn(self, x: Array, y: Array, w: Array, offset: Array | None) -> Array:
        """Learn checked rows; return the mean before each, or that of each class."""
        if self.several is not None:
            return self.several.learn(x, y, w)
        pairs = zip(self.models, self._labels(y), strict=True)
        means = [model.learn(x, own, w, offset) for model, own in pairs]
        return means[0] if self.classes is None else np.column_stack(means)

    def gather(self, x: Array, y: Array, w: Array, offset: Array | None) -> None:
        """Take in checked rows for `refitted`, without predicting them."""
        if self.several is not None:
            self.several.gather(x, y, w)
        for model, own in zip(self.models, self._labels(y), strict=True):
            model.gather(x, own, w, offset)

    def refitted(self) -> "EstimatorState":
        """Return the state of the same rows fitted as a batch."""
        self.check()
        several = None if self.several is None else self.several.refitted()
        return replace(self, models=[each.refitted() for each in self.models], several=several)

    @property
    def dim(self) -> int:
        """The number of features."""
        return (self.several or self.models[0]).state.dim

    @property
    def count(self) -> int:
        """The number of rows learnt."""
        return (self.several or self.models[0]).state.count

    @property
    def width(self) -> int:
        """The number of columns, which are the features unless they are hashed."""
        return self.given or self.dim

    @property
    def feature_words(self) -> list[str] | None:
        """The names of the features: of columns, or buckets; None where they have none."""
        if not self.given:
            return self.columns
        return [f"bucket {i}" for i in range(self.dim)]

    @property
    def labels(self) -> NDArray[np.generic]:
        """The classes as an array."""
        return np.array(self.classes, dtype=self.label_type)
