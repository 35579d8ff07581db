"""A picture of the coefficients with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..protocols import Array
from ..support.drawing import BLUE, GREY, ORANGE, RC, pyplot
from ..support.printing import clean
from .summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 30  # coefficients shown
LONGEST = 28  # letters of a name


def plot_coefficients(
    summary: Summary, what: str, spreads: Array | None, delta: float, ax: Axes | None = None
) -> Axes:
    """Return axes, new ones by default, with the coefficients of a summary."""
    plt = pyplot()
    with plt.rc_context(RC):
        if ax is None:
            size = (5.5, 1.4 + 0.26 * min(len(summary.names), MOST))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        draw_coefficients(ax, summary, what, spreads, delta)
    return ax


def draw_coefficients(
    axis: Axes, summary: Summary, what: str, spreads: Array | None, delta: float
) -> None:
    """Draw estimates as dots, their anytime intervals as thin and textbook ones as thick lines.

    They say how much ``what`` changes. With ``spreads``, the standard deviations of the
    features, everything is per standard deviation, so that features compare; the intercept, whose
    meaning depends on units, is left out. An interval without ends, and an estimate of
    which nothing is known, are not drawn.
    """
    d = len(summary.names) - (summary.names[-1:] == ("intercept",))
    scale = np.ones(d) if spreads is None else spreads
    dots = scale * np.array(summary.estimates[:d])
    order = np.argsort(-np.nan_to_num(np.abs(dots), nan=-1.0), kind="stable")[:MOST][::-1]
    at = np.arange(len(order))
    wide, narrow = (
        (scale * np.asarray(each.lower)[:d], scale * np.asarray(each.upper)[:d])
        for each in (summary.anytime, summary.textbook)
    )
    reach = _reach(dots[order], *(end[order] for end in (*wide, *narrow)))
    axis.axvline(0, color=GREY, lw=0.8)
    for (low, high), colour, width, name in (
        (wide, BLUE, 1.2, "at all times"),
        (narrow, ORANGE, 4.0, "textbook"),
    ):
        ends = np.clip([low[order], high[order]], *reach)
        known = np.isfinite(low[order]) | np.isfinite(high[order])
        label = f"{100 * (1 - delta):g} % {name}"
        axis.hlines(at[known], *ends[:, known], color=colour, lw=width, alpha=0.9, label=label)
    axis.plot(dots[order], at, "o", color="black", ms=4, label="estimate")
    axis.set_yticks(at, [_short(clean(summary.names[i])) for i in order], parse_math=False)
    axis.set_ylim(-0.7, len(order) - 0.3)
    axis.set_xlim(*reach)
    unit = "unit" if spreads is None else "standard deviation"
    axis.set_xlabel(f"change of the {what} per {unit}", loc="right")
    axis.grid(False, axis="y")
    if len(order) < d:
        axis.set_title(f"The {len(order)} largest of {d} coefficients")
    axis.figure.legend(
        *axis.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        columnspacing=1.2,
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _reach(dots: Array, *ends: Array) -> tuple[float, float]:
    """Return limits that show all dots and all intervals but infinite ones."""
    known = np.concatenate(
        [dots[np.isfinite(dots)], [0.0], *(end[np.isfinite(end)] for end in ends)]
    )
    low, high = float(known.min()), float(known.max())
    pad = 0.04 * (high - low) or 1.0
    return low - pad, high + pad
