"""Numbers at the ends of what floats hold: learnt, or refused before anything is written."""

import dataclasses
import pickle
import warnings
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from calls import changed
from instances import BARE, CAUCHIT, POLICIES, REGRESSORS
from mutants import learnt_by, used

import noisewise as nw
from noisewise.adapters.river import RiverRegressor
from noisewise.confidence import Ellipsoid
from noisewise.kernels.glm import adaptive_set

RNG = np.random.default_rng(6)
X = RNG.normal(size=(80, 2))
Y = 1 + X @ [1.0, -0.5] + RNG.normal(size=80)
LABELS = {"gaussian": Y, "binomial": (Y > 0) * 1.0, "poisson": RNG.poisson(np.exp(0.3 * Y)) * 1.0}


@pytest.mark.parametrize("link", ["identity", "tanh", CAUCHIT, BARE], ids=str)
def test_the_practical_ridge_stays_a_number_under_huge_rewards(link, tmp_path):
    """Rewards of 9e49 on short arms, where d g / 2 N^2 is below what can be computed with."""
    policy, rng = nw.FTRLUCB(nw.GLM(link), radius="practical"), np.random.default_rng(0)
    state, arm = policy.start(2), np.array([0.03, 0.0])
    for count, reward in enumerate((9e49, -9e49, 1.0, 9e49), 1):
        policy.update(state, arm, reward, 0.05)
        assert state.count == state.layers[0].count == count
    assert policy.select(state, 0.5 * np.eye(2), rng) in (0, 1)
    nw.save(tmp_path / "a.npz", policy, state)
    nw.load(tmp_path / "a.npz", link=None if isinstance(link, str) else link)


def test_intervals_of_counts_far_beyond_the_bound_are_answered():
    """Larger bounds are tried, for which e^s of the mixture is beyond floats."""
    ftrl = nw.FTRL(nw.GLM("exponential", 1.0, 2.0))
    state = ftrl.start(2)
    ftrl.update(state, 0.4 * np.eye(2), np.array([1e30, 1e49]))
    with warnings.catch_warnings():  # that labels contradict the bound hangs on last bits here
        warnings.simplefilter("ignore", UserWarning)
        interval = ftrl.interval(state, 0.4 * np.eye(2), nw.Likelihood())
    assert (interval.lower <= ftrl.predict(state, 0.4 * np.eye(2))).all()
    assert not np.isnan([interval.lower, interval.upper]).any()


@pytest.mark.parametrize("bound", [2.0, 40.0, 60.0, 130.0])
def test_policies_of_counts_with_large_bounds_are_played_and_saved(bound, tmp_path):
    glm, rng = nw.GLM("exponential", 1.0, bound), np.random.default_rng(1)
    policy = nw.FTRLUCB(glm, "likelihood")
    state, arms = policy.start(2), 0.01 * np.eye(2)
    for _ in range(12):
        k = policy.select(state, arms, rng)
        policy.update(state, arms[k], float(rng.poisson(1.0)), 1.0)
    nw.save(tmp_path / "a.npz", policy, state)
    _, other = nw.load(tmp_path / "a.npz")
    assert policy.select(other, arms, rng) == policy.select(state, arms, rng)


@pytest.mark.parametrize("bound", [1e-9, 0.1, 2.0, 20.0])
def test_the_mixture_of_counts_is_that_of_its_formula(bound):
    """log det(I + c G / 2 lam0) <= log det + d log(c lam / lam0), c = (e^s - 1)/s by its series."""
    glm, state = nw.GLM("exponential", 1.0, bound), nw.FTRL(nw.GLM("exponential")).start(2)
    prior = state.solver.prior(glm, state, 1.0)
    s = Fraction(bound) ** 2 / 4
    term = total = Fraction(1)
    for n in range(2, 600):
        term *= s / n
        total += term
    found = adaptive_set.counts_log_det(state.head, prior.counts, prior.ridge, 0.0)
    factor = float(total * Fraction(state.head.ridge) / Fraction(prior.ridge))
    assert found == pytest.approx(2 * max(np.log(factor), 0.0), rel=1e-12, abs=1e-12)


def by_columns(thing):
    """Yield copies of a state in each of which one matrix lies in memory by columns."""
    for field in dataclasses.fields(thing):
        value = vars(thing)[field.name]
        if isinstance(value, np.ndarray) and value.ndim > 1:
            yield (
                field.name,
                lambda name=field.name, value=value: dataclasses.replace(
                    pickle.loads(pickle.dumps(thing)), **{name: np.asfortranarray(value)}
                ),
            )
        elif dataclasses.is_dataclass(value):
            for name, make in by_columns(value):
                yield (
                    f"{field.name}.{name}",
                    lambda outer=field.name, make=make: dataclasses.replace(
                        pickle.loads(pickle.dumps(thing)), **{outer: make()}
                    ),
                )


@pytest.mark.parametrize("spec", [*REGRESSORS, *POLICIES], ids=repr)
def test_a_matrix_that_lies_by_columns_is_refused_or_used(spec):
    for name, make in by_columns(learnt_by(spec)):
        print(name)
        with warnings.catch_warnings(), suppress(ValueError):  # refused in words
            warnings.simplefilter("ignore")
            used(spec, make())


