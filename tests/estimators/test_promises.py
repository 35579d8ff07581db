"""What an interval promises, what it rests on, and what happens where data contradict that."""

import pickle
import warnings

import numpy as np
import pytest
from instances import sphere

import noisewise as nw

RNG = np.random.default_rng
GAUSSIAN = nw.SubGaussian(0.5)


def learnt(glm, y, x, w=1.0, **kwargs):
    ftrl = nw.FTRL(glm, **kwargs)
    state = ftrl.start(x.shape[1])
    ftrl.update(state, x, y, w)
    return ftrl, state


@pytest.fixture
def plain():
    rng = RNG(1)
    x = sphere(rng, 200, 3)
    return learnt(nw.GLM(), x @ [0.5, -0.3, 0.2] + 0.5 * rng.normal(size=200), x)


def test_an_interval_unpacks_and_says_what_it_promises(plain):
    ftrl, state = plain
    found = [
        ftrl.interval(state, np.eye(3)[0], GAUSSIAN, **how)
        for how in ({}, {"simultaneous": False}, {"anytime": False})
    ]
    assert [each.promise for each in found] == [
        "all rows, all times",
        "a row fixed in advance, all times",
        "a row fixed in advance, one time",
    ]
    lower, upper = found[0]
    assert (lower, upper) == (found[0].lower, found[0].upper)
    widths = [each.upper - each.lower for each in found]
    assert widths[0] > widths[1] > widths[2] > 0
    again = pickle.loads(pickle.dumps(found[1]))
    assert (again, again.promise, again.rests_on) == (found[1], found[1].promise, found[1].rests_on)
    assert "parameter_bound 1" in found[0].rests_on
    assert "past labels" in found[1].rests_on


def test_the_textbook_interval_is_that_of_other_packages():
    """Ordinary and weighted least squares, and logistic regression, by statsmodels."""
    sm = pytest.importorskip("statsmodels.api")
    rng = RNG(2)
    x, w = sphere(rng, 300, 3), rng.uniform(0.5, 3, 300)
    y = x @ [0.5, -0.3, 0.2] + rng.normal(size=300) / np.sqrt(w)
    ftrl, state = learnt(nw.GLM(), y, x, w)
    found = ftrl.interval(state, np.eye(3), "gaussian", anytime=False)
    np.testing.assert_allclose(np.array(found).T, sm.WLS(y, x, w).fit().conf_int(), rtol=1e-9)
    clicks = (rng.random(300) < 1 / (1 + np.exp(-x @ [0.5, -0.3, 0.2]))).astype(float)
    ftrl, state = learnt(nw.GLM("logistic", 1.0, 10.0), clicks, x)
    found = ftrl.glm.score(ftrl.interval(state, np.eye(3), nw.Likelihood(), anytime=False))
    wanted = sm.GLM(clicks, x, sm.families.Binomial()).fit(tol=1e-12).conf_int()
    np.testing.assert_allclose(np.array(found).T, wanted, rtol=1e-6)


def test_directions_nobody_has_seen_have_no_bound():
    x = np.array([[1.0, 0.0], [-0.5, 0.0]])
    ftrl, state = learnt(nw.GLM(), np.array([0.3, -0.1]), x)
    lower, upper = ftrl.interval(
        state, [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], GAUSSIAN, anytime=False
    )
    assert lower[0] == -np.inf
    assert upper[0] == np.inf
    assert np.isfinite([lower[1], upper[1]]).all()
    assert lower[2] == upper[2] == 0.0
    shares, state = learnt(nw.GLM("logistic"), np.array([1.0, 0.0]), x)
    assert shares.interval(state, [1.0, 0.0], nw.Likelihood(), simultaneous=False) == (0.0, 1.0)


def test_a_bound_that_data_contradict_is_dropped_and_said_once():
    rng = RNG(3)
    x = sphere(rng, 500, 2)
    ftrl, state = learnt(nw.GLM(), x @ [4.0, 3.0] + 0.1 * rng.normal(size=500), x, ridge=0.1)
    noise, row = nw.SubGaussian(0.1), np.array([0.8, 0.6])
    with pytest.warns(UserWarning, match="contradict parameter_bound 1 by more than noise"):
        found = ftrl.interval(state, row, noise)
    assert found.lower < 5.0 < found.upper
    assert found.lower <= ftrl.predict(state, row) <= found.upper
    assert "pass a larger one" in found.note
    assert "norm at most 16" in found.rests_on
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ftrl.interval(state, row, noise).note


