"""Tables of past decisions: a warm start is what the agent would have learnt itself."""

import copy
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_agent_batches import DOORS, alike

import noisewise as nw
from noisewise.agent import learning
from noisewise.agent.actions import context_fields
from noisewise.agent.table_columns import columns_of, encoded, numbers_in

RNG = np.random.default_rng
ACTIONS = {"a": [1.0, 2.0], "b": [0.0, 1.0], "c": [3.0, 0.5]}
CONTEXT = {"age": float, "country": ["de", "fr"], "page": 3}
FRAMES = {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def arms_of(interactions, reserve=0):
    named = ACTIONS if interactions != "full" else [*ACTIONS]
    return nw.Arms(named, interactions, context=CONTEXT, reserve=reserve)


def contexts(rng, count):
    return [
        {"age": rng.uniform(18, 80), "country": str(rng.choice(["de", "fr"])), "page": f"p{t % 7}"}
        for t in range(count)
    ]


def decided(agent, count, seed=0, turn=math.inf, **level):
    """Let an agent take decisions, and return them as a table."""
    rng, table = RNG(seed), []
    for t, context in enumerate(contexts(rng, count)):
        action = agent.choose(context, key=t)
        mean = (0.1 + context["age"] / 100) if (action == "a") == (t < turn) else 0.4
        how = {name: float(rng.integers(1, 9)) for name in level}
        reward = float(rng.random() < mean)
        agent.learn(t, reward, **how)
        table.append({**context, "action": action, "reward": reward, **how})
    return {name: [row[name] for row in table] for name in table[0]}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("interactions", ["full", "shared", None])
@pytest.mark.parametrize("family", DOORS)
def test_a_warm_start_is_the_agent_that_took_the_decisions(family, interactions, kind):
    """To the bit, though the world turns, and units of contexts and ridges are chosen anew."""
    one, two = (DOORS[family](arms=arms_of(interactions)) for _ in range(2))
    table = decided(one, 500, turn=250)
    found = two.learn_table(FRAMES[kind](table))
    assert repr(found) == "learnt 500 of 500 rows"
    two.rng = copy.deepcopy(one.rng)  # which ties have drawn from
    assert alike(one, two)
    for context in contexts(RNG(1), 20):
        assert one.choose(context) == two.choose(context)
        why = [each.explain(context) for each in (one, two)]
        why[0].advice = why[1].advice = []  # on decisions of their own
        assert repr(why[0]) == repr(why[1])


@pytest.mark.parametrize("level", ["sigma", "trials"])
@pytest.mark.parametrize("family", DOORS)
def test_levels_of_noise_are_learnt_too_and_blocks_do_not_matter(family, level, monkeypatch):
    one, two, three = (DOORS[family](arms=arms_of("full", reserve=1)) for _ in range(3))
    table = decided(one, 200, **{level: True})
    two.learn_table(pd.DataFrame(table), **{level: level})
    monkeypatch.setattr(learning, "TOGETHER", 7)
    three.learn_table(pd.DataFrame(table), **{level: level})
    two.rng = three.rng = one.rng
    assert alike(one, two)
    assert alike(one, three)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nw.Agent.for_binary_rewards(3, guaranteed=True),
        lambda: nw.Agent.for_continuous_rewards(3, guaranteed=True),
        lambda: nw.Agent(nw.LinearThompson(), 3),
        lambda: nw.Agent.for_continuous_rewards(3),
    ],
)
def test_other_policies_and_arms_without_names(make):
    """Features of the arm played as columns, or the record of an agent with its matrices."""
    one, two, three = make(), make(), make()
    one.record = nw.Agent.for_means(3, record=1000).record
    rng, x, y = RNG(5), [], []
    for t in range(120):
        offer = rng.uniform(-0.5, 0.5, (4, 3))
        k = one.choose(offer, key=t)
        x.append(offer[k])
        y.append(float(rng.random() < 0.5 + offer[k, 0]))
        one.learn(t, y[-1])
    two.learn_table({**dict(zip("abc", np.transpose(x), strict=True)), "reward": y})
    three.learn_table(one.log())
    probe = rng.uniform(-0.5, 0.5, (9, 3))
    for other in (two, three):
        assert other.state.count == 120
        for mine, own in zip(one.explain(probe), other.explain(probe), strict=True):
            assert mine.estimate == pytest.approx(own.estimate, abs=1e-12)
            assert mine.bonus == pytest.approx(own.bonus, abs=1e-12)


