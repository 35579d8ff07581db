"""Agents against their holdout and actions against each other: intervals, order, files, input."""

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import noisewise as nw
from noisewise.agent.comparison import experiment, subject_rewards
from noisewise.agent.comparison.group_rewards import GroupRewards
from noisewise.agent.comparison.subject_rewards import SubjectRewards
from noisewise.theory.betting import PRIOR, STAKES, log_wealth_of_sums

RNG = np.random.default_rng
AB = nw.Arms(["A", "B"], interactions=None)
RATES = {"A": 0.3, "B": 0.6}


def wealth(z, m):
    """Return what the bets on numbers of mean ``m`` have won, plainly."""
    each = np.prod((1 + STAKES[:, None] * z) / (1 + STAKES[:, None] * m), axis=1)
    return float(PRIOR @ each)


def played(agent, n, rng, rates=RATES, **options):
    for key in range(n):
        agent.learn(key, float(rng.random() < rates[agent.choose(None, key=key, **options)]))
    return agent


def test_wealth_is_fair_where_the_mean_moves_with_the_past():
    """All outcomes of six draws whose mean depends on those before: on average it is at most 1."""
    means = []
    for path in itertools.product([0, 1], repeat=6):
        p, z, m = 1.0, [], []
        for t, won in enumerate(path):
            rate = 0.1 + 0.8 * (sum(path[:t]) % 2)
            p *= rate if won else 1 - rate
            z.append(1.0 if won else -1.0)
            m.append(2 * rate - 1)
        exact = math.exp(log_wealth_of_sums(
            np.log1p(STAKES[:, None] * np.array(z)).sum(axis=1), 6, float(np.mean(m))
        ))  # fmt: skip
        assert exact == pytest.approx(wealth(np.array(z), np.mean(m)))
        means.append((p, exact))
    assert sum(p for p, _ in means) == pytest.approx(1)
    assert sum(p * won for p, won in means) <= 1


def test_sums_in_parts_are_sums_at_once_and_those_of_the_formula():
    rng, n = RNG(0), 300
    group, r = rng.integers(3, size=n), rng.uniform(2, 4, size=n)
    p = np.where(rng.random(n) < 0.5, 0.25, 0.5)
    whole = GroupRewards.of(3, 0.25, (2.0, 4.0)).after(group, p, r)
    parts = GroupRewards.of(3, 0.25, (2.0, 4.0))
    for at in np.array_split(np.arange(n), 7):
        parts = parts.after(group[at], p[at], r[at])
    for name in ("up", "down", "totals"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-10)
    s = (r - 2) / 2
    q = (np.concatenate([[0.0], s.cumsum()[:-1]]) + 0.5) / (np.arange(n) + 1)
    z = 0.25 * (s - q) / p * ((group == 2).astype(float) - (group == 0))
    found = whole.bounds(2, 0, 0.05)
    assert wealth(z, 0.25 * found.lower / 2) == pytest.approx(40, rel=1e-6)
    assert wealth(-z, -0.25 * found.upper / 2) == pytest.approx(40, rel=1e-6)


def test_own_rewards_by_a_grid():
    """The least difference among pairs of means whose wealth is below 40."""
    s = [np.r_[np.ones(60), np.zeros(40)], np.r_[np.ones(10), np.zeros(90)]]
    kept = GroupRewards.of(2, 0.0, (0.0, 1.0))
    kept = kept.after(np.repeat([0, 1], 100), np.ones(200), np.concatenate(s))
    found = kept.bounds(0, 1, 0.05)
    m = np.linspace(0, 1, 401)
    up = np.array([wealth(s[0], each) for each in m])
    down = np.array([wealth(1 - s[1], 1 - each) for each in m])
    inside = up[:, None] * down < 40
    assert found.lower == pytest.approx((m[:, None] - m)[inside].min(), abs=0.006)
    assert found.means == (0.6, 0.1)


