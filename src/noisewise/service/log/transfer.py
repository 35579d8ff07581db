"""Past decisions into a loop's log, and the log out of it, as tables."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ...agent.actions.context_fields import word
from ...logs import read_dsjson
from ...storage import files
from ...support.supported import install
from ..loops import Loop, dumped
from .events import DecisionRow, ExpireRow, RewardRow
from .store import Connection
from .writer import INSERTED, Row

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = 5000


def export(connection: Connection, loop: Loop, path: Path) -> int:
    """Write decisions that have a reward as a table; return how many there are.

    A row for each slot: the context, action, reward, its number of trials or standard deviation,
    probability of that action in that slot, probabilities of all where there is one slot.
    """
    pandas = _pandas()
    fields = [name for name, _ in loop.arms.context or ()]
    rows, decided = list[dict[str, object]](), dict[str, tuple[float, DecisionRow]]()
    last = 0
    while page := connection.rows(
        "SELECT seq, event_id, kind, at, body FROM events WHERE loop = ? AND seq > ? "
        "AND kind IN ('decide', 'reward', 'expire') ORDER BY seq LIMIT ?",
        loop.id, last, PAGE,
    ):  # fmt: skip
        for seq, event_id, kind, at, body in page:
            last = seq
            if kind == "decide":
                decided[event_id] = at, json.loads(body)
            elif event_id in decided:
                rows += [
                    _row(fields, event_id, *decided[event_id], reward)
                    for reward in _learnt(kind, body)
                ]
    frame = pandas.DataFrame(rows)
    if path.suffix.lower() in (".parquet", ".pq"):
        files.replace(path, lambda part: frame.to_parquet(part, index=False))
    elif path.suffix.lower() == ".csv":
        files.replace(path, lambda part: frame.to_csv(part, index=False))
    else:
        raise ValueError(f"file is {str(path)!r}; pass a name that ends in .csv or .parquet")
    return len(rows)


def _learnt(kind: str, body: str) -> list[RewardRow]:
    """Return the rewards of a row of the log that are learnt."""
    if kind == "reward":
        given: RewardRow = json.loads(body)
        return [given] if given["learn"] else []
    over: ExpireRow = json.loads(body)
    return [
        {"value": value, "slot": slot, "late": False, "learn": True}
        for slot, value in enumerate(over["rewards"]) if value is not None
    ]  # fmt: skip


def _row(
    fields: list[str], event_id: str, at: float, held: DecisionRow, reward: RewardRow
) -> dict[str, object]:
    """Return a row of the table that is exported."""
    slot, ranking = reward["slot"], held["ranking"]
    row: dict[str, object] = {
        **dict(zip(fields, held["context"], strict=True)),
        "event_id": event_id, "at": at, "group": held["group"], "slot": slot,
        "action": held["chosen"][slot], "reward": reward["value"],
        "trials": reward.get("trials"), "sigma": reward.get("sigma"),
        "probability": ranking[slot][4],
    }  # fmt: skip
    if len(held["chosen"]) == 1:
        row["probabilities"] = dumped({each[0]: each[4] for each in ranking})
    return row


def import_(
    connection: Connection, loop: Loop, path: Path, action: str, reward: str, trials: str | None
) -> int:
    """Insert past decisions with their rewards; return how many.

    All are read before the first is written, and written bit by bit, so that a service may write
    meanwhile. After an interrupt, import the same file again: none counts twice.
    """
    frame = _read(path)
    wanted = [action, reward, *([trials] if trials else [])]
    if missing := [name for name in wanted if name not in frame.columns]:
        raise ValueError(f"{path} has no column {missing[0]!r}; it has {list(frame.columns)}")
    arms, bounded = loop.arms, loop.settings.rewards != "continuous"
    mark, at = sha256(path.read_bytes()).hexdigest()[:16], time.time()
    new = []
    for i, row in enumerate(frame.to_dict("records")):
        try:
            values, name = arms.read(row, clip=True), word(action, row[action])
            arms.positions([name])
            value = float(row[reward])
            if not abs(value) <= (1 if bounded else 1e100) or (bounded and value < 0):
                raise ValueError(f"{reward} is {value:g}")
            n = float(row[trials]) if trials else None
            if n is not None and not 0 < n < 1e100:
                raise ValueError(f"{trials} is {n:g}")
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, row {i + 1}: {error}; nothing was imported") from None
        event_id = f"import-{mark}-{i}"
        p = row.get("probability", 1.0)
        decided: DecisionRow = {
            "context": list(values), "chosen": [name], "ranking": [(name, None, None, None, p)],
            "group": "import", "version": 0, "top": None, "subject": None, "asked": mark,
        }  # fmt: skip
        given: RewardRow = {"value": value, "slot": 0, "late": False, "learn": True}
        if n is not None:
            given["trials"] = n
        new += [
            Row(loop.id, event_id, "decide", "", at, dumped(decided)),
            Row(loop.id, event_id, "reward", "", at, dumped(given)),
        ]
    for start in range(0, len(new), PAGE):
        with connection.transaction():
            connection.many(f"{INSERTED} ON CONFLICT DO NOTHING", new[start : start + PAGE])
    return len(new) // 2


def _read(path: Path) -> DataFrame:
    pandas = _pandas()
    try:
        if path.suffixes[-2:] == [".json", ".gz"] or path.suffix in (".json", ".dsjson"):
            return pandas.DataFrame(read_dsjson(path))
        if path.suffix.lower() == ".csv":
            return pandas.read_csv(path)
        return pandas.read_parquet(path)
    except OSError as error:
        raise ValueError(f"{path} can't be read ({error.strerror or error})") from None


def _pandas() -> ModuleType:
    try:
        return import_module("pandas")
    except ModuleNotFoundError:
        raise ValueError(f"tables need pandas; install it with: {install('studies')}") from None
