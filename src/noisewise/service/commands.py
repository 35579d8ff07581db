"""The commands of the decision service. Heavy imports are inside."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING

import click

from ..support.supported import install

if TYPE_CHECKING:
    from .engine import Engine
    from .log.store import Connection
    from .web.limits import Limits

DATABASE = click.option(
    "--database",
    default="sqlite:///noisewise.db",
    show_default=True,
    envvar="NOISEWISE_DATABASE",
    show_envvar=True,
    metavar="URL",
    help="sqlite:///PATH or postgresql://...",
)
STARTING = "Starting, which takes about a minute the first time on a machine."
NAME = click.argument("name", metavar="LOOP")


def _room(name: str) -> ModuleType:
    """Import a module of the service, or say how to install what it needs."""
    try:
        return import_module(f"noisewise.service.{name}")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the service needs {error.name}; install it with: {install('serve')}"
        ) from None


@contextmanager
def _opened(database: str) -> Iterator[Connection]:
    """Give a connection to a database that has our tables."""
    with _refusing(database):
        opened = _room("log.store").Store(database)
        try:
            opened.migrate()
            with opened.reading() as connection:
                yield connection
        finally:
            opened.close()


@contextmanager
def _connected(database: str, reading: bool = False) -> Iterator[Connection]:
    """Give the same, in a transaction."""
    with (
        _opened(database) as connection,
        connection.snapshot() if reading else connection.transaction(),
    ):
        yield connection


@contextmanager
def _refusing(database: str) -> Iterator[None]:
    """Turn errors of the service into those of the command line."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except _room("log.store").Unavailable as error:
        raise click.ClickException(f"{database}: {error}") from None


@click.command(short_help="Serve decisions over HTTP.")
@DATABASE
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--decisions", type=click.FloatRange(0, min_open=True), default=10_000.0, show_default=True,
    help="Decisions per second that a token may ask for.",
)  # fmt: skip
@click.option(
    "--body", type=click.IntRange(1024), default=2**20, show_default=True, help="Bytes of a body."
)
@click.option(
    "--in-flight", type=click.IntRange(1), default=100, show_default=True,
    help="Requests that are answered at the same time.",
)  # fmt: skip
@click.option("--log-requests", is_flag=True, help="Write a line for each request.")
def serve(
    database: str,
    host: str,
    port: int,
    decisions: float,
    body: int,
    in_flight: int,
    log_requests: bool,
) -> None:
    """Serve decisions over HTTP until interrupted, on a log that survives power cuts.

    Without tokens only this machine is answered: create one with `noisewise tokens create`.
    """
    engine, store = _room("engine"), _room("log.store")
    _log_as_json()
    click.echo(STARTING, err=True)
    with _refusing(database):
        running = engine.Engine(store.Store(database)).open()
        if not _is_local(host) and not running.tokens:
            running.close()
            raise ValueError(
                f"--host is {host}, but there are no tokens; create one with: noisewise tokens "
                f"create NAME --scope decide --database {database}"
            )
    limits = _room("web.api").Limits(body=body, in_flight=in_flight, decisions=decisions)
    click.echo(f"Serving on http://{host}:{port}, log in {running.store.shown}", err=True)
    _run(running, limits, host, port, log_requests)


def _run(running: Engine, limits: Limits, host: str, port: int, log_requests: bool = False) -> None:
    """Answer requests until interrupted."""
    sys.setswitchinterval(0.001)  # seconds: requests wait less for a thread that computes
    import_module("uvicorn").run(
        _room("web.api").application(running, limits), host=host, port=port, log_config=None,
        access_log=log_requests, server_header=False, timeout_graceful_shutdown=5,
    )  # fmt: skip


