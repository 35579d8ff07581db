"""Writing dsjson: a line of JSON per decision, as vowpalwabbit learns from it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ..agent.actions.context_fields import word
from ..agent.table_columns import (
    Column,
    columns_of,
    is_missing,
    number_of,
    numbers_in,
    read_back,
)
from ..bandits.arms import LARGEST
from ..inputs import shown
from ..storage import files
from .dsjson_reading import OTHERS


def write_dsjson(path: str | os.PathLike[str], log: object) -> Path:
    """Write a log to a dsjson file, for ``vw --dsjson --cb_explore_adf``; return its path.

    ``log`` has the columns of `Agent.log`: ``action``, ``reward``, ``probability``, maybe
    ``probabilities``, and those of the context; a data frame or a dictionary. Actions have their
    name as ``_tag`` and as the feature ``name`` of the namespace action. On offer are those that
    ``probabilities`` name, or else all.
    """
    columns = columns_of("log", log)
    if "arms" in columns:
        raise ValueError("log has matrices of arms, and dsjson has actions by name; pass another")
    lines = list(_written(columns))

    def fill(part: Path) -> None:
        with part.open("w", encoding="utf-8") as opened:
            opened.writelines(f"{line}\n" for line in lines)

    return files.replace(path, fill)


def _written(columns: dict[str, Column]) -> Iterator[str]:
    """Yield the lines of a log."""
    for name in ("action", "reward", "probability"):
        if name not in columns:
            raise ValueError(f"log has no column {name!r}; it has {shown(list(columns))}")
    action = [word("action", each) for each in columns["action"]]
    r, p = (numbers_in(name, columns[name], LARGEST) for name in ("reward", "probability"))
    wrong = ~(np.isfinite(r) & (p > 0) & (p <= 1))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"reward is {r[i]:g} and probability {p[i]:g} at row {i} (counted from 0); pass finite "
            "rewards, and probabilities above 0"
        )
    for name in columns:
        if len(columns[name]) != len(r):
            raise ValueError(f"column {name!r} has {len(columns[name])} rows, reward {len(r)}")
    fields = [name for name in columns if name not in ("action", "reward", *OTHERS)]
    if hidden := [name for name in fields if name.startswith("_")]:
        raise ValueError(f"log has a column {hidden[0]!r}, and dsjson ignores such; rename it")
    whole = read_back(columns.get("probabilities"))
    every = sorted({*action})
    for i, (chosen, shares) in enumerate(
        zip(action, [None] * len(r) if whole is None else whole, strict=True)
    ):
        p_of = _by_action(shares)
        offered = list(p_of) or every
        if chosen not in offered:
            raise ValueError(f"probabilities at row {i} (counted from 0) lack {chosen!r}")
        values = {name: _plain(name, columns[name][i]) for name in fields}
        context = {name: value for name, value in values.items() if value is not None}
        line = _line(context, offered, offered.index(chosen), p_of)
        line |= {"_label_cost": 0.0 - float(r[i]), "_label_probability": float(p[i])}
        yield json.dumps({**line, "EventId": str(i)}, ensure_ascii=False, allow_nan=False)


def _line(
    context: Mapping[str, object], offered: list[str], place: int, p_of: dict[str, float]
) -> dict[str, object]:
    """Return a decision, the chosen action first among those with probabilities."""
    multi = [{"_tag": name, "action": {"name": name}} for name in offered]
    line: dict[str, object] = {"_label_cost": 0.0, "_label_probability": 1.0}
    line |= {"_label_Action": place + 1, "_labelIndex": place, "Version": "1", "EventId": ""}
    line["c"] = {**context, "_multi": multi}
    if p_of:
        ranked = [place, *(k for k in range(len(offered)) if k != place)]
        line["a"] = [k + 1 for k in ranked]
        line["p"] = [p_of[offered[k]] for k in ranked]
    return line


def _by_action(shares: object) -> dict[str, float]:
    """Return probabilities by action, where there are any."""
    pairs = shares.items() if isinstance(shares, Mapping) else ()
    return {str(name): float(p) for name, p in pairs if p is not None}


def _plain(name: str, value: object) -> str | bool | float | None:
    """Return a value of a context as JSON has it, None where it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, str | bool):
        return value
    number = number_of(value)
    if abs(number) > LARGEST:
        raise ValueError(f"column {name!r} holds {shown(value)}; pass numbers and words")
    return number
