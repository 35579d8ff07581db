"""FTRLUCB by hand, kernels of it and MORUCB against the readable way, and what both refuse."""

import dataclasses

import numpy as np
import pytest
from histories import play, play_on
from instances import CAUCHIT, sphere

import noisewise as nw
from noisewise import environments as env
from noisewise import theory
from noisewise.regression.ftrl.sets import uniform


@pytest.mark.parametrize("link", ["identity", "logistic"])
@pytest.mark.parametrize("kind", ["practical", "adaptive", "layers", "likelihood", "bounded"])
def test_kernels_choose_and_learn_as_the_readable_way(link, kind):
    """The same choices, and the same sets to 1e-6 (1e-9 where nothing is solved anew)."""
    glm = nw.GLM(link, parameter_bound=2.0)
    policy = {
        "practical": nw.FTRLUCB(glm, radius="practical"),
        "adaptive": nw.FTRLUCB(glm),
        "layers": nw.MORUCB(glm, 1.0, 0.05),
        "likelihood": nw.FTRLUCB(glm, "likelihood", radius="practical"),
        "bounded": nw.FTRLUCB(glm, "bounded", 1.0),
    }[kind]
    for fixed in (False, True):
        world = env.NoisyBandit(glm=glm, fixed=fixed, dim=5, arms=7, rounds=700)
        rounds = world.draw(np.random.default_rng(3))
        if kind == "likelihood" and link == "logistic":
            rounds = dataclasses.replace(rounds, rewards=np.clip(rounds.rewards, 0, 1))
        quick = nw.choices(policy, rounds, np.random.default_rng(0))
        state, called = play(policy, rounds)
        slow = policy.start(5)
        slow.kernels = None
        _, readable = play_on(policy, slow, rounds)
        np.testing.assert_array_equal(quick, called)
        np.testing.assert_array_equal(quick, readable)
        np.testing.assert_allclose(state.theta, slow.theta, atol=1e-9)
        np.testing.assert_allclose(state.forms.radii, slow.forms.radii, rtol=1e-6)
        np.testing.assert_allclose(state.forms.inverses, slow.forms.inverses, rtol=1e-6, atol=1e-9)
        assert state.curvature == pytest.approx(slow.curvature) or kind == "layers"


