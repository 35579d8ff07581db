"""Several actions chosen as one decision: order, rewards by slot, probabilities, files."""

from uuid import UUID

import numpy as np
import pytest
from instances import POLICIES, sphere

import noisewise as nw
from noisewise.agent.kinds import Indexed
from noisewise.agent.rewards.pending import Pending
from noisewise.bandits.arms import best_first
from noisewise.checks.comparison import same

RNG = np.random.default_rng
ARMS = nw.Arms(["a", "b", "c", "d"], context={"age": float})


def played(rounds=30, **more):
    """An agent that has learnt, with arms of 3 features."""
    agent, rng = nw.Agent.for_continuous_rewards(3, **more), RNG(0)
    for x in sphere(rng, rounds, 3):
        agent.learn(x, float(x[0] + 0.3 * rng.normal()))
    return agent, sphere(rng, 6, 3)


def test_the_largest_indices_in_order():
    agent, x = played()
    index = agent.policy.index(agent.state, x)
    best = np.argsort(-index)
    assert agent.choose(x, "one", top=4) == best[:4].tolist()
    assert agent.pending == ("one",)
    agent.forget("one")
    assert agent.choose(x, "all", top=6) == best.tolist()
    agent.forget("all")
    assert agent.choose(x, top=1) == [agent.choose(x)]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_any_policy_takes_slates(policy):
    """All different, the first as chosen alone; those without an index choose among the rest."""
    agent, rng = nw.Agent(policy, 3, sigma=0.5), RNG(1)
    x = (
        np.eye(3)
        if hasattr(policy, "variant") or type(policy) is nw.UCB1Normal
        else sphere(rng, 5, 3)
    )
    for _ in range(3):
        slate = agent.choose(x, top=3, sigma=np.full(len(x), 0.5))
        assert len(set(slate)) == 3
        agent.learn(None, [0.5, 0.0, None])
    if isinstance(policy, Indexed):
        assert agent.choose(x, top=len(x))[0] == agent.choose(x)


def test_ties():
    same_index = np.array([1.0, 3.0, 3.0 * (1 + 1e-15), 0.0, 1.0])
    assert best_first(same_index, 4).tolist() == [1, 2, 0, 4]
    found = {tuple(best_first(same_index, 3, RNG(t)).tolist()) for t in range(60)}
    assert found == {(1, 2, 0), (2, 1, 0), (1, 2, 4), (2, 1, 4)}  # misses one below 60 (3/4)^60
    assert best_first(np.full(4, -np.inf), 2).tolist() == [0, 1]
    assert best_first(np.array([np.nan, 5.0, 1.0]), 2).tolist() == [1, 2]
    firsts = {nw.Agent.for_means(3, seed=t).choose(np.eye(3), top=2)[0] for t in range(40)}
    assert firsts == {0, 1, 2}  # one is missed with probability 3 (2/3)^40 < 1e-6


def test_each_slot_is_learnt_as_a_reward_of_its_own():
    """In one call, slot by slot, or of arms: the same state."""
    one, x = played()
    two, three = played()[0], played()[0]
    best = one.choose(x, "k", top=3)
    one.learn("k", [0.1, 0.2, 0.3], trials=[1, 2, 3])
    two.choose(x, "k", top=3)
    two.learn("k", [0.1, None, None])
    two.learn("k", {best[1]: 0.2, best[2]: 0.3}, trials={best[1]: 2, best[2]: 3})
    for k, y, n in zip(best, (0.1, 0.2, 0.3), (1, 2, 3), strict=True):
        three.learn(x[k], y, trials=n)
    for other in (two, three):
        np.testing.assert_allclose(other.state.coef, one.state.coef, rtol=1e-9)
        assert other.state.count == one.state.count == 33
    assert one.pending == two.pending == ()


def test_pending_slots_count_until_they_have_their_reward():
    agent, x = played()
    agent.choose(x, "k", top=3)
    agent.choose(x, "single")
    agent.explain(x)
    assert agent.state.pending == 4
    agent.learn("k", [None, 1.0, None])
    assert (agent.state.pending, agent.pending) == (3, ("k", "single"))
    with pytest.raises(ValueError, match="has its reward already"):
        agent.learn("k", [None, 1.0, None])
    agent.forget("k")
    assert (agent.state.pending, agent.pending) == (1, ("single",))
    agent.choose(x, top=2)
    agent.choose(x, top=3)  # in place of the last without a key
    agent.explain(x)
    assert (agent.state.pending, agent.pending) == (4, ("single", None))


