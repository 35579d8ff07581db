"""Arms without features: a mean and a variance for each, as the normal bandits keep them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import dimension, ready
from ...protocols import Array
from ...storage.states import COUNT, check_fields, check_rows
from ...support.ownership import writes
from ...support.printing import OneLine
from ..arms import candidates, compiled, in_form, observation


@dataclass(eq=False, repr=False)
class NormalState(OneLine):
    """What is known of each arm, a column of ``table``, after ``count`` rewards in all."""

    table: Array
    count: int = 0

    def __post_init__(self) -> None:
        dimension(np.size(self.table) // 3)
        check_fields(self, table=(3, np.size(self.table) // 3), count=COUNT)
        check_rows("NormalState", self.table)
        if self.pulls.min() < 0 or self.squares.min() < 0:
            raise ValueError("NormalState.table holds a count or a sum of squares below 0")

    @property
    def dim(self) -> int:
        """The number of arms."""
        return self.table.shape[1]

    @property
    def pulls(self) -> Array:
        """How many rewards each arm has given."""
        return self.table[0]

    @property
    def means(self) -> Array:
        """The mean of each arm's rewards, 0 before the first."""
        return self.table[1]

    @property
    def squares(self) -> Array:
        """The sum of squared deviations from that mean."""
        return self.table[2]

    @property
    def theta(self) -> Array:
        """The means, as what a policy estimates."""
        return self.means.copy()


@dataclass(frozen=True)
class NormalBandit:
    """Play a rarely played arm if there is one, else the arm of the largest bound.

    Arm k is the k-th unit vector: features say which arm it is and nothing else. A policy says
    what rare means and what its bound is. Given standard deviations are not used.
    """

    one_hot: ClassVar[bool] = True
    not_promised: ClassVar[tuple[str, ...]] = (
        "rotation leaves choices alone",
        "a zero arm is legal",
    )

    def start(self, dim: int) -> NormalState:
        """Make the state of a fresh learner of ``dim`` arms."""
        return NormalState(np.zeros((3, dimension(dim))))

    def select(
        self,
        state: NormalState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the least played arm while that is rare, else that of the largest bound."""
        kernels = compiled("policies.normal_rounds")
        found = kernels.BAD
        if ready(arms) and arms.ndim == 2:
            found = kernels.choose(arms, state.table, state.count, self.form)
        if found == kernels.BAD:
            x = candidates(arms, state.dim)
            _require_units("arms", x)
            found = kernels.choose(x, state.table, state.count, self.form)
        return int(found)

    @writes
    def update(self, state: NormalState, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Learn a reward of one arm."""
        kernels = compiled("policies.normal_rounds")
        ready_made = in_form(arm, reward, sigma) and 0 <= sigma < math.inf
        if not ready_made or kernels.learn(arm, reward, state.table) == kernels.BAD:
            x, y, _ = observation(arm, reward, sigma, state.dim)
            _require_units("arm", x[None])
            kernels.learn(x, y, state.table)
        state.count += 1

    def enough(self, state: NormalState) -> int:
        """Return how often an arm must have been played before its bound counts."""
        raise NotImplementedError

    def bounds(self, state: NormalState) -> Array:
        """Return the upper bound of every arm; that of a rare one means nothing."""
        raise NotImplementedError

    @property
    def form(self) -> int:
        """The number of the bound in kernels/policies/normal_rounds.py."""
        raise NotImplementedError


def _require_units(name: str, rows: Array) -> None:
    if not np.array_equal(rows, np.eye(rows.shape[1])[rows.argmax(axis=1)]):
        raise ValueError(
            f"{name} holds a row that is no unit vector; this policy knows no features, pass rows "
            "of the identity matrix, row k for arm k"
        )
