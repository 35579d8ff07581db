"""Study `figure-2`: stochastic labels against adversarial ones, the same learner and bound."""

import numpy as np
import pandas as pd

from ...environments import Adversary, ClippedGaussian, Cube, Sphere
from ...model.glm import GLM
from ...protocols import Array
from ...regression.ftrl.ftrl import FTRL
from ...simulate import predictions
from ...theory.regret import adversarial_regret, stochastic_regret
from .. import Record, checkpoints, moments, plotting
from ..verdicts import Verdict, near

TITLE = "Stochastic labels cost far less than adversarial ones"
CLAIM = (
    "Five features on the unit sphere, labels within ±5, ridge 4. Labels are a linear mean plus "
    "Gaussian noise of standard deviation 1, 2 or 4, clipped to ±4, or the minimax adversary's, "
    "clipped where its probability leaves [0, 1]: on random rows that happens in some rounds of "
    "most designs, so the adversary shown is a little weaker than the theorem's. Solid: regret "
    "against the best linear predictor in hindsight, the only one an adversary leaves defined. "
    "Dashed: regret against the true parameter. Bands are two standard errors."
)
TRIALS = 24
ROUNDS = 1000
DIM, BOUND, RIDGE = 5, 5.0, 4.0
SDS = {"sd-1": 1.0, "sd-2": 2.0, "sd-4": 4.0}
# means over 400 runs at 1000 rounds, with their standard errors
REFERENCE = {"sd-1": (9.52, 0.04), "sd-2": (31.56, 0.10), "sd-4": (69.24, 0.13),
             "adversarial": (273.84, 1.39)}  # fmt: skip


def cells(rounds: int) -> list[Record]:
    """One cell a kind of label."""
    return [{"labels": labels, "rounds": rounds} for labels in (*SDS, "adversarial")]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play one stream; both regrets at 25 moments, and in how many rounds the adversary clipped."""
    T, ftrl = cell["rounds"], FTRL(GLM(), RIDGE)
    x = Sphere().draw(rng, T, DIM)
    theta = Cube().draw(rng, DIM)
    y, clipped = _labels(cell["labels"], rng, x, theta)
    scores = predictions(ftrl, x, y, scores=True)
    hindsight = adversarial_regret(x, y, scores)
    true = stochastic_regret(ftrl.glm, theta, x, y, scores)
    known = cell["labels"] != "adversarial"
    return [
        {
            "labels": cell["labels"],
            "rounds": t,
            "regret": float(hindsight[t - 1]),
            "stochastic_regret": float(true[t - 1]) if known else np.nan,
            "clipped": clipped,
        }
        for t in checkpoints.spaced(T, 25)
    ]


def _labels(kind: str, rng: np.random.Generator, x: Array, theta: Array) -> tuple[Array, int]:
    if kind == "adversarial":
        return Adversary(BOUND).label(rng, x)
    noise = ClippedGaussian(BOUND - 1.0).draw(rng, np.full(len(x), SDS[kind]))
    return np.asarray(x @ theta + noise), 0


def condense(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the moments over trials for every kind of label and number of rounds."""
    rows = rows.assign(any_clipped=(rows["clipped"] > 0).astype(float))
    values = "regret", "stochastic_regret", "clipped", "any_clipped"
    return moments.of(rows, ("labels", "rounds"), values)


def numbers(lines: pd.DataFrame) -> pd.DataFrame:
    """One line a kind of label: both regrets at the end, and how often the adversary clipped."""
    last = _last(lines)
    shown = {
        "regret": last["regret", "mean"],
        "stochastic_regret": last["stochastic_regret", "mean"],
        "standard error": moments.error(last["regret"]),
        "designs clipped": last["any_clipped", "mean"],
        "rounds clipped, most": last["clipped", "max"],
    }
    return pd.DataFrame(shown).reset_index()


def _last(lines: pd.DataFrame) -> pd.DataFrame:
    found: pd.DataFrame = lines.xs(lines.index.get_level_values("rounds").max(), level="rounds")
    return found


def holds(lines: pd.DataFrame) -> dict[str, Verdict]:
    """The order of the four, and agreement with the reference where the horizon is its own."""
    ends = numbers(lines).set_index("labels")
    means = ends["regret"].reindex([*SDS, "adversarial"])
    found = ", ".join(f"{kind} {mean:.2f}" for kind, mean in means.items())
    claims = {
        "regret grows with the noise and is largest under the adversary": Verdict(
            means.is_monotonic_increasing, found
        )
    }
    if lines.index.get_level_values("rounds").max() == ROUNDS:
        reference = pd.DataFrame(REFERENCE, index=["mean", "error"]).T
        away = (means - reference["mean"]) / np.hypot(ends["standard error"], reference["error"])
        claims["all four agree with means over 400 other runs"] = near(
            away, moments.trials(lines["regret"])
        )
    return claims


def plot(lines: pd.DataFrame) -> plotting.Figure:
    """Both regrets over time with bands: all labels, and the stochastic ones enlarged."""
    figure, axes = plotting.panels(1, 2, width=9.6, height=3.6)
    colours = dict(zip((*SDS, "adversarial"), plotting.COLOURS, strict=False))

    def band(axis: plotting.Axes, kind: str, regret: str, **style: object) -> float:
        part = lines.loc[kind][regret]
        plotting.mean_band(axis, part["mean"], moments.error(part), color=colours[kind], **style)
        return float(part["mean"].iloc[-1])

    for axis, kinds in zip(axes[0], ((*SDS, "adversarial"), tuple(SDS)), strict=True):
        ends = {}
        for kind in kinds:
            words = kind.replace("sd-", "noise sd ")
            ends[words] = band(axis, kind, "regret"), colours[kind]
            if axis is axes[0, 1]:
                last = band(axis, kind, "stochastic_regret", ls="--", lw=1.2)
                ends[f"{words}, true parameter"] = last, colours[kind]
        plotting.log_rounds(axis, lines.index.get_level_values("rounds").max())
        plotting.label_ends(axis, ends)
    axes[0, 0].set(ylabel="regret, half squared loss", title="all labels")
    axes[0, 1].set(title="stochastic labels, enlarged")
    means = numbers(lines).set_index("labels")["regret"]
    times = means["adversarial"] / means[list(SDS)].max()
    plotting.headline(
        figure, f"Adversarial labels cost {times:.1f} times the regret of the noisiest random ones"
    )
    plotting.caption(
        figure,
        "Solid: regret against the best predictor in hindsight. Dashed: against the true "
        "parameter. Bands: two standard errors.",
    )
    return figure
