"""dask-ml's logistic regression on Parquet files, by the workers of the client that is there.

Its solver "newton" knows no penalty and minimises the loss alone.
"""

import warnings

import dask.dataframe as dd
import numpy as np
from dask_ml.linear_model import LogisticRegression


def fit(files, names, label, ridge, solver, tol, held=False):
    """Return the coefficients; ``held``: rows stay in the workers' memory between passes."""
    table = dd.read_parquet([str(file) for file in files])
    x, y = (table[each].to_dask_array(lengths=True) for each in (names, label))
    if held:
        x, y = x.persist(), y.persist()
    model = LogisticRegression(
        C=1 / (2 * ridge), fit_intercept=False, solver=solver, tol=tol, max_iter=1000
    )
    with warnings.catch_warnings(action="ignore"):  # of an option of Dask that has a new name
        return np.ravel(model.fit(x, y).coef_)
