"""What `SelfTunedUCB` knows: arrays that its kernels read and write."""

from dataclasses import dataclass, fields

import numpy as np

from ..blas import matmul
from ..inputs import dimension
from ..kernels import self_tuned_ucb_layout as at
from ..printing import OneLine
from ..protocols import Array
from ..states import check_fields, check_rows, check_semidefinite, check_type, restore_writable

LEAST_KEPT = 100  # rows of history
ROOM = 256  # rows of history, and of pending decisions, at first


@dataclass(eq=False, repr=False)
class SelfTunedUCBState(OneLine):
    """Estimates, matrices, history and pending decisions of `SelfTunedUCB`.

    ``numbers``, ``vectors`` and ``matrices`` are laid out as `kernels.self_tuned_ucb_layout` says.
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
            check_type(f"{name}.{each}", getattr(self, each), np.ndarray)
        check_fields(self, numbers=(at.SIZE,), vectors=(at.VECTORS, d + 1))
        counts = self.numbers[list(at.COUNTS)]
        if (counts != np.floor(counts)).any() or counts.min() < 0 or counts.max() > 2**53:
            raise ValueError(f"{name} holds a count that is none")
        if self._plain < 0 or (self.numbers[at.CONTEXT] and not self.numbers[at.BLOCKS]):
            raise ValueError(f"{name} has other blocks than features")
        width = self._plain + int(self.numbers[[at.BLOCKS, at.CONTEXT]].sum()) + 3
        room, places = np.size(self.rows) // width, np.size(self.keys)
        check_fields(self, matrices=(at.MATRICES, d + 1, d + 1), rows=(room, width))
        check_fields(self, decisions=(places, d + 1), keys=(places,))
        check_rows(name, self.vectors, self.matrices, self.rows, self.decisions)
        for matrix in self.matrices:
            check_semidefinite(f"{name}.matrices", matrix)
        s = self.numbers
        if (
            np.delete(s, at.SIGNED).min() < 0
            or min(s[at.RIDGE], s[at.INTERCEPT], s[at.TYPICAL]) <= 0
            or s[at.DISTRUST] > 1
            or s[at.STORED] > room
            or s[at.KEEP] < LEAST_KEPT
            or s[at.SHARED] > 1
            or s[at.PENDING] > places
            or self.decisions[:, d].min(initial=0.0) < 0
            or self.rows[:, -2:].min(initial=0.0) < 0
            or self.vectors[at.NONNEGATIVE].min() < 0
            or self.vectors[at.SCALE].min() <= 0
            or (self.vectors[at.LOW] > self.vectors[at.HIGH]).any()
        ):
            raise ValueError(f"{name} holds a number that no rewards lead to")

    __setstate__ = restore_writable

    def copy(self) -> "SelfTunedUCBState":
        """Return a state of its own that is equal."""
        twin = object.__new__(type(self))
        held = {each.name: getattr(self, each.name) for each in fields(self)}
        vars(twin).update({k: np.array(v) if k != "dim" else v for k, v in held.items()})
        return twin

    def make_room(self, rewards: int = 0, decisions: int = 0) -> None:
        """Make room for so many rewards, and pending decisions, more."""
        keep = int(self.numbers[at.KEEP])
        room = doubled(len(self.rows), min(int(self.numbers[at.STORED]) + rewards, keep), keep)
        if room > len(self.rows):
            more = np.zeros((room - len(self.rows), self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])
        room = doubled(len(self.keys), self.pending + decisions)
        if room > len(self.keys):
            more = np.zeros((room - len(self.keys), self.dim + 1))
            keys = np.concatenate([self.keys, np.zeros(len(more))])
            both = {"decisions": np.concatenate([self.decisions, more]), "keys": keys}
            vars(self).update(both)  # at once

    def weigh_pending(self, weight: float) -> None:
        """Give pending decisions, counted before the unit of weights was known, that weight."""
        decisions, numbers, matrices = (
            np.array(each) for each in (self.decisions, self.numbers, self.matrices)
        )
        z = self.features(decisions[: self.pending, :-1])
        w = decisions[: self.pending, -1]  # a view
        w[w == 1.0] = weight
        matrices[at.WAITING] = matmul(z.T * w, z)
        numbers[at.WEIGHTED_LENGTHS] = weight * numbers[at.LENGTHS]
        vars(self).update(decisions=decisions, numbers=numbers, matrices=matrices)  # all, or none

    @property
    def _plain(self) -> int:
        """The number of features before the blocks."""
        blocks, context = self.numbers[[at.BLOCKS, at.CONTEXT]]
        return int(self.dim - blocks * (context + 1))

    def features(self, arms: Array) -> Array:
        """Return arms as they are learnt, (n, dim + 1): contexts in units of now, an intercept."""
        z = np.hstack([arms, np.ones((len(arms), 1))])
        d, e = int(self.numbers[at.CONTEXT]), self._plain
        if d:
            blocks = z[:, e:-1].reshape(len(arms), -1, d + 1)  # a view where memory allows
            heads, given = blocks[:, :, :1], blocks[:, :, 1:]
            c = np.divide(given, heads, np.zeros_like(given), where=heads != 0)
            low, high, centre, rate = self.vectors[[at.LOW, at.HIGH, at.CENTRE, at.RATE], :d]
            given[:] = heads * (np.clip(c, low, high) - centre) * rate
            z[:, e:-1] = blocks.reshape(len(arms), -1)
            z[:, -1] = self.numbers[at.SHARED]  # else heads have the intercept
        return z

    def history(self, first: int, last: int) -> tuple[Array, Array]:
        """Return features and rewards, less the origin, of rows kept."""
        rows, e = self.rows[first : min(last, int(self.numbers[at.STORED]))], self._plain
        blocks, d = self.numbers[[at.BLOCKS, at.CONTEXT]].astype(int).tolist()
        c = np.hstack([np.ones((len(rows), 1)), rows[:, e + blocks : e + blocks + d]])
        given = rows[:, e : e + blocks, None] * c[:, None]
        arms = np.hstack([rows[:, :e], given.reshape(len(rows), -1)])
        return self.features(arms), rows[:, -3]

    @property
    def average_context(self) -> Array:
        """The mean of each column of contexts, without outliers."""
        return self.vectors[at.CENTRE, : int(self.numbers[at.CONTEXT])].copy()

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        return int(self.numbers[at.COUNT])

    @property
    def pending(self) -> int:
        """The number of decisions whose rewards are pending."""
        return int(self.numbers[at.PENDING])

    @property
    def pending_arms(self) -> Array:
        """The arms of those decisions, (n, dim), in no order."""
        return self.decisions[: self.pending, :-1].copy()

    @property
    def restarts(self) -> int:
        """How often the past was given up."""
        return int(self.numbers[at.RESTARTS])

    @property
    def last_restart(self) -> int:
        """The number of rewards learnt when the past was last given up, 0 if never."""
        return int(self.numbers[at.LAST_RESTART])

    @property
    def usual_weight(self) -> float:
        """The mean weight of rewards, 1 before the first."""
        s = self.numbers
        return float(s[at.WEIGHTS] / s[at.COUNT]) if s[at.COUNT] else 1.0

    @property
    def coef(self) -> Array:
        """The estimated coefficients of the features as given; contexts within their limits."""
        theta, d = self.vectors[at.THETA, :-1].copy(), int(self.numbers[at.CONTEXT])
        if d:
            blocks = theta[self._plain :].reshape(-1, d + 1)  # a view
            blocks[:, 1:] *= self.vectors[at.RATE, :d]
            blocks[:, 0] -= matmul(blocks[:, 1:], self.average_context)
        return theta

    @property
    def intercept(self) -> float:
        """The estimated intercept."""
        return float(self.vectors[at.THETA, -1] + self.numbers[at.ORIGIN])

    @property
    def ridge(self) -> float:
        """The ridge of plain features now."""
        return float(self.numbers[at.RIDGE] / 2)

    @property
    def dispersion(self) -> float:
        """The variance of a reward over the square of its sd as given; 0 before it is known."""
        return float(self.numbers[at.DISPERSION])


def doubled(room: int, least: int, most: int = 2**53) -> int:
    """Return a room doubled until it is large enough, up to ``most``.

    >>> doubled(0, 0), doubled(0, 1), doubled(256, 256), doubled(256, 600), doubled(256, 600, 700)
    (0, 256, 256, 1024, 700)
    """
    while room < least:
        room = min(max(2 * room, ROOM), most)
    return room


def start(
    dim: int, family: int, blocks: int, context: int, shared: bool, keep_rows: int
) -> SelfTunedUCBState:
    """Return the state before the first reward."""
    D = dimension(dim) + 1
    plain = dim - blocks * (context + 1)
    if plain < 0:
        raise ValueError(
            f"dim is {dim}, less than {blocks} blocks of {context + 1} features; pass a larger dim"
        )
    numbers = np.zeros(at.SIZE)
    numbers[[at.RIDGE, at.INTERCEPT, at.TYPICAL]] = 1.0
    numbers[[at.FAMILY, at.BLOCKS, at.CONTEXT]] = family, blocks, context
    numbers[[at.SHARED, at.KEEP]] = shared, keep_rows
    matrices = np.zeros((at.MATRICES, D, D))
    matrices[[at.INVERSE, at.BONUS, at.RECENT_INVERSE, at.PENALTY]] = np.eye(D)
    vectors = np.zeros((at.VECTORS, D))
    vectors[[at.SCALE, at.APART, at.TOGETHER]] = 1.0
    rows = np.zeros((min(ROOM, keep_rows), plain + blocks + context + 3))
    return SelfTunedUCBState(dim, numbers, vectors, matrices, rows, np.zeros((0, D)), np.zeros(0))
