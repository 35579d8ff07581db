"""What `Agent.health` counts, and when it gives advice."""

import copy

import numpy as np
import pytest
from instances import sphere

import noisewise as nw
from noisewise.agent.explanations.health import EVERY, Watch

RNG = np.random.default_rng
AB = nw.Arms(["A", "B"], None)


def values(agent):
    return {each.name: each.value for each in agent.health()}


def test_every_decision_is_pending_rewarded_or_given_up():
    agent = nw.Agent.for_binary_rewards(arms=AB, capacity=6)
    agent.choose(None, "a")
    agent.choose(None, "b", top=2)
    agent.choose(None)
    agent.choose(None)  # gives up the one before
    agent.choose_many([None] * 2, ["c", "d"])
    assert agent.health().of("without reward").sentence == (
        "7 of 7 decisions have no reward: 6 pending, 1 given up."
    )
    assert values(agent)["oldest pending"] == 6
    agent.learn("a", 1.0)
    agent.learn("b", {"A": 0.0})
    agent.forget("b")
    assert values(agent)["without reward"] == (3 + 2) / 7
    assert values(agent)["oldest pending"] == 2  # c and d follow the one without a key
    with pytest.raises(ValueError, match="pass one of without reward"):
        agent.health().of("rewards")


def test_a_batch_counts_as_its_decisions():
    one, two = (nw.Agent.for_binary_rewards(arms=AB) for _ in range(2))
    two.choose_many([None] * 40, range(40))
    for key in range(40):
        one.choose(None, key)
    assert one.watch.since == two.watch.since
    assert one.watch.recent == two.watch.recent
    assert len(one.watch.explored) == len(two.watch.explored) == 40 // EVERY


def test_it_is_saved_and_copied_with_the_agent(tmp_path):
    agent = nw.Agent.for_binary_rewards(arms=nw.Arms(["A", "B"], context=["age"]))
    for t in range(300):
        agent.choose({"age": float(t)}, (t, "x"))
        agent.learn((t, "x"), float(t % 2))
    with pytest.raises(ValueError, match="context has no 'age'"):
        agent.choose({})
    agent.choose({"age": 1.0}, "open", top=2)
    agent.save(tmp_path / "a.npz")
    for twin in (nw.Agent.load(tmp_path / "a.npz"), copy.copy(agent)):
        assert repr(twin.health()) == repr(agent.health())
        assert twin.watch == agent.watch
        twin.choose({"age": 1.0}, "other")
        assert twin.watch != agent.watch
    assert values(agent)["refused contexts"] == 1
    assert "clipped contexts" in values(agent)


def test_numbers_of_decisions_do_not_pile_up():
    agent = nw.Agent.for_means(2)
    for t in range(5000):
        agent.choose(np.eye(2), t)
        agent.forget(t)
    assert len(agent.watch.since) <= 1001
    assert len(agent.watch.recent) <= 2000


def test_advice_is_given_where_something_is_odd():
    agent = nw.Agent.for_binary_rewards(arms=AB)
    assert agent.health().advice == []
    for _ in range(300):
        agent.learn(AB()[0], 1.0)
        agent.learn(AB()[1], 0.0)
    for t in range(300):
        agent.choose(None, t)
    found = agent.health()
    assert "100 %" in found.of("largest share of an action").sentence
    assert "randomise" in found.of("largest share of an action").advice
    assert "learn 0" in found.of("without reward").advice
    assert all(line in str(agent.explain()) for line in found.advice)
    assert str(found).count("look") == len(found.advice) == 2
    assert "<pre>" in found._repr_html_()
    small = nw.Agent.for_means(2, capacity=2)
    with pytest.warns(UserWarning, match="capacity"):
        small.choose_many([np.eye(2)] * 2, [1, 2]) and small.choose(np.eye(2), 3)
    assert "larger capacity" in small.health().of("oldest pending").advice


def test_exploration_and_odd_contexts_are_seen_in_samples():
    agent, rng, expected = nw.Agent(nw.LinUCB(width=3.0), 5), RNG(0), []
    for t in range(40 * EVERY):
        x = sphere(rng, 10, 5)
        estimates = [row.estimate for row in agent.explain(x)]
        k = agent.choose(x, t)
        if t % EVERY == EVERY - 1:
            expected.append(estimates[k] < max(estimates))
        agent.learn(t, float(x[k, 0] + rng.normal()))
    assert agent.watch.explored == expected
    assert values(agent)["exploration"] == np.mean(expected)
    agent.watch.explored = [True] * 10
    assert "interactions='shared'" in agent.health().of("exploration").advice
    shop = nw.Agent.for_binary_rewards(arms=nw.Arms(["A", "B"], context=["age"]))
    for t in range(20 * EVERY):
        shop.choose({"age": rng.uniform(20, 60) * (1000 if t > 10 * EVERY else 1)}, t)
        shop.learn(t, float(rng.random() < 0.5))
        if t == 10 * EVERY:
            assert values(shop)["clipped contexts"] == 0
            count, limits = len(shop.watch.clipped), shop.state.vector.high[0]
            assert 60 < limits < 1000
    assert any(shop.watch.clipped[count:])


def test_decisions_drawn_by_chance_are_not_laid_to_the_bonus():
    agent = nw.Agent(nw.Greedy(nw.GLM()), 2, randomise=1.0, among="all")
    for t in range(20 * EVERY):
        agent.learn(np.eye(2)[agent.choose(np.eye(2), t)], 0.5 - t % 2 * 0.1)
        agent.forget(t)
    assert len({*agent.watch.recent}) == 2
    assert not any(agent.watch.explored)
    slates = nw.Agent(nw.Greedy(nw.GLM()), 4, baseline="uniform", holdout=0.9)
    slates.learn(np.eye(4)[0], 0.5)
    for t in range(20 * EVERY):
        slates.choose(np.eye(4), t, top=2)
        slates.forget(t)
    assert slates.watch.explored
    assert not any(slates.watch.explored)


@pytest.mark.parametrize("policy", [nw.Uniform(), nw.LinearThompson(), nw.FTRLUCB()], ids=repr)
def test_other_policies_are_watched(policy):
    agent = nw.Agent(policy, 2)
    for t in range(2 * EVERY):
        agent.choose(np.eye(2), t)
        agent.learn(t, 0.1)
    assert values(agent)["without reward"] == 0


BAD = [
    {"since": [3]}, {"since": [("a", 1.5)]}, {"since": [(3.5, 1)]}, {"recent": ("A",)},
    {"recent": [1.5]}, {"explored": [1]}, {"clipped": 3}, {"taken": -1}, {"refused": 0.5},
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=repr)
def test_what_a_file_may_not_hold(case):
    with pytest.raises(ValueError):
        Watch(**case)
