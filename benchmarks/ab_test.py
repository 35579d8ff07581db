"""Intervals of A/B tests that are looked at all the time: python -m benchmarks.ab_test.

Draws the picture of the how-to, and prints how many visitors a test takes until it may be stopped,
over those that a test of fixed size is planned with. Visitors are assigned evenly. The test that is
drawn is the middle one of nine, by when it may be stopped.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

import noisewise as nw
from noisewise.agent.comparison.group_rewards import GroupRewards
from noisewise.experiments import plotting
from noisewise.theory import betting

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "ab-test.svg"
OLD, NEW, VISITORS, EVERY, DELTA = 0.10, 0.13, 8_000, 50, 0.05
TESTS, DRAWN, SEED = 500, 9, 2


def one_test(rng, seed):
    """Return what one test shows at every look: both intervals, as a table."""
    arms = nw.Arms(["old", "new"], interactions=None)
    test = nw.Agent.for_binary_rewards(
        arms=arms, seed=seed, randomise=1.0, among="all", record=0
    )  # fmt: skip
    looks = []
    for visitor in range(VISITORS):
        page = test.choose(key=visitor)
        test.learn(visitor, reward=float(rng.random() < (NEW if page == "new" else OLD)))
        if (visitor + 1) % EVERY == 0:
            found = test.compare("new", "old", delta=DELTA)
            half = norm.isf(DELTA / 2) * error(np.array(found.means), found.counts[0][1])
            ends = found.value, found.lower, found.upper, found.value - half, found.value + half
            looks.append((visitor + 1, *ends))
    return pd.DataFrame(looks, columns=["n", "value", "lower", "upper", "least", "most"])


def error(rates, counts):
    """Return the textbook's standard error of a difference of two rates."""
    return math.sqrt((rates * (1 - rates) / np.maximum(counts, 1)).sum())


def first_shown(rng, old, new, visitors):
    """Return the look at which a test first shows a difference, by bets and by the textbook."""
    shown = {"bets": math.inf, "textbook": math.inf}
    group = rng.integers(2, size=visitors)
    reward = (rng.random(visitors) < np.where(group, new, old)).astype(float)
    kept, limit = GroupRewards.of(2, 0.5, (0.0, 1.0)), math.log(2 / DELTA)
    for t in range(0, visitors, EVERY):
        at = slice(t, t + EVERY)
        kept = kept.after(group[at], np.full(EVERY, 0.5), reward[at])
        n, won = kept.totals[:, 0], kept.totals[:, 3] / 2
        won = max(
            betting.log_wealth_of_sums(kept.up[i] + kept.down[1 - i], kept.count, 0.0, kept.least)
            for i in (0, 1)
        )
        rates = kept.totals[:, 3] / np.maximum(kept.totals[:, 1], 1)
        far = abs(rates[1] - rates[0]) > norm.isf(DELTA / 2) * error(rates, n) > 0
        for name, is_shown in (("bets", won >= limit), ("textbook", far)):
            if is_shown:
                shown[name] = min(shown[name], t + EVERY)
        if max(shown.values()) < math.inf:
            break
    return shown


def planned(old, new, power=0.8):
    """Return the visitors of a test of fixed size, both groups together."""
    spread = old * (1 - old) + new * (1 - new)
    each = spread * ((norm.isf(DELTA / 2) + norm.ppf(power)) / (new - old)) ** 2
    return math.ceil(2 * each)


def stopped(table):
    """Return after how many visitors 0 is first outside of the interval."""
    return min(table["n"][(table["lower"] > 0) | (table["upper"] < 0)], default=math.inf)


def draw(table):
    """Draw one test, and how many tests without a difference have ever shown one."""
    figure, axes = plotting.panels(1, 2, height=3.6)
    draw_test(axes[0, 0], table[table["what"] == "test"])
    draw_false(axes[0, 1], table[table["what"] == "false"])
    plotting.headline(
        figure, "Look as often as you like: the interval closes in, and false winners stay rare"
    )
    return figure


