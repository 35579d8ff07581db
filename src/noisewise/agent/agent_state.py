"""What an agent writes to a file, beside its policy."""

from dataclasses import dataclass

import numpy as np

from ..inputs import integer
from ..protocols import Array
from ..states import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    check_array,
    check_fields,
    check_generator,
    check_rows,
)
from .observations import Key, is_key, limits_of
from .residuals import ResidualScale


@dataclass(eq=False)
class AgentState:
    """What an agent writes to a file, beside its policy."""

    state: object
    generator: str
    keys: list[Key]
    features: Array
    sigma: float
    scale: ResidualScale | None
    capacity: int
    dropped: int
    rewards: tuple[float, float] | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        keys, x = self.keys, self.features
        check_fields(self, keys=list, features=np.ndarray, sigma=POSITIVE, dropped=COUNT)
        if not all(is_key(key) for key in keys) or len(set(keys)) < len(keys):
            raise ValueError("AgentState.keys holds what is no key, or one twice")
        check_array("AgentState.features", x, (len(keys), x.shape[1] if x.ndim == 2 else 0))
        check_rows("AgentState", x)
        if getattr(self.state, "dim", x.shape[1]) != x.shape[1]:
            raise ValueError("AgentState.state has another dim than its features")
        if integer("AgentState.capacity", self.capacity) < len(keys):
            raise ValueError(f"AgentState.keys holds more than its capacity {self.capacity}")
        if self.scale is not None:
            check_fields(self, scale=ResidualScale)
        if self.rewards is not None and self.rewards != limits_of(self.rewards):
            raise ValueError("AgentState.rewards is no pair of floats")
        if self.unit is not None:
            check_fields(self, unit=NONNEGATIVE)
        check_generator(self.generator)
