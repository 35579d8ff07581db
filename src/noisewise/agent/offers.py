"""What an agent may choose from: a matrix of arms, or a context and actions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bandits.arms import candidates_of
from ..inputs import dimension, numbers, ready, shown
from ..protocols import Array
from .action_features import Arms
from .context_fields import Value


class Offer(NamedTuple):
    """Arms to choose from; their names and the values of the context where these are known."""

    x: Array
    names: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    positions: tuple[int, ...] = ()

    def called(self, chosen: Any) -> Any:
        """Return the name of a chosen arm, or its number where it has none; likewise of several."""
        if isinstance(chosen, list):
            return [self.called(k) for k in chosen]
        return self.names[chosen] if self.names else chosen

    def kept(self) -> tuple[tuple[Value, ...], tuple[int, ...]] | Array:
        """Return what a record keeps: far less than the matrix where there is a context."""
        return (self.values, self.positions) if self.names else np.array(self.x)


def is_matrix(given: object) -> bool:
    """Return whether arms are given, and no context."""
    return isinstance(given, np.ndarray) and given.ndim == 2


def read_offer(
    arms: Arms | None, given: object, actions: Sequence[str] | None, clip: bool
) -> Offer:
    """Read what `Agent.choose` is given; the values of a matrix are the policy's to look at.

    Huge numbers of contexts are cut with ``clip``, else refused.
    """
    if arms is None or is_matrix(given):
        if actions is not None:
            raise ValueError("actions were passed with a matrix of arms; pass its rows instead")
        matrix: ArrayLike = given  # type: ignore[assignment]
        return Offer(numbers("arms", matrix, check=False))
    values, at = arms.read(given, clip), arms.positions(actions)
    names = tuple(arms.actions[i] for i in at)
    return Offer(arms.matrix(values, names), names, values, tuple(at))


class Offers(NamedTuple):
    """Many offers: all arms one below the other, where those of each begin, and the rest by offer.

    The arms of offer t are the rows from ``first[t]`` to ``first[t + 1]``; ``longest`` is the
    largest squared norm of any.
    """

    x: Array
    first: NDArray[np.int64]
    longest: float
    names: Sequence[tuple[str, ...]]
    values: Sequence[tuple[Value, ...]]
    positions: Sequence[tuple[int, ...]]

    def each(self) -> Iterator[Offer]:
        """Yield the offers one by one."""
        ends = zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)
        arms = [self.x[a:b] for a, b in ends]
        return map(Offer, arms, self.names, self.values, self.positions)

    def called(self, chosen: list[Any]) -> list[Any]:
        """Return the names of chosen arms, or their numbers where they have none."""
        if not any(self.names):
            return chosen
        return [each.called(k) for each, k in zip(self.each(), chosen, strict=True)]


def listed(given: Any) -> Any:
    """Return what `Agent.choose_many` is given as a list, or the one array that it is."""
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        given = given.to_dict("records")
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"offers is {shown(given)}; pass a list of contexts or of arms")
    return given if ready(given) and given.ndim == 3 else list(given)


def read_offers(
    arms: Arms | None,
    given: Any,
    actions: Sequence[str] | None,
    clip: bool,
    dim: int,
    bound: float,
) -> Offers:
    """Read offers that are `listed`: contexts or matrices, none of whose arms is too long."""
    n = len(given)
    if arms is not None and not any(is_matrix(each) for each in given):
        at = arms.positions(actions)
        names = tuple(arms.actions[i] for i in at)
        values = [arms.read(each, clip) for each in given]
        x = candidates_of(arms.matrices(values, names), dim, bound)
        return Offers(*x, [names] * n, values, [tuple(at)] * n)
    if arms is None and actions is None:
        x = candidates_of(given, dim, bound)
        return Offers(*x, [()] * n, [()] * n, [()] * n)
    read = [read_offer(arms, each, actions, clip) for each in given]
    x = candidates_of([each.x for each in read], dim, bound)
    return Offers(*x, *([each[i] for each in read] for i in (1, 2, 3)))  # type: ignore[arg-type]


def dimension_of(dim: int | None, arms: Arms | None) -> int:
    """Return the number of features of an arm."""
    if arms is not None and not isinstance(arms, Arms):
        raise ValueError(
            f"arms is {shown(arms)}; pass Arms([...], context=...); a matrix goes to choose"
        )
    if dim is None and arms is None:
        raise ValueError("dim is None; pass the number of features of an arm, or arms=")
    if arms is not None and dim not in (None, arms.dim):
        raise ValueError(f"dim is {dim}, but arms have {arms.dim} columns; leave dim out")
    return dimension(dim if arms is None else arms.dim)