def test_a_table_is_learnt_after_what_was_known_and_beside_what_is_pending():
    """Rewards learnt before stay, and so do pending decisions."""
    one, two = (nw.Agent.for_binary_rewards(arms=arms_of("full")) for _ in range(2))
    for agent in (one, two):
        agent.choose_many(contexts(RNG(2), 5), [*"vwxyz"])
        agent.learn("v", 1.0)
    rows = contexts(RNG(3), 40)
    action, reward = RNG(4).choice([*"abc"], size=40), RNG(5).integers(2, size=40)
    two.learn_table(pd.DataFrame(rows).assign(action=action, reward=reward))
    x = [one.arms(row, [name])[0] for row, name in zip(rows, action, strict=True)]
    one.learn(np.array(x), reward)
    assert alike(one, two)
    one.learn([*"wxyz"], [1.0] * 4)
    two.learn([*"wxyz"], [1.0] * 4)
    assert alike(one, two)


@pytest.mark.parametrize("named", [True, False])
def test_probabilities_put_past_decisions_into_the_record(named, tmp_path):
    """As the agent that took them has it, also through a file; the last ones, behind its own."""
    make = nw.Agent.for_binary_rewards
    how = {"randomise": 0.5, "among": "all", "record": 40}
    one, two = (make(arms=arms_of("full"), **how) if named else make(3, **how) for _ in range(2))
    rng = RNG(7)
    for t, context in enumerate(contexts(rng, 60)):
        one.choose(context if named else rng.normal(size=(2 + t % 3, 3)), key=t)
        one.learn(t, float(t % 3 == 0))
    log = one.log()
    table = pd.DataFrame(log) if named else log
    two.learn_table(table, probability="probability")
    assert repr(two.log()) == repr(log)
    two.learn_table(table, probability="probability")
    assert len(two.log()["action"]) == 40
    two.save(tmp_path / "agent.npz")
    assert repr(nw.Agent.load(tmp_path / "agent.npz").log()) == repr(log)
    if named:
        table.to_csv(tmp_path / "log.csv")
        again = make(arms=arms_of("full"), **how)
        again.learn_table(pd.read_csv(tmp_path / "log.csv"), probability="probability")
        assert again.log()["probabilities"] == log["probabilities"]


def test_of_two_actions_one_probability_tells_the_other():
    agent = nw.Agent.for_means(arms=nw.Arms([*"ab"], context=["age"]), record=10)
    table = {"action": [*"abb"], "reward": [0, 1, 1], "age": [1, 2, 3], "p": [0.25, 1.0, 1.5]}
    with pytest.warns(UserWarning, match="1 since p is no probability"):
        agent.learn_table(table, probability="p")
    assert agent.log()["probabilities"] == [{"a": 0.25, "b": 0.75}, {"a": 0.0, "b": 1.0}]
    with pytest.warns(UserWarning, match="left out"):
        found = agent.learn_table(
            table | {"probabilities": [{"a": 0.25, "b": 0.75}, {"a": 0.5, "b": 0.5}, None]},
            probability="p",
        )
    assert found.left_out == {"p is no probability, or contradicts 'probabilities'": 2}
    others = [{"a": 0.25, "c": 0.75}, {"a": -0.1, "b": 1.1}, {"b": "x"}]
    with pytest.raises(ValueError, match="no row that can be learnt"):
        agent.learn_table(table | {"probabilities": others}, probability="p")


