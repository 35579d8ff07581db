"""The page of a model that was fitted to a file: one file, nothing fetched from outside."""

import html
import shlex
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import BLACK, BLUE, RC, VERMILION
from ..estimators.pictures import MOST
from ..evaluation.pictures import draw_coverage, draw_losses, draw_widths, has_widths
from ..evaluation.textbook import NAMES
from ..printing import percent
from ..tabular.fitting import Fit
from . import figures, framed, table

WIDTH = 4.4  # inches: a telephone shows it without scrolling


def page(folder: Path, fit: Fit) -> str:
    """Return the page of a model that will lie in ``folder``."""
    target, count = fit.encoding.target, len(fit.encoding.names)
    success = fit.encoding.success
    modelled = repr(target) if success is None else f"{target} = {success!r}"
    texts = {
        "title": f"{target} in {fit.source}",
        "lead": (
            f"{_articled(fit.family)} model of {modelled} on {count} "
            f"{'feature' if count == 1 else 'features'}, learnt from {fit.rows:,} rows one by one "
            f"in {fit.seconds:.1f} s."
        ),
        "score": score(fit),
        "comparison": " ".join([*fit.evaluation.notes(), fit.comparison]),
        "promises": " ".join(fit.summary.notes),
        "command": f"noisewise predict {shlex.quote(str(folder))} FILE",
        "python": _python(folder, fit),
    }
    return framed(
        "fit.html",
        {name: html.escape(text) for name, text in texts.items()},
        predictions=_picture("losses", 3.0, lambda axis: draw_losses(axis, fit.evaluation))
        + _picture("observed", 3.0, lambda axis: _draw_observed(axis, fit)),
        losses=table(*fit.evaluation.cells(), left=1),
        coefficients=_coefficients(fit),
        table=table(*fit.summary.cells(), left=1),
        intervals=_intervals(fit),
        notes="".join(f"<li>{html.escape(note)}</li>" for note in fit.notes),
    )


def _python(folder: Path, fit: Fit) -> str:
    """Return how the model predicts in Python: by columns as in the file, if some are encoded."""
    if any(each.kind != "number" for each in fit.encoding.features):
        lines = "from noisewise.tabular import predict", f"predict({str(folder)!r}, frame)"
    else:
        path = str(folder / "model.npz")
        lines = "import noisewise as nw", f"nw.load({path!r}).predict(frame)"
    return "\n".join(lines)


def _articled(family: str) -> str:
    return {"gaussian": "A linear", "binomial": "A logistic", "poisson": "A Poisson"}[family]


def score(fit: Fit) -> str:
    """Return in a sentence how well the model predicts."""
    model, _, mean = fit.evaluation.losses.values()
    late, textbook, _ = fit.evaluation.late_losses.values()
    said = f"Asked for each row before learning it, the model has a mean {fit.evaluation.loss} of "
    said += f"{model:.4g}{_compared(model, mean, ', ', 'the running mean')}."
    than = f" After row {fit.evaluation.half:,} it is "  # before, a fit has too few rows
    found = _compared(late, textbook, than, NAMES[fit.family])
    return f"{said}{found}." if found else said


def _compared(loss: float, other: float, before: str, name: str) -> str:
    """Return how far a loss is from another one, nothing where that is 0."""
    if not other > 0:
        return ""
    side = "below" if loss <= other else "above"
    return f"{before}{percent(abs(1 - loss / other), 1)} {side} {name}"


def _picture(name: str, height: float, draw: Callable[[Any], object], width: float = WIDTH) -> str:
    """Return a figure with one axis as an element of the page."""
    with matplotlib.rc_context({**RC, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in another script
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return f"<figure>{figures.element(name, out.getvalue())}</figure>"


def _coefficients(fit: Fit) -> str:
    height = 1.2 + 0.26 * min(len(fit.encoding.names), MOST)
    return _picture("coefficients", height, lambda axis: fit.model.plot(fit.delta, ax=axis))


def _intervals(fit: Fit) -> str:
    """Return the section on intervals, empty where the rows were too few for any."""
    if not has_widths(fit.evaluation):
        return ""
    shown = _picture("widths", 3.0, lambda axis: draw_widths(axis, fit.evaluation))
    words = "Asked at a few times for the rows that came next: how wide intervals were."
    if fit.evaluation.looks.table[:, 3].sum():
        shown += _picture("coverage", 3.0, lambda axis: draw_coverage(axis, fit.evaluation))
        words = (
            "Asked at a few times for the rows that came next: how wide intervals were, and how "
            "many observations lay inside theirs. The grey band is two standard errors wide on "
            "each side of what was promised."
        )
    return (
        f'<section id="intervals"><h2>Intervals</h2><p>{words}</p>'
        f'<div class="pictures">{shown}</div></section>'
    )


def _draw_observed(axis: Any, fit: Fit) -> None:
    """Draw labels against what was predicted before; shares of successes for classes."""
    _, means, y = fit.evaluation.sample[1:].T
    if fit.family == "binomial":
        _draw_calibration(axis, means, y)
        return
    size = 8 if len(y) < 200 else 4 if len(y) < 2000 else 3
    axis.plot(means, y, ".", color=BLUE, ms=size, alpha=min(1.0, 300 / len(y) + 0.15), mew=0)
    low, high = np.quantile(means, (0.005, 0.995)) if len(means) else (0.0, 1.0)
    axis.plot([low, high], [low, high], color=BLACK, lw=0.8)
    pad = 0.05 * (high - low) or 1.0
    axis.set_xlim(low - pad, high + pad)
    axis.set(xlabel="predicted before", ylabel="observed", title="Predicted and observed")


def _draw_calibration(axis: Any, p: Any, y: Any) -> None:
    """Draw the mean label of rows of about the same prediction, with two standard errors."""
    axis.plot([0, 1], [0, 1], color=BLACK, lw=0.8)
    for part in np.array_split(np.argsort(p, kind="stable"), min(10, max(len(p) // 20, 1))):
        if len(part):
            error = 2 * (y[part] - p[part]).std() / np.sqrt(len(part))
            axis.errorbar(
                p[part].mean(), y[part].mean(), error, color=VERMILION, fmt="o", ms=4, lw=1
            )
    axis.set(xlabel="predicted before", ylabel="share observed", title="Predicted and observed")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
