"""SelfTunedUCB against a readable twin; units, order, pending decisions, restarts, bad input."""

import math

import numpy as np
import pytest
from instances import close, sphere
from self_tuned_twin import Twin

import noisewise as nw

RNG = np.random.default_rng
FAMILIES = ("gaussian", "binomial")


def play(policy, rounds, rng, turn=lambda x: x, y=lambda r: r, sds=None, dim=4, order=None):
    """The arms played, by their original numbers, and the state."""
    state, theta, played = policy.start(dim), sphere(rng, 1, dim)[0], []
    noise = rng.standard_t(4, size=rounds) * 0.3
    for t in range(rounds):
        arms = sphere(rng, 6, dim) * rng.uniform(0.5, 1.5, size=(6, 1))
        places = np.arange(6) if order is None else RNG([order, t]).permutation(6)
        k = places[policy.select(state, turn(arms[places]), RNG(0))]
        reward = y(float(arms[k] @ theta + noise[t]))
        policy.update(state, turn(arms[k]), reward, 1.0 if sds is None else float(sds[t]))
        played.append(int(k))
    return played, state


SHAPES = {
    "plain": (3, {}),
    "blocks": (11, {"blocks": 3, "context": 2}),
    "shared": (7, {"blocks": 2, "context": 2, "shared": True}),
}