def test_a_record_that_can_not_be_kept_is_refused():
    table = {"action": [*"abc"], "reward": [0, 1, 0], "p": [0.5] * 3}
    three = nw.Arms([*"abc"], interactions=None)
    with pytest.raises(ValueError, match="decisions are not recorded; pass record=10_000"):
        nw.Agent.for_means(arms=three).learn_table(table, probability="p")
    with pytest.raises(ValueError, match="the table only that of the one taken"):
        nw.Agent.for_means(arms=three, record=5).learn_table(table, probability="p")
    plain = {"u": [1.0], "reward": [1.0], "p": [0.5]}
    with pytest.raises(ValueError, match="no column 'arms'"):
        nw.Agent.for_means(1, record=5).learn_table(plain, probability="p")


BAD = {
    "the reward is missing": {"reward": None},
    "the reward is not a finite number": {"reward": "much"},
    "the reward is outside [0, 1]": {"reward": 7},
    "trials is missing": {"trials": math.nan},
    "trials is not above 0": {"trials": -1.0},
    "the action is missing": {"action": None},
    "the action is not one of the agent's": {"action": "d"},
    "context 'age' is missing": {"age": None},
    "context 'age' is not a finite number": {"age": math.inf},
    "context 'country' is not a word that was declared": {"country": "it"},
    "context 'page' is missing": {"page": None},
    "context 'page' is not a word that was declared": {"page": 2.5},
}


@pytest.mark.parametrize("as_frame", [False, True])
def test_rows_that_cant_be_used_are_counted_by_reason(as_frame):
    one, two = (nw.Agent.for_binary_rewards(arms=arms_of("full")) for _ in range(2))
    table = decided(nw.Agent.for_binary_rewards(arms=arms_of("full")), 30, trials=True)
    good = pd.DataFrame(table, dtype=object)
    one.learn_table(good, trials="trials")
    rows = good.to_dict("records")
    for at, change in enumerate(BAD.values()):
        rows.insert(2 * at, rows[0 if at == 0 else 1] | change)
    bad = {name: [row[name] for row in rows] for name in rows[0]}
    with pytest.warns(UserWarning, match=r"learnt 30 of 42 rows; left out: 1 since the reward is"):
        found = two.learn_table(pd.DataFrame(bad) if as_frame else bad, trials="trials")
    assert found.left_out == dict.fromkeys(BAD, 1)
    assert sorted(found.first.values()) == [2 * at for at in range(len(BAD))]
    assert found.learnt == 30
    assert alike(one, two)


def test_numbers_too_large_are_left_out_and_others_of_any_size_are_not():
    agent, rng = nw.Agent.for_continuous_rewards(2), RNG(0)
    table = {"u": rng.normal(size=9), "v": rng.normal(size=9), "reward": rng.normal(size=9)}
    table["u"][3], table["reward"][5] = 1e30, 1e60
    with pytest.warns(UserWarning, match="left out"):
        found = agent.learn_table(table)
    assert found.left_out == {
        "the reward is not a finite number": 1,
        "the arm is too long, or its numbers too large": 1,
    }
    bounded = nw.Agent(nw.FTRLUCB(nw.GLM(), noise_bound=1.0), 2)
    table["u"][3], table["reward"][5] = 0.0, 0.0
    table["v"] = np.where(np.arange(9) == 4, 5.0, 0.1 * table["v"])
    table["u"] = 0.1 * table["u"]
    with pytest.warns(UserWarning, match="the arm is too long"):
        assert bounded.learn_table(table).learnt == 8


