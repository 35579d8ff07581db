"""Study `regressors`: every regressor on the same streams, its guarantee beside its regret."""

from typing import cast

import numpy as np
import pandas as pd

from ...checks import find
from ...protocols import AnyRegressor, Array
from .. import Record, checkpoints, plotting
from ..ingredients import regressor_lineup
from ..ingredients.regressor_lineup import WEIGHTED
from ..plotting import BLACK, BLUE, FAINT, GREEN, ORANGE, PINK, SKY, VERMILION
from ..verdicts import Verdict, less, near, rare

TITLE = "Every regressor on the same streams, and what it guarantees"
CLAIM = (
    "Five features, rows of length at most 1. Regret is relative to the true parameter or, under "
    "the adversary, to the best linear predictor in hindsight; on the drifting stream to the "
    "parameter of each round. The loss is half the squared error, or the log loss for the logistic "
    "link. Curves and table show regret with the noise of the "
    "labels averaged out (same mean, less variance); bands, bars and ± are two standard errors. "
    "The tick (in the table: in brackets) is what each method guarantees for these rows, labels "
    "and comparator: always, except that FTRL guarantees it with probability 95 % where labels are "
    "random. For methods that use weights, theorems cover the regret in the weighted loss, which "
    "has its own column, with the labels as drawn; methods that include the next row with weight 1 "
    "are not covered. With the logistic link only methods that take a link are compared: the "
    "others fit a linear mean, and their guarantees are for squared errors. FTRL has the ridge of "
    "its theorem, 4, and Ridge and Forward have 0.5; Minimax is given all rows in advance; rates "
    "of the gradient methods are tuned to horizon and noise; ExponentiatedGradient takes both "
    "signs except on mixtures. A dash: the method does not apply to the stream. A star: the lowest "
    "regret, or within two standard errors of it."
)
TRIALS = 16
ROUNDS = 500
STREAMS = {
    "stochastic": "linear mean, Gaussian noise of sd 0.5 clipped at 2",
    "adversarial": "minimax labels ±1, basis vectors in turn",
    "heteroscedastic": "noise of sd 0.5 to 5, weights ignored",
    WEIGHTED: "the same, with weights (0.5/sd)²",
    "mixture": "rows in the unit box, parameter in the simplex, labels 0 or 1",
    "logistic": "labels 0 or 1, parameter of length 2",
    "drifting": "as stochastic, the parameter makes a full turn",
}

STYLES = {
    "FTRL": (BLACK, "-"),
    "Ridge": (BLUE, "-"),
    "Forward": (SKY, "-"),
    "Forward, ridge 0": (SKY, "--"),
    "Aggregating": (PINK, "-"),
    "Minimax": (VERMILION, "-"),
    "HorizonFreeMinimax": (VERMILION, "--"),
    "GradientDescent": (GREEN, "-"),
    "NewtonStep": (BLUE, "--"),
    "SelfTuned": (BLACK, "--"),
    "ExponentiatedGradient": (ORANGE, "-"),
    "SimplexFTRL": (ORANGE, "--"),
    "RidgeMixture": (GREEN, "--"),
    "DiscountedForward": (PINK, "--"),
}
OWN = ((BLACK, ":"), (PINK, ":"), (GREEN, ":"), (VERMILION, ":"))
ALWAYS = ("FTRL", "Ridge", "SelfTuned", "GradientDescent", "RidgeMixture")
MOST, FIRST = 6, 3  # named curves in a panel; the first round shown


def cells(rounds: int) -> list[Record]:
    """One cell per world; the heteroscedastic one is played twice, without weights and with."""
    return [{"world": world, "rounds": rounds} for world in regressor_lineup.WORLDS]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play everyone on one draw: regret at twelve moments, the guarantee at the last."""
    world = regressor_lineup.draw(cell["world"], cell["rounds"], rng)
    worlds = [world.unweighted, world] if world.name == WEIGHTED else [world]
    own: dict[str, AnyRegressor] = {
        each["name"]: cast(AnyRegressor, find(each["target"])) for each in cell.get("own", ())
    }
    rows = []
    for each in worlds:
        for name, learner in regressor_lineup.learners(each).items():
            scores = regressor_lineup.play(learner, each)
            rows += _rows(each, name, scores, regressor_lineup.guarantee(learner, each, scores))
        for name, learner in own.items():
            rows += _guest(each, name, learner)
    return rows


def _guest(world: regressor_lineup.World, name: str, learner: AnyRegressor) -> list[Record]:
    """Play a user's regressor, of which no guarantee is known and which may refuse the stream."""
    try:
        scores = regressor_lineup.play(learner, world)
        if not np.isfinite(scores).all():
            raise ValueError("predictions are not finite")
    except ValueError as error:
        nothing = dict.fromkeys(("regret", "expected", "weighted_regret"), np.nan)
        rows = _rows(world, name, np.zeros(len(world.y)), np.nan)
        return [row | nothing | {"refused": str(error)} for row in rows]
    return _rows(world, name, scores, np.nan)


