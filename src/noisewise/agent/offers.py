"""What an agent may choose from: a matrix of arms, or a context and actions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import dimension, numbers, shown
from ..protocols import Array
from .action_features import Arms
from .context_fields import Value


class Offer(NamedTuple):
    """Arms to choose from; their names and the values of the context where these are known."""

    x: Array
    names: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    positions: tuple[int, ...] = ()

    def kept(self) -> tuple[tuple[Value, ...], tuple[int, ...]] | Array:
        """Return what a record keeps: far less than the matrix where there is a context."""
        return (self.values, self.positions) if self.names else np.array(self.x)


def read_offer(arms: Arms | None, given: object, actions: Sequence[str] | None) -> Offer:
    """Read what `Agent.choose` is given; the values of a matrix are the policy's to look at."""
    if arms is None or (isinstance(given, np.ndarray) and given.ndim == 2):
        if actions is not None:
            raise ValueError("actions were passed with a matrix of arms; pass its rows instead")
        matrix: ArrayLike = given  # type: ignore[assignment]
        return Offer(numbers("arms", matrix, check=False))
    values, at = arms.read(given), arms.positions(actions)
    names = tuple(arms.actions[i] for i in at)
    return Offer(arms.matrix(values, names), names, values, tuple(at))


def read_offers(arms: Arms | None, given: Any, actions: Sequence[str] | None) -> list[Offer]:
    """Read what `Agent.choose_many` is given: contexts or matrices, or a data frame of contexts."""
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        given = given.to_dict("records")
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"offers is {shown(given)}; pass a list of contexts or of arms")
    return [read_offer(arms, each, actions) for each in given]


def dimension_of(dim: int | None, arms: Arms | None) -> int:
    """Return the number of features of an arm."""
    if arms is not None and not isinstance(arms, Arms):
        raise ValueError(
            f"arms is {shown(arms)}; pass an instance, Arms(...), and a matrix to choose"
        )
    if dim is None and arms is None:
        raise ValueError("dim is None; pass the number of features of an arm, or arms=")
    if arms is not None and dim not in (None, arms.dim):
        raise ValueError(f"dim is {dim}, but arms have {arms.dim} columns; leave dim out")
    return dimension(dim if arms is None else arms.dim)
