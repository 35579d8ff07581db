"""What was acknowledged survives: kills, pauses, power cuts, also with several processes."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from http.client import HTTPException
from tempfile import TemporaryDirectory

import pytest
from serving import (
    SHOP,
    Client,
    answers,
    context,
    free_port,
    postgresql,
    replayed,
    rows_of,
    start,
    wait_until,
)

from noisewise.service import loops
from noisewise.service.log.store import Connection, Store, Unavailable

pytestmark = pytest.mark.slow


class Load:
    """Threads that decide and reward until stopped, and remember what was acknowledged."""

    def __init__(self, ports, name):
        self.ports, self.name, self.ended = ports, name, False
        self.decided, self.rewarded = {}, {}
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(3)]
        for each in self.threads:
            each.start()

    def work(self, number):
        rng, client, i = random.Random(number), None, 0
        while not self.ended:
            try:
                client = client or Client(f"http://127.0.0.1:{rng.choice(self.ports)}")
                i += 1
                names = [f"{self.name}-{number}-{i}-{j}" for j in range(rng.choice((1, 4)))]
                items = [{"context": context(i), "event_id": name} for name in names]
                status, answers = client.ask("POST", "/v1/loops/shop/decide:batch", items)
                if status != 200:
                    continue
                for name, each in zip(names, answers, strict=True):
                    assert each["status"] == 201, each
                    self.decided[name] = each["action"]
                value = float(rng.random() < 0.5)
                items = [{"event_id": name, "value": value} for name in names]
                status, answers = client.ask("POST", "/v1/loops/shop/reward:batch", items)
                for name, each in zip(names, answers if status == 200 else [], strict=False):
                    assert each["status"] == 204, each
                    self.rewarded[name] = value
            except (OSError, HTTPException):  # the process was killed: connect again
                client = None
                time.sleep(0.01)
        if client:
            client.connection.close()

    def stop(self):
        self.ended = True
        for each in self.threads:
            each.join()


def check(database, loads):
    """Nothing that was acknowledged is lost, nothing is there twice, all is numbered once."""
    rows = rows_of(database, "shop")
    decided, rewarded = {}, {}
    for _, kind, event_id, reward_id, body in rows:
        held = json.loads(body)
        if kind == "decide":
            assert event_id not in decided
            decided[event_id] = held["chosen"][0]
        elif kind == "reward":
            assert (event_id, reward_id) not in rewarded
            rewarded[event_id, reward_id] = held["value"]
    for load in loads:
        assert load.decided.items() <= decided.items()
        assert {(name, ""): v for name, v in load.rewarded.items()}.items() <= rewarded.items()
    numbered = sorted(row[0] for row in rows if row[0] is not None)
    assert numbered == list(range(1, len(numbered) + 1))
    return rows


def recovered(database, port):
    """Wait until a process has learnt all rows, and return its version and digest."""
    wait_until(lambda: all(row[0] is not None for row in rows_of(database, "shop")), 30)
    version = len(rows_of(database, "shop"))
    client = Client(f"http://127.0.0.1:{port}")
    wait_until(lambda: client.ask("GET", "/v1/loops/shop")[1]["version"] == version, 30)
    digest = client.ask("GET", "/v1/loops/shop?digest=true")[1]["digest"]
    client.connection.close()
    return version, digest


def create(port):
    client = Client(f"http://127.0.0.1:{port}")
    status, held = client.ask("POST", "/v1/loops", {"name": "shop", "settings": SHOP})
    assert status == 201, held
    client.connection.close()


def killed_under_load(database, times):
    port, loads, rng = free_port(), [], random.Random(7)
    process = start(database, port)
    create(port)
    acknowledged = 0
    for i in range(times):
        load = Load([port], f"l{i}")
        loads.append(load)
        time.sleep(rng.uniform(0.05, 0.6))
        process.kill()
        process.wait()
        process.stderr.close()
        load.stop()
        acknowledged += len(load.decided) + len(load.rewarded)
        process = start(database, port)
        check(database, loads)
        if i % 10 == 9:
            assert recovered(database, port) == replayed(database, "shop")
    found = recovered(database, port)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stderr.close()
    check(database, loads)
    assert found == replayed(database, "shop") == replayed(database, "shop", snapshots=True)
    counts = Counter(row[1] for row in rows_of(database, "shop"))
    assert acknowledged > 5 * times, "hardly anything was acknowledged between kills"
    print(f"{times} kills, {acknowledged} acknowledged, rows {dict(counts)}")


def test_fifty_kills_on_sqlite(tmp_path):
    killed_under_load(f"sqlite:///{tmp_path}/log.db", 50)


@pytest.fixture
def address():
    """Give a PostgreSQL server of this test alone."""
    with TemporaryDirectory() as folder, postgresql(folder) as found:
        yield found


def test_twenty_kills_on_postgresql(address):
    killed_under_load(address, 20)


@pytest.fixture
def processes():
    """Processes of a test, ended with it however it ends, also those that are stopped."""
    found = []
    yield found
    for each in found:
        each.kill()
        each.wait()
        each.stderr.close()


@pytest.mark.parametrize("how", ["killed", "paused"])
def test_another_process_takes_over(address, processes, how):
    """Two processes under load; the owner is killed, or paused beyond its deadline."""
    ports = [free_port(), free_port()]
    processes.append(start(address, ports[0]))
    create(ports[0])
    wait_until(lambda: owner(address) is not None, 20)
    processes.append(start(address, ports[1]))
    load = Load(ports, "a")
    time.sleep(2)
    first = owner(address)
    assert f":{processes[0].pid}:" in first[0]
    began = time.monotonic()
    processes[0].send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    load.ports = ports[1:]
    numbered = most(address)
    wait_until(lambda: owner(address)[1] > first[1], 20)
    wait_until(lambda: most(address) > numbered, 20)
    took = time.monotonic() - began
    print(f"{how}: taken over after {took:.1f} s")
    assert took < 15
    if how == "paused":
        processes[0].send_signal(signal.SIGCONT)
        load.ports = ports
        time.sleep(4)
        assert owner(address)[0] == owner(address)[0] != first[0]
    time.sleep(1)
    load.stop()
    rows = check(address, [load])
    assert len(rows) > 50
    found = {recovered(address, port) for port in (ports if how == "paused" else ports[1:])}
    assert found == {replayed(address, "shop")}
    for each in processes:
        each.send_signal(signal.SIGTERM)
        each.wait(30)


def test_a_stopped_process_holds_no_rows(address):
    """What it had changed when it was stopped in a transaction, others can change."""
    store = Store(address)
    stopped, other = Connection(store), Connection(store)
    other.change("CREATE TABLE places (taken integer)")
    other.change("INSERT INTO places VALUES (0)")
    began = time.monotonic()

    def write():
        with stopped.promptly():
            stopped.change("UPDATE places SET taken = 1")
            other.change("UPDATE places SET taken = 2")  # waits

    with pytest.raises(Unavailable, match="idle-in-transaction"):
        write()
    assert 4 < time.monotonic() - began < 9
    assert other.rows("SELECT taken FROM places") == [(2,)]
    for each in (stopped, other):
        each.close()


def owner(address):
    store = Store(address)
    with store.reading() as connection:
        rows = connection.rows("SELECT process, fence FROM owners")
    store.close()
    return rows[0] if rows else None


def most(address):
    store = Store(address)
    with store.reading() as connection:
        ((seq,),) = connection.rows("SELECT max(seq) FROM loops")
    store.close()
    return seq


def test_rows_that_commit_late_are_learnt(address):
    """A row that is inserted first and committed last gets a number of its own, later."""
    port = free_port()
    process = start(address, port)
    create(port)
    wait_until(lambda: owner(address) is not None, 20)
    client = Client(f"http://127.0.0.1:{port}")
    store, other = Store(address), Store(address)
    with store.reading() as slow, other.reading() as quick:
        loop = loops.named(quick, "shop")
        client.ask("POST", "/v1/loops/shop/decide", {"context": context(0), "event_id": "one"})
        ((body,),) = quick.rows("SELECT body FROM events WHERE event_id = 'one'")
        with slow.transaction():
            insert = "INSERT INTO events (loop, event_id, kind, at, body) VALUES (?, ?, ?, ?, ?)"
            slow.change(insert, loop.id, "late", "decide", time.time(), body)
            for name in ("two", "three"):
                client.ask(
                    "POST", "/v1/loops/shop/decide", {"context": {**context(1)}, "event_id": name}
                )
            wait_until(lambda: most(address) == 3, 20)
        wait_until(lambda: most(address) == 4, 20)
    rows = rows_of(address, "shop")
    assert [row[2] for row in rows] == ["one", "late", "two", "three"]  # as inserted
    assert [row[0] for row in rows] == [1, 4, 2, 3]
    assert recovered(address, port) == replayed(address, "shop")
    client.connection.close()
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stderr.close()
    store.close()
    other.close()


def test_a_full_disk(tmp_path):
    """A file system of its own: 503 while there is no room, and all goes on when there is."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    try:
        database, port = f"sqlite:///{tmp_path}/log.db", free_port()
        process = start(database, port)
        create(port)
        client, kept, statuses = Client(f"http://127.0.0.1:{port}"), [], []
        for i in range(400):
            items = [{"context": context(i), "event_id": f"e{i}-{j}"} for j in range(20)]
            statuses.append(client.ask("POST", "/v1/loops/shop/decide:batch", items)[0])
            if statuses[-1] == 200:
                kept += [each["event_id"] for each in items]
            if statuses[-5:] == [503] * 5:
                break
        assert {*statuses} == {200, 503}
        assert {row[2] for row in rows_of(database, "shop")} >= {*kept}
        subprocess.run(["mount", "-o", "remount,size=40m", str(tmp_path)], check=True)
        rewards = [{"event_id": name, "value": 1} for name in kept[-500:]]
        status, found = client.ask("POST", "/v1/loops/shop/reward:batch", rewards)
        assert (status, {each["status"] for each in found}) == (200, {204})
        assert recovered(database, port) == replayed(database, "shop")
        decided = [row[2] for row in rows_of(database, "shop") if row[1] == "decide"]
        assert sorted(decided) == sorted(kept)
        client.connection.close()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stderr.close()
        print(f"{len(kept)} decisions kept before the disk was full, none lost")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_process_whose_thread_fails_ends(tmp_path):
    """A row that is no JSON: the process ends with an error, so that it is started again."""
    database, port = f"sqlite:///{tmp_path}/log.db", free_port()
    process = start(database, port)
    create(port)
    client = Client(f"http://127.0.0.1:{port}")
    client.ask("POST", "/v1/loops/shop/decide", {"context": context(0), "event_id": "one"})
    with sqlite3.connect(tmp_path / "log.db") as raw:
        raw.execute("UPDATE events SET body = 'x'")
    raw.close()
    with suppress(HTTPException, OSError):  # the answer may leave before the process ends
        status, _ = client.ask("POST", "/v1/loops/shop/events/one/reward", {"value": 1})
        assert status == 500
    client.connection.close()
    assert process.wait(30) == 70
    assert "a thread has failed" in process.stderr.read()
    process.stderr.close()


