"""Decisions whose rewards are pending: counted by the policy, released once, taken in batches."""

import numpy as np
import pytest
from histories import arm_sets
from instances import POLICIES, close, sphere

import noisewise as nw
from noisewise.agent.comparison import experiment
from noisewise.agent.explanations import health
from noisewise.agent.record import decision_log
from noisewise.checks.comparison import same

RNG = np.random.default_rng
DOORS = [nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards]


def counted(agent):
    agent.explain(np.eye(agent.dim))  # by now the newest is counted, too
    return agent.state.pending


@pytest.mark.parametrize("make", DOORS)
def test_decisions_are_counted_and_released(make):
    agent, arms = make(3, capacity=4), np.eye(3)
    for key in "abcd":
        agent.choose(arms, key)
    assert counted(agent) == 4
    agent.learn("b", 1.0)
    agent.forget("a")
    agent.learn(["d"], [0.0])
    assert counted(agent) == 1
    agent.learn(arms[0], 1.0)  # features release nothing
    assert counted(agent) == 1
    agent.choose(arms)
    agent.choose(arms)  # in place of the one before
    assert (counted(agent), agent.waiting) == (2, ("c", None))
    for key in "ef":
        agent.choose(arms, key)
    with pytest.warns(UserWarning, match="capacity"):
        agent.choose(arms, "g")
    assert (counted(agent), agent.waiting) == (4, (None, "e", "f", "g"))
    agent.learn(["e", None, "g", "f"], [1.0, 0.0, 1.0, 0.0])
    assert counted(agent) == 0


def test_a_reward_that_comes_at_once_leaves_the_state_of_the_policy_alone():
    """Then numbers are those of the policy by itself, to the bit."""
    policy, rng = nw.SelfTunedUCB("binomial"), RNG(0)
    agent, state = nw.Agent(policy, 4), policy.start(4)
    for t in range(60):
        arms, y = sphere(rng, 5, 4), float(rng.integers(2))
        k = agent.choose(arms, key=t)
        agent.learn(t, y)
        policy.update(state, arms[k].copy(), y)
    assert same(agent.state, state)


@pytest.mark.parametrize("make", DOORS)
def test_a_batch_of_decisions_and_rewards_is_one_by_one(make):
    """Choices, states and generators are equal, in three batches of 20."""
    one, two, rng = make(4), make(4), RNG(1)
    for part in range(3):
        offers, y = sphere(rng, 20 * 6, 4).reshape(20, 6, 4), np.round(rng.random(20))
        keys = [f"{part}-{i}" for i in range(20)]
        single = [one.choose(x, key) for x, key in zip(offers, keys, strict=True)]
        assert two.choose_many(offers, keys) == single
        assert one.waiting == two.waiting == tuple(keys)
        for key, reward in zip(keys, y, strict=True):
            one.learn(key, reward)
        two.learn(keys, y)
        assert same(one.state, two.state)
        assert one.rng.bit_generator.state == two.rng.bit_generator.state


@pytest.mark.parametrize("policy", [nw.LinUCB(), nw.LinearThompson(), nw.FTRLUCB()], ids=repr)
def test_other_policies_take_batches(policy):
    one, two = nw.Agent(policy, 3), nw.Agent(policy, 3)
    offers = arm_sets(6)
    assert two.choose_many(offers, range(6)) == [one.choose(x, t) for t, x in enumerate(offers)]


def test_batches_of_contexts():
    pandas = pytest.importorskip("pandas")
    contexts = [{"age": 0.3}, {"age": 0.9}, {"age": 0.1}]
    agents = [
        nw.Agent.for_means(arms=nw.Arms(["a", "b"], context=["age"]), randomise=0.5, among="all")
        for _ in range(3)
    ]
    single = [agents[0].choose(each, t) for t, each in enumerate(contexts)]
    assert agents[1].choose_many(contexts, [0, 1, 2]) == single
    assert agents[2].choose_many(pandas.DataFrame(contexts), [0, 1, 2]) == single
    for agent in agents:
        agent.learn([2, 0, 1], [1.0, 0.0, 1.0])
        assert agent.log()["action"] == single
    assert agents[0].choose_many(contexts, [*"xyz"], actions=["b"]) == ["b"] * 3


