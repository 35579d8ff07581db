"""Logs of vowpalwabbit's dsjson: read, written, and used."""

import gzip
import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_off_policy import invoke

import noisewise as nw

RNG = np.random.default_rng


def line(**change):
    """A decision as the clients of vowpalwabbit log it: the second of two actions, chosen."""
    decision = {
        "_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "x", "ActionTaken": False}],
        "Timestamp": "2021-02-04T16:31:29.2460000Z", "Version": "1", "EventId": "x", "a": [2, 1],
        "c": {
            "User": {"id": "mk", "age": 31, "_secret": 1},
            "From": [{"daytime": "noon"}], "scores": [0.5, 2],
            "_multi": [{"Item": {"topic": "ski"}}, {"Item": {"topic": "herbs", "price": 2}}],
        },
        "p": [0.8, 0.2], "VWState": {"m": "N/A"},
    }  # fmt: skip
    return decision | change


def written(path, *lines):
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


@pytest.mark.parametrize("name", ["log.dsjson", "log.json.gz"])
def test_a_decision_is_read(name, tmp_path):
    other = line(_label_Action=1, _label_probability=0.2, _label_cost=-0.0)
    other["c"] = other["c"] | {"User": {"id": "öl", "vip": True}}
    log = nw.logs.read_dsjson(written(tmp_path / name, line(), "", other, ""))
    assert log.pop("reward").tolist() == [1.0, 0.0]
    assert log.pop("probability").tolist() == [0.8, 0.2]
    shares = {"Item.topic=ski": 0.2, "Item.topic=herbs, Item.price=2": 0.8}
    assert log == {
        "User.id": ["mk", "öl"],
        "User.age": [31.0, 0.0],
        "From.daytime": ["noon"] * 2,
        "scores.0": [0.5] * 2,
        "scores.1": [2.0] * 2,
        "User.vip": ["", "True"],
        "action": ["Item.topic=herbs, Item.price=2", "Item.topic=ski"],
        "probabilities": [shares, shares],
    }


def test_actions_are_called_by_their_tag_or_a_feature(tmp_path):
    tagged = line()
    tagged["c"] = {"_multi": [{"_tag": "A", "i": {"id": 1}}, {"_tag": "B", "i": {"id": 2}}]}
    path = written(tmp_path / "log.dsjson", tagged)
    assert nw.logs.read_dsjson(path)["action"] == ["B"]
    assert nw.logs.read_dsjson(path, action="i.id")["action"] == ["2"]
    with pytest.raises(ValueError, match="an action on offer has no feature 'name'"):
        nw.logs.read_dsjson(path, action="name")
    bare = written(tmp_path / "bare.dsjson", line(c={"_multi": [{}, {}]}))
    assert nw.logs.read_dsjson(bare)["probabilities"] == [{"1": 0.2, "2": 0.8}]


BAD = {
    "the line is no JSON": "{",
    "the line has no context c": {"RewardValue": 1.0, "EventId": "x"},
    "the decision is of several slots, or of a number": line(_outcomes=[]),
    "there is no list of actions _multi": line(c={"age": 3}),
    "there is no reward": line(_skipLearn=True),
    "the probability is not above 0 and at most 1": line(_label_probability=0.0),
    "the chosen action is none of those on offer": line(_label_Action=3),
    "an action on offer is no object": line(c={"_multi": [3, {}]}),
    "two actions on offer have the same name": line(c={"_multi": [{"a": 1}, {"a": 1}]}),
}


