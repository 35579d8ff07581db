"""Study `real-data`: shares of pupils in school districts, whose variance is not the binomial."""

import numpy as np
import pandas as pd

from ...protocols import Array
from ...support.printing import percent
from .. import Record, checkpoints, plotting
from ..ingredients import datasets, schools
from ..ingredients.schools import FITTED
from ..plotting import BLACK, BLUE, FAINT, GREEN, ORANGE, PINK, SKY, VERMILION
from ..verdicts import POWER, Mean, Verdict, decide, mean_power, rare

TITLE = "Real data: school districts whose variance is not the binomial's"
CLAIM = (
    "303 school districts of California (star98 of statsmodels): how many of 33 to 38,852 pupils "
    "were above the national median, and twelve features, standardised by 20 districts alone. If "
    "the features explained everything, a share of n pupils would have variance p(1 - p)/n; "
    "districts differ by more, small ones most. One pass: districts in random order, each "
    "predicted before it is seen; the spread in p(1 - p)(spread + 1/n) is estimated from residuals "
    "so far. Intervals: districts drawn with replacement, so that the fit to all 303 is the truth. "
    "Textbook intervals hold at one sample size, and with weight n only if the variance is right. "
    "Intervals that hold at all times need the mean to be right, which it never is exactly for "
    "real data. Given that, a share in [0, 1] of weight 1 is no noisier than a coin flip, so "
    "theory covers equal weights but not weights n. Bandit: each round ten districts are offered, "
    "the share among 1 to 100 pupils of the chosen one is seen, and the loss against the best of "
    "the ten is known; no model of the features always finds that one. Offers change at random, "
    "which explores at no cost, so nothing follows for fixed offers. Errors are over orders and "
    "draws of the same districts, not over other districts."
)
TRIALS = 32
ROUNDS = 1000
DECISIONS = True
PARTS = ("one pass", "intervals", "bandit")
BINS = 6
# Differences in a pilot (seeds 0, 1 and 2, 16 trials each), mean and sd of a trial: 32 trials
# decide the first with power 0.998; the second takes 56 trials, and is stated from there on.
WEIGHTED, SHARED = (0.21, 0.22), (1.36, 2.2)


