r"""Anchored Newton: exact FTRL for any link at the price of a least-squares round.

All rows, old and new, are linearised at an anchor m; the estimate is one Newton step from it,
:math:`\mu = m + u,\ u = -H^{-1}\nabla F(m)`. Adding a row to F(m), its gradient and H is a rank-one
update, done by the compiled step, which also bounds the distance to the minimiser. When the bound
passes the tolerance, the anchor moves to the estimate and one pass over the history renews the
gradient, and the factor too where the old one has become too stale to travel with.
"""

import math

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..glm import GLM
from ..inputs import as_contiguous
from ..kernels import layout as at
from ..links import LINKS
from ..ownership import Owned
from ..protocols import Array
from . import newton
from .state import FTRLState

LINEAR_RENEWAL = 4096


def third_derivative(glm: GLM) -> float:
    """Return N with |phi'''| <= N phi' on [-S, S]."""
    S, M = glm.score_bound, glm.self_concordance
    known = {
        "identity": 0.0,
        "logistic": 1.0,
        "exponential": 1.0,
        "tanh": 4.0,
        "algebraic": 3.0,
        "probit": max(1.0, S * S - 1),
    }
    assert M is not None
    # a user's link: with N = M^2 and skew = M the bound becomes (e^{M rho} - 1 - M rho)/(M rho)
    return known[glm.link.name] if link_code(glm) >= 0 else M * M


def link_code(glm: GLM) -> int:
    """Return the code of a built-in link, or that of a link of the user's own."""
    name = glm.link.name
    return at.CODES[name] if LINKS.get(name) == glm.link else at.OWN


class Session:
    """A state while it is in use: by one thread, its status BUSY, and brought to rest first.

    A step may have asked for something; an interrupt may have left the state half written. Rows and
    their number are whole at every moment, and all else is computed from them again.
    """

    def __init__(self, glm: GLM, state: FTRLState) -> None:
        self.glm, self.state, self.owned = glm, state, Owned(state)

    def __enter__(self) -> None:
        self.owned.__enter__()
        try:
            status = self.state.head.swap_status(at.BUSY)
            if status == at.BUSY:
                _recover(self.glm, self.state)
            elif status != at.FINE:
                handle_status(self.glm, self.state, status)
        except BaseException:
            self.owned.__exit__()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.state.head.status = at.FINE
        finally:
            self.owned.__exit__()


def settle(glm: GLM, state: FTRLState) -> None:
    """Do what a step has asked for, or bring a state to rest that an interrupt left unfinished."""
    with Session(glm, state):
        pass


@one_thread
def _recover(glm: GLM, state: FTRLState) -> None:
    """Compute anew what follows from the rows."""
    h = state.head
    h.cancelled = 0.0
    if h.code == at.CODES["identity"]:
        solve(glm, state)
        return
    h.buffered = h.count - state.rows.absorbed
    state.flush()
    if h.code == at.EXACT:
        newton.rebuild(glm, state)
    elif state.count:
        _move(glm, state, 0.0)
        h.stale_low = 1.0  # what was measured against curvatures that may be torn
        _renew(state)
        h.leverage = _largest_leverage(state, state.inverse())
        state.kernels.restep(state.array)
        if h.pass_due:
            refresh(glm, state)


def play(glm: GLM, state: FTRLState, x: Array, y: Array, w: Array, what: int, out: Array) -> None:
    """Learn checked rows in the compiled loop; it comes back only when passes are due."""
    h = state.head
    x, y, w = as_contiguous(x).reshape(-1), as_contiguous(y), as_contiguous(w)
    done = 0
    if h.buffered >= at.BUFFER:  # no place for a row
        handle_status(glm, state, at.ATTENTION)
    while done < len(y):
        done = state.kernels.run(state.array, x, y, w, done, what, out)
        if h.request != at.FINE:
            handle_status(glm, state, h.request)


def learn(glm: GLM, state: FTRLState, x: Array, y: float, w: float, z: float) -> None:
    """Learn one row of a user's link, evaluated here, with the compiled rank-one update."""
    from ..kernels.user_link import feed

    S, m = glm.score_bound, float(x @ state.views.anchor)
    inside = min(max(z, -S), S)
    loss = w * (float(glm.potential(inside)) - y * inside)
    parts = float(glm.mean(m)), float(glm.slope(m)), float(glm.potential(m))
    request = feed(state.array, as_contiguous(x), y, w, *parts, loss)
    if request != at.FINE:
        handle_status(glm, state, request)


def handle_status(glm: GLM, state: FTRLState, request: float) -> None:
    """Do what the compiled step asked for: empty the buffer, renew factor or anchor."""
    h = state.head
    early = h.count in (2 * state.dim, 4 * state.dim) or bool(h.cancelled)
    h.cancelled = 0.0
    if h.code == at.CODES["identity"]:
        # a full buffer is folded, and every so many rows the factor is renewed too
        before = state.folded // LINEAR_RENEWAL
        _fold_linear(state)
        if early or state.folded // LINEAR_RENEWAL > before:
            _refactor_linear(state)
        return
    if h.buffered == at.BUFFER:
        state.flush()
    if request == at.RENEW:
        _renew(state)
    if early or h.pass_due:
        refresh(glm, state, renew=early)


def _fold_linear(state: FTRLState) -> None:
    """Identity link: move the buffer, whose rows are weighted already, into the Gram matrix."""
    from ..kernels.gram import add_gram

    add_gram(state.array, state.gram, np.empty(at.padded(state.dim) ** 2))
    state.folded = state.count


