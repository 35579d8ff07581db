"""The table that `Agent.explain` returns."""

import math

import numpy as np
import pytest
from instances import sphere

import noisewise as nw
from noisewise.agent.explanations.explanation import Explanation
from noisewise.agent.record.decision_log import DecisionLog

RNG = np.random.default_rng

TABLE = """\
action     sum  estimate           interval  exploration  largest contributions
ad      0.8073    0.6389   [0.2197, 0.9175]      +0.1683  ad:age +0.1102, ad +0.02667
mail    0.3616    0.3616  [0.08478, 0.7759]       +1e-06
interval: approximate
contributions: what the estimate would lose without the feature
rewards learnt: 20
typical norm of an arm: 2.236
note: beware"""


def made():
    """Reasons by hand, the third contribution too small for a word."""
    small, large = ("ad:<b>", 1e-4), (("ad:age", 0.11021), ("ad", 0.02667))
    rows = [
        nw.Reason(0, 0.63891, 0.2197, 0.9175, 0.16834, action="ad", parts=(*large, small)),
        nw.Reason(1, 0.3616, 0.084779, 0.7759, 1e-6, action="mail", note="beware"),
    ]
    known = {"rewards learnt": 20, "typical norm of an arm": math.sqrt(5)}
    return Explanation(rows, "approximate", known)


def shop():
    agent = nw.Agent.for_means(arms=nw.Arms(["ad", "mail"], context=["age"]))
    for t in range(20):
        agent.learn(agent.arms([1.0 + t % 3])[t % 2], float(t % 6 in (0, 2, 3)))
    agent.choose([2.0], key="pending")
    return agent


def test_the_table_as_text():
    assert str(made()) == TABLE


def test_the_table_as_html():
    text = made()._repr_html_()
    assert text.count("<tr>") == 3
    assert "<td>ad:age +0.1102, ad +0.02667</td>" in text
    assert "<li>note: beware</li>" in text
    words = nw.Agent(nw.LinUCB(), arms=nw.Arms(["<b>"], None)).explain(None)._repr_html_()
    assert "<td>&lt;b&gt;</td>" in words


def test_the_chosen_row_comes_first_and_a_sentence_says_why():
    rows = [
        nw.Reason(0, 0.41, exploration=0.05, action="nothing"),
        nw.Reason(1, 0.4, exploration=0.2, action="discount"),
        nw.Reason(2, 0.3, exploration=0.1, action="mail"),
    ]
    found = Explanation(rows, chosen=(1,), past=True, learnt={"rewards learnt": 1234567})
    assert str(found).splitlines() == [
        "'discount' was chosen: estimated 0.4, less than 'nothing' with 0.41, but uncertain enough "
        "to be worth trying.",
        "chosen  action     sum  estimate  exploration",
        "*       discount   0.6       0.4         +0.2",
        "        nothing   0.46      0.41        +0.05",
        "        mail       0.4       0.3         +0.1",
        "rewards learnt: 1,234,567",
    ]
    assert [row.arm for row in found] == [0, 1, 2]  # as given
    assert found._repr_html_().startswith("<p>&#x27;discount&#x27; was chosen")

    def says(rows, chosen, **more):
        return Explanation(rows, chosen=chosen, **more).sentence

    assert "highest estimate, 0.41" in says(rows, (0,))
    assert says(rows, (1, 0)).startswith("'discount' and 'nothing' would be chosen: the largest")
    assert "nothing else" in says(rows[:1], (0,))
    assert "by chance" in says(rows, (2,), drawn=True)
    assert says([rows[0], rows[0]], (0,)).startswith("2 actions have the same sum")
    assert says(rows, ()) == ""
    assert says([nw.Reason(0), nw.Reason(1)], (0,), past=True) == "arm 0 was chosen."


def test_without_a_context_nothing_is_passed():
    test = nw.Agent.for_binary_rewards(arms=nw.Arms(["A", "B"], None))
    test.learn(np.array([1.0, 0.0]), 1.0)
    assert test.explain()[0].action == "A"
    assert test.explain().chosen == (test.choose(None) == "B",)
    assert nw.Agent(nw.Uniform(), arms=test.arms).explain().chosen == ()
    for agent, words in ((nw.Agent.for_means(2), "arms is None"), (shop(), "context")):
        with pytest.raises(ValueError, match=words):
            agent.explain()


