"""What an agent may choose from: a matrix of arms, or a context and actions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...bandits.arms import candidates_of
from ...inputs import dimension, numbers, ready, shown
from ...protocols import Array
from ..record.decision_log import KeptOffer
from ..rewards.observations import Action
from .action_features import Arms
from .context_fields import Value


@runtime_checkable
class Records(Protocol):
    """A data frame of pandas."""

    @property
    def columns(self) -> object:
        """The names of the columns."""

    def to_dict(self, orient: str) -> list[object]:
        """Return a dictionary for each row."""


class Offer(NamedTuple):
    """Arms to choose from; their names and the values of the context where these are known."""

    x: Array
    names: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    positions: tuple[int, ...] = ()

    def actions(self, chosen: list[int]) -> list[Action]:
        """Return the names of chosen arms, or their numbers where they have none."""
        return [self.names[k] for k in chosen] if self.names else [*chosen]

    def kept(self) -> KeptOffer:
        """Return what a record keeps: far less than the matrix where there is a context."""
        return (self.values, self.positions) if self.names else np.array(self.x)


def is_matrix(choices: object) -> TypeGuard[Array]:
    """Return whether these are arms, and no context."""
    return isinstance(choices, np.ndarray) and choices.ndim == 2


def read_offer(
    arms: Arms | None, choices: object, actions: Sequence[str] | None, clip: bool
) -> Offer:
    """Read what is passed to `Agent.choose`; the values of a matrix are the policy's to look at.

    Huge numbers of contexts are cut with ``clip``, else refused.
    """
    if arms is None or is_matrix(choices):
        if actions is not None:
            raise ValueError("actions were passed with a matrix of arms; pass its rows instead")
        return Offer(numbers("arms", choices, check=False))
    values, at = arms.read(choices, clip), arms.positions(actions)
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

    def actions(self, chosen: list[int]) -> list[Action]:
        """Return the names of chosen arms, or their numbers where they have none."""
        pairs = zip(self.names, chosen, strict=True)
        return [names[k] if names else k for names, k in pairs]


def listed_offers(offers: object) -> list[object] | Array:
    """Return what is passed to `Agent.choose_many` as a list, or the one array that it is."""
    if isinstance(offers, Records):
        offers = offers.to_dict("records")
    if isinstance(offers, str | bytes | Mapping) or not isinstance(offers, Iterable):
        raise ValueError(f"offers is {shown(offers)}; pass a list of contexts or of arms")
    return offers if ready(offers) and offers.ndim == 3 else list(offers)


def read_offers(
    arms: Arms | None,
    offers: list[object] | Array,
    actions: Sequence[str] | None,
    clip: bool,
    dim: int,
    bound: float,
) -> Offers:
    """Read offers that are listed: contexts or matrices, none of whose arms is too long."""
    n = len(offers)
    if arms is not None and not any(is_matrix(each) for each in offers):
        at = arms.positions(actions)
        names = tuple(arms.actions[i] for i in at)
        values = [arms.read(each, clip) for each in offers]
        x = candidates_of(arms.matrices(values, names), dim, bound)
        return Offers(*x, [names] * n, values, [tuple(at)] * n)
    if isinstance(offers, np.ndarray) and arms is None and actions is None:
        x = candidates_of(offers, dim, bound)
        return Offers(*x, [()] * n, [()] * n, [()] * n)
    read = [read_offer(arms, each, actions, clip) for each in offers]
    x = candidates_of([each.x for each in read], dim, bound)
    return Offers(
        *x,
        [each.names for each in read],
        [each.values for each in read],
        [each.positions for each in read],
    )


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
