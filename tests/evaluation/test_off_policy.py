"""Off-policy values: against obp and by hand, coverage of intervals, bad logs."""

import importlib
import math
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import binom

import noisewise as nw
from noisewise.cli import main
from noisewise.evaluation.off_policy import differences
from noisewise.experiments.ingredients import datasets
from noisewise.theory import betting
from noisewise.theory.betting import STAKES

RNG = np.random.default_rng
BITS = np.array([[i >> b & 1 for b in range(3)] for i in range(8)], dtype=float)
EFFECTS = np.array([[0.3, -0.2, 0.1], [-0.1, 0.3, 0.0], [0.1, 0.1, -0.3]])
MEANS = 0.45 + BITS @ EFFECTS.T  # (8, 3), linear in the context
BEST = MEANS.argmax(axis=1)
TRUTH = MEANS.max(axis=1).mean()
SINGLES = MEANS.mean(axis=0)


def logged(rng, n, least=0.1):
    """Decisions in a world whose values are known, with probabilities that follow the context."""
    x = rng.integers(8, size=n)
    p = np.full((8, 3), least)
    p[np.arange(8), np.arange(8) % 3] += 1 - 3 * least
    a = (rng.random(n)[:, None] > p[x].cumsum(axis=1)).sum(axis=1)
    y = (rng.random(n) < MEANS[x, a]).astype(float)
    columns = {f"b{i}": BITS[x, i] for i in range(3)}
    return {**columns, "action": a, "reward": y, "probability": p[x, a], "x": x}


def best(context):
    return BEST[int(context["b0"] + 2 * context["b1"] + 4 * context["b2"])]


CONTEXT = ["b0", "b1", "b2"]


@pytest.fixture
def obp_estimators(monkeypatch):
    """Estimators of obp itself; a stand-in for torch, which its code for arrays does not call."""
    root = datasets.require("obp")
    torch, package = types.ModuleType("torch"), types.ModuleType("obp.ope")
    torch.Tensor = type("Tensor", (), {})
    package.__path__ = [str(root / "ope")]
    for name in ("obp", "obp.utils", "obp.ope.estimators"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "obp.ope", package)
    found = importlib.import_module("obp.ope.estimators")
    yield found
    for name in ("obp", "obp.utils", "obp.ope.estimators"):
        sys.modules.pop(name, None)


@pytest.mark.filterwarnings("ignore:policy")
@pytest.mark.parametrize(
    "campaign", ["men", *(pytest.param(name, marks=pytest.mark.slow) for name in ("women", "all"))]
)
def test_equals_obp_on_its_sample(campaign, obp_estimators):
    """Thompson sampling's log, judged for an even draw and for one item per position."""
    pytest.importorskip("sklearn")
    log = datasets.open_bandit(campaign, "bts")
    n, K = len(log.item), len(log.features)
    columns = {"position": log.position, "action": log.item, "reward": log.click}
    columns["probability"] = log.propensity
    often = np.bincount(log.item).argmax()
    steady = np.zeros((n, K))
    steady[np.arange(n), (log.position + often) % K] = 1.0
    for pi in (np.full((n, K), 1 / K), steady):
        found = nw.off_policy_value(columns, pi, actions=range(K))
        ours = {e.estimator: e.value for e in found.estimates if e.policy == "policy"}
        given = {"reward": log.click, "action": log.item, "pscore": log.propensity}
        given |= {"action_dist": pi[:, :, None], "position": np.zeros(n, dtype=int)}
        q = found.predictions[:, :, None]
        obp = obp_estimators
        theirs = {
            "ips": obp.InverseProbabilityWeighting().estimate_policy_value(**given),
            "snips": obp.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given),
            "dr": obp.DoublyRobust().estimate_policy_value(
                **given, estimated_rewards_by_reg_model=q
            ),
        }
        for name, value in theirs.items():
            assert ours[name] == pytest.approx(value, rel=1e-10, abs=1e-14)