def test_without_a_range_the_interval_does_not_depend_on_units():
    rng, n = RNG(1), 2000
    group = (rng.random(n) < 0.3).astype(int)
    p, r = np.where(group, 0.3, 0.7), rng.lognormal(size=n)
    one = GroupRewards.of(2, 0.3, None).after(group, p, r).bounds(0, 1, 0.05)
    two = GroupRewards.of(2, 0.3, None).after(group, p, 100 * r + 1e4).bounds(0, 1, 0.05)
    assert 100 * one.lower == pytest.approx(two.lower, rel=1e-6)
    error = math.hypot(*(r[group == g].std() / math.sqrt((group == g).sum()) for g in (0, 1)))
    assert 1.5 < (one.upper - one.lower) / (2 * 1.96 * error) < 2.0
    few = GroupRewards.of(2, 0.3, None).after(group[:60], p[:60], r[:60]).bounds(0, 1, 0.05)
    assert few.lower == -math.inf


def test_subjects_by_the_textbook_and_closed_ones_count(monkeypatch):
    """The standard error is that of means of clusters; sums are those of one pass over all rows."""
    rng, m = RNG(2), 400
    n = rng.integers(1, 6, size=m)
    who = np.repeat(np.arange(m), n)
    group = who % 2
    r = 5 + rng.normal(size=m)[who] + rng.normal(size=len(who))
    rows = list(zip(who.tolist(), group.tolist(), r.tolist(), strict=True))
    found = SubjectRewards.empty().after(rows).bounds(0.05)
    variance = 0.0
    for g in (0, 1):
        mean = r[group == g].mean()
        own = np.bincount(who, r - mean, minlength=m)[g::2]
        variance += (own**2).sum() / (group == g).sum() ** 2
    half = (found.upper - found.lower) / 2
    assert 1.5 < half / (norm.isf(0.025) * math.sqrt(variance)) < 2.0
    monkeypatch.setattr(subject_rewards, "MOST", 50)
    kept = SubjectRewards.empty()
    for part in range(0, len(rows), 100):
        kept = kept.after(rows[part : part + 100])
    assert len(kept.subjects) == 50
    again = kept.bounds(0.05)
    assert (again.means, again.upper - again.lower) == (
        pytest.approx(found.means), pytest.approx(2 * half, rel=0.02)
    )  # fmt: skip


def test_the_holdout_gets_the_baseline_and_probabilities_say_so():
    """Chi-square of frequencies; false alarm 1e-6 each."""
    agent = nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.3, randomise=0.4,
                                        among="all")  # fmt: skip
    for _ in range(50):
        agent.learn(AB(None)[1], 1.0)
        agent.learn(AB(None)[0], 0.0)
    counts = 0
    for _ in range(2000):
        k, p = agent.choose(None, with_probabilities=True)
        counts += k == "A"
    assert p == pytest.approx([0.3 + 0.7 * 0.2, 0.7 * 0.8])
    assert binom.cdf(counts, 2000, p[0]) > 1e-6
    assert binom.sf(counts, 2000, p[0]) > 1e-6


def test_a_subject_stays_where_it_is():
    """All five decisions of a subject are held out, or none; and so with the same seed."""
    agents = [
        nw.Agent.for_binary_rewards(arms=nw.Arms(["A", "B", "C"], None), baseline="C",
                                    holdout=0.5, seed=seed)
        for seed in (3, 3, 4)
    ]  # fmt: skip
    held = []
    for agent in agents:
        agent.learn(agent.arms(None)[0], 1.0, trials=500)
        agent.learn(agent.arms(None)[2], 0.0, trials=500)
        chosen = np.array([
            [agent.choose(None, subject=f"user {i}") == "C" for i in range(60)] for _ in range(5)
        ])  # fmt: skip
        assert (chosen == chosen[0]).all()
        held.append(chosen[0].tolist())
    assert held[0] == held[1] != held[2]
    assert 0.2 < np.mean(held) < 0.8  # 1e-5 for 180 draws


def test_gain_is_that_of_the_sums_and_survives_a_file(tmp_path):
    agent = played(nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.2), 400, RNG(1))
    agent.choose(None, key="late")
    found = agent.gain()
    agent.save(tmp_path / "agent.npz")
    again = nw.Agent.load(tmp_path / "agent.npz")
    assert repr(again.gain()) == repr(found)
    for each in (agent, again):
        each.learn("late", 1.0)
        played(each, 50, RNG(2))
    assert repr(agent.gain()) == repr(again.gain())
    assert repr(agent.compare("B", "A")) == repr(again.compare("B", "A"))
    assert agent.choose(None) == again.choose(None)
    assert found.lower < found.value < found.upper
    assert sum(found.counts[0][1]) == 400
    assert "1 decision without a reward yet" in repr(found)
    assert "<td>the agent</td>" in found._repr_html_()