def test_words_are_shown_as_seen():
    """The columns of a word count together: without all of them the score is that of no word."""
    arms = nw.Arms(["a", "b"], context={"page": 4, "country": ["de", "fr"], "age": float})
    agent, rng = nw.Agent.for_continuous_rewards(arms=arms), RNG(4)
    for t in range(60):
        c = {"page": f"p{t % 3}", "country": "de" if t % 2 else "fr", "age": rng.random()}
        agent.learn(arms(c)[t % 2], float(t % 3 + (t % 2) * c["age"]))
    row = agent.explain({"page": "p1", "country": "fr", "age": 0.3})[1]
    names = [name for name, _ in row.parts]
    assert sorted(names) == ["b", "b:age", "b:country=fr", "b:page=p1"]
    z = agent.state.features(arms({"page": "p1", "country": "fr", "age": 0.3}))[1]
    own = [name.startswith("b:page#") for name in arms.names]
    assert dict(row.parts)["b:page=p1"] == pytest.approx(
        (z * agent.state.vector.theta)[:-1] @ np.array(own, dtype=float)
    )


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_past_decision_is_explained_as_it_was_taken(share, tmp_path):
    agent = shop()
    agent.forget("pending")
    agent.record = DecisionLog(3)
    agent.randomisation = agent.randomisation._replace(share=share)
    before = agent.explain([2.0])
    agent.choose([2.0], "k", top=2)
    assert agent.choose([2.0], "later") in ("ad", "mail")
    agent.learn("k", {"ad": 1.0})
    for _ in range(20):
        agent.learn(agent.arms([1.0])[0], 0.0)
    agent.save(tmp_path / "a.npz")
    for each in (agent, nw.Agent.load(tmp_path / "a.npz")):
        why = each.explain(key="k")
        for row, then in zip(why, before, strict=True):
            assert row.estimate == pytest.approx(then.estimate)
            assert row.exploration == pytest.approx(then.exploration)
            assert dict(row.parts) == pytest.approx(dict(then.parts))
        assert set(why.chosen) == {0, 1}
        assert why.learnt["reward of 'ad'"] == 1.0
        assert why.learnt["probability of 'mail'"] == pytest.approx(1 - share / 2)
        assert "were chosen" in str(why)
        single = each.explain(key="later")
        assert single.learnt["probability"] in (1.0, 1 - share / 2, share / 2)
    agent.forget("later")
    for key, given, words in (
        ("later", {}, "is not in the record"),
        ("k", {"arms": [1.0]}, "arms"),
    ):
        with pytest.raises(ValueError, match=words):
            agent.explain(key=key, **given)
    with pytest.raises(ValueError, match="was not recorded"):
        shop().explain(key="pending")


def test_batches_with_a_record_are_explained_one_by_one():
    one, two = (nw.Agent.for_means(2, record=10) for _ in range(2))
    two.choose_many([np.eye(2)] * 4, [*"abcd"])
    for key in "abcd":
        one.choose(np.eye(2), key)
        assert repr(one.explain(key=key)) == repr(two.explain(key=key))
    one.choose(np.eye(2))
    assert one.explain(key=None).past


def test_an_agent_explains_itself():
    """Seven of ten for the one, three of ten for the other, and one decision pending."""
    found = shop().explain([2.0])
    assert [each.action for each in found] == ["ad", "mail"]
    assert len(found) == 2
    assert 0.3 < found[1].estimate < 0.5 < found[0].estimate < 0.7  # towards each other
    for row in found:
        assert row.lower < row.estimate < row.upper
    assert found.learnt["rewards pending"] == 1
    assert "95 % for each arm at all times, approximate" in str(found)


def test_exploration_is_on_the_scale_of_rewards():
    for row in shop().explain([2.0]):
        mean = 1 / (1 + math.exp(-row.index))
        assert row.exploration == pytest.approx(mean - row.estimate)
    agent = shop()
    why = agent.explain([3.0])
    theta = dict(zip(agent.arms.names, agent.state.coef, strict=True))
    score = theta["ad"] + theta["ad:age"] * why.origin["age"]  # without what the age of 3 adds
    part = dict(why[0].parts)["ad:age"]
    assert why.origin["age"] == pytest.approx(37 / 19)  # when units were last renewed
    assert why[0].estimate - part == pytest.approx(1 / (1 + math.exp(-score)))


def test_what_was_learnt_is_told():
    agent, rng = nw.Agent.for_continuous_rewards(2), RNG(0)
    empty = agent.explain(np.eye(2))
    assert empty[0].lower is None
    assert empty.learnt == {"rewards learnt": 0, "rewards pending": 0, "restarts": 0}
    x = 3.0 * sphere(rng, 1200, 2)
    for t in range(1200):
        y = 50 + (1 if t < 600 else -3) * x[t, 0] + 0.5 * rng.normal()
        agent.learn(x[t], y)
        if t == 599:
            sd = agent.explain(np.eye(2)).learnt["typical sd of a reward"]
            assert sd == pytest.approx(0.5, rel=0.2)  # 7 standard errors of 1/sqrt(2 n)
    known = agent.explain(np.eye(2)).learnt
    assert known["rewards learnt"] == 1200
    assert known["restarts"] >= 1
    assert known["last restart, after reward"] > 600
    assert known["typical norm of an arm"] == pytest.approx(3.0)
    assert "trust in given sds, 0 to 1" not in known
    for t in range(300):  # sds that say nothing
        sd = float(np.exp(rng.normal()))
        agent.learn(x[t], 50 - 3 * x[t, 0] + 0.5 * rng.normal(), sigma=sd)
    assert agent.explain(np.eye(2)).learnt["trust in given sds, 0 to 1"] < 0.7


