"""MultinomialState: experts of several classes with their losses, and the rows they learnt."""

from dataclasses import dataclass

import numpy as np

from ...inputs import dimension
from ...protocols import Array
from ...storage.states import COUNT, FLAG, check_fields, check_rows, field_values, restore_writable
from ...support.printing import OneLine
from ..history import History
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
    history: History  # of shifted rows and labels
    due: int = 1  # the count at which experts are solved for again
    batch: bool = False  # whether rows were fitted as a batch

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, theta=np.ndarray, inverse=np.ndarray, history=History)
        E, K, p = self.theta.shape if self.theta.ndim == 3 else (0, 0, 0)
        m = self.inverse.shape[1] if self.inverse.ndim == 3 else 0
        check_fields(self, ridges=(E,), log_priors=(E,), losses=(E,), heaviest=(1,))
        check_fields(self, theta=(E, K, p), inverse=(E, m, m), due=COUNT, batch=FLAG)
        check_fields(self, shift=(d,), total=(d,), squares=(d,), centre=(d,), variances=(d,))
        check_rows("MultinomialState", self.theta, self.inverse)
        if not E or p not in (d, d + 1) or m not in (p, K * p) or K < 2:
            raise ValueError("MultinomialState.theta and inverse are not of the same coefficients")
        if self.history.x.shape[1] != d or not self.count < self.due:
            raise ValueError("MultinomialState.history or due are not those of its count or dim")
        w, products = self.history.labels[:, : self.count]
        off = np.abs(np.outer(range(K), w) - products).min(axis=0)
        if not ((w > 0) & (off <= 1e-9 * w)).all():
            raise ValueError("MultinomialState.history holds what is no label, or no weight")
        if (
            min(self.squares.min(), self.variances.min(), self.heaviest[0]) < 0
            or not (self.ridges > 0).all()
        ):
            raise ValueError("MultinomialState holds a ridge, square or variance that is negative")

    def __setstate__(self, held: dict[str, object]) -> None:
        restore_writable(self, held)

    __getstate__ = field_values

    @property
    def count(self) -> int:
        """The number of rows learnt."""
        return self.history.count

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
        h = self.history
        return h.rows, np.rint(h.targets), h.weights

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

    def drop(self) -> None:
        """Forget the experts of little weight; the others share what they had."""
        kept = self.weights >= LEAST_WEIGHT
        priors = np.exp(self.log_priors[kept])
        self.log_priors = np.log(priors / priors.sum())
        self.ridges, self.losses = self.ridges[kept], self.losses[kept]
        self.theta, self.inverse = self.theta[kept], self.inverse[kept]
