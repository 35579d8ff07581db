"""scikit-learn's SGDRegressor and SGDClassifier (log loss) with their defaults, row by row."""

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor


def forecasts(x, y, family):
    """Return the means predicted one step ahead, by the name of the model; none for counts."""
    if family == "poisson":
        return {}
    binary = family == "binomial"
    model = SGDClassifier(loss="log_loss", random_state=0) if binary else SGDRegressor()
    means = np.full(len(y), 0.5 if binary else 0.0)
    for t in range(len(y)):
        if t:
            row = x[t : t + 1]
            means[t] = model.predict_proba(row)[0, 1] if binary else model.predict(row)[0]
        model.partial_fit(x[t : t + 1], y[t : t + 1], **({"classes": [0.0, 1.0]} if binary else {}))
    return {"scikit-learn SGD": means}
