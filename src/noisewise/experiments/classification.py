"""Study `classification`: real data with labels, played as bandits."""

import numpy as np
import pandas as pd

from . import Record, agent_lineup, datasets, dot_rows, plotting
from .agent_lineup import AGENTS, OURS, PLAYERS
from .fixed_settings import SETTINGS
from .labelled_data import LABELLED, PACKAGES, labelled
from .verdicts import Verdict

TITLE = "Labelled data played as bandits"
CLAIM = (
    "Eight sets of labelled data that come with scikit-learn, river and statsmodels. In every "
    "round a row is shown, an arm is a class, and the reward is 1 for the right class and 0 "
    "otherwise; the right class is not revealed. The arm of a class holds 1 and the standardised "
    "features in a block of its own. Digits are reduced to 4 x 4 pixels, and the target of "
    "diabetes is cut into fifths. Sets of fewer than 1500 rows are repeated up to that length, "
    "each time in another order. The methods are those of the study agents; the practical FTRL-UCB "
    "is given the largest norm of an arm, the others nothing. No linear model is exact here."
)
TRIALS = 2
ROUNDS = 1500
DECISIONS = True
ENOUGH = 10
CLOSE = 0.01


def cells(rounds: int) -> list[Record]:
    """One cell per set."""
    for package in PACKAGES:
        datasets.require(package)
    return [{"data": name, "rounds": rounds} for name in LABELLED]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play everyone on one order of the rows."""
    source = labelled(cell["data"])
    n = max(1, max(len(source.label), ROUNDS) * cell["rounds"] // ROUNDS)
    drawn = source.bandit(rng, n)
    longest = float(np.sqrt(np.square(drawn.rounds.arms).sum(axis=2).max()))
    rows = []
    for player in (*AGENTS, *SETTINGS):
        own = np.random.default_rng(rng.integers(2**63))
        played = agent_lineup.choices(player, drawn, own, longest)
        reward = float(drawn.rounds.rewards[np.arange(n), played].mean())
        rows.append({"data": cell["data"], "player": player, "reward": reward})
    return rows


def _means(table: pd.DataFrame) -> pd.DataFrame:
    means = table.groupby(["data", "player"])["reward"].mean().unstack("player")
    found: pd.DataFrame = means.reindex(list(dict.fromkeys(table["data"])))
    return found[[player for player in PLAYERS if player in found]]


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """A line per set: everyone's mean reward, and the mean over sets."""
    means = _means(table)
    means.loc["all"] = means.mean()
    return means.map("{:.3f}".format).rename_axis("mean reward").reset_index()


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """How near the agent comes to the best setting of each set in hindsight."""
    means = _means(table)
    enough = table["trial"].nunique() >= ENOUGH
    short = means[list(SETTINGS)].max(axis=1) - means[OURS]
    near, images = int((short <= CLOSE).sum()), float(means.loc["ImageSegments", OURS])
    return {
        "on at least six of the eight sets noisewise's mean reward is at most 0.01 below that of "
        "the best fixed setting, chosen in hindsight": Verdict(
            near >= 6 if enough else None,
            f"{near} of {len(short)}; furthest behind {short.max():.3f} ({short.idxmax()})",
        ),
        "on ImageSegments its mean reward is at least 0.86": Verdict(
            images >= 0.86 if enough else None, f"{images:.3f}"
        ),
    }


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A row per set with our mean reward less everyone's."""
    means = _means(table)
    lead = -means.drop(columns=OURS).sub(means[OURS], axis=0)
    order = lead[list(SETTINGS)].min(axis=1).sort_values().index
    rows = lead.loc[order]
    rows.loc["all sets"] = lead.mean()
    notes = [*means.loc[order, OURS].map("{:.3f}".format), "noisewise's\nreward"]
    figure, axis = dot_rows.draw(rows, notes, 0.0, "a setting ahead")
    low, high = min(rows.min(axis=None), 0.0), max(rows.max(axis=None), 0.0)
    axis.set(xlabel="mean reward of noisewise less that of a setting",
             xlim=(low - 0.02, high + 0.02))  # fmt: skip
    behind = max(-lead[list(SETTINGS)].min(axis=None), 0.0)
    plotting.headline(
        figure,
        f"On no data set does noisewise earn over {behind:.3f} less than the best fixed setting",
    )
    return figure