def offered(rng, shape, t):
    """Five arms: one of the sphere's, or two plain features, or one, and blocks of a context.

    Outliers come first and every 50 rounds; of a column every tenth number is 1, the others 0.
    """
    x = sphere(rng, 5, 3) * rng.uniform(0.5, 1.5, size=(5, 1))
    if shape == "plain":
        return x
    c = [1.0, {0: 9999.0, 9: 1e17}.get(t % 50, rng.normal(50, 15)), float(rng.random() < 0.1)]
    if shape == "shared":
        x[0, 1:] = 0.0  # an action whose features are 0
        return np.c_[x[:, :1], np.einsum("ki,j->kij", x[:, 1:], c).reshape(5, -1)]
    heads = np.eye(3)[rng.integers(3, size=5)]
    return np.c_[x[:, :2], np.einsum("ki,j->kij", heads, c).reshape(5, -1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", ["gaussian", "gaussian with sds", "wrong sds", "binomial"])
@pytest.mark.parametrize("lasting", [None, 100])
def test_kernels_equal_the_readable_twin(lasting, case, shape):
    """Estimates, index, ridges, dispersion and restarts, through a change of the world."""
    family, rng, (dim, given) = case.split()[0].replace("wrong", "gaussian"), RNG(5), SHAPES[shape]
    policy = nw.SelfTunedUCB(family, **given, forget_after=lasting or "auto")
    twin = Twin(family, dim, **given, forget_after=lasting)
    change = 560 if given else 250  # units are taken from 512 rows
    state, theta, pending = policy.start(dim), 2 * sphere(rng, 1, dim)[0], []
    if given:
        theta[twin.e :] *= np.tile([1.0, 0.02, 1.0], twin.blocks)
    for t in range(change + 110):
        arms = offered(rng, shape, t)
        x, sigma = arms[rng.integers(5)], 1.0
        score = np.clip(x, -100, 100) @ theta
        if family == "binomial":
            n = int(rng.integers(1, 20))
            y, sigma = float(rng.binomial(n, 1 / (1 + math.exp(-score))) / n), n**-0.5
        else:
            sd = 0.1 if case == "gaussian" else float(rng.choice([0.05, 0.2, 0.8]))
            y = float(7.0 + score + sd * rng.standard_t(3))
            sigma = 1.0 if case == "gaussian" else sd
            sigma *= float(np.exp(rng.normal(0, 1.5))) if case == "wrong sds" else 1.0
        policy.update(state, x, y, sigma)
        twin.update(x, y, sigma)
        if given and not lasting and t % 9 == 0:
            pending.append(arms[0])
            for each in (twin, policy):
                each.expect(*([] if each is twin else [state]), arms[0], 0.5)
        if len(pending) > 4:
            for each in (twin, policy):
                each.release(*([] if each is twin else [state]), pending[0])
            del pending[0]
        if t == change:
            theta = -theta
        if t % 7 == 0 or t > change + 90:
            close(policy.index(state, arms), twin.index(arms), 1e-6)
    assert state.restarts == twin.restarts >= (not lasting and case != "wrong sds")
    assert not (lasting and state.restarts)
    close([2 * state.ridge, state.dispersion], [twin.ridge, twin.phi], 1e-6)
    close(state.vector.theta, twin.full.theta, 1e-6)
    close(state.matrix.penalty, twin.R, 1e-6)
    close(policy.scores(state, arms), twin.features(arms) @ twin.full.theta + twin.origin, 1e-6)
    close(state.number.distrust, twin.b, 1e-6)
    assert (twin.b > 0.3) == (case == "wrong sds")


@pytest.mark.parametrize("sds", [False, True])
def test_units_and_order_do_not_matter(sds):
    """Rewards a y + b, features times a factor, arms in another order: the same choices."""
    policy, rounds = nw.SelfTunedUCB(), 150
    given = RNG(1).uniform(0.1, 0.9, size=rounds) if sds else None
    plain, _ = play(policy, rounds, RNG(0), sds=given)
    scaled = 7.0 * given if sds else None
    moved, _ = play(policy, rounds, RNG(0), y=lambda r: 7 * r - 300, sds=scaled)
    small, _ = play(policy, rounds, RNG(0), turn=lambda x: 1e-3 * x, sds=given)
    mixed, _ = play(policy, rounds, RNG(0), sds=given, order=3)
    assert plain == moved == small == mixed
    assert len(set(plain)) == 6


def test_ties_are_broken_at_random():
    policy = nw.SelfTunedUCB()
    state, arms, rng = policy.start(2), np.ones((3, 2)), RNG(0)
    assert {policy.select(state, arms, rng) for _ in range(60)} == {0, 1, 2}
    with pytest.raises(ValueError, match="rng"):
        policy.select(state, arms, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_pending_decisions_count_like_rows_without_a_reward(family):
    """The index equals the twin's, whose matrix is summed afresh; released, all is as before."""
    rng, dim = RNG(2), 3
    policy, twin = nw.SelfTunedUCB(family), Twin(family, dim)
    state, arms = policy.start(dim), sphere(rng, 8, dim)
    for arm in arms:
        y = float(rng.integers(2))
        policy.update(state, arm, y)
        twin.update(arm, y)
    before, waiting = policy.index(state, arms), []
    for t in range(400):
        if waiting and rng.random() < 0.48:
            arm = waiting.pop(rng.integers(len(waiting)))
            policy.release(state, arm)
            twin.release(arm)
        else:
            arm, sigma = arms[rng.integers(8)], float(rng.choice([0.1, 1.0]))
            same = [w for x, w in twin.pending if np.array_equal(x, arm)]
            if not same:  # of several on one arm any may be released: one weight each
                policy.expect(state, arm, sigma)
                twin.expect(arm, sigma)
                waiting.append(arm)
        assert state.pending == len(twin.pending)
        if t % 20 == 0:
            close(policy.index(state, arms), twin.index(arms), 1e-8)
    for arm in waiting:
        policy.release(state, arm)
    close(policy.index(state, arms), before, 1e-12)
    with pytest.raises(ValueError, match="no decision on it is pending"):
        policy.release(state, arms[0])


def test_a_batch_of_decisions_does_not_repeat_one():
    """Before any reward, d arms of a basis are decided for once each, whatever their unit."""
    for unit in (1e-3, 1.0, 1e3):
        policy, rng = nw.SelfTunedUCB("binomial"), RNG(0)
        state, arms = policy.start(5), unit * np.eye(5)
        played = []
        for _ in range(5):
            played.append(policy.select(state, arms, rng))
            policy.expect(state, arms[played[-1]])
        assert sorted(played) == [0, 1, 2, 3, 4]


def test_ten_thousand_pending_decisions_stay_exact():
    """Renewals keep rounding out: the inverse is that of the stored decisions."""
    rng, policy = RNG(4), nw.SelfTunedUCB()
    state, arms = policy.start(4), sphere(rng, 10_000, 4)
    for arm in arms[:20]:
        policy.update(state, arm, float(rng.normal()), 0.1)
    for arm in arms:
        policy.expect(state, arm, 0.1)
    for arm in arms[rng.permutation(10_000)[:9_990]]:
        policy.release(state, arm)
    m, z = state.matrix, np.c_[state.decisions[:10, :4], np.ones(10)]
    H = np.linalg.inv(m.inverse) + z.T @ (state.decisions[:10, 4:] * z)
    close(m.bonus @ H, np.eye(5), 1e-8)
    assert state.pending == 10


def test_a_restart_drops_the_past():
    """After theta turns round the estimate follows; while it stays nothing is dropped."""
    rng, policy = RNG(6), nw.SelfTunedUCB()
    state, theta = policy.start(3), sphere(rng, 1, 3)[0]
    for t in range(900):
        x = sphere(rng, 1, 3)[0]
        policy.update(state, x, float((1 if t < 600 else -1) * (x @ theta) + 0.1 * rng.normal()))
        assert t < 650 or state.restarts
        assert t > 600 or not state.restarts
    assert state.coef @ -theta > 0.9  # 300 rewards of sd .1, and perhaps a few of before


def test_a_heavy_outlier_does_not_stick():
    """One reward with a far too small sd: what it counts is cut once others show that."""
    rng, policy = RNG(7), nw.SelfTunedUCB()
    state = policy.start(1)
    policy.update(state, [1.0], 5.0, 1e-4)
    for _ in range(200):
        policy.update(state, [1.0], float(rng.normal(scale=0.3)), 0.3)
        policy.update(state, [0.0], float(rng.normal(scale=0.3)), 0.3)
    assert abs(float(policy.mean(state, np.ones((1, 1)))[0])) < 0.6


def test_means_are_estimates_of_rewards():
    policy, rng = nw.SelfTunedUCB("binomial"), RNG(8)
    state, arms = policy.start(2), np.eye(2)
    for _ in range(400):
        for arm, rate in zip(arms, (0.2, 0.7), strict=True):
            policy.update(state, arm, float(rng.random() < rate))
    close(policy.mean(state, arms), [0.2, 0.7], 0.08)


@pytest.mark.parametrize(
    ("family", "reward", "sigma", "words"),
    [
        ("binomial", 1.5, 1.0, "outside"),
        ("binomial", -0.1, 1.0, "outside"),
        ("gaussian", 1.0, 0.0, "sigma is 0"),
        ("gaussian", 1e45, 1e-20, "too much to compute with"),
    ],
)
def test_bad_rewards_are_refused(family, reward, sigma, words):
    policy = nw.SelfTunedUCB(family)
    state = policy.start(2)
    with pytest.raises(ValueError, match=words):
        policy.update(state, [1.0, 0.0], reward, sigma)
    assert state.count == 0


def test_bad_families_and_states_are_refused():
    with pytest.raises(ValueError, match="family is 'poisson'"):
        nw.SelfTunedUCB("poisson")
    with pytest.raises(ValueError, match="of another"):
        nw.SelfTunedUCB().check_state(nw.SelfTunedUCB("binomial").start(2))
    with pytest.raises(ValueError, match="sigma"):
        nw.SelfTunedUCB().expect(nw.SelfTunedUCB().start(1), [1.0], -1.0)


def test_pending_decisions_are_saved(tmp_path):
    policy, arms = nw.SelfTunedUCB(), np.eye(3)
    state = policy.start(3)
    policy.update(state, arms[0], 1.0)
    for arm in arms:
        policy.expect(state, arm)
    nw.save(tmp_path / "state.npz", policy, state)
    _, loaded = nw.load(tmp_path / "state.npz")
    for each in (state, loaded):
        policy.release(each, arms[1])
        policy.update(each, arms[1], 3.0)
    assert np.array_equal(policy.index(state, arms), policy.index(loaded, arms))


def condensing(family, rewards, shape="plain", noise=1.0):
    """Yield a state that keeps 200 rewards and one that keeps all, and what they learnt last."""
    dim, given = SHAPES[shape]
    few, all_ = (nw.SelfTunedUCB(family, keep_rows=n, **given) for n in (200, 50_000))
    states, rng = (few.start(dim), all_.start(dim)), RNG(11)
    theta = sphere(rng, 1, dim)[0]
    for t in range(rewards):
        x = sphere(rng, 1, dim)[0]
        if given:  # a context that drifts, too slowly for limits
            c = [1.0, 50 + t / 100 + rng.uniform(-20, 20), float(t % 3 == 0)]
            x = np.append(x[: dim - 9], np.outer(np.eye(3)[rng.integers(3)], c))
        y = float(x @ theta + noise * rng.uniform(-1, 1))
        if family == "binomial":
            y = float(rng.random() < 1 / (1 + math.exp(-x @ theta)))
        for policy, state in zip((few, all_), states, strict=True):
            policy.update(state, x, y)
        yield (few, *states, x, y)


@pytest.mark.parametrize("family", FAMILIES)
def test_old_rewards_are_condensed(family, tmp_path):
    """Memory and files grow no more. Estimates of continuous rewards are those of all rewards.

    Those of shares differ by a fraction of a standard error, which is measured as at most 0.3 with
    500 rewards kept.
    """
    sizes = []
    for t, (policy, few, *rest) in enumerate(condensing(family, 1500)):
        every = rest[0]
        if t in (500, 1499):
            nw.save(tmp_path / "state.npz", policy, few)
            held = sum(each.nbytes for each in vars(few).values() if isinstance(each, np.ndarray))
            sizes.append((held, (tmp_path / "state.npz").stat().st_size, len(few.rows)))
    assert sizes[0] == sizes[1]
    assert sizes[0][2] == 200
    assert few.number.stored + few.number.condensed == 1500
    assert policy.learnt(few)["rewards condensed"] >= 1300
    x = sphere(RNG(12), 50, 3)
    difference = np.abs(policy.scores(few, x) - policy.scores(every, x))
    z, P = every.features(x), every.matrix.inverse
    se = np.sqrt(np.einsum("ij,jk,ik->i", z, P, z))
    assert (difference < (1e-8 if family == "gaussian" else 0.5 * se)).all()
    again = nw.load(tmp_path / "state.npz")[1]
    assert np.array_equal(policy.index(again, x), policy.index(few, x))


def test_condensed_rewards_move_to_new_units():
    """Where nothing is clipped, sums are those of all rows in units of now."""
    arms, rewards, counts = [], [], []
    for _, few, _, x, y in condensing("gaussian", 1200, "blocks"):
        arms.append(x)
        rewards.append(y)
        counts.append(few.rows[int(few.number.stored) - 1, -1])
    assert few.restarts == 0
    assert few.number.condensed >= 1000
    z = few.features(np.array(arms))
    assert np.abs(z).max() < 5
    zw, y = z.T * np.array(counts), np.array(rewards) - few.number.origin
    close(few.matrix.gram, zw @ z, 1e-8)
    close(few.vector.moment, zw @ y, 1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restart_drops_condensed_rewards(family):
    rng, policy = RNG(6), nw.SelfTunedUCB(family, keep_rows=200)
    state, theta = policy.start(3), 4 * sphere(rng, 1, 3)[0]
    for t in range(900):
        x = sphere(rng, 1, 3)[0]
        score = (1 if t < 600 else -1) * (x @ theta)
        share = rng.random() < 1 / (1 + math.exp(-score))
        policy.update(state, x, float(share if family == "binomial" else score + rng.normal()))
        if t == 600:
            assert state.number.condensed > 0
        if state.restarts:
            break
    assert 600 < t < 800
    assert state.number.condensed == state.number.condensed_information == 0
    assert not state.matrix.condensed_gram.any()
    assert not state.vector.condensed_moment.any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_column_that_is_new_after_a_restart_is_soon_learnt(family):
    """Units are renewed as rewards since the restart grow, not as all do."""
    rng, policy = RNG(13), nw.SelfTunedUCB(family, blocks=2, context=2)
    state = policy.start(6)
    for t in range(3000):
        c = [
            1.0,
            rng.normal(),
            float(t < 1000 or t % 50 == 49),
        ]  # 1 before the change, seldom after
        a = rng.integers(2)
        y = float(rng.random() < (0.9 if (a == 0) == (t < 2000) else 0.1))
        policy.update(state, np.append(*np.outer(np.eye(2)[a], c)), y)
        if state.restarts and t >= state.last_restart + 100:
            break
    assert state.restarts == 1
    assert state.vector.rate[:2].all()