def test_by_hand():
    """Two decisions: w = 2 and 0.5; q = 0.5 for all."""
    log = {"action": ["a", "b"], "reward": [1.0, 0.0], "probability": [0.25, 0.5]}
    q = np.full((2, 2), 0.5)
    with warnings.catch_warnings(action="ignore"):
        found = nw.off_policy_value(log, [0.5, 0.5], predictions=q)
    assert "policy: its largest weight, 2, has 80 % of the sum of squared weights" in repr(found)
    assert found.actions == ("a", "b")
    assert found.of("policy", "ips").value == (2 * 1 + 1 * 0) / 2
    assert found.of("policy", "snips").value == pytest.approx(2 / 3)
    assert found.of("policy", "dr").value == (0.5 + 2 * 0.5 + 0.5 - 1 * 0.5) / 2
    assert found.of("policy", "ips").effective == pytest.approx(9 / 5)
    assert math.isnan(found.of("policy", "dr").lower)  # unreliable, so there is no interval
    assert found.of("policy") == found.of("policy", "anytime")
    assert found.of("played", "mean").value == 0.5


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("rows", [2, 3])
def test_two_or_three_decisions_are_too_few_and_no_trouble(rows):
    log = {"action": [*"aba"], "reward": [1.0, 0.0, 1.0], "probability": [0.5] * 3}
    found = nw.off_policy_value({k: v[:rows] for k, v in log.items()}, "a", greedy=True)
    assert not found.of("greedy", "ips").reliable


def test_wealth_by_hand_and_its_bound():
    z, m = np.array([2.0, 0.0, 0.7]), 0.3
    stakes = [min(3.0**i, betting.CAP / m) for i in range(-12, 5)]
    wealth = [math.prod(1 + s * (each - m) for each in z) for s in stakes]
    assert betting.log_wealth(z, m)[-1] == pytest.approx(math.log(np.mean(wealth)))
    z = np.concatenate([np.ones(40), np.zeros(60)])
    low = betting.lower_bound(z, 0.025)
    assert betting.log_wealth(z, low)[-1] == pytest.approx(math.log(40), abs=1e-6)
    path = [betting.log_wealth(z, m)[-1] for m in np.linspace(0.001, 0.999, 50)]
    assert (np.diff(path) < 0).all()
    assert 0.2 < low < 0.4


@pytest.mark.parametrize("kind", ["frame", "dictionary", "function", "array", "mapping"])
def test_kinds_of_logs_and_policies_agree(kind):
    log = logged(RNG(0), 400)
    pi = np.eye(3)[BEST[log.pop("x")]]
    expected = nw.off_policy_value(log, pi)
    policy, given = pi, log
    if kind == "frame":
        given = pd.DataFrame(log)
    elif kind == "dictionary":
        given = {name: list(column) for name, column in log.items()}
    elif kind == "function":
        policy = best
    elif kind == "mapping":
        policy = lambda c: {best(c): 1.0}  # noqa: E731
    found = nw.off_policy_value(given, policy)
    assert [e.value for e in found.estimates] == [e.value for e in expected.estimates]
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    assert found.lower < TRUTH < found.upper
    assert "anytime" in repr(found)
    assert "<td>policy</td>" in found._repr_html_()


def test_words_in_the_context_are_read():
    log = logged(RNG(1), 600)
    words = {"who": [f"kind {i}" for i in log.pop("x")]}
    rest = {name: log[name] for name in ("action", "reward", "probability")}
    found = nw.off_policy_value({**words, **rest}, lambda c: BEST[int(c["who"][-1])], greedy=True)
    assert found.lower < TRUTH < found.upper
    assert found.of("greedy").effective < 300


def test_an_agents_record_and_choices():
    arms = nw.Arms(["0", "1", "2"], context=CONTEXT)
    agent = nw.Agent.for_continuous_rewards(
        arms=arms, feature_bound=2.0, randomise=1.0, among="all"
    )
    log = logged(RNG(2), 300)
    rng = RNG(3)
    for x in log["x"]:
        a = agent.choose(dict(zip(CONTEXT, BITS[x], strict=True)), key="k")
        agent.learn("k", float(rng.random() < MEANS[x, int(a)]))
    found = nw.off_policy_value(agent, agent)
    contexts = [dict(zip(CONTEXT, BITS[x], strict=True)) for x in log["x"]]
    choices = [agent.policy.select(agent.state, agent.arms(each), RNG(0)) for each in contexts]
    again = nw.off_policy_value(agent.log(), np.eye(3)[choices])
    assert found.value == again.value
    assert found.of("policy", "anytime").lower < MEANS[log["x"], choices].mean()


