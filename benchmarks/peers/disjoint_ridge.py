"""LinUCB and Thompson sampling as most packages have them: a ridge regression for each arm."""

import numpy as np

WIDTHS = {"LinUCB .3": 0.3, "LinUCB 1": 1.0, "Thompson .3": 0.3}


def choices(z, y, K):
    """Return what each setting chooses, ridge 1 and an intercept in every regression."""
    n, p = len(y), z.shape[1] + 1
    x = np.column_stack([np.ones(n), z])
    found = {}
    for name, width in WIDTHS.items():
        drawn = np.random.default_rng(0).standard_normal((n, K))
        steps = width * drawn if name.startswith("Thompson") else np.full((n, K), width)
        P, theta = np.tile(np.eye(p), (K, 1, 1)), np.zeros((K, p))
        found[name] = np.empty(n, dtype=np.int64)
        for t in range(n):
            gain = P @ x[t]
            form, mean = gain @ x[t], theta @ x[t]
            k = found[name][t] = np.argmax(mean + steps[t] * np.sqrt(form))
            theta[k] += gain[k] * ((k == y[t]) - mean[k]) / (1 + form[k])
            P[k] -= np.outer(gain[k], gain[k] / (1 + form[k]))
    return found
