"""scikit-learn's logistic regression on Parquet files: epochs of SGD, or all rows in memory."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression, SGDClassifier


def sgd(files, names, label, ridge, count):
    """Yield the coefficients after each epoch of `partial_fit`, files and rows shuffled.

    Averaged steps of 0.1/sqrt(t): the best of ten settings tried, by far better than the defaults.
    """
    rng = np.random.default_rng(0)
    model = SGDClassifier(
        loss="log_loss", alpha=2 * ridge / count, fit_intercept=False, random_state=0,
        learning_rate="invscaling", eta0=0.1, power_t=0.5, average=True,
    )  # fmt: skip
    while True:
        for i in rng.permutation(len(files)):
            for batch in pq.ParquetFile(files[i]).iter_batches(batch_size=65_536):
                table = batch.to_pandas()
                model.partial_fit(table[names].to_numpy(), table[label], classes=[0.0, 1.0])
        yield model.coef_[0].copy()


def in_memory(files, names, label, ridge, solver, tol):
    """Return the coefficients by `LogisticRegression` with all rows in memory."""
    table = pd.concat([pd.read_parquet(file) for file in files])
    model = LogisticRegression(
        C=1 / (2 * ridge), fit_intercept=False, solver=solver, tol=tol, max_iter=1000
    )
    return model.fit(table[names].to_numpy(), table[label].to_numpy()).coef_[0]