def test_subjects_survive_a_file_and_need_company(tmp_path):
    agent = nw.Agent.for_continuous_rewards(arms=AB, baseline="uniform", holdout=0.4, seed=2)
    rng = RNG(3)
    for key in range(600):
        agent.choose(None, key=key, subject=key % 300)
        agent.learn(key, 10 + rng.normal())
    agent.save(tmp_path / "agent.npz")
    again = nw.Agent.load(tmp_path / "agent.npz")
    found = again.gain()
    assert repr(agent.gain()) == repr(found)
    assert sum(dict(found.counts)["subjects"]) == 300
    assert "approximately" in found.promise
    with pytest.raises(ValueError, match="subject is None"):
        again.choose(None)
    with pytest.raises(ValueError, match="subjects holds None"):
        again.choose_many([None, None], ["a", "b"], subjects=[1, None])
    assert not again.pending
    assert len(again.choose_many([None, None], ["a", "b"], subjects=[1, 2])) == 2


def test_decisions_count_in_order_and_those_without_reward_are_given_up():
    agent = nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.5, capacity=20)
    for key in range(10):
        agent.choose(None, key=key)
    for key in range(1, 10):
        agent.learn(key, 1.0)
    found = agent.gain()
    assert found.counts[0][1] == (0, 0)
    assert "9 with one that were taken after" in repr(found)
    agent.forget(0)
    assert sum(agent.gain().counts[0][1]) == 9
    assert "1 decision given up" in repr(agent.gain())
    agent.choose(None, key="never")
    played(agent, 100, RNG(0))
    kept = agent.experiment
    assert kept._next - kept._first <= 20
    assert sum(agent.gain().counts[0][1]) > 100 - 20
    agent.learn("never", 1.0)  # too late to count
    assert kept.given_up == 2


def test_memory_does_not_grow_with_decisions(monkeypatch):
    monkeypatch.setattr(experiment, "BATCH", 16)
    agent = nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.2, record=0)
    sizes = [len(played(agent, 64, RNG(t)).experiment._waiting) for t in range(3)]
    assert sizes == [0, 0, 0]
    assert len(agent.experiment._keys) == 0
    assert agent.experiment.groups.count == 192
    for _ in range(40):
        agent.choose(key="never")
        agent.forget("never")
    assert len(agent.experiment._waiting) < 16
    assert (agent.experiment.groups.count, agent.experiment.given_up) == (192, 40)


@pytest.mark.parametrize("line", ["_advance", "_sum"])
def test_rewards_count_after_an_interrupt(monkeypatch, line):
    """Wherever it comes: the same call again leads to the sums of an agent left in peace."""
    monkeypatch.setattr(experiment, "BATCH", 4)
    agents = [
        nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.3, seed=1) for _ in range(2)
    ]
    own = getattr(experiment.Experiment, line)
    for when in ("before", "after"):

        def interrupted(kept, when=when):
            if when == "after":
                own(kept)
            raise KeyboardInterrupt

        for agent in agents:
            for key in range(8):
                agent.choose(key=key)
        for key in range(8):
            if key in (0, 3, 7):
                with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
                    patch.setattr(experiment.Experiment, line, interrupted)
                    agents[0].learn(key, 1.0)
                if agents[0].is_pending(key) or agents[0]._unfinished:
                    agents[0].learn(key, 1.0)
            else:
                agents[0].learn(key, 1.0)
            agents[1].learn(key, 1.0)
    assert repr(agents[0].gain()) == repr(agents[1].gain())
    assert agents[0].experiment.waiting == (0, 0)
    assert agents[0].experiment.groups.count == 16


