"""MultinomialState: experts of several classes with their losses, and the rows they learnt."""

from dataclasses import dataclass, fields

import numpy as np

from ..inputs import dimension
from ..printing import OneLine
from ..protocols import Array
from ..states import COUNT, FLAG, check_fields, check_rows, restore_writable
from .ridge_mixture_state import LEAST_WEIGHT, RENEWAL


@dataclass(eq=False, repr=False)
class MultinomialState(OneLine):
    """What `MultinomialMixture` knows after ``count`` rows.

    Attributes
    ----------
    weights : (e,) array
        The weights of the ridges still alive, ``ridges``.
    coefficients, intercepts : (k, d) and (k,) arrays
        The experts' estimates, averaged by weight, in the units of the features.
    """

    dim: int
    ridges: Array  # (e,), c of each expert
    log_priors: Array
    losses: Array
    heaviest: Array  # (1,), the largest weight of a row
    theta: Array  # (e, K, p), of features less ``centre`` over roots of ``variances``
    inverse: Array  # (e, K p, K p) or (e, p, p)
    shift: Array  # the first row, or the mean of rows fitted as a batch
    total: Array  # sums of shifted features, and of their squares
    squares: Array
    centre: Array
    variances: Array  # those in use
    rows: Array  # shifted features, label and weight of each; there may be room for more
    count: int = 0
    due: int = 1  # the count at which experts are solved for again
    batch: bool = False  # whether rows were fitted as a batch

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, theta=np.ndarray, inverse=np.ndarray, rows=np.ndarray)
        E, K, p = self.theta.shape if self.theta.ndim == 3 else (0, 0, 0)
        m = self.inverse.shape[1] if self.inverse.ndim == 3 else 0
        check_fields(self, ridges=(E,), log_priors=(E,), losses=(E,), heaviest=(1,))
        check_fields(self, theta=(E, K, p), inverse=(E, m, m), count=COUNT, due=COUNT, batch=FLAG)
        check_fields(self, shift=(d,), total=(d,), squares=(d,), centre=(d,), variances=(d,))
        check_fields(self, rows=(len(self.rows) if self.rows.ndim else 0, d + 2))
        check_rows("MultinomialState", self.theta, self.inverse, self.rows)
        labels, w = self.rows[: self.count, d], self.rows[: self.count, d + 1]
        if not E or p not in (d, d + 1) or m not in (p, K * p) or K < 2:
            raise ValueError("MultinomialState.theta and inverse are not of the same coefficients")
        if len(self.rows) < self.count or not self.count < self.due:
            raise ValueError("MultinomialState.rows or due are not those of its count")
        if ((labels % 1 != 0) | (labels < 0) | (labels >= K) | ~(w > 0)).any():
            raise ValueError("MultinomialState.rows hold what is no label, or no weight")
        if (
            min(self.squares.min(), self.variances.min(), self.heaviest[0]) < 0
            or not (self.ridges > 0).all()
        ):
            raise ValueError("MultinomialState holds a ridge, square or variance that is negative")

    def __setstate__(self, held: dict[str, object]) -> None:
        restore_writable(self, held)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without the room for more rows."""
        found = {each.name: vars(self)[each.name] for each in fields(self)}
        return found | {"rows": self.rows[: self.count].copy()}

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.theta.shape[1])

    @property
    def weights(self) -> Array:
        """The weights of the experts."""
        logs = self.log_priors - self.losses / max(1.0, self.heaviest[0])
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def kept(self) -> tuple[Array, Array, Array]:
        """The rows learnt so far: shifted features, labels, weights."""
        d, held = self.dim, self.rows[: self.count]
        return held[:, :d], held[:, d], held[:, d + 1]

    @property
    def units(self) -> Array:
        """What features are multiplied by; 0 for one that has not moved."""
        moved = self.variances > 0
        return np.sqrt(np.divide(1.0, self.variances, np.zeros(self.dim), where=moved))

    @property
    def coefficients(self) -> Array:
        """The coefficients, by weight."""
        return np.tensordot(self.weights, self.theta[:, :, : self.dim], 1) * self.units

    @property
    def intercepts(self) -> Array:
        """The intercepts, by weight."""
        if self.theta.shape[2] == self.dim:
            return np.zeros(self.classes)
        here = np.tensordot(self.weights, self.theta[:, :, -1], 1)
        return np.asarray(here - self.coefficients @ (self.shift + self.centre))

    def scaled(self, z: Array) -> Array:
        """Return shifted rows as experts see them."""
        made = np.ones((len(z), self.theta.shape[2]))
        made[:, : self.dim] = (z - self.centre) * self.units
        return made

    def outgrown(self, variance: Array) -> Array:
        """Return which variances, a row each, are too far from those in use.

        A feature that moves for the first time was the same in all rows: no coefficient changes.
        """
        used = self.variances
        far = (variance > RENEWAL * used) | (used > RENEWAL * variance)
        return np.asarray((far & (used > 0)).any(axis=-1))

    def append(self, z: Array, labels: Array, w: Array) -> None:
        """Keep rows; there is room for as many again."""
        n, m = self.count, len(z)
        if len(self.rows) < n + m:
            room = np.zeros((max(2 * n, n + m, 16), self.dim + 2))
            room[:n] = self.rows[:n]
            self.rows = room
        self.rows[n : n + m] = np.column_stack([z, labels, w])

    def drop(self) -> None:
        """Forget the experts of little weight; the others share what they had."""
        kept = self.weights >= LEAST_WEIGHT
        priors = np.exp(self.log_priors[kept])
        self.log_priors = np.log(priors / priors.sum())
        self.ridges, self.losses = self.ridges[kept], self.losses[kept]
        self.theta, self.inverse = self.theta[kept], self.inverse[kept]
