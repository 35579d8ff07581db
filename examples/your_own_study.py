"""A study of your own: does it pay to know the noise of every label?

Run it with: python your_own_study.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import noisewise as nw
from noisewise import environments as env
from noisewise.experiments import EXPERIMENTS, plotting
from noisewise.experiments.verdicts import Verdict

TITLE = "What weights are worth"
CLAIM = "The wider the standard deviations spread, the more a learner gains that knows them."
TRIALS = 8
ROUNDS = 500


def cells(rounds):
    """One cell a spread: standard deviations from 1/spread to 1."""
    return [{"spread": spread, "rounds": rounds} for spread in (1, 3, 10)]


def data(cell, rng):
    """One trial: both learners on the same stream, mean squared error of their predictions."""
    scales = env.geometric(1 / cell["spread"], 1.0, 7)
    rounds = env.Stream(labels=env.Noisy(scales=scales)).draw(rng, cell["rounds"], dim=4)
    learner, rows = nw.FTRL(nw.GLM(), ridge=0.5), []
    for name, weight in (("weights", rounds.weight), ("no weights", None)):
        error = nw.predictions(learner, rounds.x, rounds.y, weight) - rounds.mean
        rows.append({"spread": cell["spread"], "learner": name, "error": float(error @ error)})
    return rows


def numbers(table):
    """Mean error of each learner, a line a spread."""
    return table.groupby(["spread", "learner"])["error"].mean().unstack().reset_index()


def holds(table):
    """Decided on the data of this run."""
    lines = numbers(table)
    ratio = lines["no weights"] / lines["weights"]
    gain = ratio.iloc[-1]
    return {"at spread 10 weights gain a factor above 2": Verdict(gain > 2, f"{gain:.1f}")}


def plot(table):
    """Error against spread."""
    figure, axes = plotting.panels(1, 1, width=5.0, height=3.0)
    lines = numbers(table).set_index("spread")
    lines.plot(ax=axes[0, 0], marker="o", logx=True, logy=True)
    axes[0, 0].set(xlabel="largest sd over smallest", ylabel="sum of squared errors")
    return figure


if __name__ == "__main__":
    from noisewise import report
    from noisewise.experiments.runner import Run

    EXPERIMENTS["weights"] = "your_own_study"  # in the package this is one line of a dict
    out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    for claim, held in Run("weights", out, jobs=1).execute()["holds"].items():
        print("holds" if held else "FAILS", claim)
    print("page:", report.write(out))
