"""A log of decisions, read from columns and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agent.actions import context_fields
from ...agent.table_columns import columns_of, read_back
from ...inputs import numbers, shown
from ...protocols import Array
from ...support.printing import count_of

MOST_WORDS = 64  # of a column of the context; more are hashed to as many columns
OTHERS = ("probabilities", "arms")
FROM_0 = "(counted from 0)"
UNRECORDED = (
    "; where probabilities were not recorded, pass estimate_probability=True to estimate them"
)
CLOSE = 0.01  # share by which probabilities may differ, having been rounded


@runtime_checkable
class Recorded(Protocol):
    """An agent that keeps its decisions."""

    def log(self) -> Mapping[str, object]:
        """Return its decisions as columns."""


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions in order of time: ``action`` (n,) counts in ``actions``.

    ``probability`` is that of the action taken, ``probabilities`` (n, K) those of all, where known.
    ``context`` holds the columns of the context; ``arms`` a matrix (K, d) for each decision.
    """

    actions: tuple[str, ...]
    action: NDArray[np.intp]
    reward: Array
    probability: Array
    probabilities: Array | None
    context: dict[str, list[object]]
    arms: list[Array] | None

    def __len__(self) -> int:
        return len(self.reward)

    def since(self, start: int) -> "DecisionTable":
        """Return the decisions from one on."""
        return replace(
            self, action=self.action[start:], reward=self.reward[start:],
            probability=self.probability[start:],
            probabilities=None if self.probabilities is None else self.probabilities[start:],
            context={name: column[start:] for name, column in self.context.items()},
            arms=None if self.arms is None else self.arms[start:],
        )  # fmt: skip

    def rows(self) -> list[dict[str, object]]:
        """Return the context of each decision as a dictionary."""
        names, columns = list(self.context), list(self.context.values())
        if not columns:
            return [{} for _ in range(len(self))]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def features(self) -> Array:
        """Return the context as numbers, (n, p): words have a column each, many are hashed."""
        parts = [np.empty((len(self), 0))]
        for name, column in self.context.items():
            where = f"context {name!r}"
            if not any(isinstance(value, str) for value in column):
                parts.append(numbers(where, column)[:, None])
                continue
            words = [context_fields.word(where, value) for value in column]
            seen = tuple(sorted(set(words)))
            kind: context_fields.Kind = seen if len(seen) <= MOST_WORDS else MOST_WORDS
            codes = {each: context_fields.encode([(name, kind)], [each]) for each in seen}
            parts.append(np.array([codes[each] for each in words]))
        return np.hstack(parts)


def read(
    log: object,
    *,
    action: str,
    reward: str,
    probability: str,
    context: Sequence[str] | None,
    actions: Sequence[object] | None,
    unrecorded: bool = False,
) -> DecisionTable:
    """Read a data frame, a dictionary of columns or an agent's record.

    Where probabilities are ``unrecorded`` there is no column of them, and they are NaN.
    """
    columns = columns_of("log", log.log() if isinstance(log, Recorded) else log)
    wanted = [action, reward, *(context or ()), *([] if unrecorded else [probability])]
    missing = [name for name in wanted if name not in columns]
    if missing:
        remedy = UNRECORDED if missing == [probability] else ""
        raise ValueError(f"log has no column {missing[0]!r}; it has {shown(list(columns))}{remedy}")
    recorded = {probability, "probabilities"} & {*columns}
    if unrecorded and recorded:
        raise ValueError(
            f"estimate_probability is True, but log has a column {min(recorded)!r}, which is "
            "better; leave estimate_probability out, or drop the column"
        )
    y = _numbers(reward, columns[reward])
    n = len(y)
    if n < 2:
        raise ValueError(f"log has {count_of(n, 'decision')}; pass at least 2")
    p = np.full(n, np.nan) if unrecorded else _numbers(probability, columns[probability])
    wrong = (p <= 0) | (p > 1)
    for name in columns:
        if name in (*wanted, *OTHERS) and len(columns[name]) != n:
            raise ValueError(f"column {name!r} has {len(columns[name])} rows, others {n}")
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"{probability} is {p[at]:g} at row {at} {FROM_0}; pass the probability with which the "
            "action was taken, above 0 and at most 1"
        )
    taken = [
        context_fields.word(f"{action} at row {i} {FROM_0}", a)
        for i, a in enumerate(columns[action])
    ]
    all_p = read_back(columns.get("probabilities"))
    by_action = [each for each in (() if all_p is None else all_p) if isinstance(each, Mapping)]
    by_name = all_p is not None and len(by_action) == len(all_p)
    if actions is not None:
        known = tuple(dict.fromkeys(context_fields.word("actions", each) for each in actions))
    else:
        named = (str(name) for each in by_action for name in each) if by_name else ()
        known = _order([*taken, *named])
    unknown = set(taken) - set(known)
    if unknown:
        raise ValueError(f"actions is {shown(actions)}, without {shown(min(unknown))} of the log")
    others = [name for name in columns if name not in (action, reward, probability, *OTHERS)]
    kept = {name: _listed(columns[name]) for name in (others if context is None else context)}
    place = {name: i for i, name in enumerate(known)}
    table = DecisionTable(
        known, np.array([place[each] for each in taken]), y, p, None, kept, columns.get("arms")
    )
    if all_p is None:
        return table
    in_order = [[each.get(name, 0.0) for name in known] for each in by_action]
    whole = numbers("probabilities", in_order if by_name else all_p)
    if whole.shape != (n, len(known)):
        raise ValueError(
            f"probabilities has shape {whole.shape}; pass ({n}, {len(known)}), in the order of "
            f"{shown(list(known))}, a dictionary per decision, or leave the column out"
        )
    _agree(whole, table, probability, by_name and actions is not None)
    return replace(table, probabilities=whole)


def _agree(whole: Array, table: DecisionTable, probability: str, some: bool) -> None:
    """Refuse probabilities of all actions that contradict themselves or that of the one taken.

    Where only ``some`` of the actions are kept, they may sum to less than 1.
    """
    sums, at = whole.sum(axis=1), np.arange(len(table))
    own = whole[at, table.action]
    wrong = (whole < 0).any(axis=1) | (sums > 1 + CLOSE) | ((sums < 1 - CLOSE) & (not some))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"probabilities at row {i} {FROM_0} are {shown(whole[i].tolist())}; pass numbers of at "
            "least 0 that sum to 1, or leave the column out"
        )
    wrong = np.abs(own - table.probability) > CLOSE * table.probability
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"{probability} is {table.probability[i]:g} at row {i} {FROM_0}, but probabilities "
            f"has {own[i]:g} for the action {shown(table.actions[table.action[i]])} taken there; "
            "correct one of them, or leave probabilities out"
        )


def _numbers(name: str, column: ArrayLike) -> Array:
    found = numbers(f"column {name!r}", column)
    if found.ndim != 1:
        raise ValueError(f"column {name!r} has shape {found.shape}; pass one number per decision")
    return found


def _listed(column: Iterable[object]) -> list[object]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _order(names: list[str]) -> tuple[str, ...]:
    """Return the different names, numbers by size.

    >>> _order(["10", "9", "9"])
    ('9', '10')
    """
    return tuple(sorted(set(names), key=lambda each: (not each.isdigit(), len(each), each)
                        if each.isdigit() else (True, 0, each)))  # fmt: skip