def test_huge_numbers_of_contexts_are_cut_or_left_out_as_where_an_agent_decides():
    arms = nw.Arms([*"ab"], context=["age"])
    one, two = (nw.Agent.for_continuous_rewards(arms=arms) for _ in range(2))
    ages = [1.0, -1e300, 2.0, 1e17, 3.0, -2.0, 1e300] * 9
    actions = []
    for t, age in enumerate(ages):
        actions.append(one.choose({"age": age}))
        one.learn(None, float(t % 5))
    table = {"age": ages, "action": actions, "reward": [t % 5 for t in range(len(ages))]}
    two.learn_table(table)
    two.rng = one.rng
    assert alike(one, two)
    bounded = nw.Agent.for_continuous_rewards(arms=arms, guaranteed=True, feature_bound=1e19)
    with pytest.warns(UserWarning, match=r"since context 'age' is not a number up to 9e\+15"):
        assert bounded.learn_table(table).learnt == 36


@pytest.mark.parametrize(
    ("change", "given", "words"),
    [
        ({}, {"action": "offer"}, r"no column 'offer'; it has \['action', 'reward', 'age'"),
        ({"country": None}, {}, "no column 'country'"),
        ({"age": [1.0]}, {}, "column 'age' has 1 rows, others 4"),
        ({"action": [["a"]] * 4}, {}, "column 'action' holds values that are no words"),
        ({"age": np.zeros((4, 2))}, {}, "column 'age' has shape"),
        ({"reward": np.ma.array([1, 0, 1, 1], mask=[1, 0, 0, 0])}, {}, "is masked"),
        ({"reward": ["x"] * 4}, {}, "no row that can be learnt: learnt 0 of 4 rows"),
        ({"age": 3.0}, {}, "column 'age' is 3.0; pass a list"),
        ({"age": np.array(3.0)}, {}, r"column 'age' is array\(3\.\)"),
        ({"page": "wxyz"}, {}, "column 'page' is 'wxyz'; pass a list"),
        ({}, {"context": "age"}, r"context is \['age'\]; pass the columns of age, country, page"),
        ({}, {"sigma": "age", "trials": "age"}, "sigma and trials are both given"),
    ],
)
def test_a_table_that_is_wrong_changes_nothing(change, given, words):
    agent = nw.Agent.for_binary_rewards(arms=arms_of("full"))
    table = {
        "action": [*"abca"], "reward": [0, 1, 0, 1], "age": [20, 30, 40, 50],
        "country": ["de"] * 4, "page": [*"wxyz"],
    }  # fmt: skip
    agent.learn_table(table)
    before = copy.copy(agent)
    table = {name: column for name, column in (table | change).items() if column is not None}
    with pytest.raises(ValueError, match=words):
        agent.learn_table(table, **given)
    assert alike(agent, before)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_without_rows_changes_nothing(kind):
    agent = nw.Agent.for_binary_rewards(arms=arms_of("full"))
    none = {name: np.empty(0) for name in ("action", "reward", "age", "country", "page")}
    assert repr(agent.learn_table(FRAMES[kind](none))) == "learnt 0 of 0 rows"
    assert agent.state.count == 0


@pytest.mark.parametrize("table", [[1, 2], pl.DataFrame({"a": [1]}).lazy(), "log.csv"])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(ValueError, match="table is"):
        nw.Agent.for_means(2).learn_table(table)


def test_features_are_counted_before_they_are_learnt():
    with pytest.raises(ValueError, match=r"context is \['u'\], 1 column; pass those of the 2"):
        nw.Agent.for_means(2).learn_table({"u": [1.0], "reward": [1.0]})
    for arms, action in (np.eye(3), 0), (np.eye(2), 2), (np.eye(2), -1), (np.ones(2), 0):
        with pytest.raises(ValueError, match=r"arms at row 0 have shape .*; pass \(K, 2\)"):
            nw.Agent.for_means(2).learn_table({"arms": [arms], "action": [action], "reward": [1.0]})


