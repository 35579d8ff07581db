"""What `SelfTunedUCB` knows: arrays that its kernels read and write."""

from dataclasses import dataclass

import numpy as np

from ..inputs import dimension
from ..kernels.self_tuned_ucb.self_tuned_ucb_numbers import (
    COUNTS,
    NONNEGATIVE,
    SIGNED,
    SIZE,
    KnownNumbers,
    M,
    Matrices,
    V,
    Vectors,
)
from ..numerics.blas import matmul
from ..protocols import Array
from ..storage.states import (
    check_fields,
    check_rows,
    check_semidefinite,
    check_type,
    field_values,
    restore_writable,
)
from ..support.printing import OneLine

LEAST_KEPT = 100  # rows of history
LEAST_LASTING = 10.0  # rewards that count, where older ones are discounted
ROOM = 256  # rows of history, and of pending decisions, at first


def _whole(name: str, doc: str) -> property:
    """Return a property that reads a number of the state as an integer."""
    place = [*KnownNumbers.fields].index(name)
    return property(lambda self: int(self.numbers.item(place)), doc=doc)


@dataclass(eq=False, repr=False)
class SelfTunedUCBState(OneLine):
    """Estimates, matrices, history and pending decisions of `SelfTunedUCB`.

    ``numbers``, ``vectors`` and ``matrices`` have names, see `self_tuned_ucb_numbers`:
    ``number``, ``vector`` and ``matrix`` are views by them.
    ``rows`` holds the rewards since the last change, each as plain features, heads of blocks,
    context, reward, weight as given (or trials) and what it counts of that; ``decisions`` the
    pending ones, each as features and weight, and ``keys`` a number of each by which it is found.
    Rows beyond those in use are 0.
    """

    dim: int
    numbers: Array
    vectors: Array
    matrices: Array
    rows: Array
    decisions: Array
    keys: Array

    def __post_init__(self) -> None:
        name, d = type(self).__name__, dimension(self.dim)
        for each in ("rows", "keys"):
            check_type(f"{name}.{each}", vars(self)[each], np.ndarray)
        check_fields(self, numbers=(SIZE,), vectors=(len(V), d + 1))
        s, v, counts = self.number, self.vector, self.numbers[list(COUNTS)]
        if (counts != np.floor(counts)).any() or counts.min() < 0 or counts.max() > 2**53:
            raise ValueError(f"{name} holds a count that is none")
        if self._plain < 0 or (s.context and not s.blocks):
            raise ValueError(f"{name} has other blocks than features")
        width = self._plain + int(s.blocks + s.context) + 3
        room, places = np.size(self.rows) // width, np.size(self.keys)
        check_fields(self, matrices=(len(M), d + 1, d + 1), rows=(room, width))
        check_fields(self, decisions=(places, d + 1), keys=(places,))
        check_rows(name, self.vectors, self.matrices, self.rows, self.decisions)
        for matrix in self.matrices:
            check_semidefinite(f"{name}.matrices", matrix)
        if (
            np.delete(self.numbers, SIGNED).min() < 0
            or min(s.plain_ridge, s.intercept_ridge, s.typical_weight) <= 0
            or s.distrust > 1
            or s.stored > room
            or s.keep_rows < LEAST_KEPT
            or 0 < s.forget_after < LEAST_LASTING
            or s.shared > 1
            or s.pending > places
            or self.decisions[:, d].min(initial=0.0) < 0
            or self.rows[:, -2:].min(initial=0.0) < 0
            or self.vectors[NONNEGATIVE].min() < 0
            or v.scale.min() <= 0
            or (v.low > v.high).any()
        ):
            raise ValueError(f"{name} holds a number that no rewards lead to")

    __setstate__ = restore_writable
    count = _whole("count", "The number of rewards learnt.")
    stored = _whole("stored", "The number of rows of history.")
    pending = _whole("pending", "The number of decisions whose rewards are pending.")
    restarts = _whole("restarts", "How often the past was given up.")
    last_restart = _whole("last_restart", "The count when the past was last given up, or 0.")

    def copy(self) -> "SelfTunedUCBState":
        """Return a state of its own that is equal."""
        twin = object.__new__(type(self))
        held = field_values(self)
        vars(twin).update({k: np.array(v) if k != "dim" else v for k, v in held.items()})
        return twin

    @property
    def number(self) -> KnownNumbers:
        """The numbers by name."""
        return KnownNumbers(self.numbers)

    @property
    def vector(self) -> Vectors[Array]:
        """The vectors by name."""
        return Vectors(*self.vectors)

    @property
    def matrix(self) -> Matrices[Array]:
        """The matrices by name."""
        return Matrices(*self.matrices)

    def make_room(self, rewards: int = 0, decisions: int = 0) -> None:
        """Make room for so many rewards, and pending decisions, more."""
        s = self.number
        if s.stored + rewards > len(self.rows) < s.keep_rows:
            most = int(s.keep_rows)
            room = doubled(len(self.rows), min(int(s.stored) + rewards, most), most)
            more = np.zeros((room - len(self.rows), self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])
        if s.pending + decisions > len(self.keys):
            room = doubled(len(self.keys), self.pending + decisions)
            more = np.zeros((room - len(self.keys), self.dim + 1))
            keys = np.concatenate([self.keys, np.zeros(len(more))])
            both = {"decisions": np.concatenate([self.decisions, more]), "keys": keys}
            vars(self).update(both)  # at once

    @property
    def _plain(self) -> int:
        """The number of features before the blocks."""
        return int(self.dim - self.number.blocks * (self.number.context + 1))

    def features(self, arms: Array) -> Array:
        """Return arms as they are learnt, (n, dim + 1): contexts in current units, an intercept."""
        z = np.hstack([arms, np.ones((len(arms), 1))])
        d, e, v = int(self.number.context), self._plain, self.vector
        if d:
            blocks = z[:, e:-1].reshape(len(arms), -1, d + 1)  # a view where memory allows
            heads, given = blocks[:, :, :1], blocks[:, :, 1:]
            c = np.divide(given, heads, np.zeros_like(given), where=heads != 0)
            given[:] = heads * (np.clip(c, v.low[:d], v.high[:d]) - v.centre[:d]) * v.rate[:d]
            z[:, e:-1] = blocks.reshape(len(arms), -1)
            z[:, -1] = self.number.shared  # else heads have the intercept
        return z

    def history(self, first: int, last: int) -> tuple[Array, Array]:
        """Return features and rewards, less the origin, of rows kept."""
        s, e = self.number, self._plain
        rows, blocks, d = self.rows[first : min(last, int(s.stored))], int(s.blocks), int(s.context)
        c = np.hstack([np.ones((len(rows), 1)), rows[:, e + blocks : e + blocks + d]])
        given = rows[:, e : e + blocks, None] * c[:, None]
        arms = np.hstack([rows[:, :e], given.reshape(len(rows), -1)])
        return self.features(arms), rows[:, -3]

    def counted(self, first: int, last: int) -> Array:
        """Return what each of these rows counts: less than 1 where older ones are discounted."""
        last = min(last, self.stored)
        ages = np.arange(self.stored - 1 - first, self.stored - 1 - last, -1.0)
        return self._discount**ages

    @property
    def effective_count(self) -> float:
        """What the rewards since the last change count together."""
        n = self.number.stored + self.number.condensed
        return (1 - self._discount**n) * self.number.forget_after or n

    @property
    def _discount(self) -> float:
        lasting = self.number.forget_after
        return 1 - 1 / lasting if lasting else 1.0

    @property
    def average_context(self) -> Array:
        """The mean of each column of contexts, without outliers."""
        return self.vector.centre[: int(self.number.context)].copy()

    @property
    def pending_arms(self) -> Array:
        """The arms of those decisions, (n, dim), in no order."""
        return self.decisions[: self.pending, :-1].copy()

    @property
    def usual_weight(self) -> float:
        """The mean weight of rewards, 1 before the first."""
        return self.number.weights / self.number.count if self.count else 1.0

    @property
    def coef(self) -> Array:
        """The estimated coefficients of the features as given; contexts within their limits."""
        theta, d = self.vector.theta[:-1].copy(), int(self.number.context)
        if d:
            blocks = theta[self._plain :].reshape(-1, d + 1)  # a view
            blocks[:, 1:] *= self.vector.rate[:d]
            blocks[:, 0] -= matmul(blocks[:, 1:], self.average_context)
        return theta

    @property
    def intercept(self) -> float:
        """The estimated intercept."""
        return float(self.vector.theta[-1] + self.number.origin)

    @property
    def ridge(self) -> float:
        """The current ridge of plain features."""
        return self.number.plain_ridge / 2

    @property
    def dispersion(self) -> float:
        """The variance of a reward over the square of its sd as given; 0 before it is known."""
        return self.number.dispersion


