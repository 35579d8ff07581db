"""UCB1-Normal: the first index for normal rewards of unknown variance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...protocols import Array
from .normal import NormalBandit, NormalState


@dataclass(frozen=True)
class UCB1Normal(NormalBandit):
    r"""The classical index of normal arms, each of its own unknown variance.

    .. math:: \bar X_k + \sqrt{16\,\frac{\sum(X - \bar X_k)^2}{T_k - 1}\,\frac{\log(n - 1)}{T_k}}

    in round n, unless an arm was played less than :math:`\lceil 8\log n\rceil` times (or twice),
    which is then played.

    Use it as a baseline: `NormalUCB` is better. Costs K per round. Arms are rows of the identity
    matrix.

    Examples
    --------
    In the third round every arm must have been played nine times, 8 log 3 = 8.8:

    >>> policy = UCB1Normal()
    >>> state = policy.start(dim=2)
    >>> for arm in ([1.0, 0.0], [0.0, 1.0]):
    ...     policy.update(state, arm, 0.5)
    >>> policy.enough(state)
    9

    References
    ----------
    Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem":
    regret of order log n, given two inequalities on the tails of the t and chi-squared laws that
    were checked by computer only.
    """

    def enough(self, state: NormalState) -> int:
        """Return the number of plays below which an arm is forced."""
        return max(2, math.ceil(8 * math.log(state.count + 1)))

    def bounds(self, state: NormalState) -> Array:
        """Return the index of every arm; that of a rare one means nothing."""
        T = np.maximum(state.pulls, 2)
        rate = math.log(max(state.count, 1)) / T
        return np.asarray(state.means + np.sqrt(16 * state.squares / (T - 1) * rate))

    @property
    def form(self) -> int:
        """The number of the bound in kernels/policies/normal_rounds.py."""
        return 2