@pytest.mark.filterwarnings("ignore:more than 50 decisions")
def test_a_verdict_speaks_of_decisions_that_were_given_up():
    """Those who did not buy are dropped before their 0 is learnt: both rates are 1, and false."""
    agent = nw.Agent.for_binary_rewards(arms=AB, randomise=1.0, among="all", capacity=50)
    rng = RNG(4)
    for key in range(2000):
        if rng.random() < RATES[agent.choose(None, key=key)]:
            agent.learn(key, 1.0)
    found = agent.compare("A", "B", delta=0.5)
    assert found.means == (1.0, 1.0)
    assert found.given_up > 900
    assert "unless" not in repr(found)  # no verdict
    better = replace(found, means=(0.9, 0.5), lower=0.2, upper=0.6)
    assert f"'A' earns more than 'B', unless the {found.given_up:,} given up" in better.sentence
    assert "unless" not in replace(better, given_up=20).sentence


def test_without_a_context_nothing_is_passed_to_choose():
    one, two = (nw.Agent.for_binary_rewards(arms=AB, seed=3) for _ in range(2))
    assert [one.choose() for _ in range(9)] == [two.choose(None) for _ in range(9)]
    with pytest.raises(ValueError, match="arms is None; pass the arms to choose from"):
        nw.Agent.for_binary_rewards(dim=2).choose()


def test_the_default_relies_on_the_draw_where_all_decisions_are_drawn():
    even, learning = (
        played(nw.Agent.for_binary_rewards(arms=AB, randomise=s, among="all"), 300, RNG(4))
        for s in (1.0, 0.5)
    )
    assert repr(even.compare("B", "A")) == repr(even.compare("B", "A", steady=False))
    assert "random draw" in even.compare("B", "A").rests_on
    assert repr(learning.compare("B", "A")) == repr(learning.compare("B", "A", steady=True))


def test_a_sentence_has_the_digits_that_the_interval_tells():
    found = played(nw.Agent.for_binary_rewards(arms=AB, randomise=1.0, among="all"), 800, RNG(5))
    words = found.compare("B", "A")
    digits = 2 - math.floor(math.log10(words.upper - words.lower))
    assert digits == 3
    assert f"from {words.lower:+.3f} to {words.upper:+.3f}; 'B' earns more than 'A'." in repr(words)
    assert f"'A' {words.means[1]:.3f}: a difference of {words.value:+.3f}" in repr(words)


def test_batches_count_as_single_decisions_do():
    one, two = (nw.Agent.for_binary_rewards(arms=AB) for _ in range(2))
    rng = RNG(5)
    for day in range(5):
        keys = [f"{day}-{i}" for i in range(40)]
        shown = one.choose_many([None] * 40, keys)
        assert shown == [two.choose(None, key=key) for key in keys]
        rewards = [float(rng.random() < RATES[each]) for each in shown]
        one.learn(keys, rewards)
        for key, reward in zip(keys, rewards, strict=True):
            two.learn(key, reward)
    assert repr(one.compare("A", "B")) == repr(two.compare("A", "B"))
    assert one.compare("A", "B").lower == -one.compare("B", "A").upper


def test_only_decisions_among_all_actions_count_as_drawn():
    agent = nw.Agent.for_binary_rewards(
        arms=nw.Arms(["A", "B", "C"], context=["x"]), randomise=0.5, among="all"
    )
    for key in range(60):
        agent.choose({"x": key % 3}, key=key, actions=["A", "C"] if key % 2 else None)
        agent.learn(key, 1.0)
    found = agent.compare("A", "C")
    assert "30 decisions not counted" in repr(found)
    assert sum(found.counts[0][1]) <= 30


