"""What an estimator has learnt, and what a file holds of it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..printing import OneLine
from ..states import check_list, check_type
from .models import AnyModel

Label = str | bool | int | float


@dataclass(eq=False, repr=False)
class EstimatorState(OneLine):
    """Models, the names of columns and of classes.

    ``models`` has one entry, or one for each of three or more classes. ``columns`` is None where
    features have no names. ``classes`` is None for a regressor; ``label_type`` is numpy's name for
    the type of the labels.
    """

    models: list[AnyModel]
    columns: list[str] | None = None
    classes: list[Label] | None = None
    label_type: str = ""

    def __post_init__(self) -> None:
        check_type("EstimatorState.models", self.models, list)
        if not self.models or not all(isinstance(each, AnyModel) for each in self.models):
            raise ValueError("EstimatorState.models holds what is no model, or none")
        self.check()
        d = self.dim
        if self.columns is not None:
            check_list("EstimatorState.columns", self.columns, str)
            if not len(self.columns) == len(set(self.columns)) == d:
                raise ValueError(f"EstimatorState.columns are not {d} different names")
        if self.classes is not None:
            self._check_classes(self.classes)
        elif len(self.models) > 1:
            raise ValueError("EstimatorState.models are more than one, without classes")

    def _check_classes(self, classes: list[Label]) -> None:
        check_type("EstimatorState.classes", classes, list)
        check_type("EstimatorState.label_type", self.label_type, str)
        words = all(isinstance(each, str) for each in classes)
        numbers = all(isinstance(each, bool | int | float) for each in classes)
        k = len(set(classes)) if words or numbers else 0
        if k < 2 or sorted(set(classes)) != classes:
            raise ValueError("EstimatorState.classes are not two or more different labels in order")
        if len(self.models) != (1 if k == 2 else k):
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
        if len({(each.state.dim, each.state.count) for each in self.models}) != 1:
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")

    def refitted(self) -> "EstimatorState":
        """Return the state of the same rows fitted as a batch."""
        self.check()
        return replace(self, models=[each.refitted() for each in self.models])

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.models[0].state.dim

    @property
    def labels(self) -> NDArray[np.generic]:
        """The classes as an array."""
        return np.array(self.classes, dtype=self.label_type)
