"""What the estimators share: columns by name, and what has been learnt."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs import flag, integer, probability
from ..protocols import Array
from ..support.forking import Inside
from .estimator_state import EstimatorState, Rows
from .hashing import hashed_rows
from .scikit_learn import BaseEstimator, NotFittedError
from .table_rows import column_names, column_order, rows_of

if TYPE_CHECKING:
    from sklearn.utils import Tags


class OnlineEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose only fitted attribute is an `EstimatorState`."""

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    @property
    def _learnt(self) -> EstimatorState:
        fitted: EstimatorState | None = vars(self).get("_fitted")
        if fitted is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or "
                "'partial_fit' with appropriate arguments before using this estimator."
            )
        return fitted

    @property
    def n_features_in_(self) -> int:
        """The number of features, of those that are hashed the number of columns."""
        return self._learnt.width

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the columns of the first data frame."""
        if self._learnt.columns is None:
            raise AttributeError("the features had no names")
        return np.array(self._learnt.columns, dtype=object)

    def _names(self, given: Sequence[str] | None) -> list[str] | None:
        """Return the names of features, those that are given or those of the columns."""
        if given is None or self._learnt.given:
            return self._learnt.feature_words
        names = [str(each) for each in given]
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"feature_names has {len(names)} names; pass one for each of "
                f"{self.n_features_in_} features"
            )
        return names

    def _fresh(self) -> Self:
        """Return an estimator with the same parameters that has learnt nothing."""
        fresh = copy(self)
        fresh.__dict__.pop("_fitted", None)
        return fresh

    def refit(self) -> Self:
        """Fit the rows learnt so far as a batch, as `fit` would, without reading them again."""
        self._fitted = self._learnt.refitted()
        return self

    def _learn(self, fitted: EstimatorState, rows: Rows) -> Array:
        """Learn checked rows as a stream; return what was predicted for each before."""
        with Inside(self):
            means = fitted.learn(*rows)
            self._fitted = fitted
        return means

    def _read(self, X: ArrayLike, afresh: bool) -> tuple[Array, list[str] | None]:
        """Return rows and the names of their columns, which are those of the first fit or new."""
        if not afresh:
            return self._rows(X, stacklevel=5), None
        names = column_names(X)
        if self._buckets is None:
            return rows_of(X, names), names
        return hashed_rows(X, self._buckets, names)[0], names

    @property
    def _buckets(self) -> int | None:
        """How many buckets columns are hashed into."""
        given = vars(self).get("hashed")
        return None if given is None else integer("hashed", given)

    def _rows(self, X: ArrayLike, stacklevel: int = 3) -> Array:
        """Return the rows of ``X``, its columns in the order of the first fit."""
        fitted, name, given = self._learnt, type(self).__name__, column_names(X)
        known = fitted.columns
        if given is None and known is not None:
            words = f"X does not have valid feature names, but {name} was fitted with feature names"
            warnings.warn(words, stacklevel=stacklevel)
        elif given is not None and known is None:
            words = f"X has feature names, but {name} was fitted without feature names"
            warnings.warn(words, stacklevel=stacklevel)
        order = column_order(known, given) if known and given else None
        if fitted.given:
            x, width = hashed_rows(X, fitted.dim, given, order)
        else:
            x = rows_of(X, given)
            width = x.shape[1]
        if width != fitted.width:
            raise ValueError(
                f"X has {width} features, but {name} is expecting {fitted.width} features as input."
            )
        return x if order is None or fitted.given else x[:, order]

    @staticmethod
    def _check_promise(delta: float, anytime: bool, simultaneous: bool) -> None:
        probability("delta", delta)
        flag("anytime", anytime)
        if flag("simultaneous", simultaneous) and not anytime:
            raise ValueError(
                "simultaneous is True and anytime False; textbook intervals are for one row: leave "
                "one of the two out"
            )

    def _saved_state(self) -> EstimatorState:
        """Return what `noisewise.save` writes beside the parameters."""
        self._learnt.check()
        return self._learnt

    def _restore(self, state: object) -> None:
        """Take what `noisewise.load` has read."""
        if not isinstance(state, EstimatorState) or not self._suits(state):
            raise ValueError(f"it holds a state that is not of {type(self).__name__}")
        self._fitted = state

    def _suits(self, state: EstimatorState) -> bool:
        """Return whether a state is of this kind of estimator."""
        raise NotImplementedError