def test_the_interval_by_hand():
    """phi h (1 + w h) (log(1 + 1/(w h)) + 2 log 20) around the score, with unit weights."""
    policy, rng = nw.SelfTunedUCB(), RNG(1)
    state, x = policy.start(1), np.array([[2.0]])
    for _ in range(50):
        policy.update(state, rng.normal(size=1), float(rng.uniform(-1, 1)))  # no outliers
    z = np.array([2.0, 1.0])
    h, phi = z @ state.matrix.inverse @ z, state.dispersion
    novel = max(state.number.novel_residuals / state.number.novelty - phi, 0)
    u = state.number.information * h / 2
    w = state.number.information / 50
    seldom = phi + novel * u / (1 + u)
    own = (z @ state.matrix.sandwich @ z / h + h * seldom) / (1 + h)
    square = max(seldom, own) * h * (1 + w * h)
    half = math.sqrt(square * (math.log(1 + 1 / (w * h)) + 2 * math.log(20)))
    (lower,), (upper,) = policy.interval(state, x)
    assert (upper - lower) / 2 == pytest.approx(half)
    assert (upper + lower) / 2 == pytest.approx(policy.mean(state, x)[0])
    narrow = policy.interval(state, x, delta=0.5)
    assert narrow.upper - narrow.lower < upper - lower
    assert "50 %" in narrow.promise


def test_outliers_count_in_full_in_intervals():
    """Ridge regression of all rewards by hand, and up to the estimate, where they count less."""
    policy, rng = nw.SelfTunedUCB(), RNG(2)
    state, x = policy.start(1), rng.normal(size=(60, 1))
    y = x[:, 0] + rng.uniform(-1, 1, size=60) + 50 * (np.arange(60) % 12 == 11)
    for row, reward in zip(x, y, strict=True):
        policy.update(state, row, float(reward))
    assert state.number.since_restart == 60  # no restart
    a, z = np.c_[x, np.ones(60)], np.array([2.0, 1.0])
    s = state.number
    R = np.diag([s.plain_ridge * state.vector.scale[0], s.intercept_ridge])
    P = np.linalg.inv(a.T @ a + R)
    theta = P @ a.T @ (y - y[0])
    r2, h = (y - y[0] - a @ theta) ** 2, z @ P @ z
    phi = max(r2.sum() / 59, z @ P @ (a.T * r2) @ a @ P @ z / h)
    half = math.sqrt(phi * h * (1 + h) * (math.log(1 + 1 / h) + 2 * math.log(20)))
    (lower,), (upper,) = policy.interval(state, np.array([[2.0]]))
    centre, estimate = y[0] + z @ theta, policy.mean(state, np.array([[2.0]]))[0]
    assert lower == pytest.approx(min(centre - half, estimate))
    assert upper == pytest.approx(max(centre + half, estimate))
    assert abs(estimate - centre) > 0.5


def test_rewards_that_follow_each_other_tell_less():
    """A clear lag correlation r widens intervals by the root of (1 + r)/(1 - r)."""
    policy, rng, noise = nw.SelfTunedUCB(), RNG(3), 0.0
    state, x = policy.start(1), np.array([[1.0]])
    for _ in range(400):
        noise = 0.7 * noise + rng.uniform(-1, 1)
        policy.update(state, rng.normal(size=1), noise)
    s = state.number
    r = s.lag_products / (3 + s.lag_squares)
    assert 0.5 < r < 0.9  # about five standard errors of 0.036 on either side of 0.7
    (lower,), (upper,) = policy.interval(state, x)
    s.lag_products = 0.1 * s.lag_squares  # within chance
    (low,), (high,) = policy.interval(state, x)
    assert (upper - lower) / (high - low) == pytest.approx(math.sqrt((1 + r) / (1 - r)))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_intervals_hold_in_simulated_worlds(family):
    """100 worlds, eight arms, 1000 rounds, seven times: an arm is ever missed in under 3 %.

    The measured frequency is below 0.01. Were it that, with worlds independent and the arms of a
    world missed together, 3 worlds of 100 with all arms have probability below 0.08; misses come
    singly, and the sum over arms has a false alarm far below 1e-4.
    """
    missed = 0
    for seed in range(100):
        rng, policy = RNG([seed, 6]), nw.SelfTunedUCB(family)
        arms, theta = sphere(rng, 8, 4), 1.5 * sphere(rng, 1, 4)[0]
        state, score = policy.start(4), arms @ theta
        mean, ever = policy.mean_of(score), np.zeros(8, dtype=bool)
        for t in range(1000):
            k = policy.select(state, arms, rng)
            y = rng.random() < mean[k] if family == "binomial" else mean[k] + 0.5 * rng.normal()
            policy.update(state, arms[k], float(y))
            if t in (20, 50, 100, 200, 400, 700, 999):
                lower, upper = policy.interval(state, arms)
                ever |= (mean < lower) | (mean > upper)
        missed += ever.sum()
    assert missed < 0.03 * 800
