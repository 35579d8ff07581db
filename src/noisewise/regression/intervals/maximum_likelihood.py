"""The unregularised fit of a curved link to all rows, in the span of the rows."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...model.links import Function, Link
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ..normal_equations import NormalEquations
from .span import Span, centred, ties

STEPS = 200  # of Newton's method
SETTLED = 1e-9  # a step that moves scores by less
FLAT = 1e-12  # curvature, as a share of the largest, that is that of labels which are separated
COARSE = 1e-6  # eigenvalues of a Gram matrix below which rows themselves tell more
DISTINCT = 1e-20  # eigenvalues that rows still tell from 0, as shares of the largest
WIDE = 100  # parameters from which on a step is solved for without the eigenvalues, where it can be
KNOWN = 1e-6  # share of a direction that may lie where labels are separated


@dataclass(frozen=True, eq=False)
class Design(Span):
    """Rows u in coordinates of their span, with labels y and weights w, and a link."""

    link: Link
    u: Array
    y: Array
    w: Array

    @classmethod
    def of(cls, link: Link, sums: NormalEquations, x: Array, y: Array, w: Array) -> "Design":
        """Return the design of rows whose sums are given."""
        C, G, _ = centred(sums)
        s, values, vectors, kept = linalg.scaled_spectrum(G, 1e-12)
        rows, least, moved = matmul(sums.directions(x), C.T), 1e-7, np.diag(G) > 0
        if not len(x) or values[0] < COARSE:
            scaled = rows / s * moved * np.sqrt(w)[:, None]
            _, roots, across = np.linalg.svd(scaled, full_matrices=len(x) < len(C))
            values, vectors, least = np.zeros(len(C)), across[::-1].T, 1e-10
            values[len(C) - len(roots) :] = roots[::-1] ** 2
            kept = values > DISTINCT * values[-1]
        tied = ties(values[:-1], vectors[:, :-1], kept[:-1], moved, sums.dim, least)
        span = Span(sums, C, G, s, vectors[:, kept], values[kept], tied)
        return cls(**vars(span), link=link, u=matmul(rows, span.lift), y=y, w=w)

    def loss(self, scores: Array) -> float:
        r"""Return :math:`\sum w(m(s) - ys)`, infinite where a potential is."""
        return self.rise(scores, 0.0, self._origin)

    def rise(self, scores: Array, base: Array | float, potential: Array) -> float:
        """Return by how much the loss is larger than at other scores, given the potential there."""
        with np.errstate(over="ignore", invalid="ignore"):
            m = self.potential(scores) - potential
            found = float(self.w @ (m - self.y * (scores - base)))
        return found if found == found else math.inf

    @cached_property
    def potential(self) -> Function:
        """The potential of the link, that of a likelihood."""
        if self.link.potential is None:
            raise ValueError(f"the link {self.link.name!r} has no potential; pass one to Link")
        return self.link.potential

    @cached_property
    def _origin(self) -> Array:
        return self.potential(np.zeros(1))

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian of the loss in coordinates u: of a likelihood, information.

        On one thread.
        """
        gradient = (self.w * (self.link.mean(scores) - self.y)) @ self.u
        half = self.u * np.sqrt(self.w * self.link.slope(scores))[:, None]
        return gradient, matmul(half.T, half)

    @cached_property
    def slope(self) -> float:
        """The slope of the link at score 0, which is the largest unless labels are counts."""
        return float(self.link.slope(np.zeros(1))[0])

    @cached_property
    def unit(self) -> float:
        """The information at score 0 of a trial, or of a count of the first rows' mean exposure.

        So the unit of exposures, which moves the score 0 of counts, does not matter.
        """
        if math.isfinite(self.link.ends[1]):
            return self.slope
        return self.slope / float(self.w[: 2 * self.sums.dim + 10].mean())

    @cached_property
    def mixture(self) -> Array:
        """The matrix D of a mixture, in coordinates u."""
        values, vectors = self.prior
        return matmul(vectors * values, vectors.T)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The minimiser ``beta`` of the loss, and the information J there.

    J is ``basis`` diag(``values``) ``basis``' in the directions the labels tell of. In others they
    are separated, the minimum lies at infinity and ``beta`` is somewhere on the way.
    """

    design: Design
    beta: Array
    scores: Array
    values: Array
    basis: Array

    @property
    def exists(self) -> bool:
        """Whether the minimum is attained."""
        return len(self.values) == self.design.rank

    @property
    def loss(self) -> float:
        """The loss at the estimate."""
        return self.design.loss(self.scores)

    @cached_property
    def _potential(self) -> Array:
        return self.design.potential(self.scores)

    def rise(self, scores: Array) -> float:
        """Return by how much the loss is larger at some scores than at the estimate."""
        return self.design.rise(scores, self.scores, self._potential)

    def known(self, b: Array) -> NDArray[np.bool_]:
        """Return which directions, in coordinates u, the labels tell of."""
        if self.exists:
            return np.ones(len(b), dtype=bool)
        outside = np.abs(b - matmul(matmul(b, self.basis), self.basis.T)).max(axis=1, initial=0.0)
        return np.asarray(outside <= KNOWN * np.abs(b).max(axis=1, initial=0.0))

    @cached_property
    def inverse(self) -> Array:
        """The inverse of J, in the directions the labels tell of."""
        return np.asarray((self.basis / self.values) @ self.basis.T)

    @cached_property
    def sandwich(self) -> Array:
        r"""The variance :math:`J^{-1}(\sum w^2 r^2 u u^\top)J^{-1}`, r the residuals."""
        residual = self.design.w * (self.design.y - self.design.link.mean(self.scores))
        half = matmul(self.design.u * residual[:, None], self.inverse)
        return matmul(half.T, half)


@one_thread
def maximise(design: Design, begin: Array | None = None) -> Estimate:
    """Return the unregularised estimate, by damped Newton steps.

    They ``begin`` at scores given, or at the best constant, or what the span has of it. Where
    labels are separated each step adds about 1 to a score, and curvature falls by e, until it is
    `FLAT` and no step goes there any more.
    """
    r = design.rank
    y, w = design.y, design.w
    if not r:
        return Estimate(design, np.zeros(0), np.zeros(len(y)), np.zeros(0), np.zeros((0, 0)))
    start = _constant(design.link, float(w @ y) / float(w.sum()))
    beta = (w * (start if begin is None else begin)) @ design.u
    scores = design.u @ beta
    # beyond a score of 5 labels that are all equal would leave nothing above rounding
    value = design.loss(scores)
    floor = FLAT * float(design.link.slope(np.clip(start, -5.0, 5.0)))
    if not math.isfinite(value):
        beta, scores = np.zeros(r), np.zeros(len(y))
        value = design.loss(scores)
    for _ in range(STEPS):
        g, J = design.derivatives(scores)
        step = linalg.solve_safely(J, -g) if r > WIDE else None
        along = np.full(1, math.inf) if step is None else design.u @ step
        if step is None or _settled(scores, along):
            values, vectors = np.linalg.eigh(J)
            kept = values > max(FLAT * float(values[-1]), floor)
            basis, values = vectors[:, kept], values[kept]
            step = -basis @ ((g @ basis) / values)
            along = design.u @ step
            if _settled(scores, along):
                return Estimate(design, beta, scores, values, basis)
        size, value = _length(design, scores, along, value, float(g @ step))
        beta, scores = beta + size * step, scores + size * along
    return Estimate(design, beta, scores, np.zeros(0), np.zeros((r, 0)))


def _settled(scores: Array, along: Array) -> bool:
    """Return whether a step moves scores by rounding only."""
    return bool(np.abs(along).max() <= SETTLED * (1 + np.abs(scores).max()))


def _length(
    design: Design, scores: Array, along: Array, value: float, slope: float
) -> tuple[float, float]:
    """Return the largest of 1, 1/2, 1/4, ... that lowers the loss enough, and the loss there."""
    size, rounding = 1.0, 1e-12 * (1 + abs(value))
    while True:
        there = design.loss(scores + size * along)
        if size <= 1e-12 or there <= value + 1e-4 * size * slope + rounding:
            return size, there
        size /= 2


def _constant(link: Link, mean: float) -> float:
    """Return a score within 30 of 0 whose mean is about the given one."""
    scores = np.linspace(-30.0, 30.0, 1201)
    return float(np.interp(mean, link.mean(scores), scores))
