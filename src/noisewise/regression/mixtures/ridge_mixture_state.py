"""RidgeMixtureState: learners with their weights, and how they see the features."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...inputs import dimension
from ...kernels.glm.layout import HEADER, align, check_headers, size
from ...kernels.glm.numbers import Learners
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ...storage.states import (
    COUNT,
    FLAG,
    check_fields,
    check_finite,
    check_layout,
    check_rows,
    check_type,
    field_values,
    restore_writable,
)
from ...support.interruptible import interruptible
from ...support.printing import OneLine
from ..history import History

# the roots of one over the penalty of the intercept: a penalty of 1/4, or almost none
CONSTANT, FREE_CONSTANT = 2.0, 64.0
RENEWAL = 2.0  # how far a variance may move before the features are scaled again
LEAST_WEIGHT = 1e-6
NARROW, LONG = 50, 200  # columns beyond which BLAS shares products, and a call may take seconds


@dataclass(eq=False, repr=False)
class RidgeMixtureState(OneLine):
    """What `RidgeMixture` knows after ``count`` rows.

    Attributes
    ----------
    weights : (k,) array
        The posterior weights of the ridges still alive, ``ridges``.
    loss : float
        The logarithmic loss of the mixture so far: minus the logarithm of the probability that it
        gave to all labels, or to those since it was last fitted as a batch (``batch``).
    gap : float
        The learners' proved distances from their minimisers (`FTRLState.gap`), by weight.
    theta, intercept : (d,) array, float
        The learners' estimates, averaged by weight, in the units of the features.
    """

    dim: int
    memory: Array  # of the learners, see `kernels.glm.numbers`
    history: History  # shifted rows, or their coordinates, with 1 for the intercept
    ridges: Array  # c of each learner
    log_weights: Array  # ln prior less losses; their sum of exponentials is that of the mixture
    shift: Array  # the first row, or the mean of rows fitted as a batch
    total: Array  # sums of shifted features, and of their squares
    squares: Array
    variances: Array  # those in use
    count: int = 0
    prior_rows: int = 0  # 1 if learners began with a row of their own
    batch: bool = False  # whether rows were fitted as a batch
    basis: Array | None = None  # of rows fewer than columns
    rank: int = 0  # its directions so far
    next_look: int = 0  # the count at which all scales are renewed

    def __post_init__(self) -> None:
        check_type("RidgeMixtureState.ridges", self.ridges, np.ndarray)
        d, k = dimension(self.dim), self.ridges.size
        check_fields(self, ridges=(k,), log_weights=(k,), count=COUNT, prior_rows=COUNT)
        check_fields(self, batch=FLAG, history=History)
        check_fields(self, shift=(d,), total=(d,), squares=(d,), variances=(d,))
        check_fields(self, rank=COUNT, next_look=COUNT)
        if self.basis is not None:
            check_type("RidgeMixtureState.basis", self.basis, np.ndarray)
            check_fields(self, basis=(self.basis.size // d, d))
        p, columns = self.width, self.history.x.shape[1]
        if self.rank > (0 if self.basis is None else p):
            raise ValueError(f"RidgeMixtureState.rank is {self.rank}, more than its basis has")
        if not k or columns not in (p, p + 1) or len(self.history.curvature) != k:
            raise ValueError(f"RidgeMixtureState.history is not of {k} learners of dim {p}")
        if self.prior_rows > (columns > p):
            raise ValueError(
                f"RidgeMixtureState.prior_rows is {self.prior_rows}; pass 0 or, with "
                "an intercept, 1"
            )
        if not (self.ridges > 0).all() or min(self.squares.min(), self.variances.min()) < 0:
            raise ValueError("RidgeMixtureState holds a ridge, square or variance that is negative")
        check_layout("RidgeMixtureState.memory", self.memory, (k, size(columns, buffer=0)))
        check_rows("RidgeMixtureState", self.memory)
        check_finite("RidgeMixtureState.memory", self.memory[:, HEADER:])
        self.use(self.memory)
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Raise unless kernels can work with the numbers of the learners."""
        s, n = self.learners.numbers, self.count + self.prior_rows
        if (s["count"] != n).any() or self.history.count != n:
            raise ValueError(f"RidgeMixtureState.learners have not learnt {n} rows each")
        check_headers(self.memory, self.history.x.shape[1])
        if (self.learners.unit < 0).any():
            raise ValueError("RidgeMixtureState.memory holds a unit that is negative")

    __getstate__ = field_values

    def __setstate__(self, held: dict[str, object]) -> None:
        restore_writable(self, held)
        self.use(self.memory)

    def use(self, memory: Array) -> None:
        """Have learners with this memory."""
        self.memory = align(memory)
        self.learners = Learners(self.memory, self.history.x.shape[1])

    def twin(self) -> "RidgeMixtureState":
        """Return a state that shares the rows alone: one of the two may go on."""
        twin = object.__new__(RidgeMixtureState)
        vars(twin).update(self.__getstate__(), history=self.history.copy())
        twin.use(self.memory.copy())
        return twin

    @property
    def weights(self) -> Array:
        """The posterior weights of the learners."""
        return np.asarray(np.exp(self.log_weights + self.loss))

    @property
    def loss(self) -> float:
        """The logarithmic loss of the mixture."""
        return -float(np.logaddexp.reduce(self.log_weights))

    @property
    def gap(self) -> float:
        """The proved gaps, by weight."""
        return float(self.weights @ self.learners.numbers["gap"])

    @property
    def width(self) -> int:
        """In how many coordinates learners see the features."""
        return self.dim if self.basis is None else len(self.basis)

    @property
    def theta(self) -> Array:
        """The estimates, by weight."""
        theta = self.weights @ self.learners.theta[:, : self.width]
        return theta if self.basis is None else self.units * matmul(theta, self.basis)

    @property
    def intercept(self) -> float:
        """The intercepts, by weight."""
        if self.history.x.shape[1] == self.width:
            return 0.0
        return float(self.weights @ self.learners.theta[:, -1] - self.theta @ self.shift)

    @property
    def units(self) -> Array:
        """What standardises each feature for the ridge 1; 0 for one that has not moved."""
        moved = self.variances > 0
        return np.divide(1.0, np.sqrt(self.dim * self.variances), np.zeros(self.dim), where=moved)

    @property
    def learner_units(self) -> Array:
        """What each learner multiplies the columns of the history by."""
        made = np.empty((len(self.ridges), self.history.x.shape[1]))
        made[:, self.width :] = FREE_CONSTANT if self.prior_rows else CONSTANT
        own = self.units if self.basis is None else np.ones(self.width)
        np.multiply(1 / np.sqrt(self.ridges)[:, None], own, out=made[:, : self.width])
        return made

    def coordinates(self, z: Array) -> Array:
        """Return shifted rows as the history has them."""
        made, p = np.empty((len(z), self.history.x.shape[1])), self.width
        made[:, p:] = 1.0
        made[:, :p] = z if self.basis is None else matmul(z * self.units, self.basis.T)
        return made

    def scaled(self, z: Array, which: int) -> Array:
        """Return shifted rows as a learner sees them."""
        return self.coordinates(z) * self.learner_units[which]

    def scores(self, z: Array) -> Array:
        """Return what each learner scores shifted rows, by its scales."""
        return matmul(self.learners.theta, self.coordinates(z).T)

    def learn(self, z: Array, y: Array, w: Array) -> Array:
        """Let learners learn rows; return the score that each gave to a row before."""
        from ...kernels.glm import learner_rounds

        first, scores = self.history.count, np.empty((len(self.ridges), len(z)))
        self.history.append(self.coordinates(z), y, w)
        self._run(learner_rounds.learn, first, first + len(z), scores, False)
        return scores

    def rebuild(self, theta: Array) -> None:
        """Let learners go on from these coefficients, after scales or coordinates have changed."""
        from ...kernels.glm import learner_rounds

        n, scores = self.history.count, np.empty((len(self.ridges), 0))
        self.learners.move(theta, self.learner_units)
        self._run(learner_rounds.learn, n, n, scores, True)

    def rescale(self, variance: Array) -> None:
        """Scale the features by other variances, but where these are 0."""
        theta = self.learners.theta
        self.variances = np.where(variance > 0, variance, self.variances)
        self.rebuild(theta)

    def stretch(self, direction: Array, factor: float) -> None:
        """Let learners go on after their rows were multiplied by a factor along a unit vector."""
        from ...kernels.glm import history_passes

        e = np.zeros(self.history.x.shape[1])
        e[: len(direction)] = direction
        self._run(history_passes.stretch, self.history.count, e, factor)

    def solve(self) -> None:
        """Drive the gaps to rounding error."""
        from ...kernels.glm import history_passes

        self._run(history_passes.solve, self.history.count, True)

    def _run(self, kernel: Callable[..., None], *arguments: object) -> None:
        """Call a kernel on the learners; of many columns so that an interrupt is heard."""
        h, call = self.history, _directly
        if self.width > NARROW:
            call = _on_one_thread if self.width <= LONG else _patiently
        call(kernel, self.memory, h.x, h.labels, h.curvature, *arguments)

    def outgrown(self, variance: Array) -> Array:
        """Return which variances, a row each, are too far from those in use."""
        used = self.variances
        return np.asarray(((variance > RENEWAL * used) | (used > RENEWAL * variance)).any(axis=-1))

    def drop(self) -> None:
        """Forget the learners of little weight; the others share what they had."""
        kept, before = self.weights >= LEAST_WEIGHT, self.loss
        self.history.keep(kept)
        self.ridges, self.log_weights = self.ridges[kept], self.log_weights[kept]
        self.log_weights = self.log_weights + (self.loss - before)
        self.use(self.memory[kept])


def _directly(kernel: Callable[..., None], *arguments: object) -> None:
    kernel(*arguments)


_on_one_thread = one_thread(_directly)
_patiently = one_thread(interruptible(_directly))