def doubled(room: int, least: int, most: int = 2**53) -> int:
    """Return a room doubled until it is large enough, up to ``most``.

    >>> doubled(0, 0), doubled(0, 1), doubled(256, 256), doubled(256, 600), doubled(256, 600, 700)
    (0, 256, 256, 1024, 700)
    """
    while room < least:
        room = min(max(2 * room, ROOM), most)
    return room


def start(
    dim: int, family: int, blocks: int, context: int, shared: bool, keep_rows: int,
    forget_after: float,
) -> SelfTunedUCBState:  # fmt: skip
    """Return the state before the first reward."""
    D = dimension(dim) + 1
    plain = dim - blocks * (context + 1)
    if plain < 0:
        raise ValueError(
            f"dim is {dim}, less than {blocks} blocks of {context + 1} features; pass a larger dim"
        )
    numbers, vectors, matrices = np.zeros(SIZE), np.zeros((len(V), D)), np.zeros((len(M), D, D))
    s = KnownNumbers(numbers)
    s.family, s.blocks, s.context, s.shared = family, blocks, context, shared
    s.keep_rows, s.forget_after = keep_rows, forget_after
    s.plain_ridge = s.intercept_ridge = s.typical_weight = 1.0
    vectors[[V.scale, V.apart, V.together]] = 1.0
    matrices[[M.inverse, M.bonus, M.recent_inverse, M.penalty]] = np.eye(D)
    rows = np.zeros((min(ROOM, keep_rows), plain + blocks + context + 3))
    return SelfTunedUCBState(dim, numbers, vectors, matrices, rows, np.zeros((0, D)), np.zeros(0))
