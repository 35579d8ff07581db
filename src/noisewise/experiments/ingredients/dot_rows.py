"""Figures of a row per world and a dot per player, for the studies of agents."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .. import plotting
from .agent_lineup import BETA, EARLIER

STYLES = {
    EARLIER: ("D", plotting.BLACK),
    "bayesianbandits .68": ("o", plotting.SKY),
    "bayesianbandits .95": ("o", plotting.BLUE),
    "LinUCB 1": ("s", plotting.VERMILION),
    "LinUCB .3": ("s", plotting.ORANGE),
    "Thompson .3": ("^", plotting.GREEN),
    "Thompson 1": ("^", "#7FCDB9"),
    BETA: ("v", plotting.PINK),
}


def draw(
    rows: pd.DataFrame, notes: Sequence[str], even: float, behind: str
) -> tuple[plotting.Figure, plotting.Axes]:
    """Draw a dot per column and a row per line, the last on top and set apart: it is of all.

    Right of ``even`` noisewise is ahead; ``behind`` says what lies left of it. ``notes`` are
    written at the right end of the rows.
    """
    last = len(rows) - 1
    places = np.array([*range(last), last + 0.6])
    figure, axes = plotting.panels(1, 1, width=8.6, height=1.4 + 0.262 * len(rows))
    axis = axes[0, 0]
    axis.axvspan(-1e3, even, color=plotting.BLACK, alpha=0.06, lw=0)
    axis.axvline(even, color=plotting.BLACK, lw=1.2)
    axis.axhline(last - 0.2, color=plotting.BLACK, lw=0.6)
    axis.hlines(places, rows.min(axis=1), rows.max(axis=1), color="#BBBBBB", lw=1, zorder=1)
    for player, (marker, colour) in STYLES.items():
        if player in rows:
            axis.plot(rows[player], places, marker, ms=6, mew=0.4, mec="white", color=colour,
                      label=player)  # fmt: skip
    axis.set_yticks(places, rows.index)
    axis.get_yticklabels()[-1].set_fontweight("bold")
    axis.set_ylim(-0.7, places[-1] + 0.6)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    side = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "bottom"}
    axis.annotate("noisewise ahead →", (even, 1.0), (6, 3), **side)
    axis.annotate(f"← {behind}", (even, 1.0), (-6, 3), ha="right", **side)
    look = {"xycoords": ("axes fraction", "data"), "fontsize": 8, "ha": "right", "va": "center"}
    for place, note in zip(places, notes, strict=True):
        axis.annotate(note, (1.055, place), **look)
    figure.legend(loc="outside lower center", ncols=4)
    return figure, axis
