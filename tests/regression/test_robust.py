"""Awkward streams: the self-tuning regressors stay near the running mean where it is best.

`SelfTuned` and `RidgeMixture` may lose at most 10 % more than the running mean over a stream of
2500 rows, or of 40 rows with 100 columns, less the first row, which both predict alike.
"""

import warnings

import numpy as np
import pytest
from scipy.special import expit, gammaln

import noisewise as nw

N, LATE = 2500, 2000
MODELS = {
    "gaussian": nw.SelfTuned(),
    "binomial": nw.RidgeMixture("binomial"),
    "poisson": nw.RidgeMixture("poisson"),
}
FEATURES = [
    "a rare dummy", "a late feature", "a late level", "a constant column", "rounding errors",
    "duplicate columns", "an offset", "outlying rows", "more columns than rows", "one row", "zeros",
]  # fmt: skip
NO_SIGNAL = ["outlying rows", "more columns than rows", "one row", "zeros"]
CASES = [(family, case, "noise") for family in MODELS for case in FEATURES]
CASES += [("gaussian", case, "signal") for case in FEATURES]
CASES += [(family, "plain", "equal labels, then drift") for family in MODELS]
CASES += [(family, "plain", "equal labels") for family in MODELS]
CASES += [("gaussian", "plain", "outliers"), ("binomial", "plain", "separated")]
CASES += [("binomial", "an offset", "separated"), ("poisson", "plain", "heavy counts")]


def features(case, rng):
    x, rare = rng.normal(size=(N, 4)), rng.random(N) < 0.01
    late = np.where(np.arange(N) < LATE, 0.0, 1e4)
    extra = {
        "a rare dummy": rare,
        "a late feature": late * rng.normal(size=N),
        "a late level": late,
        "a constant column": np.full(N, 7.0),
        "rounding errors": 1 + 2.0**-52 * rng.integers(0, 2, N),
        "duplicate columns": x,
    }
    match case:
        case "an offset":
            return x + 1e6
        case "outlying rows":
            return x * (1 + 1000 * rare)[:, None]
        case "more columns than rows":
            return rng.normal(size=(40, 100))
        case "one row":
            return x[:1]
        case "zeros":
            return np.zeros((N, 2))
    return np.column_stack([x, extra[case]]) if case in extra else x


def labels(family, kind, x, rng):
    n, gaussian = len(x), family == "gaussian"
    score = np.clip((x[:, 1] - x[:, 1].mean()) / (x[:, 1].std() or 1.0), -3, 3)
    if kind == "noise":
        score = np.zeros(n)
    if kind == "equal labels, then drift":
        score = np.clip(np.cumsum(rng.normal(size=n)) * (1.0 if gaussian else 0.1), -100, 8)
    if kind == "separated":
        return (score > 0).astype(float)
    if gaussian:
        wild = kind == "outliers"
        y = score + rng.normal(size=n) * np.where(wild & (rng.random(n) < 0.01), 1000.0, 1.0)
        y += x[0, 0] if abs(x[0, 0]) > 1e5 else 0.0  # an offset, too
    elif family == "binomial":
        y = rng.random(n) < expit(score - 1)
    else:
        y = rng.poisson(np.exp(score) * (rng.pareto(1.5, n) if kind == "heavy counts" else 1.0))
    equal = {"equal labels": n, "equal labels, then drift": 30}.get(kind, 0)
    return np.where(np.arange(n) < equal, 1.0, y)


def losses(family, y, means):
    if family == "gaussian":
        return (means - y) ** 2
    if family == "binomial":
        return -np.log(np.where(y > 0, means, 1 - means))
    return means - y * np.log(means) + gammaln(y + 1)


def running_mean(family, y):
    """The mean of the labels so far, for shares and counts with a prediction as one label more.

    It begins with what the models predict, and is the estimate of Krichevsky and Trofimov for
    labels 0 and 1.
    """
    first, more = {"gaussian": (0.0, 0), "binomial": (0.5, 1), "poisson": (1.0, 1)}[family]
    later = (np.cumsum(y)[:-1] + first * more) / (np.arange(1, len(y)) + more)
    return np.append(first, later)


@pytest.mark.parametrize(("family", "case", "kind"), CASES, ids=lambda word: word)
def test_awkward_streams_do_little_harm(family, case, kind):
    for seed in range(3 if family == "gaussian" else 1):
        rng = np.random.default_rng([seed, len(case), len(kind)])
        x = features(case, rng)
        y = labels(family, kind, x, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            means = nw.predictions(MODELS[family], x, y)
        assert np.isfinite(means).all()
        usual = running_mean(family, y)
        assert means[0] == usual[0]
        lost, usually = (losses(family, y, each)[1:].sum() for each in (means, usual))
        assert lost <= 1.1 * usually + 1e-20
        if (
            kind in ("signal", "separated")
            and len(x) == N
            and case not in ("outlying rows", "zeros")
        ):
            assert lost < 0.7 * usually


@pytest.mark.parametrize("case", [*FEATURES, "plain"])
def test_other_settings_predict_numbers(case):
    for kind in ("noise", "equal labels"):
        rng = np.random.default_rng(4)
        x = features(case, rng)
        y = labels("gaussian", kind, x, rng)
        for spec in (nw.SelfTuned(fit_intercept=False), nw.SelfTuned(1e-3, (1.0, 0.9))):
            assert np.isfinite(nw.predictions(spec, x, y)).all()
