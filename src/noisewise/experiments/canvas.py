"""How figures look: colour-blind safe, quiet axes, the same file from the same numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's palette, black last
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
}


def panels(rows: int, columns: int, width: float = 10.0, height: float = 2.6) -> tuple[Any, Any]:
    """Return a figure with a grid of axes, each row ``height`` inches high."""
    size = (width, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    return figure, axes


def plain_logs(axis: Any) -> None:
    """Label a logarithmic axis 1, 3, 10, 30, ..., or less densely where it is long."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high < 1000 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def write(plot: Callable[[Any], Any], table: Any, path: Path) -> None:
    """Write ``plot(table)`` as SVG, byte for byte the same for the same table."""
    part = path.with_suffix(".part")
    with plt.rc_context({**RC, "svg.hashsalt": path.stem}):
        figure = plot(table)
        figure.savefig(part, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    part.replace(path)
