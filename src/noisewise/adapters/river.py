"""Estimators as river's models: rows are dictionaries, and come one by one or in data frames."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.online_glm import OnlineGLM
from ..estimators.online_glm_classifier import OnlineGLMClassifier
from ..inputs import numbers, shown
from ..protocols import Array
from ..support.supported import install

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from pandas import Series

try:
    from river import base
except ModuleNotFoundError as error:
    raise ImportError(
        f"this adapter needs {error.name}; install it with: {install('river')}"
    ) from None

Row = Mapping[Hashable, float]
Names = tuple[Hashable, ...] | None


class Features:
    """The features of a model in a fixed order; dictionaries and data frames read in that order."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names = tuple(names)
        self.known = frozenset(self.names)
        self.warned = False
        if not self.names:
            raise ValueError("the first row has no features; pass their names as features=")

    def read(self, x: Row | Frame) -> Array:
        """Return rows (n, d), with 0 for features that are not there."""
        self._warn_of_others(_names(x))
        if isinstance(x, Mapping):
            return numbers("x", [[x.get(name, 0.0) for name in self.names]], check=False)
        frame = x.reindex(columns=list(self.names), fill_value=0.0)
        return numbers("X", frame.to_numpy(), check=False)

    def _warn_of_others(self, given: Iterable[Hashable]) -> None:
        if self.warned or self.known.issuperset(given):
            return
        self.warned = True
        first = next(name for name in given if name not in self.known)
        warnings.warn(
            f"feature {shown(first)} was not in the first row and is ignored, as are all others "
            "that appear later; pass all names as features=",
            stacklevel=5,
        )


def _names(x: Row | Frame) -> Iterable[Hashable]:
    return x if isinstance(x, Mapping) else x.columns


class _Adapter:
    """What both models share: parameters, and a fresh estimator with the first row."""

    model: OnlineGLM | OnlineGLMClassifier | None
    features: Names
    _learnt: tuple[Features, OnlineGLM | OnlineGLMClassifier] | None

    def _learn(
        self, x: Row | Frame, y: ArrayLike, w: float, usual: type, **first: ArrayLike
    ) -> None:
        if w == 0:
            return
        if self._learnt is None:
            model = usual() if self.model is None else self.model
            estimator = type(model)(**model.get_params(deep=False))
            features = Features(_names(x) if self.features is None else self.features)
        else:
            features, estimator = self._learnt
        rows = features.read(x)
        estimator.partial_fit(rows, y, sample_weight=np.full(len(rows), w), **first)
        self._learnt = features, estimator


class RiverRegressor(_Adapter, base.MiniBatchRegressor):  # type: ignore[misc]
    """`OnlineGLM` as a regressor of river.

    Parameters
    ----------
    model : OnlineGLM, optional
        Its parameters are used, what it has learnt is not; ``OnlineGLM()`` by default.
    features : tuple of names, optional
        All features there will be; by default those of the first row that is learnt. Features that
        a row lacks are 0. Others are ignored, with one warning.

    Examples
    --------
    >>> model = RiverRegressor()
    >>> for x, y in [(0.0, 1.0), (1.0, 3.0), (3.0, 7.0), (2.0, 5.0), (4.0, 9.0)]:
    ...     model.learn_one({"x": x}, y)
    >>> round(model.predict_one({"x": 2.5}), 1)
    6.0
    """

    def __init__(self, model: OnlineGLM | None = None, features: Names = None) -> None:
        self.model = model
        self.features = features
        self._learnt = None

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; ``w`` is its weight."""
        self._learn(x, numbers("y", [y], check=False), w, OnlineGLM)

    def learn_many(self, X: Frame, y: Series) -> None:
        """Learn the rows of a data frame in order, as `learn_one` would."""
        self._learn(X, numbers("y", y, check=False), 1.0, OnlineGLM)

    def predict_one(self, x: Row) -> float:
        """Return the predicted mean; 0 before anything is learnt."""
        return float(self._means(x)[0])

    def predict_many(self, X: Frame) -> Series:
        """Return the predicted mean of each row."""
        import pandas as pd

        return pd.Series(self._means(X), index=X.index)

    def _means(self, x: Row | Frame) -> Array:
        if self._learnt is None:
            return np.zeros(1 if isinstance(x, Mapping) else len(x))
        features, estimator = self._learnt
        return np.asarray(estimator.predict(features.read(x)))


class RiverClassifier(_Adapter, base.MiniBatchClassifier):  # type: ignore[misc]
    """`OnlineGLMClassifier` as a classifier of river, for labels True and False.

    For other labels wrap it: ``river.multiclass.OneVsRestClassifier(RiverClassifier())``.

    Parameters
    ----------
    model : OnlineGLMClassifier, optional
        Its parameters are used, what it has learnt is not.
    features : tuple of names, optional
        All features there will be, as in `RiverRegressor`.

    Examples
    --------
    >>> model = RiverClassifier()
    >>> model.predict_proba_one({"x": 1.0})
    {False: 0.5, True: 0.5}
    >>> model.learn_one({"x": 1.0}, True)
    >>> model.predict_one({"x": 1.0})
    True

    Notes
    -----
    It keeps the rows it has learnt, so its memory grows with them.
    """

    def __init__(self, model: OnlineGLMClassifier | None = None, features: Names = None) -> None:
        self.model = model
        self.features = features
        self._learnt = None

    def learn_one(self, x: Row, y: bool, w: float = 1.0) -> None:
        """Learn one row; ``w`` is its weight."""
        self._learn_labels(x, [y], w)

    def learn_many(self, X: Frame, y: Series) -> None:
        """Learn the rows of a data frame in order, as `learn_one` would."""
        self._learn_labels(X, y, 1.0)

    def _learn_labels(self, x: Row | Frame, y: Iterable[object], w: float) -> None:
        labels = list(y)
        for label in labels:
            if label not in (False, True):
                raise ValueError(
                    f"y is {shown(label)}; pass True or False, or wrap this classifier in "
                    "river.multiclass.OneVsRestClassifier"
                )
        classes = np.array([False, True])
        self._learn(x, np.array(labels, dtype=bool), w, OnlineGLMClassifier, classes=classes)

    def predict_proba_one(self, x: Row, **kwargs: object) -> dict[bool, float]:
        """Return the probability of each label; one half each before anything is learnt."""
        p = float(self._probabilities(x)[0])
        return {False: 1 - p, True: p}

    def predict_proba_many(self, X: Frame) -> Frame:
        """Return a data frame of the probabilities of False and True, one row each."""
        import pandas as pd

        p = self._probabilities(X)
        return pd.DataFrame({False: 1 - p, True: p}, index=X.index)

    def _probabilities(self, x: Row | Frame) -> Array:
        if self._learnt is None:
            return np.full(1 if isinstance(x, Mapping) else len(x), 0.5)
        features, estimator = self._learnt
        return np.asarray(estimator.predict_proba(features.read(x)))[:, 1]