@pytest.mark.filterwarnings("ignore:policy:UserWarning")
def test_features_of_arms_and_a_policy_with_its_state():
    policy, rng = nw.LinUCB(), RNG(4)
    agent = nw.Agent(policy, dim=2, randomise=0.5, among="all")
    for _ in range(80):
        arms = rng.random((3, 2))
        k = agent.choose(arms)
        agent.learn(None, float(rng.random() < arms[k, 0]))
    log = agent.log()
    picks = [policy.select(agent.state, arms, rng) for arms in log["arms"]]
    one = nw.off_policy_value(log, (policy, agent.state))
    two = nw.off_policy_value(agent, agent)
    three = nw.off_policy_value(log, lambda arms: policy.select(agent.state, arms, rng))
    assert one.value == two.value == three.value == nw.off_policy_value(log, np.eye(3)[picks]).value


def test_warns_of_weights_and_of_what_had_probability_zero():
    log = logged(RNG(5), 400)
    p = np.full((400, 3), 0.5)
    p[:, 2] = 0.0
    log = {"action": RNG(0).integers(2, size=400), "reward": log["reward"],
           "probability": np.full(400, 0.5), "probabilities": p}  # fmt: skip
    with pytest.warns(UserWarning, match="25 % of its decisions had probability 0"):
        found = nw.off_policy_value(log, [0.5, 0.25, 0.25], actions=[0, 1, 2])
    ends = found.of("policy", "anytime")
    assert ends.upper - ends.lower > 0.25
    del log["probabilities"]
    with pytest.warns(UserWarning, match=r"weights average 0\.\d+ instead of 1"):
        nw.off_policy_value(log, [0.5, 0.25, 0.25], actions=[0, 1, 2])


def test_probabilities_follow_their_actions_in_any_order():
    """The arms' order is not that of the table, and one of them was never on offer."""
    agent = nw.Agent(nw.LinUCB(), arms=nw.Arms(["c", "a", "b"], None), randomise=0.5, among="all")
    for key in range(60):
        agent.choose(None, key=key, actions=["c", "a"])
        agent.learn(key, 0.5)
    log = agent.log()
    found = nw.off_policy_value(pd.DataFrame(log), greedy=True)
    assert found.actions == ("a", "c")  # those on offer
    assert not any("probability 0" in each for each in found.warnings)
    found = nw.off_policy_value(log, actions=["c", "b", "a"])
    assert found.actions == ("c", "b", "a")
    assert [each[:1] for each in found.warnings if "100 % of its" in each] == ["b"]


def test_a_range_scales_and_without_one_the_sequence_is_asymptotic():
    log = logged(RNG(7), 1200)
    x = log.pop("x")
    pi = np.eye(3)[BEST[x]]
    small = nw.off_policy_value(log, pi)
    log["reward"] = 10 * log["reward"]
    wide = nw.off_policy_value(log, pi, reward_range=(0, 10))
    for a, b in zip((*wide.estimates, wide.gain), (*small.estimates, small.gain), strict=True):
        assert (a.value, a.lower, a.upper) == pytest.approx((10 * b.value, 10 * b.lower,
                                                             10 * b.upper), abs=1e-6)  # fmt: skip
    found = nw.off_policy_value(log, pi)
    always, dr = found.of("policy", "anytime"), found.of("policy", "dr")
    assert "approximate" in always.promise
    assert always.value == dr.value == (always.lower + always.upper) / 2
    assert 1.4 < (always.upper - always.lower) / (dr.upper - dr.lower) < 2.2
    few = {name: column[:150] for name, column in log.items()}
    with warnings.catch_warnings(action="ignore"):
        found = nw.off_policy_value(few, pi[:150])
    assert found.of("policy", "anytime").lower == -math.inf


