"""The page of a model that was fitted to a file: one file, nothing fetched from outside."""

import html
import shlex
from pathlib import Path

from ..support.printing import clean
from ..tabular.fitting import Fit
from . import fit_pictures, framed, sentences, table

MODELS = {"gaussian": "A linear", "binomial": "A logistic", "poisson": "A Poisson"}


def page(folder: Path, fit: Fit) -> str:
    """Return the page of a model that lies in ``folder``."""
    label, count = fit.encoding.label, len(fit.encoding.names)
    texts = {
        "title": f"{'T' + label[1:] if fit.encoding.trials else label} in {fit.source}",
        "target": label,
        "lead": (
            f"{MODELS[fit.family]} model of {label} on {count} "
            f"{'feature' if count == 1 else 'features'}, fitted to {fit.rows:,} rows in "
            f"{fit.seconds:.1f} s."
        ),
        "drivers": sentences.drivers(fit),
        "accuracy": sentences.accuracy(fit),
        "trust": " ".join(sentences.trust(fit)),
        "columns": sentences.columns(fit),
        "comparison": " ".join([fit.evaluation.notes()[0], *fit.evaluation.about]),
        "promises": " ".join(
            note for note in fit.summary.notes if not note.startswith(sentences.SCATTER)
        ),
        "caption": fit_pictures.caption(fit),
        "command": f"noisewise predict {shlex.quote(str(folder))} FILE",
        "python": _python(folder, fit),
    }
    return framed(
        "fit.html",
        {name: html.escape(text) for name, text in texts.items()},
        warnings=_warnings(fit),
        effects=fit_pictures.effects(fit),
        table=table(*fit.summary.cells(), left=1),
        predictions=fit_pictures.predictions(fit),
        losses=table(*fit.evaluation.cells(), left=1),
        residuals=fit_pictures.residuals(fit),
        uses=table(
            ("column", "used as"), [(clean(use.column), use.what) for use in fit.uses], left=2
        ),
        notes="".join(f"<li>{html.escape(note)}</li>" for note in fit.notes),
    )


def _warnings(fit: Fit) -> str:
    """Return what a reader should know first: intervals that failed, and an order that matters."""
    failed = sentences.coverage(fit) if fit.evaluation.looks.too_few else ""
    wrong = [fit.order if fit.sorted_by_target else "", failed, *fit.doubts]
    found = [f'<p class="no"><strong>{html.escape(each)}</strong></p>' for each in wrong if each]
    if fit.order and not fit.sorted_by_target:
        found.append(f"<p>{html.escape(fit.order)}</p>")
    return "\n".join(found)


def _python(folder: Path, fit: Fit) -> str:
    """Return how the model predicts in Python: by columns as in the file, if some are encoded."""
    encoding = fit.encoding
    shifted = encoding.exposure or encoding.offset
    if shifted or any(each.kind != "number" for each in encoding.features):
        lines = "from noisewise.tabular import predict", f"predict({str(folder)!r}, frame)"
    else:
        path = str(folder / "model.npz")
        lines = "import noisewise as nw", f"nw.load({path!r}).predict(frame)"
    return "\n".join(lines)