def _rows(world: regressor_lineup.World, name: str, scores: Array, bound: float) -> list[Record]:
    regret, expected = world.regret(scores), world.expected(scores)
    T, weighs = len(regret), world.name == WEIGHTED
    weighted = world.rescaled.regret(np.sqrt(world.weight) * scores) if weighs else regret
    return [
        {
            "stream": world.name,
            "regressor": name,
            "rounds": t,
            "regret": float(regret[t - 1]),
            "expected": float(expected[t - 1]),
            "bound": bound if t == T and not weighs else np.nan,
            "weighted_regret": float(weighted[t - 1]) if weighs else np.nan,
            "weighted_bound": bound if t == T and weighs else np.nan,
            "refused": "",
        }
        for t in checkpoints.spaced(T, 12)
    ]


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Who wins where: a line per regressor, a column per stream, a star for the best and equals."""
    last = checkpoints.last(table)
    names = last["regressor"].unique()
    lines = pd.DataFrame({"regret ± 2 se (guarantee)": ["lowest regret", *names]})
    shown = [(stream, stream, "expected", "bound") for stream in STREAMS]
    shown.append(("the same, weighted loss", WEIGHTED, "weighted_regret", "weighted_bound"))
    for title, stream, value, bound in sorted(shown, key=lambda each: list(STREAMS).index(each[1])):
        part = last[last["stream"] == stream]
        each = part.pivot(index="trial", columns="regressor", values=value)
        best = each.mean().idxmin()
        apart = each.sub(each[best], axis=0)
        equal = apart.mean() <= (2 * apart.sem()).fillna(0.0)
        bounds = part.groupby("regressor")[bound].mean()
        refused = part.groupby("regressor")["refused"].max()
        cells = [best]
        for name in names:
            if name not in each:
                cells.append("–")
            elif refused[name]:
                cells.append("refused")
            else:
                star = " ★" if equal[name] else ""
                far = f" ({_short(bounds[name])})" if np.isfinite(bounds[name]) else ""
                error = _short(2 * each[name].sem())
                cells.append(f"{_short(each[name].mean())} ± {error}{far}{star}")
        lines[title] = cells
    return lines


def _short(value: float) -> str:
    """Return three figures or so, the same number of places for numbers of a size."""
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """No guarantee broken; the game's value; what weights and the simplex are worth."""
    last = checkpoints.last(table)
    return {
        **_guaranteed(last),
        **_game(last[last["stream"] == "adversarial"]),
        **_worth(last),
        **_drift(last),
    }


def _guaranteed(last: pd.DataFrame) -> dict[str, Verdict]:
    """Weighted learners by the weighted loss; FTRL's bound may fail where labels are random."""
    regret = last["regret"].where(last["stream"] != WEIGHTED, last["weighted_regret"])
    bound = last["bound"].fillna(last["weighted_bound"])
    over = (regret > bound + 1e-9 * (1 + bound.abs())) & bound.notna()
    random = (last["regressor"] == "FTRL") & (last["stream"] != "adversarial")
    failed = over[random]
    failed.index = pd.MultiIndex.from_frame(last.loc[random, ["stream", "trial"]])
    return {
        "no guarantee that holds for sure was exceeded, those of weighted learners in the weighted "
        "loss": Verdict(not over[~random].any(), f"{(bound.notna() & ~random).sum()} checked"),
        "FTRL's, which may fail in 5 % of runs, does not fail more often on any stream": rare(
            failed, regressor_lineup.DELTA
        ),
    }


def _game(last: pd.DataFrame) -> dict[str, Verdict]:
    minimax = last[last["regressor"] == "Minimax"]
    value = minimax["bound"]
    off = (minimax["regret"] - value).abs().max()
    each = last.pivot(index="trial", columns="regressor", values="regret")
    apart = each.sub(each["Minimax"], axis=0).drop(columns="Minimax")
    lead = (apart.mean() / apart.sem()).fillna(0.0)
    return {
        "under the adversary the regret of Minimax is the game's value in every run": Verdict(
            off <= 1e-9 * value.max(), f"{value.mean():.4g}"
        ),
        "no method's mean regret lies below that value": near(lead, len(each), below=False),
    }


SOLVERS = ("FTRL", "Ridge", "Forward", "Forward, ridge 0", "Minimax", "HorizonFreeMinimax",
           "Aggregating", "NewtonStep")  # fmt: skip
