"""Study `replay`: what a log of 10,000 real decisions can say of another policy, and what not."""

import numpy as np
import pandas as pd

from ...bandits import FTRLUCB, Greedy
from ...model.glm import GLM
from ...protocols import AnyPolicy
from ...support.printing import percent
from .. import Record, plotting
from ..ingredients import datasets, offline_evaluation
from ..plotting import BLACK, BLUE, GREEN, ORANGE, PINK, SKY, VERMILION
from ..verdicts import Verdict, rare

TITLE = "Real data: what a log of 10,000 decisions can say of a policy"
CLAIM = (
    "Three campaigns of a fashion shop (the sample of the Open Bandit Dataset that comes with "
    "obp): 34, 46 or 80 items, each with 10,000 decisions drawn uniformly, with some 40 clicks, "
    "and as many of the shop's own Thompson sampling, with its probabilities. A policy that learns "
    "is evaluated in two ways. Replay: it chooses at every event, and sees the click only if it "
    "chose the item that was shown. Whole log: it chooses before every event and learns from all, "
    "and clicks on the items it chose count times the number of items. Both are right on average "
    "if customers do not change, and both rest on the clicks at matched events, one event in 34 to "
    "80. Their intervals are those of a Poisson count, at its mean over orders of the log; those "
    "of the logging policies are two standard errors. Drawn clicks of known rates, as rare as the "
    "real ones and twenty times as frequent, show that intervals cover and when a difference is "
    "seen. Values from one log and the other agree within wide bars; the logs are too short to "
    "conclude which policy is better."
)
TRIALS = 4
ROUNDS = 10_000
DECISIONS = True
DRAWS = 5
LEVELS = (1, 20)
GLM_BOUNDS = (2.0, 4.0)


def cells(rounds: int) -> list[Record]:
    """One cell per campaign, and per level of drawn clicks."""
    datasets.require("obp")
    real = [{"campaign": name, "rounds": rounds} for name in datasets.CAMPAIGNS]
    drawn = [{"campaign": "men", "rounds": rounds, "level": level} for level in LEVELS]
    return [*real, *drawn]


