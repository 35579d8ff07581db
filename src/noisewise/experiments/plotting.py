"""How figures look: colour-blind safe, quiet axes, the same file from the same numbers."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes as Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..storage import files
from ..support import drawing
from ..support.drawing import BLACK as BLACK
from ..support.drawing import BLUE as BLUE
from ..support.drawing import COLOURS as COLOURS
from ..support.drawing import GREEN as GREEN
from ..support.drawing import ORANGE as ORANGE
from ..support.drawing import PINK as PINK
from ..support.drawing import SKY as SKY
from ..support.drawing import VERMILION as VERMILION

FAINT = "#A9A9A9"  # what is only there for comparison

# the pale ones darker, to be read as text
INK = {PINK: "#9A4A76", ORANGE: "#8F6200", SKY: "#22729F", GREEN: "#00795A", FAINT: "#6F6F6F"}

RC = {**drawing.RC, "axes.prop_cycle": cycler(color=COLOURS)}


def panels(
    rows: int, columns: int, width: float = 10.0, height: float = 2.6, **between: float
) -> tuple[Figure, np.ndarray]:
    """Return a figure with a grid of axes, each row ``height`` inches high.

    The space ``between`` panels is ``wspace`` and ``hspace``, as shares of their sizes.
    """
    size = (width, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    figure.set_layout_engine("constrained", **between)
    return figure, axes


def band(axis: Axes, table: pd.DataFrame, column: str, **style: object) -> pd.Series:
    """Draw the mean of a column over the rounds with two standard errors; return the mean."""
    grouped = table.groupby("rounds")[column]
    mean = grouped.mean()
    mean_band(axis, mean, grouped.sem(), **style)
    return mean


def mean_band(axis: Axes, mean: pd.Series, error: pd.Series, **style: object) -> None:
    """Draw means over the rounds, which are the index, with two of their standard errors."""
    (line,) = axis.plot(mean.index, mean)
    line.set(**style)
    colour, wide = line.get_color(), 2 * error.fillna(0.0)
    axis.fill_between(mean.index, mean - wide, mean + wide, color=colour, alpha=0.2, lw=0)


def label_ends(axis: Axes, ends: dict[str, tuple[float, str]], gap: float = 0.065) -> None:
    """Write each label right of the axis, in the colour of its curve, joined to the curve's end.

    Labels that would touch are moved apart; call it when scales and limits are set.
    """
    axis.get_ylim()  # settles the limits
    to_axes = axis.transScale + axis.transLimits
    left = axis.get_xlim()[1]
    places = {label: to_axes.transform((left, y))[1] for label, (y, _) in ends.items()}
    order = sorted(places, key=places.__getitem__)
    for low, high in pairwise(order):
        places[high] = max(places[high], places[low] + gap)
    places[order[-1]] = min(places[order[-1]], 1.0)
    for low, high in zip(order[-2::-1], order[:0:-1], strict=True):
        places[low] = min(places[low], places[high] - gap)
    for label, (y, colour) in ends.items():
        ink, height = INK.get(colour, colour), places[label]
        start = min(max(to_axes.transform((left, y))[1], 0.0), 1.0)
        axis.plot(
            [1.0, 1.03],
            [start, height],
            color=ink,
            lw=0.5,
            clip_on=False,
            transform=axis.transAxes,
            scalex=False,
            scaley=False,
        )
        axis.annotate(
            label, (1.04, height), xycoords="axes fraction", fontsize=7.5, va="center", color=ink
        )  # fmt: skip


def headline(figure: Figure, text: str) -> None:
    """Write above the panels what they show, in one sentence."""
    figure.suptitle(text, x=0.005, ha="left", fontsize=11.5, fontweight="bold")


def caption(figure: Figure, text: str) -> None:
    """Write a line under the panels: what lines and bands are."""
    figure.supxlabel(text, fontsize=8, color=INK[FAINT])


def log_rounds(axis: Axes, last: float, first: float | None = None) -> None:
    """Make the horizontal axis logarithmic in the rounds, marked at powers of ten.

    It begins at ``first``, where that is passed, or earlier if there are few rounds.
    """
    axis.set(xscale="log", xlabel="rounds")
    axis.set_xticks([10**k for k in range(9) if 10**k <= last])
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.minorticks_off()
    if first is not None:
        axis.set_xlim(min(first, last / 2), last)


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """Write a name beside each row of an axis, in place of lines across it."""
    axis.set_yticks(range(len(names)), names)
    axis.grid(axis="y", visible=False)


def plain_logs(axis: Axis) -> None:
    """Label a logarithmic axis 1, 3, 10, 30, ..., or less densely where it is long."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 1000 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def write(plot: Callable[[pd.DataFrame], Figure], table: pd.DataFrame, path: Path) -> None:
    """Write ``plot(table)`` as SVG, byte for byte the same for the same table."""
    with plt.rc_context({**RC, "svg.hashsalt": path.stem}):
        figure = plot(table)
        meta = {"Date": None, "Creator": None}
        files.replace(path, lambda part: figure.savefig(part, format="svg", metadata=meta))
    plt.close(figure)