def draw_test(axis, found):
    """Draw the intervals in percentage points, and where the test may be stopped."""
    n, ends = found["n"], 100 * found[["value", "lower", "upper", "least", "most"]]
    axis.fill_between(n, ends["lower"], ends["upper"], color=plotting.BLUE, alpha=0.18, lw=0)
    for name in ("lower", "upper"):
        axis.plot(n, ends[name], color=plotting.BLUE, lw=1.2)
    for name in ("least", "most"):
        axis.plot(n, ends[name], color=plotting.VERMILION, lw=0.9, ls="--")
    axis.plot(n, ends["value"], color=plotting.BLACK, lw=1.2)
    axis.axhline(0, color=plotting.BLACK, lw=0.8)
    axis.axhline(100 * (NEW - OLD), color=plotting.GREEN, lw=1.0, ls=":")
    axis.set(xlim=(0, VISITORS), ylim=(-6, 8), xlabel="visitors")
    axis.set_title("One test: new less old, in percentage points")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    stop = stopped(found)
    axis.axvline(stop, color=plotting.FAINT, lw=0.8)
    words = f"0 is outside:\nmay be stopped\nafter {stop:,.0f} visitors"
    axis.annotate(words, (stop, -5.7), (5, 0), textcoords="offset points", fontsize=8)
    last = ends.iloc[-1]
    plotting.label_ends(axis, {
        "textbook 95 %": (last["most"], plotting.VERMILION),
        "all times, 95 %": (last["upper"], plotting.BLUE),
        "true difference": (100 * (NEW - OLD), plotting.GREEN),
        "observed": (last["value"], plotting.BLACK),
    })  # fmt: skip


def draw_false(axis, found):
    """Draw the share of tests that have ever shown a difference that is none."""
    ends = {}
    for name, label, colour in (
        ("textbook", "textbook 95 %,\nlooked at all the time", plotting.VERMILION),
        ("bets", "all times, 95 %", plotting.BLUE),
    ):
        own = 100 * found[name].to_numpy(dtype=float)
        axis.plot(found["n"], own, color=colour, lw=1.6, ls="--" if name == "textbook" else "-")
        ends[label] = own[-1], colour
    axis.axhline(5, color=plotting.BLACK, lw=0.8)
    ends["promised: at most 5 %"] = 5.0, plotting.BLACK
    axis.set(xlim=(0, VISITORS), ylim=(0, 50), xlabel="visitors")
    axis.set_title(f"{TESTS} tests of equal pages: false winners, in %")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    plotting.label_ends(axis, ends)


def main():
    """Play, print and draw."""
    rng = np.random.default_rng(SEED)
    tests = [first_shown(each, OLD, OLD, VISITORS) for each in rng.spawn(TESTS)]
    n = np.arange(EVERY, VISITORS + 1, EVERY)
    shares = {
        name: (np.array([each[name] for each in tests])[:, None] <= n).mean(axis=0)
        for name in ("bets", "textbook")
    }
    print(f"false winners of {TESTS}: { ({k: float(v[-1]) for k, v in shares.items()}) }")
    for old, new in ((0.10, 0.12), (0.03, 0.036), (0.10, 0.14)):
        size = planned(0.10, 0.12) if new == 0.14 else planned(old, new)
        found = [
            first_shown(each, old, new, 6 * size)["bets"]
            for each in rng.spawn(60)
            for _ in range(10)
        ]
        middle, most = np.quantile(found, [0.5, 0.8]) / size
        print(f"{old} and {new}, planned {size:,}: half by {middle:.2f}, 80 % by {most:.2f} of it")
    shown = sorted((one_test(each, i) for i, each in enumerate(rng.spawn(DRAWN))), key=stopped)
    print("drawn tests may be stopped after", *map(stopped, shown))
    parts = [
        shown[DRAWN // 2].assign(what="test"), pd.DataFrame({"n": n, **shares, "what": "false"})
    ]  # fmt: skip
    plotting.write(draw, pd.concat(parts), PICTURE)


if __name__ == "__main__":
    main()
