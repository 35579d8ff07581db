"""Reading dsjson: a line of JSON per decision.

A line has the context ``c``, in it the actions on offer ``_multi``, and the chosen one by its place
from 1 on, with its cost and probability; ``a`` and ``p`` are the places and probabilities of all.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..agent.record.left_out import LeftOut
from ..bandits.arms import LARGEST
from ..storage import files

OTHERS = ("probability", "probabilities", "arms", "slot")


class _Decision(NamedTuple):
    context: dict[str, object]
    action: str
    reward: float
    probability: float
    probabilities: dict[str, float] | None
    dropped: float


class _Unusable(Exception):
    """A line holds no decision with its reward; caught where lines are read."""


def read_dsjson(path: str | os.PathLike[str], action: str | None = None) -> dict[str, Any]:
    """Return the decisions of a dsjson file as columns, as `Agent.log` does: reward = -cost.

    Features of the context are columns, called by their path: ``User.age`` is the feature age of
    the namespace User. One that a line lacks is 0 there, or the empty word. Lines without a reward
    or a chosen action are left out, counted by reason, with a warning.

    Parameters
    ----------
    path : path of a file, which may be compressed as .gz
    action : str, optional
        The path of the feature that is the name of an action, such as "i.id". By default the name
        is the ``_tag`` of the action, or else all its features.

    Returns
    -------
    dict
        Columns of the context, ``action``, ``reward``, ``probability``, and, where all lines have
        them, ``probabilities`` by action: a log for `off_policy_value` and `Agent.learn_table`.
    """
    decisions, left = [], LeftOut()
    for at, line in enumerate(_lines(Path(path)), start=1):
        if not line.strip():
            continue
        left.rows += 1
        try:
            decisions.append(_decision(line, action))
        except _Unusable as error:
            left.leave_out(str(error), [at])
    said = left.sentence("read", "line")
    if not decisions:
        raise ValueError(f"{path} has no decision with a reward: {said}")
    if len({each.dropped for each in decisions}) > 1:
        raise ValueError(
            f"{path} has decisions that were kept with different probabilities (pdrop); weights of "
            "rows are not supported, so read those of each pdrop from a file of their own"
        )
    if left.left_out:
        warnings.warn(said, stacklevel=2)
    log = _columns([each.context for each in decisions])
    log["action"] = [each.action for each in decisions]
    log["reward"] = np.array([each.reward for each in decisions])
    log["probability"] = np.array([each.probability for each in decisions])
    if all(each.probabilities is not None for each in decisions):
        log["probabilities"] = [each.probabilities for each in decisions]
    return log


def _lines(path: Path) -> Iterator[str]:
    files.require_regular(path)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as opened:
            yield from opened
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start})") from None
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} can't be read ({error})") from None


def _decision(line: str, named_by: str | None) -> _Decision:
    """Return what a line says, or raise `_Unusable`."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        raise _Unusable("the line is no JSON") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("c"), dict):
        raise _Unusable("the line has no context c")
    label = {key.lower(): value for key, value in parsed.items() if key.startswith("_label")}
    offered = parsed["c"].get("_multi")
    if "_slots" in parsed["c"] or "_outcomes" in parsed or "_label_ca" in label:
        raise _Unusable("the decision is of several slots, or of a number")
    if not isinstance(offered, list) or not offered:
        raise _Unusable("there is no list of actions _multi")
    cost, p = label.get("_label_cost"), label.get("_label_probability")
    if parsed.get("_skipLearn") is True or not _is_number(cost):
        raise _Unusable("there is no reward")
    if not _is_number(p) or not 0 < p <= 1:
        raise _Unusable("the probability is not above 0 and at most 1")
    place = label.get("_label_action")
    if type(place) is not int or not 1 <= place <= len(offered):
        raise _Unusable("the chosen action is none of those on offer")
    names = [_name(each, named_by, i) for i, each in enumerate(offered, start=1)]
    if len(set(names)) < len(names):
        raise _Unusable("two actions on offer have the same name")
    dropped = parsed.get("pdrop", 0.0)
    return _Decision(
        dict(_features(parsed["c"])), names[place - 1], 0.0 - cost, float(p),
        _probabilities(parsed.get("a"), parsed.get("p"), names),
        float(dropped) if _is_number(dropped) else 0.0,
    )  # fmt: skip


def _is_number(value: object) -> TypeGuard[float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST  # type: ignore[arg-type]


def _probabilities(places: object, p: object, names: list[str]) -> dict[str, float] | None:
    """Return the probability of each action on offer, None where the line has not all of them."""
    if not isinstance(places, list) or not isinstance(p, list) or len(places) != len(p):
        return None
    if sorted(map(str, places)) != sorted(map(str, range(1, len(names) + 1))):
        return None
    shares = [float(each) for each in p if _is_number(each)]
    if len(shares) < len(p):
        return None
    by_name = {names[int(place) - 1]: each for place, each in zip(places, shares, strict=True)}
    return {name: by_name[name] for name in names}


def _name(action: object, named_by: str | None, place: int) -> str:
    if not isinstance(action, dict):
        raise _Unusable("an action on offer is no object")
    features = dict(_features(action))
    if named_by is not None:
        if named_by not in features:
            raise _Unusable(f"an action on offer has no feature {named_by!r}")
        return str(features[named_by])
    if "_tag" in action:
        return str(action["_tag"])
    return ", ".join(f"{path}={value}" for path, value in features.items()) or str(place)


def _features(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield features with their paths; names that begin with _ are none, nor is null."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if isinstance(value, dict):
        pairs = [(key, part) for key, part in value.items() if not key.startswith("_")]
    elif isinstance(value, list):
        pairs = [(str(i), part) for i, part in enumerate(value)]
    else:
        if value is not None:
            yield path, value
        return
    for key, part in pairs:
        yield from _features(part, f"{path}.{key}" if path else key)


def _columns(rows: list[dict[str, object]]) -> dict[str, Any]:
    """Return features as columns of numbers, or of words where a value is none."""
    log: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        if name in ("action", "reward", *OTHERS):
            raise ValueError(f"a feature of the context is called {name!r}, as a column; rename it")
        values = [row.get(name) for row in rows]
        numbers = [float(each or 0) for each in values if each is None or _is_number(each)]
        words = ["" if each is None else str(each) for each in values]
        log[name] = numbers if len(numbers) == len(values) else words
    return log