def _refactor_linear(state: FTRLState) -> None:
    """Identity link: factor the Gram matrix anew, the buffer being empty."""
    h, v = state.head, state.views
    h.pending = 0.0
    c = linalg.factor(state.gram + h.ridge * np.eye(state.dim))
    v.step[:] = linalg.solve(c, -v.gradient)
    v.inverse[:] = linalg.invert(c)
    h.factors += 1


@one_thread
def refresh(glm: GLM, state: FTRLState, renew: bool = False, exact: bool = False) -> None:
    """Move the anchor until no pass is due (``exact``: until the gap is all rounding)."""
    h = state.head
    for attempt in range(200):
        value = h.value
        worn = _move(glm, state) == at.FACTOR_STALE
        if worn or renew or exact or attempt > 0:
            _renew(state)
        if not exact and not h.pass_due:
            return
        # what is left is rounding: of the gradient, or of the value that guards the steps
        if h.gap <= 1.01 * h.blur or (attempt > 2 and not h.value < value):
            return


def _move(glm: GLM, state: FTRLState, s: float = 1.0) -> int:
    """Move the anchor to m + s u for the first of s, s/2, ... that lowers F enough."""
    h, kernels = state.head, state.kernels
    if s:
        _survey_inverse(state)
    while True:
        kernels.propose(state.array, s, np.empty(3 * at.BUFFER))
        for x, numbers, n in state.rows if h.code >= 0 else state.blocks():
            _scan(glm, state, x[:n], numbers, n)
        verdict = kernels.judge(state.array, s)
        if verdict != at.RETRY:
            return int(verdict)
        s = s / 2 if s > 1e-9 else 0.0


def _survey_inverse(state: FTRLState) -> None:
    """Bound the eigenvalues of H from below and the leverages from above, as they are now.

    Leverages only fall as rows are added, but computing them takes a product with every row: done
    when the count has tripled, or grown ninefold if they did not help, as on isotropic rows.
    """
    h, P = state.head, state.inverse()
    h.smallest = max(h.smallest, 1 / linalg.largest_eigenvalue_bound(P))
    if h.count >= h.survey:
        q = _largest_leverage(state, P)
        if q > 0:  # else rounding has spoilt the inverse, which is about to be renewed
            h.leverage = min(h.leverage, q)
        usual = h.longest * np.linalg.norm(state.views.step)
        helps = math.sqrt(h.leverage) * h.step_norm < 0.7 * usual
        h.survey = (3 if helps else 9) * h.count


def _largest_leverage(state: FTRLState, P: Array) -> float:
    """Return the largest x'Px of a row, rounded up."""
    most = max(np.einsum("ij,ij->i", x[:n] @ P, x[:n]).max() for x, _, n in state.blocks())
    return float(most) * (1 + 1e-9)


def _scan(glm: GLM, state: FTRLState, x: Array, numbers: Array, n: int) -> None:
    """Add a block of rows to the sums of the pass, and note their curvature at the trial point."""
    h, v = state.head, state.views
    z = x @ v.trial
    if h.code >= 0:
        both = transcend(glm, z)
        state.kernels.scan(state.array, z, *both, numbers.reshape(-1), 0, numbers.shape[1])
        v.trial_gradient += z @ x
        return
    w, wy, old, fresh = numbers[:, :n]
    potential, pull = w * glm.potential(z), wy * z
    fresh[:] = w * glm.slope(z)
    ratio = fresh / old
    v.trial_gradient += (w * glm.mean(z) - wy) @ x
    h.trial_value += (potential - pull).sum()
    h.trial_size += (np.abs(potential) + np.abs(pull)).sum()
    h.trial_skew = glm.self_concordance or 0.0
    h.trial_stale_low = min(h.trial_stale_low, ratio.min())
    h.trial_stale_high = max(h.trial_stale_high, ratio.max())
    h.trial_stale_sum += old @ (ratio - 1) ** 2


def transcend(glm: GLM, z: Array) -> tuple[Array, Array]:
    """The compiled `transcend` of the clipped scores, in numpy: vectorised, so faster for many."""
    S, name = glm.score_bound, glm.link.name
    c = np.minimum(np.maximum(z, -S), S)
    if name == "exponential":
        e = np.exp(c)
        return e, e
    if name == "probit":
        from scipy.special import erfc

        return np.exp(-0.5 * c * c), erfc(-math.sqrt(0.5) * c)
    if name == "algebraic":
        return c, c
    e = np.exp(np.abs(c) * (-2.0 if name == "tanh" else -1.0))
    return e, np.log1p(e)


@one_thread
def _renew(state: FTRLState) -> None:
    """Form H from the curvatures the pass noted, invert it, and bound its least eigenvalue."""
    h, v = state.head, state.views
    H = h.ridge * np.eye(state.dim)
    for x, numbers, n in state.blocks():
        root = x[:n] * np.sqrt(numbers[3, :n])[:, None]
        H += root.T @ root
        numbers[2, :n] = numbers[3, :n]
    P = linalg.invert(linalg.factor(H))
    v.inverse[:] = P
    h.leverage /= h.stale_low  # the new H is at least that share of the old one
    h.stale_low = h.stale_high = 1.0
    h.stale_sum = 0.0
    h.smallest = max(1 / linalg.largest_eigenvalue_bound(P), h.ridge)
    h.loss = 0.0
    h.factors += 1
    state.kernels.restep(state.array)


@one_thread
def solve(glm: GLM, state: FTRLState) -> None:
    """Drive the gap to rounding error."""
    if state.head.code == at.CODES["identity"]:
        _fold_linear(state)
        _refactor_linear(state)
    elif state.count:
        refresh(glm, state, exact=True)
