"""Contexts of any kind: what could block an agent later is refused before it is remembered."""

import copy
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import noisewise as nw
from noisewise.agent.actions.context_fields import LARGEST

CONTEXT = {"age": float, "country": ["de", "fr"], "page": 4}
ORDINARY = {"age": 31.0, "country": "de", "page": "home"}
KINDS = [nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards]
HUGE = [1e16, 1e20, -1e30, 1e45, 1e60, 1e160, -1e308]
BEYOND = [10**400, Fraction(10**400), Decimal("1e999"), math.nan, -math.inf]


def fresh(make, **settings):
    return make(arms=nw.Arms(["a", "b", "c"], context=CONTEXT), **settings)


def served(agent, path):
    """Let an agent do all it is for, with ordinary contexts."""
    agent.choose(ORDINARY, key="one")
    agent.choose(ORDINARY)
    agent.choose_many([ORDINARY] * 3, keys=["two", "three", "four"])
    agent.explain(ORDINARY)
    agent.save(path)
    nw.Agent.load(path)
    agent.learn("one", 1.0)
    agent.learn(None, 0.0)
    agent.learn(["two", "three", "four"], [1.0, 0.0, 1.0])
    agent.save(path)
    again = nw.Agent.load(path)
    assert again.choose(ORDINARY) == agent.choose(ORDINARY)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("age", BEYOND, ids=lambda x: repr(x)[:12])
def test_what_is_no_float_is_refused_and_named(make, first, age, tmp_path):
    """By key, without one and in a batch, as the first context or later; nothing is remembered."""
    agent, odd = fresh(make), {**ORDINARY, "age": age}
    if not first:
        agent.choose(ORDINARY, key="x")
        agent.learn("x", 1.0)
    before, arms = agent.pending, agent.arms
    for use in (
        lambda: agent.choose(odd, key="evil"),
        lambda: agent.choose(odd),
        lambda: agent.choose_many([ORDINARY, odd, ORDINARY], keys=[1, 2, 3]),
        lambda: agent.explain(odd),
    ):
        with pytest.raises(ValueError, match="context 'age' is"):
            use()
    assert (agent.pending, agent.arms) == (before, arms)
    served(agent, tmp_path / "agent.npz")


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("learnt", [False, True])
@pytest.mark.parametrize(
    "age", [*HUGE, LARGEST, -LARGEST, 1e12, 1e7, 1e-7, 1e-30, -1e-100, 1e-160, 1e-300, 5e-324]
)
def test_what_is_accepted_does_not_block(make, first, learnt, age, tmp_path):
    agent, odd = fresh(make), {**ORDINARY, "age": age}
    if not first:
        agent.choose(ORDINARY, key="x")
        agent.learn("x", 1.0)
    agent.choose(odd, key="evil")
    agent.choose(odd)
    agent.choose_many([odd] * 2, keys=[1, 2])
    if learnt:
        agent.learn("evil", 1.0)
        agent.learn([1, 2], [0.0, 1.0])
    served(agent, tmp_path / "agent.npz")


@pytest.mark.parametrize("age", HUGE)
@pytest.mark.parametrize("policy", [nw.LinUCB(), None])
def test_policies_without_units_of_contexts_refuse_huge_numbers(policy, age):
    arms, odd = nw.Arms(["a", "b", "c"], context=CONTEXT), {**ORDINARY, "age": age}
    agent = (
        nw.Agent(policy, arms=arms)
        if policy
        else fresh(KINDS[0], guaranteed=True, feature_bound=99)
    )
    for use in (agent.choose, agent.explain, lambda odd: agent.choose_many([odd], keys=[1])):
        with pytest.raises(ValueError, match="context 'age' is"):
            use(odd)
    assert not agent.pending
    agent.choose(ORDINARY)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("norm", [1e21, 1e29, 1e35, 1e45, 1e100])
