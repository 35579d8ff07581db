"""river's linear models with their defaults: exact Bayesian regression, and gradient descent.

Bayesian regression has no intercept of its own and gets a constant feature.
"""

import numpy as np
from river import linear_model, optim


def forecasts(x, y, family):
    """Return the means predicted one step ahead, by the name of the model."""
    rows = [dict(enumerate(row)) for row in x.tolist()]
    if family == "poisson":
        descent = linear_model.LinearRegression(loss=optim.losses.Poisson())
        return {"river SGD": _play(descent.predict_one, descent, rows, y)}
    exact = linear_model.BayesianLinearRegression()
    found = {"river BLR": _play(exact.predict_one, exact, [{-1: 1.0, **r} for r in rows], y)}
    if family == "binomial":
        descent = linear_model.LogisticRegression()
        predict = lambda row: descent.predict_proba_one(row).get(True, 0.5)  # noqa: E731
        return {**found, "river SGD": _play(predict, descent, rows, y > 0.5)}
    descent = linear_model.LinearRegression()
    return {**found, "river SGD": _play(descent.predict_one, descent, rows, y)}


def _play(predict, model, rows, y):
    """Return the means, NaN from where a model that diverges leaves what a float can hold."""
    means = np.full(len(y), np.nan)
    for t, (row, label) in enumerate(zip(rows, y.tolist(), strict=True)):
        try:
            means[t] = predict(row)
            model.learn_one(row, label)
        except OverflowError:
            break
    return means
