"""Connections to the log in SQLite or PostgreSQL, and its schema by numbered migrations."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module, resources
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, BinaryIO

from ...support.supported import install

try:
    import fcntl
except ImportError:  # Windows: nothing stops a second process there
    fcntl = None  # type: ignore[assignment]

NETWORKED = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"}
NETWORKED |= {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "virtiofs", "davfs", "fuse.davfs2"}
WORDS = {
    "sqlite": {
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "float": "REAL", "bytes": "BLOB",
    },
    "postgresql": {
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "float": "DOUBLE PRECISION",
        "bytes": "BYTEA",
    },
}  # fmt: skip
MIGRATING = 7461  # the advisory lock of PostgreSQL under which the schema is changed


Value = str | int | float | bytes | None
PAUSE = 5000  # milliseconds between the statements of a transaction that others wait for
Record = tuple[Any, ...]  # whose types the query says


class Unavailable(Exception):
    """The database did not do what was asked, and nothing of it was kept."""


class Doubled(Unavailable):
    """A row is there already that must be there once."""


class Connection:
    """A connection, opened when first used and again after an error; parameters are ``?``."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._raw: Any = None  # of the driver

    def rows(self, sql: str, *values: Value) -> list[Record]:
        """Return the rows of a query."""
        with self._errors() as raw:
            found: list[Record] = raw.execute(self.store.words(sql), values).fetchall()
        return found

    def change(self, sql: str, *values: Value) -> int:
        """Run a statement; return how many rows it has changed."""
        with self._errors() as raw:
            changed: int = raw.execute(self.store.words(sql), values).rowcount
        return changed

    def many(self, sql: str, values: Sequence[Sequence[Value]]) -> None:
        """Run a statement for each of many rows."""
        if values:
            with self._errors() as raw:
                raw.cursor().executemany(self.store.words(sql), values)

    @contextmanager
    def transaction(self, begin: str = "") -> Iterator[Connection]:
        """Write all or nothing; on leaving, what was written is on the disk."""
        self.change(begin or ("BEGIN IMMEDIATE" if self.store.embedded else "BEGIN"))
        try:
            yield self
            self.change("COMMIT")
        except BaseException:
            try:
                self.change("ROLLBACK")
            except Unavailable:
                self.close()
            raise

    def promptly(self) -> AbstractContextManager[Connection]:
        """Write all or nothing, without a pause: PostgreSQL ends it where the process is stopped.

        A stopped process would hold the rows that it has changed, and nobody could take over.
        """
        limited = f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {PAUSE}"
        return self.transaction("" if self.store.embedded else limited)

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Read the database as it is now, however long it takes, while others write."""
        isolated = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self.transaction("BEGIN" if self.store.embedded else isolated)

    def now(self) -> float:
        """Return the time: that of PostgreSQL's server where there are several machines."""
        if self.store.embedded:
            return time.time()
        return float(self.rows("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def close(self) -> None:
        """Close it; used again, it opens again."""
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()

    @contextmanager
    def _errors(self) -> Iterator[Any]:
        """Give the driver's connection, and turn its errors into ours."""
        driver = self.store.driver
        try:
            if self._raw is None:
                self._raw = self.store.open()
            yield self._raw
        except driver.IntegrityError as error:
            raise Doubled(str(error)) from error
        except (driver.Error, OSError) as error:
            if not self.store.embedded and self._raw is not None and self._raw.closed:
                self._raw = None
            raise Unavailable(f"{type(error).__name__}: {error}") from error


class Store:
    """A database: ``sqlite:///path`` or ``postgresql://...``."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self.embedded = scheme == "sqlite"
        self.url, self.path = url, Path(rest.removeprefix("/") or "noisewise.db")
        self.driver: ModuleType = sqlite3
        if scheme in ("postgresql", "postgres"):
            try:
                self.driver = import_module("psycopg")
            except ImportError:
                raise ValueError(
                    f"PostgreSQL needs psycopg; install it with: {install('postgres')}"
                ) from None
        elif not self.embedded:
            raise ValueError(f"database is {url!r}; pass sqlite:///path or postgresql://...")
        if self.embedded:
            refuse_network_share(self.path)
        self.dialect = "sqlite" if self.embedded else "postgresql"
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._held: BinaryIO | None = None

    @property
    def shown(self) -> str:
        """Where the log is, without a password."""
        return re.sub(r"//[^@/]*@", "//", self.url)

    def words(self, sql: str) -> str:
        """Return a statement as the driver has it."""
        return sql if self.embedded else sql.replace("?", "%s")

    def open(self) -> Any:
        """Return a connection of the driver, of which every commit is durable."""
        if not self.embedded:
            return self.driver.connect(
                self.url, autocommit=True, connect_timeout=5, client_encoding="utf8"
            )
        raw = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5.0)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            raw.execute(f"PRAGMA {pragma}")
        return raw

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection to read with."""
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = Connection(self)
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def claim(self) -> None:
        """Take an embedded database for this process; raise where another one serves it."""
        if not self.embedded or fcntl is None:
            return
        self._held = open(f"{self.path}.lock", "ab")  # noqa: SIM115 - until the process ends
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._held.close()
            raise ValueError(
                f"{self.path} is served by another process; several processes need PostgreSQL"
            ) from None

    def close(self) -> None:
        """Close idle connections, and let other processes have the database."""
        while not self._idle.empty():
            self._idle.get().close()
        if self._held is not None:
            self._held.close()

    def migrate(self) -> None:
        """Bring the schema up to date, in one transaction."""
        folder = resources.files(__package__) / "migrations"
        steps = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
        connection = Connection(self)
        with connection.transaction():
            if not self.embedded:
                connection.rows("SELECT pg_advisory_xact_lock(?)", MIGRATING)
            connection.change("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
            done = {name for (name,) in connection.rows("SELECT name FROM migrations")}
            if newer := done - {*steps}:
                raise ValueError(
                    f"the database has steps {sorted(newer)} of a newer noisewise; update this one"
                )
            for name in steps:
                if name not in done:
                    text = (folder / name).read_text()
                    for statement in re.sub(r"\{(\w+)\}", self._word, text).split(";"):
                        connection.change(statement)
                    connection.change("INSERT INTO migrations VALUES (?)", name)
        connection.close()

    def _word(self, found: re.Match[str]) -> str:
        return WORDS[self.dialect][found[1]]


def refuse_network_share(path: Path) -> None:
    """Raise where a file would lie on a network share, whose locks and flushes can't be relied on.

    Where the system does not list its mounts, nothing is refused.
    """
    home = Path(os.path.realpath(path)).parent
    if not home.is_dir():
        raise ValueError(f"database is {str(path)!r}, but {str(home)!r} is no folder; create it")
    try:
        mounts = Path("/proc/self/mounts").read_text()
    except OSError:
        return
    if (kind := file_system(home, mounts)) in NETWORKED:
        raise ValueError(
            f"database is {str(path)!r}, on a network share ({kind}), where a power cut may lose "
            "what was acknowledged; pass a path on a local disk, or use PostgreSQL"
        )


def file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system that a path is on.

    >>> file_system(Path("/data/a"), "a / ext4 rw 0 0\\nb:/c /data nfs4 rw 0 0\\n")
    'nfs4'
    """
    best = ("", "")
    for line in mounts.splitlines():
        _, where, kind, *_ = line.split(" ")
        where = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), where)
        if path.is_relative_to(where) and len(where) >= len(best[0]):
            best = where, kind
    return best[1]