def policies() -> dict[str, AnyPolicy]:
    """Return those that learn."""
    glm = GLM("logistic", *GLM_BOUNDS)
    return {"FTRL-UCB": FTRLUCB(glm, "likelihood", radius="practical"), "greedy": Greedy(glm)}


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Judge the policies on one order of a real log, or on several drawn ones."""
    log = datasets.open_bandit(cell["campaign"])
    level = cell.get("level", 0)
    same = {"campaign": cell["campaign"], "level": level}
    x = offline_evaluation.catalogue(log)
    if not level:
        rows = offline_evaluation.across(cell["campaign"])
        order = rng.permutation(len(log.item))[: cell["rounds"]]
        item, click = log.item[order], log.click[order]
        for name, policy in policies().items():
            rows += [
                {"policy": name, **row}
                for row in offline_evaluation.judged(policy, x, item, click, rng)
            ]
        return [{**same, "draw": 0, **row} for row in rows]
    rows = []
    for draw in range(DRAWS):
        rates = offline_evaluation.drawn_rates(x, level, rng)
        item = rng.integers(len(x), size=int(cell["rounds"]))
        click = (rng.random(len(item)) < rates[item]).astype(np.float64)
        made = offline_evaluation.judged(policies()["FTRL-UCB"], x, item, click, rng, rates)
        even = float(rates.mean())
        rows += [{**same, "draw": draw, "policy": "FTRL-UCB", "even": even, **row} for row in made]
    return rows


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """A line per way to judge a policy; rates are clicks per 1000, means over orders or draws."""
    lines = []
    for (campaign, level, policy, way), group in table.groupby(
        ["campaign", "level", "policy", "way"], sort=False
    ):
        line = {
            "campaign": campaign,
            "clicks are": f"drawn, rate x {level}" if level else "logged",
            "policy": policy,
            "judged by": way,
            "events that count": f"{group['matched'].mean():,.0f}",
            "clicks": f"{group['clicks'].mean():.3g}",
        }
        rate, low, high = (1000 * each for each in _interval(group))
        line["clicks per 1000"] = f"{rate:.1f} ({max(low, 0.0):.1f} to {high:.1f})"
        line["known value"] = f"{1000 * group['truth'].mean():.1f}" if level else "–"
        lines.append(line)
    return pd.DataFrame(lines)


def _interval(group: pd.DataFrame, level: float = 0.95) -> tuple[float, float, float]:
    """Return rate and interval at the mean count of clicks, or those of a logging policy."""
    if group["error"].notna().any():
        return tuple(group[["rate", "low", "high"]].mean())
    clicks, scale = float(group["clicks"].mean()), float(group["scale"].mean())
    low, high = offline_evaluation.poisson_interval(clicks, level)
    return scale * clicks, scale * low, scale * high


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """Whether the logs are what they say, what they show, and whether intervals cover."""
    real, drawn = table[table["level"] == 0], table[table["level"] > 0]
    uneven = real.groupby("campaign")["uneven"].mean()
    own = real[real["error"].notna()].groupby(["campaign", "policy", "way"])
    rate, error = own["rate"].mean().unstack(), own["error"].mean().unstack()
    apart = (rate["own log"] - rate["other log"]) / np.hypot(error["own log"], error["other log"])
    learnt = real[real["error"].isna()].groupby(["campaign", "policy", "way"])
    even = rate["own log"].xs(offline_evaluation.EVEN, level="policy")
    ends = {key: _interval(group, 1 - 0.05 / learnt.ngroups) for key, group in learnt}
    differ = [key for key, (_, low, high) in ends.items() if not low <= even[key[0]] <= high]
    clicks = learnt["clicks"].mean()
    missed = (drawn["truth"] < drawn["low"]) | (drawn["truth"] > drawn["high"])
    run = drawn["trial"] * DRAWS + drawn["draw"]
    missed.index = pd.MultiIndex.from_arrays([drawn["level"], drawn["way"], run])
    whole = drawn[drawn["way"] == "whole log"]
    seen = (whole["low"] > whole["even"]).groupby(whole["level"]).mean()
    rarely, often = (float(seen[level]) for level in LEVELS)
    return {
        "the uniform draw showed all items equally often (chi-square)": Verdict(
            uneven.min() > 1e-4, f"least p {uneven.min():.2g}; false alarm at most 3e-4"
        ),
        "the value of either logging policy from the other's log agrees with its own": Verdict(
            apart.abs().max() < 4.5, f"{apart.abs().max():.1f} standard errors apart at worst"
        ),
        "the real log shows a difference between a policy that learns and uniform draws": Verdict(
            True if differ else None,
            f"{len(differ)} of {len(ends)} intervals exclude its rate; {clicks.min():.1f} to "
            f"{clicks.max():.1f} matched clicks"
            + (
                ""
                if differ
                else "; undecided, since the logs hold too few clicks on what these "
                "policies choose, and no number of trials adds any"
            ),
        ),
        "with drawn clicks, 95 % intervals hold the known value": rare(missed, 0.05),
        "with drawn clicks as rare as real ones, FTRL-UCB is seldom seen to beat the uniform "
        "draw; with twenty times as many, mostly": Verdict(
            rarely < 0.5 < often,
            f"in {percent(rarely)} and {percent(often)} of the draws, whole log",
        ),
    }


STYLES = {
    offline_evaluation.EVEN: BLACK,
    offline_evaluation.SHOP: ORANGE,
    "FTRL-UCB": BLUE,
    "greedy": PINK,
}


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A panel per campaign with all estimates; drawn clicks against the truth; how long a log."""
    figure, axes = plotting.panels(2, 3, width=10.5, height=3.1, wspace=0.05, hspace=0.08)
    real = table[table["level"] == 0]
    for axis, campaign in zip(axes[0], datasets.CAMPAIGNS, strict=True):
        _estimates(axis, real[real["campaign"] == campaign])
        axis.set(title=f"campaign {campaign}", xlabel="clicks per 1000")
    far = max(axis.get_xlim()[1] for axis in axes[0])
    for axis in axes[0]:
        axis.set_xlim(-1.5, far)
    for axis in axes[0, 1:]:
        axis.set_yticklabels([])
    for axis, level in zip(axes[1], LEVELS, strict=False):
        _drawn(axis, table[table["level"] == level])
        axis.set_title("clicks drawn, as rare" if level == 1 else f"{level} times as frequent")
    _lengths(axes[1, 2], real)
    plotting.headline(figure, _lesson(real))
    plotting.caption(figure, "Bars: 95 % intervals. Dotted: the even draw that made the log.")
    return figure