BAD = {
    "no column 'reward'": {"reward": None},
    "probability is 0 at row 1": {"probability": [0.5, 0.0, 0.5]},
    r"probability is 1\.5 at row 2": {"probability": [0.5, 0.5, 1.5]},
    "holds nan": {"reward": [1.0, np.nan, 0.0]},
    "column 'action' has 2 rows": {"action": ["a", "b"]},
    "context 'age' holds nan": {"age": [1.0, np.nan, 2.0]},
    r"action at row 1 \(counted from 0\) is None": {"action": ["a", None, "b"]},
    "'played', as a line": {"action": ["a", "played", "b"]},
    r"probability is -0\.1 at row 0 \(counted from 0\); pass": {"probability": [-0.1, 0.5, 0.5]},
    r"at row 1 \(counted from 0\), but probabilities has 0\.3 for the action 'b' taken there": {
        "probabilities": [[0.5, 0.5], [0.7, 0.3], [0.5, 0.5]]
    },
    r"at row 2 \(counted from 0\) are \[1\.2, -0\.2\]; pass numbers of at least 0 that sum to 1": {
        "probabilities": [[0.5, 0.5], [0.5, 0.5], [1.2, -0.2]]
    },
    r"probabilities at row 0 \(counted from 0\) are \[0\.5, 0\.4\]": {
        "probabilities": [{"a": 0.5, "b": 0.4}, {"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}]
    },
}


@pytest.mark.parametrize("words", BAD)
def test_bad_logs(words):
    log = {"age": [1.0, 2.0, 3.0], "action": ["a", "b", "a"], "reward": [1.0, 0.0, 1.0],
           "probability": [0.5, 0.5, 0.5], **BAD[words]}  # fmt: skip
    log = {name: column for name, column in log.items() if column is not None}
    with pytest.raises(ValueError, match=words):
        nw.off_policy_value(log)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("c", "no action of the log"),
        ([0.5, 0.6], "no distribution"),
        ([1.0], "shape"),
        ({"a": 1}, "pass the name of an action"),
        ((nw.OFUL(), nw.OFUL().start(2)), "no column 'arms'"),
    ],
)
def test_bad_policies(policy, words):
    log = {"action": ["a", "b"], "reward": [1.0, 0.0], "probability": [0.5, 0.5]}
    with pytest.raises(ValueError, match=words):
        nw.off_policy_value(log, policy)


def test_other_bad_input():
    log = {"action": ["a", "b"], "reward": [1.0, 0.0], "probability": [0.5, 0.5]}
    for words, more in {
        "reward_range is": {"reward_range": (0.2, 1)},
        "without 'b'": {"actions": ["a"]},
        "predictions has shape": {"predictions": np.ones(2)},
        "delta": {"delta": 1.0},
    }.items():
        with pytest.raises(ValueError, match=words):
            nw.off_policy_value(log, **more)
    with pytest.raises(ValueError, match="log is 3"):
        nw.off_policy_value(3)
    with pytest.raises(ValueError, match="1 decision;"):
        nw.off_policy_value({name: column[:1] for name, column in log.items()})


def test_the_centre_of_an_anytime_interval_is_its_own():
    """Both bets have won the same there, so it lies inside; of few successes it is no midpoint."""
    log = logged(RNG(4), 300)
    with warnings.catch_warnings(action="ignore"):
        found = nw.off_policy_value(
            {**log, "reward": log["reward"] * (RNG(5).random(300) < 0.1)}, "1"
        )
    w = (log["action"] == 1) / log["probability"]
    r = log["reward"] * (RNG(5).random(300) < 0.1)
    each = found.of("1", "anytime")
    assert each.lower < each.value < (each.lower + each.upper) / 2
    won = (
        betting.log_wealth(w * r, each.value)[-1],
        betting.log_wealth(w * (1 - r), 1 - each.value)[-1],
    )
    assert won[0] == pytest.approx(won[1], abs=1e-6)
    assert (found.value, found.lower, found.upper) == (each.value, each.lower, each.upper)
    assert found.gain.estimator == "anytime"
    assert found.gain.lower < found.gain.value < found.gain.upper


def one_decision(v, p, q, s, a):
    """Return what each stake wins of one decision."""
    table = types.SimpleNamespace(action=np.array([a]), probability=np.array([p[a]]))
    return np.exp(differences.log_wins(v[None], p[None], table, np.array([s]), q[None]))


@pytest.mark.parametrize("seed", range(20))
def test_bets_on_a_difference_are_fair_and_survive_every_reward(seed):
    """One decision, all actions and rewards: any probabilities, also 0, and any predictions."""
    rng = RNG(seed)
    K = 2 + seed % 3
    one, two, m, q = rng.dirichlet(np.ones(K)), np.eye(K)[0], rng.random(K), rng.random(K)
    p = rng.dirichlet(np.full(K, 0.2))
    p = np.where(p < 0.05, 0.0, p)  # 0 for what one of them needs
    p /= p.sum()
    v = one - two
    won = np.zeros(len(STAKES))
    for a in np.flatnonzero(p):
        both = [one_decision(v, p, q, s, a) for s in (0.0, 1.0)]
        assert np.min(both) > 0.04
        won += p[a] * ((1 - m[a]) * both[0] + m[a] * both[1])
    assert (won <= 1 + STAKES * (v @ m) + 1e-12).all()
    if p.all():
        most = STAKES * ((np.abs(v) / p).max() + 1) < 0.95  # small enough to trust predictions
        assert won[most] == pytest.approx(1 + STAKES[most] * (v @ m))