@pytest.mark.parametrize("family", LABELS)
@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-200, 1e-101])
def test_weights_too_small_to_compute_with_count_as_0(family, weight, tmp_path):
    y, tiny = LABELS[family], np.full(80, weight)
    with pytest.raises(ValueError, match="non-zero number; those below 1e-100 count as 0"):
        nw.OnlineGLM(family).fit(X, y, tiny)
    for kept in (slice(40), slice(40, 80)):  # the first rows, or the last
        w = tiny.copy()
        w[kept] = 2.0
        model, wanted = nw.OnlineGLM(family), nw.OnlineGLM(family)
        for some in (slice(60), slice(60, 80)):
            model.partial_fit(X[some], y[some], w[some])
            wanted.partial_fit(X[some], y[some], np.where(w > 1, w, 0.0)[some])
        for each, other in zip(model.predict_interval(X), wanted.predict_interval(X), strict=True):
            np.testing.assert_array_equal(each, other)
        assert not np.isnan(model.predict_interval(X).lower).any()
        nw.save(tmp_path / "a.npz", model)
        nw.load(tmp_path / "a.npz")


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160, 1e-101])
def test_labels_too_small_to_compute_with_count_as_0(size):
    """Equal labels tell nothing of their noise, so neither do these."""
    interval = nw.OnlineGLM().fit(X, size * Y).predict_interval(X)
    assert "all labels so far are equal" in interval.note
    assert (interval.upper == np.inf).all()
    mixed = np.where(np.arange(80) % 2 == 0, size * Y, Y)
    found = nw.OnlineGLM().fit(X, mixed).predict_interval(X)
    wanted = nw.OnlineGLM().fit(X, np.where(np.arange(80) % 2 == 0, 0.0, Y)).predict_interval(X)
    np.testing.assert_array_equal(found.lower, wanted.lower)


@pytest.mark.parametrize("family", LABELS)
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160, 1e-100, 1e-60])
def test_features_too_small_to_compute_with_count_as_0(family, size):
    """A column of them is constant; the intervals are those of the other column."""
    y = LABELS[family]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nw.OnlineGLM(family).fit(X * [1, size], y)
        interval = found.predict_interval(X * [1, size])
        wanted = nw.OnlineGLM(family).fit(X * [1, 0], y).predict_interval(X * [1, 0])
    np.testing.assert_array_equal(interval.lower, wanted.lower)
    np.testing.assert_array_equal(interval.upper, wanted.upper)
    means = found.predict(X * [1, size])
    assert ((interval.lower <= means) & (means <= interval.upper)).mean() > 0.9


@pytest.mark.parametrize("size", [1e-45, 1e-20, 1.0, 1e20])
def test_features_of_other_units_count_as_they_are(size):
    model, wanted = nw.OnlineGLM().fit(size * X, Y), nw.OnlineGLM().fit(X, Y)
    np.testing.assert_allclose(model.predict(size * X), wanted.predict(X), rtol=1e-6)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160])
def test_ftrl_says_that_labels_are_too_small_to_estimate_their_noise(size):
    ftrl = nw.FTRL(nw.GLM("identity", 10.0, 10.0))
    state = ftrl.start(2)
    ftrl.update(state, X, size * Y)
    with pytest.raises(ValueError, match="too small to estimate their noise; rescale the labels"):
        ftrl.interval(state, X, "gaussian", simultaneous=False)


@pytest.mark.parametrize("link", ["logistic", CAUCHIT, BARE], ids=str)
@pytest.mark.parametrize(("size", "weight"), [(1e-160, 1.0), (1e-155, 1.0), (1.0, 1e-310)])
@pytest.mark.parametrize("anytime", [False, True])
def test_rows_that_say_nothing_give_the_widest_interval(link, size, weight, anytime):
    ftrl = nw.FTRL(nw.GLM(link, 1.0, 2.0))
    x = 0.4 * size * X / np.linalg.norm(X, axis=1, keepdims=True)
    state = ftrl.start(2)
    ftrl.update(state, x, LABELS["binomial"] * 0.7 + 0.1, weight)
    with np.errstate(all="ignore"):
        interval = ftrl.interval(state, x, nw.SubGaussian(0.5), simultaneous=False, anytime=anytime)
    low, high = ftrl.glm.ends
    assert (interval.lower == low).all()
    assert (interval.upper == high).all()