def test_the_log_is_on_the_disk_before_an_answer_leaves(tmp_path):
    """strace: pages of the write-ahead log that hold an event are flushed before its answer.

    Other pages may be written meanwhile: the owner of a loop says so every three seconds.
    """
    assert shutil.which("strace"), "strace is not installed; run: apt-get install strace"
    port, trace = free_port(), tmp_path / "trace"
    code = "from noisewise.cli import main; main()"
    calls = "trace=fsync,fdatasync,pwrite64,sendto,send,write"
    command = ["strace", "-f", "-yy", "-s", "4096", "-e", calls, "-o", str(trace)]
    command += [sys.executable, "-c", code, "serve", "--port", str(port)]
    command += ["--database", f"sqlite:///{tmp_path}/log.db"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    client = Client(f"http://127.0.0.1:{port}")
    wait_until(lambda: answers(port), 120)
    create(port)
    for i in range(20):
        body = {"context": context(i), "event_id": f"mark-{i}"}
        assert client.ask("POST", "/v1/loops/shop/decide", body)[0] == 201
        assert client.ask("POST", f"/v1/loops/shop/events/mark-{i}/reward", {"value": 1})[0] == 204
    client.connection.close()
    (child,) = {int(found) for found in re.findall(r"^(\d+)", trace.read_text(), re.MULTILINE)[:1]}
    os.kill(child, signal.SIGTERM)
    process.wait(60)
    sent = flushed = written = 0
    dirty = True
    for line in trace.read_text().splitlines():
        if "pwrite64" in line and "log.db-wal" in line and "mark-" in line:
            dirty = True
            written += 1
        elif re.search(r"f(data)?sync\(.*log\.db-wal.*= 0", line) or "sync resumed>" in line:
            dirty = False
            flushed += 1
        elif re.search(r'(sendto|send|write)\(\d+<TCP.*"HTTP/1.1 20[14]', line):
            sent += 1
            assert not dirty, f"answered before a flush: {line[:200]}"
    assert min(sent, flushed, written) >= 40
