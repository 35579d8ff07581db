"""Arms: the features of every action in a context, as a matrix whose columns have names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ...bandits.arms import LONGEST
from ...inputs import integer, one_of, shown
from ...protocols import Array
from . import context_fields
from .context_fields import Field, Value

INTERACTIONS = ("full", "shared")


class Layout(TypedDict, total=False):
    """How rows end, as parameters of `SelfTunedUCB`."""

    blocks: int
    context: int
    shared: bool


@dataclass(frozen=True)
class Arms:
    r"""Turns a context into arms: a row of features for each action, a name for each column.

    With c the columns of the context and a those of the action's own features, a row holds

    - "full": a, and for each action one block, (1, c) in that of the row's action and 0 in the
      others, so that every action has coefficients of its own;
    - "shared": for each :math:`a_i` one block, :math:`a_i (1, c)`, so that actions learn from each
      other;
    - None: a alone; where actions have no features, 1 in the action's own column (A/B/n tests).

    Columns must not move while an agent runs. An action that is not available keeps its block: pass
    the available ones as ``actions`` when calling. A new action takes one of the ``reserve`` blocks
    (`with_actions`), or none where actions are described by their features alone.

    Parameters
    ----------
    actions : list of names, or dictionary of name to features
        Features are numbers by position, or numbers and words by name, the same for all actions.
    interactions : {"full", "shared", None}
    context : optional
        The fields of a context. A dictionary gives the kind of each: ``float``; a list of words
        (one column each; any other word is refused); or, for words not known beforehand, the number
        of columns into which they are hashed (``str`` means 16). A list of names, or their number,
        if all are numbers. A data frame declares its columns, with the words they hold. By default
        each call takes the fields of the context it is given, with words hashed; an agent needs
        them declared.
    reserve : int >= 0
        How many blocks are kept for actions to come.

    Examples
    --------
    >>> arms = Arms(["ad", "mail"], context={"age": float, "country": ["de", "fr"]})
    >>> arms({"age": 31, "country": "fr"})
    array([[ 1., 31.,  0.,  1.,  0.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.,  1., 31.,  0.,  1.]])
    >>> arms.names[:4]
    ('ad', 'ad:age', 'ad:country=de', 'ad:country=fr')
    >>> arms({"age": 31, "country": "fr"}, actions=["mail"]).shape
    (1, 8)
    >>> Arms({"red": [1.0], "blue": [3.0]}, "shared", context=["age"])({"age": 10})
    array([[ 1., 10.],
           [ 3., 30.]])
    """

    actions: tuple[str, ...]
    interactions: str | None = "full"
    context: tuple[Field, ...] | None = None
    reserve: int = 0
    fields: tuple[Field, ...] = ()
    features: tuple[tuple[Value, ...], ...] = ()

    def __init__(
        self,
        actions: Iterable[object] | Mapping[str, object],
        interactions: str | None = "full",
        context: object = None,
        reserve: int = 0,
        fields: tuple[Field, ...] | None = None,
        features: tuple[tuple[Value, ...], ...] | None = None,
    ) -> None:
        for name, rows in (("fields", fields), ("features", features)):
            if not isinstance(rows, tuple | list | None):
                raise ValueError(f"{name} is {shown(rows)}; pass a tuple, or leave it out")
        named, described = _actions(actions)
        if described and fields is None:
            fields = _fields_of(described)
        if features is None:
            features = tuple(
                context_fields.read("action", fields or (), each) for each in described
            )
        values: dict[str, object] = {
            "actions": named,
            "interactions": interactions,
            "context": None if context is None else context_fields.declared(context),
            "reserve": integer("reserve", reserve, least=0, most=context_fields.MOST_COLUMNS),
            "fields": () if fields is None else context_fields.declared(tuple(fields)),
            "features": features,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if interactions is not None:
            one_of("interactions", interactions, INTERACTIONS)
        if len(features) != (len(named) if self.fields else 0):
            raise ValueError(f"features has {len(features)} rows; pass one per action")
        for row in features:
            context_fields.read("features", self.fields, row)
        if interactions == "shared" and not self.fields:
            raise ValueError(
                "interactions is 'shared', but actions have no features; pass a dictionary of "
                "action to features, or interactions='full'"
            )
        if reserve and not self._blocks:
            raise ValueError(
                f"reserve is {reserve}, but no action has a block of its own; leave reserve out"
            )

    @property
    def layout(self) -> Layout:
        """How rows end: the number of blocks a (1, c), of columns of c, and whether a are features.

        Empty where no context enters.
        """
        columns = context_fields.columns(self._declared) if self.interactions else []
        if not columns:
            return {}
        shared = self.interactions == "shared"
        blocks = self._own.shape[1] if shared else len(self._owners)
        return {"blocks": blocks, "context": len(columns), "shared": shared}

    @property
    def _blocks(self) -> bool:
        return self.interactions == "full" or (self.interactions is None and not self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each column."""
        return self._named(context_fields.columns(self._declared if self.interactions else ()))

    def labels(self, values: Sequence[Value]) -> tuple[str, ...]:
        """Return the name of each column in a context: those of a word are called by the word."""
        return self._named(
            context_fields.labels(self._declared if self.interactions else (), values)
        )

    def _named(self, context: Sequence[str]) -> tuple[str, ...]:
        own = context_fields.columns(self.fields)
        if self.interactions is None:
            return (*own, *(() if own else self._owners))
        heads = own if self.interactions == "shared" else self._owners
        blocks = (f"{head}:{c}" if c else head for head in heads for c in ("", *context))
        return (*(() if heads is own else own), *blocks)

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def _owners(self) -> tuple[str, ...]:
        return (*self.actions, *(f"(reserve {i + 1})" for i in range(self.reserve)))

    @property
    def _declared(self) -> tuple[Field, ...]:
        if self.context is None:
            raise ValueError(
                "the context was not declared; pass context= to Arms, the kind of each field (or "
                "[] if there is none), or interactions=None"
            )
        return self.context

    @cached_property
    def _own(self) -> Array:
        """The columns of the actions' own features, (K, m)."""
        rows = [context_fields.encode(self.fields, row) for row in self.features]
        return np.array(rows or [[]] * len(self.actions), dtype=np.float64)

    def numbers_of(self, columns: Array) -> dict[str, float]:
        """Return those columns of a context, by name, that hold numbers."""
        numeric = {name for name, kind in self.context or () if kind is None}
        named = zip(context_fields.columns(self._declared), columns.tolist(), strict=True)
        return {name: value for name, value in named if name in numeric}

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without what was computed from them."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    def __setstate__(self, parts: dict[str, object]) -> None:
        vars(self).update(parts)

    def __call__(self, context: object = None, actions: Sequence[str] | None = None) -> Array:
        """Return the arms of a context, (K, dim), one for each action or for those given."""
        arms = self
        if self.context is None and self.interactions is not None:
            fields = () if context is None else context_fields.of_example(context)
            arms = replace(self, context=fields)
        return arms.matrix(arms.read(context), actions)

    def read(self, context: object, clip: bool = False) -> tuple[Value, ...]:
        """Return the values of the declared fields, checked; others are left out.

        Numbers too large for most policies are refused, or, with ``clip``, cut.
        """
        if self.interactions is None or not self._declared:
            return ()
        row = () if context is None else context
        values = context_fields.read("context", self._declared, row, self.most(clip))
        return tuple(
            max(-self.limit, min(value, self.limit)) if isinstance(value, float) else value
            for value in values
        )

    def most(self, clip: bool) -> float:
        """Return the largest number of a context that is not refused."""
        return math.inf if clip else min(context_fields.LARGEST, self.limit)

    @cached_property
    def limit(self) -> float:
        """The largest number whose products with features of actions can be computed with."""
        own = np.abs(self._own).max(initial=1.0) if self.interactions == "shared" else 1.0
        return float(LONGEST / (10 * own * math.sqrt(self.dim)))

    def matrix(self, values: Sequence[Value], actions: Sequence[str] | None = None) -> Array:
        """Return the arms for the values of a context that was read."""
        return self.matrices([values], actions)[0]

    def matrices(
        self, values: Sequence[Sequence[Value]], actions: Sequence[str] | None = None
    ) -> Array:
        """Return the arms for the values of n contexts, (n, K, dim), n at least 1."""
        at = np.array([self.positions(actions)])
        if self.interactions is None:
            return self.blocks(np.empty((len(values), 0)), at)
        rows = [(1.0, *context_fields.encode(self._declared, each)) for each in values]
        return self.blocks(np.array(rows), at)

    def blocks(self, c: Array, at: NDArray[np.int64]) -> Array:
        """Return arms, (n, K, dim), of rows (1, c) of n contexts, and actions at (n or 1, K)."""
        own, n, K = self._own[at], len(c), at.shape[1]
        if self.interactions is None:
            rows = own if self.fields else np.eye(len(self._owners))[at]
            return rows if len(rows) == n else np.repeat(rows, n, axis=0)
        if self.interactions == "shared":
            return (own[..., None] * c[:, None, None, :]).reshape(n, K, -1)
        rest = np.zeros((n, K, len(self._owners), c.shape[1]))
        rest[np.arange(n)[:, None], np.arange(K), at] = c[:, None]
        m, more = own.shape[2], rest.shape[2] * rest.shape[3]
        x = np.empty((n, K, m + more))
        x[:, :, :m], x[:, :, m:] = own, rest.reshape(n, K, more)
        return x

    def positions(self, actions: Sequence[str] | None = None) -> list[int]:
        """Return where actions stand among all."""
        if actions is None:
            return list(range(len(self.actions)))
        names = [actions] if isinstance(actions, str) else [str(each) for each in actions]
        unknown = [each for each in names if each not in self.actions]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(
                f"actions is {shown(actions)}; pass different ones of {shown(list(self.actions))}, "
                "and add new ones by with_actions"
            )
        return [self.actions.index(each) for each in names]

    def with_actions(self, actions: Iterable[object] | Mapping[str, object]) -> Arms:
        """Return arms with new actions, whose columns stay where they are.

        >>> Arms(["a"], context=[], reserve=2).with_actions(["b"])().tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        """
        named, described = _actions(actions)
        taken = len(named) if self._blocks else 0
        if taken > self.reserve:
            raise ValueError(
                f"actions is {shown(list(named))}, and {self.reserve} blocks are reserved; pass a "
                "larger reserve before the agent starts, or describe actions by features"
            )
        if bool(described) != bool(self.fields):
            has = "have" if self.fields else "have no"
            raise ValueError(f"actions is {shown(actions)}, but actions so far {has} features")
        rows = tuple(context_fields.read("action", self.fields, each) for each in described)
        return replace(
            self, actions=(*self.actions, *named), reserve=self.reserve - taken,
            features=(*self.features, *rows),
        )  # fmt: skip


