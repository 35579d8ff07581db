"""What `SelfTunedUCB` knows: arrays that its kernels read and write."""

from dataclasses import dataclass, fields

import numpy as np

from ..blas import matmul
from ..inputs import dimension
from ..kernels import self_tuned_ucb_layout as at
from ..printing import OneLine
from ..protocols import Array
from ..states import check_fields, check_rows, check_semidefinite, check_type, restore_writable

ROOM = 256  # rows of history, and of pending decisions, at first


@dataclass(eq=False, repr=False)
class SelfTunedUCBState(OneLine):
    """Estimates, matrices, history and pending decisions of `SelfTunedUCB`.

    ``numbers``, ``vectors`` and ``matrices`` are laid out as `kernels.self_tuned_ucb_layout` says.
    ``rows`` holds the rewards since the last change, each as features, reward, weight as given (or
    trials) and what it counts of that; ``decisions`` the pending ones, each as features and weight,
    and ``keys`` a number of each by which it is found. Rows beyond those in use are 0.
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
        if np.shape(self.numbers) == (at.EARLIER,):
            raise ValueError(f"{name} is of an earlier version; learn its rewards again")
        room, places = np.size(self.rows) // (d + 3), np.size(self.keys)
        check_fields(self, numbers=(at.SIZE,), vectors=(at.VECTORS, d + 1))
        check_fields(self, matrices=(at.MATRICES, d + 1, d + 1), rows=(room, d + 3))
        check_fields(self, decisions=(places, d + 1), keys=(places,))
        check_rows(name, self.vectors, self.matrices, self.rows, self.decisions)
        for matrix in self.matrices:
            check_semidefinite(f"{name}.matrices", matrix)
        s = self.numbers
        counts = s[list(at.COUNTS)]
        if (
            (counts != np.floor(counts)).any()
            or np.delete(s, at.SIGNED).min() < 0
            or min(s[at.RIDGE], s[at.INTERCEPT], s[at.TYPICAL]) <= 0
            or s[at.DISTRUST] > 1
            or s[at.STORED] > room
            or s[at.PENDING] > places
            or self.decisions[:, d].min(initial=0.0) < 0
            or self.rows[:, d + 1 :].min(initial=0.0) < 0
            or self.vectors[[at.SQUARES_OF, at.LARGEST_OF]].min() < 0
            or self.vectors[at.SCALE].min() <= 0
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
        room = doubled(len(self.rows), int(self.numbers[at.STORED]) + rewards)
        if room > len(self.rows):
            more = np.zeros((room - len(self.rows), self.dim + 3))
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
        z = decisions[: self.pending].copy()
        w = decisions[: self.pending, -1]  # a view
        w[w == 1.0] = weight
        z[:, -1] = 1.0
        matrices[at.WAITING] = matmul(z.T * w, z)
        numbers[at.WEIGHTED_LENGTHS] = weight * numbers[at.LENGTHS]
        vars(self).update(decisions=decisions, numbers=numbers, matrices=matrices)  # all, or none

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
        """The estimated coefficients of the features."""
        return self.vectors[at.THETA, :-1].copy()

    @property
    def intercept(self) -> float:
        """The estimated intercept."""
        return float(self.vectors[at.THETA, -1] + self.numbers[at.ORIGIN])

    @property
    def ridge(self) -> float:
        """The ridge of now."""
        return float(self.numbers[at.RIDGE] / 2)

    @property
    def dispersion(self) -> float:
        """The variance of a reward over the square of its sd as given; 0 before it is known."""
        return float(self.numbers[at.DISPERSION])


def doubled(room: int, least: int) -> int:
    """Return a room doubled until it is large enough.

    >>> doubled(0, 0), doubled(0, 1), doubled(256, 256), doubled(256, 600)
    (0, 256, 256, 1024)
    """
    while room < least:
        room = max(2 * room, ROOM)
    return room


def start(dim: int, family: int) -> SelfTunedUCBState:
    """Return the state before the first reward."""
    D = dimension(dim) + 1
    numbers = np.zeros(at.SIZE)
    numbers[[at.RIDGE, at.INTERCEPT, at.TYPICAL]] = 1.0
    numbers[at.FAMILY] = family
    matrices = np.zeros((at.MATRICES, D, D))
    matrices[[at.INVERSE, at.BONUS, at.RECENT_INVERSE]] = np.eye(D)
    vectors = np.zeros((at.VECTORS, D))
    vectors[at.SCALE] = 1.0
    return SelfTunedUCBState(
        dim, numbers, vectors, matrices, np.zeros((ROOM, D + 2)), np.zeros((0, D)), np.zeros(0)
    )