def _lesson(real: pd.DataFrame) -> str:
    """Return what the intervals of FTRL-UCB on the real logs say of it beside the even draw."""
    own = real[(real["policy"] == offline_evaluation.EVEN) & (real["way"] == "own log")]
    even = own.groupby("campaign")["rate"].mean()
    learnt = real[real["policy"] == "FTRL-UCB"].groupby(["campaign", "way"])
    apart = [
        not low <= even[name] <= high
        for (name, _), group in learnt
        for _, low, high in [_interval(group)]
    ]
    found = "seldom tells" if any(apart) else "cannot tell"
    return f"A log of 10,000 decisions {found} whether FTRL-UCB beats an even draw"


def _estimates(axis: plotting.Axes, part: pd.DataFrame) -> None:
    groups = list(part.groupby(["policy", "way"], sort=False))
    for place, ((policy, _), group) in enumerate(groups):
        rate, low, high = (1000 * each for each in _interval(group))
        bars = [[rate - max(low, 0.0)], [high - rate]]
        axis.errorbar(rate, -place, xerr=bars, fmt="o", ms=4, capsize=2, color=STYLES[policy])
    own = part[(part["policy"] == offline_evaluation.EVEN) & (part["way"] == "own log")]
    axis.axvline(1000 * own["rate"].mean(), color=BLACK, lw=0.8, ls=":")
    labels = [f"{policy}, {way}" for (policy, way), _ in groups]
    axis.set_yticks(-np.arange(len(groups)), labels)
    axis.grid(axis="y", visible=False)


def _drawn(axis: plotting.Axes, part: pd.DataFrame) -> None:
    """Estimates with intervals against what the policy was worth."""
    for way, colour in zip(offline_evaluation.WAYS, (SKY, BLUE), strict=True):
        shown = 1000 * part.loc[part["way"] == way, ["truth", "rate", "low", "high"]]
        bars = [shown["rate"] - shown["low"], shown["high"] - shown["rate"]]
        axis.errorbar(
            shown["truth"], shown["rate"], yerr=bars, fmt="o", ms=3, lw=0.7, color=colour, label=way
        )
    even = 1000 * part["even"].mean()
    top = 1050 * part["truth"].max()
    axis.plot([0, top], [0, top], color=BLACK, lw=0.8)
    axis.axhline(even, color=BLACK, lw=0.8, ls=":", label=offline_evaluation.EVEN)
    axis.set(
        xlabel="known value, clicks per 1000", ylabel="estimate, 95 % interval", ylim=(0, None)
    )
    axis.legend(loc="upper left", fontsize=8)


def _lengths(axis: plotting.Axes, real: pd.DataFrame) -> None:
    """How far the ends of an interval lie from a rate as real ones, by the length of the log."""
    events = np.geomspace(1e3, 1e8, 60)
    for campaign, colour in zip(datasets.CAMPAIGNS, (BLUE, VERMILION, GREEN), strict=True):
        own = real[(real["campaign"] == campaign) & (real["way"] == "own log")]
        rate = own[own["policy"] == offline_evaluation.EVEN]["rate"].mean()
        items = len(datasets.open_bandit(campaign).features)
        matched = events * rate / items
        ends = (
            np.array([offline_evaluation.poisson_interval(each) for each in matched])
            / matched[:, None]
        )
        axis.plot(events, ends, color=colour)
        axis.plot([], [], color=colour, label=f"{campaign}, {items} items")
    axis.axvline(1e4, color=BLACK, lw=0.8, ls=":")
    axis.annotate("these\nlogs", (8e3, 0.11), fontsize=7.5, ha="right")
    axis.set(xscale="log", yscale="log", ylim=(0.1, 10), title="how long a log must be",
             xlabel="decisions of an even draw", ylabel="ends of the interval / rate")  # fmt: skip
    plotting.plain_logs(axis.yaxis)
    axis.legend(loc="upper right", fontsize=8)