@pytest.mark.parametrize("radius", ["practical", "adaptive"])
@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 300])
def test_kernels_look_at_every_one_of_many_arms(count, radius):
    """The last arm is best but for one, of which there are two: the first of these is taken."""
    policy, rng = nw.FTRLUCB(nw.GLM("logistic"), radius=radius), np.random.default_rng(count)
    state = policy.start(4)
    for x in sphere(rng, 50, 4):
        policy.update(state, x, float(x[0] > 0), 0.3)
    arms = sphere(rng, count, 4)
    order = np.argsort(policy.index(state, arms))
    arms = arms[order]
    arms[count // 2] = arms[-1]
    assert policy.select(state, arms, rng) == count // 2
    arms[count // 2, 0] += 1e-14  # rounding decides nothing
    assert policy.select(state, arms, rng) == count // 2
    shuffled = rng.permutation(count)
    index = policy.index(state, arms[shuffled])
    assert (
        policy.select(state, arms[shuffled], rng) == np.flatnonzero(index > index.max() - 1e-11)[0]
    )


@pytest.mark.parametrize(
    ("link", "radius", "runs"),
    [pytest.param("logistic", "practical", 1000, marks=pytest.mark.slow),
     ("logistic", "practical", 150), ("logistic", "adaptive", 150), ("identity", "practical", 150),
     ("tanh", "practical", 150)],
)  # fmt: skip
def test_no_run_diverges_when_weights_span_four_orders(link, radius, runs):
    """Every estimate ends as near the exact minimiser as its certificate says."""
    policy = nw.FTRLUCB(nw.GLM(link), noise_floor=0.01, radius=radius)
    world = env.NoisyBandit(env.LogUniform(0.01, 1.0), glm=policy.glm, dim=3, arms=5, rounds=60)
    furthest = 0.0
    for run in range(runs):
        rounds = world.draw(np.random.default_rng([6, run]))
        state, played = play(policy, rounds)
        layer, each = state.layers[0], np.arange(60)
        ftrl = nw.FTRL(policy.glm, layer.ridge)
        exact, x, w = ftrl.start(3), rounds.arms[each, played], rounds.sigma**-2.0
        ftrl.update(exact, x, rounds.rewards[each, played], w)
        ftrl.solve(exact)
        off = state.theta - exact.theta
        H = 2 * layer.ridge * np.eye(3) + policy.glm.min_slope * (x.T * w) @ x
        assert layer.gap <= 0.1 * np.sqrt(3) * (1 + 1e-9)
        assert off @ H @ off <= layer.gap**2 + 1e-12
        furthest = max(furthest, float(off @ H @ off) ** 0.5)
    print(f"{link} {radius}: {runs} runs, at most {furthest:.2g} from the minimiser")


def test_the_moving_ridge_follows_a_long_estimate():
    rounds = env.NoisyBandit(glm=nw.GLM(parameter_bound=3.0), rounds=400).draw(
        np.random.default_rng(0)
    )
    policy = nw.FTRLUCB(nw.GLM(parameter_bound=0.5), radius="practical")
    state, _ = play(policy, rounds)
    assert state.norm > 2
    assert state.layers[0].ridge == pytest.approx(10 / (2 * state.norm**2))
    still = nw.FTRLUCB(nw.GLM(parameter_bound=0.5), radius="practical", ridge=1.0)
    state, _ = play(still, rounds)
    assert state.layers[0].ridge == 1.0
    assert state.norm == np.inf  # nothing outgrows it, so the kernels never ask for help


def test_weights_of_bounded_noise_shrink_where_the_set_is_wide():
    policy = nw.FTRLUCB(nw.GLM(), "bounded", noise_bound=1.0, noise_floor=0.05)
    state, x = policy.start(2), np.array([0.6, 0.8])
    first = policy.weights.of(state, x, 0.3, 0.05)
    (whole,) = policy.confidence(state)
    most = min(2.0, whole.width(x))  # how far a score may be off, times the largest noise 1
    assert first == pytest.approx(2 * (np.e - 2) / most)
    for _ in range(4000):
        policy.update(state, x, 0.3, 0.05)
    assert policy.weights.of(state, x, 0.3, 0.05) > 20 * first
    assert policy.weights.of(state, x, 0.3, 0.5) <= 4


def test_late_rewards_give_the_same_minimiser():
    rng = np.random.default_rng(8)
    for policy in (nw.FTRLUCB(nw.GLM("logistic")), nw.FTRLUCB(nw.GLM("tanh"), "sub-gaussian"),
                   nw.MORUCB(nw.GLM("logistic"), 1.0, 0.1)):  # fmt: skip
        x, sd = sphere(rng, 60, 3), rng.uniform(0.05, 1.0, 60)
        y, states = rng.normal(size=60), []
        for order in (np.arange(60), rng.permutation(60)):
            state = policy.start(3)
            for i in order:
                policy.update(state, x[i], float(y[i]), float(sd[i]))
            for layer in state.layers:
                nw.FTRL(policy.glm).solve(layer)
            states.append(state)
        for first, second in zip(*(state.layers for state in states), strict=True):
            np.testing.assert_allclose(first.theta, second.theta, atol=1e-9)
            np.testing.assert_allclose(
                uniform(policy.glm, first)[0], uniform(policy.glm, second)[0], rtol=1e-9
            )


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: nw.FTRLUCB(noise="gaussian"), "noise"),
        (lambda: nw.FTRLUCB(noise="bounded"), "noise_bound"),
        (lambda: nw.FTRLUCB(radius="small"), "radius"),
        (lambda: nw.FTRLUCB(delta=1.0), "delta"),
        (lambda: nw.FTRLUCB(noise_floor=0.0), "noise_floor"),
        (lambda: nw.FTRLUCB(nw.GLM("algebraic"), "likelihood"), "algebraic"),
        (lambda: nw.FTRLUCB(ridge=-1.0), "ridge"),
        (lambda: nw.FTRLUCB(radius="freedman"), "Bounded"),
        (lambda: nw.MORUCB(noise_bound=-1.0), "noise_bound"),
        (lambda: nw.MORUCB(radius="practical"), "radius"),
        (lambda: nw.MORUCB("logistic"), "glm"),
        (lambda: theory.certificate(nw.GLM(), [-1.0], [1.0]), "radii"),
        (lambda: theory.certificate(nw.GLM(), [1.0], [1.0, 2.0]), "widths"),
        (lambda: theory.mor_ucb_bound(nw.GLM(), [1.0], [1.0, 2.0], [1.0]), "radii"),
        (lambda: theory.ftrl_ucb_bound(nw.GLM(), radius=-1, log_det=1, sigma=[1.0]), "radius"),
    ],
)
def test_bad_requests_are_refused(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def test_a_family_without_a_sigma_is_refused():
    policy = nw.FTRLUCB(nw.GLM("logistic"), "likelihood")
    state = policy.start(1)
    with pytest.raises(ValueError, match="sigma"):
        policy.update(state, [1.0], 1.0, 0.0)
    assert state.count == 0


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        nw.MORUCB(nw.GLM(), 1.0, 0.1, as_printed=True),
        nw.MORUCB(nw.GLM("logistic"), 1.0, 0.1, nested=True),
        nw.MORUCB(nw.GLM(), 1.0, 0.1, radius="freedman"),
        nw.FTRLUCB(nw.GLM(), "bounded", 1.0, radius="practical"),
        nw.FTRLUCB(nw.GLM(CAUCHIT)),
    ],
    ids=repr,
)
def test_choices_are_those_of_select_and_update(policy, fixed):
    world = env.NoisyBandit(glm=nw.GLM(), fixed=fixed, dim=3, arms=5, rounds=80)
    rounds = world.draw(np.random.default_rng(1))
    for order in (np.ascontiguousarray, np.asfortranarray):
        table = dataclasses.replace(rounds, arms=order(rounds.arms.copy()))
        table.arms.setflags(write=False)
        found = nw.choices(policy, table, np.random.default_rng(0))
        np.testing.assert_array_equal(found, play(policy, rounds)[1])