def test_long_arms_are_refused_before_they_are_remembered(make, norm, tmp_path):
    """Whoever passes matrices: what `choose` takes, it can count as pending, learn and save."""
    agent, long = make(2), norm * np.eye(2)
    for use in (
        lambda: agent.choose(long, key="evil"),
        lambda: agent.choose(long),
        lambda: agent.choose_many([np.eye(2), long], keys=[1, 2]),
        lambda: agent.learn(long[0], 1.0),
        lambda: agent.learn(long, [1.0, 0.0]),
        lambda: agent.policy.update(agent.state, long[0], 1.0),
        lambda: agent.policy.expect(agent.state, long[0]),
    ):
        with pytest.raises(ValueError, match="norm"):
            use()
    assert not agent.pending
    agent.choose(np.eye(2), key=1)
    agent.choose(1e19 * np.eye(2), key=2)
    agent.choose(np.eye(2), key=3)
    agent.learn([1, 2], [1.0, 0.0])
    agent.save(tmp_path / "agent.npz")
    nw.Agent.load(tmp_path / "agent.npz")


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("seed", range(4))
def test_states_stay_sound_beside_numbers_of_any_size(family, seed, tmp_path):
    """Numbers from 1e-100 to 1e19 among ordinary ones: indices are finite, files can be loaded."""
    rng, policy = np.random.default_rng([7, seed]), nw.SelfTunedUCB(family)
    state, pending = policy.start(4), []
    for t in range(150):
        x = rng.normal(size=(3, 4))
        if t % 4 == 0:
            x[:, rng.integers(4)] = rng.choice([-1, 1]) * 10 ** rng.uniform(-100, 19)
        k = policy.select(state, x, rng)
        assert np.isfinite(policy.index(state, x)).all()
        if t % 3 == 0:
            policy.expect(state, x[k])
            pending.append(x[k])
        elif t % 3 == 1:
            policy.release(state, pending.pop(rng.integers(len(pending))))
        else:
            policy.update(state, x[k], float(rng.random() < 0.5))
        nw.save(tmp_path / "state.npz", policy, state)  # refuses what could not be loaded


def test_a_released_giant_leaves_the_others():
    """What is left of the pending decisions is what they are by themselves."""
    policy, arms = nw.SelfTunedUCB("gaussian"), np.random.default_rng(3).normal(size=(5, 3))
    one, two = policy.start(3), policy.start(3)
    for state in (one, two):
        policy.update(state, [1.0, 0.0, 0.0], 1.0)
        for x in arms:
            policy.expect(state, x)
    giant = np.array([1e15, 1.0, 1.0])
    policy.expect(one, giant)
    policy.release(one, giant)
    np.testing.assert_allclose(policy.index(one, arms), policy.index(two, arms), rtol=1e-9)


def test_a_word_of_any_characters_is_hashed():
    agent = fresh(nw.Agent.for_means)
    for i, page in enumerate(["\ud800", "\x00", "\u202e", "é" * 10_000, ""]):
        agent.choose({**ORDINARY, "page": page}, key=i)
        agent.learn(i, 1.0)


NUMBERS = [1e30, -1e300, 10**400, 5e-324, -1e-200, math.nan, math.inf, True, Decimal(3), None]
WORDS = ["", "\ud800", "\x00\x1b[31m", "\u202eed", "名前" * 500, 3, 2.5, math.nan, None, b"de"]
WHOLE = [None, 7, "age", [], [1.0], [[1.0], [2.0, 3.0]], {}, {1, 2}, object(), np.zeros(3), print]


def hostile(rng):
    """Return a context that may be anything."""
    kind = rng.integers(6)
    given = {"age": rng.uniform(18, 80), "country": "de", "page": "home"}
    if kind == 0:
        given["age"] = rng.choice([-1, 1]) * 10 ** rng.uniform(16, 308)
    elif kind == 1:
        given["age"] = rng.choice([-1, 1]) * 10 ** rng.uniform(-323, -3)
    elif kind == 2:
        given["age"] = NUMBERS[rng.integers(len(NUMBERS))]
    elif kind == 3:
        given[["country", "page"][rng.integers(2)]] = WORDS[rng.integers(len(WORDS))]
    elif kind == 4:
        del given[list(given)[rng.integers(3)]]
        given[f"extra {rng.integers(9)}"] = object()
    else:
        return WHOLE[rng.integers(len(WHOLE))]
    return given


