"""Conversion rates from samples of 1 to 100 visitors: a small sample should count for less.

Every observation is the average of n clicks. Its weight is n, nothing else is tuned, and the
interval may be looked at after every row: it holds at all times at once.
"""

import numpy as np

import noisewise as nw

rng = np.random.default_rng(0)
truth = np.array([0.8, -0.5, 0.2])
x = rng.normal(size=(500, 3))
x /= np.linalg.norm(x, axis=1, keepdims=True)
visitors = rng.integers(1, 101, size=500)
rate = rng.binomial(visitors, 1 / (1 + np.exp(-x @ truth))) / visitors

model = nw.FTRL(nw.GLM("logistic", feature_bound=1.0, parameter_bound=1.0), ridge=0.5)
weighted, plain = model.start(dim=3), model.start(dim=3)
model.update(weighted, x, rate, weight=visitors)
model.update(plain, x, rate)
print("distance from the truth, weighted  ", np.linalg.norm(weighted.theta - truth).round(3))
print("distance from the truth, unweighted", np.linalg.norm(plain.theta - truth).round(3))

lower, upper = model.interval(weighted, x[:3], nw.Likelihood())
for low, high, mean in zip(lower, upper, 1 / (1 + np.exp(-x[:3] @ truth)), strict=True):
    print(f"rate between {low:.3f} and {high:.3f}, truly {mean:.3f}")
