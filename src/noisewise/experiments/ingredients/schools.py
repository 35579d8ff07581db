"""What is done with the school districts of the study `real-data`: three parts, one trial each."""

import numpy as np
from numpy.typing import NDArray

from ... import bandits
from ...environments.features import shorten
from ...model.glm import GLM
from ...model.noise import Likelihood
from ...numerics import linalg
from ...protocols import AnyPolicy, Array, BanditRounds, trait
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.state import FTRLState
from ...simulate import choices, predictions
from .. import Record, checkpoints
from .datasets import Districts, star98

FIRST, CLIP, LENGTH, RIDGE = 20, 3.0, 5.0, 0.5
ARMS, MOST = 10, 100
LOGISTIC, LINEAR = GLM("logistic", LENGTH), GLM("identity", LENGTH)
HALF = 0.5  # what a linear learner takes off a rate, so that it starts at one half too
NORMAL = 1.96
FITTED = "fitted to all districts"

Order = NDArray[np.int64]


def standardised(features: Array, first: Order) -> Array:
    """Return rows with an intercept, centred and scaled by what the ``first`` rows show alone.

    A feature counts at most three of its deviations, and a row longer than the bound is shortened.
    """
    seen = features[first]
    spread = seen.std(axis=0, ddof=1)
    z = (features - seen.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return shorten(np.column_stack([np.ones(len(z)), np.clip(z, -CLIP, CLIP)]), LENGTH)


def spread_weights(n: Array, spread: float) -> Array:
    r"""Return :math:`n\rho/(1 + n\rho)`, inverse to the variance :math:`p(1-p)(\rho + 1/n)`."""
    return n * spread / (1 + n * spread)


def one_pass(rng: np.random.Generator) -> dict[str, tuple[Array, Array, Array]]:
    """Predict every district once in a random order: rates, numbers tested, predictions each."""
    data = star98()
    order = rng.permutation(len(data.rate))
    x = standardised(data.features, order[:FIRST])[order]
    y, n = data.rate[order], data.tested[order].astype(np.float64)
    share = n / n[:FIRST].mean()
    logistic, linear = FTRL(LOGISTIC, RIDGE), FTRL(LINEAR, RIDGE)
    before = np.concatenate([[HALF], (np.cumsum(y * n) / np.cumsum(n))[:-1]])
    made = {
        "logistic, weight n": predictions(logistic, x, y, share),
        "logistic, equal weights": predictions(logistic, x, y),
        "logistic, spread estimated": _estimating(logistic, x, y, n),
        "linear, weight n": HALF + predictions(linear, x, y - HALF, share),
        "linear, equal weights": HALF + predictions(linear, x, y - HALF),
        "share of all so far": before,
    }
    return {name: (y[FIRST:], n[FIRST:], p[FIRST:]) for name, p in made.items()}


def _estimating(regressor: FTRL, x: Array, y: Array, n: Array) -> Array:
    """Predict with `spread_weights`, the spread a running mean over one-step-ahead residuals.

    It starts at 1, the most that a share can have, which counts as one residual.
    """
    state, total = regressor.start(x.shape[1]), 1.0
    made = np.empty(len(y))
    for t in range(len(y)):
        w = spread_weights(n[t], max(total / (t + 1), 1e-4))
        made[t] = regressor.update(state, x[t], float(y[t]), float(w))
        p = min(max(made[t], 0.02), 0.98)
        total += (y[t] - p) ** 2 / (p * (1 - p)) - 1 / n[t]
    return made


def weightings(data: Districts) -> dict[str, Array]:
    """Return the two ways to weigh a district."""
    return {"weight n": data.tested.astype(np.float64), "equal weights": np.ones(len(data.rate))}


def best_fit(x: Array, y: Array, w: Array) -> Array:
    """Return the parameter that fits all districts best in the weighted loss."""
    ftrl = FTRL(LOGISTIC, 1e-8 * float(w.sum()))
    state = ftrl.start(x.shape[1])
    ftrl.update(state, x, y, w)
    ftrl.solve(state)
    return state.theta.copy()


def intervals(rounds: int, rng: np.random.Generator) -> list[Record]:
    """Learn districts drawn with replacement; how often intervals hold what all 303 would give."""
    data = star98()
    count = len(data.rate)
    x = standardised(data.features, rng.choice(count, FIRST, replace=False))
    drawn = rng.integers(count, size=rounds)
    rows = []
    for name, w in weightings(data).items():
        truth = best_fit(x, data.rate, w)
        ftrl = FTRL(LOGISTIC, RIDGE)
        state, done = ftrl.start(x.shape[1]), 0
        for t in checkpoints.spaced(rounds, 5, first=min(100, rounds)):
            new = drawn[done:t]
            ftrl.update(state, x[new], data.rate[new], w[new])
            ftrl.solve(state)
            done = t
            found = _textbook(x, data.rate, w, drawn[:t], state, truth)
            found["at all times"] = _anytime(ftrl, state, x, truth)
            rows += [
                {"player": name, "kind": kind, "rounds": done, **values}
                for kind, values in found.items()
            ]
    return rows


def _textbook(
    x: Array, y: Array, w: Array, drawn: Order, state: FTRLState, truth: Array
) -> dict[str, dict[str, float]]:
    """Return coverage and width of normal intervals with three notions of the variance."""
    p = np.asarray(LOGISTIC.mean(x @ state.theta))
    slope = np.asarray(LOGISTIC.slope(x @ state.theta))
    count = np.bincount(drawn, minlength=len(y))
    H = (x * (count * w * slope)[:, None]).T @ x + 2 * state.ridge * np.eye(x.shape[1])
    P = np.linalg.inv(H)
    residual = w * (y - p)
    pearson = float((count * residual**2 / (w * slope)).sum()) / max(len(drawn) - x.shape[1], 1)
    meat = (x * (count * residual**2)[:, None]).T @ x
    found = {}
    for kind, C in {"binomial": P, "Pearson": pearson * P, "sandwich": P @ meat @ P}.items():
        half = NORMAL * np.sqrt(linalg.forms(x, C))
        low, high = LOGISTIC.mean(x @ state.theta - half), LOGISTIC.mean(x @ state.theta + half)
        covered = np.abs(x @ (state.theta - truth)) <= half
        found[kind] = {
            "coverage": float(covered.mean()),
            "width": float(np.median(high - low)),
            "dispersion": pearson,
        }
    return found


def _anytime(ftrl: FTRL, state: FTRLState, x: Array, truth: Array) -> dict[str, float]:
    """Return coverage and width of the intervals that hold at all times, and error over radius."""
    sets = ftrl.confidence(state, Likelihood())
    low, high = ftrl.interval(state, x, Likelihood())
    mean = LOGISTIC.mean(x @ truth)
    return {
        "coverage": float(((low <= mean) & (mean <= high)).mean()),
        "width": float(np.median(high - low)),
        "critical": max(each.distance(truth) / each.radius for each in sets),
    }


def policies() -> dict[str, tuple[AnyPolicy, str]]:
    """Return the policies with what each is given: n, its mean over rounds, or nothing."""
    practical = bandits.FTRLUCB(LOGISTIC, "likelihood", radius="practical")
    return {
        "FTRL-UCB": (practical, "n"),
        "FTRL-UCB, mean n for all": (practical, "mean"),
        "FTRL-UCB, without n": (practical, "none"),
        "FTRL-UCB, guaranteed": (bandits.FTRLUCB(LOGISTIC, "likelihood"), "n"),
        "MOR-UCB": (bandits.MORUCB(LOGISTIC, 1.0, 0.05), "sd"),
        "Thompson": (bandits.LaplaceThompson(LOGISTIC), "n"),
        "greedy": (bandits.Greedy(LOGISTIC), "n"),
        "linear FTRL-UCB": (bandits.FTRLUCB(LINEAR, radius="practical"), "sd"),
        "weighted LinUCB": (bandits.WeightedLeastSquaresUCB(), "sd"),
        "LinUCB": (bandits.LinUCB(), "sd"),
        "OFUL": (bandits.OFUL(sigma=0.5), "sd"),
        "uniform": (bandits.Uniform(), "n"),
    }


def bandit(rounds: int, rng: np.random.Generator) -> dict[str, Array]:
    """Choose among ten districts per round, shown the share of a sample; return what each lost."""
    data = star98()
    count = len(data.rate)
    x = standardised(data.features, rng.choice(count, FIRST, replace=False))
    offered = np.argsort(rng.random((rounds, count)), axis=1)[:, :ARMS]
    n = rng.integers(1, MOST, size=rounds, endpoint=True)
    means = data.rate[offered]
    rewards = rng.binomial(n[:, None], means) / n[:, None]
    relative = 1 / np.sqrt(n)
    given = {
        "n": relative,
        "mean": np.full(rounds, np.sqrt(np.mean(relative**2))),
        "none": np.ones(rounds),
        "sd": HALF * relative,  # a coin's sd is at most one half
    }
    lost = {}
    for name, (policy, what) in policies().items():
        shift = HALF if what == "sd" and trait(policy, "glm", LINEAR).linear else 0.0
        table = BanditRounds(x[offered], means - shift, rewards - shift, given[what])
        lost[name] = _lost(means, choices(policy, table, rng))
    theta = best_fit(x, data.rate, np.ones(count))
    lost[FITTED] = _lost(means, (x[offered] @ theta).argmax(axis=1))
    return lost


def _lost(means: Array, played: Order) -> Array:
    return means.max(axis=1) - means[np.arange(len(means)), played]
