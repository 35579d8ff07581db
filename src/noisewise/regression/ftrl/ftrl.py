"""FTRL: follow the regularised leader, exactly, for any increasing link."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from ...confidence import Ellipsoid, Interval, score_bounds
from ...inputs import (
    as_contiguous,
    check_magnitude,
    column,
    dimension,
    features,
    flag,
    numbers,
    one_of,
    positive,
    probability,
    shown,
    weights,
    with_slack,
)
from ...kernels.glm import layout
from ...kernels.glm.layout import Header
from ...model.glm import GLM
from ...model.noise import Noise
from ...numerics.blas import matmul
from ...protocols import Array, FloatOrArray, trait
from ...support.ownership import InUse, Owned
from ...theory import radii
from ..history import History
from ..intervals.fixed_row import one_direction
from .sets import ellipsoids, refuse_labels
from .solver import Session, code_for, settle
from .state import FTRLState

INFINITE = math.inf  # looked up per row


@dataclass(frozen=True)
class FTRL:
    r"""Follow the regularised leader.

    .. math:: \hat\mu_{t+1} = \arg\min_\mu \lambda\|\mu\|^2
              + \sum_{s\le t} w_s\,[m(x_s\cdot\mu) - y_s\,x_s\cdot\mu]

    Parameters
    ----------
    glm : GLM
    ridge : float > 0, optional
        Multiplies the squared norm; by default `GLM.ridge`, that of the regret theorem.
    tolerance : float >= 0
        The estimate is kept within ``tolerance * sqrt(dim)`` of the exact minimiser, measured as
        `FTRLState.gap` is, unless rounding alone exceeds that; 0 solves to rounding error after
        every row.
    certificate : {"rigorous", "calibrated"}
        Whether passes over the history are triggered by the proved gap or by the measured error;
        with the latter the proved gap may exceed the tolerance.
    oversize : {"raise", "warn"}
        What to do with a row whose norm exceeds ``glm.feature_bound``. Guarantees need "raise".
    aggregate : bool
        Merge equal rows.

    Examples
    --------
    The first step on the identity link is :math:`yx/(2\lambda + \|x\|^2)`:

    >>> ftrl = FTRL(GLM("identity"), ridge=4.0)
    >>> state = ftrl.start(dim=1)
    >>> float(ftrl.update(state, [1.0], 1.0)), float(state.theta[0]) == 1 / 9
    (0.0, True)

    References
    ----------
    Zhao, Zhou, He and Gu (2022), arXiv 2202.13603, Algorithm 1: regret of order
    sigma^2 d log T / kappa with probability 1 - delta.
    """

    glm: GLM = field(default_factory=GLM)
    ridge: float | None = None
    tolerance: float = 0.1
    certificate: str = "rigorous"
    oversize: str = "raise"
    aggregate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.glm, GLM):
            raise ValueError(f"glm is {shown(self.glm)}; pass a GLM, such as GLM('logistic')")
        if self.ridge is not None:
            object.__setattr__(self, "ridge", positive("ridge", self.ridge))
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance, zero=True))
        one_of("certificate", self.certificate, ("rigorous", "calibrated"))
        one_of("oversize", self.oversize, ("raise", "warn"))
        flag("aggregate", self.aggregate)

    def start(self, dim: int) -> FTRLState:
        """Make the state of a fresh learner: estimate 0, exact."""
        d = dimension(dim)
        glm, a = self.glm, layout.allocate(d)
        h = Header(a)
        M = glm.self_concordance
        h.dim, h.padded = d, layout.padded(d)
        h.code = code_for(glm, self.tolerance)
        h.bound = glm.score_bound
        h.limit = with_slack(glm.feature_bound) ** 2
        h.spread = self._spread
        h.tolerance = self.tolerance * np.sqrt(d)
        h.scale = h.stale_low = h.stale_high = 1.0
        h.calibrated = self.certificate == "calibrated"
        h.ridge = h.smallest = 2 * (glm.ridge if self.ridge is None else self.ridge)
        if M is not None:
            h.concordance, h.third = M, glm.third_derivative
        views = layout.Views(a, d)
        views.unit[:] = 1.0
        np.fill_diagonal(views.inverse, 1 / h.ridge)
        state = FTRLState(d, a, History.start(d, 1, self.aggregate), np.zeros((d, d)))
        state.solver.begin(state)
        state.model = glm
        return state

    def check_state(self, state: FTRLState) -> None:
        """Raise unless the state is of this model."""
        if not isinstance(state, FTRLState):
            trait(state, "head", None)  # one that was interrupted half-way says so
            raise ValueError(f"state is a {type(state).__name__}; pass one that `start` made")
        h, glm = state.head, self.glm
        if state.model is glm:
            return
        known = h.bound, h.limit, h.spread
        wanted = glm.score_bound, with_slack(glm.feature_bound) ** 2, self._spread
        compiled = glm.link.compiled
        same = h.code < 0 or (compiled is not None and compiled.code == h.code)
        if not (same and all(abs(a - b) <= 1e-9 * b for a, b in zip(known, wanted, strict=True))):
            raise ValueError(
                f"the state is of another model than {glm}; pass a state that this spec started"
            )
        state.model = glm

    @cached_property
    def _spread(self) -> float:
        return math.sqrt(self.glm.max_slope / self.glm.min_slope)

    def predict(self, state: FTRLState, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        self.check_state(state)
        x, single = features(x, state.dim)
        with Owned(state):
            theta = state.theta
        mean = self.glm.prediction(matmul(x, theta))
        return float(mean[0]) if single else mean

    def update(
        self,
        state: FTRLState,
        x: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        scores: bool = False,
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label.

        With ``scores`` the linear scores are returned instead of the means.
        """
        # the compiled step refuses what is no row of floats; a subclass may hide that it is none
        if type(x) is ndarray and state.model is self.glm and not scores:
            try:
                mean = state.step(y, weight, state.array, x)
            except state.solver.unfit:  # not a row of floats
                pass
            else:
                if mean < INFINITE:
                    return mean
                if mean == INFINITE:
                    return self._settled(state)
        self.check_state(state)
        x, single = features(x, state.dim, check=False)
        y = column("y", y, len(x), single)
        w = weights(weight, len(x) if np.ndim(weight) else 1, single)
        if single and not scores:
            mean = state.step(float(y[0]), float(w[0]), state.array, as_contiguous(x[0]))
            if mean <= INFINITE:
                return mean if mean < INFINITE else self._settled(state)
        self._refuse(state, x, y, w)
        with Session(self.glm, state):
            out = state.solver.learn(self.glm, state, x, y, w, scores)
        return float(out[0]) if single else out

    def _settled(self, state: FTRLState) -> float:
        """Return the mean of the last row, what its step asked for being done."""
        mean = state.head.last_mean
        with suppress(InUse):  # whoever has it does what was asked for
            settle(self.glm, state)
        return mean

    def _refuse(self, state: FTRLState, x: Array, y: Array, w: Array) -> None:
        """Raise, or warn, if a row is too long; raise if numbers are not finite or overflow."""
        if state.solver.fits(state, x, y, w):
            return
        numbers("x", x)
        square = np.einsum("ij,ij->i", x, x)
        A = self.glm.feature_bound
        row = int(np.argmax(square)) if len(x) else 0
        if len(x) and not square[row] <= with_slack(A) ** 2:
            size = np.sqrt(square[row])
            words = f"x has norm {size:.8g} at row {row}, above feature_bound {A:.8g}"
            if self.oversize == "raise" or not np.isfinite(square[row]):
                raise ValueError(f"{words}; scale the features or pass a larger feature_bound")
            warnings.warn(f"{words}; the guarantees do not cover such rows", stacklevel=3)
        check_magnitude(x, y, np.broadcast_to(w, len(x)))

    def solve(self, state: FTRLState) -> None:
        """Drive the gap to rounding error now."""
        self.check_state(state)
        with Session(self.glm, state):
            state.solver.solve(self.glm, state)

    def ellipsoid(
        self, state: FTRLState, noise: Noise, delta: float = 0.05, radius: str = "adaptive"
    ) -> Ellipsoid:
        r"""Return where the parameter lies, for all rounds at once with probability 1 - delta.

        The norm is that of :math:`2\lambda I + \kappa\sum w x x^\top`. ``radius`` is one of
        "adaptive", "played" (its older form), "self-normalised", "freedman", "printed" (the last
        two need `Bounded`); see `noisewise.theory.radii`.
        """
        return self._sets(state, noise, delta, radius, local=False)[0]

    def confidence(
        self, state: FTRLState, noise: Noise, delta: float = 0.05, radius: str = "adaptive"
    ) -> tuple[Ellipsoid, ...]:
        """Return the global ellipsoid and, where there is one, the local form; valid together."""
        return self._sets(state, noise, delta, radius, local=True)

    def interval(
        self,
        state: FTRLState,
        x: ArrayLike,
        noise: Noise | str,
        delta: float = 0.05,
        radius: str = "adaptive",
        *,
        anytime: bool = True,
        simultaneous: bool = True,
    ) -> Interval:
        """Return lower and upper bounds of the true mean at each row of ``x``.

        Parameters
        ----------
        noise : Noise, or "gaussian"
            What is known of the noise. "gaussian" is for an unknown sd, the identity link and rows
            fixed in advance.
        simultaneous : bool
            Hold for all rows at once, however chosen, with probability 1 - delta. Else for each row
            that was fixed in advance, which is narrower and needs no norm bound.
        anytime : bool
            Hold at all times at once. Else at one time fixed in advance, for one row: what
            textbooks give.

        Returns
        -------
        Interval
            Unpacks into lower and upper, and says what it promises and what that rests on. It
            contains the estimate. If the data contradict ``parameter_bound``, a warning is issued
            once, ``note`` says so, and a larger one is used instead: see ``rests_on``.
        """
        self.check_state(state)
        x, single = features(x, state.dim)
        probability("delta", delta)
        one_of("radius", radius, radii.RADII)
        flag("anytime", anytime)
        flag("simultaneous", simultaneous)
        note = ""
        with Session(self.glm, state):
            refuse_labels(self.glm, state, noise)
            if anytime and simultaneous:
                promise = "all rows, all times"
                lower, upper, rests_on, note = self._all_rows(state, x, noise, delta, radius)
            else:
                promise = f"a row fixed in advance, {'all times' if anytime else 'one time'}"
                *scores, rests_on = one_direction(self.glm, state, x, noise, delta, anytime)
                lower, upper = (self.glm.prediction(each) for each in scores)
        if "by more than noise" in note and not state.warned:
            state.warned = True
            warnings.warn(note, stacklevel=2)
        if single:
            return Interval(float(lower[0]), float(upper[0]), promise, rests_on, note)
        return Interval(lower, upper, promise, rests_on, note)

    def _all_rows(
        self, state: FTRLState, x: Array, noise: Noise | str, delta: float, radius: str
    ) -> tuple[Array, Array, str, str]:
        """Return bounds of means, what they rest on, and what the data contradict."""
        if isinstance(noise, str):
            raise ValueError(
                f"noise is {noise!r}, for rows fixed in advance; pass simultaneous=False, or for "
                "all rows at once what is known of the noise, such as SubGaussian(sigma)"
            )
        glm, B, theta = self.glm, self.glm.parameter_bound, state.theta
        sets = ellipsoids(glm, state, noise, delta, radius, local=True)
        rests_on, length = f"{noise} and parameter_bound {B:g}", math.sqrt(theta @ theta)
        if not self._contradicted(state, sets):
            beyond = length > B
            scores = score_bounds(sets, x, None if beyond else B)
            note = f"the estimate has norm {length:.3g}, beyond parameter_bound {B:g}"
            lower, upper = glm.prediction(np.array(scores))
            return lower, upper, rests_on, note if beyond else ""
        note = f"the data contradict parameter_bound {B:g} by more than noise; pass a larger one"
        larger, sets = self._larger_bound(state, noise, delta, radius)
        if not sets:
            everything = np.full(len(x), math.inf)
            return glm.prediction(-everything), glm.prediction(everything), "nothing", note
        scores = score_bounds(sets, x, larger.parameter_bound)
        lower, upper = map(larger.prediction, scores)  # of a link that is extended later
        means = glm.prediction(matmul(x, theta))
        rests_on = f"{noise} and a parameter of norm at most {larger.parameter_bound:g}"
        return np.minimum(lower, means), np.maximum(upper, means), rests_on, note

    def _contradicted(self, state: FTRLState, sets: tuple[Ellipsoid, ...]) -> bool:
        """Return whether no parameter within its bound explains the data, up to delta."""
        B, theta = self.glm.parameter_bound, sets[0].centre
        if sets[0].radius <= state.solver.slack(state):  # the level of the event is not positive
            return True
        return math.sqrt(theta @ theta) > B and not sets[0].meets_ball(B)

    def _larger_bound(
        self, state: FTRLState, noise: Noise, delta: float, radius: str
    ) -> tuple[GLM, tuple[Ellipsoid, ...]]:
        """Return the model of the first bound 2^k B that is ample, and its sets at delta / 2^k.

        Ample is twice the norm of its own estimate: a bound just short of the truth may not be
        contradicted either. The sets are empty where the link allows no such bound.
        """
        for k in range(1, 64):
            try:
                glm = replace(self.glm, parameter_bound=self.glm.parameter_bound * 2.0**k)
            except ValueError:  # its slopes get too small or too large to compute with
                break
            ridge = radii.interval_ridge(glm, noise, state.dim)
            ftrl = replace(self, glm=glm, ridge=ridge)
            moved = state.solver.with_model(ftrl.start(state.dim), glm, state)
            sets = ellipsoids(glm, moved, noise, delta / 2**k, radius, local=True)
            ample = 2 * float(np.linalg.norm(moved.theta)) <= glm.parameter_bound
            if ample and not ftrl._contradicted(moved, sets):
                return glm, sets
        return self.glm, ()

    def _sets(
        self, state: FTRLState, noise: Noise, delta: float, radius: str, local: bool
    ) -> tuple[Ellipsoid, ...]:
        probability("delta", delta)
        one_of("radius", radius, radii.RADII)
        self.check_state(state)
        with Session(self.glm, state):
            refuse_labels(self.glm, state, noise)
            return ellipsoids(self.glm, state, noise, delta, radius, local)
