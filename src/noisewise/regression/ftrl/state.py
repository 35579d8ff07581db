"""FTRLState: what FTRL knows, in the layout the compiled step works on."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...inputs import dimension
from ...kernels.glm import layout as at
from ...kernels.glm.layout import Header, Views, align
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from ...storage.states import (
    COUNT,
    FINITE,
    check_fields,
    check_finite,
    check_layout,
    check_list,
    check_rows,
    field_values,
    restore_writable,
)
from ...support.printing import OneLine
from ..history import Block, History
from . import condensed
from .anchored import AnchoredNewton
from .condensed import Condensed
from .least_squares import LeastSquares
from .newton import ExactNewton
from .own_link import OwnLinkNewton
from .solver import Solver

LARGEST_GROWTH = 1e6  # of a determinant by one row, beyond which too many digits would be lost
COMPILED = AnchoredNewton()
SOLVERS: dict[float, Solver] = {
    at.LINEAR: LeastSquares(),
    at.OWN: OwnLinkNewton(),
    at.EXACT: ExactNewton(),
}


@lru_cache
def _lower(d: int) -> NDArray[np.bool_]:
    return np.tri(d, dtype=bool)


@dataclass(eq=False, repr=False)
class FTRLState(OneLine):
    r"""What FTRL knows after ``count`` rows: written by `FTRL.update` and `FTRL.solve`.

    The confidence methods write a memo only (``gram, folded, uniform, log_det``): what they need of
    the rows they have met, so that asking every round stays cheap.

    Attributes
    ----------
    theta : (d,) array, a copy
        The estimate.
    gap : float
        A proved bound on its distance from the exact minimiser in the norm of
        :math:`\underline H = 2\lambda I + \kappa\sum w x x^\top`.
    count : int
        Rows of positive weight learnt.
    passes : int
        Passes over the history so far.
    factors : int
        How often the factor was renewed.
    """

    shown: ClassVar = ("dim", "count", "ridge", "gap", "passes")

    dim: int
    array: Array
    rows: History
    gram: Array  # sum w x x' of the first `folded` rows
    folded: int = 0
    uniform: Array | None = None  # of these rows, see `lower_inverse`
    log_det: float = 0.0
    condensed: list[Condensed] = field(default_factory=list)  # not held any more

    def __post_init__(self) -> None:
        self._check()
        self.array = align(self.array)
        self.views, self.head = Views(self.array, self.dim), Header(self.array)
        self.solver = SOLVERS.get(self.head.code, COMPILED)
        self.step = self.solver.step()
        self.model: GLM | None = None  # that was found to be its own
        self.warned = False  # of an estimate beyond the norm bound
        if self.solver.keeps_rows:
            self.rows.absorbed = self.count - int(self.head.buffered)

    def _check(self) -> None:
        """Raise if what was given is no state: kernels trust its sizes, and a file may lie."""
        d = dimension(self.dim)
        check_layout("FTRLState.array", self.array, (at.size(d),))
        check_fields(self, rows=History, gram=(d, d), folded=COUNT, log_det=FINITE)
        check_list("FTRLState.condensed", self.condensed, Condensed)
        if self.uniform is not None:
            check_fields(self, uniform=(d, d))
        at.check_headers(self.array[None], d)
        a, h, views = self.array, Header(self.array), Views(self.array, d)
        keeps_rows = h.code != at.LINEAR
        if not keeps_rows:
            check_rows("FTRLState", self.gram)
        n = int(h.buffered)
        check_finite("FTRLState.array", a[at.HEADER : len(a) - at.BUFFER * (at.padded(d) + 4)])
        check_finite("FTRLState.array", views.x[:n])
        check_finite("FTRLState.array", views.numbers[:3, :n])
        spared = sum(each.spared for each in self.condensed)
        learnt = int(h.count) - n - spared if keeps_rows else 0
        stored, fits = self.rows.count, self.rows.curvature.shape[0] == 1 and self.rows.dim == d
        if not (fits and (stored <= learnt if self.rows.merge else stored == learnt)):
            raise ValueError(
                f"FTRLState.rows holds {stored} rows of dim {self.rows.dim}; "
                f"{learnt} of dim {d} belong there"
            )
        if (views.unit != 1).any():
            raise ValueError("FTRLState.array holds a unit that is not 1; it is damaged")
        if self.folded > h.count or not (keeps_rows or self.folded == h.count - n):
            raise ValueError(f"FTRLState.folded is {self.folded}; {h.count:g} rows were learnt")

    def __getstate__(self) -> dict[str, object]:
        """Return what the state is made of: no views or functions, scratch room cleared."""
        array = self.array.copy()
        views, h = Views(array, self.dim), Header(array)
        n = int(self._restore_buffer(h))
        views.x[n:] = views.numbers[:, n:] = views.numbers[3] = 0.0
        h.last_mean = 0.0
        return {**field_values(self), "array": array}

    def __setstate__(self, fields: dict[str, object]) -> None:
        restore_writable(self, fields)
        self.__post_init__()

    def copy(self) -> "FTRLState":
        """Return a state of its own that shares the history, for work that may be interrupted."""
        return dataclasses.replace(self, array=self.array.copy(), gram=self.gram.copy())

    def copy_from(self, other: "FTRLState") -> None:
        """Take the place of this state by another in one step."""
        vars(self).update({k: v for k, v in vars(other).items() if k != "_owner"})

    @property
    def ridge(self) -> float:
        """The ridge in use."""
        return self.head.ridge / 2

    @property
    def theta(self) -> Array:
        """The current estimate."""
        return self.views.anchor + self.views.step

    @property
    def count(self) -> int:
        """The number of rows of positive weight learnt."""
        return int(self.head.count)

    @property
    def passes(self) -> int:
        """Passes over the history so far."""
        return int(self.head.passes)

    @property
    def factors(self) -> int:
        """How often the factor was renewed so far."""
        return int(self.head.factors)

    @property
    def gap(self) -> float:
        """The proved distance from the exact minimiser."""
        return condensed.gap(self) if self.condensed else self.solver.gap(self)

    def buffer(self) -> Iterator[Block]:
        """Yield the buffer as a block, if it holds any row."""
        n = int(self.head.buffered)
        if n:
            yield Block(self.views.x[:n], *self.views.numbers[:3, :n])

    def blocks(self) -> Iterator[Block]:
        """Yield every row in order: those in blocks, then the buffer."""
        yield from self.rows
        yield from self.buffer()

    def unfolded(self, folded: int) -> Iterator[tuple[Array, Array]]:
        """Yield features and weights of the rows behind the first ones."""
        passed = 0
        for block in self.blocks():
            new = slice(max(folded - passed, 0), None)
            passed += len(block.x)
            if folded < passed:
                yield block.x[new], block.weight[new]

    @one_thread
    def lower_inverse(self, glm: GLM) -> tuple[Array, float]:
        r"""Invert :math:`2\lambda I + \kappa\sum w x x^\top`; return also log det over 2 lambda.

        Both are kept for the rows met so far. A few new rows are added by rank-one updates, so
        asking every round stays of order d^2; more are folded by a block product and factored, and
        so is every 512th.
        """
        gram, folded, P, log_det = self.gram, self.folded, self.uniform, self.log_det
        if self.rows.merge:  # merged rows have no order, but there are few
            gram, folded, P = np.zeros_like(gram), 0, None
        new = list(self.unfolded(folded))
        count, slope = sum(len(x) for x, _ in new), glm.min_slope
        if P is not None and folded % 512 + count < 512 and count <= 2:
            for x, w in (pair for rows, weights in new for pair in zip(rows, weights, strict=True)):
                gram = gram + np.outer(w * x, x)
                if P is None:
                    continue
                k = P @ x
                growth = slope * w * float(x @ k)
                if 0 <= growth <= LARGEST_GROWTH:
                    P = P - np.outer(slope * w / (1 + growth) * k, k)
                    log_det += math.log1p(growth)
                else:
                    P = None
        elif count:
            P = None
            for x, w in new:
                root = x * np.sqrt(w)[:, None]
                gram = gram + root.T @ root
        if P is None:
            ridge = self.head.ridge
            P, log_det = linalg.safe_inverse(slope * gram + ridge * np.eye(self.dim), ridge)
            log_det -= self.dim * math.log(ridge)
        memo = {"gram": gram, "folded": folded + count, "uniform": P, "log_det": log_det}
        vars(self).update(memo)  # one step
        return P.copy(), log_det

    def flush(self) -> None:
        """Move the buffered rows to the blocks."""
        if n := int(self.head.buffered):
            x, numbers = self.views.x[:n], self.views.numbers[:3, :n]
            self.rows.extend(x, numbers[:2], numbers[2:])
        self.head.buffered = 0  # until here, `absorbed` says that these rows are held

    def restore(self) -> None:
        """Move all rows to the blocks, though an interrupt came between that and their count."""
        self.head.due = 0.0
        self._restore_buffer(self.head)
        if self.solver.keeps_rows:
            self.flush()

    def _restore_buffer(self, head: Header) -> float:
        """Count the rows of the buffer that are not in the blocks, or the Gram matrix."""
        held = self.rows.absorbed if self.solver.keeps_rows else self.folded
        head.buffered = head.count - held
        return head.buffered

    def inverse(self) -> Array:
        """Return the inverse of the solver's H, the pending rank-one change included."""
        k = self.views.slots[int(self.head.slot)]
        P = self.views.inverse  # rounds keep it up to the diagonal
        return np.where(_lower(self.dim), P, P.T) - np.outer(self.head.pending * k, k)

    def sound_inverse(self) -> Array:
        """Return the same, or one recomputed and not too small where rounding could matter."""
        h, P = self.head, self.inverse()
        unsure = linalg.EPS * self.dim * float(h.curved + self.dim * h.ridge)
        if unsure * linalg.largest_eigenvalue_bound(P) <= linalg.DOUBT and np.diag(P).min() > 0:
            return P
        return linalg.safe_inverse(self.solver.hessian(self), h.ridge)[0]
