"""Batches of decisions and rewards: one compiled call, and to the bit what one by one gives."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from instances import sphere

import noisewise as nw
from noisewise.checks.comparison import same
from noisewise.kernels.compiling.compile_options import COMPILED

RNG = np.random.default_rng
DOORS = {"gaussian": nw.Agent.for_continuous_rewards, "binomial": nw.Agent.for_binary_rewards}


def in_use(state):
    """What a state holds, without the room for more."""
    stored, n = int(state.number.stored), state.pending
    some = state.rows[:stored], state.decisions[:n], state.keys[:n]
    return [state.numbers, state.vectors, state.matrices, *some]


def alike(one, two):
    """Two agents hold the same, their generators and what they wait for included."""
    equal = same(in_use(one.state), in_use(two.state)) and one.waiting == two.waiting
    known = (
        one._learner.pending.newest == two._learner.pending.newest and one.dropped == two.dropped
    )
    return equal and known and one.rng.bit_generator.state == two.rng.bit_generator.state


def offers_of(rng, count, kind):
    if kind == "fresh":
        return rng.normal(size=(count, 6, 4))
    if kind == "ties":  # arms that are equal, and those of nothing learnt
        return [np.eye(4)[[0, 1, 2, 3, t % 4]] for t in range(count)]
    return [rng.normal(size=(1 + t % 5, 4)) for t in range(count)]


@pytest.mark.parametrize("kind", ["fresh", "ties", "sizes"])
@pytest.mark.parametrize("noise", ["no sds", "sds", "trials"])
@pytest.mark.parametrize("family", DOORS)
def test_batches_are_one_by_one(family, noise, kind):
    """Each batch begins with decisions pending, and leaves some; the world turns halfway."""
    one, two, rng = DOORS[family](4), DOORS[family](4), RNG(0)
    late = []
    for part in range(6):
        n = 70
        keys, theta = [f"{part}-{i}" for i in range(n)], (1 if part < 3 else -1) * np.ones(4)
        offers = offers_of(rng, n, kind)
        single = [one.choose(x, key) for x, key in zip(offers, keys, strict=True)]
        assert two.choose_many(offers, keys) == single
        assert all(type(k) is int for k in single)
        assert alike(one, two)
        means = [float(offers[i][k] @ theta) for i, k in enumerate(single)]
        y = np.array(means) + 0.3 * rng.normal(size=n)
        y = y if family == "gaussian" else np.round(1 / (1 + np.exp(-3 * y)))
        due = [*late, *zip(keys, y, rng.integers(1, 9, size=n) / 2.0, strict=True)]
        order = rng.permutation(len(due))
        now, late = [due[i] for i in order[:-9]], [due[i] for i in order[-9:]]
        names, rewards, levels = map(list, zip(*now, strict=True))
        how = {"no sds": {}, "sds": {"sigma": levels}, "trials": {"trials": levels}}[noise]
        for i, (key, reward) in enumerate(zip(names, rewards, strict=True)):
            one.learn(key, reward, **{name: each[i] for name, each in how.items()})
        two.learn(names, rewards, **how)
        assert alike(one, two)
    assert one.state.count == 6 * 70 - 9
    if kind != "ties" and noise == "no sds":
        assert one.state.restarts > 0  # within a batch


@pytest.mark.parametrize("family", DOORS)
def test_a_batch_of_features_is_one_by_one(family):
    one, two, rng = DOORS[family](3), DOORS[family](3), RNG(1)
    for agent in (one, two):
        agent.choose_many([np.eye(3)] * 3, [*"abc"])
    x, y = sphere(rng, 8, 3), np.round(rng.random(8))
    whose = ["b", *x[:3], "c", *x[3:].tolist(), "a"]  # of the newest, whom the policy never met
    for each, reward in zip(whose, [0.0, *y, 1.0, 1.0], strict=True):
        one.learn(each, reward)
    two.learn(whose, [0.0, *y, 1.0, 1.0])
    assert alike(one, two)
    for row, reward in zip(x, y, strict=True):
        one.learn(row, reward)
    two.learn(x, y)
    two.learn([], [])
    assert two.choose_many([], []) == []
    assert alike(one, two)


@pytest.mark.parametrize("interactions", ["full", "shared", None])
def test_batches_of_contexts_are_one_by_one(interactions):
    """With names and a record."""
    actions = {"a": [1.0, 2.0], "b": [0.0, 1.0], "c": [3.0, 0.5]}
    context = {"age": float, "country": ["de", "fr"], "page": 3}
    rng, agents = RNG(2), []
    for _ in range(2):
        arms = nw.Arms(actions, interactions, context=context)
        agents.append(nw.Agent.for_continuous_rewards(arms=arms, record=50))
    one, two = agents
    for part in range(3):
        given = [
            {"age": rng.uniform(18, 80), "country": str(rng.choice(["de", "fr"])), "page": f"p{i}"}
            for i in range(15)
        ]
        given[7:7] = [arms.matrices([arms.read(given[0])])[0]] * (part == 2)  # a matrix among them
        keys, y = [*range(part * 100, part * 100 + len(given))], rng.normal(size=len(given))
        some = {"actions": ["c", "a"]} if part == 1 else {}
        single = [one.choose(each, key, **some) for each, key in zip(given, keys, strict=True)]
        assert two.choose_many(given, keys, **some) == single
        for key, reward in zip(keys, y, strict=True):
            one.learn(key, reward)
        two.learn(np.array(keys), y)
        assert alike(one, two)
    assert two.arms == one.arms
    assert repr(one.log()) == repr(two.log())


def test_a_context_beyond_the_first_is_encoded_alike_alone():
    arms = nw.Arms(["a", "b"], context={"age": float, "page": 4}, reserve=1)
    values = [arms.read({"age": 30 + i, "page": f"p{i}"}) for i in range(5)]
    each = [arms.matrix(value, ["b"]) for value in values]
    np.testing.assert_array_equal(arms.matrices(values, ["b"]), each)


@pytest.mark.parametrize("options", [{"randomise": 0.5, "among": "all"}, {"capacity": 12}])
def test_drawn_and_dropped_decisions_are_one_by_one_too(options):
    one, two = (nw.Agent.for_binary_rewards(3, **options) for _ in range(2))
    rng = RNG(3)
    for part in range(3):
        offers, keys = sphere(rng, 40, 3).reshape(8, 5, 3), [f"{part}-{i}" for i in range(8)]
        if part == 1 and "capacity" in options:
            with pytest.warns(UserWarning, match="capacity"):
                single = [one.choose(x, key) for x, key in zip(offers, keys, strict=True)]
            with pytest.warns(UserWarning, match="capacity"):
                assert two.choose_many(offers, keys) == single
        else:
            single = [one.choose(x, key) for x, key in zip(offers, keys, strict=True)]
            assert two.choose_many(offers, keys) == single
        assert alike(one, two)
    assert two.dropped == (12 if "capacity" in options else 0)


BAD = {
    "nan": lambda a: a.learn([*"ab", [np.nan, 0.0], "c"], [1.0] * 4),
    "too large": lambda a: a.learn([*"ab", "c"], [1.0, 1.0, 1e60]),
    "too small": lambda a: a.learn([*"abc"], [1.0, 0.0, 1.0], sigma=[1.0, 1.0, 1e-30]),
    "sigma is 0": lambda a: a.learn([*"abc"], [1.0, 0.0, 1.0], sigma=[1.0, 1.0, 0.0]),
    "outside": lambda a: nw.SelfTunedUCB.update_many(
        nw.SelfTunedUCB("binomial"), nw.SelfTunedUCB("binomial").start(2), np.eye(2),
        np.array([1.0, 1.5]), np.ones(2), np.zeros(2, dtype=np.int64),
    ),
    "shape": lambda a: a.learn([*"ab", [1.0, 2.0, 3.0]], [1.0, 1.0, 1.0]),
    "rescale": lambda a: a.choose_many([np.eye(2), 1e40 * np.eye(2)], [*"xy"]),
}  # fmt: skip


@pytest.mark.parametrize("learnt", [0, 1])
@pytest.mark.parametrize("words", BAD)
def test_a_bad_row_leaves_all_as_it_was(words, learnt):
    agent = nw.Agent.for_continuous_rewards(2)
    agent.choose_many([np.eye(2)] * 4, [*"abcd"])
    agent.explain(np.eye(2))  # the newest is counted from now on
    for _ in range(learnt):
        agent.learn("d", 7.0, sigma=2.0)
    before, waiting = copy.deepcopy(agent.state), agent.waiting
    drawn = agent.rng.bit_generator.state
    with pytest.raises(ValueError, match=words):
        BAD[words](agent)
    assert same(agent.state, before)
    assert agent.waiting == waiting
    assert agent.rng.bit_generator.state == drawn


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("family", DOORS)
def test_batches_that_were_interrupted_may_be_repeated(family, when):
    """A reward is learnt once, and what is counted is what is pending."""
    one, two, rng = DOORS[family](3), DOORS[family](3), RNG(4)
    arms, y = sphere(rng, 5 * 4, 3).reshape(5, 4, 3), np.round(rng.random(5))

    def interrupted(own):
        calls = []

        def called(*arguments):
            calls.append(1)
            if len(calls) == 1 and when == "before":
                raise KeyboardInterrupt
            found = own(*arguments)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return found

        return called

    one.choose_many(arms, [*"abcde"])
    one.learn([*"bcde"], y[1:])
    with pytest.MonkeyPatch.context() as patch:
        for verb in ("select_many", "update_many"):
            own = getattr(nw.SelfTunedUCB, verb)
            patch.setattr(nw.SelfTunedUCB, verb, interrupted(own))
        for call in (
            lambda: two.choose_many(arms, [*"abcde"]),
            lambda: two.learn([*"bcde"], y[1:]),
        ):
            with pytest.raises(KeyboardInterrupt):
                call()
            call()
    for agent in (one, two):
        assert agent.waiting == ("a",)
        assert agent.explain(arms[0]).learnt["rewards pending"] == 1
        agent._learner.check_pending()
    assert one.state.count == two.state.count == 4


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("family", DOORS)
def test_only_kernels_that_are_used_are_compiled(family):
    code = (
        f"import numpy as np, noisewise as nw\na = nw.Agent(nw.SelfTunedUCB({family!r}), 2)\n"
        "a.choose_many([np.eye(2)] * 3, [*'abc'])\na.learn([*'ab'], [1.0, 0.0])\n"
        "from noisewise.kernels.compiling.compile_options import entries\n"
        "print(*(e.__name__ for e in entries if e.compiled))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"choose", "choose_many", "learn"} < {*done}
    assert not {"expect", "release"} & {*done}