def test_many_slates_at_once():
    agent = nw.Agent.for_binary_rewards(arms=ARMS)
    other = nw.Agent.for_binary_rewards(arms=ARMS)
    contexts = [{"age": float(t)} for t in range(5)]
    slates = agent.choose_many(contexts, range(5), top=2)
    assert slates == [other.choose(c, t, top=2) for t, c in enumerate(contexts)]
    agent.learn([0, 1], [[1.0, 0.0], {slates[1][1]: 1.0}])
    other.learn(0, [1.0, 0.0])
    other.learn(1, [None, 1.0])
    assert same(agent.state, other.state)
    assert agent.pending == (1, 2, 3, 4)
    before = agent.pending
    with pytest.raises(ValueError, match="pending already"):
        agent.choose_many(contexts, [7, 8, 9, 10, 1], top=2)
    with pytest.raises(ValueError, match="top is 5"):
        agent.choose_many(contexts, range(20, 25), top=5)
    assert agent.pending == before


@pytest.mark.parametrize("among", ["all", "plausible"])
def test_probabilities_are_frequencies(among):
    """Of each arm in each slot over 4,000 draws: within five standard errors, 24 tests, 2e-5."""
    agent, x = played(randomise=0.6, among=among, record=0)
    found, n = np.zeros((3, 6)), 4000
    for _ in range(n):
        slate, p = agent.choose(x, top=3, with_probabilities=True)
        assert len(set(slate)) == 3
        found[range(3), slate] += 1 / n
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()
    if among == "all":
        assert np.sort(p[0]).tolist() == pytest.approx([0.1] * 5 + [0.5])


def test_the_log_has_a_row_per_slot(tmp_path):
    agent = nw.Agent.for_binary_rewards(arms=ARMS, randomise=0.4, among="all", seed=1)
    agent.choose({"age": 1.0}, "alone")
    slate, p = agent.choose({"age": 2.0}, "k", top=3, with_probabilities=True)
    agent.learn("k", {slate[0]: 1.0, slate[2]: 0.0})
    agent.learn("alone", 1.0)
    log = agent.log()
    assert log["action"][1:] == [slate[0], slate[2]]
    assert log["slot"] == [0, 0, 2]
    assert log["age"] == [1.0, 2.0, 2.0]
    own = [dict(zip("abcd", row, strict=True)) for row in p.tolist()]
    assert log["probabilities"][1:] == [own[0], own[2]]
    frame = agent.log(as_frame=True)
    assert frame.to_dict("list") == {k: list(v) for k, v in log.items()}
    assert log["probability"][1:].tolist() == [own[0][slate[0]], own[2][slate[2]]]
    agent.save(tmp_path / "a.npz")
    again = nw.Agent.load(tmp_path / "a.npz")
    assert again.pending == agent.pending == ("k",)
    for each in (agent, again):
        each.learn("k", [None, 1.0, None])
        assert each.log()["slot"] == [0, 0, 1, 2]
        assert each.log()["reward"].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert same(agent.state, again.state)
    assert again.choose({"age": 3.0}, "next", top=2) == agent.choose({"age": 3.0}, "next", top=2)


