"""Study `figure-3`: FTRL's regret against dimension, horizon and variance, with its exact mean."""

import numpy as np
import pandas as pd

from ...environments import Cube, Sphere
from ...model.glm import GLM
from ...regression.ftrl.ftrl import FTRL
from ...simulate import predictions
from ...theory.regret import mean_regret_parts, stochastic_regret
from .. import Record, moments, plotting
from ..verdicts import Verdict, near

TITLE = "Regret against dimension, horizon and variance"
CLAIM = (
    "Rows uniform on the unit sphere, parameter uniform on the cube, identity link, ridge 4. Dots "
    "are measured, with two standard errors; curves are the exact mean regret given the design, "
    "not a fit. The regret is affine in the variance, a part from the ridge's bias plus a part in "
    "proportion to the variance, and logarithmic in the horizon. In the dimension it is concave: "
    "close to linear while d is far below T/17, it flattens, and the part of the variance peaks at "
    "d = T/17.3. Dotted: what a regret in proportion to the dimension would be. All horizons and "
    "variances of a dimension share rows and noise, so the cells are not independent checks."
)
TRIALS = 24
ROUNDS = (1000, 2000, 5000)
VARIANCES = (1, 4, 16)
DIMENSIONS = tuple(range(5, 55, 5))
RIDGE = 4.0


def cells(rounds: int | tuple[int, ...]) -> list[Record]:
    """One cell a dimension: a trial serves every horizon and variance with the same rows."""
    horizons = [rounds] if isinstance(rounds, int) else list(rounds)
    return [{"dimension": d, "rounds": horizons} for d in DIMENSIONS]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play one design at every variance; regret and its exact mean at every horizon."""
    d, horizons = cell["dimension"], cell["rounds"]
    x = Sphere().draw(rng, max(horizons), d)
    theta = Cube().draw(rng, d)
    noise = rng.normal(size=len(x))
    bias, variance = mean_regret_parts(x, sigma=1.0, ridge=RIDGE)
    squared = np.cumsum(0.5 * (bias @ theta) ** 2)
    spread = np.cumsum(variance)
    ftrl, rows = FTRL(GLM(), RIDGE), []
    for s2 in VARIANCES:
        y = x @ theta + np.sqrt(s2) * noise
        scores = predictions(ftrl, x, y, scores=True)
        regret = stochastic_regret(ftrl.glm, theta, x, y, scores)
        for T in horizons:
            rows.append(
                {
                    "rounds": T,
                    "dimension": d,
                    "variance": s2,
                    "regret": float(regret[T - 1]),
                    "mean_regret": float(squared[T - 1] + s2 * spread[T - 1]),
                }
            )
    return rows


def condense(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the moments over trials for every cell, of the bend of each trial too."""
    at = ["rounds", "dimension", "trial"]
    regret = rows.pivot(index=at, columns="variance", values="regret")
    low, middle, high = VARIANCES
    bend = (regret[high] - regret[middle]) / (high - middle) - (regret[middle] - regret[low]) / (
        middle - low
    )
    rows = rows.join(bend.rename("bend"), on=at).assign(away=rows["regret"] - rows["mean_regret"])
    return moments.of(
        rows, ("rounds", "variance", "dimension"), ("regret", "mean_regret", "away", "bend")
    )


def numbers(lines: pd.DataFrame) -> pd.DataFrame:
    """One line a cell: mean regret, standard error, exact mean, and their distance."""
    error = moments.error(lines["away"])
    shown = {
        "regret": lines["regret", "mean"],
        "mean_regret": lines["mean_regret", "mean"],
        "standard error": error,
        "distance in standard errors": lines["away", "mean"] / error,
    }
    return pd.DataFrame(shown).sort_index().reset_index()


def holds(over_trials: pd.DataFrame) -> dict[str, Verdict]:
    """Agreement with the exact mean, affine in the variance, concave in the dimension."""
    lines, trials = numbers(over_trials), moments.trials(over_trials["regret"])
    bend = over_trials["bend"].xs(VARIANCES[0], level="variance").sort_index()
    # dimensions are independent: a common lean of theirs shows in the sum
    together = lines.groupby(["rounds", "variance"])["distance in standard errors"]
    claims = {
        "in every cell the mean regret agrees with the exact mean": near(
            lines["distance in standard errors"], trials
        ),
        "over all dimensions the mean regret does not lean to one side of the exact mean": near(
            together.sum() / np.sqrt(together.count()), trials
        ),
        "the regret is affine in the variance": near(bend["mean"] / moments.error(bend), trials),
    }
    shortest = lines[lines["rounds"] == lines["rounds"].min()]
    shape = shortest.pivot(index="dimension", columns="variance", values="mean_regret")
    if len(shape) > 2:
        slopes = shape.diff().iloc[[1, -1]].to_numpy() / np.diff(shape.index)[[0, -1], None]
        left = (slopes[1] / slopes[0]).max()
        claims["at the shortest horizon the exact mean flattens with the dimension"] = Verdict(
            left < 0.5, f"the last step is {left:.2f} of the first"
        )
        fit = lines.groupby("rounds").apply(_linear_fit, include_groups=False)
        text = ", ".join(f"{T:,} rounds {r:.2f}" for T, r in fit.items())
        claims["a straight line in the dimension fits the shortest horizon worst"] = Verdict(
            fit.is_monotonic_increasing, f"R² {text}"
        )
    return claims


def _linear_fit(lines: pd.DataFrame) -> float:
    """Return R² of straight lines in the dimension through the exact means, variances averaged."""
    parts = [part for _, part in lines.groupby("variance")]
    return float(np.mean([np.corrcoef(p["dimension"], p["mean_regret"])[0, 1] ** 2 for p in parts]))


def plot(over_trials: pd.DataFrame) -> plotting.Figure:
    """A panel a variance: measured regret with errors, exact mean, and proportion to dimension."""
    lines = numbers(over_trials)
    figure, axes = plotting.panels(1, len(VARIANCES), width=10.4, height=3.4)
    for axis, (s2, panel) in zip(axes[0], lines.groupby("variance"), strict=True):
        ends = {}
        for colour, (T, part) in zip(plotting.COLOURS, panel.groupby("rounds"), strict=False):
            d, mean = part["dimension"], part["mean_regret"]
            axis.errorbar(d, part["regret"], 2 * part["standard error"], color=colour, fmt="o",
                          ms=3, elinewidth=1)  # fmt: skip
            axis.plot(d, mean, color=colour, lw=1.2)
            first = mean.iloc[0] / d.iloc[0]
            axis.plot([0, d.max()], [0, first * d.max()], color=colour, ls=":", lw=1)
            ends[f"{T:,} rounds"] = (mean.iloc[-1], colour)
        axis.set(title=f"noise variance {s2}", xlabel="number of features", xlim=(0, None))
        axis.set_ylim(0, 1.35 * panel["mean_regret"].max())
        plotting.label_ends(axis, ends)
    axes[0, 0].set_ylabel("regret, half squared loss")
    ends = lines.sort_values("dimension").groupby(["variance", "rounds"])[
        ["dimension", "mean_regret"]
    ]
    growth = ends.last() / ends.first()
    slower = bool((growth["mean_regret"] < growth["dimension"]).all())
    words = "more slowly than" if slower else "as fast as"
    plotting.headline(figure, f"Regret grows {words} the number of features")
    plotting.caption(
        figure,
        "Dots: measured, with two standard errors. Lines: the exact mean. Dotted: in proportion to "
        "the number of features.",
    )
    return figure
