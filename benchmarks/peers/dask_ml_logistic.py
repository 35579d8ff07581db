"""dask-ml's logistic regression on Parquet files, by the workers of the client that is there.

Its solver "newton" knows no penalty and minimises the loss alone.
"""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from dask import delayed
from dask_ml.linear_model import LogisticRegression


def fit(files, names, label, ridge, solver, tol):
    """Return the coefficients; files are read in every pass."""
    x, y = [], []
    for file in files:
        n, rows = pq.read_metadata(file).num_rows, delayed(_read, nout=2)(file, names, label)
        x.append(da.from_delayed(rows[0], (n, len(names)), float))
        y.append(da.from_delayed(rows[1], (n,), float))
    x, y = da.concatenate(x), da.concatenate(y)
    model = LogisticRegression(
        C=1 / (2 * ridge), fit_intercept=False, solver=solver, tol=tol, max_iter=1000
    )
    with warnings.catch_warnings(action="ignore"):  # of an option of Dask that has a new name
        return np.ravel(model.fit(x, y).coef_)


def _read(file, names, label):
    table = pd.read_parquet(file)
    return table[names].to_numpy(), table[label].to_numpy()