def test_the_oldest_decision_is_dropped_whole():
    agent = nw.Agent.for_means(3, capacity=5, record=10)
    for key in "ab":
        agent.choose(np.eye(3), key, top=2)
    with pytest.warns(UserWarning, match="capacity"):
        agent.choose(np.eye(3), "c", top=2)
    assert (agent.pending, agent.dropped) == (("b", "c"), 1)
    with pytest.raises(ValueError, match="capacity is 5"):
        agent.choose(np.eye(7)[:, :3], "d", top=6)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_call_may_be_repeated(monkeypatch, when):
    agent, x = played()
    calm = played()[0]
    for each in (agent, calm):
        each.choose(x, "k", top=3)
        each.learn("k", [None, None, 0.5])
    calm.learn("k", [1.0, 0.0, None])
    own = nw.SelfTunedUCB.update_many

    def interrupted(*given):
        if when == "after":
            own(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(nw.SelfTunedUCB, "update_many", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.learn("k", [1.0, 0.0, None])
    agent.learn("k", [1.0, 0.0, None])
    assert agent.pending == ()
    assert agent.state.count == 33
    np.testing.assert_allclose(agent.state.coef, calm.state.coef, rtol=1e-9)


@pytest.mark.parametrize("reward", [[1.0, None, None], [1.0, 0.0, None], [1.0, 0.0, 0.5]])
def test_an_interrupted_reward_of_some_slots_may_be_repeated(monkeypatch, reward):
    """Also if the interrupt came once they were pending no more."""
    agent, x = played()
    agent.choose(x, "k", top=3)
    count, own = agent.state.count, Pending.drop

    def interrupted(*given):
        own(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Pending, "drop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.learn("k", reward)
    agent.learn("k", reward)
    assert agent.state.count == count + 3 - reward.count(None)
    assert agent.is_pending("k") == (None in reward)
    if None in reward:
        with pytest.raises(ValueError, match="has its reward already"):
            agent.learn("k", reward)


BAD = {
    "none": ("top is 0", lambda a, x: a.choose(x, "n", top=0)),
    "half": ("top is 1.5", lambda a, x: a.choose(x, "n", top=1.5)),
    "more": ("6 actions are on offer", lambda a, x: a.choose(x, "n", top=7)),
    "again": ("pending already", lambda a, x: a.choose(x, "k", top=2)),
    "one reward": ("of 3 actions", lambda a, x: a.learn("k", 1.0)),
    "too few": ("of 3 actions", lambda a, x: a.learn("k", [1.0, 0.0])),
    "no reward": ("without any", lambda a, x: a.learn("k", [None] * 3)),
    "nothing": ("without any", lambda a, x: a.learn("k", {})),
    "unknown": ("reward has 9", lambda a, x: a.learn("k", {9: 1.0})),
    "NaN": ("reward", lambda a, x: a.learn("k", [1.0, np.nan, 0.0])),
    "words": ("reward", lambda a, x: a.learn("k", "abc")),
    "levels": ("sigma is", lambda a, x: a.learn("k", [1.0, 0.0, 0.5], sigma=[1.0])),
    "lists": ("2 keys of several", lambda a, x: a.learn(["k", "l"], [1.0])),
    "slot": ("pass one reward each", lambda a, x: a.learn("m", [1.0, 0.0])),
    "a slot": ("a tuple of these", lambda a, x: a.choose(x, (("k",), 0))),
    "arm": ("reads like the features", lambda a, x: a.choose(x, (1, 2, 3))),
    "nested": ("a tuple of these", lambda a, x: a.choose(x, ("a", ("b",)))),
    "number": ("a tuple of these", lambda a, x: a.choose(x, ("a", 0.5))),
    "empty": ("a tuple of these", lambda a, x: a.choose(x, ())),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_changes_nothing(case):
    words, call = BAD[case]
    agent, x = played(record=10)
    for key in "kl":
        agent.choose(x, key, top=3)
    before = (agent.pending, agent.rng.bit_generator.state, agent.state.count)
    with pytest.raises(ValueError, match=words):
        call(agent, x)
    assert (agent.pending, agent.rng.bit_generator.state, agent.state.count) == before
    assert len(agent.record.decisions) == 6


KEYS = [UUID(int=7), ("user", 3), (np.int64(17), 3), (UUID(int=7), None, "x"), (1, 2, 3, 4)]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_of_applications(key, tmp_path):
    agent, x = played(record=10)
    agent.choose(x, key)
    agent.choose_many([x], [("other", 1)])
    agent.save(tmp_path / "a.npz")
    again = nw.Agent.load(tmp_path / "a.npz")
    assert again.pending == agent.pending == (key, ("other", 1))
    again.learn(key, 1.0)
    again.learn([("other", 1)], [0.5])
    assert again.log()["reward"].tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="no decision is pending"):
        again.learn(key, 1.0)
    again.choose(x, key, top=2)
    again.learn(key, [1.0, 0.0])
    agent.learn((1, 0, 0), 1.0)  # as many integers as features are these
    assert agent.state.count == 31
