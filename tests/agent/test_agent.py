"""The agent: keys, late rewards, files, and bad input that leaves it alone."""

import copy

import numpy as np
import pytest
from histories import arm_sets, choose, outcomes, played, practical_agent, practical_shares
from instances import CAUCHIT, POLICIES, sphere

import noisewise as nw
from noisewise.checks.comparison import same
from noisewise.regression.ftrl.sets import curvature_inverse

RNG = np.random.default_rng
FIXED = nw.FTRLUCB(nw.GLM(), radius="practical", ridge=0.5)


def snapshot(agent):
    return copy.deepcopy((agent.state, agent.rng.bit_generator.state, agent.waiting, agent.scale))


def unchanged(agent, before):
    state, generator, waiting, scale = before
    now = (agent.rng.bit_generator.state, agent.waiting, agent.scale)
    return same(agent.state, state) and now == (generator, waiting, scale)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_goes_on_after_a_file(policy, tmp_path):
    """Saved with decisions waiting, then taught their rewards: the same choices and numbers."""
    agent = played(nw.Agent(policy, dim=3, seed=5, capacity=50))
    assert agent.waiting == tuple(sorted(agent.waiting))
    assert len(agent.waiting) == 12 - 7
    agent.save(tmp_path / "agent.npz")
    link = getattr(getattr(policy, "glm", None), "link", None)
    again = nw.Agent.load(tmp_path / "agent.npz", link=link)
    assert (again.policy, again.dim, again.capacity) == (policy, 3, 50)
    for key, arms in zip(agent.waiting, arm_sets(9, seed=1, policy=policy), strict=False):
        assert choose(agent, arms) == choose(again, arms)
        for each in (agent, again):
            each.learn(key, 0.3, sigma=0.5)
    assert same(agent.state, again.state)
    assert agent.waiting == again.waiting == (None,)
    assert agent.rng.bit_generator.state == again.rng.bit_generator.state


def test_seeds_decide_and_nothing_else():
    picks = [
        [agent.choose(arms) for arms in arm_sets(40)]
        for agent in (nw.Agent(nw.LinearThompson(), 3, seed=s) for s in (1, 1, 2))
    ]
    assert picks[0] == picks[1] != picks[2]


LATE = [
    FIXED,
    nw.FTRLUCB(nw.GLM()),
    nw.MORUCB(nw.GLM(), 1.0, 0.1),
    nw.MORUCB(nw.GLM(), 1.0, 0.1, nested=True),
    nw.OFUL(),
    nw.WeightedLeastSquaresUCB(),
    nw.WeightedOFUL(),
]


def late_and_in_order(policy, count=60):
    """Two agents that make the same decisions; one learns them shuffled, partly in batches."""
    y, s = outcomes(count)
    agents = [nw.Agent(policy, dim=3), nw.Agent(policy, dim=3)]
    for t, arms in enumerate(arm_sets(count)):
        assert agents[0].choose(arms, key=f"visit {t}") == agents[1].choose(arms, key=f"visit {t}")
    order = RNG(4).permutation(count)
    for t in range(count):
        agents[0].learn(f"visit {t}", y[t], s[t])
    for part in np.array_split(order, 7)[:4]:
        agents[1].learn([f"visit {t}" for t in part], y[part], s[part])
    for t in np.concatenate(np.array_split(order, 7)[4:]):
        agents[1].learn(f"visit {t}", y[t], s[t])
    assert agents[0].waiting == agents[1].waiting == ()
    return agents