@pytest.mark.parametrize(
    ("link", "noise", "gain"),
    [("identity", "sub-gaussian", 1.0), ("logistic", "sub-gaussian", 4.0),
     ("logistic", "likelihood", 1.0)],
)  # fmt: skip
def test_practical_index_by_hand(link, noise, gain):
    """One arm learnt twice in one dimension: H, W, ridge and index written out."""
    glm = nw.GLM(link, parameter_bound=2.0)
    policy = nw.FTRLUCB(glm, noise, radius="practical")
    state = policy.start(3)
    assert state.layers[0].ridge == pytest.approx(3 * gain / (2 * 2.0**2))
    state = policy.start(1)
    for _ in range(2):
        policy.update(state, np.array([0.5]), 0.6, 0.5)
    theta, lam = float(state.theta[0]), gain / 8
    slope = float(glm.slope(0.5 * theta))
    h = 1 / (2 * lam + 2 * 4 * slope * 0.25)
    W = 2 * 4 * slope
    wanted = theta + np.sqrt(gain * h * (3 + np.log1p(W * h)))
    assert policy.index(state, np.ones((1, 1)))[0] == pytest.approx(wanted, rel=0.02)
    if link == "identity":
        assert theta == pytest.approx(2 * 4 * 0.5 * 0.6 * h)
        assert policy.index(state, np.ones((1, 1)))[0] == pytest.approx(wanted, rel=1e-12)


def test_large_rewards_are_refused_or_learnt_but_never_break():
    for policy in (nw.FTRLUCB(nw.GLM("logistic")), nw.MORUCB(nw.GLM("logistic")),
                   nw.FTRLUCB(nw.GLM("logistic"), radius="practical")):  # fmt: skip
        state = policy.start(2)
        for arm in ([0.6, 0.8], np.array([0.6, 0.8])):
            with pytest.raises(ValueError, match="reward"):
                policy.update(state, arm, 1e60, 0.5)
        for _ in range(3):
            policy.update(state, [0.6, 0.8], 1e20, 0.5)
        assert state.count == 3
        assert all(each.radius > 0 for each in policy.confidence(state))  # or infinite
        for sigma in (None, "a", np.array([0.5]), True):
            with pytest.raises(ValueError, match="sigma"):
                policy.update(state, np.array([0.6, 0.8]), 1.0, sigma)


def test_tiny_ridges_with_heavy_rows_do_not_break():
    policy = nw.FTRLUCB(nw.GLM("logistic"), noise_floor=1e-4, ridge=1e-12)
    for seed in range(12):
        rng, state = np.random.default_rng(seed), policy.start(4)
        for _ in range(12):
            arm = np.full(4, 0.5) + 1e-3 * rng.normal(size=4)
            sd = float(10 ** rng.uniform(-4, 0))
            policy.update(state, arm / np.linalg.norm(arm), float(rng.random()), sd)
        assert np.isfinite(state.theta).all()


def test_estimated_variances_are_learnt_by_the_kernels_whatever_sigma_says():
    policy = nw.FTRLUCB(nw.GLM(), "estimated", 0.5, radius="practical")
    assert policy._learn_compiled(policy.start(2), np.array([0.6, 0.8]), 0.1, 1.0)