def test_an_error_or_interrupt_on_the_way_leaves_nothing_learnt(monkeypatch):
    agent, calls = nw.Agent.for_means(2), []
    agent.learn(np.ones(2), 1.0)
    before, update = copy.copy(agent), nw.SelfTunedUCB.update_many

    def interrupted(*args):
        calls.append(args)
        if len(calls) > 2:
            raise KeyboardInterrupt
        update(*args)

    monkeypatch.setattr(learning, "TOGETHER", 10)
    monkeypatch.setattr(nw.SelfTunedUCB, "update_many", interrupted)
    table = {"u": np.ones(50), "v": np.zeros(50), "reward": np.ones(50)}
    with pytest.raises(KeyboardInterrupt):
        agent.learn_table(table)
    assert alike(agent, before)
    monkeypatch.setattr(nw.SelfTunedUCB, "update_many", update)
    agent.learn_table(table)
    assert agent.state.count == 51


def test_a_warning_that_is_an_error_leaves_nothing_learnt():
    agent = nw.Agent.for_means(arms=nw.Arms(["a", "b"], interactions=None))
    table = {"action": ["a", "b", "c"], "reward": [1.0, 0.0, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="learnt 2 of 3 rows"):
            agent.learn_table(table)
    assert agent.state.count == 0


def test_progress_is_shown_when_it_takes_a_while(monkeypatch, capsys):
    agent = nw.Agent.for_means(2)
    table = {"u": np.ones(50), "v": np.zeros(50), "reward": np.ones(50)}
    agent.learn_table(table, progress=True)
    assert "rows" not in capsys.readouterr().err  # over before a second
    monkeypatch.setattr(learning, "PATIENCE", 0.0)
    agent.learn_table(table, progress=True)
    assert "50/50" in capsys.readouterr().err
    agent.learn_table(table)
    assert not capsys.readouterr().err  # no terminal


FIELD = ("country", ("de", "fr")), ("page", 3), ("code", ("1", "2", "True"))


@pytest.mark.parametrize("field", FIELD, ids=lambda f: f[0])
def test_words_are_encoded_as_single_contexts_are(field):
    values = ["de", "fr", "it", 1, 2.0, True, 2.5, "1", Decimal(2), np.int64(1), np.bool_(True)]
    width = len(context_fields.columns([field]))

    def encode(value):
        return context_fields.encode([field], context_fields.read("context", [field], [value]))

    found = encoded("x", values, width, encode)
    for row, value in zip(found, values, strict=True):
        try:
            np.testing.assert_array_equal(row, encode(value))
        except ValueError:
            assert np.isinf(row).all()
    assert np.isnan(encoded("x", [None, math.nan, pd.NA, pd.NaT], width, encode)).all()


def test_numbers_are_those_of_single_contexts():
    values = [1, 2.5, True, Decimal("0.5"), np.float32(0.25), 10**400, "3", "x", 1 + 2j, 9e15]
    found = numbers_in("x", values, context_fields.LARGEST)
    for each, value in zip(found, values, strict=True):
        try:
            assert each == context_fields.number("x", value)
        except ValueError:
            assert np.isinf(each)
    assert np.isnan(numbers_in("x", [None, math.nan, pd.NA], 1.0)).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_of_all_kinds_keep_what_is_missing(kind):
    """Arrow would fill the nulls of a dictionary column by any of its words."""
    words = pa.array(["x", "y", None]).dictionary_encode()
    table = pa.table({"word": words, "number": [1, None, 3], "truth": [True, None, False]})
    table = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}.get(
        kind, lambda: table
    )()
    columns = columns_of("table", table)
    place = encoded("word", columns["word"], 1, lambda word: [ord(str(word))])[:, 0]
    np.testing.assert_array_equal(place, [120.0, 121.0, math.nan])
    np.testing.assert_array_equal(numbers_in("n", columns["number"], 9.0), [1.0, math.nan, 3.0])
    np.testing.assert_array_equal(numbers_in("t", columns["truth"], 9.0), [1.0, math.nan, 0.0])
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="column 'a' more than once"):
        columns_of("table", twice)
