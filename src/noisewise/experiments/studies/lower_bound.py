"""Study `lower-bound`: what no method can beat, and who attains it."""

import numpy as np
import pandas as pd

from ...environments import Hard
from ...model.glm import GLM
from ...numerics.bessel import PRIORS
from ...regression.ftrl.ftrl import FTRL
from ...simulate import predictions
from ...theory import basis_lower_bound
from ...theory.lower import prior_precision
from ...theory.regret import pseudo_regret
from .. import Record, checkpoints, moments, plotting
from ..verdicts import Verdict, near

TITLE = "The lower bound, and how close FTRL comes"
CLAIM = (
    "Basis vectors in turn, Gaussian noise of standard deviation 1, a parameter from the prior "
    "that is hardest to learn: on the ball, on the cube, or Gaussian with mean square length 1. "
    "Averaged over the prior, no method's regret lies below the dashed line; a mean of a few runs"
    " may, by chance, within its error band. Under the Gaussian prior FTRL whose ridge matches "
    "the prior attains it: the constant one half in front of σ² d log T is exact. Regret here is "
    "the sum of half squared errors of the predicted mean, which has the same average as the "
    "regret and scatters less."
)
TRIALS = 100
ROUNDS = 1000
DIMENSIONS = (2, 5, 20)
FIRST = 3  # rounds before which all curves are near zero


def cells(rounds: int) -> list[Record]:
    """One cell per prior and dimension."""
    return [
        {"prior": prior, "dimension": d, "rounds": rounds} for prior in PRIORS for d in DIMENSIONS
    ]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play three learners on one draw of the parameter; regret at twelve moments."""
    d, prior = cell["dimension"], cell["prior"]
    rounds = Hard(prior=prior).draw(rng, cell["rounds"], d)
    glm = GLM(parameter_bound=10.0)
    learners = {
        "ridge matched to the prior": prior_precision(d, prior=prior) / 2,
        "prescribed ridge": GLM().ridge,
        "ridge 0.05": 0.05,
    }
    rows = []
    for learner, ridge in learners.items():
        scores = predictions(FTRL(glm, ridge), rounds.x, rounds.y, scores=True)
        regret = pseudo_regret(glm, rounds.theta, rounds.x, scores)  # type: ignore[arg-type]
        rows += [
            {
                "prior": prior,
                "dimension": d,
                "learner": learner,
                "rounds": t,
                "regret": float(regret[t - 1]),
                "lower": basis_lower_bound(d, t, prior=prior),
            }
            for t in checkpoints.spaced(cell["rounds"], 12)
        ]
    return rows


def condense(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the moments over trials for every learner and number of rounds."""
    keys = "prior", "dimension", "learner", "rounds"
    return moments.of(rows, keys, ("regret", "lower"))


def numbers(over_trials: pd.DataFrame) -> pd.DataFrame:
    """One line per prior, dimension and learner: regret at the end over the lower bound."""
    end = over_trials.index.get_level_values("rounds").max()
    last = over_trials.xs(end, level="rounds")
    shown = {
        "lower": last["lower", "mean"],
        "regret": last["regret", "mean"],
        "standard error": moments.error(last["regret"]),
        "regret over lower bound": last["regret", "mean"] / last["lower", "mean"],
    }
    return pd.DataFrame(shown).reset_index()


def holds(over_trials: pd.DataFrame) -> dict[str, Verdict]:
    """Nobody below the bound, and the matched learner on it under the Gaussian prior."""
    lines, trials = numbers(over_trials), moments.trials(over_trials["regret"])
    away = (lines["regret"] - lines["lower"]) / lines["standard error"]
    matched = lines["learner"].str.startswith("ridge matched")
    worst = lines.loc[matched, "regret over lower bound"].max()
    return {
        "no method's mean regret lies below the bound": near(away, trials, below=False),
        "under the Gaussian prior the matched learner attains the bound": near(
            away[matched & (lines["prior"] == "gaussian")], trials
        ),
        "under every prior the matched learner is within a factor two of the bound": Verdict(
            worst < 2, f"a factor {worst:.2f} at most"
        ),
    }


def plot(over_trials: pd.DataFrame) -> plotting.Figure:
    """A row per prior, a column per dimension: mean regret with bands, and the bound."""
    dims = sorted(over_trials.index.unique("dimension"))
    last = over_trials.index.get_level_values("rounds").max()
    figure, axes = plotting.panels(len(PRIORS), len(dims), width=10.0, height=2.7)
    for row, prior in zip(axes, PRIORS, strict=True):
        for axis, d in zip(row, dims, strict=True):
            part = over_trials.loc[prior, d]
            bound = part["lower", "mean"].groupby(level="rounds").mean()
            axis.plot(bound.index, bound, color=plotting.BLACK, ls="--", lw=1.2)
            ends = {"lower bound for any method": (bound.iloc[-1], plotting.BLACK)}
            for colour, learner in zip(
                plotting.COLOURS, part.index.unique("learner"), strict=False
            ):
                path = part.loc[learner]["regret"]
                plotting.mean_band(axis, path["mean"], moments.error(path), color=colour)
                ends[str(learner)] = (path["mean"].iloc[-1], colour)
            axis.set_title(f"{prior} prior, {d} features")
            plotting.log_rounds(axis, last, FIRST)
            axis.set_ylim(bottom=0)
            if axis is row[-1]:
                plotting.label_ends(axis, ends, gap=0.09)
        row[0].set_ylabel("regret (half squared errors)")
    lines = numbers(over_trials)
    matched = lines["learner"].str.startswith("ridge matched")
    worst = lines.loc[matched, "regret over lower bound"].max()
    plotting.headline(
        figure,
        f"With the ridge matched to the prior, FTRL is within a factor {worst:.2f} of the lower "
        "bound",
    )
    plotting.caption(
        figure,
        f"Lines: means of {moments.trials(over_trials['regret'])} draws of the parameter. "
        "Bands: two standard errors of the mean, within which a mean may fall below the bound by "
        "chance.",
    )
    return figure