FORGETTING = "DiscountedForward", "SelfTuned"


def _worth(last: pd.DataFrame) -> dict[str, Verdict]:
    expected = last.set_index(["stream", "regressor", "trial"])["expected"].sort_index()
    means = expected.groupby(level=["stream", "regressor"]).mean()
    gain = (means["heteroscedastic"] / means[WEIGHTED])[list(SOLVERS)].min()
    saved = expected["mixture", "Ridge"] - expected["mixture", "SimplexFTRL"]
    return {
        "weights lower the mean regret of all who solve least squares": Verdict(
            gain > 1, f"by a factor of {gain:.1f} at least"
        ),
        "knowing the simplex saves SimplexFTRL some of Ridge's regret on mixtures": Verdict(
            saved.mean() > 2 * saved.sem() if len(saved) > 1 else None,
            f"{saved.mean():.2f} ± {2 * saved.sem():.2f}"
            if len(saved) > 1
            else "needs at least two trials",
        ),
    }


def _drift(last: pd.DataFrame) -> dict[str, Verdict]:
    drifting = last[last["stream"] == "drifting"]
    regret = drifting.groupby("regressor")["expected"].apply(np.array)
    return {
        "where the parameter moves, those that forget have less regret than Forward": less(
            {name: (regret[name], regret["Forward"]) for name in FORGETTING},
            ", ".join(f"{name} {regret[name].mean():.1f}" for name in (*FORGETTING, "Forward")),
        )
    }


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A row per stream: regret over time with bands, and at the end beside the guarantee."""
    own = [name for name in table["regressor"].unique() if name not in STYLES]
    styles = STYLES | {name: OWN[i % len(OWN)] for i, name in enumerate(own)}
    figure, axes = plotting.panels(
        len(STREAMS), 2, width=10.0, height=2.6, wspace=0.08, hspace=0.06
    )
    curves = table.groupby(["stream", "regressor", "rounds"])["expected"]
    means, errors = curves.mean(), 2 * curves.sem()
    bounds = table.groupby(["stream", "regressor"])["bound"].mean()
    for (left, right), (stream, words) in zip(axes, STREAMS.items(), strict=True):
        ends = means[stream].unstack().iloc[:, -1].dropna().sort_values()
        named = [name for name in ends.index if name in (*ALWAYS, *own)]
        named += [name for name in ends.index if name not in named][: max(MOST - len(named), 0)]
        for place, (name, end) in enumerate(ends.items()):
            colour, dash = styles[name] if name in named else (FAINT, "-")
            mean, error = means[stream, name], errors[stream, name]
            left.plot(mean.index, mean, color=colour, ls=dash, zorder=2 if name in named else 1)
            if name in named:
                band = mean - error, mean + error
                left.fill_between(mean.index, *band, color=colour, alpha=0.15, lw=0)
            far, mark = bounds[stream, name], "|"
            if stream == WEIGHTED:
                far, mark = means["heteroscedastic", name].iloc[-1], "o"
            right.plot([end, far], [place, place], color=colour, ls=dash, lw=1, zorder=1)
            right.plot(
                far, place, mark, color=colour, mfc="white", mew=1.5, ms=5 if mark == "o" else 9
            )
            right.errorbar(
                end, place, xerr=error.iloc[-1], fmt="o", color=colour, ms=4, capsize=2, lw=1
            )
        loss = "log loss" if stream == "logistic" else "half squares"
        left.set(xscale="log", xlabel="rounds", ylabel=f"regret ({loss})")
        left.set_title(f"{stream}: {words}", fontsize=9)
        right.set(xscale="log", xlabel=f"regret at the end ({loss})", ylim=(len(ends) - 0.4, -0.6))
        plotting.name_rows(right, ends.index)
        shown = "● with weights   ○ without" if stream == WEIGHTED else "● regret   | guarantee"
        right.set_title(shown, fontsize=9, fontweight="normal", loc="right")
        for axis in (left, right):
            plotting.plain_logs(axis.xaxis)
            axis.minorticks_off()
        left.set_xlim(min(FIRST, means[stream].index[-1][1] / 2), means[stream].index[-1][1])
        plotting.label_ends(left, {name: (ends[name], styles[name][0]) for name in named}, 0.08)
    best = [means[stream].unstack().iloc[:, -1].idxmin() for stream in STREAMS]
    plotting.headline(
        figure, f"The least regret on {len(best)} streams goes to {len({*best})} different methods"
    )
    plotting.caption(
        figure,
        f"Means of {table['trial'].nunique()} runs. Bands and bars: two standard errors. Grey: "
        "methods named on the right only.",
    )
    return figure
