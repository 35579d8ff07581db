"""Every instance the shared tests run over, listed once."""

import numpy as np
from hypothesis import strategies as st

import noisewise as nw


def cauchit_mean(z):
    return 0.5 + np.arctan(z) / np.pi


def cauchit_slope(z):
    return 1 / (np.pi * (1 + z * z))


CAUCHIT = nw.Link("cauchit", cauchit_mean, cauchit_slope, self_concordance=1.0)
BARE = nw.Link("bare", cauchit_mean, cauchit_slope)

LINKS = [*nw.LINKS.values(), CAUCHIT, BARE]

FTRLS = [nw.FTRL(nw.GLM(link, 1.0, 2.0), tolerance=0) for link in LINKS] + [
    nw.FTRL(nw.GLM("logistic", 3.0, 1.0), ridge=0.01, tolerance=0),
    nw.FTRL(nw.GLM("identity", 0.5, 2.0), ridge=1e-3, tolerance=0),
    *(nw.FTRL(nw.GLM(link, 1.0, 2.0)) for link in LINKS),
    nw.FTRL(nw.GLM("logistic", 3.0, 1.0), ridge=0.01, tolerance=0.01, certificate="calibrated"),
    nw.FTRL(nw.GLM("tanh"), aggregate=True),
]

REGRESSORS = [
    *FTRLS,
    nw.Ridge(),
    nw.Ridge(0.01, clip=0.3),
    nw.Forward(),
    nw.Forward(0.0),
    nw.Aggregating((nw.Ridge(0.01), nw.Forward(), nw.GradientDescent()), 5.0, (0.5, 0.25, 0.25)),
    nw.Aggregating((nw.ExponentiatedGradient(2.0), nw.FTRL(nw.GLM("tanh"))), label_bound=5.0),
    nw.Minimax(),
    nw.HorizonFreeMinimax(0.3),
    nw.GradientDescent(),
    nw.GradientDescent(feature_bound=2.0, normalised=True),
    nw.GradientDescent(nw.GLM("logistic", 2.0, 1.0)),
    nw.ExponentiatedGradient(2.0),
    nw.ExponentiatedGradient(2.0, bound=3.0),
    nw.SimplexFTRL(),
    nw.NewtonStep(nw.GLM("identity", 1.0, 9.0)),
    nw.NewtonStep(nw.GLM("logistic", 2.0, 0.5)),
    nw.NewtonStep(nw.GLM(CAUCHIT), initial=0.1),
]


def sphere(rng, rounds, dim, radius=1.0):
    x = rng.normal(size=(rounds, dim))
    return radius * x / np.linalg.norm(x, axis=1, keepdims=True)


@st.composite
def streams(draw, rounds=25, dim=4, low=-1.0, high=1.0):
    """Features in the unit ball, or the box if it is positive; labels; zeros and repeats too."""
    T, d = draw(st.integers(1, rounds)), draw(st.integers(1, dim))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x, y = rng.uniform(low, high, size=(T, d)), rng.uniform(low, high, size=T)
    if draw(st.booleans()):
        x, y = np.round(x), np.where(y > (low + high) / 2, high, low)
    if draw(st.booleans()) and T > 2:
        x[T // 2 :] = x[: T - T // 2]
    if low < 0:
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    return x, y


def least(x, y, penalty):
    """min_u of half the squares plus u' penalty u / 2, and its u."""
    u = np.linalg.pinv(x.T @ x + penalty, hermitian=True) @ (x.T @ y)
    return 0.5 * np.sum((y - x @ u) ** 2) + 0.5 * u @ penalty @ u, u


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
