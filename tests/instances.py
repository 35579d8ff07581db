"""Every instance the shared tests run over, listed once."""

import numpy as np

import noisewise as nw
from noisewise import environments as env


def cauchit_mean(z):
    return 0.5 + np.arctan(z) / np.pi


def cauchit_slope(z):
    return 1 / (np.pi * (1 + z * z))


CAUCHIT = nw.Link("cauchit", cauchit_mean, cauchit_slope, self_concordance=1.0)
BARE = nw.Link("bare", cauchit_mean, cauchit_slope)

LINKS = [*nw.LINKS.values(), CAUCHIT, BARE]

REGRESSORS = [nw.FTRL(nw.GLM(link, 1.0, 2.0), tolerance=0) for link in LINKS] + [
    nw.FTRL(nw.GLM("logistic", 3.0, 1.0), ridge=0.01, tolerance=0),
    nw.FTRL(nw.GLM("identity", 0.5, 2.0), ridge=1e-3, tolerance=0),
    *(nw.FTRL(nw.GLM(link, 1.0, 2.0)) for link in LINKS),
    nw.FTRL(nw.GLM("logistic", 3.0, 1.0), ridge=0.01, tolerance=0.01, certificate="calibrated"),
    nw.FTRL(nw.GLM("tanh"), aggregate=True),
]

ENVIRONMENTS = [
    env.Stream(),
    env.Stream(env.Ball(), env.Cube(), env.Noisy(nw.GLM("tanh"), env.Uniform())),
    env.Stream(env.Drifting(), labels=env.Noisy(noise=env.Sparse(2.0), scales=env.LogUniform())),
    env.Stream(labels=env.Noisy(nw.GLM("logistic"), env.Rademacher(), env.MostlyLoud())),
    *(env.Stream(labels=env.Family(nw.GLM(link), most=50)) for link in ("logistic", "exponential")),
    *(env.Hard(0.5, 2.0, prior) for prior in ("ball", "cube", "gaussian")),
    *env.WORLDS.values(),
]

POLICIES = [
    nw.OFUL(0.5, 2.0),
    nw.LinUCB(),
    nw.WeightedLeastSquaresUCB(ridge=0.1),
    nw.WeightedOFUL(),
    nw.WeightedOFUL(radius_scale=0.01),
    nw.WeightedOFULPlus(radius_scale=0.001),
    *(nw.GLMUCB(nw.GLM(link), radius_scale=0.01) for link in ("identity", "logistic", CAUCHIT)),
    nw.LinearThompson(),
    *(nw.LaplaceThompson(nw.GLM(link)) for link in ("identity", "logistic", "exponential", BARE)),
    *(nw.Greedy(nw.GLM(link, 2.0, 1.0)) for link in ("identity", "logistic", CAUCHIT)),
    nw.Uniform(),
]


def sphere(rng, rounds, dim, radius=1.0):
    x = rng.normal(size=(rounds, dim))
    return radius * x / np.linalg.norm(x, axis=1, keepdims=True)
