"""Which values from logs are called reliable: sentences, formulas by hand, known worlds."""

import importlib
import math
import warnings

import numpy as np
import pytest
from places import ROOT
from scipy.optimize import brentq
from scipy.stats import binom
from scipy.stats import t as student

import noisewise as nw
from noisewise.evaluation.off_policy import estimates, reliability

RNG = np.random.default_rng


def test_every_warning_and_note():
    """Each sentence on what can't be relied on, once, from a log that deserves it."""
    fair = {"action": ["a", "b"] * 200, "probability": [0.5] * 400}
    hits = {**fair, "reward": ([1.0] * 10 + [0.0] * 90) * 4}
    half, rare = [[0.5, 0.5]] * 400, [0.5] * 398 + [1 / 300] * 2
    said = {
        "a: its value rests on a few rewards that differ from the others, such as successes, as if "
        "on 10; it takes 20": {**fair, "reward": [1.0, 0.0] * 10 + [0.0] * 380},
        "a: its rewards in the log are all equal, so their spread is not known": {
            **fair, "reward": [1.0, 0.0] * 200
        },
        "a: its largest weight, 300, has 99 % of the sum of squared weights; more than 5 % "
        "suggests that larger ones are missing from the log, which a column 'probabilities' would "
        "show": {**hits, "probability": rare},
        "a, ips: its standard error rests on about 9 decisions; it takes 10": {
            "action": ["a"] * 200 + ["b"] * 200, "reward": ([1.0] * 8 + [0.0] * 32) * 10,
            "probability": [0.1] * 40 + [0.9] * 160 + [0.5] * 200,
        },
        "a: 50 % of its decisions had probability 0 in the log": {
            **hits, "probabilities": [[1.0, 0.0], [0.0, 1.0]] * 200, "probability": [1.0] * 400
        },
        "a: weights average 0.625 instead of 1; probabilities are wrong": {
            **hits, "probability": [0.8] * 400
        },
        "a: weights average 0.833 instead of 1, so about 17 % of its decisions may have had": {
            **hits, "probability": [0.6] * 400
        },
        "a: the anytime interval is infinite, since rewards have no known range and its effective "
        "sample size is 50, where it takes 100; pass reward_range if there is one": {
            name: column[:100] for name, column in {**hits, "reward": [5.0, 5, 0, 0] * 100}.items()
        },
        "a: the anytime interval is infinite, since rewards have no known range and some of its "
        "decisions may be missing from the log; pass reward_range if there is one": {
            **hits, "reward": [5.0, 5, 0, 0] * 100, "probability": [0.8] * 400
        },
        "a: the anytime interval says nothing, since no value explains these rewards; the recorded "
        "probabilities are wrong": {
            "action": ["a"] * 400, "reward": [1.0, 0.0] * 200, "probability": [0.1] * 400
        },
        "unreliable: the line has no interval, for the reason in the warnings; use the anytime "
        "one.": {name: column[:10] for name, column in hits.items()},
    }  # fmt: skip
    for words, log in said.items():
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = nw.off_policy_value(log, "a")
        assert repr(found).count(words) == 1, (words, found)
        doubted = [e for e in found.estimates if not e.reliable]
        assert all(math.isnan(e.lower) and math.isnan(e.upper) for e in doubted)
        assert bool(warned) == any(e.policy == "a" for e in doubted)
    clean = nw.off_policy_value({**hits, "probabilities": half}, "a")
    assert not clean.warnings
    assert "unreliable" not in repr(clean)


def test_weights_that_were_likely_but_not_met_are_known_from_the_probabilities_of_all():
    """One decision in twenty had probability 1/1000 for "a", which was never taken there."""
    n = 2000
    p = np.where(np.arange(n) % 20, 0.5, 0.001)
    a = RNG(0).random(n) < p
    assert not a[::20].any()
    log = {"action": np.where(a, "a", "b"), "reward": RNG(1).integers(2, size=n).astype(float)}
    log["probability"] = np.where(a, p, 1 - p)
    assert nw.off_policy_value(log, "a").of("a", "ips").reliable
    log["probabilities"] = np.column_stack([p, 1 - p])
    with pytest.warns(UserWarning, match="rests on about 0 decisions"):
        assert not nw.off_policy_value(log, "a").of("a", "ips").reliable


def test_what_is_behind_a_standard_error_by_hand():
    """Weights 2 and 1, and a share of 1/4 of successes; then all of it from the probabilities."""
    w, r = np.repeat([2.0, 1.0], 8), np.tile([1.0, 0.0, 0.0, 0.0], 4)
    weights = (8 * 4 + 8) ** 2 / (8 * 16 + 8)
    squares = np.array([9 / 16, 1 / 16])
    share = (squares @ [1 / 4, 3 / 4]) ** 2 / (squares**2 @ [1 / 4, 3 / 4])
    assert reliability.behind(w) == pytest.approx(weights)
    assert reliability.expected(w, r, weights) == pytest.approx(weights * share)
    hits = np.zeros(1000)
    hits[:25] = 3.0
    assert reliability.behind(hits - hits.mean()) == pytest.approx(25, rel=0.1)
    assert reliability.share(hits) == 1 / 25


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["random", "exponential"])
def test_the_interval_of_a_mean_by_its_equation(kind, sign):
    """Hall's cubic of the studentised error is a quantile; the other end is Student's."""
    terms = sign * getattr(RNG(2), kind)(size=80)
    n, mean, d = len(terms), terms.mean(), terms - terms.mean()
    error = math.sqrt((terms.var(ddof=1) + np.abs(d).max() ** 2 / (n - 1)) / n)
    kurtosis = (d**4).mean() / (d**2).mean() ** 2
    t = student.isf(0.025, min(n - 1, 2 * n / (kurtosis - 1)))
    c = (d**3).mean() / (d**2).mean() ** 1.5 / math.sqrt(n)

    def cubic(T, quantile):
        return T + c * T**2 / 3 + c**2 * T**3 / 27 + c / 6 - quantile

    lower, upper = estimates.normal(mean, terms, 0.05, None)
    assert lower == pytest.approx(mean - error * max(t, brentq(cubic, -9, 9, args=(t,))))
    assert upper == pytest.approx(mean + error * max(t, -brentq(cubic, -9, 9, args=(-t,))))
    if kind == "exponential":
        assert abs((mean - lower) - (upper - mean)) > 0.1 * error


HOPELESS, CLEAR = (
    ("softmax, down to 1e-3", "expit(3z)", "5 hits"),
    ("50 hits", "weights 1.1 and 9.1", "benign"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*HOPELESS, *CLEAR, "3 % and 3.6 %, agent", "expit(z)", "lognormal"]
)
def test_lines_called_reliable_are(name, monkeypatch):
    """They miss with at most 0.075, and anytime intervals ever with 0.05 (0.075 without a range).

    100 logs; false alarm below 1e-6 for each policy and estimator, if the rates hold.
    """
    monkeypatch.syspath_prepend(ROOT)
    logs = importlib.import_module("benchmarks.logs")
    found = logs.measure(logs.worlds()[name], 100, 13)
    print(name, {key: counts.tolist() for key, counts in found.items()})
    for (policy, estimator), (lines, reliable, missed) in found.items():
        if estimator == "anytime":
            assert missed <= binom.isf(1e-6, lines, 0.075 if name == "lognormal" else 0.05)
        elif reliable:
            assert missed <= binom.isf(1e-6, reliable, 0.075)
        if estimator != "anytime":
            assert reliable >= 0.8 * lines or name not in CLEAR
            assert reliable <= 0.1 * lines or name not in HOPELESS or policy == "played"
