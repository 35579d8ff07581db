"""Logs without probabilities: estimated by choice only, and how far that may be relied on."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import binom
from test_off_policy import BEST, BITS, CONTEXT, MEANS, SINGLES, TRUTH, invoke

import noisewise as nw
from noisewise.evaluation.off_policy import decision_table, logging_policy

RNG = np.random.default_rng
TILT = np.array([[0.8, -0.4, 0.0], [0.0, 0.6, -0.6], [-0.5, 0.0, 0.5]])
SOFTMAX = softmax(BITS @ TILT.T, axis=1)  # (8, 3), of the logging policy
PLAYED = float((SOFTMAX * MEANS).sum(axis=1).mean())


def logged(rng, n):
    """Decisions of a softmax of scores that are linear in the context; and its probabilities."""
    x = rng.integers(8, size=n)
    a = (rng.random(n)[:, None] > SOFTMAX[x].cumsum(axis=1)).sum(axis=1)
    y = (rng.random(n) < MEANS[x, a]).astype(float)
    columns = {f"b{i}": BITS[x, i] for i in range(3)}
    return {**columns, "action": a, "reward": y}, SOFTMAX[x, a], x


def estimated(log):
    table = decision_table.read(
        log, action="action", reward="reward", probability="probability", context=None,
        actions=None, unrecorded=True,
    )  # fmt: skip
    return logging_policy.with_probabilities(table).probability


def test_probabilities_are_those_of_a_softmax_fitted_to_the_other_parts():
    """Beside the maximum of the likelihood, by scipy; the mixture of ridges is near it."""
    log, p, _ = logged(RNG(0), 3000)
    found, a = estimated(log), log["action"]
    X = np.column_stack([np.ones(len(a)), *(log[name] for name in CONTEXT)])
    fold = logging_policy._folds(a, 3)
    own = np.empty(len(a))
    for k in range(5):
        there = fold != k

        def loss(theta, there=there):
            scores = X[there] @ theta.reshape(4, 3)
            taken = scores[np.arange(len(scores)), a[there]]
            return (logsumexp(scores, axis=1) - taken).sum() + 1e-6 * theta @ theta

        theta = minimize(loss, np.zeros(12)).x.reshape(4, 3)
        own[~there] = softmax(X @ theta, axis=1)[np.arange(len(a)), a][~there]
    np.testing.assert_allclose(found, own, rtol=0.03)
    assert np.abs(found - p).mean() < 0.03


def test_without_a_context_they_are_the_shares_of_the_other_parts():
    rng = RNG(1)
    a = rng.choice(4, size=1000, p=[0.4, 0.3, 0.2, 0.1])
    found = estimated({"action": a, "reward": rng.random(1000)})
    fold = logging_policy._folds(a, 4)
    shares = [(a[fold != f] == k).mean() for k, f in zip(a, fold, strict=True)]
    np.testing.assert_allclose(found, shares, rtol=0.01)


def test_it_is_an_explicit_choice_that_the_result_names():
    log, p, _ = logged(RNG(2), 800)
    with pytest.raises(ValueError, match=r"no column 'probability'.*estimate_probability=True"):
        nw.off_policy_value(log, "1")
    with pytest.raises(ValueError, match="has a column 'probability', which is better"):
        nw.off_policy_value({**log, "probability": p}, "1", estimate_probability=True)
    with pytest.raises(ValueError, match="pass True or False"):
        nw.off_policy_value(log, "1", estimate_probability="yes")
    found = nw.off_policy_value(log, "1", estimate_probability=True)
    assert "estimated from this log by logistic regression" in found.rests_on
    assert "estimated: if the log's policy changed with time" in repr(found)
    judged = [e for e in found.estimates if e.policy != "played"]
    assert len(judged) == 16
    for each in judged:
        assert "recorded" not in each.rests_on
        assert "all times" not in each.promise
    assert "all times" in found.of("played", "anytime").promise  # which needs no probability
    assert nw.off_policy_value({**log, "probability": p}, "1").rests_on.startswith(
        "probabilities as recorded"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": ["a"] * 6}, "log has one action"),
        ({"action": [*"ababac"]}, "'c' was taken once"),
        ({"arms": [np.eye(2)] * 6}, "features of arms in place of a context"),
    ],
)
def test_what_no_log_tells_is_refused(change, words):
    log = {"action": [*"ababab"], "reward": [0.0, 1.0] * 3} | change
    with pytest.raises(ValueError, match=words):
        nw.off_policy_value(log, "a", estimate_probability=True)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_an_action_taken_twice_or_never_is_no_obstacle():
    log, _, _ = logged(RNG(3), 300)
    log["action"] = [*log["action"][:-2], 7, 7]
    found = nw.off_policy_value(log, "7", actions=[0, 1, 2, 7, 8], estimate_probability=True)
    assert not found.of("7", "ips").reliable
    assert not found.of("8", "ips").reliable


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_all_kinds_are_logs(kind):
    log, p, _ = logged(RNG(5), 200)
    log["probability"] = p
    with warnings.catch_warnings(action="ignore"):
        assert nw.off_policy_value(kind(log), "1").value == nw.off_policy_value(log, "1").value


def test_the_command_estimates_when_asked(tmp_path):
    log, _, _ = logged(RNG(4), 300)
    path = tmp_path / "log.csv"
    pd.DataFrame(log).to_csv(path, index=False)
    refused = invoke(path, "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "add --estimate-probability" in " ".join(refused.output.split())
    done = invoke(path, "--out", tmp_path / "out", "--estimate-probability")
    assert done.exit_code == 0, done.output
    assert "estimated from this log" in done.output
    assert "estimated from this log" in (tmp_path / "out/index.html").read_text()


@pytest.mark.slow
def test_intervals_cover_with_estimated_probabilities():
    """300 logs: at delta 0.05 at most one in ten misses; false alarm below 1e-6 for each count."""
    logs, missed, width = 300, {}, {}
    for rng in RNG(20311).spawn(logs):
        log, p, x = logged(rng, 1000)
        for known in (True, False):
            given = {**log, "probability": p} if known else log
            with warnings.catch_warnings(action="ignore"):
                found = nw.off_policy_value(
                    given, np.eye(3)[BEST[x]], estimate_probability=not known
                )
            truths = {"policy": TRUTH, "gain": TRUTH - PLAYED}
            truths |= {str(k): mean for k, mean in enumerate(SINGLES)}
            for each in (e for e in found.estimates if e.policy in truths):
                if each.reliable:
                    key = each.policy, each.estimator, known
                    hit = each.lower <= truths[each.policy] <= each.upper
                    missed.setdefault(key, []).append(not hit)
                    width.setdefault(key, []).append(each.upper - each.lower)
    for policy, estimator, known in missed:
        if not known:
            own, other = ((policy, estimator, each) for each in (False, True))
            print(
                policy, estimator, len(missed[own]), "logs, miss", np.mean(missed[own]),
                "known", np.mean(missed[other]), "width over that with known probabilities",
                np.mean(width[own]) / np.mean(width[other]),
            )  # fmt: skip
            assert sum(missed[own]) <= binom.isf(1e-6, len(missed[own]), 0.1)
            assert 0.7 < np.mean(width[own]) / np.mean(width[other]) < 1.3
