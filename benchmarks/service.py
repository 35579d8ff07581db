"""Decisions and rewards per second over HTTP, fully durable, beside an echo of the same bodies.

One client process, 20 actions and 20 columns, on this machine: in batches of 20, and singly over 16
connections, as fast as it can and at a steady pace, with the time that a decision takes while the
service learns.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection

import numpy as np

FEATURES = ["a", "b", "c", "d"]
PAIRS, SINGLY, CONNECTIONS, BATCH = 8000, 4000, 16, 20
PACE = 400  # pairs per second, where decisions are not asked for as fast as they are answered
ECHO = """
import sys
from typing import Any
import uvicorn
from fastapi import Body, FastAPI
app = FastAPI()
@app.post("/{path:path}")
async def echo(path: str, body: Any = Body()) -> Any:
    return body
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
"""


def settings():
    rng = np.random.default_rng(0)
    actions = {
        f"action-{k}": dict(zip(FEATURES, rng.normal(size=4), strict=True)) for k in range(20)
    }
    context = dict.fromkeys(("v", "w", "x", "y"), "number")
    return {"actions": actions, "interactions": "shared", "context": context}


def contexts(count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 4)).round(6).tolist()
    return [dict(zip(("v", "w", "x", "y"), row, strict=True)) for row in rows]


def ask(port, path, body):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status < 300, text
    return json.loads(text) if text else None


def in_batches(port):
    """Return pairs per second over one connection."""
    rows, connection = contexts(PAIRS, 1), HTTPConnection("127.0.0.1", port, timeout=60)
    bodies = [
        json.dumps(
            [{"context": row, "event_id": f"b{i + j}"} for j, row in enumerate(rows[i : i + BATCH])]
        )
        for i in range(0, PAIRS, BATCH)
    ]
    headers, times = {"content-type": "application/json"}, []
    began = time.perf_counter()
    for i, body in enumerate(bodies):
        then = time.perf_counter()
        connection.request("POST", "/v1/loops/bench/decide:batch", body, headers)
        answer = connection.getresponse().read()
        times.append(time.perf_counter() - then)
        assert answer[:1] == b"["
        rewards = [{"event_id": f"b{BATCH * i + j}", "value": (i + j) % 2} for j in range(BATCH)]
        connection.request("POST", "/v1/loops/bench/reward:batch", json.dumps(rewards), headers)
        connection.getresponse().read()
    return PAIRS / (time.perf_counter() - began), np.quantile(times, [0.5, 0.99])


async def post(reader, writer, path, body):
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    size = next((int(x.split(b":")[1]) for x in lines if x.startswith(b"content-length")), 0)
    if size:
        await reader.readexactly(size)
    return int(lines[0].split()[1])


async def worker(port, rows, start, times, pace):
    """Ask for decisions one by one; with a ``pace``, every so many seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due = time.perf_counter() + (start % CONNECTIONS) / CONNECTIONS * pace
    for i, row in enumerate(rows):
        if pace:
            due += pace
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        name, began = f"{pace}-{start + i}", time.perf_counter()
        body = json.dumps({"context": row, "event_id": name})
        assert await post(reader, writer, "/v1/loops/bench/decide", body) < 300
        times.append(time.perf_counter() - began)
        path = f"/v1/loops/bench/events/{name}/reward"
        assert await post(reader, writer, path, json.dumps({"value": i % 2})) < 300
    writer.close()


async def singly(port, pace=0.0):
    """Return pairs per second over 16 connections, and how long decisions took."""
    rows, times = contexts(SINGLY, 2), []
    each = SINGLY // CONNECTIONS
    began = time.perf_counter()
    await asyncio.gather(
        *(worker(port, rows[i : i + each], i, times, pace) for i in range(0, SINGLY, each))
    )
    return SINGLY / (time.perf_counter() - began), np.quantile(times, [0.5, 0.99])


def wait(port):
    for _ in range(600):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the server did not start")


def cpu(process):
    """Return the seconds of CPU that a process has used."""
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()  # noqa: SIM115
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(command, port, create):
    server = subprocess.Popen([*command, str(port)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        wait(port)
        if create:
            ask(port, "/v1/loops", {"name": "bench", "settings": settings()})
        used = [cpu(server)]
        many, waited = in_batches(port)
        used.append(cpu(server))
        single, times = asyncio.run(singly(port))
        used.append(cpu(server))
        paced = asyncio.run(singly(port, CONNECTIONS / PACE))[1]
    finally:
        server.terminate()
        server.wait()
    spent = [1e6 * (used[1] - used[0]) / PAIRS, 1e6 * (used[2] - used[1]) / SINGLY]
    return many, waited, single, times, paced, spent


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        serve = ["-c", "from noisewise.cli import main; main()", "serve", "--decisions", "1e6"]
        database = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/log.db"
        ours = [sys.executable, *serve, "--database", database, "--port"]
        for name, command in (("noisewise", ours), ("echo", [sys.executable, "-c", ECHO])):
            many, waited, single, times, paced, spent = measure(command, port, name == "noisewise")
            print(
                f"{name:<10}{many:8.0f} pairs/s in batches of {BATCH} (a batch of decisions "
                f"{1e3 * waited[0]:.1f} ms, p99 {1e3 * waited[1]:.1f}), {single:6.0f} singly (a "
                f"decision {1e3 * times[0]:.1f} ms, p99 {1e3 * times[1]:.1f}; at {PACE} pairs/s "
                f"{1e3 * paced[0]:.1f} ms, p99 {1e3 * paced[1]:.1f}); CPU of the server "
                f"{spent[0]:.0f} and {spent[1]:.0f} us a pair"
            )


if __name__ == "__main__":
    main()
