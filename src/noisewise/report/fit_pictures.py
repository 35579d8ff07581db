"""Pictures of a model that was fitted to a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..estimators.coefficient_plot import MOST, draw_coefficients
from ..estimators.online_glm import SCORES
from ..evaluation.progressive.evaluation_plots import draw_losses
from ..protocols import Array
from ..support.drawing import BLACK, BLUE, GREY, RC, VERMILION
from ..tabular.diagnostics import Residuals, groups_of
from ..tabular.fitting import Fit
from . import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.4  # inches: a telephone shows it without scrolling
FEWEST = 30  # rows that a curve of averages takes
FEWEST_DOTS = 5


def picture(name: str, height: float, draw: Callable[[Axes], object]) -> str:
    """Return a figure with one axis as an element of the page."""
    with matplotlib.rc_context({**RC, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in another script
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return f"<figure>{figures.element(name, out.getvalue())}</figure>"


def effects(fit: Fit) -> str:
    """Return the effects with their intervals, the largest first."""
    height, what = 1.2 + 0.26 * min(len(fit.encoding.names), MOST), SCORES[fit.family]
    return picture(
        "effects",
        height,
        lambda axis: draw_coefficients(axis, fit.summary, what, fit.spreads, fit.delta),
    )


def predictions(fit: Fit) -> str:
    """Return what was predicted before and observed, and losses where they mean something."""
    if len(fit.evaluation.sample) <= FEWEST_DOTS:
        return ""
    shown = picture("observed", 3.0, lambda axis: _draw_observed(axis, fit))
    if fit.evaluation.compared.rows >= FEWEST and not fit.sorted_by_target:
        shown += picture("losses", 3.0, lambda axis: draw_losses(axis, fit.evaluation))
    return shown


def residuals(fit: Fit) -> str:
    """Return residuals over fitted values; of 0 and 1, shares over fitted probabilities."""
    held = fit.residuals
    if len(held.fitted) < FEWEST_DOTS:
        return ""
    if held.of_classes:
        return picture("residuals", 3.0, lambda axis: _draw_calibration(axis, held))
    return picture("residuals", 3.0, lambda axis: _draw_residuals(axis, held))


def caption(fit: Fit) -> str:
    """Return how the picture of residuals is read."""
    groups = "means of rows of about the same fitted value, with two standard errors"
    if len(fit.residuals.fitted) < FEWEST_DOTS:
        return ""
    if fit.residuals.of_classes and not fit.residuals.groups():
        return "Each dot is a row: 0 or 1, over its fitted probability."
    if fit.residuals.of_classes:
        return f"Shares observed: {groups}. They should lie near the line."
    shown = f" Orange: {groups}; they should lie near 0." if fit.residuals.groups() else ""
    where = "" if fit.family == "gaussian" else " if the family were exact"
    return f"About 95 % of the dots should lie in the grey band{where}.{shown}"


def _draw_observed(axis: Axes, fit: Fit) -> None:
    """Draw labels over what was predicted before; 0 and 1 by groups."""
    _, means, y = fit.evaluation.sample[1:].T
    if fit.residuals.of_classes:
        _draw_shares(axis, means, y)
        axis.set(xlabel="predicted before", ylabel="observed", title="Predicted and observed")
        return
    _dots(axis, means, y)
    low, high = _ends(means, 0.005) if len(means) else (0.0, 1.0)
    axis.plot([low, high], [low, high], color=BLACK, lw=0.8)
    pad = 0.05 * (high - low) or 1.0
    axis.set_xlim(low - pad, high + pad)
    axis.set(xlabel="predicted before", ylabel="observed", title="Predicted and observed")


def _ends(values: Array, share: float) -> tuple[float, float]:
    """Return quantiles that hold all of a few values, and all but the farthest of many."""
    low = np.quantile(values, share, method="lower")
    return float(low), float(np.quantile(values, 1 - share, method="higher"))


def _dots(axis: Axes, x: Array, y: Array) -> None:
    size = 8 if len(y) < 200 else 4 if len(y) < 2000 else 3
    alpha = min(1.0, 300 / max(len(y), 1) + 0.15)
    axis.plot(x, y, ".", color=BLUE, ms=size, alpha=alpha, mew=0)


def _draw_shares(axis: Axes, p: Array, y: Array) -> None:
    """Draw mean labels of groups with two standard errors, or all rows where these are few."""
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.04, 1.04))
    groups = groups_of(p)
    if not groups:
        axis.plot(p, y, "o", color=BLUE, ms=5, alpha=0.5, mew=0)
        return
    axis.plot([0, 1], [0, 1], color=BLACK, lw=0.8)
    for at in groups:
        error = 2 * (y[at] - p[at]).std() / np.sqrt(len(at))
        axis.errorbar(p[at].mean(), y[at].mean(), error, color=VERMILION, fmt="o", ms=4, lw=1)


def _draw_calibration(axis: Axes, held: Residuals) -> None:
    """Draw shares over fitted probabilities."""
    _draw_shares(axis, held.fitted, held.labels)
    axis.set(xlabel="fitted probability", ylabel="observed", title="Fitted and observed")


def _draw_residuals(axis: Axes, held: Residuals) -> None:
    """Draw residuals in units of the noise, where about 95 % should lie, and means of groups."""
    ends = _ends(held.scaled, 0.0025)
    low, high = min(ends[0], -2.5), max(ends[1], 2.5)
    pad = 0.04 * (high - low)
    axis.axhspan(-2, 2, color=GREY, alpha=0.12, lw=0)
    axis.axhline(0, color=BLACK, lw=0.8)
    _dots(axis, held.fitted, np.clip(held.scaled, low, high))
    for at in held.groups():
        error = 2 * held.scaled[at].std() / np.sqrt(len(at))
        middle = held.scaled[at].mean()
        axis.errorbar(held.fitted[at].mean(), middle, error, color=VERMILION, fmt="o", ms=4, lw=1)
    if held.family == "gaussian":
        unit = "residual / noise sd"
    else:
        unit = f"residual / {'binomial' if held.family == 'binomial' else 'Poisson'} sd"
    axis.set(xlabel="fitted value", ylabel=unit, title="Residuals")
    axis.set_ylim(low - pad, high + pad)
