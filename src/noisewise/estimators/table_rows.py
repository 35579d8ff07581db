"""Arrays, data frames, lists and sparse matrices read as rows of numbers, in scikit-learn's words.

A mistake is a `ValueError` (`TypeError` for what is no number at all) before anything is learnt.
"""

import math
import warnings
from numbers import Real
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs import FLOAT, named_columns, shown
from ..protocols import Array
from .scikit_learn import DataConversionWarning

Imaginary = complex | np.complexfloating
AnyType = TypeVar("AnyType", bound=np.generic)

# numbers closer to 0 are taken as 0: their squares, and products of those, would not be numbers
LEAST_FEATURE, LEAST_NUMBER = 1e-50, 1e-100

ALIGN = (
    "If X comes from pd.get_dummies, pass "
    "X.reindex(columns=model.feature_names_in_, fill_value=0).\n"
)


@runtime_checkable
class Sparse(Protocol):
    """A matrix as of scipy.sparse."""

    def toarray(self) -> Array:
        """Return it dense."""


def column_names(X: object) -> list[str] | None:
    """Return the names of the columns of a data frame, where they are words."""
    names = named_columns("X", X)
    if names is None:
        return None
    words = [isinstance(name, str) for name in names]
    if any(words) and not all(words):
        raise TypeError(
            "Feature names are only supported if all input features have string names, and X has "
            "others too; convert them with X.columns = X.columns.astype(str)"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has the column {twice!r} more than once; keep one of them")
    return [str(name) for name in names] if words and words[0] else None


def rows_of(X: ArrayLike, names: list[str] | None = None, name: str = "X") -> Array:
    """Return ``X`` as an array of finite floats, (n, d), with at least a row and a feature."""
    if type(X) is np.ndarray and X.dtype is FLOAT:
        table: Array = X
    else:
        table = _floats(X, name, names)
    if table.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {table.ndim}D array instead, of shape {table.shape}. Reshape "
            f"your data using {name}.reshape(-1, 1) if it has a single feature or "
            f"{name}.reshape(1, -1) if it contains a single sample."
        )
    n, d = table.shape
    for count, thing in (n, "sample"), (d, "feature"):
        if not count:
            raise ValueError(
                f"Found array with 0 {thing}(s) (shape={table.shape}) while a minimum of 1 is "
                "required."
            )
    _check_finite(table, name, names)
    return _without_tiny(table, LEAST_FEATURE)


def _without_tiny(table: Array, least: float) -> Array:
    """Return numbers with 0 in place of those below ``least``."""
    tiny = np.abs(table) < least
    return np.where(tiny, 0.0, table) if np.count_nonzero(tiny) and table[tiny].any() else table


def _floats(value: ArrayLike, name: str, names: list[str] | None = None) -> Array:
    table = np.asarray(value.toarray() if isinstance(value, Sparse) else value)
    if table.dtype.kind == "c" or (
        table.dtype.kind == "O" and any(isinstance(each, Imaginary) for each in table.flat)
    ):
        raise ValueError(f"Complex data not supported: {name} is of type {table.dtype}")
    if table.dtype.kind in "USMmV":
        raise ValueError(f"{name} is of type {table.dtype}, not numbers; {_remedy(name)}")
    try:
        return table.astype(FLOAT, copy=False)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        column = _first_wrong(table, names)
        where = name if column is None else f"{name} column {column!r}"
        raise kind(f"{where}: {error}; {_remedy(name, column)}") from None


def _first_wrong(table: np.ndarray, names: list[str] | None) -> str | None:
    """Return which column of a data frame can't be read as numbers."""
    for i, column in enumerate(names or ()):
        try:
            table[:, i].astype(FLOAT)
        except (TypeError, ValueError):
            return column
    return None


def _remedy(name: str, column: str | None = None) -> str:
    """Return what to do with values that are no numbers."""
    if name == "y":
        return "pass numbers, or OnlineGLMClassifier for classes"
    if name != "X":
        return "pass numbers"
    columns = "" if column is None else f", columns=[{column!r}]"
    return (
        f"encode categories first, for instance by pd.get_dummies(X{columns}, dtype=float), and "
        "dates as numbers of days"
    )