def test_one_policy_against_another_by_each_estimator():
    log = logged(RNG(6), 2000)
    x = log.pop("x")
    found = nw.off_policy_value(log, np.eye(3)[BEST[x]], against="1")
    for name in ("ips", "snips", "dr"):
        difference = found.of("policy", name).value - found.of("1", name).value
        each = found.of("gain", name)
        assert each.value == pytest.approx(difference)
        assert each.lower < TRUTH - SINGLES[1] < each.upper
    always = found.of("gain", "anytime")
    assert always.lower < TRUTH - SINGLES[1] < always.upper
    assert 1.2 < (always.upper - always.lower) / (found.gain.upper - found.gain.lower) < 2.0
    assert "gain: the value of policy less that of 1." in repr(found)
    back = nw.off_policy_value(log, "1", against=np.eye(3)[BEST[x]])
    assert back.of("gain", "anytime").lower == pytest.approx(-always.upper)
    assert back.of("against", "dr").value == found.of("policy", "dr").value
    played = nw.off_policy_value(log, "1")
    for name in ("ips", "snips", "dr"):
        difference = played.of("1", name).value - np.mean(log["reward"])
        assert played.of("gain", name).value == pytest.approx(difference)
    with pytest.raises(ValueError, match="against is '1', as policy is"):
        nw.off_policy_value(log, "1", against="1")
    with pytest.raises(ValueError, match="without a policy"):
        nw.off_policy_value(log, against="1")
    with pytest.raises(ValueError, match="no action of the log"):
        nw.off_policy_value(log, "1", against="7")


LOGS, ROUNDS = 500, 1000


def _most(chance):
    """Return how many of the logs may miss: more has a probability below 1e-6."""
    return binom.isf(1e-6, LOGS, chance)


@pytest.mark.slow
def test_intervals_cover_on_logs_of_known_truth():
    """At delta 0.05 the approximate ones miss with at most 0.06, the anytime ones with 0.05.

    False alarm below 1e-6 for each of the seven counts. Anytime: over all times of each log.
    Without a column ``probabilities`` at most one log in fifty is suspected to lack actions.
    """
    doubted = 0
    missed = dict.fromkeys(["ips", "snips", "dr", "anytime", "action 1", "gain", "all times"], 0)
    errors = {"ips": 0.0, "dr": 0.0}
    for rng in RNG(11).spawn(LOGS):
        log = logged(rng, ROUNDS)
        x = log.pop("x")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = nw.off_policy_value(log, np.eye(3)[BEST[x]])
        doubted += bool(said)
        for name in ("ips", "snips", "dr", "anytime"):
            each = found.of("policy", name)
            missed[name] += not each.lower <= TRUTH <= each.upper
        for name in errors:
            errors[name] += (found.of("policy", name).value - TRUTH) ** 2 / LOGS
        each = found.of("1")
        missed["action 1"] += not each.lower <= SINGLES[1] <= each.upper
        played = (0.1 * MEANS.sum(axis=1) + 0.7 * MEANS[np.arange(8), np.arange(8) % 3]).mean()
        missed["gain"] += not found.gain.lower <= TRUTH - played <= found.gain.upper
        w = (log["action"] == BEST[x]) / log["probability"]
        wealth = [
            betting.log_wealth(w * log["reward"], TRUTH).max(),
            betting.log_wealth(w * (1 - log["reward"]), 1 - TRUTH).max(),
        ]
        missed["all times"] += max(wealth) >= math.log(40)
    print(missed, errors, doubted)
    for name, count in missed.items():
        assert count <= _most(0.05 if name in ("anytime", "all times") else 0.06), (name, count)
    assert errors["dr"] < 0.8 * errors["ips"]
    assert doubted <= LOGS / 50


