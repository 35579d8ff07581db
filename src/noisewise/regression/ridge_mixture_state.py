"""RidgeMixtureState: experts with their weights, and how they see the features."""

import math
from dataclasses import dataclass, fields

import numpy as np

from ..blas import matmul
from ..inputs import dimension
from ..printing import OneLine
from ..protocols import Array
from ..states import COUNT, FLAG, check_fields, check_list, restore_writable
from .state import FTRLState

# the constant column: with ridge 1/2, a ridge matrix of 1/4 for the intercept, or almost none
CONSTANT, FREE_CONSTANT = 2.0, 64.0
RENEWAL = 2.0  # how far a variance may move before the features are scaled again
LEAST_WEIGHT = 1e-6


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
        The experts' proved distances from their minimisers (`FTRLState.gap`), by weight.
    theta, intercept : (d,) array, float
        The experts' estimates, averaged by weight, in the units of the features.
    """

    dim: int
    experts: list[FTRLState]
    ridges: Array  # c of each expert
    log_weights: Array  # ln prior less losses; their sum of exponentials is that of the mixture
    shift: Array  # the first row, or the mean of rows fitted as a batch
    total: Array  # sums of shifted features, and of their squares
    squares: Array
    variances: Array  # those in use
    count: int = 0
    prior_rows: int = 0  # 1 if experts began with a row of their own
    batch: bool = False  # whether rows were fitted as a batch
    basis: Array | None = None  # of rows fewer than columns
    rank: int = 0  # its directions so far
    next_look: int = 0  # the count at which all scales are renewed

    def __post_init__(self) -> None:
        check_list("RidgeMixtureState.experts", self.experts, FTRLState)
        d, k = dimension(self.dim), len(self.experts)
        check_fields(self, ridges=(k,), log_weights=(k,), count=COUNT, prior_rows=COUNT)
        check_fields(self, batch=FLAG)
        check_fields(self, shift=(d,), total=(d,), squares=(d,), variances=(d,))
        check_fields(self, rank=COUNT, next_look=COUNT)
        if self.basis is not None:
            check_fields(self, basis=(self.basis.size // d, d))
        p = self.width
        if self.rank > (0 if self.basis is None else p):
            raise ValueError(f"RidgeMixtureState.rank is {self.rank}, more than its basis has")
        n = self.count + self.prior_rows
        if not k or any(each.count != n for each in self.experts):
            raise ValueError(f"RidgeMixtureState.experts have not learnt {n} rows each")
        if self.prior_rows > (self.experts[0].dim > p):
            raise ValueError(
                f"RidgeMixtureState.prior_rows is {self.prior_rows}; pass 0 or, with "
                "an intercept, 1"
            )
        if len({each.dim for each in self.experts} | {p, p + 1}) > 2:
            raise ValueError(f"RidgeMixtureState.experts are not of dim {p}, or {p + 1}")
        if not (self.ridges > 0).all() or min(self.squares.min(), self.variances.min()) < 0:
            raise ValueError("RidgeMixtureState holds a ridge, square or variance that is negative")

    __setstate__ = restore_writable

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone, without what can be computed from them."""
        return {each.name: vars(self)[each.name] for each in fields(self)}

    @property
    def weights(self) -> Array:
        """The posterior weights of the experts."""
        return np.asarray(np.exp(self.log_weights + self.loss))

    @property
    def loss(self) -> float:
        """The logarithmic loss of the mixture."""
        return -float(np.logaddexp.reduce(self.log_weights))

    @property
    def gap(self) -> float:
        """The proved gaps, by weight."""
        return float(self.weights @ [each.gap for each in self.experts])

    @property
    def width(self) -> int:
        """In how many coordinates experts see the features."""
        return self.dim if self.basis is None else len(self.basis)

    @property
    def theta(self) -> Array:
        """The estimates, by weight."""
        theta: Array = sum(
            w / math.sqrt(c) * each.theta[: self.width]
            for w, c, each in zip(self.weights, self.ridges, self.experts, strict=True)
        )
        return self.units * (theta if self.basis is None else matmul(theta, self.basis))

    @property
    def constant(self) -> float:
        """What experts see in the column of the intercept."""
        return FREE_CONSTANT if self.prior_rows else CONSTANT

    @property
    def intercept(self) -> float:
        """The intercepts, by weight."""
        if self.experts[0].dim == self.width:
            return 0.0
        at_shift = self.constant * self.weights @ [each.theta[-1] for each in self.experts]
        return float(at_shift - self.theta @ self.shift)

    @property
    def units(self) -> Array:
        """What the expert of ridge 1 multiplies each feature by; 0 for one that has not moved."""
        moved = self.variances > 0
        return np.divide(1.0, np.sqrt(self.dim * self.variances), np.zeros(self.dim), where=moved)

    def scaled(self, z: Array, expert: int) -> Array:
        """Return shifted rows as an expert sees them."""
        made, p = np.empty((len(z), self.experts[expert].dim)), self.width
        made[:, p:] = self.constant
        units = self.units / math.sqrt(self.ridges[expert])
        if self.basis is None:
            np.multiply(z, units, out=made[:, :p])
        else:
            made[:, :p] = matmul(z * units, self.basis.T)
        return made

    def outgrown(self, variance: Array) -> Array:
        """Return which variances, a row each, are too far from those in use."""
        used = self.variances
        return np.asarray(((variance > RENEWAL * used) | (used > RENEWAL * variance)).any(axis=-1))

    def drop(self) -> None:
        """Forget the experts of little weight; the others share what they had."""
        kept, before = self.weights >= LEAST_WEIGHT, self.loss
        self.experts = [each for each, keep in zip(self.experts, kept, strict=True) if keep]
        self.ridges, self.log_weights = self.ridges[kept], self.log_weights[kept]
        self.log_weights = self.log_weights + (self.loss - before)
