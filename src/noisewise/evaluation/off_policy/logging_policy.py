"""Probabilities of the actions of a log, estimated where none were recorded."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...estimators.online_glm_classifier import OnlineGLMClassifier
from ...inputs import shown
from .decision_table import DecisionTable
from .estimates import FIXED, RECORDED, Estimate

FOLDS = 5
LEAST = 1e-12  # so that weights are numbers
DOUBT = (
    "probabilities were not recorded but estimated: if the log's policy changed with time, or used "
    "anything but the columns of the context, every line but 'played' is off, and the log can't "
    "show it"
)
ESTIMATED = (
    "probabilities estimated from this log by logistic regression on the context, cross-fitted in "
    f"{FOLDS} parts, and right if the log's policy was one fixed function of these columns"
)


def with_probabilities(table: DecisionTable) -> DecisionTable:
    r"""Return a table with the estimated probability of each action taken.

    A softmax of scores linear in the context is fitted by `OnlineGLMClassifier`, to four fifths of
    the decisions for those of each last fifth: so no weight depends on the action that it weighs.
    """
    a, K = table.action, len(table.actions)
    if table.arms is not None:
        raise ValueError(
            "estimate_probability is True, but log has the features of arms in place of a context; "
            "record probabilities"
        )
    times = np.bincount(a, minlength=K)
    if (times > 0).sum() < 2:
        raise ValueError("estimate_probability is True, but log has one action; pass several")
    if (times == 1).any():
        rare = table.actions[int((times == 1).argmax())]
        raise ValueError(
            f"action {shown(rare)} was taken once, too seldom to estimate its probability; leave "
            "out the decisions that took it, or group rare actions"
        )
    x = table.features()
    x = x if x.shape[1] else np.zeros((len(table), 1))
    p, fold = np.empty(len(table)), _folds(a, K)
    for k in range(min(FOLDS, int(times.max()))):
        out = fold == k
        model = OnlineGLMClassifier().fit(x[~out], a[~out])
        place = np.searchsorted(model.classes_, a[out])
        p[out] = model.predict_proba(x[out])[np.arange(len(place)), place]
    return replace(table, probability=np.maximum(p, LEAST))


def _folds(action: NDArray[np.intp], count: int) -> NDArray[np.int64]:
    """Return the part of each decision: the same draw always, actions spread over all parts."""
    rng, fold = np.random.default_rng(0), np.empty(len(action), dtype=np.int64)
    for k in range(count):
        at = rng.permutation(np.flatnonzero(action == k))
        fold[at] = np.arange(len(at)) % FOLDS
    return fold


def restated(found: Estimate) -> Estimate:
    """Return an estimate that says what it rests on: its interval holds at one time only."""
    return replace(found, promise=FIXED, rests_on=found.rests_on.replace(RECORDED, ESTIMATED))