BAD = {
    "holdout is 1": {"baseline": "A", "holdout": 1.0},
    "holdout is 'x'": {"baseline": "A", "holdout": "x"},
    "but baseline is None": {"holdout": 0.1},
    "but no decision is held out": {"baseline": "A"},
    "baseline is 'C', no action": {"baseline": "C", "holdout": 0.1},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_holdouts(words):
    with pytest.raises(ValueError, match=words):
        nw.Agent.for_binary_rewards(arms=AB, **BAD[words])


def test_other_bad_input():
    plain = nw.Agent.for_binary_rewards(dim=2)
    for call, words in [
        (plain.gain, "there is no holdout"),
        (lambda: plain.compare(0, 1), "where they have names"),
        (lambda: nw.Agent.for_binary_rewards(2, baseline="A", holdout=0.1), "index of an arm"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    agent = nw.Agent.for_binary_rewards(arms=AB, baseline="B", holdout=0.1)
    before = repr(agent.rng.bit_generator.state)
    for call, words in [
        (lambda: agent.choose(None, actions=["A"]), "'B' is not on offer"),
        (lambda: agent.choose_many([None] * 2, [1, 2], actions=["A"]), "'B' is not on offer"),
        (lambda: agent.choose_many([None] * 2, [1, 2], subjects=[1]), "subjects has length 1"),
        (lambda: agent.choose(None, subject=0.5), "is 0.5"),
        (lambda: agent.gain(delta=2), "delta"),
        (lambda: agent.compare("A", "C"), "second is 'C'"),
        (lambda: agent.compare("A", "A"), "as first is"),
        (lambda: agent.compare("A", "B", steady=False), "not drawn at random"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    assert not agent.pending
    assert repr(agent.rng.bit_generator.state) == before
    assert "counts yet" in repr(agent.gain())
    index = nw.Agent.for_binary_rewards(2, baseline=1, holdout=0.1)
    with pytest.raises(ValueError, match="baseline 1 is not on offer"):
        index.choose(np.eye(2)[:1])


RUNS, LOOKS = 500, range(50, 5001, 50)


def looked_at(share, rates, seed, runs=RUNS):
    """Return how often intervals ever miss in tests with a holdout, and widths over the textbook's.

    All runs at once: bets of the formula, whose ends at the last look are those of `GroupRewards`.
    """
    rng, n = RNG(seed), LOOKS[-1]
    held = rng.random((runs, n)) < share
    r = (rng.random((runs, n)) < np.where(held, rates[1], rates[0])).astype(float)
    p, least = np.where(held, share, 1 - share), min(share, 1 - share)
    q = (np.hstack([np.zeros((runs, 1)), r.cumsum(axis=1)[:, :-1]]) + 0.5) / (np.arange(n) + 1)
    z = least * (r - q) / p * np.where(held, -1, 1)
    truth, missed = least * (rates[0] - rates[1]), np.zeros(runs, dtype=bool)
    for sign in (1, -1):
        sums = np.zeros((runs, len(STAKES)))
        for t in LOOKS:
            sums += np.log1p(sign * z[:, t - 50 : t, None] * STAKES).sum(axis=1)
            logs = sums - t * np.log1p(sign * STAKES * truth)
            missed |= np.exp(logs) @ PRIOR >= 40
    width = textbook = 0.0
    for i in range(min(runs, 50)):
        kept = GroupRewards.of(2, least, (0.0, 1.0)).after(held[i].astype(int), p[i], r[i])
        found = kept.bounds(0, 1, 0.05)
        counts = kept.totals[:, 0]
        rate = np.array(found.means)
        width += found.upper - found.lower
        textbook += 2 * 1.96 * math.sqrt((rate * (1 - rate) / counts).sum())
    return int(missed.sum()), width / textbook


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "rates"),
    [(0.05, (0.03, 0.03)), (0.05, (0.036, 0.03)), (0.05, (0.5, 0.45)), (0.5, (0.036, 0.03)),
     (0.1, (0.03, 0.03)), (0.5, (0.5, 0.5))],
)  # fmt: skip
def test_intervals_rarely_ever_miss_and_are_at_most_twice_as_wide(share, rates):
    """500 tests with 100 looks each; false alarm below 1e-6 if 0.05 is kept."""
    missed, ratio = looked_at(share, rates, 7)
    print(share, rates, missed, ratio)
    assert missed <= binom.isf(1e-6, RUNS, 0.05)
    assert ratio <= 2.0


def outside(sums, truth):
    """Return whether the interval of B less A misses the truth: what its bets have won by then.

    Of own rewards it holds the truth if any pair of means with this difference is possible.
    """
    n, limit = sums.totals[:, 0], math.log(2 / 0.05)
    for a, b, difference in ((1, 0, truth), (0, 1, -truth)):
        up, down = sums.up[a], sums.down[b]
        if sums.least:
            won = [log_wealth_of_sums(up + down, sums.count, difference, sums.least)]
        else:
            m = np.linspace(max(0.0, -difference), min(1.0, 1 - difference), 201)
            likely = sums.totals[b, 3] / max(n[b], 1)
            won = (
                log_wealth_of_sums(up, n[a], each + difference)
                + log_wealth_of_sums(down, n[b], 1 - each)
                for each in sorted(m.tolist(), key=lambda each: abs(each - likely))
            )
        if all(each >= limit for each in won):
            return True
    return False


def test_a_miss_is_one_of_the_interval():
    agent = played(nw.Agent.for_binary_rewards(arms=AB, randomise=0.5, among="all"), 900, RNG(8))
    for steady in (True, False):
        found = agent.compare("B", "A", steady=steady)
        sums = agent.experiment.plain if steady else agent.experiment.drawn
        for end, inwards in ((found.lower, 0.004), (found.upper, -0.004)):
            assert not outside(sums, end + inwards)
            assert outside(sums, end - inwards)


def looks_of(rng, share, rates):
    """Yield sums of own and of weighted rewards at every look, with an agent's policy and draws."""
    policy, arms = nw.SelfTunedUCB("binomial"), np.eye(2)
    state, own = policy.start(2), GroupRewards.of(2, 0.0, (0.0, 1.0))
    drawn = GroupRewards.of(2, share / 2, (0.0, 1.0))
    for _ in LOOKS:
        found = np.empty((50, 3))
        for row in found:
            k = policy.select(state, arms, rng)
            if rng.random() < share / 2:
                k, p = 1 - k, share / 2
            else:
                p = 1 - share / 2
            row[:] = k, p, rng.random() < rates[k]
            policy.update(state, arms[k], float(row[2]))
        group = found[:, 0].astype(int)
        own = own.after(group, found[:, 1], found[:, 2])
        drawn = drawn.after(group, found[:, 1], found[:, 2])
        yield own, drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "rates"), [(0.2, (0.03, 0.036)), (0.2, (0.5, 0.55)), (1.0, (0.03, 0.036))]
)
def test_compare_rarely_ever_misses_where_the_policy_learns(share, rates):
    """500 tests of 5000 decisions with 100 looks each; false alarm below 1e-6 if 0.05 is kept.

    Widths are those at the end by default, over the textbook's. Where the agent learns, weighted
    rewards have wider intervals: they are valid without steady rates.
    """
    truth, missed, widths = rates[1] - rates[0], np.zeros(2, dtype=int), []
    for rng in RNG(11).spawn(RUNS):
        bad = np.zeros(2, dtype=bool)
        for own, drawn in looks_of(rng, share, rates):
            bad |= [outside(own, truth), outside(drawn, truth)]
        missed += bad
        found = [each.bounds(1, 0, 0.05) for each in (own, drawn)]
        rate, n = np.array(found[0].means), own.totals[::-1, 0]
        textbook = 3.92 * math.sqrt((rate * (1 - rate) / n).sum())
        widths.append([(each.upper - each.lower) / textbook for each in found])
        if len(widths) % 50 == 0:
            print(share, rates, len(widths), missed, np.mean(widths, axis=0), flush=True)
    assert max(missed) <= binom.isf(1e-6, RUNS, 0.05)
    assert np.mean(widths, axis=0)[int(share == 1.0)] <= 2.0


def test_several_actions_chosen_together_are_held_out_together():
    """With an even draw as baseline, and uniform play of the agent: probabilities are even."""
    names = [f"offer {i}" for i in range(4)]
    agent = nw.Agent.for_binary_rewards(arms=nw.Arms(names, None), baseline="uniform", holdout=0.4)
    for key in range(300):
        chosen, p = agent.choose(None, key=key, top=2, with_probabilities=True)
        assert p.shape == (2, 4)
        assert p.sum(axis=1) == pytest.approx(1)
        assert p.min() == pytest.approx(0.1)
        agent.learn(key, [float(each == "offer 0") for each in chosen])
    found = agent.gain()
    counts = dict(found.counts)
    assert sum(counts["subjects"]) == 300
    assert sum(counts["decisions"]) == 600
    assert found.lower > 0
    with pytest.raises(ValueError, match="baseline='uniform' for several"):
        nw.Agent.for_binary_rewards(arms=AB, baseline="A", holdout=0.1).choose(None, top=2)
