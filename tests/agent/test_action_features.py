"""Arms from contexts and actions: layouts, names, actions that come and go, bad input."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import noisewise as nw

KINDS = {"age": float, "country": ["de", "fr"], "page": 4}
VISIT = {"age": 31, "country": "fr", "page": "home", "id": 7}


def test_full_has_a_block_per_action():
    arms = nw.Arms(["a", "b", "c"], context=KINDS)
    x = arms(VISIT)
    assert x.shape == (3, arms.dim) == (3, 3 * 8)
    block = x[0, :8]
    assert block[:4].tolist() == [1.0, 31.0, 0.0, 1.0]
    assert sorted(block[4:]) == [0, 0, 0, 1]
    assert np.array_equal(x, np.kron(np.eye(3), block))
    assert arms.names[8:12] == ("b", "b:age", "b:country=de", "b:country=fr")
    assert len(set(arms.names)) == arms.dim


def test_shared_is_the_product_of_features():
    actions = {"s": {"price": 2.0, "kind": "x"}, "t": {"price": 3.0, "kind": "y"}}
    arms = nw.Arms(actions, "shared", context=["age"])
    assert arms.names == ("price", "price:age", "kind=x", "kind=x:age", "kind=y", "kind=y:age")
    assert arms([10.0]).tolist() == [[2, 20, 1, 10, 0, 0], [3, 30, 0, 0, 1, 10]]
    more = arms.with_actions({"u": {"price": 5.0, "kind": "x"}})
    assert more([10.0])[2].tolist() == [5, 50, 1, 10, 0, 0]
    assert more.names == arms.names


def test_actions_alone():
    assert nw.Arms(["a", "b"], None)().tolist() == [[1, 0], [0, 1]]
    assert nw.Arms({"a": [1.0, 2.0], "b": [3.0, 4.0]}, None)(VISIT).tolist() == [[1, 2], [3, 4]]
    both = nw.Arms({"a": 5.0, "b": 6.0}, "full", context=[])
    assert both().tolist() == [[5, 1, 0], [6, 0, 1]]
    assert both.names == ("a0", "a", "b")


def test_contexts_of_every_kind_agree():
    arms = nw.Arms(["a", "b"], context=KINDS)
    frame = pd.DataFrame([VISIT, {**VISIT, "country": "de", "age": 40}])
    assert np.array_equal(arms(VISIT), arms(frame.iloc[0]))
    assert np.array_equal(arms(VISIT), arms([31, "fr", "home"]))
    seen = nw.Arms(["a", "b"], context=frame[["age", "country"]])
    assert seen.context == (("age", None), ("country", ("de", "fr")))
    numbers = nw.Arms(["a"], context=3)
    assert numbers(np.array([1.0, 2.0, 3.0])).tolist() == [[1, 1, 2, 3]]
    undeclared = nw.Arms(["a", "b"])
    assert undeclared({"age": 31, "page": "home"}).shape == (2, 2 * (1 + 1 + 16))
    assert undeclared().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="the context was not declared"):
        undeclared.dim  # noqa: B018


def test_hashed_words_are_the_same_in_every_process():
    arms = nw.Arms(["a"], context={"page": 64})
    assert [int(arms({"page": w})[0, 1:].argmax()) for w in ("home", "x", "y")] == [32, 33, 62]
    assert np.array_equal(arms({"page": 3}), arms({"page": "3"}))


def test_columns_stay_when_actions_come_and_go():
    arms = nw.Arms(["a", "b"], context=["age"], reserve=1)
    more = arms.with_actions(["c"])
    assert arms.dim == more.dim == 6
    assert np.array_equal(arms([3.0]), more([3.0])[:2])
    assert more([3.0], actions=["c", "a"]).tolist() == [[0, 0, 0, 0, 1, 3], [1, 3, 0, 0, 0, 0]]
    assert arms.names[4:] == ("(reserve 1)", "(reserve 1):age")
    with pytest.raises(ValueError, match="0 blocks are reserved"):
        more.with_actions(["d"])


def test_a_value_that_prints_compares_and_is_saved(tmp_path):
    arms = nw.Arms({"a": 1.0, "b": 2.0}, "full", context=KINDS, reserve=2)
    arms(VISIT)
    again = pickle.loads(pickle.dumps(arms))
    assert again == arms == copy.deepcopy(arms)
    assert hash(again) == hash(arms)
    assert arms != nw.Arms({"a": 1.0, "b": 2.5}, "full", context=KINDS, reserve=2)
    assert "country" in repr(arms)
    agent = nw.Agent.for_binary_rewards(arms=arms)
    agent.save(tmp_path / "agent.npz")
    assert nw.Agent.load(tmp_path / "agent.npz").arms == arms


def test_an_agent_takes_contexts_and_names_actions():
    arms = nw.Arms(["a", "b"], context=["age"])
    agent = nw.Agent.for_continuous_rewards(arms=arms)
    other = nw.Agent(nw.SelfTunedUCB(**arms.layout), dim=arms.dim)
    rng = np.random.default_rng(0)
    for t in range(30):
        age = float(rng.integers(20, 40))
        name = agent.choose({"age": age}, key=t)
        assert name == arms.actions[other.choose(agent.arms({"age": age}), key=t)]
        for each in (agent, other):
            each.learn(t, age if name == "a" else 1.0)
    assert agent.choose({"age": 30.0}) == "a"
    assert agent.choose({"age": 30.0}, actions=["b"]) == "b"
    assert agent.choose(agent.arms({"age": 30.0})) == 0
    one, two = agent.explain({"age": 30.0})
    assert (one.action, two.action) == ("a", "b")
    assert {name for name, _ in one.parts} == {"a", "a:age"}
    assert sum(part for _, part in one.parts) == pytest.approx(one.estimate - agent.state.intercept)
    assert one.estimate == other.explain(agent.arms({"age": 30.0}))[0].estimate
    agent.arms = arms


BAD_CALLS = {
    "context has no 'age'": {"country": "de", "page": "x"},
    "context 'age' is nan": {**VISIT, "age": float("nan")},
    "context 'age' is 'old'": {**VISIT, "age": "old"},
    "context 'age' is None": {**VISIT, "age": None},
    "context 'country' is 'it', none of": {**VISIT, "country": "it"},
    "context 'page' is None": {**VISIT, "page": None},
    "pass values by name": [1.0],
}


@pytest.mark.parametrize("words", BAD_CALLS)
def test_bad_contexts_are_named(words):
    arms = nw.Arms(["a", "b"], context=KINDS)
    agent = nw.Agent.for_binary_rewards(arms=arms)
    for ask in (arms, agent.choose, agent.explain):
        with pytest.raises(ValueError, match=words):
            ask(BAD_CALLS[words])
    assert agent.waiting == ()


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("actions is 'ab'", lambda: nw.Arms("ab")),
        ("actions is", lambda: nw.Arms([])),
        ("all different", lambda: nw.Arms(["a", "a"])),
        ("action is None", lambda: nw.Arms([None])),
        ("interactions is 'half'", lambda: nw.Arms(["a"], "half")),
        ("have no features", lambda: nw.Arms(["a"], "shared")),
        ("reserve is 1", lambda: nw.Arms({"a": 1.0}, "shared", context=[], reserve=1)),
        ("context 'x' is declared as", lambda: nw.Arms(["a"], context={"x": "number"})),
        ("a field twice", lambda: nw.Arms(["a"], context=["x", "x"])),
        ("action has no 'b'", lambda: nw.Arms({"p": {"b": 1}, "q": {"c": 1}})),
        ("actions is", lambda: nw.Arms(["a"], context=[])(actions=["z"])),
        ("so far have no features", lambda: nw.Arms(["a"], reserve=1).with_actions({"b": 1})),
        ("action 'kind' is 'z'", lambda: nw.Arms({"a": {"kind": "x"}}, None).with_actions(
            {"b": {"kind": "z"}})),
        ("fields is 0.5", lambda: nw.Arms(["a"], fields=0.5)),
        ("features is 0.5", lambda: nw.Arms(["a"], features=0.5)),
        ("dim is 3", lambda: nw.Agent(nw.OFUL(), 3, arms=nw.Arms(["a"], None))),
        ("dim is None", lambda: nw.Agent(nw.OFUL())),
        ("arms is", lambda: nw.Agent(nw.OFUL(), arms=np.eye(2))),
        ("actions were passed", lambda: nw.Agent(nw.OFUL(), 2).choose(np.eye(2), actions=["a"])),
    ],
)  # fmt: skip
def test_bad_declarations_are_named(words, make):
    with pytest.raises(ValueError, match=words):
        make()