BAD = {
    "one key each": (np.ones((2, 3, 2)), ["x"]),
    "twice": (np.ones((2, 3, 2)), ["x", "x"]),
    "pending already": (np.ones((2, 3, 2)), ["x", "a"]),
    "None": (np.ones((2, 3, 2)), ["x", None]),
    "capacity": (np.ones((7, 3, 2)), range(7)),
    "nan": (np.array([np.ones((3, 2)), np.full((3, 2), np.nan)]), ["x", "y"]),
    "arms has shape": ([np.ones((3, 2)), np.ones((3, 4))], ["x", "y"]),
    "offers is": ("words", ["x"]),
}


@pytest.mark.parametrize("words", BAD)
def test_a_batch_with_a_bad_offer_is_refused_whole(words):
    agent = nw.Agent.for_means(2, capacity=6)
    agent.choose(np.eye(2), "a")
    before = agent.rng.bit_generator.state
    with pytest.raises(ValueError, match=words):
        agent.choose_many(*BAD[words])
    assert agent.waiting == ("a",)
    assert agent.rng.bit_generator.state == before
    assert counted(agent) == 1


@pytest.mark.parametrize("at_call", range(1, 5))
@pytest.mark.parametrize("verb", ["expect", "release"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_leaves_pending_decisions_right(verb, at_call, when):
    """Before or after any call of the policy: what is counted is what is pending."""
    agent, arms, calls = nw.Agent.for_means(3), sphere(RNG(2), 4, 3), []
    own = getattr(nw.SelfTunedUCB, verb)

    def interrupted(policy, state, arm, *more):
        calls.append(1)
        if len(calls) == at_call and when == "before":
            raise KeyboardInterrupt
        own(policy, state, arm, *more)
        if len(calls) == at_call:
            raise KeyboardInterrupt

    steps = [lambda t=t: agent.choose(arms, f"k{t}") for t in range(6)]
    steps += [
        lambda: agent.learn("k1", 1.0),
        lambda: agent.forget("k0"),
        lambda: agent.learn(["k2", "k4"], [1.0, 0.0]),
        lambda: agent.choose_many([arms, arms], ["m0", "m1"]),
        lambda: agent.learn("k3", 0.0),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nw.SelfTunedUCB, verb, interrupted)
        for step in steps:
            try:
                step()
            except KeyboardInterrupt:
                if not (verb == "release" and step is steps[7] and when == "after"):
                    step()  # repeated, as a user would
                elif "k0" in agent.waiting:
                    step()
    assert agent.state.count == 4
    assert agent.waiting == ("k5", "m0", "m1")
    assert counted(agent) == 3
    state = agent.state
    agent._learner.check_pending()
    z = np.hstack([state.pending_arms, np.ones((3, 1))])
    close(state.matrix.pending, z.T * state.decisions[:3, -1] @ z, 1e-12)
    ridge = 2 * state.ridge * state.vector.scale
    ridge[-1] = state.number.intercept_ridge
    H = state.matrix.gram + state.matrix.pending + np.diag(ridge)
    close(state.matrix.bonus @ H, np.eye(4), 1e-9)


class Interrupted(dict):
    """Arms that are pending, and an interrupt once some are added."""

    def __setitem__(self, key, arm):
        super().__setitem__(key, arm)
        raise KeyboardInterrupt

    def update(self, pairs):
        super().update(pairs)
        raise KeyboardInterrupt


AB = nw.Arms(["a", "b"], context=["x"])
DECISIONS = {
    "one": lambda agent: agent.choose({"x": 1.0}, "n"),
    "no key": lambda agent: agent.choose({"x": 1.0}),
    "two of them": lambda agent: agent.choose({"x": 1.0}, "n", top=2),
    "many": lambda agent: agent.choose_many([{"x": 1.0}, {"x": 2.0}], ["n", "m"]),
    "adopted": lambda agent: agent.adopt({"x": 1.0}, "b", "n", baseline=False),
}


@pytest.mark.parametrize("where", ["arms", "watch", "record", "experiment", "expect"])
@pytest.mark.parametrize("which", DECISIONS)
@pytest.mark.parametrize("recorded", [False, True])
def test_an_interrupted_decision_is_not_pending(which, where, recorded, monkeypatch, tmp_path):
    """It was not recorded, so it may be taken again; what the policy counts is what is pending."""
    agent = nw.Agent.for_means(arms=AB, **({"randomise": 0.2, "among": "all"} if recorded else {}))
    agent.choose({"x": 0.5}, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    pending = agent._learner.pending
    with monkeypatch.context() as patch:
        if where == "arms":
            pending.arms = Interrupted(pending.arms)
        elif where == "watch":
            patch.setattr(health.Watch, "forget_all_but", interrupted)
        elif where == "record":
            patch.setattr(decision_log.DecisionLog, "_put", interrupted)
        elif where == "experiment":
            patch.setattr(experiment.Experiment, "assign", interrupted)
        else:
            patch.setattr(nw.SelfTunedUCB, "expect", interrupted)
        interrupted_there = False
        try:
            DECISIONS[which](agent)
        except KeyboardInterrupt:
            interrupted_there = True
    pending.arms = dict(pending.arms)
    if interrupted_there:
        assert agent.pending == ("old",)
        assert pending.slates == {}
        agent._learner.announce()
        agent._learner.check_pending()
        DECISIONS[which](agent)
    agent.explain({"x": 1.0})
    agent._learner.check_pending()
    agent.save(tmp_path / "agent.nw")
    assert nw.Agent.load(tmp_path / "agent.nw").pending == agent.pending


def test_files_whose_pending_decisions_contradict_each_other_are_refused(tmp_path):
    agent = nw.Agent.for_means(2)
    for key in "abc":
        agent.choose(np.eye(2), key)
    agent.save(tmp_path / "a.npz")
    assert counted(nw.Agent.load(tmp_path / "a.npz")) == 3
    agent.state.decisions[0, 0] = 7.0
    agent.save(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="counts other decisions"):
        nw.Agent.load(tmp_path / "b.npz")


def test_decisions_before_the_first_reward_are_weighed_in_its_unit():
    """As if the sd had been given with them: the index of rewards 1000 times as large."""
    policy, arms = nw.SelfTunedUCB(), sphere(RNG(3), 5, 3)
    states = [policy.start(3) for _ in range(3)]
    for state, sd in zip(states, (1e3, 1e3, 1.0), strict=True):
        for arm in arms[:3]:
            policy.expect(state, arm, sd if state is states[1] else None)
        policy.update(state, arms[0], sd * 0.7, 0.5 * sd if state is not states[1] else sd)
    big, given, small = (policy.index(state, arms) for state in states)
    close(big, 1e3 * small, 1e-9)
    assert states[0].number.pending == 3
    close(states[1].matrix.pending * 1e6, states[2].matrix.pending / 4, 1e-9)
    assert given.max() > 0


def test_a_first_reward_that_is_refused_weighs_nothing():
    policy, arms = nw.SelfTunedUCB(), sphere(RNG(3), 5, 3)
    state = policy.start(3)
    policy.expect(state, arms[0])
    before = state.copy()
    with pytest.raises(ValueError, match="nan"):
        policy.update(state, np.full(3, np.nan), 1.0, 5.0)
    assert same(state, before)


def test_policies_that_count_no_decisions_are_left_alone():
    for policy in POLICIES:
        anticipates = hasattr(policy, "expect")
        assert (nw.Agent(policy, 3)._learner._anticipating is not None) == anticipates
        assert anticipates == isinstance(policy, nw.SelfTunedUCB)


@pytest.mark.parametrize("make", [nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards])
@pytest.mark.parametrize("delay", [5, 20])
def test_an_agent_with_late_rewards_can_be_loaded(make, delay, tmp_path):
    """Decisions taken off their sum leave rounding behind, which no file is damaged by."""
    for seed in range(6):
        rng, arms = np.random.default_rng(seed), nw.Arms(["a", "b", "c"], context=["age"])
        agent, due = make(arms=arms, seed=seed), []
        for t in range(120):
            agent.choose({"age": rng.uniform(18, 80)}, key=t)
            due.append((t, float(rng.integers(2))))
            if len(due) > delay:
                agent.learn(*due.pop(0))
        agent.save(tmp_path / "agent.npz")
        again = nw.Agent.load(tmp_path / "agent.npz")
        assert again.waiting == agent.waiting
        for key, reward in due:
            agent.learn(key, reward)
        agent.save(tmp_path / "agent.npz")
        assert nw.Agent.load(tmp_path / "agent.npz").waiting == ()
