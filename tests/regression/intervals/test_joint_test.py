"""The F test at all times: two other formulas, the t interval, the textbook, and false alarms."""

import numpy as np
import pytest
from scipy import stats

import noisewise as nw

RNG = np.random.default_rng


def learnt(count, effects, seed=0, sd=0.7, noise="auto", intercept=True):
    """A model of correlated features with weights; x, y and w."""
    rng, d = RNG(seed), len(effects)
    x = rng.normal(size=(count, d)) @ (np.eye(d) + 0.4) + 3.0
    w = rng.uniform(0.5, 2.0, count)
    y = 2.0 * intercept + x @ effects + sd * rng.normal(size=count) / np.sqrt(w)
    model = nw.OnlineGLM(noise=noise, fit_intercept=intercept).partial_fit(x, y, w)
    return model, x, y, w


def by_hand(x, y, w, tested, value, sd=None, intercept=True):
    """Two likelihoods of all labels, n x n: nuisance coefficients and the scale integrated out.

    Without effects the variance is I, with effects of the mixture I + Z P Z'.
    """
    n, d = x.shape
    root = np.sqrt(w)[:, None]
    first, weights = x[: 2 * d + 10], w[: 2 * d + 10]
    centre = (weights @ first / weights.sum()) if intercept else np.zeros(d)
    M = (first - centre).T @ (weights[:, None] * (first - centre)) / len(first)
    prior = np.linalg.inv(M)[np.ix_(tested, tested)] / 10
    Z = root * x[:, tested]
    rest = np.hstack([np.ones((n, int(intercept))), np.delete(x, tested, axis=1)]) * root
    label = root[:, 0] * y - Z @ np.broadcast_to(value, len(tested))
    found = []
    for V in (np.eye(n), np.eye(n) + Z @ prior @ Z.T):
        P, inner = np.linalg.inv(V), rest.T @ np.linalg.solve(V, rest)
        left = label @ (P - P @ rest @ np.linalg.solve(inner, rest.T @ P)) @ label
        dets = np.linalg.slogdet(V)[1] + np.linalg.slogdet(inner)[1]
        fit = left / sd**2 if sd else (n - rest.shape[1]) * np.log(left)
        found.append(-0.5 * (dets + fit))
    return found[1] - found[0]


@pytest.mark.parametrize("sd", [None, 0.7])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("tested", [[1], [0, 2], [0, 1, 2, 3]])
def test_the_evidence_is_a_ratio_of_likelihoods(sd, intercept, tested):
    """The closed form against matrices as large as the rows are many."""
    noise = nw.SubGaussian(sd) if sd else "auto"
    model, x, y, w = learnt(80, [0.0, 0.1, 0.0, 0.3], noise=noise, intercept=intercept)
    for value in (0.0, 0.1 * np.arange(1.0, len(tested) + 1)):
        found = model.joint_test(tested, value)
        wanted = by_hand(x, y, w, tested, value, sd, intercept)
        assert np.log(found.evidence) == pytest.approx(wanted, rel=1e-7, abs=1e-7)
        assert found.p_value == pytest.approx(min(1.0, np.exp(-wanted)), rel=1e-6)


@pytest.mark.parametrize("noise", ["auto", nw.SubGaussian(0.7)])
def test_one_coefficient_has_the_p_value_of_its_interval(noise):
    """At an end of the interval of level delta the p-value is delta, at all times and at one."""
    model, *_ = learnt(60, [0.0, 0.5, 0.0], noise=noise)
    for anytime in (True, False):
        for delta in (0.3, 0.05, 0.001):
            summary = model.summary(delta)
            interval = summary.anytime if anytime else summary.textbook
            for end in (interval.lower[1], interval.upper[1]):
                found = model.joint_test([1], end, anytime=anytime)
                assert found.p_value == pytest.approx(delta, rel=1e-6)


def test_at_one_time_it_is_the_f_test_of_the_textbook():
    """From the sums of squares of two fits, one without the features."""
    model, x, y, w = learnt(50, [0.2, 0.0, 0.1])
    root = np.sqrt(w)
    full = root[:, None] * np.column_stack([np.ones(50), x])
    left = [np.linalg.lstsq(A, root * y, rcond=None)[1][0] for A in (full, full[:, :2])]
    F = (left[1] - left[0]) / 2 / (left[0] / 46)
    found = model.joint_test(["x1", "x2"], anytime=False)
    assert found.statistic == pytest.approx(F)
    assert (found.count, found.freedom) == (2, 46)
    assert found.p_value == pytest.approx(stats.f.sf(F, 2, 46))


def test_units_of_features_and_labels_do_not_matter():
    model, x, y, w = learnt(60, [0.0, 0.2, 0.0])
    other = nw.OnlineGLM().partial_fit(x * [1e-6, 1e3, 1.0] + [5.0, 0.0, 1.0], 1e4 * y, w)
    one, two = model.joint_test([0, 1]), other.joint_test([0, 1])
    assert one.evidence == pytest.approx(two.evidence, rel=1e-6)


@pytest.mark.parametrize("noise", ["auto", nw.SubGaussian(1.0)])
def test_false_alarms_at_all_times_and_power(noise):
    """200 streams of 200 rows, looked at after every tenth; three features of no effect.

    The p-value falls to 0.1 in at most 40 of them, P(Bin(200, 0.1) > 40) < 1e-5; that of one sample
    size, looked at as often, in more. With effects of 0.4 it falls to 0.001 in all.
    """
    alarms, textbook, seen = 0, 0, 0
    for seed in range(200):
        rng = RNG([7, seed])
        x, e = rng.normal(size=(200, 4)), rng.normal(size=200)
        model, least = nw.OnlineGLM(noise=noise), [1.0, 1.0]
        for at in range(0, 200, 10):
            model.partial_fit(x[at : at + 10], x[at : at + 10, 3] + e[at : at + 10])
            for i, anytime in enumerate((True, False)):
                least[i] = min(least[i], model.joint_test([0, 1, 2], anytime=anytime).p_value)
        alarms, textbook = alarms + (least[0] <= 0.1), textbook + (least[1] <= 0.1)
        if seed < 20:
            real = nw.OnlineGLM(noise=noise).partial_fit(x, x @ [0.4, 0.4, 0.4, 1.0] + e)
            seen += real.joint_test([0, 1, 2]).p_value <= 0.001
    assert alarms <= 40 < textbook
    assert seen == 20


def test_what_can_not_be_tested_is_said():
    model, x, y, _ = learnt(60, [0.0, 0.2, 0.0])
    early = nw.OnlineGLM().partial_fit(x[:12], y[:12])
    found = early.joint_test([0, 1])
    assert (found.p_value, found.evidence) == (1.0, 1.0)
    assert "begin at row 16" in found.note
    assert early.joint_test([0, 1], anytime=False).p_value < 1
    twice = nw.OnlineGLM().partial_fit(np.column_stack([x, x[:, 0]]), y)
    found = twice.joint_test([0, 1])
    assert found.p_value == 1
    assert "collinear" in found.note
    assert twice.joint_test([1, 2]).p_value < 1
    equal = nw.OnlineGLM().partial_fit(x, np.ones(60))
    assert "labels so far are equal" in equal.joint_test([0, 1]).note
    for bad in ([], [0, 0], ["x0", 0], [3], ["colour"], [0.5]):
        with pytest.raises(ValueError, match="features"):
            model.joint_test(bad)
    with pytest.raises(ValueError, match="value"):
        model.joint_test([0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="gaussian"):
        nw.OnlineGLM("poisson").partial_fit(x, np.arange(60.0)).joint_test([0, 1])
