"""Awkward streams: the self-tuning regressors stay near the running mean, or better it."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, gammaln

import noisewise as nw

N, LATE = 3000, 2000
MODELS = {"gaussian": nw.SelfTuned(), "binomial": nw.RidgeMixture("binomial"),
          "poisson": nw.RidgeMixture("poisson")}  # fmt: skip


def rows(case, rng):
    """Features of a case."""
    x, rare = rng.normal(size=(N, 4)), rng.random(N) < 0.01
    late = np.where(np.arange(N) < LATE, 0.0, 1e4)
    match case:
        case "a rare dummy":
            return np.column_stack([x, rare])
        case "a late feature":
            return np.column_stack([x, late * rng.normal(size=N)])
        case "a late level":
            return np.column_stack([x, late])
        case "a constant column":
            return np.column_stack([x, np.full(N, 7.0)])
        case "a column of rounding errors":
            return np.column_stack([x, 1 + 2.0**-52 * rng.integers(0, 2, N)])
        case "duplicate columns":
            return np.column_stack([x, x, x[:, 0]])
        case "an offset":
            return x + 1e6
        case "outlying rows":
            return x * (1 + 1000 * rare)[:, None]
        case "more columns than rows":
            return rng.normal(size=(40, 100))
        case "many columns":
            return rng.normal(size=(500, 50))
        case "one row":
            return x[:1]
        case "zeros":
            return np.zeros((N, 2))
    return x


def labels(family, kind, x, rng):
    """Labels that are noise, follow the second column, or are awkward themselves."""
    n, t = len(x), np.arange(len(x))
    column = x[:, min(1, x.shape[1] - 1)]
    score = np.clip((column - column.mean()) / (column.std() or 1.0), -3, 3)
    drift = np.cumsum(rng.normal(size=n)) * (0.1 if family != "gaussian" else 1.0)
    score = {"noise": 0.0 * score, "equal labels, then drift": drift}.get(kind, score)
    match family, kind:
        case _, "equal labels":
            return np.ones(n)
        case "binomial", "separated":
            return (score > 0).astype(float)
        case "gaussian", "outliers":
            return score + rng.normal(size=n) * np.where(rng.random(n) < 0.01, 1000.0, 1.0)
        case "poisson", "heavy counts":
            return rng.poisson(rng.pareto(1.5, size=n) * np.exp(0.5 * score)).astype(float)
        case "gaussian", _:
            y = score + rng.normal(size=n)
        case "binomial", _:
            y = (rng.random(n) < expit(score - 1)).astype(float)
        case _:
            y = rng.poisson(np.exp(0.5 * np.clip(score, -8, 8))).astype(float)
    return np.where(t < 30, 1.0, y) if kind == "equal labels, then drift" else y


FEATURES = ["a rare dummy", "a late feature", "a late level", "a constant column",
            "a column of rounding errors", "duplicate columns", "an offset", "outlying rows",
            "more columns than rows", "many columns", "one row", "zeros"]  # fmt: skip
CASES = [(family, case, kind) for family in MODELS for case in FEATURES
         for kind in ("noise", "signal")]  # fmt: skip
CASES += [(family, "plain", kind) for family in MODELS
          for kind in ("equal labels, then drift", "equal labels")]  # fmt: skip
CASES += [("gaussian", "plain", "outliers"), ("binomial", "plain", "separated"),
          ("binomial", "an offset", "separated"), ("poisson", "plain", "heavy counts")]  # fmt: skip


def losses(family, y, means):
    if family == "gaussian":
        return (means - y) ** 2
    if family == "binomial":
        return -np.log(np.where(y > 0, means, 1 - means))
    return means - y * np.log(means) + gammaln(y + 1)


def running_mean(family, y):
    """The mean of the labels so far; of shares and counts with half a label more, or one."""
    first = {"gaussian": 0.0, "binomial": 0.5, "poisson": 1.0}[family]
    more = 0.0 if family == "gaussian" else 1.0
    before = np.cumsum(y)[:-1]
    return np.append(first, (before + first * more) / (np.arange(1, len(y)) + more))
