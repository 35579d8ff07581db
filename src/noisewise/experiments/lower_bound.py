"""Study `lower-bound`: what no learner can beat, and who attains it."""

from typing import Any

import numpy as np
import pandas as pd

from ..bessel import PRIORS
from ..environments import Hard
from ..glm import GLM
from ..regression.ftrl import FTRL
from ..simulate import predictions
from ..theory import basis_lower_bound
from ..theory.lower import prior_precision
from ..theory.regret import pseudo_regret
from . import canvas

TITLE = "The lower bound, and how close FTRL comes"
CLAIM = (
    "Basis vectors in turn, Gaussian noise of standard deviation 1, a parameter from the prior "
    "that is hardest to learn: on the ball, on the cube, or Gaussian with mean square length 1. "
    "Averaged over the prior, no learner's regret lies below the dashed line. Under the Gaussian "
    "prior FTRL whose ridge matches the prior attains it: the constant one half in front of "
    "σ² d log T is exact. Regret here is the sum of half squared errors of the predicted mean, "
    "which has the same average as the regret and scatters less."
)
TRIALS = 100
ROUNDS = 1000
DIMENSIONS = (2, 5, 20)


def cells(rounds: int) -> list[dict[str, Any]]:
    """One cell a prior and a dimension."""
    return [
        {"prior": prior, "dimension": d, "rounds": rounds} for prior in PRIORS for d in DIMENSIONS
    ]


def data(cell: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Play three learners on one draw of the parameter; regret at twelve moments."""
    d, prior = cell["dimension"], cell["prior"]
    rounds = Hard(prior=prior).draw(rng, cell["rounds"], d)
    glm = GLM(parameter_bound=10.0)
    learners = {
        "ridge matched to the prior": prior_precision(d, prior=prior) / 2,
        "prescribed ridge": GLM().ridge,
        "ridge 0.05": 0.05,
    }
    moments = np.unique(np.geomspace(1, cell["rounds"], 12).round().astype(int))
    rows = []
    for learner, ridge in learners.items():
        scores = predictions(FTRL(glm, ridge), rounds.x, rounds.y, scores=True)
        regret = pseudo_regret(glm, rounds.theta, rounds.x, scores)  # type: ignore[arg-type]
        rows += [
            {
                "prior": prior,
                "dimension": d,
                "learner": learner,
                "rounds": int(t),
                "regret": float(regret[t - 1]),
                "lower": basis_lower_bound(d, int(t), prior=prior),
            }
            for t in moments
        ]
    return rows


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line a prior, dimension and learner: regret at the end over the lower bound."""
    last = table[table["rounds"] == table["rounds"].max()]
    grouped = last.groupby(["prior", "dimension", "learner"], sort=False)
    lines = grouped[["lower", "regret"]].mean()
    lines["standard error"] = grouped["regret"].sem()
    lines["regret over lower bound"] = lines["regret"] / lines["lower"]
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, bool]:
    """Nobody below the bound, and the matched learner on it under the Gaussian prior."""
    lines = numbers(table)
    away = (lines["regret"] - lines["lower"]) / lines["standard error"]
    matched = lines["learner"].str.startswith("ridge matched")
    equal = away[matched & (lines["prior"] == "gaussian")]
    worst = lines.loc[matched, "regret over lower bound"].max()
    return {
        f"no learner's mean is below the bound by 4.5 standard errors (lowest {away.min():+.1f})": (
            away.min() >= -4.5
        ),
        "under the Gaussian prior the matched learner attains it within 4.5 standard errors "
        f"(furthest {equal.abs().max():.1f})": equal.abs().max() <= 4.5,
        f"the matched learner is within a factor {worst:.2f} of the bound in every cell": worst < 2,
    }


def plot(table: pd.DataFrame) -> Any:
    """A row a prior, a column a dimension: mean regret with bands above the dashed bound."""
    dims = sorted(table["dimension"].unique())
    figure, axes = canvas.panels(len(PRIORS), len(dims), width=10.0, height=2.5)
    for row, prior in zip(axes, PRIORS, strict=True):
        for axis, d in zip(row, dims, strict=True):
            part = table[(table["prior"] == prior) & (table["dimension"] == d)]
            for learner, path in part.groupby("learner", sort=False):
                grouped = path.groupby("rounds")["regret"]
                mean, error = grouped.mean(), 2 * grouped.sem()
                (line,) = axis.plot(mean.index, mean, label=learner)
                axis.fill_between(
                    mean.index, mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0
                )
            bound = part.groupby("rounds")["lower"].mean()
            axis.plot(bound.index, bound, color="black", ls="--", lw=1.2, label="lower bound")
            axis.set(xscale="log", title=f"{prior} prior, {d} features")
        row[0].set_ylabel("regret (half squared loss)")
    for axis in axes[-1]:
        axis.set_xlabel("rounds")
    axes[0, 0].legend(fontsize=7)
    return figure
