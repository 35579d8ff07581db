"""Every instance the shared tests run over, listed once."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import noisewise as nw
from noisewise import environments as env
from noisewise.regression.ftrl.newton import minimise
from noisewise.regression.ftrl.sets import uniform

quick = settings(deadline=None, max_examples=60)


def cauchit_mean(z):
    return 0.5 + np.arctan(z) / np.pi


def cauchit_slope(z):
    return 1 / (np.pi * (1 + z * z))


CAUCHIT = nw.Link("cauchit", cauchit_mean, cauchit_slope, self_concordance=1.0)
BARE = nw.Link("bare", cauchit_mean, cauchit_slope)

LINKS = [*nw.LINKS.values(), CAUCHIT, BARE]
CURVED = [link for link in LINKS if link.name not in ("identity", "bare")]

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
    nw.DiscountedForward(),
    nw.DiscountedForward(0.1, 0.9),
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
    nw.SelfTuned(),
    nw.SelfTuned(0.1, (1.0, 0.9), fit_intercept=False),
    nw.RidgeMixture(),
    nw.RidgeMixture("poisson", fit_intercept=False),
    nw.RidgeMixture("probit"),
    nw.RidgeMixture("tanh"),
    nw.RidgeMixture("algebraic"),
    nw.RidgeMixture(ridge=0.5, tolerance=0.1, certificate="rigorous"),
]

ENVIRONMENTS = [
    env.Stream(),
    env.Stream(env.Ball(), env.Cube(), env.Noisy(nw.GLM("tanh"), env.Uniform())),
    env.Stream(env.Drifting(), labels=env.Noisy(noise=env.Sparse(2.0), scales=env.LogUniform())),
    env.Stream(labels=env.Noisy(nw.GLM("logistic"), env.Rademacher(), env.MostlyHigh())),
    *(env.Stream(labels=env.Family(nw.GLM(link), most=50)) for link in ("logistic", "exponential")),
    *(env.Hard(0.5, 2.0, prior) for prior in ("ball", "cube", "gaussian")),
    *env.WORLDS.values(),
    env.Corrupted(),
    env.Corrupted(env.WORLDS["fixed-binomial"], 5.0),
]

POLICIES = [
    nw.MORUCB(),
    nw.MORUCB(nw.GLM("logistic"), 1.0, 0.05, nested=True),
    nw.MORUCB(nw.GLM("tanh"), 1.0, 0.1, radius="freedman"),
    nw.MORUCB(nw.GLM("logistic"), 1.0, 0.1, as_printed=True),
    *(nw.FTRLUCB(nw.GLM(link)) for link in ("identity", "logistic", CAUCHIT, BARE)),
    *(nw.FTRLUCB(nw.GLM(link), radius="practical") for link in ("identity", "tanh", CAUCHIT, BARE)),
    nw.FTRLUCB(nw.GLM("logistic"), "likelihood", radius="practical"),
    nw.FTRLUCB(nw.GLM("logistic"), "bounded", noise_bound=1.0),
    nw.FTRLUCB(nw.GLM(), "bounded", noise_bound=1.0, radius="practical"),
    nw.FTRLUCB(nw.GLM(), radius="self-normalised", radius_scale=0.3, ridge=0.1),
    *(
        nw.FTRLUCB(nw.GLM(link, 2.0, 1.0), "estimated", 0.5, radius="practical")
        for link in ("identity", "logistic", CAUCHIT)
    ),
    nw.SelfTunedUCB(),
    nw.SelfTunedUCB("binomial"),
    nw.OFUL(0.5, 2.0),
    nw.LinUCB(),
    nw.WeightedLeastSquaresUCB(ridge=0.1),
    nw.WeightedOFUL(),
    nw.WeightedOFUL(radius_scale=0.01),
    nw.WeightedOFULPlus(radius_scale=0.001),
    nw.IDS(),
    nw.IDS(information="full", radius_scale=0.3),
    nw.IDS(randomised=True),
    nw.IDS(information="full", randomised=True, ridge=0.05),
    nw.LOSAN(),
    nw.LOSAN(0.5, 2.0, ridge=0.01, radius_scale=0.5),
    nw.SAVE(),
    nw.SAVE(0.5, 300, practical=True, radius_scale=0.01),
    nw.AdaOFUL(radius_scale=0.01),
    nw.AdaOFUL(threshold_scale=0.1, doubt_scale=0.1, radius_scale=0.001),
    nw.NormalUCB(),
    nw.NormalUCB("original"),
    nw.UCB1Normal(),
    *(nw.GLMUCB(nw.GLM(link), radius_scale=0.01) for link in ("identity", "logistic", CAUCHIT)),
    *(nw.UCBGLM(nw.GLM(link), 0.5) for link in ("identity", "logistic", CAUCHIT)),
    *(nw.GLOC(nw.GLM(link), 0.5) for link in ("identity", "logistic", CAUCHIT)),
    *(nw.GLBOMD(nw.GLM(link, 2.0, 1.0)) for link in ("identity", "logistic", "exponential")),
    *(nw.GLBOMD(nw.GLM(link), "exact", dispersion=0.5) for link in ("logistic", "probit")),
    nw.GLBOMD(noise_floor=0.3, corruption=2.0),
    nw.GLBOMD(nw.GLM("logistic"), "exact", noise_floor=0.3, corruption=2.0),
    *(nw.OFUGLB(nw.GLM(link)) for link in ("identity", "logistic", "exponential")),
    nw.OFUGLB(nw.GLM("logistic", 1.0, 2.0), "set", radius_scale=0.1),
    nw.LinearThompson(),
    *(nw.LaplaceThompson(nw.GLM(link)) for link in ("identity", "logistic", "exponential", BARE)),
    *(nw.Greedy(nw.GLM(link, 2.0, 1.0)) for link in ("identity", "logistic", CAUCHIT)),
    nw.Uniform(),
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


def exact(glm, state):
    """The minimiser by the readable solver, and the bound on its own error."""
    inverse, _ = uniform(glm, state)
    point, gap = minimise(glm, state.ridge, list(state.blocks()), state.theta, inverse)
    return point, gap, inverse


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def learnt(policy, seed=0, count=30, dim=3, sigma=None, reach=1.0):
    """A state, and the arms, rewards and standard deviations it has learnt."""
    rng = np.random.default_rng(seed)
    x, y = sphere(rng, count, dim, reach), rng.normal(size=count)
    s = rng.uniform(0.2, 1.0, size=count) if sigma is None else np.full(count, sigma)
    state = policy.start(dim)
    for row in zip(x, y, s, strict=True):
        policy.update(state, *row)
    return state, x, y, s


def small(seed=0, **kwargs):
    """The rounds of a small world of noise that varies."""
    world = env.NoisyBandit(**{"dim": 4, "arms": 6, "rounds": 150, **kwargs})
    return world.draw(np.random.default_rng(seed))


def family_reward(glm, z, rng):
    mean = float(glm.mean(z))
    if glm.linear:
        return mean + rng.normal()
    return float(rng.poisson(mean) if glm.link.name == "exponential" else rng.random() < mean)


def family_learnt(policy, count=40, dim=3, seed=0, size=1.0):
    """A state, and the rows it has learnt; the truth has ``size`` times the largest norm."""
    rng, glm = np.random.default_rng([seed, 9]), policy.glm
    theta = size * glm.parameter_bound * sphere(rng, 1, dim)[0]
    x = glm.feature_bound * rng.uniform(0.3, 1.0, size=(count, 1)) * sphere(rng, count, dim)
    y = np.array([family_reward(glm, row @ theta, rng) for row in x])
    state = policy.start(dim)
    for row, r in zip(x, y, strict=True):
        policy.update(state, row, r)
    return state, x, y