COMPLEX = {
    "complex": X + 1j,
    "of objects": (X + 1j).astype(object),
    "numpy's own among objects": np.array([[np.complex128(1 + 1j), 1.0]] * 80, dtype=object),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_no_complex_number_loses_its_imaginary_part(name):
    x = COMPLEX[name]
    y, ball = x[:, 0], Ellipsoid(np.zeros(2), np.eye(2), 1.0)
    glm, model = nw.GLM("identity", 10.0, 10.0), nw.OnlineGLM().fit(X, Y)
    fits = [
        lambda: nw.fit_partitions(glm, [(x, Y)], ridge=0.5),
        lambda: nw.fit_partitions(glm, [(X, y)], ridge=0.5),
        lambda: nw.fit_partitions(glm, [(X, Y, y)], ridge=0.5),
        lambda: glm.mean(y),
        lambda: glm.slope(y),
        lambda: glm.potential(y),
        lambda: glm.score(y),
        lambda: glm.prediction(y),
        lambda: ball.upper(x),
        lambda: ball.lower(x),
        lambda: RiverRegressor().learn_one({"a": x[0, 0]}, 1.0),
        lambda: RiverRegressor().learn_one({"a": 1.0}, x[0, 0]),
        lambda: model.predict(x),
        lambda: model.partial_fit(X, y),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, where the imaginary part is lost
        for i, fit in enumerate(fits):
            with pytest.raises((ValueError, TypeError)):
                print(i, fit())


def test_a_refused_row_changes_nothing():
    """Before the number is refused nothing is written."""
    ftrl = nw.FTRL(nw.GLM("identity", 10.0, 10.0))
    state = ftrl.start(2)
    ftrl.update(state, X, Y)
    before = pickle.dumps(state)
    for x, y, w in ((X + 1j, Y, 1.0), (X, Y + 1j, 1.0), (X, Y, 1j), (X[0], 1j, 1.0)):
        with pytest.raises(ValueError, match="can't be read as numbers"):
            ftrl.update(state, x, y, w)
    assert not changed(before, pickle.dumps(state))


@pytest.mark.parametrize("size", [1e-30, 1e-80, 1e-97, 1e-160, 1e-300, 5e-324])
@pytest.mark.parametrize("sd", [None, 1e-19])
def test_rewards_of_any_size_are_learnt_and_saved(size, sd, tmp_path):
    """Those below 1e-100 count as 0; others are learnt as well as rewards of size 1."""
    path, theta, shares = tmp_path / "agent.npz", np.array([1.0, -1.0, 0.5]), []
    for unit in (1.0, size):
        agent, rng, best = nw.Agent.for_continuous_rewards(3), np.random.default_rng(0), []
        for t in range(200):
            x = rng.normal(size=(4, 3))
            k = agent.choose(x, key=t)
            best.append(k == np.argmax(x @ theta))
            noise = 0.3 * rng.normal()
            agent.learn(t, unit * (x[k] @ theta + noise), sigma=sd and sd * (1 + rng.random()))
        agent.save(path)
        nw.Agent.load(path)
        shares.append(np.mean(best[100:]))
    if size > 1e-98 and sd is None:
        assert shares[1] == shares[0]


@pytest.mark.parametrize("weight", [1e100, 1e140, 1e150, 1e300])
@pytest.mark.parametrize("rows", [1, 40])
def test_weights_too_large_for_a_file_are_refused(weight, rows, tmp_path):
    """A stream refuses what a batch does, and what it had learnt is as before."""
    model, path = nw.OnlineGLM().partial_fit(X, Y), tmp_path / "model.npz"
    nw.save(path, model)
    before = pickle.dumps(nw.load(path).predict(X))
    with pytest.raises(ValueError, match="too large to compute with"):
        model.partial_fit(10 * X[:rows], Y[:rows], sample_weight=np.full(rows, weight))
    nw.save(path, model)
    assert pickle.dumps(nw.load(path).predict(X)) == before
    with pytest.raises(ValueError, match="too large to compute with"):
        nw.OnlineGLM().partial_fit(10 * X[:rows], Y[:rows], sample_weight=np.full(rows, weight))


@pytest.mark.parametrize("weight", [1e12, 1e20, 1e30, 1e50, 1e97])
def test_heavy_rows_behind_light_ones_are_learnt(weight, tmp_path):
    """What is left are the heavy rows' least squares; from 1e40 on the state was NaN at times."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(30, 2))
        z, y = np.c_[x, np.ones(30)], x[:, 0] + rng.normal(size=30)
        wanted = z @ np.linalg.lstsq(z, y, rcond=None)[0]
        tuned = nw.SelfTuned(ridge=1.0, forgetting=1.0)
        state = tuned.start(2)
        tuned.update(state, x, rng.normal(size=30))
        tuned.update(state, x, y, weight)
        np.testing.assert_allclose(tuned.predict(state, x), wanted, atol=1e-9)
        model = nw.OnlineGLM().partial_fit(x, rng.normal(size=30))
        model.partial_fit(x, y, np.full(30, weight))
        nw.save(tmp_path / "model.npz", model)  # refuses what could not be loaded
        assert np.isfinite(model.predict(x)).all()


def test_a_curvature_that_is_lost_altogether_ends_no_step():
    """It was a ZeroDivisionError, in a file with edited numbers (fuzzer, seed 241111691)."""
    ftrl = nw.FTRL(nw.GLM("logistic"))
    state = ftrl.start(2)
    ftrl.update(state, 0.1 * X, LABELS["binomial"])
    state.rows.curvature[:] = 0.0
    state.head.stale_low = 0.0
    for _ in range(3):
        ftrl.solve(state)
        assert np.isfinite(state.head.leverage)
    assert np.isfinite(ftrl.update(state, 0.1 * X[0], 1.0))