def test_lines_that_hold_no_decision_are_counted_by_reason(tmp_path):
    path = written(tmp_path / "log.dsjson", line(), *BAD.values(), *[line()] * 20)
    with pytest.warns(UserWarning, match="read 21 of 30 lines; left out: ") as said:
        log = nw.logs.read_dsjson(path)
    assert len(log["action"]) == 21
    for at, reason in enumerate(BAD, start=2):
        assert f"1 since {reason} (first at line {at})" in str(said[0].message)
    done = invoke(path, "--out", tmp_path / "out")
    assert "note: read 21 of 30 lines" in done.output


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "no decision with a reward: read 0 of 0 lines"),
        (["[1]", "[" * 10**5], "the line has no context c .*the line is no JSON"),
        ([line(pdrop=0.5), line()], "different probabilities .pdrop"),
        ([line(c={"reward": 1, "_multi": [{}, {}]})], "feature of the context is called 'reward'"),
    ],
)
def test_files_that_can_not_be_used_are_refused(lines, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        nw.logs.read_dsjson(written(tmp_path / "log.dsjson", *lines))


def test_files_that_can_not_be_read_are_refused(tmp_path):
    (tmp_path / "latin.dsjson").write_bytes(b"\xff\xfe")
    (tmp_path / "cut.dsjson.gz").write_bytes(b"no gzip")
    for name, words in ("none", "can't be read"), ("latin", "not text"), ("cut", "can't be read"):
        path = next(tmp_path.glob(f"{name}*"), tmp_path / "none.dsjson")
        with pytest.raises(ValueError, match=words):
            nw.logs.read_dsjson(path)


def test_probabilities_of_all_are_left_out_unless_every_line_has_them(tmp_path):
    for change in {"a": [0, 1]}, {"p": [1.0]}, {"p": ["x", 1]}, {"a": None}:
        path = written(tmp_path / "log.dsjson", line(), line(**change))
        assert "probabilities" not in nw.logs.read_dsjson(path)


def agent():
    found = nw.Agent.for_continuous_rewards(
        arms=nw.Arms([*"abc"], context={"age": float, "country": ["de", "fr"], "zip": str}),
        randomise=0.5, among="all",
    )  # fmt: skip
    rng = RNG(0)
    for t in range(40):
        country = str(rng.choice(["de", "fr"]))
        context = {"age": rng.normal(), "country": country, "zip": str(t % 7)}
        found.choose(context, key=t, actions=[*"ac"] if t % 2 else [*"cab"])
        found.learn(t, rng.normal())
    return found


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_what_is_written_is_read_again(kind, tmp_path):
    log = agent().log()
    path = nw.logs.write_dsjson(tmp_path / "log.dsjson", kind(log))
    again = nw.logs.read_dsjson(path)
    if kind is dict:
        assert repr(again) == repr(log)
    assert again["probabilities"] == log["probabilities"]
    np.testing.assert_array_equal(again["reward"], log["reward"])
    for name in ("age", "country", "zip", "action"):
        assert again[name] == log[name]
    first = json.loads(path.read_text().splitlines()[0])
    assert first["a"][0] == first["_label_Action"] == first["_labelIndex"] + 1
    assert first["p"][0] == first["_label_probability"]
    assert sorted(first["a"]) == [*range(1, len(first["c"]["_multi"]) + 1)]


def test_a_log_without_all_probabilities_or_values_is_written_too(tmp_path):
    log = {
        "action": [3, 1], "reward": [1, 0], "probability": [0.5, 0.25], "age": [math.nan, 2],
        "new": [True, None], "slot": [0, 1],
    }  # fmt: skip
    found = nw.logs.read_dsjson(nw.logs.write_dsjson(tmp_path / "log.dsjson", log))
    assert "probabilities" not in found
    assert found["action"] == ["3", "1"]
    assert found["age"] == [0.0, 2.0]
    assert found["new"] == ["True", ""]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probability": None}, "no column 'probability'"),
        ({"reward": [1.0, None]}, "reward is nan and probability 0.5 at row 1"),
        ({"probability": [1.0, 1.5]}, "probability 1.5 at row 1"),
        ({"_age": [1, 2]}, "column '_age', and dsjson ignores such"),
        ({"age": [1]}, "column 'age' has 1 rows, reward 2"),
        ({"age": [1, [2]]}, "column 'age' holds"),
        ({"arms": [1, 2]}, "matrices of arms"),
        ({"probabilities": [{"b": 1.0}] * 2}, "lack 'a'"),
    ],
)
def test_a_log_that_can_not_be_written_leaves_the_old_file(change, words, tmp_path):
    path = nw.logs.write_dsjson(tmp_path / "log.dsjson", agent().log())
    old = path.read_text()
    log = {"action": ["a", "b"], "reward": [1.0, 0.0], "probability": [0.5, 0.5]} | change
    with pytest.raises(ValueError, match=words):
        nw.logs.write_dsjson(path, {k: v for k, v in log.items() if v is not None})
    assert path.read_text() == old


def test_a_file_starts_an_agent_and_judges_policies(tmp_path):
    one = agent()
    path = nw.logs.write_dsjson(tmp_path / "log.dsjson", one.log())
    log = nw.logs.read_dsjson(path)
    two = nw.Agent.for_continuous_rewards(arms=one.arms)
    two.learn_table(log)
    assert np.array_equal(one.state.numbers, two.state.numbers)
    with warnings.catch_warnings(action="ignore"):
        assert nw.off_policy_value(log, "a").value == nw.off_policy_value(one, "a").value
        done = invoke(path, "--out", tmp_path / "out", "--policy", "a")
    assert done.exit_code == 0, done.output
    assert "dr" in done.output