def test_an_estimate_beyond_the_bound_by_noise_is_held_by_its_interval():
    x = np.array([[1.0, 0.0]])
    ftrl, state = learnt(nw.GLM(), np.array([1.5]), x, ridge=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ftrl.interval(state, [1.0, 0.0], nw.SubGaussian(1.0))
    assert found.upper > ftrl.predict(state, [1.0, 0.0]) > 1.0
    assert "beyond parameter_bound 1" in found.note


@pytest.mark.parametrize("link", ["identity", "logistic"])
@pytest.mark.parametrize("ridge", [None, "interval"])
def test_intervals_hold_the_truth_though_the_bound_does_not(link, ridge):
    """Twenty streams of norms 1.9 to 10 with a bound of 1: at delta = 0.05 at most 6 may miss."""
    missed, glm = 0, nw.GLM(link)
    noise = nw.SubGaussian(0.3) if glm.linear else nw.Likelihood()
    lam = None if ridge is None else nw.theory.interval_ridge(glm, noise, 2)
    wide = nw.GLM(link, 1.0, 20.0)
    for seed in range(20):
        rng = RNG([9, seed])
        x = rng.uniform(-0.5, 0.5, (400, 2))
        truth = 10 ** rng.uniform(0.28, 1) * sphere(rng, 1, 2)[0]
        mean = wide.mean(x @ truth)
        n = np.full(400, 50)
        y = mean + 0.3 * rng.normal(size=400) if glm.linear else rng.binomial(n, mean) / n
        ftrl, state = learnt(glm, y, x, 1.0 if glm.linear else 50.0, ridge=lam)
        with pytest.warns(UserWarning, match="by more than noise"):
            lower, upper = ftrl.interval(state, x[:50], noise)
        assert (lower <= upper).all()
        missed += not ((lower <= mean[:50]) & (mean[:50] <= upper)).all()
    assert missed <= 6  # false alarm below 4e-5


@pytest.mark.parametrize(
    ("link", "label", "weight"),
    [
        ("logistic", 17.0, 40.0),
        ("logistic", -1.0, 1.0),
        ("exponential", -2.0, 1.0),
        ("tanh", 3.0, 1.0),
    ],
)
def test_labels_outside_the_family_have_no_likelihood(link, label, weight):
    ftrl, state = learnt(nw.GLM(link), np.array([label]), np.array([[1.0]]), weight)
    for how in ({}, {"simultaneous": False}):
        with pytest.raises(ValueError, match=r"labels reach from .*lie in"):
            ftrl.interval(state, [1.0], nw.Likelihood(), **how)
    with pytest.raises(ValueError, match="labels reach"):
        ftrl.ellipsoid(state, nw.Likelihood())


@pytest.mark.parametrize("link", ["logistic", "probit", "tanh", "algebraic", "exponential"])
@pytest.mark.parametrize("tolerance", [0.1, 0.0])
def test_predictions_stay_in_the_range_of_the_link(link, tolerance):
    glm = nw.GLM(link, 1.0, 1.0)
    x = np.array([[1.0]])
    for label in (60.0, -60.0):
        ftrl, state = learnt(glm, np.array([label]), x, 50.0, ridge=0.01, tolerance=tolerance)
        assert abs(state.theta[0]) > 5
        low, high = glm.ends
        assert low <= ftrl.predict(state, [1.0]) <= high
        assert low <= ftrl.update(state, [1.0], 0.5) <= high
        assert low <= ftrl.update(state, x, [0.5])[0] <= high


def test_a_state_of_another_model_is_refused(plain):
    _, state = plain
    others = [nw.GLM("logistic"), nw.GLM("identity", 2.0), nw.GLM("identity", 1.0, 3.0)]
    for other in map(nw.FTRL, others):
        for call, given in (
            (other.predict, (np.eye(3),)),
            (other.update, (np.eye(3), np.ones(3))),
            (other.update, (np.eye(3)[0].copy(), 1.0)),
            (other.solve, ()),
            (other.interval, (np.eye(3), GAUSSIAN)),
            (other.ellipsoid, (GAUSSIAN,)),
        ):
            with pytest.raises(ValueError, match="another model"):
                call(state, *given)


def test_noise_that_can_not_be_is_refused(plain):
    ftrl, state = plain
    with pytest.raises(ValueError, match="sigma is 2, above bound 1"):
        nw.Bounded(1.0, 2.0)
    with pytest.raises(ValueError, match="simultaneous=False"):
        ftrl.interval(state, np.eye(3), "gaussian")
    for bad in (None, 0.3, nw.SubGaussian):
        with pytest.raises(ValueError, match="noise is"):
            ftrl.interval(state, np.eye(3), bad, simultaneous=False)
    with pytest.raises(ValueError, match="noise is 'normal'"):
        ftrl.interval(state, np.eye(3), "normal", simultaneous=False)
    curved, shares = learnt(nw.GLM("logistic"), np.ones(1), np.ones((1, 1)))
    with pytest.raises(ValueError, match="labels of the logistic link are not"):
        curved.interval(shares, [1.0], "gaussian", simultaneous=False)
