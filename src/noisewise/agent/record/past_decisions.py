"""Tables of past decisions: which rows an agent can learn, and the arms that were played."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bandits.arms import LARGEST, LONGEST
from ...inputs import numbers, shown, with_slack
from ...protocols import Array
from ...support.printing import count_of
from ..actions import context_fields
from ..actions.action_features import Arms
from ..rewards.reward_scale import Row
from ..table_columns import Column, columns_of, encoded, numbers_in, read_back
from .decision_log import Decision
from .left_out import LeftOut
from .past_record import UNKNOWN, Shares, decision, shares

OWN = ("arms", "probability", "probabilities", "slot")  # columns of the log of an agent
LEAST_SPREAD, MOST_SPREAD, MOST_PRODUCT = 1e-20, 1e40, 1e100  # that can be computed with


@dataclass(repr=False)
class LearntTable(LeftOut):
    """What became of the rows of a table of past decisions.

    Attributes
    ----------
    rows : int
        How many there were.
    left_out : dict of str to int
        How many of them could not be learnt, for each reason; of several the first counts.
    first : dict of str to int
        The first row, counted from 0, that was left out for each reason.
    """

    @property
    def learnt(self) -> int:
        """How many rows were learnt."""
        return self.used

    def __repr__(self) -> str:
        return self.sentence("learnt", "row", ", counted from 0")


class Names(NamedTuple):
    """The columns of a table of past decisions."""

    action: str
    reward: str
    context: Sequence[str] | None
    probability: str | None
    sigma: str | None
    trials: str | None


class Reader:
    """The rows of a table that an agent can learn, some at a time; ``counts`` counts the others."""

    def __init__(
        self,
        table: object,
        names: Names,
        arms: Arms | None,
        dim: int,
        *,
        clip: bool,
        rewards: tuple[float, float] | None,
        longest: float,
        sigma: float,
    ) -> None:
        self.columns = columns_of("table", table)
        self.names, self.arms, self.dim, self.clip = names, arms, dim, clip
        self.most = min(with_slack(longest), LONGEST)
        self.counts = LearntTable(len(self.columns.get(names.reward, ())))
        y = numbers_in(names.reward, self._column(names.reward), LARGEST)
        self.use = np.ones(len(y), dtype=np.bool_)
        low, high = rewards or (-math.inf, math.inf)
        self._keep_finite("the reward", y)
        self._keep(f"the reward is outside [{low:g}, {high:g}]", (y >= low) & (y <= high))
        self.reward, self.sigma = y, sigma
        if names.sigma is not None and names.trials is not None:
            raise ValueError("sigma and trials are both given; pass one of them")
        self.sds, self.trials = self._level(names.sigma), self._level(names.trials)
        self.taken = np.zeros(len(y), dtype=np.int64)
        self.fields: list[str] = []  # the column of each field of the context
        self._arms = self._named_arms() if arms is not None else self._rows_of_features()
        self.shares = {} if names.probability is None else self._shares(names.probability)
        self.learnt: list[int] = []
        self.usable = np.flatnonzero(self.use)

    def blocks(
        self, starts: Iterator[int], size: int
    ) -> Iterator[tuple[Array, Array, Array, NDArray[np.int64]]]:
        """Yield features, rewards, standard deviations and numbers of usable rows, by blocks."""
        for start in starts:
            at = self.usable[start : start + size]
            x, y = self._arms(at), self.reward[at]
            n = 1.0 if self.trials is None else self.trials[at]
            sd = self.sigma / np.sqrt(n) if self.sds is None else self.sds[at]
            sd = np.broadcast_to(sd, y.shape)
            square, w = np.einsum("ij,ij->i", x, x), sd**-2.0
            with np.errstate(over="ignore"):
                fits = (1 + square) * (1 + y * y * w) * w <= MOST_PRODUCT
            fits &= square <= self.most**2
            self.counts.leave_out(
                "the arm is too long, or its numbers too large", at[~fits].tolist()
            )
            self.learnt += at[fits].tolist()
            yield np.ascontiguousarray(x[fits]), y[fits], sd[fits], at[fits]

    def rows(self, starts: Iterator[int], size: int) -> Iterator[Row]:
        """Yield features, reward, sd or None, and trials of each usable row."""
        for x, y, _, at in self.blocks(starts, size):
            for features, reward, i in zip(x, y.tolist(), at, strict=True):
                sd = None if self.sds is None else float(self.sds[i])
                yield features.copy(), reward, sd, 1.0 if self.trials is None else self.trials[i]

    def decisions(self, most: int) -> list[Decision]:
        """Return the last rows that were learnt, as the record of an agent keeps them."""
        decisions: list[Decision] = []
        for i in self.learnt[-most:] if self.shares else ():
            row: object = [self.columns[name][i] for name in self.fields]
            if self.arms is None:
                row = self.columns["arms"][i]
            p, taken = self.shares[i], int(self.taken[i])
            decisions.append(decision(self.arms, row, self.clip, taken, p, self.reward[i]))
        return decisions

    def _shares(self, name: str) -> dict[int, Shares]:
        """Return the probabilities by place of the action, by row; keep rows that have them."""
        own, whole = numbers_in(name, self._column(name), 1.0), None
        if "probabilities" in self.columns:
            whole = read_back(self._column("probabilities"))
        actions = None if self.arms is None else self.arms.actions
        if actions is None and "arms" not in self.columns:
            raise ValueError(
                f"probability is {name!r}, but the table has no column 'arms' with the matrices on "
                "offer; leave probability out: learning does without"
            )
        kept: dict[int, Shares] = {}
        for i in np.flatnonzero(self.use).tolist():
            names = actions or [str(k) for k in range(len(np.asarray(self.columns["arms"][i])))]
            if whole is None and len(names) != 2:
                raise ValueError(f"probability is {name!r}, but {UNKNOWN}")
            each = {} if whole is None else whole[i]
            if isinstance(each, Mapping):
                by_name = None if whole is None else each
                p = shares(names, int(self.taken[i]), float(own[i]), by_name)
                if p is not None:
                    kept[i] = p
        fits = np.isin(np.arange(len(own)), list(kept))
        self._keep(f"{name} is no probability, or contradicts 'probabilities'", fits)
        return kept

    def _column(self, name: str) -> Column:
        if name not in self.columns:
            raise ValueError(f"table has no column {name!r}; it has {shown(list(self.columns))}")
        column = self.columns[name]
        if len(column) != self.counts.rows:
            raise ValueError(f"column {name!r} has {len(column)} rows, others {self.counts.rows}")
        return column

    def _keep(self, reason: str, fit: NDArray[np.bool_] | np.bool_) -> None:
        self.counts.leave_out(reason, np.flatnonzero(self.use & ~fit).tolist())
        self.use &= fit

    def _keep_finite(self, what: str, x: Array, wanted: str = "a finite number") -> None:
        """Keep rows whose numbers are there and finite."""
        x = x if x.ndim == 2 else x[:, None]
        self._keep(f"{what} is missing", (~np.isnan(x)).all(axis=1))
        self._keep(f"{what} is not {wanted}", np.isfinite(x).all(axis=1))

    def _level(self, name: str | None) -> Array | None:
        """Return standard deviations or trials, where a column has them; 1 where a row has none."""
        if name is None:
            return None
        level = numbers_in(name, self._column(name), MOST_SPREAD)
        self._keep_finite(name, level)
        self._keep(f"{name} is not above 0", level >= LEAST_SPREAD)
        return np.where(self.use, level, 1.0)

    def _named_arms(self) -> Callable[[NDArray[np.int64]], Array]:
        """Return what makes the arms of rows from actions and contexts."""
        arms = self.arms
        assert arms is not None
        place = {name: float(i) for i, name in enumerate(arms.actions)}

        def number(action: object) -> list[float]:
            return [place.get(context_fields.word("action", action), math.inf)]

        names = self.names
        at = encoded(names.action, self._column(names.action), 1, number)[:, 0]
        self._keep_finite("the action", at, "one of the agent's")
        self.taken = np.where(np.isfinite(at), at, 0.0).astype(np.int64)
        fields = (arms.context or ()) if arms.interactions is not None else ()
        columns = [name for name, _ in fields] if names.context is None else [*names.context]
        if len(columns) != len(fields):
            raise ValueError(
                f"context is {shown(columns)}; pass the columns of "
                f"{', '.join(name for name, _ in fields) or 'no field'}, in this order"
            )
        self.fields, taken = columns, self.taken
        parts = [np.ones((len(at), 1))]
        for name, each in zip(columns, fields, strict=True):
            parts.append(self._field(arms, name, each))
            wanted = "a word that was declared"
            if each[1] is None:
                most = arms.most(self.clip)
                wanted = "a finite number" if math.isinf(most) else f"a number up to {most:.0e}"
            self._keep_finite(f"context {name!r}", parts[-1], wanted)
        c = np.hstack(parts)
        return lambda rows: arms.blocks(c[rows], taken[rows, None])[:, 0]

    def _field(self, arms: Arms, name: str, declared: context_fields.Field) -> Array:
        """Return the columns of a field of the context, as `Arms.read` and `encode` would."""
        if declared[1] is None:
            values = numbers_in(name, self._column(name), arms.most(self.clip))
            cut = np.clip(values, -arms.limit, arms.limit)
            return np.where(np.isinf(values), values, cut)[:, None]
        width = len(context_fields.columns([declared]))

        def encode(value: object) -> list[float]:
            return context_fields.encode([declared], context_fields.read(name, [declared], [value]))

        return encoded(name, self._column(name), width, encode)

    def _rows_of_features(self) -> Callable[[NDArray[np.int64]], Array]:
        """Return what makes arms from their own features, or from matrices and the one played."""
        names = self.names
        if "arms" in self.columns and names.context is None:
            return self._played_arms()
        others = {*OWN, names.action, names.reward, names.probability, names.sigma, names.trials}
        columns = names.context
        if columns is None:
            columns = [name for name in self.columns if name not in others]
        if len(columns) != self.dim:
            raise ValueError(
                f"context is {shown(list(columns))}, {count_of(len(columns), 'column')}; pass "
                f"those of the {count_of(self.dim, 'feature')} of the arm that was played"
            )
        x = np.column_stack([numbers_in(name, self._column(name), LARGEST) for name in columns])
        for name, column in zip(columns, x.T, strict=True):
            self._keep_finite(f"feature {name!r}", column)
        return lambda rows: x[rows]

    def _played_arms(self) -> Callable[[NDArray[np.int64]], Array]:
        """Return what finds the arm that was played in the matrices on offer."""
        x = np.empty((self.counts.rows, self.dim))
        pairs = zip(self._column("arms"), self._column(self.names.action), strict=True)
        for i, (offer, k) in enumerate(pairs):
            arms = numbers("arms", offer)
            if arms.ndim != 2 or arms.shape[1] != self.dim or k not in range(len(arms)):
                raise ValueError(
                    f"arms at row {i} have shape {arms.shape}, and action is {shown(k)}; pass "
                    f"(K, {self.dim}) and the row that was played"
                )
            self.taken[i] = k
            x[i] = arms[self.taken[i]]
        return lambda rows: x[rows]
