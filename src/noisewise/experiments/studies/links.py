"""Study `links`: FTRL learns one mean under every link, from labels of unequal precision."""

import numpy as np
import pandas as pd

from ...environments import Family, Noisy, OnSphere, Sphere, geometric
from ...model.glm import GLM
from ...model.links import LINKS
from ...model.noise import Likelihood, Noise, SubGaussian
from ...protocols import Array, Rounds
from ...regression.ftrl.ftrl import FTRL
from ...support.printing import percent
from .. import Record, checkpoints, plotting
from ..verdicts import Verdict, rare

TITLE = "One estimator, every link"
CLAIM = (
    "Labels come with different precision: averages of 1 to 100 trials, or Gaussian readings whose "
    "standard deviation varies tenfold. Weighted FTRL learns the mean at a probe point under each "
    "link, and its 95 % interval holds at all times at once: look as often as you like. "
    "The estimate is never far from the exact optimum: the gap is certified after every row."
)
TRIALS = 16
ROUNDS = 10_000
DELTA = 0.05
TOLERANCE = 0.1
DIM = 4
BOUND = 1.5
PROBE = 0.6


def cells(rounds: int) -> list[Record]:
    """One cell a link."""
    return [{"link": name, "rounds": rounds} for name in LINKS]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play one stream; one row a checkpoint, with estimate and interval at the probe."""
    glm = GLM(cell["link"], feature_bound=1.0, parameter_bound=BOUND)
    truth = OnSphere(BOUND).draw(rng, DIM)
    across = OnSphere().draw(rng, DIM)
    across -= truth * (across @ truth) / BOUND**2
    across /= np.linalg.norm(across)
    probe = PROBE * truth / BOUND + np.sqrt(1 - PROBE**2) * across
    noise, rounds = _draw(glm, truth, cell["rounds"], rng)
    ftrl = FTRL(glm, ridge=0.5, tolerance=TOLERANCE)
    state = ftrl.start(DIM)
    rows, seen, missed = [], 0, False
    for t in checkpoints.spaced(cell["rounds"], 33):
        part = slice(seen, t)
        ftrl.update(state, rounds.x[part], rounds.y[part], rounds.weight[part])
        seen = t
        sets = ftrl.confidence(state, noise, DELTA)
        missed |= not all(ellipsoid.contains(truth) for ellipsoid in sets)
        lower, upper = ftrl.interval(state, probe, noise, DELTA)
        rows.append(
            {
                "link": cell["link"],
                "rounds": t,
                "truth": float(glm.mean(probe @ truth)),
                "estimate": ftrl.predict(state, probe),
                "lower": lower,
                "upper": upper,
                "error": float(np.linalg.norm(state.theta - truth)),
                "gap": state.gap,
                "missed": missed,
            }
        )
    return rows


def _draw(glm: GLM, truth: Array, T: int, rng: np.random.Generator) -> tuple[Noise, Rounds]:
    """Draw labels that fit the link: means of n draws of its family, or Gaussian readings."""
    x = Sphere().draw(rng, T, len(truth))
    if glm.linear or glm.link.family is None:
        return SubGaussian(), Noisy(glm, scales=geometric(0.1, 1.0, 7)).label(rng, x, truth)
    return Likelihood(), Family(glm, most=100).label(rng, x, truth)


def plot(table: pd.DataFrame) -> plotting.Figure:
    """One panel a link with estimate and interval over time; width, error and gap for all links."""
    figure, axes = plotting.panels(3, 3)
    colours = dict(zip(table["link"].unique(), plotting.COLOURS, strict=False))
    for axis, (name, part) in zip(axes.flat, table.groupby("link", sort=False), strict=False):
        mean = part.groupby("rounds")[["truth", "lower", "upper"]].mean()
        colour = colours[name]
        axis.fill_between(mean.index, mean["lower"], mean["upper"], color=colour, alpha=0.18, lw=0)
        for _, path in part.groupby("trial"):
            axis.plot(path["rounds"], path["estimate"], color=colour, lw=0.6, alpha=0.6)
        axis.axhline(mean["truth"].iloc[0], color="black", ls="--", lw=1)
        axis.set_title(f"{name} link")
        plotting.log_rounds(axis, table["rounds"].max())
        axis.set_xlabel("")
    for axis in axes[:2, 0]:
        axis.set_ylabel("mean at the probe point")
    last = (table["rounds"].max(), table["truth"].iloc[0])
    axes[0, 0].annotate("truth", last, ha="right", va="bottom")
    shown = table.assign(width=table["upper"] - table["lower"], gap=table["gap"] / np.sqrt(DIM))
    for axis, column, title, unit in (
        (axes[2, 0], "width", "interval width", "width at the probe point"),
        (axes[2, 1], "error", "distance of the estimate", "distance from the truth"),
        (axes[2, 2], "gap", "certified gap", "gap, in standard errors"),
    ):
        curves = shown.groupby(["link", "rounds"], sort=False)[column].mean().unstack(0)
        for name, colour in colours.items():
            axis.plot(curves.index, curves[name], color=colour, label=name)
        plotting.log_rounds(axis, table["rounds"].max())
        axis.set(yscale="log", title=title, xlabel="observations", ylabel=unit)
    axes[2, 2].axhline(TOLERANCE, color="black", ls="--", lw=1)
    axes[2, 2].annotate("tolerance", (1, 1.3 * TOLERANCE), va="bottom")
    axes[2, 2].set_ylim(1e-4, 30)
    if shown.loc[shown["link"] == "identity", "gap"].max() < 1e-4:
        axes[2, 2].annotate("identity: exact", (1, 1.3e-4), va="bottom", color=colours["identity"])
    axes[2, 0].legend(fontsize=7)
    narrowed = _shrinkage(shown, "width")
    plotting.headline(
        figure,
        f"Whatever the link, intervals close in on the truth: to {100 * narrowed:.0f} % of their "
        "first width or less",
    )
    plotting.caption(
        figure,
        "Upper panels, lines: estimates of single runs; shaded: the mean 95 % interval, valid at "
        "all times. Lower panels: means over runs.",
    )
    return figure


def _shrinkage(shown: pd.DataFrame, column: str) -> float:
    """Return the largest ratio, over links, of a column's last mean to its first."""
    means = shown.groupby(["link", "rounds"])[column].mean().unstack(0)
    return float((means.iloc[-1] / means.iloc[0]).max())


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """What the study claims, decided on this run."""
    last = checkpoints.last(table)
    first = table[table["rounds"] == table["rounds"].min()]
    missed = last.set_index(["link", "trial"])["missed"]
    width = (last["upper"] - last["lower"]).mean() / (first["upper"] - first["lower"]).mean()
    gap = table["gap"].max() / np.sqrt(DIM)
    together = pd.concat({"all links": missed}).droplevel("link")
    return {
        "the sets miss the truth at some look in at most 5 % of runs": rare(together, DELTA),
        "the interval shrinks below a quarter of its first width": Verdict(
            width < 0.25, f"to {percent(width, 1)}"
        ),
        "the certified gap stays within the tolerance": Verdict(
            gap <= TOLERANCE, f"{gap:.3f} standard errors, tolerance {TOLERANCE:g}"
        ),
    }


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line a link: truth, estimate, interval and error at the end."""
    last = checkpoints.last(table)
    grouped = last.groupby("link", sort=False)
    small = grouped[["truth", "estimate", "lower", "upper", "error"]].mean()
    small["runs missed"] = grouped["missed"].mean()
    return small.reset_index()
