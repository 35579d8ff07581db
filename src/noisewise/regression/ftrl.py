"""FTRL: follow the regularised leader, exactly, for any increasing link."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import linalg
from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import column, dimension, features, one_of, positive, probability, weights
from ..noise import Bounded, Noise
from ..protocols import Array
from ..theory import radii
from .newton import EPS, minimise, visit
from .rows import Rows

BUFFER = 512


@dataclass(eq=False)
class FTRLState:
    """What FTRL knows after ``count`` rows: written by `FTRL.update` and `FTRL.solve` only.

    ``theta`` is the estimate (a copy) and ``gap`` a proved bound on its distance from the exact
    minimiser in the norm of 2 ridge I + min_slope sum w x x'.
    """

    dim: int
    ridge: float
    centre: Array
    moment: Array  # sum w y x
    gram: Array  # sum w x x', identity link: of the rows that have left the buffer
    inverse: Array  # of 2 ridge I + min_slope sum w x x'
    rows: Rows  # curved links: all; identity link: the buffer
    count: int = 0
    gap: float = 0.0
    excess: float = 0.0  # played loss, scores clipped, less the minimum
    played: float = 0.0
    log_det: float = 0.0
    heaviest: float = 0.0
    longest: float = 0.0
    total: float = field(default=0.0)  # sum w |x| (|y| + |mean|), the size of the gradient's terms

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return self.centre.copy()


@dataclass(frozen=True)
class FTRL:
    r"""Follow the regularised leader.

    .. math:: \hat\mu_{t+1} = \arg\min_\mu \lambda\|\mu\|^2
              + \sum_{s\le t} w_s\,[m(x_s\cdot\mu) - y_s\,x_s\cdot\mu]

    Parameters
    ----------
    glm : GLM
    ridge : float > 0, optional
        Multiplies the squared norm; the theorem's `GLM.ridge` by default.
    tolerance : float >= 0
        The estimate is kept within ``tolerance * sqrt(dim)`` of the exact minimiser, measured as
        `FTRLState.gap` is; 0 drives it to rounding error after every row.
    certificate : {"rigorous", "calibrated"}
        How passes over the history are triggered.
    oversize : {"raise", "warn"}
        What to do with a row longer than ``glm.feature_bound``. Guarantees need "raise".
    aggregate : bool
        Merge equal rows.

    Examples
    --------
    The first step on the identity link is y x / (2 ridge + |x|^2):

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
            raise ValueError(f"glm is {self.glm!r}; pass a noisewise.GLM")
        if self.ridge is not None:
            object.__setattr__(self, "ridge", positive("ridge", self.ridge))
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance, zero=True))
        one_of("certificate", self.certificate, ("rigorous", "calibrated"))
        one_of("oversize", self.oversize, ("raise", "warn"))

    def start(self, dim: int) -> FTRLState:
        """Make the state of a fresh learner: estimate 0, exact."""
        d = dimension(dim)
        ridge = self.glm.ridge if self.ridge is None else self.ridge
        zeros = np.zeros((d, d))
        return FTRLState(
            d, ridge, np.zeros(d), np.zeros(d), zeros, np.eye(d) / (2 * ridge), Rows(d)
        )

    def predict(self, state: FTRLState, x: ArrayLike) -> Any:
        """Return the predicted mean at each row of ``x``."""
        x, single = features(x, state.dim)
        mean = self.glm.mean(x @ state.centre)
        return float(mean[0]) if single else mean

    def update(self, state: FTRLState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0) -> Any:
        """Learn the rows in order; return the mean predicted for each before its label."""
        x, single = features(x, state.dim)
        y = column("y", y, len(x), single)
        w = weights(weight, len(x), single)
        length = np.sqrt(np.einsum("ij,ij->i", x, x))
        self._refuse_oversize(length)
        learn = self._learn_linear if self.glm.linear else self._learn_curved
        scores = np.empty(len(x))
        for i in range(len(x)):
            scores[i] = x[i] @ state.centre
            if w[i] > 0:
                state.count += 1
                state.heaviest = max(state.heaviest, float(w[i]))
                state.longest = max(state.longest, float(length[i]))
                learn(state, x[i], float(y[i]), float(w[i]), float(scores[i]))
        means = self.glm.mean(scores)
        return float(means[0]) if single else means

    def _refuse_oversize(self, length: Array) -> None:
        A = self.glm.feature_bound
        if length.size and length.max() > A * (1 + 1e-9):
            at = int(np.argmax(length))
            words = f"x has norm {length[at]:.6g} at row {at}, above feature_bound {A:g}"
            if self.oversize == "raise":
                raise ValueError(f"{words}; scale the features or pass a larger feature_bound")
            warnings.warn(f"{words}; the guarantees do not cover such rows", stacklevel=3)

    def _learn_linear(self, s: FTRLState, x: Array, y: float, w: float, z: float) -> None:
        P, S = s.inverse, self.glm.score_bound
        k = P @ x
        q = float(x @ k)
        shrink = w / (1 + w * q)
        P -= np.outer(shrink * k, k)
        s.centre = s.centre + k * (shrink * (y - z))
        s.moment += w * y * x
        s.rows.append(x, y, w)
        s.log_det += float(np.log1p(w * q))
        inside = min(max(z, -S), S)
        s.excess += 0.5 * w * shrink * (y - z) ** 2 * q
        s.excess += w * (inside - z) * (0.5 * (inside + z) - y)
        length = float(np.sqrt(x @ x))
        s.total += w * length * (abs(y) + length * float(np.sqrt(s.centre @ s.centre)))
        if s.count in (2 * s.dim, 4 * s.dim) or s.rows.count == BUFFER:
            self._refactor(s)
        self._measure_linear(s)

    def _refactor(self, s: FTRLState) -> None:
        for x, w, _ in s.rows:
            s.gram += x.T @ (w[:, None] * x)
        s.rows.clear()
        c = linalg.factor(s.gram + 2 * s.ridge * np.eye(s.dim))
        s.centre, s.inverse = linalg.solve(c, s.moment), linalg.invert(c)
        s.log_det = linalg.log_det(c) - s.dim * float(np.log(2 * s.ridge))

    def _measure_linear(self, s: FTRLState) -> None:
        gradient = 2 * s.ridge * s.centre + s.gram @ s.centre - s.moment
        for x, w, _ in s.rows:
            gradient += x.T @ (w * (x @ s.centre))
        blur = EPS * (s.dim + np.sqrt(s.count)) * s.total
        s.gap = linalg.norm(gradient, s.inverse) + blur * float(np.sqrt(np.trace(s.inverse)))

    def _learn_curved(self, s: FTRLState, x: Array, y: float, w: float, z: float) -> None:
        S = self.glm.score_bound
        inside = min(max(z, -S), S)
        s.played += w * (float(self.glm.potential(inside)) - y * inside)
        s.rows.append(x, y, w)
        s.gram += np.outer(w * x, x)
        c = linalg.factor(self.glm.min_slope * s.gram + 2 * s.ridge * np.eye(s.dim))
        s.inverse = linalg.invert(c)
        s.log_det = linalg.log_det(c) - s.dim * float(np.log(2 * s.ridge))
        self.solve(s)

    def solve(self, state: FTRLState) -> None:
        """Drive the gap to rounding error now."""
        s = state
        if self.glm.linear:
            if s.count:
                self._refactor(s)
                self._measure_linear(s)
            return
        best, s.gap = minimise(self.glm, s.ridge, s.rows, s.centre, s.inverse)
        s.centre = best.theta
        # value - min <= gap^2 / 2 by strong convexity
        s.excess = s.played - best.value + s.gap**2 / 2

    def ellipsoid(
        self, state: FTRLState, noise: Noise, delta: float = 0.05, radius: str = "adaptive"
    ) -> Ellipsoid:
        r"""Return where the parameter lies, for all rounds at once with probability 1 - delta.

        The norm is that of :math:`2\lambda I + \kappa\sum w x x^\top`. ``radius`` is one of
        "adaptive", "self-normalised", "freedman", "printed" (the last two need `Bounded`); see
        `noisewise.theory.radii`.
        """
        return self._ellipsoids(state, noise, delta, radius, local=False)[0]

    def confidence(
        self, state: FTRLState, noise: Noise, delta: float = 0.05, radius: str = "adaptive"
    ) -> tuple[Ellipsoid, ...]:
        """Return the global ellipsoid and, where there is one, the local form; valid together."""
        return self._ellipsoids(state, noise, delta, radius, local=True)

    def interval(
        self,
        state: FTRLState,
        x: ArrayLike,
        noise: Noise,
        delta: float = 0.05,
        radius: str = "adaptive",
    ) -> tuple[Any, Any]:
        """Return lower and upper bounds of the true mean at each row of ``x``.

        Valid for all rows and rounds at once with probability 1 - delta.
        """
        x, single = features(x, state.dim)
        reach = self.glm.parameter_bound * np.sqrt(np.einsum("ij,ij->i", x, x))
        lower, upper = -reach, reach
        for ellipsoid in self.confidence(state, noise, delta, radius):
            lower = np.maximum(lower, np.minimum(ellipsoid.lower(x), reach))
            upper = np.minimum(upper, np.maximum(ellipsoid.upper(x), -reach))
        lower, upper = self.glm.mean(lower), self.glm.mean(upper)
        return (float(lower[0]), float(upper[0])) if single else (lower, upper)

    def _ellipsoids(
        self, s: FTRLState, noise: Noise, delta: float, radius: str, local: bool
    ) -> tuple[Ellipsoid, ...]:
        probability("delta", delta)
        one_of("radius", radius, radii.RADII)
        if isinstance(noise, Bounded) and s.heaviest > noise.max_weight * (1 + 1e-9):
            raise ValueError(
                f"a row of weight {s.heaviest:g} was learnt, but noise promises max_weight "
                f"{noise.max_weight:g}; pass Bounded(..., max_weight={s.heaviest:g})"
            )
        if radius != "adaptive":
            return (Ellipsoid(s.theta, s.inverse.copy(), self._radius(s, noise, delta, radius)),)
        level = radii.adaptive_level(self.glm, noise, ridge=s.ridge, excess=s.excess, delta=delta)
        whole = Ellipsoid(s.theta, s.inverse.copy(), float(np.sqrt(2 * level)) + s.gap)
        M = self.glm.self_concordance
        if not local or M is None or self.glm.linear:
            return (whole,)
        G = visit(self.glm, s.ridge, s.rows, s.centre).curvature
        smallest = 1 / float(np.linalg.eigvalsh(s.inverse)[-1])
        reach = s.longest * min(
            whole.radius / float(np.sqrt(smallest)),
            self.glm.parameter_bound + float(np.linalg.norm(s.centre)),
        )
        c, r = radii.localise(level, s.gap, s.ridge, G, M, reach, s.longest)
        H = c * G + 2 * s.ridge * np.eye(s.dim)
        return whole, Ellipsoid(s.theta, linalg.invert(linalg.factor(H)), r)

    def _radius(self, s: FTRLState, noise: Noise, delta: float, radius: str) -> float:
        if radius == "self-normalised":
            r = radii.self_normalised(
                self.glm, noise, log_det=s.log_det, ridge=s.ridge, delta=delta
            )
        else:
            shape = radii.freedman if radius == "freedman" else radii.printed
            r = shape(self.glm, noise, dim=s.dim, count=s.count, ridge=s.ridge, delta=delta)
        return r + s.gap