@pytest.mark.parametrize("policy", LATE, ids=repr)
def test_late_rewards_give_the_same_estimate_and_matrices(policy):
    one, two = late_and_in_order(policy)
    for a, b in zip(policy.confidence(one.state), policy.confidence(two.state), strict=True):
        np.testing.assert_allclose(a.centre, b.centre, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(a.inverse, b.inverse, rtol=1e-9, atol=1e-11)
    if policy is FIXED:
        inverses = [curvature_inverse(policy.glm, each.state.layers[0]) for each in (one, two)]
        np.testing.assert_allclose(*inverses, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("link", ["logistic", "tanh", CAUCHIT], ids=str)
@pytest.mark.parametrize("radius", ["adaptive", "practical"])
def test_late_rewards_give_the_same_minimiser(link, radius):
    policy = nw.FTRLUCB(nw.GLM(link), radius=radius, ridge=0.5)
    agents = late_and_in_order(policy)
    for agent in agents:
        nw.FTRL(policy.glm).solve(agent.state.layers[0])
    one, two = (agent.state.layers[0] for agent in agents)
    assert max(one.gap, two.gap) < 1e-9
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("one", "other"),
    [({"trials": 16}, {"sigma": 0.25}), ({}, {"sigma": 1.0}), ({"trials": 1}, {})],
    ids=str,
)
def test_trials_are_a_standard_deviation(one, other):
    agents = [nw.Agent(FIXED, dim=2), nw.Agent(FIXED, dim=2)]
    for agent, noise in zip(agents, (one, other), strict=True):
        agent.learn([0.6, 0.8], 0.7, **noise)
    np.testing.assert_array_equal(agents[0].state.theta, agents[1].state.theta)


def test_trials_divide_the_agents_own_sigma():
    """Four trials of sd 1/2 weigh 16: theta = 16 y x / (2 ridge + 16)."""
    agent = nw.Agent(FIXED, dim=2, sigma=0.5)
    agent.learn([0.6, 0.8], 0.7, trials=4)
    np.testing.assert_allclose(agent.state.theta, 16 * 0.7 / 17 * np.array([0.6, 0.8]))


@pytest.mark.parametrize("make", [practical_agent, nw.Agent.for_continuous_rewards])
def test_a_batch_is_its_rows_one_by_one(make):
    rng, agents = RNG(2), [make(dim=3) for _ in range(3)]
    x, y, n = sphere(rng, 30, 3), rng.normal(size=30), rng.integers(1, 9, size=30)
    agents[0].learn(x, y, trials=n)
    agents[1].learn(x[:11], y[:11], trials=n[:11])
    agents[1].learn(x[11:], y[11:], trials=n[11:])
    for row in zip(x, y, n, strict=True):
        agents[2].learn(row[0], row[1], trials=row[2])
    for agent in agents[1:]:
        assert same(agent.state, agents[0].state)
        assert agent.scale == agents[0].scale
    agents[0].learn([], [])
    assert agents[0].scale == agents[2].scale


def test_arms_without_a_key_keep_one_decision():
    agent, sets = nw.Agent(FIXED, dim=3), arm_sets(3)
    picks = [agent.choose(arms) for arms in sets]
    assert agent.waiting == (None,)
    agent.learn(None, 0.5, sigma=0.5)
    other = nw.Agent(FIXED, dim=3)
    other.learn(sets[2][picks[2]], 0.5, sigma=0.5)
    np.testing.assert_array_equal(agent.state.theta, other.state.theta)
    with pytest.raises(ValueError, match="None"):
        agent.learn(None, 0.5)


def test_remembered_features_are_a_copy():
    arms = arm_sets(1)[0]
    agent, chosen = nw.Agent(FIXED, dim=3), arms.copy()
    k = agent.choose(arms, key="a")
    arms[:] = 0.0
    agent.learn("a", 1.0)
    other = nw.Agent(FIXED, dim=3)
    other.learn(chosen[k], 1.0)
    np.testing.assert_array_equal(agent.state.theta, other.state.theta)


def test_decisions_that_never_see_a_reward_are_bounded(tmp_path):
    agent, arms = nw.Agent(FIXED, dim=3, capacity=3), arm_sets(1)[0]
    for key in "abc":
        agent.choose(arms, key)
    agent.forget("b")
    with pytest.raises(ValueError, match="'b'"):
        agent.forget("b")
    agent.choose(arms, "d")
    with pytest.warns(UserWarning, match="capacity"):
        agent.choose(arms, "e")
    agent.choose(arms, "f")  # warnings are errors here
    assert (agent.waiting, agent.dropped) == (("d", "e", "f"), 2)
    with pytest.raises(ValueError, match="dropped"):
        agent.learn("a", 1.0)
    agent.save(tmp_path / "a.npz")
    again = nw.Agent.load(tmp_path / "a.npz")
    again.choose(arms, np.int64(7))
    assert (again.waiting, again.dropped) == (("e", "f", 7), 3)
    again.learn(7, 1.0)
    again.choose(arms, 7)  # a key may serve again


BAD = {
    "unknown key": ("no decision", lambda a: a.learn("never", 1.0)),
    "rewarded twice": ("has its reward", lambda a: a.learn("done", 1.0)),
    "twice in a batch": ("two rewards", lambda a: a.learn(["a", "a"], [1.0, 0.0])),
    "one unknown of many": ("no decision", lambda a: a.learn(["a", "never"], [1.0, 0.0])),
    "a list as key": ("no decision", lambda a: a.forget(["a"])),
    "truth for a key": ("arm", lambda a: a.learn(True, 1.0)),
    "rewards for a number": ("reward", lambda a: a.learn(1.5, [1.0, 0.0])),
    "forgotten unknown": ("no decision", lambda a: a.forget("never")),
    "pending already": ("pending", lambda a: a.choose(np.eye(3), "a")),
    "no key": ("key", lambda a: a.choose(np.eye(3), 1.5)),
    "truth as key": ("key", lambda a: a.choose(np.eye(3), True)),
    "no arms": ("arms", lambda a: a.choose(np.empty((0, 3)))),
    "empty list": ("arms", lambda a: a.choose([])),
    "NaN arm": ("nan", lambda a: a.choose(np.full((2, 3), np.nan))),
    "long arm": ("feature_bound", lambda a: a.choose(2 * np.eye(3))),
    "long arm explained": ("feature_bound", lambda a: a.explain(2 * np.eye(3))),
    "NaN arm explained": ("arms", lambda a: a.explain(np.full((2, 3), np.nan))),
    "words": ("arms", lambda a: a.choose("words")),
    "long arm learnt": ("feature_bound", lambda a: a.learn([2.0, 0, 0], 1.0)),
    "NaN arm learnt": ("nan", lambda a: a.learn([np.nan, 0, 0], 1.0)),
    "short arm learnt": ("arm", lambda a: a.learn([1.0, 0], 1.0)),
    "NaN reward": ("reward", lambda a: a.learn("a", np.nan)),
    "negative sigma": ("sigma", lambda a: a.learn("a", 1.0, sigma=-0.1)),
    "NaN sigma": ("sigma", lambda a: a.learn("a", 1.0, sigma=np.nan)),
    "no sigma": ("sigma", lambda a: a.learn("a", 1.0, sigma="loud")),
    "no trials": ("trials", lambda a: a.learn("a", 1.0, trials=0)),
    "sigma and trials": ("trials", lambda a: a.learn("a", 1.0, sigma=1.0, trials=2)),
    "fewer rewards": ("reward", lambda a: a.learn(["a", "b"], [1.0])),
    "a table of rewards": ("reward", lambda a: a.learn(["a"], [[1.0]])),
    "rewards for one key": ("reward", lambda a: a.learn("a", [1.0, 0.0])),
    "negative sigma in a batch": ("sigma", lambda a: a.learn(["a", "b"], [1, 0], sigma=[1, -1])),
    "long arm in a batch": ("feature_bound", lambda a: a.learn(2 * np.eye(3), np.ones(3))),
    "float as key": ("a string, an integer", lambda a: a.learn(3.0, 1.0)),
    "one reward for two keys": ("one reward per key", lambda a: a.learn(["a", "b"], 1.0)),
    "keys without an order": ("order", lambda a: a.learn({"a", "b"}, [1.0, 0.0])),
    "words as rewards": ("reward", lambda a: a.learn("a", "0.5")),
    "complex arms": ("arms", lambda a: a.choose(np.eye(3) * 0.5j)),
    "one long arm": ("feature_bound", lambda a: a.learn(np.diag([1, 1, 2.0]), np.ones(3))),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize(
    "policy", [nw.FTRLUCB(), nw.MORUCB(), nw.LaplaceThompson(nw.GLM("logistic"))], ids=repr
)
def test_bad_input_leaves_the_agent_alone(policy, case):
    word, call = BAD[case]
    agent = nw.Agent(policy, dim=3)
    for key in ("a", "b", "done"):
        agent.choose(np.eye(3), key)
    agent.learn("done", 0.5)
    before = snapshot(agent)
    with pytest.raises(ValueError, match=word):
        call(agent)
    assert unchanged(agent, before)


class Table:
    """Rows in a table that iterates the names of its columns, as that of pandas does."""

    def __init__(self, rows, names):
        self.rows, self.names, self.ndim = rows, names, 2

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=dtype)

    def __iter__(self):
        return iter(self.names)


def test_a_table_of_arms_is_its_rows():
    """Its columns are not taken for keys, though they are keys that wait."""
    rows, agents = 0.5 * np.eye(3)[::-1], [nw.Agent.for_means(3) for _ in range(2)]
    for agent in agents:
        for key in range(3):
            agent.choose(Table(np.eye(3), range(3)), key)
    agents[0].learn(Table(rows, range(3)), [0.2, 0.4, 0.9], trials=[4, 5, 6])
    agents[1].learn(rows, [0.2, 0.4, 0.9], trials=[4, 5, 6])
    assert same(agents[0].state, agents[1].state)
    assert agents[0].waiting == (0, 1, 2)


@pytest.mark.parametrize("sigma", [1e-60, 1e-160, 1e-200, 5e-324])
def test_an_exact_share_is_refused_and_an_exact_reading_is_not(sigma):
    """No weight is infinite: a share has no floor, a reading counts with the policy's."""
    agent = nw.Agent.for_means(2)
    before = snapshot(agent)
    with pytest.raises(ValueError, match=r"weight|sigma is .* too small"):
        agent.learn([0.6, 0.8], 0.5, sigma=sigma)
    assert unchanged(agent, before)
    agents = [nw.Agent(FIXED, 2) for _ in range(2)]
    for each, sd in zip(agents, (sigma, 0.0), strict=True):
        each.learn([0.6, 0.8], 0.5, sigma=sd)
    np.testing.assert_allclose(agents[0].state.theta, agents[1].state.theta, rtol=1e-14)


def test_an_agent_says_what_it_is():
    agent = nw.Agent.for_means(2)
    agent.choose(np.eye(2), "a")
    agent.learn([0.6, 0.8], 0.5)
    assert repr(agent) == f"<Agent of {agent.policy}, 1 rewards learnt, 1 pending>"


def test_a_row_only_the_policy_refuses_spoils_no_batch():
    """Likelihood noise has no sigma 0; the rows before it are not learnt either."""
    agent = nw.Agent.for_means(dim=2)
    before = snapshot(agent)
    with pytest.raises(ValueError, match="sigma"):
        agent.learn(np.eye(2), [0.5, 0.5], sigma=[0.1, 0.0])
    assert unchanged(agent, before)


@pytest.mark.parametrize("make", [practical_shares, nw.Agent.for_means])
@pytest.mark.parametrize("count", [100, 2500])
def test_a_batch_given_up_leaves_a_long_history_alone(count, make):
    """The copy it was learnt on has moved rows and made passes; the agent goes on without."""
    rng, agents = RNG(5), [make(dim=3) for _ in range(2)]
    x, y = sphere(rng, 2 * count, 3), np.round(rng.random(2 * count))
    for agent in agents:
        agent.learn(x[:count], y[:count])
    before = snapshot(agents[0])
    trials = np.ones(count)
    trials[-1] = 1e200  # weighs more than can be computed with
    with pytest.raises(ValueError, match=r"weight|sigma is .* too small"):
        agents[0].learn(x[count:], 1 - y[count:], sigma=trials**-0.5)
    assert unchanged(agents[0], before)
    for agent in agents:
        agent.learn(x[count:], y[count:])
    assert same(agents[0].state, agents[1].state)


def test_an_interrupt_leaves_a_batch_unlearnt():
    agent = practical_shares(dim=2)
    kind, before = type(agent.policy), snapshot(agent)
    update = kind.update

    def once(policy, state, arm, reward, sigma):
        if state.count == 2:
            raise KeyboardInterrupt
        update(policy, state, arm, reward, sigma)

    rows = [0.6 * np.eye(2)[i % 2] for i in range(4)], [1.0, 0.0, 0.0, 1.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "update", once)
        with pytest.raises(KeyboardInterrupt):
            agent.learn(*rows)
    assert unchanged(agent, before)
    agent.learn(*rows)
    assert agent.state.count == 4


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.Agent(FIXED, dim=0), "dim"),
        (lambda: nw.Agent(FIXED, dim=2, seed=-1), "seed"),
        (lambda: nw.Agent(FIXED, dim=2, seed=0.5), "seed"),
        (lambda: nw.Agent(FIXED, dim=2, sigma=0.0), "sigma"),
        (lambda: nw.Agent(FIXED, dim=2, sigma="guessed"), "sigma"),
        (lambda: nw.Agent(FIXED, dim=2, capacity=0), "capacity"),
        (lambda: nw.Agent(nw.Uniform(), dim=2, sigma="estimated"), "predicts nothing"),
        (lambda: nw.Agent.for_means(dim=2, feature_bound=-1.0), "feature_bound"),
    ],
)
def test_bad_agents_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_files_that_hold_no_agent_are_refused(tmp_path):
    nw.save(tmp_path / "a.npz", FIXED, FIXED.start(2))
    with pytest.raises(ValueError, match="no agent"):
        nw.Agent.load(tmp_path / "a.npz")
    nw.Agent(nw.FTRLUCB(nw.GLM(CAUCHIT)), dim=2).save(tmp_path / "b.npz")
    with pytest.raises(ValueError, match=r"cauchit.*link="):
        nw.Agent.load(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.Agent("x", 3), "policy"),
        (lambda: nw.Agent(nw.FTRLUCB, 3), "policy"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=(1.0, 0.0)), "rewards"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=(0.0, np.nan)), "rewards"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=(0.0,)), "rewards"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=(0.0, 1.0, 2.0)), "rewards"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=5), "rewards"),
        (lambda: nw.Agent(nw.Uniform(), 3, rewards=("a", "b")), "rewards"),
        (lambda: nw.FTRLUCB(noise_bound=0.01), "noise_floor"),
    ],
)
def test_agents_of_nothing_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


class Leaky:
    """A lock that interrupts whoever leaves it, so many times."""

    def __init__(self, times):
        self.times = times

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self.times -= 1
        if self.times >= 0:
            raise KeyboardInterrupt


def test_a_call_repeated_after_an_interrupt_may_be_interrupted_too():
    agent = nw.Agent.for_means(dim=2)
    agent.choose(np.eye(2), key="a")
    agent._lock = Leaky(times=3)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            agent.learn("a", 1.0)
    agent.learn("a", 1.0)
    assert agent.state.count == 1
    assert agent.waiting == ()