def test_empty_layers_say_nothing_even_without_bonus():
    """Infinite radii times a scale of 0, or the length 0 of an arm, decide nothing."""
    arms = np.array([[0.0, 0.0], [0.6, 0.0], [-0.3, 0.4]])
    for scale in (0.0, 1.0):
        policy = nw.MORUCB(noise_bound=1.0, noise_floor=0.1, radius_scale=scale)
        state = policy.start(2)
        for _ in range(2):  # the second time by the kernels
            policy.update(state, np.array([0.6, 0.8]), -0.5, 0.3)
            index = policy.index(state, arms)
            assert np.isfinite(index).all()
            assert policy.select(state, arms, np.random.default_rng(0)) == index.argmax()
        theta = state.layers[1].theta
        if scale == 0.0:
            np.testing.assert_allclose(index, arms @ theta, rtol=1e-12)
            assert index.argmax() == 0


def test_before_any_reward_the_longest_arm_is_played():
    policy, rng = nw.MORUCB(nw.GLM("logistic"), 1.0, 0.1), np.random.default_rng(0)
    state, arms = policy.start(2), np.array([[0.1, 0.0], [0.3, -0.4], [0.5, 0.0], [0.0, 0.2]])
    assert policy.select(state, arms, rng) == 1  # of two the first
    assert policy.select(state, arms.tolist(), rng) == 1  # the readable way
    np.testing.assert_allclose(policy.index(state, arms), [0.1, 0.5, 0.5, 0.2])


@pytest.mark.parametrize("policy", [nw.FTRLUCB(), nw.FTRLUCB(radius="practical"), nw.MORUCB()],
                         ids=repr)  # fmt: skip
def test_one_bad_arm_among_good_ones_is_refused(policy):
    """Wherever it stands, and whether or not the policy has learnt anything."""
    rng, state = np.random.default_rng(0), policy.start(2)
    for _ in range(3):
        for place in range(3):
            for bad in (np.nan, np.inf, -np.inf, 1.01):
                arms = np.array([[0.6, 0.0], [0.3, 0.4], [0.0, 0.8]])
                arms[place, 1] = bad
                with pytest.raises(ValueError, match="arms"):
                    policy.select(state, arms, rng)
        policy.update(state, np.array([0.6, 0.8]), 0.5, 0.5)


@pytest.mark.parametrize("link", ["identity", "logistic"])
@pytest.mark.parametrize("ridge", [1e-14, 1e-12, 1e-6])
def test_kernels_give_way_where_rounding_spoils_their_sets(link, ridge):
    """Rows nearly parallel, weights over eight orders: the sets are those the readable way makes
    of the same state, though the matrices have condition up to 1e22.
    """
    policy = nw.FTRLUCB(nw.GLM(link), noise_floor=1e-4, ridge=ridge)
    for seed in range(6):
        rng, state = np.random.default_rng(seed), policy.start(4)
        for _ in range(12):
            arm = np.full(4, 0.5) + 1e-3 * rng.normal(size=4)
            arm /= np.linalg.norm(arm)
            policy.update(state, arm, float(rng.random()), float(10 ** rng.uniform(-4, 0)))
            x = np.vstack([arm, np.eye(4)])
            for place, each in enumerate(policy.confidence(state)):
                ours = nw.Ellipsoid(*(part[place] for part in vars(state.forms).values()))
                np.testing.assert_allclose(ours.width(x), each.width(x), rtol=0.05)


@pytest.mark.parametrize("bound", [1.0, 4.0, 6.0])
def test_kernels_make_the_sets_of_the_readable_way_far_from_the_anchor(bound):
    """Few rows of a long parameter: steps are so long that their curvature is known poorly."""
    policy = nw.FTRLUCB(nw.GLM("logistic", parameter_bound=bound), ridge=0.5)
    for seed in range(5):
        rng, state = np.random.default_rng(seed), policy.start(3)
        theta = bound * sphere(rng, 1, 3)[0]
        for x in sphere(rng, 40, 3):
            policy.update(state, x, float(rng.random() < 1 / (1 + np.exp(-x @ theta))), 1.0)
            for place, each in enumerate(policy.confidence(state)):
                assert state.forms.radii[place] == pytest.approx(each.radius, rel=1e-9)
                np.testing.assert_allclose(state.forms.inverses[place], each.inverse, rtol=1e-9)


def test_an_inverse_that_has_lost_all_digits_is_made_anew():
    """Rank-one changes, none of them large, leave an indefinite inverse: sets go on."""
    policy = nw.FTRLUCB(nw.GLM(), noise_floor=1e-2, ridge=1e-14)
    for seed in range(8):
        rng, state = np.random.default_rng(seed), policy.start(4)
        for _ in range(12):
            arm = np.full(4, 0.5) + 1e-3 * rng.normal(size=4)
            arm /= np.linalg.norm(arm) * 1.0000001
            policy.update(state, arm, float(rng.random()), float(10 ** rng.uniform(-4, 0)))
            (each,) = policy.confidence(state)
            assert 0 < each.width(arm) < np.inf
