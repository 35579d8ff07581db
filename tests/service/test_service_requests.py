"""Requests of every kind, from the description of the routes and from a fuzzer."""

import json
import random
import threading

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from serving import SHOP, Client, Running, context, replayed, rows_of, wait_until

from noisewise.service.engine import Engine
from noisewise.service.log.store import Store
from noisewise.service.web.api import application
from noisewise.service.web.limits import Limits

pytestmark = pytest.mark.slow
PARTS = ["{", "}", "[", "]", ",", ":", "null", "true", "1e999", "-0", "NaN", "1" * 400]
PARTS += ['"\\ud800"', '"\\u0000"', '"age"', '"country"', '"de"', "0.5", '"event_id"', '"x"']
PARTS += ["\xff", "\\"]


@pytest.fixture
def service(tmp_path):
    engine = Engine(Store(f"sqlite:///{tmp_path}/log.db")).open()
    running = Running(application(engine, Limits(decisions=1e6)))
    running.engine, running.database = engine, f"sqlite:///{tmp_path}/log.db"
    status, held = running.client.ask("POST", "/v1/loops", {"name": "shop", "settings": SHOP})
    assert status == 201, held
    yield running
    running.stop()


def test_every_route_answers_what_its_description_allows(service):
    """No 5xx, and every error is JSON with a cause, whatever is asked for."""
    free = {"name": "free", "settings": {**SHOP, "context": {}}}
    assert service.client.ask("POST", "/v1/loops", free)[0] == 201
    status, known = service.client.ask("GET", "/openapi.json")
    assert status == 200
    schema = schemathesis.openapi.from_dict(known)
    schema.config.update(base_url=f"http://127.0.0.1:{service.port}")
    seen = {}

    for result in schema.get_all_operations():
        operation = result.ok()
        strategy = operation.as_strategy()

        @settings(max_examples=60, deadline=None, database=None, derandomize=True,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=strategy)
        def one(case):
            if "loop" in case.path_parameters and case.method != "DELETE":
                case.path_parameters["loop"] = "free"  # which is there
            answer = case.call()
            seen.setdefault(case.operation.label, set()).add(answer.status_code)
            assert answer.status_code < 500, answer.content
            if answer.status_code >= 400:
                error = answer.json()["error"]
                assert error["code"], error
                assert error["message"], error

        one()
    assert len(seen) > 14
    assert 201 in seen["POST /v1/loops/{loop}/decide"]
    print(seen)


def test_a_hundred_thousand_malformed_bodies(service):
    """The process stays up and the log intact; bodies that are good after all count."""
    rng, client = random.Random(3), service.client
    good = json.dumps({"context": context(0)})
    paths = ["decide", "decide:batch", "reward:batch", "events/x/reward"]
    statuses = {}
    for _ in range(100_000):
        kind, path = rng.random(), f"/v1/loops/shop/{rng.choice(paths)}"
        if kind < 0.5:
            text = "".join(rng.choices(PARTS, k=rng.randrange(12))).encode("latin-1")
        elif kind < 0.9:
            at = rng.randrange(len(good))
            text = (good[:at] + rng.choice(PARTS) + good[at + rng.randrange(3) :]).encode("latin-1")
        elif kind < 0.999:
            text = rng.randbytes(rng.randrange(40))
        else:
            text = b"[" * 20_000
        status, held = client.ask("POST", path, text)
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, (text, held)
        if status >= 400:
            assert held["error"]["message"], (text, held)
    assert statuses[422] + statuses[400] > 50_000
    rows = rows_of(service.database, "shop")
    learner = service.engine.find("shop")
    wait_until(lambda: learner.version == len(rows), 60)
    assert replayed(service.database, "shop") == (len(rows), learner.digest)
    print(statuses, len(rows))


def test_too_many_requests_at_a_time_are_refused(tmp_path):
    engine = Engine(Store(f"sqlite:///{tmp_path}/log.db")).open()
    running = Running(application(engine, Limits(in_flight=2)))
    running.client.ask("POST", "/v1/loops", {"name": "shop", "settings": SHOP})
    held, found = threading.Event(), []
    engine.writer.later(lambda connection: held.wait(20))

    def work(i):
        client = Client(f"http://127.0.0.1:{running.port}")
        found.append(client.ask("POST", "/v1/loops/shop/decide", {"context": context(i)})[0])
        if found[-1] == 503:
            held.set()
        client.connection.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [201, 201, 503]
    running.stop()
