"""What FTRL asks of a solver, and how a state is taken into use.

`LeastSquares` serves the identity link, `AnchoredNewton` curved links, `ExactNewton` those whose
curvature is not known and whoever asks for no tolerance.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from ...confidence import Ellipsoid
from ...inputs import as_contiguous
from ...kernels.glm import adaptive_set, layout
from ...model.glm import GLM
from ...numerics import linalg
from ...protocols import Array
from ...support.ownership import Owned, Writing
from .condensed import refuse

if TYPE_CHECKING:
    from .state import FTRLState

Step = Callable[[ArrayLike, ArrayLike, Array, Array], float]  # label, weight, array of a state, row


def code_for(glm: GLM, tolerance: float) -> int:
    """Return the code of the solver that serves a model: that of its compiled link, or another."""
    if glm.linear:
        return layout.LINEAR
    if tolerance == 0 or glm.self_concordance is None or not glm.extend:
        return layout.EXACT
    return layout.OWN if glm.link.compiled is None else glm.link.compiled.code


class Prior(NamedTuple):
    """The matrix of a mixture: 2 lam0, its inverse and log det over 2 lam0; for counts, log c."""

    ridge: float
    inverse: Array
    log_det: float
    counts: float | None = None


class Solver(ABC):
    """One way to keep the minimiser up to date as rows come; one instance serves all states.

    The state is in use (`Session`) when a method that writes is called, and rows are checked.
    """

    keeps_rows = True  # whether the history is kept, or its Gram matrix alone
    unfit: tuple[type[Exception], ...] = ()  # what `step` raises where its arguments do not fit

    @abstractmethod
    def step(self) -> Step:
        """Return a compiled call that learns a row (kernels/glm/step.py) or never does."""

    def begin(self, state: "FTRLState") -> None:  # noqa: B027
        """Make a fresh state ready for its first row."""

    def fits(self, state: "FTRLState", x: Array, y: Array, w: Array) -> bool:
        """Whether all rows are finite and short enough, where that is found quickly."""
        return False

    @abstractmethod
    def learn(
        self, glm: GLM, state: "FTRLState", x: Array, y: Array, w: Array, scores: bool
    ) -> Array:
        """Learn rows; return the mean, or score, that each had before its label.

        ``w`` holds a weight for each row, or one for all.
        """

    @abstractmethod
    def handle_request(self, glm: GLM, state: "FTRLState") -> None:
        """Do what is due."""

    @abstractmethod
    def rebuild(self, glm: GLM, state: "FTRLState") -> None:
        """Recompute what follows from the rows, after an interrupt."""

    @abstractmethod
    def solve(self, glm: GLM, state: "FTRLState") -> None:
        """Drive the gap to rounding error."""

    @abstractmethod
    def move_ridge(self, glm: GLM, state: "FTRLState", ridge: float) -> None:
        """Make the state that of the same rows with another 2 lambda."""

    def with_model(self, fresh: "FTRLState", glm: GLM, state: "FTRLState") -> "FTRLState":
        """Return the fresh state of another model after the rows of a state."""
        refuse(state, "another parameter_bound, which the data ask for,")
        for block in state.blocks():
            fresh.solver.learn(
                glm, fresh, block.x, block.pull / block.weight, block.weight, scores=True
            )
        return fresh

    def gap(self, state: "FTRLState") -> float:
        """Return the proved distance from the exact minimiser."""
        return state.head.gap

    def slack(self, state: "FTRLState") -> float:
        """Return what that distance adds to a radius."""
        return state.gap

    @abstractmethod
    def excess(self, state: "FTRLState") -> float:
        """Return an upper bound of the played loss (scores clipped) less the minimum of F."""

    def mixture(self, glm: GLM, state: "FTRLState", constant: float) -> float:
        r"""Return the loss of a mixture of fixed parameters less a lower bound of min F.

        L is the loss without ridge, :math:`L^0 = L + \lambda_0\|\cdot\|^2`, m the anchor and g
        its gradient there; with `prior` it is
        :math:`L^0(m) - \frac12 g^\top H_0^{-1} g + \frac C2\log\det(H_0/2\lambda_0)`.
        """
        m, excess, found = state.views.anchor, self.excess(state), self.prior(glm, state, constant)
        square, form, log_det = float(m @ m), 0.0, found.log_det
        if found.counts is None:
            g = state.views.gradient + (found.ridge - state.head.ridge) * m
            form = float(g @ found.inverse @ g)
        elif square > glm.parameter_bound**2:
            return math.inf
        else:
            log_det = adaptive_set.counts_log_det(state.head, found.counts, found.ridge, log_det)
        known = constant, found.ridge, square, form, log_det, excess
        return adaptive_set.mixture(state.head, *known)

    def prior(self, glm: GLM, state: "FTRLState", constant: float) -> "Prior":
        r"""Return the mixture's matrix :math:`H_0 = 2\lambda_0 I + K\sum w x x^\top`, inverted.

        :math:`\lambda_0 = Cd/(2B^2)`. For counts, whose slope has no bound, the matrix is the
        solver's own, the mixture's :math:`I + cG/2\lambda_0` with G the curvature at the anchor,
        c = (e^s - 1)/s and :math:`s = CA^2/4\lambda_0`, provided that :math:`\|m\| \le B`.
        `uniform` comes before it, which brings the Gram matrix up to date.
        """
        d = state.dim
        ridge = constant * d / glm.parameter_bound**2
        if glm.link.family is not None and glm.link.family.name == "poisson":
            s = constant * glm.feature_bound**2 / (2 * ridge)
            P = self.curvature_inverse(glm, state)
            growth = -linalg.log_det(linalg.factor(P)) - d * math.log(state.head.ridge)
            # the logarithm, since e^s may be beyond floats
            return Prior(ridge, P, growth, s + math.log(-math.expm1(-s) / s) if s else 0.0)
        c = linalg.factor(glm.max_slope * state.gram + ridge * np.eye(d))
        return Prior(ridge, linalg.invert(c), linalg.log_det(c) - d * math.log(ridge))

    @abstractmethod
    def uniform(self, glm: GLM, state: "FTRLState") -> tuple[Array, float]:
        r"""Return the inverse of :math:`2\lambda I + \kappa\sum w x x^\top` and log det over it.

        The log-determinant is that of the matrix divided by 2 lambda.
        """

    def local(
        self, glm: GLM, state: "FTRLState", level: float, whole: Ellipsoid
    ) -> Ellipsoid | None:
        """Return the local form of the adaptive set, where there is one."""
        return None

    def hessian(self, state: "FTRLState") -> Array:
        """Return the matrix whose inverse the state keeps, from the rows."""
        H = state.head.ridge * np.eye(state.dim)
        for block in state.blocks():
            for some in block.pieces():
                root = block.x[some] * np.sqrt(block.curvature[some])[:, None]
                H += root.T @ root
        return H

    def curvature_inverse(self, glm: GLM, state: "FTRLState") -> Array:
        r"""Return the inverse of :math:`2\lambda I + \sum w\varphi'(x\cdot\hat\mu)xx^\top`."""
        return state.inverse()


class RowSolver(Solver):
    """A solver that learns rows one by one, in Python."""

    unfit = ()  # also where rounds are compiled: its step takes anything

    def step(self) -> Step:
        """Return a call that never learns."""
        return _refuse

    def learn(
        self, glm: GLM, state: "FTRLState", x: Array, y: Array, w: Array, scores: bool
    ) -> Array:
        """Learn one row after the other."""
        out, w = np.empty(len(x)), np.broadcast_to(w, len(x))
        for i in range(len(x)):
            row = x[i].copy()  # own memory: products round alike wherever the row came from
            out[i] = row @ state.theta
            if w[i] > 0:
                self.learn_row(glm, state, row, float(y[i]), float(w[i]), float(out[i]))
        return out if scores else np.asarray(glm.prediction(out))

    @abstractmethod
    def learn_row(
        self, glm: GLM, state: "FTRLState", x: Array, y: float, w: float, z: float
    ) -> None:
        """Learn one row of score ``z``."""


def _refuse(y: ArrayLike, w: ArrayLike, a: Array, x: Array) -> float:
    return math.nan


class CompiledSolver(Solver):
    """A solver whose rounds are compiled; they come back when something is due."""

    @cached_property
    def kernels(self) -> ModuleType:
        """The module of compiled calls, imported on first use."""
        return import_module("noisewise.kernels.glm.step")

    @property
    def unfit(self) -> tuple[type[Exception], ...]:  # type: ignore[override]
        """What the compiled step raises, before it runs."""
        return cast(tuple[type[Exception], ...], self.kernels.UNFIT)

    def step(self) -> Step:
        """Return the compiled step, or what compiles it when it is called."""
        return cast(Step, self.kernels.step)

    def begin(self, state: "FTRLState") -> None:
        """Certify the first estimate, as the kernel `restep` does where the gradient is 0."""
        h = state.head
        h.rounding = adaptive_set.EPS / math.sqrt(h.ridge)
        h.loss = state.dim * h.ridge / h.smallest

    def fits(self, state: "FTRLState", x: Array, y: Array, w: Array) -> bool:
        """Whether the compiled step takes all rows."""
        rows = as_contiguous(x), as_contiguous(y), as_contiguous(w)
        return bool(self.kernels.first_refused(*rows, state.head.limit) < 0)

    def learn(
        self, glm: GLM, state: "FTRLState", x: Array, y: Array, w: Array, scores: bool
    ) -> Array:
        """Learn rows in the compiled loop."""
        h, run, done, out = state.head, self.kernels.run, 0, np.empty(len(y))
        what = layout.SCORES if scores else layout.MEANS
        x, y, w = as_contiguous(x).reshape(-1), as_contiguous(y), as_contiguous(w)
        if self.keeps_rows and not state.rows.merge:
            state.rows.reserve(state.count + len(y))
        while done < len(y):
            done = run(state.array, x, y, w, done, what, out)
            if h.due != layout.FINE:
                self.handle_request(glm, state)
        return out


class Session(Writing):
    """A state while it is in use: by one thread, marked busy, and brought to rest first.

    Something may be due; an interrupt may have left the state half written. Rows and
    their number are whole at every moment, and all else is computed from them again.
    """

    def __init__(self, glm: GLM, state: "FTRLState") -> None:
        super().__init__(state, partial(attrgetter("head"), state), self._rebuild)
        self.glm, self.ftrl = glm, state

    def __enter__(self) -> None:
        super().__enter__()
        try:
            h = self.ftrl.head
            if h.due != layout.FINE or h.buffered == layout.BUFFER:
                self.ftrl.solver.handle_request(self.glm, self.ftrl)
        except BaseException:
            Owned.__exit__(self)
            raise

    def _rebuild(self) -> None:
        self.ftrl.restore()
        self.ftrl.solver.rebuild(self.glm, self.ftrl)
        self.ftrl.head.due = layout.FINE

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.ftrl.head.due = layout.FINE
        finally:
            super().__exit__(*error)


def settle(glm: GLM, state: "FTRLState") -> None:
    """Do what a step has asked for, or bring a state to rest that an interrupt left unfinished."""
    with Session(glm, state):
        state.step = (
            state.solver.step()
        )  # by now it is compiled, which takes a detour off each call
