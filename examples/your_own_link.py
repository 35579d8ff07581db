"""A link of your own: two named functions are enough, the potential is integrated for you.

Check it with: noisewise check your_own_link:CAUCHIT
"""

import numpy as np

import noisewise as nw


def mean(z):
    return 0.5 + np.arctan(z) / np.pi


def slope(z):
    return 1 / (np.pi * (1 + z * z))


# |slope'| = 2|z|/(1+z^2) slope <= slope, so the self-concordance constant is 1
CAUCHIT = nw.Link("cauchit", mean, slope, self_concordance=1.0)

if __name__ == "__main__":
    nw.checks.check_link(CAUCHIT)
    rng = np.random.default_rng(0)
    model = nw.FTRL(nw.GLM(CAUCHIT, parameter_bound=2.0), ridge=0.5)
    state = model.start(dim=2)
    x = rng.normal(size=(300, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.random(300) < mean(x @ np.array([1.5, -1.0]))
    model.update(state, x, y)
    print("estimate", state.theta.round(2), "exact to", f"{state.gap:.1g}")
    print("interval", model.interval(state, [1.0, 0.0], nw.SubGaussian(sigma=0.5)))
