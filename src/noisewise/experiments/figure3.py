"""Study `figure-3`: FTRL's regret against dimension, horizon and variance, with its exact mean."""

from typing import Any

import numpy as np
import pandas as pd

from ..environments import Cube, Sphere
from ..glm import GLM
from ..regression.ftrl import FTRL
from ..simulate import predictions
from ..theory.regret import mean_regret_parts, stochastic_regret
from . import canvas

TITLE = "Regret against dimension, horizon and variance"
CLAIM = (
    "Rows uniform on the unit sphere, parameter uniform on the cube, identity link, ridge 4. The "
    "dashed curves are the exact mean regret given the design, not a fit. The regret is linear in "
    "the variance and logarithmic in the horizon. In the dimension it is concave: close to linear "
    "while d is far below T/17, it flattens, and its variance part peaks at d = T/17.3."
)
TRIALS = 24
ROUNDS = (1000, 2000, 5000)
VARIANCES = (1, 4, 16)
DIMENSIONS = tuple(range(5, 55, 5))
RIDGE = 4.0


def cells(rounds: int | tuple[int, ...]) -> list[dict[str, Any]]:
    """One cell a dimension: a trial serves every horizon and variance with the same rows."""
    horizons = [rounds] if isinstance(rounds, int) else list(rounds)
    return [{"dimension": d, "rounds": horizons} for d in DIMENSIONS]


def data(cell: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
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


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line a cell: mean regret, standard error, exact mean, and their distance."""
    grouped = table.groupby(["rounds", "variance", "dimension"])
    away = grouped.apply(lambda part: part["regret"] - part["mean_regret"], include_groups=False)
    away = away.groupby(level=[0, 1, 2])
    lines = grouped[["regret", "mean_regret"]].mean()
    lines["standard error"] = away.std() / np.sqrt(away.count())
    lines["distance in standard errors"] = away.mean() / lines["standard error"]
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, bool]:
    """Every cell's mean within 4.5 standard errors of the exact mean, and the concave shape."""
    lines = numbers(table)
    far = lines["distance in standard errors"].abs().max()
    longest = lines[lines["rounds"] == lines["rounds"].min()]
    bends = []
    for _, part in longest.groupby("variance"):
        steps = np.diff(part.sort_values("dimension")["mean_regret"])
        bends.append(steps[-1] < 0.5 * steps[0])
    return {
        f"in all {len(lines)} cells the mean regret is within 4.5 standard errors of the exact "
        f"mean (largest {far:.1f})": far <= 4.5,
        "at the shortest horizon the exact mean flattens with the dimension": all(bends),
    }


def plot(table: pd.DataFrame) -> Any:
    """A panel a horizon: mean regret with standard errors, exact mean dashed."""
    lines = numbers(table)
    horizons = sorted(lines["rounds"].unique())
    figure, axes = canvas.panels(1, len(horizons), height=3.4)
    for axis, T in zip(axes[0], horizons, strict=True):
        for colour, (s2, part) in zip(
            canvas.COLOURS, lines[lines["rounds"] == T].groupby("variance"), strict=False
        ):
            axis.errorbar(
                part["dimension"], part["regret"], part["standard error"], color=colour,
                marker="o", ms=3, lw=0, elinewidth=1, label=f"noise variance {s2}",
            )  # fmt: skip
            axis.plot(part["dimension"], part["mean_regret"], color=colour, ls="--", lw=1)
        axis.set(title=f"{T:,} rounds", xlabel="number of features", yscale="log")
    axes[0, 0].set_ylabel("regret, half squared loss")
    axes[0, 0].legend(fontsize=7)
    axes[0, -1].plot([], [], color="black", ls="--", lw=1, label="exact mean")
    axes[0, -1].legend(fontsize=7)
    return figure
