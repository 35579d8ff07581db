"""Pictures of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...support.drawing import BLACK, BLUE, GREEN, GREY, RC, VERMILION, pyplot
from ...support.printing import percent
from .result import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

COLOURS = (BLUE, VERMILION, GREY, GREEN)


def draw(found: Evaluation) -> Figure:
    """Return axes with the loss over time, and where there were intervals, width and coverage."""
    plt = pyplot()
    looks = found.looks.table
    covered = bool(looks[:, 3].sum())
    wide = has_widths(found)
    count = 1 + wide + covered
    with plt.rc_context(RC):
        size = (4.2 + 3.0 * (count - 1), 3.0)
        ratios = [4, 3, 3][:count]
        _, axes = plt.subplots(
            1, count, figsize=size, layout="constrained", squeeze=False, width_ratios=ratios
        )
        draw_losses(axes[0, 0], found)
        if wide:
            draw_widths(axes[0, 1], found)
        if covered:
            draw_coverage(axes[0, 2], found)
    return axes[0]


def has_widths(found: Evaluation) -> bool:
    """Return whether some interval had a width that a picture can show."""
    widths = found.looks.table[:, 1:3]
    return bool((np.isfinite(widths) & (widths > 0)).any())


def draw_losses(axis: Axes, found: Evaluation) -> None:
    """Draw the average loss so far of each, from where it is settled enough to be seen."""
    rows = found.times - found.compared.first + 1
    late = rows >= min(10, found.compared.rows / 2)
    for (name, curve), colour in zip(found.curves.items(), COLOURS, strict=False):
        axis.plot(found.times[late], curve[late], color=colour, label=name)
    axis.set(xlabel="rows", title=f"{found.loss[0].upper()}{found.loss[1:]} so far")
    _log_axis(axis.xaxis)
    axis.margins(x=0.02)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "fontsize": 8}
    axis.legend(**below, ncols=len(found.names), columnspacing=1.2, handlelength=1.5)


def draw_widths(axis: Axes, found: Evaluation) -> None:
    """Draw the width of intervals of the mean and of observations."""
    t, mean, label, *_ = found.looks.table.T
    for width, colour, name in (
        (label, VERMILION, "of a new label, at one time"),
        (mean, BLUE, "of the mean, at all times"),
    ):
        seen = np.isfinite(width) & (width > 0)
        if seen.any():
            axis.plot(t[seen], width[seen], color=colour, marker="o", ms=3, label=name)
    axis.set(xlabel="rows", title="Width of intervals")
    _log_axis(axis.xaxis)
    _log_axis(axis.yaxis)
    axis.legend(title=f"{100 * (1 - found.looks.delta):g} % intervals", alignment="left")


def draw_coverage(axis: Axes, found: Evaluation) -> None:
    """Draw the share of observations inside their intervals, and two standard errors around it."""
    from matplotlib.ticker import MultipleLocator

    t, _, _, n, inside = found.looks.table.T
    t, n, inside = t[n > 0], n[n > 0], inside[n > 0]
    aim = 1 - found.looks.delta
    error = 2 * np.sqrt(aim * (1 - aim) / n)
    axis.axhline(aim, color=BLACK, lw=0.8)
    axis.fill_between(t, aim - error, np.minimum(aim + error, 1), color=GREY, alpha=0.2, lw=0)
    axis.plot(t, inside / n, "o", color=VERMILION, ms=4)
    axis.set(xlabel="rows", title="Observations inside")
    axis.set_ylim(min(0.8, float((inside / n).min()) - 0.02), 1.01)
    axis.yaxis.set_major_locator(MultipleLocator(0.05))
    axis.yaxis.set_major_formatter(lambda value, _: percent(value))
    _log_axis(axis.xaxis)


def _log_axis(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, labelled 10, 100, 1,000, or more densely where it is short."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:,.12g}")
    axis.set_minor_formatter(NullFormatter())