def cells(rounds: int) -> list[Record]:
    """One cell per part."""
    datasets.require("statsmodels")
    return [{"part": part, "rounds": rounds} for part in PARTS]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """One trial of a part."""
    part, T = cell["part"], cell["rounds"]
    if part == "one pass":
        rows = _scores(schools.one_pass(rng))
    elif part == "intervals":
        rows = schools.intervals(T, rng)
    else:
        rows = [
            {
                "player": name,
                "rounds": t,
                "lost": float(lost[:t].sum()),
                "late": float(lost[-max(1, T // 4) :].mean()),
            }
            for name, lost in schools.bandit(T, rng).items()
            for t in checkpoints.spaced(T, 13)
        ]
    return [{"part": part, **row} for row in rows]


def _scores(passes: dict[str, tuple[Array, Array, Array]]) -> list[Record]:
    """Error of rates, deviance per pupil; squared residuals over p(1 - p) by size of district."""
    rows: list[Record] = []
    for name, (y, n, made) in passes.items():
        p = np.clip(made, 0.005, 0.995)
        deviance = 2 * n * (y * np.log(y / p) + (1 - y) * np.log((1 - y) / (1 - p)))
        rows.append(
            {
                "player": name,
                "error": float(np.sqrt(np.mean((made - y) ** 2))),
                "deviance": float(deviance.sum() / n.sum()),
            }
        )
        if name != "logistic, equal weights":
            continue
        for group in np.array_split(np.argsort(n, kind="stable"), BINS):
            square = (y - p)[group] ** 2 / (p * (1 - p))[group]
            size = float(np.exp(np.log(n[group]).mean()))
            rows.append({"player": "residuals", "size": size, "square": float(square.mean())})
    return rows


MEASURES = {
    "one pass": ("error of a rate, points; deviance per pupil", ("error", 100), ("deviance", 1)),
    "intervals": ("districts covered, %; width, points", ("coverage", 100), ("width", 100)),
    "bandit": ("lost in all, rates; per round at the end, points", ("lost", 1), ("late", 100)),
}


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """A line per learner: two measures of its part, ± two standard errors over the trials."""
    lines = []
    for (part, player, kind), group in _ends(table).groupby(
        ["part", "player", "kind"], sort=False, dropna=False
    ):
        words, *measures = MEASURES[part]
        line = {
            "part: first; second": f"{part}: {words}",
            "learner": f"{kind}, {player}" if isinstance(kind, str) else player,
        }
        for place, (column, scale) in zip(("first", "second"), measures, strict=True):
            mean, error = scale * group[column].mean(), 2 * scale * group[column].sem()
            line[place] = f"{mean:.3g} ± {error:.2g}"
        lines.append(line)
    return pd.DataFrame(lines)


def _ends(table: pd.DataFrame) -> pd.DataFrame:
    """Return what is judged: one pass whole, the other parts at their last moment."""
    last = table["rounds"] == table.groupby("part")["rounds"].transform("max")
    return table[(last | (table["part"] == "one pass")) & (table["player"] != "residuals")]


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """What was measured on these districts."""
    ends = _ends(table)
    passed, lost = (
        ends[ends["part"] == part].pivot(index="trial", columns="player", values=column)
        for part, column in (("one pass", "error"), ("bandit", "lost"))
    )
    late = ends[ends["part"] == "bandit"].groupby("player")["late"].mean()
    sets = ends[ends["part"] == "intervals"].groupby(["player", "kind"])
    covered, dispersion = sets["coverage"].mean(), sets["dispersion"].mean()["weight n", "binomial"]
    every = table[table["kind"] == "at all times"]
    missed = (every["critical"] > 1).groupby([every["player"], every["trial"]]).any()
    broken = missed.loc["weight n"].mean()
    plain, pearson = covered["weight n", "binomial"], covered["weight n", "Pearson"]
    equal, beyond = covered["equal weights", "Pearson"], late["FTRL-UCB"] - late[FITTED]
    return {
        "squared residuals of the binomial fit are over ten times too large (Pearson)": Verdict(
            dispersion > 10, f"{dispersion:.1f} times"
        ),
        "weighting by n predicts the rates worse than counting every district once": _more(
            passed["logistic, weight n"] - passed["logistic, equal weights"], "points", 100
        ),
        "weights with the estimated spread predict better than equal ones": _more(
            passed["logistic, equal weights"] - passed["logistic, spread estimated"], "points", 100
        ),
        "95 % intervals of the binomial fit cover less than half": Verdict(
            plain < 0.5, f"{percent(plain)} of districts at the end"
        ),
        "Pearson's dispersion repairs most of it, and with equal weights nearly all": Verdict(
            pearson > 0.75 and equal > 0.9,
            f"{percent(pearson)} with weights n, {percent(equal)} with equal",
        ),
        "sets that hold at all times, with equal weights, contained the fit to all districts": rare(
            missed.loc[["equal weights"]], 0.05
        ),
        "with weights n, which understate the noise, these sets fail": Verdict(
            broken > 0.5, f"in {percent(broken)} of the runs"
        ),
        **_mean_for_all(lost),
        "FTRL-UCB loses less with n than without": _more(
            lost["FTRL-UCB, without n"] - lost["FTRL-UCB"], "rates"
        ),
        "in the last quarter FTRL-UCB loses at most a point per round more than the fit to all "
        "districts": (
            Verdict(
                beyond < 0.01,
                f"{100 * late['FTRL-UCB']:.1f} and {100 * late[FITTED]:.1f} points per round",
            )
        ),
    }


def _more(difference: pd.Series, unit: str, scale: float = 1.0) -> Verdict:
    """Judge the sign of a paired difference (Student)."""
    trials = len(difference)
    if trials < 2:
        return Verdict(None, "needs at least two trials")
    mean, error = scale * difference.mean(), scale * difference.sem()
    chance = Mean(-mean, error, trials - 1).chance(0.0)
    text = f"{mean:+.3g} {unit}, standard error {error:.2g} over the trials"
    return decide(chance, 1 - chance, text)


def _mean_for_all(lost: pd.DataFrame) -> dict[str, Verdict]:
    """Judge what knowing each n is worth, where trials are enough for it."""
    if len(lost) < 2 or mean_power(*SHARED, len(lost)) < POWER:
        return {}
    worth = lost["FTRL-UCB, mean n for all"] - lost["FTRL-UCB"]
    return {"FTRL-UCB loses less with n than with the mean n for all": _more(worth, "rates")}


KINDS = {
    "binomial, weight n": (VERMILION, "-"),
    "Pearson, weight n": (ORANGE, "-"),
    "sandwich, weight n": (PINK, "-"),
    "at all times, weight n": (BLACK, "-"),
    "binomial, equal weights": (GREEN, "-"),
    "Pearson, equal weights": (BLUE, "-"),
    "at all times, equal weights": (BLACK, "--"),
}
STYLES = {
    "FTRL-UCB": (BLUE, "-"),
    "FTRL-UCB, mean n for all": (BLUE, "--"),
    "FTRL-UCB, without n": (BLUE, ":"),
    "FTRL-UCB, guaranteed": (SKY, "-"),
    "MOR-UCB": (VERMILION, "-"),
    "Thompson": (GREEN, "-"),
    "greedy": (PINK, "-"),
    "linear FTRL-UCB": (SKY, "--"),
    "weighted LinUCB": (ORANGE, "-"),
    "LinUCB": (ORANGE, "--"),
    "OFUL": (ORANGE, ":"),
    "uniform": (BLACK, ":"),
    FITTED: (BLACK, "-"),
}
NAMED = ("FTRL-UCB", "MOR-UCB", "Thompson", "LinUCB", "uniform", FITTED)


def plot(table: pd.DataFrame) -> plotting.Figure:
    """Residuals, one pass; coverage, width; what is lost over time and at the end."""
    figure, axes = plotting.panels(3, 2, width=10.0, height=3.2, wspace=0.06, hspace=0.06)
    _residuals(axes[0, 0], table[table["player"] == "residuals"])
    ends = _ends(table)
    _passes(axes[0, 1], ends[ends["part"] == "one pass"])
    part = table[table["part"] == "intervals"]
    _kinds(axes[1, 0], part, "coverage")
    axes[1, 0].axhline(95, color=BLACK, lw=0.8, ls=":")
    axes[1, 0].set(
        title="95 % intervals: districts covered", ylabel="share of districts", ylim=(0, 103)
    )
    axes[1, 0].yaxis.set_major_formatter("{x:g} %")
    _kinds(axes[1, 1], part, "width")
    axes[1, 1].set(title="95 % intervals: width", ylabel="median, percentage points", yscale="log")
    plotting.plain_logs(axes[1, 1].yaxis)
    last = 100 * ends.groupby(ends["kind"] + ", " + ends["player"])["width"].mean()
    plotting.label_ends(axes[1, 1], {name: (last[name], KINDS[name][0]) for name in KINDS})
    part = table[table["part"] == "bandit"]
    part = part.assign(mean=100 * part["lost"] / part["rounds"])
    for name, (colour, dash) in STYLES.items():
        shown = name in NAMED
        look = {"color": colour if shown else FAINT, "ls": dash if shown else "-"}
        plotting.band(
            axes[2, 0], part[part["player"] == name], "mean", lw=1.6 if shown else 0.8, **look
        )
    axes[2, 0].set(title="bandit: loss per round so far", yscale="log", ylabel="percentage points",
                   ylim=(1.5, 50))  # fmt: skip
    plotting.log_rounds(axes[2, 0], part["rounds"].max())
    final = part[part["rounds"] == part["rounds"].max()].groupby("player")["mean"].mean()
    plotting.label_ends(axes[2, 0], {name: (final[name], STYLES[name][0]) for name in NAMED})
    _dots(axes[2, 1], 100 * ends[ends["part"] == "bandit"].pivot(
        index="trial", columns="player", values="late"), STYLES)  # fmt: skip
    axes[2, 1].set(
        title="bandit: loss per round in the last quarter", xlabel="percentage points", xscale="log"
    )
    for axis in (axes[2, 0].yaxis, axes[2, 1].xaxis):
        plotting.plain_logs(axis)
    covered = ends[ends["kind"] == "binomial"].groupby("player")["coverage"].mean()["weight n"]
    plotting.headline(
        figure,
        "Districts differ more than binomial shares would: 95 % intervals of that model cover "
        f"{100 * covered:.0f} %",
    )
    return figure


def _passes(axis: plotting.Axes, part: pd.DataFrame) -> None:
    """Errors above that of the binomial fit, paired; the baseline is far off."""
    errors = 100 * part.pivot(index="trial", columns="player", values="error")
    base = errors.pop("share of all so far").mean()
    binomial = errors["logistic, weight n"]
    _dots(axis, errors.sub(binomial, axis=0), {})
    axis.axvline(0, color=BLACK, lw=0.8)
    axis.set(title="prediction error, one step ahead",
             xlabel=f"percentage points above logistic, weight n ({binomial.mean():.1f})\n"
                    f"(running mean of all districts: {base:.1f})")  # fmt: skip


def _residuals(axis: plotting.Axes, part: pd.DataFrame) -> None:
    """Squared residuals against the size of the district, beside what the binomial says."""
    group = part.groupby(part.groupby("trial").cumcount())
    size, square = np.exp(np.log(part["size"]).groupby(group.ngroup()).mean()), group["square"]
    axis.errorbar(size, square.mean(), yerr=2 * square.sem().fillna(0.0), fmt="o", ms=4, color=BLUE)
    n = np.geomspace(size.min() / 1.3, size.max() * 1.3, 50)
    spread = float((square.mean().to_numpy() - 1 / size.to_numpy()).mean())
    axis.plot(n, 1 / n, color=VERMILION)
    axis.plot(n, spread + 1 / n, color=GREEN)
    axis.set(xscale="log", yscale="log", title="residuals are not binomial",
             xlabel="pupils tested, n", ylabel="mean of residual² / p(1 − p)")  # fmt: skip
    for each in (axis.xaxis, axis.yaxis):
        plotting.plain_logs(each)
    middle = float(np.sqrt(n[0] * n[-1]))
    for words, y, colour in (
        ("binomial, 1/n", 1.5 / middle, VERMILION),
        ("spread + 1/n", 1.5 * spread, plotting.INK[GREEN]),
    ):
        axis.annotate(words, (middle, y), color=colour, fontsize=8)


def _kinds(axis: plotting.Axes, part: pd.DataFrame, column: str) -> None:
    for name, (colour, dash) in KINDS.items():
        shown = part[part["kind"] + ", " + part["player"] == name]
        shown = shown.assign(**{column: 100 * shown[column]})
        plotting.band(axis, shown, column, color=colour, ls=dash, marker="o", ms=3)
    axis.set(xscale="log", xlabel="districts learnt")
    plotting.plain_logs(axis.xaxis)


def _dots(axis: plotting.Axes, values: pd.DataFrame, styles: dict[str, tuple[str, str]]) -> None:
    """Draw the mean of every column with two standard errors, the least on top."""
    means, errors = values.mean().sort_values(ascending=False), values.sem().fillna(0.0)
    for place, (name, mean) in enumerate(means.items()):
        colour, dash = styles.get(name, (BLUE, "-"))
        if styles:
            axis.plot([values.min().min(), mean], [place, place], color=colour, ls=dash, lw=1.2)
        axis.errorbar(mean, place, xerr=2 * errors[name], fmt="o", ms=4, capsize=2, color=colour)
    plotting.name_rows(axis, means.index)