@click.command(short_help="Serve a simulated shop, and watch it learn.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option(
    "--database", metavar="URL", help="Where the log stays; by default it goes with the demo."
)
def demo(port: int, database: str | None) -> None:
    """Serve a simulated shop until interrupted, and print the address of its page.

    Visitors of a known taste come, 1,500 at once and then up to fifty per second. They are
    shown an action, and buy or not. The page shows how the agent learns what to show to whom, and
    what that earns.
    """
    module, engine, store = map(_room, ("demo", "engine", "log.store"))
    _log_as_json(logging.ERROR)
    address, ended = f"http://127.0.0.1:{port}", threading.Event()
    with TemporaryDirectory() as folder, _refusing(database or "the demo"):
        if _taken(port):
            raise ValueError(f"--port {port} is in use; pass another one")
        click.echo(STARTING)
        running = engine.Engine(store.Store(database or f"sqlite:///{folder}/demo.db")).open()
        if module.LOOP not in running.learners:
            running.create(module.LOOP, _room("loops").Settings(**module.SETTINGS))
        visitors = threading.Thread(target=module.Visitors(address).keep_coming, args=(ended,))
        visitors.start()
        click.echo(f"Watch it learn on {address}/loops/{module.LOOP}; Ctrl-C ends it.")
        try:
            _run(running, _room("web.api").Limits(), "127.0.0.1", port)
        finally:
            ended.set()
            visitors.join()