def _check_finite(table: Array, name: str, names: list[str] | None = None) -> None:
    if len(table) == 1 and math.isfinite(np.vdot(table, table)):  # one row, quickly
        return
    good = np.isfinite(table)
    if good.all():
        return
    at = np.argwhere(~good)[0]
    what = "NaN" if np.isnan(table[tuple(at)]) else "infinity"
    place = f" at row {at[0]}"
    if table.ndim > 1:
        place += f", column {names[at[1]]!r}" if names else f", column {at[1]}"
    raise ValueError(f"Input {name} contains {what}{place}; drop or fill such rows")


def labels_of(y: ArrayLike | None, count: int, estimator: str) -> Array:
    """Return ``y`` as floats, one per row."""
    if type(y) is np.ndarray and y.dtype is FLOAT:
        labels: Array = y
    else:
        labels = _floats(_given(y, estimator), "y")
    labels = _one_per_row(labels, count)
    _check_finite(labels, "y")
    return _without_tiny(labels, LEAST_NUMBER)


def classes_of(y: ArrayLike | None, count: int | None, estimator: str) -> NDArray[np.generic]:
    """Return labels as an array of words, of whole numbers or of truth values, one per row."""
    labels = np.asarray(_given(y, estimator))
    labels = _one_per_row(labels, len(labels) if count is None and labels.ndim else count)
    if labels.dtype.kind == "O" and not all(isinstance(each, str) for each in labels):
        if not all(isinstance(each, Real | np.bool_) for each in labels):
            odd = next(each for each in labels if not isinstance(each, str))
            raise ValueError(
                f"Unknown label type: y holds {shown(odd)}; pass words only, or numbers only"
            )
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufUO":
        raise ValueError(f"Unknown label type: y is of type {labels.dtype}")
    if labels.dtype.kind == "f":
        _check_finite(labels.astype(FLOAT), "y")
        if (labels != np.rint(labels)).any():
            raise ValueError(
                "Unknown label type: continuous. Classes are words or whole numbers; for labels "
                "that vary continuously use OnlineGLM"
            )
    return labels


def _given(y: ArrayLike | None, estimator: str) -> ArrayLike:
    if y is None:
        raise ValueError(
            f"This {estimator} estimator requires y to be passed, but the target y is None"
        )
    return y


def _one_per_row(labels: NDArray[AnyType], count: int | None) -> NDArray[AnyType]:
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=5,
        )
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    if len(labels) != count:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {count} and y {len(labels)}"
        )
    return labels


def weights_of(sample_weight: ArrayLike | None, count: int) -> Array:
    """Return the weights as floats >= 0, one per row; 1 where none are given."""
    if sample_weight is None:
        return np.ones(count)
    w = _floats(sample_weight, "sample_weight")
    if w.ndim == 0:
        w = np.full(count, w)
    if w.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {w.ndim}D array.")
    if w.shape != (count,):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(count,)}!")
    _check_finite(w, "sample_weight")
    if (w < 0).any():
        at = int(np.argmax(w < 0))
        raise ValueError(f"Negative values in data passed to sample_weight: {w[at]} at row {at}")
    return _without_tiny(w, LEAST_NUMBER)


def any_weight(w: Array) -> Array:
    """Return weights if one of them is positive."""
    if not w.any():
        raise ValueError(
            "Sample weights must contain at least one non-zero number; those below "
            f"{LEAST_NUMBER:g} count as 0"
        )
    return w


def offsets_of(offset: ArrayLike | None, count: int) -> Array | None:
    """Return what is added to the score of each row, None where nothing is."""
    if offset is None:
        return None
    o = _floats(offset, "offset")
    if o.ndim == 0:
        o = np.full(count, o)
    if o.shape != (count,):
        raise ValueError(f"offset has shape {o.shape}; pass {(count,)}, a number per row")
    _check_finite(o, "offset")
    return o


def column_order(known: list[str], given: list[str]) -> list[int] | None:
    """Return the position of each known column among those given; None if they are the same."""
    if known == given:
        return None
    place = {name: i for i, name in enumerate(given)}
    unseen = sorted(set(given) - set(known))
    missing = sorted(set(known) - set(given))
    if unseen or missing:
        text = "The feature names should match those that were passed during fit.\n"
        for names, words in (
            (unseen, "Feature names unseen at fit time:"),
            (missing, "Feature names seen at fit time, yet now missing:"),
        ):
            if names:
                text += "\n".join([words, *(f"- {name}" for name in names[:5])]) + "\n"
                text += "- ...\n" if len(names) > 5 else ""
        raise ValueError(f"{text}{ALIGN}")
    return [place[name] for name in known]
