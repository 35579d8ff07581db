"""Progressive validation: predict each row, then learn it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.table_rows import column_names, labels_of, rows_of, weights_of
from ...inputs import one_of, probability, refuse_class, shown
from ...protocols import Array
from ...support.progress import steps
from .players import Player, family_of, player
from .result import Evaluation
from .running_mean import RunningMean
from .textbook import NAMES, Textbook
from .validation import Validation

BLOCK, WORK = 1000, 2e8  # rows between two steps of the progress bar, and these times columns^2


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    delta: float = 0.05,
    baseline: object = "mean",
    progress: bool | None = None,
) -> Evaluation:
    """Predict each row before it is learnt, and compare with a baseline that does the same.

    Losses are squared errors, log losses for classes and shares, Poisson deviances for counts.

    Parameters
    ----------
    model : OnlineGLM, OnlineGLMClassifier, a regressor of noisewise, or an estimator of
        scikit-learn with ``partial_fit``
        A copy that has learnt nothing is evaluated.
    X, y, sample_weight
        Rows in the order in which they arrive.
    delta : float in (0, 1)
        The probability that an interval may miss. Intervals are checked from time to time; see
        `Looks`.
    baseline : "mean", "textbook", a model, or None
        The running mean of the labels; least squares, logistic or Poisson regression without ridge,
        refitted as rows grow and compared over the rows for which it had a fit; or another model.
    progress : bool, optional
        Show a progress bar; by default on a terminal where tqdm is installed.

    Returns
    -------
    Evaluation
        Prints as a table, draws itself by ``plot()``.

    Examples
    --------
    >>> import noisewise as nw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> found = evaluate(nw.OnlineGLM(), X, X @ [1.0, 2.0] + rng.normal(size=300))
    >>> found.losses["OnlineGLM"] < 0.3 * found.losses["running mean"]
    True
    """
    refuse_class("model", model)
    refuse_class("baseline", baseline)
    probability("delta", delta)
    family, columns, classes = family_of(model), column_names(X), None
    x = rows_of(X, columns)
    w = weights_of(sample_weight, len(x))
    if family == "classes":
        classes, labels = _classes(y, len(x))
        family = "binomial" if len(classes) == 2 else "classes"
    else:
        labels = labels_of(y, len(x), type(model).__name__)
    name = type(model).__name__
    players = {name: player(model, x, w, classes, columns)}
    if baseline is not None:
        title, other = _baseline(baseline, family)
        if classes is None and family == "binomial":
            classes = [0.0, 1.0]
        title = f"{title} (baseline)" if title == name else title
        players[title] = other or player(baseline, x, w, classes, columns)
    validation = Validation(players, family, delta)
    means = np.empty(labels.shape)
    block = min(BLOCK, 10 + int(WORK / x.shape[1] ** 2))
    for at in steps(len(x), block, progress):
        here = slice(at, at + block)
        means[here] = validation.update(x[here], labels[here], w[here])
    return validation.result(repr(model), means)


def _baseline(baseline: object, family: str) -> tuple[str, Player | None]:
    """Return the name of the baseline, and who plays it unless it is a model."""
    if not isinstance(baseline, str):
        return type(baseline).__name__, None
    one_of("baseline", baseline, ("mean", "textbook"))
    if baseline == "mean":
        return "running mean", RunningMean(family)
    if family == "classes":
        raise ValueError("baseline is 'textbook', which is for two classes; pass 'mean' or a model")
    return NAMES[family], Textbook(family)


def _classes(y: ArrayLike, count: int) -> tuple[Sequence[object], Array]:
    """Return the classes in order, and labels: 0 and 1, or a column for each of several."""
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.shape != (count,):
        raise ValueError(f"y has shape {np.shape(y)}; pass {count} labels, one per row of X")
    if len(classes) < 2:
        raise ValueError(f"y holds one class, {shown(classes[0])}; pass rows of at least two")
    labels = codes.astype(np.float64) if len(classes) == 2 else np.eye(len(classes))[codes]
    return list(classes), labels