def _taken(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class JsonLines(logging.Formatter):
    """Log records as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        held = {"at": round(record.created, 3), "level": record.levelname.lower(),
                "message": record.getMessage()}  # fmt: skip
        if cause := getattr(record, "cause", None):
            held["cause"] = cause
        if record.exc_info:
            held["trace"] = self.formatException(record.exc_info)
        return json.dumps(held)


def _log_as_json(level: int = logging.INFO) -> None:
    """Log to stderr. A thread that fails ends the process: the log of the loops is the truth."""

    def failed(args: threading.ExceptHookArgs) -> None:
        logging.critical(
            "a thread has failed, and the process ends", exc_info=args.exc_value or True
        )
        os._exit(70)

    threading.excepthook = failed
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


@click.group(short_help="Tokens of the service.")
def tokens() -> None:
    """Create, list and revoke tokens of the service."""


@tokens.command(name="create")
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, required=True,
    type=click.Choice(["decide", "reward", "read", "admin"]), help="May be repeated.",
)  # fmt: skip
@DATABASE
def create_token(name: str, scopes: tuple[str, ...], database: str) -> None:
    """Print a new token. It is shown once: only its hash is stored."""
    with _connected(database) as connection:
        token = _room("web.tokens").create(connection, name, list(scopes))
        first = len(_room("web.tokens").every(connection)) == 1
    click.echo(token)
    if first:
        click.echo("From now on the service answers nobody without a token.", err=True)


@tokens.command(name="list")
@DATABASE
def list_tokens(database: str) -> None:
    """List names and scopes of tokens."""
    with _connected(database, reading=True) as connection:
        for each in _room("web.tokens").every(connection):
            state = "in use" if each.revoked is None else "revoked"
            click.echo(f"{each.name:<24}{state:<10}{' '.join(sorted(each.scopes))}")


@tokens.command(name="revoke")
@click.argument("name")
@DATABASE
def revoke_token(name: str, database: str) -> None:
    """Revoke a token; within a second no process answers it any more."""
    with _connected(database) as connection:
        _room("web.tokens").revoke(connection, name)


@click.group(short_help="Loops of the service.")
def loops() -> None:
    """Create and change loops, and move their logs. A running service follows within a second."""


def _settings(context: click.Context, parameter: click.Parameter, value: str) -> object:
    """Return settings given as JSON, or as @FILE that holds it."""
    try:
        text = Path(value[1:]).read_text() if value.startswith("@") else value
        found: object = json.loads(text)
    except OSError as error:
        raise click.BadParameter(f"{value[1:]} can't be read ({error.strerror})") from None
    except ValueError as error:
        raise click.BadParameter(f"it is no JSON ({error})") from None
    return found


@loops.command(name="create")
@NAME
@click.option(
    "--settings", callback=_settings, required=True, metavar="JSON",
    help='Such as \'{"actions": ["a", "b"]}\', or @FILE.',
)  # fmt: skip
@DATABASE
def create_loop(name: str, settings: object, database: str) -> None:
    """Create a loop."""
    module = _room("loops")
    try:
        known = module.Settings.model_validate(settings)
    except import_module("pydantic").ValidationError as error:
        raise click.UsageError(str(_room("web.answers").refusal(error, settings))) from None
    with _connected(database) as connection:
        module.insert(connection, name, known)


@loops.command(name="list")
@DATABASE
def list_loops(database: str) -> None:
    """List loops with the number of rows in their logs."""
    with _connected(database, reading=True) as connection:
        for loop in _room("loops").every(connection):
            state = "paused" if loop.paused else "running"
            click.echo(f"{loop.name:<64}{state:<9}{loop.seq:>10} rows")


@loops.command()
@NAME
@DATABASE
def pause(name: str, database: str) -> None:
    """Refuse decisions from now on; rewards are still learnt."""
    with _connected(database) as connection:
        _room("loops").update(connection, name, {}, paused=True)


@loops.command()
@NAME
@DATABASE
def resume(name: str, database: str) -> None:
    """Take decisions again."""
    with _connected(database) as connection:
        _room("loops").update(connection, name, {}, paused=False)


@loops.command()
@NAME
@click.argument("version", type=click.IntRange(0))
@DATABASE
def rollback(name: str, version: int, database: str) -> None:
    """Let the state be again what it was after VERSION rows of the log."""
    with _connected(database) as connection:
        rows = _room("loops").named(connection, name).seq
        _room("loops").roll_back(connection, name, version)
    click.echo(f"The state of {name} will be that after row {version} of {rows}.")


@loops.command(name="export")
@NAME
@click.argument("file", type=click.Path(path_type=Path))
@DATABASE
def export(name: str, file: Path, database: str) -> None:
    """Write the log to a CSV or Parquet FILE, as `noisewise evaluate` reads it."""
    with _connected(database, reading=True) as connection:
        loop = _room("loops").named(connection, name)
        count = _room("log.transfer").export(connection, loop, file)
    click.echo(f"{count} decisions with rewards in {file}")


@loops.command(name="import")
@NAME
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--action", default="action", show_default=True, metavar="COLUMN")
@click.option("--reward", default="reward", show_default=True, metavar="COLUMN")
@click.option("--trials", metavar="COLUMN", help="Rewards are means of so many trials.")
@DATABASE
def import_(
    name: str, file: Path, action: str, reward: str, trials: str | None, database: str
) -> None:
    """Learn past decisions of a CSV, Parquet or dsjson FILE, in order, as a warm start.

    They become rows of the log. A row that can't be used stops the import before anything is
    written; the same FILE imported twice counts once.
    """
    with _opened(database) as connection:
        loop = _room("loops").named(connection, name)
        count = _room("log.transfer").import_(connection, loop, file, action, reward, trials)
    click.echo(f"{count} decisions of {file} are in the log of {name}")


@click.command(short_help="Rebuild a loop from its log.")
@NAME
@click.option("--verify", is_flag=True, help="Compare with snapshots; exit 1 if one differs.")
@DATABASE
def replay(name: str, verify: bool, database: str) -> None:
    """Rebuild the state of LOOP from the numbered rows of its log.

    With --verify every snapshot is compared with the state that the rows up to it lead to: equal to
    the last bit on the same kind of processor, to 1e-9 elsewhere.
    """
    learner = _room("learner")
    with _connected(database, reading=True) as connection:
        loop = _room("loops").named(connection, name)
        rebuilt = learner.build(connection, loop, loop.seq, snapshots=False)
        click.echo(f"{name}: {rebuilt.version} rows, digest {rebuilt.digest}")
        compared = learner.verify(connection, loop) if verify else []
    for seq, verdict in compared:
        click.echo(f"snapshot after row {seq}: {verdict}")
    if verify and not compared:
        raise click.ClickException(
            "there is no snapshot to compare with yet; the service keeps one when it is stopped"
        )
    if any(verdict == learner.DIFFERENT for _, verdict in compared):
        sys.exit(1)


COMMANDS = (serve, loops, tokens, replay, demo)