@pytest.mark.slow
def test_anytime_intervals_cover_where_the_log_learnt_and_probabilities_are_zero():
    """An agent's own log, drawn among plausible arms; false alarm below 1e-6 if 0.05 is kept."""
    logs, missed, lost = 100, 0, 0
    for rng in RNG(12).spawn(logs):
        arms = nw.Arms(["0", "1", "2"], context=CONTEXT)
        agent = nw.Agent.for_continuous_rewards(arms=arms, feature_bound=2.0, randomise=0.3)
        for x in rng.integers(8, size=300):
            a = agent.choose(dict(zip(CONTEXT, BITS[x], strict=True)), key="k")
            agent.learn("k", float(rng.random() < MEANS[x, int(a)]))
        found = nw.off_policy_value(agent)
        each = found.of("1", "anytime")
        missed += not each.lower <= SINGLES[1] <= each.upper
        lost += any("probability 0" in words for words in found.warnings)
    print(missed, lost)
    assert missed <= binom.isf(1e-6, logs, 0.05)
    assert lost > 0


def invoke(*words):
    return CliRunner().invoke(main, ["evaluate", *map(str, words)])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_prints_and_writes_a_page(tmp_path, suffix):
    log = pd.DataFrame(logged(RNG(8), 300)).drop(columns="x")
    log["action"] = [f"offer <{a}>" for a in log["action"]]
    path, out = tmp_path / f"log.{suffix}", tmp_path / "out"
    if suffix == "csv":
        log.to_csv(path, index=False)
    else:
        log.to_parquet(path)
    done = invoke(path, "--out", out, "--policy", "offer <1>")
    assert done.exit_code == 0, done.output
    with warnings.catch_warnings(action="ignore"):
        found = nw.off_policy_value(log, "offer <1>", greedy=True)
    assert repr(found) in done.output
    page = (out / "index.html").read_text()
    assert "offer &lt;1&gt;" in page
    assert "offer <1>" not in page
    assert "<svg" in page
    assert "://" not in page
    assert "greedy" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda log: log.drop(columns="probability"), "no column 'probability'"),
        (lambda log: log.assign(probability=0.0), "probability is 0 at row 1"),
        (lambda log: log.assign(probability=2.0), "probability is 2 at row 1"),
        (lambda log: log.assign(probability=-0.5), "probability is -0.5 at row 1"),
        (
            lambda log: log.assign(probability=0.5, probabilities="{'0': 0.2, '1': 0.3, '2': 0.5}"),
            "but probabilities has 0.2 for the action '0' taken there",
        ),
        (lambda log: log.assign(probabilities="{'0': -0.2, '1': 1.2}"), "[-0.2, 1.2, 0.0]"),
        (lambda log: log.assign(reward=np.nan), "holds nan"),
        (lambda log: log.assign(age=np.nan), "context 'age' holds nan"),
        (lambda log: log[:0], "has no rows"),
        (lambda log: log[[]], "is empty"),
    ],
)
def test_the_command_names_what_is_wrong(change, words, tmp_path):
    log = change(pd.DataFrame(logged(RNG(9), 20)).sort_values("action"))
    log.to_csv(tmp_path / "log.csv", index=False)
    done = invoke(tmp_path / "log.csv", "--out", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


def test_the_command_needs_a_file(tmp_path):
    done = invoke(tmp_path / "none.csv")
    assert done.exit_code == 2
    assert "can't be read" in done.output


@pytest.mark.filterwarnings("ignore:(a|gain):UserWarning")
def test_a_log_of_an_agent_may_go_through_a_csv_file(tmp_path):
    """Probabilities by name come back from text; what is no dictionary is refused."""
    agent = nw.Agent.for_binary_rewards(
        arms=nw.Arms(["a", "b"], context=["age"]), randomise=0.5, among="all"
    )
    rng = RNG(3)
    for t in range(60):
        agent.choose({"age": rng.uniform(18, 80)}, key=t)
        agent.learn(t, float(rng.integers(2)))
    log = pd.DataFrame(agent.log())
    log.to_csv(tmp_path / "log.csv", index=False)
    done = invoke(tmp_path / "log.csv", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    again = nw.off_policy_value(pd.read_csv(tmp_path / "log.csv"), "a")
    assert again.of("a").value == pytest.approx(nw.off_policy_value(log, "a").of("a").value)
    with pytest.raises(ValueError, match="text that is no dictionary"):
        nw.off_policy_value(log.assign(probabilities="half"), "a")
