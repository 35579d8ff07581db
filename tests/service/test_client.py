"""The client against a real service: up, down, slow, full, and behind a flaky line."""

import logging
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import SHOP, Running, context, free_port, rows_of, wait_until

from noisewise.client import Client, ServiceError
from noisewise.service.engine import Engine
from noisewise.service.log.store import Store
from noisewise.service.web.api import application
from noisewise.service.web.limits import Limits


@pytest.fixture
def service(tmp_path):
    running = Running(application(Engine(Store(f"sqlite:///{tmp_path}/log.db")).open(), LIMITS))
    running.database, running.address = f"sqlite:///{tmp_path}/log.db", address(running.port)
    created = running.client.ask("POST", "/v1/loops", {"name": "shop", "settings": SHOP})
    assert created[0] == 201, created
    yield running
    running.stop()


LIMITS = Limits(in_flight=2)


def address(port):
    return f"http://127.0.0.1:{port}"


def test_decisions_rewards_and_reasons(service):
    client = Client(service.address, timeout=5)
    decision = client.decide("shop", context(0), baseline="nothing", event_id="one")
    assert decision.group in ("agent", "explore", "holdout")
    assert decision.ranking[0]["action"] == decision.action in SHOP["actions"]
    assert client.decide("shop", context(0), baseline="nothing", event_id="one") == decision
    assert client.reward("shop", decision, 1)
    assert client.reward("shop", "one", 1)  # again: counts once
    with pytest.raises(ServiceError, match="another value") as refused:
        client.reward("shop", "one", 0)
    assert (refused.value.status, refused.value.code) == (409, "reward_id_taken")
    assert client.explain("shop", "one")["chosen"] == decision.actions
    assert client.explain("shop")["name"] == "shop"
    page = client.decide("shop", context(1), baseline=["nothing", "offer"], top=2)
    assert len(page.actions) == 2
    assert client.reward("shop", page, 1, slot=1)
    client.close()


def test_items_of_a_batch_fall_back_on_their_own(service):
    client = Client(service.address, timeout=5)
    items = [{"context": context(0)}, {"context": {"age": "old"}}, {"context": context(1)}]
    found = client.decide_many("shop", items, "nothing")
    assert [each.group == "fallback" for each in found] == [False, True, False]
    assert found[1].actions == ["nothing"]
    assert "age" in found[1].cause
    rewards = [{"event_id": each.event_id, "value": 1} for each in found]
    first, second, third = client.reward_many("shop", rewards)
    assert (first, third) == (True, True)
    assert second.status == 422
    client.close()


def test_a_service_that_is_down(caplog):
    client = Client(address(free_port()), timeout=0.1, patience=0.2)
    with caplog.at_level(logging.WARNING):
        decision = client.decide("shop", baseline="nothing")
    assert (decision.action, decision.group) == ("nothing", "fallback")
    assert "unreached" in decision.cause
    assert decision.cause in caplog.text
    assert not client.reward("shop", decision, 1)
    with pytest.raises(ServiceError) as missed:
        client.reward("shop", "one", 1)
    assert missed.value.status == 0


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n"])
def test_a_service_that_is_slow(answer):
    """It takes the request and says nothing, or half of an answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: listening.accept()[0])
        client = Client(address(listening.getsockname()[1]), timeout=0.2)
        began = time.monotonic()
        waiting = threading.Thread(target=lambda: held.result().sendall(answer))
        waiting.start()
        decision = client.decide("shop", baseline="nothing")
        assert decision.group == "fallback"
        assert time.monotonic() - began < 2
        waiting.join()
        held.result().close()


def test_a_service_that_is_busy_is_asked_again(service):
    """503 while two requests wait for the disk; both a decision and a reward come through later."""
    engine = service.server.config.app.state.engine
    free = threading.Event()
    engine.writer.later(lambda connection: free.wait(20))
    client = Client(service.address, timeout=0.15)
    found = []

    def ask():
        other = Client(service.address, timeout=20)
        found.append(other.decide("shop", context(0), baseline="nothing"))
        other.close()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    statuses = service.server.config.app.state.meter.requests
    wait_until(lambda: any(status == 503 for _, status in [*statuses]), 20)
    refused = client.decide("shop", context(0), baseline="nothing")
    assert "busy" in refused.cause
    free.set()
    for each in threads:
        each.join()
    assert all(each.group != "fallback" for each in found)
    assert all(client.reward("shop", each, 1) for each in found)
    client.close()
    assert len(rows_of(service.database, "shop")) == 6


def whole(line):
    """Return a request or an answer with its body, or nothing at the end."""
    text = b""
    while part := line.recv(65536):
        text += part
        head, found, body = text.partition(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if found and len(body) == int(size[1] if size else 0):
            break
    return text


class Flaky:
    """A line that loses every other answer after the service has given it."""

    def __init__(self, port):
        self.port, self.count = port, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while True:
            try:
                ours, _ = self.listening.accept()
            except OSError:
                return
            with ours, socket.create_connection(("127.0.0.1", self.port)) as theirs:
                while text := whole(ours):
                    theirs.sendall(text)
                    answer = whole(theirs)
                    self.count += 1
                    if self.count % 2:
                        break
                    ours.sendall(answer)

    def stop(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()


def test_answers_that_are_lost_count_once(service):
    flaky = Flaky(service.port)
    client = Client(address(flaky.listening.getsockname()[1]), timeout=10)
    for i in range(10):
        decision = client.decide("shop", context(i), baseline="nothing")
        assert decision.group != "fallback"
        assert client.reward("shop", decision, i % 2)
    client.close()
    flaky.stop()
    assert flaky.count >= 40
    rows = rows_of(service.database, "shop")
    assert sorted(row[1] for row in rows) == ["decide"] * 10 + ["reward"] * 10


def test_it_needs_the_standard_library_alone():
    code = "import sys, noisewise.client; print(sorted({'numpy', 'numba'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
