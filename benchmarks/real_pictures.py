"""The picture of all tasks, and what README and site say of them.

``python -m benchmarks.real_pictures`` makes all of it from docs/pictures/tasks.json, which
``python -m benchmarks.real_data HALF docs/pictures/tasks.json`` writes.
"""

from pathlib import Path

import numpy as np

from noisewise.experiments import plotting

from . import real_bandits as bandits
from .real_data import OURS, ratio, read, standing
from .real_pages import (
    DEFAULT,
    NONLINEAR,
    bandit_section,
    fill,
    percent,
    players,
    section,
    sentence,
    share_first,
)

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
RUN, PICTURE = PICTURES / "tasks.json", PICTURES / "tasks.svg"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "howto" / "which-tool.md"
NAMES = {DEFAULT: "noisewise", NONLINEAR: "noisewise,\nnonlinear=True"}
HALVES = {"open": "used in development", "held": "not used in development"}
QUANTILES = 0.05, 0.25, 0.5, 0.75, 0.95
RATIOS = 0.25, 4.0  # in the picture; beyond stands an arrow
LEADS = -0.25, 0.1


def draw(found):
    """Draw for each player how often it is first, and quantiles of how far from the best."""
    rows, decided = (found[kind]["tasks"] for kind in ("predictions", "bandits"))
    figure, (above, below) = plotting.panels(2, 2, width=8.6, height=2.9)
    names = players(rows)
    above[0].get_gridspec().set_height_ratios([len(names), 1 + len(bandits.SETTINGS)])
    _compare(
        above,
        {NAMES.get(name, name): share_first(rows, name) for name in names},
        [np.array([ratio(row, name) for row in rows if name in row]) for name in names],
        RATIOS,
        len(OURS),
    )
    above[0].set_title(f"{len(rows)} prediction tasks: best, or within 0.5 %")
    above[1].axvline(1, color="black", lw=1, zorder=1)
    ticks = [0.25, 0.5, 0.7, 1, 1.5, 2, 3, 4]
    above[1].set(xscale="log", xlim=(RATIOS[0], RATIOS[1] * 1.03))
    above[1].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    above[1].minorticks_off()
    above[1].set_title("Error over the best other's (left is better)")
    settings = sorted(bandits.SETTINGS, key=lambda name: -bandits.standing(decided, name).near)
    names = [bandits.OURS, *settings]
    _compare(
        below,
        {name: bandits.standing(decided, name).near for name in names},
        [np.array([bandits.lead(row, name) for row in decided]) for name in names],
        LEADS,
        1,
    )
    below[0].set_title(f"{len(decided)} bandits: best, or within 0.01")
    below[1].axvline(0, color="black", lw=1, zorder=1)
    below[1].set(xlim=LEADS, xticks=[-0.2, -0.1, 0, 0.1])
    below[1].set_title("Reward less the best other's (right is better)")
    plotting.headline(
        figure,
        "Without tuning, noisewise is best or level on "
        f"{percent(standing(rows, DEFAULT).first)} of prediction tasks and "
        f"{percent(bandits.standing(decided).near)} of bandits",
    )
    halves = {kind: HALVES[run["half"]] for kind, run in found.items()}
    if len({*halves.values()}) == 1:
        halves = {"all": halves["bandits"]}
    used = ", ".join(f"{kind} {words}" for kind, words in halves.items())
    plotting.caption(
        figure,
        f"Tasks made by rules from half of 2,293 data sets, {used}.\nDot: median; "
        "thick: half of the tasks; thin: 90 %; arrows: beyond.",
    )
    return figure


def _compare(axes, shares, spreads, ends, ours):
    """Draw the share and the quantiles of each player, the first ``ours`` of them in blue."""
    left, right = axes
    heights = np.arange(len(shares))[::-1]
    for at, height in enumerate(heights):
        colour = plotting.BLUE if at < ours else plotting.FAINT
        _bar(left, [*shares.values()][at], height, colour)
        _quantiles(right, spreads[at], height, colour, ends)
    left.set_yticks(heights, list(shares))
    left.set(xlim=(0, 1.0), ylim=(-0.6, len(shares) - 0.4), xticks=[])
    left.spines["bottom"].set_visible(False)
    right.set(ylim=left.get_ylim(), yticks=[])
    for axis in axes:
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)


def _bar(axis, share, height, colour):
    """Draw a share of the tasks."""
    axis.barh(height, share, 0.55, color=colour)
    axis.annotate(
        percent(share), (share, height), (5, 0), textcoords="offset points", va="center",
        fontweight="bold", color=plotting.INK.get(colour, colour),
    )  # fmt: skip


def _quantiles(axis, values, height, colour, ends):
    """Draw the quantiles of a player, with arrows where they are beyond the axis."""
    low, first, middle, third, high = np.quantile(values, QUANTILES, method="inverted_cdf")
    for start, end, width in ((low, high, 1.6), (first, third, 8)):
        inside = np.clip([start, end], *ends)
        axis.plot(inside, [height, height], color=colour, lw=width, solid_capstyle="butt")
    ink = plotting.INK.get(colour, colour)
    axis.plot(middle, height, "o", color="white", mec=ink, ms=6, mew=1.5)
    for beyond, at, mark in ((low < ends[0], ends[0], "<"), (high > ends[1], ends[1], ">")):
        if beyond:
            axis.plot(at, height, mark, color=colour, ms=5, clip_on=False)


def main():
    """Draw the picture, and write what README and page say."""
    found = read(RUN)
    plotting.write(draw, found, PICTURE)
    README.write_text(fill(README.read_text(), sentence(found)))
    page = fill(PAGE.read_text(), section(found["predictions"]))
    PAGE.write_text(fill(page, bandit_section(found["bandits"]), "bandits"))


if __name__ == "__main__":
    main()