def played(rounds, attacks, seed):
    """Return the share of best actions in the second half, with attacks between the rounds.

    What an attack is offered has its reward as the world gives it at that age, or never has one.
    """
    rng, other = np.random.default_rng([1, seed]), np.random.default_rng([2, seed])
    agent, best, accepted = fresh(nw.Agent.for_binary_rewards, capacity=1000), [], 0
    slopes = {"a": 0.1, "b": -0.1, "c": 0.0}

    def reward(name, age, rng):
        score = min(max(slopes[name] * (float(age) - 50), -30.0), 30.0)
        return float(rng.random() < 1 / (1 + math.exp(-score)))

    for t in range(rounds):
        visitor = {
            "age": rng.uniform(18, 80),
            "country": str(rng.choice(["de", "fr"])),
            "page": "home",
        }
        name = agent.choose(visitor, key=t)
        best.append(name == ("a" if visitor["age"] > 50 else "b"))
        agent.learn(t, reward(name, visitor["age"], rng))
        for i in range(attacks):
            key, given = [f"{t}-{i}", None, 1.5, ()][other.integers(4)], hostile(other)
            try:
                name = agent.choose(given, key=key)
            except ValueError:
                continue
            accepted += 1
            if other.random() < 0.5:
                agent.learn(key, reward(name, given["age"], other))
    return float(np.mean(best[rounds // 2 :])), accepted, agent


@pytest.mark.filterwarnings("ignore:more than 1,000 decisions")
@pytest.mark.parametrize(
    ("runs", "most"), [(1, 0.15), pytest.param(100, 0.01, marks=pytest.mark.slow)]
)
def test_an_agent_under_attack(runs, most, tmp_path):
    """Ordinary decisions are as good as without the attack, and none of them is refused.

    The difference of a run has a standard deviation of about 0.038. So a run that the attack does
    not harm would fail with probability 4e-5, and the mean of a hundred with 4e-3.
    """
    shares = []
    for seed in range(runs):
        share, accepted, agent = played(1500, 2, seed)
        assert 0 < accepted < 3000
        agent.save(tmp_path / "agent.npz")
        nw.Agent.load(tmp_path / "agent.npz")
        shares.append((played(1500, 0, seed)[0], share))
    calm, attacked = np.mean(shares, axis=0)
    assert attacked > calm - most
    assert calm > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:more than 1,000 decisions")
def test_an_agent_survives_a_hundred_thousand_attacks(tmp_path):
    """Its ordinary decisions are as good as without, in the mean of forty such runs.

    The difference of a run has a standard deviation of about 0.021. So an attack that does no harm
    would fail with probability 0.0013 for seeds that are not fixed.
    """
    shares = []
    for seed in range(40):
        share, accepted, agent = played(5000, 20, seed)
        assert 0 < accepted < 100_000
        assert agent.dropped > 0
        served(agent, tmp_path / "agent.npz")
        shares.append((played(5000, 0, seed)[0], share))
    calm, attacked = np.mean(shares, axis=0)
    print("share of best actions, calm and under attack:", calm, attacked)
    assert attacked > calm - 0.01
    assert calm > 0.9


def test_a_copy_is_an_agent_of_its_own():
    for twin_of in (copy.copy, copy.deepcopy):
        agent = fresh(nw.Agent.for_means, randomise=0.5, among="all")
        agent.choose(ORDINARY, key=1)
        twin = twin_of(agent)
        assert [agent.choose(ORDINARY) for _ in range(9)] == [
            twin.choose(ORDINARY) for _ in range(9)
        ]
        twin.learn(1, 1.0)
        assert agent.state.count == 0
        assert twin.state.count == 1
        assert agent.pending == (1, None)
        assert twin.pending == (None,)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("visits", [9e15, -1e14, 1e12])
def test_products_with_large_features_of_actions_do_not_block(make, visits):
    """They are cut, or refused where the policy has no units of contexts."""
    prices = {"basic": {"price": 9900.0}, "pro": {"price": 49900.0}}
    arms = nw.Arms(prices, "shared", context={"visits": float})
    agent = make(arms=arms)
    agent.choose({"visits": visits}, key="odd")
    agent.learn("odd", 1.0)
    if abs(visits) > 2e14:
        with pytest.raises(ValueError, match="context 'visits' is"):
            arms({"visits": visits})
    agent.choose({"visits": 3.0}, key=1)
    agent.learn(1, 1.0)
    agent.explain({"visits": 4.0})
