"""NormalUCB: normal rewards of unknown means and variances."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...inputs import one_of
from ...protocols import Array
from .normal import NormalBandit, NormalState


@dataclass(frozen=True)
class NormalUCB(NormalBandit):
    r"""The asymptotically optimal index of normal arms, each of its own unknown variance.

    .. math:: \bar X_k + S_k\sqrt{n^{2/(T_k - 2)} - 1},\qquad
              S_k^2 = \frac{1}{T_k}\sum(X - \bar X_k)^2

    after n rewards, T_k of them from arm k; every arm is played three times first. The index is the
    root above the mean of :math:`\tfrac{T - 2}{2}\log(1 + (\mu - \bar X)^2/S^2) = \log n`.

    Use it for a few arms without features and normal rewards. Costs K per round. Arms are rows of
    the identity matrix.

    Parameters
    ----------
    variant : "corrected" or "original"
        The exponent 2/(T - 2), or the older 2/T, which is not optimal.

    Examples
    --------
    Rewards 0, 1, 2 have S^2 = 2/3; after three rewards n^2 - 1 = 8:

    >>> policy = NormalUCB()
    >>> state = policy.start(dim=1)
    >>> for reward in (0.0, 1.0, 2.0):
    ...     policy.update(state, [1.0], reward)
    >>> round(float(policy.bounds(state)[0]), 6), round(1 + (2 / 3 * 8) ** 0.5, 6)
    (3.309401, 3.309401)

    References
    ----------
    Cowan, Honda and Katehakis (2018), "Normal bandits of unknown means and variances": regret is
    asymptotically sum_k 2 D_k / log(1 + D_k^2/sigma_k^2) times log n, which no consistent policy
    can better. The original index is that of Burnetas and Katehakis (1996).
    """

    variant: str = "corrected"

    def __post_init__(self) -> None:
        one_of("variant", self.variant, ("corrected", "original"))

    def enough(self, state: NormalState) -> int:
        """Return 3."""
        return 3

    def bounds(self, state: NormalState) -> Array:
        """Return the index of every arm; that of a rare one means nothing."""
        T = np.maximum(state.pulls, 3)
        exponent = 2 * math.log(max(state.count, 1)) / (T - 2 if self.variant == "corrected" else T)
        return np.asarray(state.means + np.sqrt(state.squares / T * np.expm1(exponent)))

    @property
    def form(self) -> int:
        """The number of the bound in kernels/policies/normal_rounds.py."""
        return 0 if self.variant == "corrected" else 1
