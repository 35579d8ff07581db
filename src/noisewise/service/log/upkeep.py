"""What the owner of a loop does to its log in time: waits that end, snapshots, rows that go.

Each function runs in a transaction of the writer, and only while the process owns the loop.
"""

from __future__ import annotations

import json
import time
from itertools import takewhile

from ..loops import Loop, Settings, dumped
from .events import DecisionRow, RewardRow
from .owners import Owner
from .store import Connection
from .writer import INSERTED

EXPIRED = 500  # decisions at once
KEPT = 3  # snapshots beside the oldest


def expire(connection: Connection, owner: Owner, loop: Loop) -> bool:
    """Let the wait for rewards end where it is over; return whether there may be more of them.

    What was not learnt is now, or never will be.
    """
    owner.check(connection, loop.id)
    ((done,),) = connection.rows("SELECT expired FROM loops WHERE id = ?", loop.id)
    lock = "" if connection.store.embedded else " FOR UPDATE"
    rows = connection.rows(
        "SELECT seq, event_id, at, body FROM events WHERE loop = ? AND kind = 'decide' "
        f"AND seq > ? ORDER BY seq LIMIT {EXPIRED}{lock}",
        loop.id, done,
    )  # fmt: skip
    since = connection.now() - loop.settings.reward_wait
    due = list(takewhile(lambda row: row[2] < since, rows))
    if not due:
        return False
    places, given = ",".join("?" * len(due)), dict[str, list[RewardRow]]()
    for event_id, body in connection.rows(
        "SELECT event_id, body FROM events WHERE loop = ? AND kind = 'reward' "
        f"AND event_id IN ({places})",
        loop.id, *(row[1] for row in due),
    ):  # fmt: skip
        given.setdefault(event_id, []).append(json.loads(body))
    new = []
    for _, event_id, _, text in due:
        taken: DecisionRow = json.loads(text)
        rewards = final(len(taken["chosen"]), given.get(event_id, []), loop.settings)
        if rewards is not None:
            row = dumped({"rewards": rewards})
            new.append((loop.id, event_id, "expire", "", time.time(), row))
    connection.many(INSERTED, new)
    connection.change("UPDATE loops SET expired = ? WHERE id = ?", due[-1][0], loop.id)
    if connection.store.embedded:
        owner.number(connection, loop.id)
    return len(due) == EXPIRED


def final(slots: int, given: list[RewardRow], settings: Settings) -> list[float | None] | None:
    """Return what is learnt for each slot once the wait is over, None where all was learnt before.

    >>> s = Settings(actions=["a"], rewards="continuous", aggregate="sum")
    >>> final(1, [{"slot": 0, "value": each, "late": False} for each in (2.0, 1.0)], s)
    [3.0]
    """
    sums: dict[int, float] = {}
    learnt: set[int] = set()
    for each in given:
        if each["late"]:
            continue
        if settings.aggregate == "sum":
            sums[each["slot"]] = sums.get(each["slot"], 0.0) + each["value"]
        elif each["learn"]:
            learnt.add(each["slot"])
    if len(learnt) == slots:
        return None
    usual = settings.default_reward
    return [None if slot in learnt else sums.get(slot, usual) for slot in range(slots)]


def keep(
    connection: Connection, owner: Owner, loop: Loop, version: int, digest: str, state: bytes
) -> None:
    """Keep a snapshot, and the newest few of the others."""
    owner.check(connection, loop.id)
    connection.change(
        "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?) ON CONFLICT (loop, seq) DO NOTHING",
        loop.id, version, time.time(), digest, state,
    )  # fmt: skip
    kept = connection.rows("SELECT seq, at FROM snapshots WHERE loop = ? ORDER BY seq", loop.id)
    gone = superfluous(kept, loop.settings.retain_days)
    connection.many(
        "DELETE FROM snapshots WHERE loop = ? AND seq = ?", [(loop.id, seq) for seq in gone]
    )


def superfluous(kept: list[tuple[int, float]], days: float | None) -> list[int]:
    """Return which snapshots can go: all but the oldest, the newest few, and eight per retention.

    >>> superfluous([(row, 3600.0 * row) for row in range(10)], None)
    [1, 2, 3, 4, 5, 6]
    >>> superfluous([(row, 3600.0 * row) for row in range(10)], 1.0)
    [1, 2, 4, 5]
    """
    gone, last = [], kept[0][1]
    for seq, at in kept[1:-KEPT]:
        if days is not None and at - last >= days * 86400 / 8:
            last = at
        else:
            gone.append(seq)
    return gone


def retain(connection: Connection, owner: Owner, loop: Loop) -> None:
    """Delete the rows that an old snapshot stands for, the loop's new base.

    No rollback after the base leads to a row before it. Decisions stay whose rewards come later.
    """
    owner.check(connection, loop.id)
    since = connection.now() - 86400 * (loop.settings.retain_days or 1e6)
    back = [
        (seq, json.loads(body)["version"])
        for seq, body in connection.rows(
            "SELECT seq, body FROM events WHERE loop = ? AND kind = 'rollback'", loop.id
        )
    ]
    for (base,) in connection.rows(
        "SELECT seq FROM snapshots WHERE loop = ? AND at < ? ORDER BY seq DESC", loop.id, since
    ):
        if all(seq is not None and (seq <= base or version >= base) for seq, version in back):
            connection.change(
                "DELETE FROM events WHERE loop = ? AND seq <= ? AND NOT (kind = 'decide' AND EXISTS"
                " (SELECT 1 FROM events later WHERE later.loop = events.loop AND later.event_id = "
                "events.event_id AND (later.seq > ? OR later.seq IS NULL)))",
                loop.id, base, base,
            )  # fmt: skip
            connection.change("DELETE FROM snapshots WHERE loop = ? AND seq < ?", loop.id, base)
            connection.change("UPDATE loops SET base = ? WHERE id = ?", base, loop.id)
            return
