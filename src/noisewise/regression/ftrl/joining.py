"""States made of sums over rows, or of other states, instead of row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from ...inputs import shown
from ...kernels.glm.layout import Header
from ...model.glm import GLM
from ...numerics.blas import one_thread
from ...protocols import Array
from .condensed import Condensed, standing_rows
from .ftrl import FTRL
from .least_squares import full_gram
from .solver import Session
from .state import FTRLState
from .sums import Sums


@one_thread
def state_of_sums(ftrl: FTRL, found: Sums, theta: Array) -> FTRLState:
    """Return the state of rows that are not held, given their sums at ``theta``, the minimiser.

    For the identity link ``theta`` is 0, and the state that of the rows. Scores played count as 0.
    """
    glm, state = ftrl.glm, ftrl.start(len(theta))
    h, v = state.head, state.views
    note(state, [found])
    if glm.linear:
        v.gradient[:], state.gram[:] = found.gradient, found.gram
        h.total, h.curved = found.total, float(np.trace(found.gram))
        _finish_linear(glm, state, played=0.0)
        return state
    known = Condensed(
        count=found.count,
        rows=min(state.dim, found.count),
        centre=theta.copy(),  # what comes from a worker may be read-only
        curvature=found.curvature.copy(),
        gram=found.gram.copy(),
        longest=found.longest,
        total=found.total,
    )
    rows = [standing_rows(glm, known, found.gradient)]
    return of_rows(glm, state, rows, [known], theta)


def merge(spec: FTRL, states: Sequence[FTRLState]) -> FTRLState:
    r"""Return the state of the rows of all states together, each having learnt rows of its own.

    Identity link: sums of squares and products are added, which is exact and takes :math:`d^3`
    operations. Curved links: the rows that states hold are put together and solved for, started
    at the average of the estimates, weighted by the numbers of rows. Up to rounding, the order of
    states, and whether some are merged before others, make no difference.

    Parameters
    ----------
    spec : FTRL
        The learner of the result. The states are of the same model; their ridge and tolerance may
        differ.
    states : list of states
        At least one. They are not changed.

    Returns
    -------
    FTRLState
        It goes on learning. What each state had played before the labels stays played, so that
        confidence sets hold as before. Of states of curved links by `fit_partitions` the summaries
        are kept, each with its certificate.

    Examples
    --------
    >>> import noisewise as nw
    >>> ftrl = nw.FTRL(nw.GLM("identity"), ridge=1.0)
    >>> north, south = ftrl.start(dim=1), ftrl.start(dim=1)
    >>> _ = ftrl.update(north, [1.0], 1.0), ftrl.update(south, [0.5], 2.0)
    >>> both = nw.merge(ftrl, [north, south])
    >>> both.count, float(both.theta[0].round(4)) == round(2.0 / 3.25, 4)
    (2, True)
    """
    if not isinstance(spec, FTRL):
        raise ValueError(f"spec is {shown(spec)}; pass the FTRL(...) that the states are of")
    states = list(states)
    if not states:
        raise ValueError("states is empty; pass at least one")
    for each in states:
        spec.check_state(each)
    dims = sorted({each.dim for each in states})
    if len(dims) > 1:
        raise ValueError(f"states have {dims[0]} and {dims[-1]} features; pass states of one model")
    if len({id(each) for each in states}) < len(states):
        raise ValueError("states holds one of them twice; rows must be of one state only")
    with ExitStack() as in_use:
        for each in states:
            in_use.enter_context(Session(spec.glm, each))
        return _merge(spec, states)


@one_thread
def _merge(spec: FTRL, states: list[FTRLState]) -> FTRLState:
    glm, fresh = spec.glm, spec.start(states[0].dim)
    h, v = fresh.head, fresh.views
    note(fresh, (each.head for each in states))
    if glm.linear:
        played = 0.0
        for each in states:
            v.gradient += each.views.gradient
            fresh.gram += full_gram(each)
            h.total, h.curved = h.total + each.head.total, h.curved + each.head.curved
            least = 0.5 * float(each.theta @ each.views.gradient)
            played += each.head.played + least
        _finish_linear(glm, fresh, played)
        return fresh
    condensed = [part for each in states for part in each.condensed]
    if condensed and spec.aggregate:
        raise ValueError(
            "aggregate=True merges equal rows, and a state holds a summary; pass False"
        )
    if any(each.rows.merge for each in states) and not spec.aggregate:
        raise ValueError("a state has merged equal rows; pass a spec with aggregate=True")
    h.played = math.fsum(each.head.played for each in states)
    shares = [each.count / max(h.count, 1) for each in states]
    theta = sum(
        (s * each.theta for s, each in zip(shares, states, strict=True)), np.zeros(fresh.dim)
    )
    first, rest = [], []
    for each in states:
        standing = sum(part.rows for part in each.condensed)
        for block in each.blocks():
            cut, labels = min(standing, len(block.x)), np.array([block.weight, block.pull])
            first.append((block.x[:cut], labels[:, :cut]))
            rest.append((block.x[cut:], labels[:, cut:]))
            standing -= cut
    state = of_rows(glm, fresh, first + rest, condensed, theta)
    spec.solve(state)
    return state


def note(state: FTRLState, parts: Iterable[Sums | Header]) -> None:
    """Set what the header knows of rows beside their loss."""
    h = state.head
    for each in parts:
        h.count += each.count
        h.squares += each.squares
        h.heaviest, h.longest = max(h.heaviest, each.heaviest), max(h.longest, each.longest)
        h.lowest, h.highest = min(h.lowest, each.lowest), max(h.highest, each.highest)


def _finish_linear(glm: GLM, state: FTRLState, played: float) -> None:
    """Solve for the sums of squares in a state, whose rows were played at that loss."""
    h = state.head
    state.folded = state.count
    h.leverage = h.longest * h.longest / h.ridge
    state.solver.rebuild(glm, state)
    h.played = played - 0.5 * float(state.theta @ state.views.gradient)


def of_rows(
    glm: GLM,
    fresh: FTRLState,
    rows: list[tuple[Array, Array]],
    condensed: list[Condensed],
    theta: Array,
) -> FTRLState:
    """Return the state of rows, weights and labels, of which the first stand for others."""
    h, held = fresh.head, fresh.rows
    h.total = math.fsum(each.total for each in condensed)
    for x, labels in rows:
        if not len(x):
            continue
        w, pull = labels
        z, length = x @ theta, np.sqrt(np.vecdot(x, x))
        curvature = w * glm.slope(z)
        held.extend(x, labels, curvature[None])
        h.total += float(length @ (np.abs(w * glm.mean(z) - pull) + np.abs(pull)))
        h.curved += float(curvature @ length**2)
    gram = sum((each.gram for each in condensed), np.zeros_like(fresh.gram))
    state = replace(
        fresh, gram=gram, folded=sum(each.rows for each in condensed), condensed=condensed
    )
    state.views.anchor[:] = theta
    state.solver.rebuild(glm, state)
    state.model = glm
    return state