def _actions(
    actions: Iterable[object] | Mapping[str, object],
) -> tuple[tuple[str, ...], list[object]]:
    """Return the names of actions, and what each is described by."""
    if isinstance(actions, str | bytes) or not isinstance(actions, Iterable):
        raise ValueError(f"actions is {shown(actions)}; pass a list of names or a dictionary")
    named = tuple(context_fields.word("action", each) for each in actions)
    if not named or len(set(named)) < len(named):
        raise ValueError(f"actions is {shown(actions)}; pass at least one, all different")
    return named, list(actions.values()) if isinstance(actions, Mapping) else []


def _fields_of(described: list[object]) -> tuple[Field, ...]:
    """Return the fields of actions: words have a column each."""
    first = described[0]
    if not context_fields.is_keyed(first):
        return tuple((f"a{i}", None) for i in range(len(np.atleast_1d(np.asarray(first)))))
    rows = [each for each in described if context_fields.is_keyed(each)]
    fields: list[Field] = []
    for name in first.keys():  # noqa: SIM118
        values = [each[name] for each in rows if name in each.keys()]  # noqa: SIM118
        is_word = any(isinstance(value, str) for value in values)
        words = dict.fromkeys(context_fields.word(str(name), value) for value in values if is_word)
        fields.append((str(name), tuple(words) if is_word else None))
    return tuple(fields)
