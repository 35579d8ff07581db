"""Who numbers the rows of a loop: one process, until another takes over after its deadline."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable

from .store import Connection, Store, Unavailable

LASTS = 10.0  # seconds that a process owns a loop without renewing
RENEWED = 3.0  # seconds after which it renews
TAKEN = (
    "INSERT INTO owners (loop, process, fence, until) VALUES (?, ?, 1, ?) "
    "ON CONFLICT (loop) DO UPDATE SET process = excluded.process, fence = owners.fence + 1, "
    "until = excluded.until WHERE owners.until < ?"
)


class Fenced(Unavailable):
    """Another process owns the loop now."""


class Owner:
    """What this process owns: the fence of each loop, which grows with every new owner."""

    def __init__(self, store: Store) -> None:
        self.store, self.fences = store, dict[int, int]()
        self.process = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    def renew(self, connection: Connection, loops: Iterable[int]) -> None:
        """Keep the loops that this process owns, and take those that nobody owns any more.

        An embedded database has one process, which holds a lock on its file.
        """
        now = connection.now()
        for loop in loops:
            if loop in self.fences:
                if not connection.change(
                    "UPDATE owners SET until = ? WHERE loop = ? AND process = ? AND fence = ?",
                    now + LASTS, loop, self.process, self.fences[loop],
                ):  # fmt: skip
                    del self.fences[loop]
                continue
            free = now + 2 * LASTS if self.store.embedded else now
            if connection.change(TAKEN, loop, self.process, now + LASTS, free):
                ((fence,),) = connection.rows("SELECT fence FROM owners WHERE loop = ?", loop)
                self.fences[loop] = fence

    def check(self, connection: Connection, loop: int) -> None:
        """Raise unless this process owns the loop until the end of this transaction."""
        if not connection.change(
            "UPDATE owners SET process = process WHERE loop = ? AND process = ? AND fence = ?",
            loop, self.process, self.fences.get(loop, 0),
        ):  # fmt: skip
            self.fences.pop(loop, None)
            raise Fenced("another process owns this loop")

    def number(self, connection: Connection, loop: int) -> int:
        """Number the rows that are there, in the order in which they were inserted."""
        new = connection.rows(
            "SELECT id FROM events WHERE loop = ? AND seq IS NULL ORDER BY id", loop
        )
        if new:
            self.check(connection, loop)
            ((seq,),) = connection.rows("SELECT seq FROM loops WHERE id = ?", loop)
            numbered = [(seq + i, row) for i, (row,) in enumerate(new, 1)]
            connection.many("UPDATE events SET seq = ? WHERE id = ?", numbered)
            connection.change("UPDATE loops SET seq = ? WHERE id = ?", seq + len(new), loop)
        return len(new)

    def release(self, connection: Connection) -> None:
        """Own nothing any more, so that another process need not wait."""
        for loop, fence in self.fences.items():
            connection.change(
                "UPDATE owners SET until = 0 WHERE loop = ? AND process = ? AND fence = ?",
                loop, self.process, fence,
            )  # fmt: skip
        self.fences = {}
