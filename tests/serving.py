"""What the tests of the service share: a service in this process, or in one of its own."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import uvicorn

from noisewise.service import learner, loops
from noisewise.service.log.store import Store

SHOP = {
    "actions": ["offer", "discount", "nothing"],
    "context": {"age": "number", "country": ["de", "fr"]},
    "baseline": "nothing",
    "explore": 0.1,
    "holdout": 0.1,
}


def context(i):
    return {"age": float(20 + i % 50), "country": "de" if i % 3 else "fr"}


class Client:
    """One connection that stays open; ``ask`` returns status and body."""

    def __init__(self, address, token=None):
        where = urlsplit(address)
        self.connection = HTTPConnection(where.hostname, where.port, timeout=30)
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def ask(self, method, path, body=None, headers=None):
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        try:
            self.connection.request(method, path, data, {**self.headers, **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except (HTTPException, OSError):
            self.connection.close()
            raise
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()


class Running:
    """An application in a thread of this process, on loopback."""

    def __init__(self, app):
        self.port = free_port()
        self.server = uvicorn.Server(
            uvicorn.Config(
                app, port=self.port, log_config=None, access_log=False, timeout_graceful_shutdown=2
            )
        )
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        wait_until(lambda: self.server.started or not self.thread.is_alive(), 20)
        self.client = Client(f"http://127.0.0.1:{self.port}")

    def stop(self):
        self.client.connection.close()
        self.server.should_exit = True
        self.thread.join()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(database, port, *more):
    """Return a process that serves a database, once it answers."""
    code = "from noisewise.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--database", database, "--port", str(port)]
    process = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: process.poll() is not None or answers(port), 60)
    if process.poll() is not None:
        raise AssertionError(process.stderr.read())
    return process


def answers(port):
    client = Client(f"http://127.0.0.1:{port}")
    try:
        return client.ask("GET", "/readyz")[0] == 200
    except OSError:
        return False
    finally:
        client.connection.close()


def wait_until(true, seconds):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "that took too long"
        time.sleep(0.02)


def rows_of(database, name):
    """Return the numbered rows of a loop: number, kind, event, name of the reward, body."""
    store = Store(database)
    with store.reading() as connection:
        loop = loops.named(connection, name)
        rows = connection.rows(
            "SELECT seq, kind, event_id, reward_id, body FROM events WHERE loop = ? ORDER BY id",
            loop.id,
        )
    store.close()
    return rows


def replayed(database, name, snapshots=False):
    """Return the digest of the state that a log leads to."""
    store = Store(database)
    with store.reading() as connection:
        loop = loops.named(connection, name)
        rebuilt = learner.build(connection, loop, loop.seq, snapshots=snapshots)
    store.close()
    return rebuilt.version, rebuilt.digest


@contextmanager
def postgresql(folder):
    """Start a PostgreSQL server on loopback, and give its address."""
    found = [
        os.path.join(root, "bin")
        for root in (f"/usr/lib/postgresql/{version}" for version in range(20, 10, -1))
        if os.path.exists(os.path.join(root, "bin", "initdb"))
    ]
    assert found, "PostgreSQL is not installed; run: apt-get install postgresql"
    port, data = free_port(), os.path.join(folder, "data")
    user = {}
    if os.getuid() == 0:
        import pwd

        who = pwd.getpwnam("postgres")
        user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        os.chmod(folder, 0o755)
        os.makedirs(data)
        os.chown(data, who.pw_uid, who.pw_gid)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **user}
    subprocess.run(
        [f"{found[0]}/initdb", "-D", data, "-U", "noisewise", "-A", "trust"], check=True, **quiet
    )
    server = subprocess.Popen(
        [f"{found[0]}/postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", data],
        **quiet,
    )
    address = f"postgresql://noisewise@127.0.0.1:{port}/postgres"
    try:
        store = Store(address)

        def up():
            from noisewise.service.log.store import Unavailable

            assert server.poll() is None, "PostgreSQL did not start"
            try:
                with store.reading() as connection:
                    return connection.rows("SELECT 1") == [(1,)]
            except Unavailable:
                return False

        wait_until(up, 30)
        store.close()
        yield address
    finally:
        server.terminate()
        server.wait()
