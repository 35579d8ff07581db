"""The decision service: decisions, rewards, the log and what it promises."""

import json
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from serving import SHOP, Client, Running, context, replayed, rows_of, wait_until

from noisewise.agent.agent import Agent
from noisewise.cli import main
from noisewise.service import learner as learning
from noisewise.service import loops
from noisewise.service.engine import Engine
from noisewise.service.log import upkeep
from noisewise.service.log.owners import Fenced, Owner
from noisewise.service.log.store import (
    Connection,
    Store,
    Unavailable,
    file_system,
    refuse_network_share,
)
from noisewise.service.web import loop_facts, tokens
from noisewise.service.web.api import application
from noisewise.service.web.limits import Limits


class Service:
    """A service in this process, on a database in a temporary folder."""

    def __init__(self, folder, **limits):
        self.database = f"sqlite:///{folder}/log.db"
        self.engine = Engine(Store(self.database)).open()
        self.app = application(self.engine, Limits(**limits))
        self.running = Running(self.app)
        self.ask = self.running.client.ask

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.running.stop()

    def create(self, name="shop", **settings):
        status, held = self.ask(
            "POST", "/v1/loops", {"name": name, "settings": {**SHOP, **settings}}
        )
        assert status == 201, held

    def decide(self, i=0, **more):
        status, held = self.ask("POST", "/v1/loops/shop/decide", {"context": context(i), **more})
        assert status == 201, held
        return held

    def reward(self, event_id, value, **more):
        path = f"/v1/loops/shop/events/{event_id}/reward"
        return self.ask("POST", path, {"value": value, **more})

    def version(self):
        return self.engine.find("shop").version

    def learnt(self, version):
        """Wait until so many rows are learnt, and return the digest of the state."""
        wait_until(lambda: self.version() >= version, 20)
        return self.engine.find("shop").digest


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as running:
        yield running


def test_a_decision_and_its_reward(service):
    service.create()
    answer = service.decide(event_id="one")
    assert answer["event_id"] == "one"
    assert answer["group"] in ("agent", "explore", "holdout")
    assert answer["ranking"][0]["action"] == answer["action"]
    assert {each["action"] for each in answer["ranking"]} == {*SHOP["actions"]}
    assert sum(each["probability"] for each in answer["ranking"]) == pytest.approx(1.0)
    assert service.reward("one", 1) == (204, "")
    service.learnt(2)
    agent = service.engine.find("shop").agent
    assert (agent.state.count, agent.pending) == (1, ())


def test_retrying_is_safe(service):
    service.create()
    first = service.decide(event_id="one")
    assert service.decide(event_id="one") == first
    other = {"context": context(1), "event_id": "one"}
    status, held = service.ask("POST", "/v1/loops/shop/decide", other)
    assert (status, held["error"]["code"]) == (409, "event_id_taken")
    for value, status in ((1, 204), (1, 204), (0, 409)):
        assert service.reward("one", value)[0] == status
    assert service.reward("one", 0, reward_id="second")[0] == 204  # kept; the earliest is learnt
    assert service.reward("two", 1)[0] == 404
    service.learnt(3)
    assert len(rows_of(service.database, "shop")) == 3
    assert service.engine.find("shop").agent.state.count == 1


def test_items_of_a_batch_are_answered_on_their_own(service):
    service.create()
    items = [
        {"context": context(0), "event_id": "a"},
        {"context": {"age": "old", "country": "de"}},
        {"context": context(1), "colour": 1},
        {"context": context(2), "event_id": "b"},
        7,
    ]
    status, answers = service.ask("POST", "/v1/loops/shop/decide:batch", items)
    assert (status, [each["status"] for each in answers]) == (200, [201, 422, 422, 201, 422])
    assert answers[0]["event_id"] == "a"
    assert "age" in answers[1]["error"]["message"]
    rewards = [{"event_id": "a", "value": 1}, {"event_id": "c", "value": 1}, {"value": 1}]
    status, answers = service.ask("POST", "/v1/loops/shop/reward:batch", rewards)
    assert [each["status"] for each in answers] == [204, 404, 422]


def test_decisions_of_a_batch_count_those_before_them(service):
    """Three equal arms without a context: a batch of three does not play one of them thrice."""
    service.create(context={}, explore=0, holdout=0)
    answer = service.ask("POST", "/v1/loops/shop/decide:batch", [{}, {}, {}])[1]
    assert len({each["action"] for each in answer}) == 3


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"age": 3.0}, "context"),
        ({"age": "x", "country": "de"}, "context"),
        ({"age": 3.0, "country": "es"}, "context"),
        ({"age": 3.0, "country": "de", "colour": "red"}, "context"),
        ({"age": None, "country": "de"}, "context.age"),
        ({"age": [1], "country": "de"}, "context.age"),
    ],
)
def test_a_context_that_can_not_be_used_changes_nothing(service, wrong, where):
    service.create()
    status, held = service.ask("POST", "/v1/loops/shop/decide", {"context": wrong})
    assert (status, held["error"]["where"]) == (422, where)
    text = b'{"context": {"age": NaN, "country": "de"}}'
    assert service.ask("POST", "/v1/loops/shop/decide", text)[0] == 422
    assert rows_of(service.database, "shop") == []


def test_a_field_that_would_not_count_is_refused_by_name(service):
    """Such a field is a client's mistake: it is answered, and counted among refused contexts."""
    service.create()
    more = {"context": {**context(0), "colour": "red"}}
    held = service.ask("POST", "/v1/loops/shop/decide", more)[1]["error"]
    assert held["code"] == "invalid"
    assert held["message"].startswith("context has 'colour', which this loop would not use")
    assert "age, country" in held["message"]
    found = {each.name: each for each in loop_facts.health(service.engine.find("shop"))}
    assert found["refused contexts"].value == 1
    body = {"name": "b", "settings": {**SHOP, "interactions": None}}
    status, held = service.ask("POST", "/v1/loops", body)
    assert (status, "no field would count" in held["error"]["message"]) == (422, True)


WRONG = [
    ("decide", {"context": {"age": None}}, "context.age", "is null; pass a number or text"),
    ("decide", {"context": 3}, "context", "context is 3; pass an object"),
    ("decide", {"context": {}, "colour": 1}, "colour", "is no field that is known here"),
    ("decide", {"top": 1.5}, "top", "top is 1.5; pass a whole number"),
    ("decide", {"top": 0}, "top", "top is 0; pass a number of at least 1"),
    ("decide", {"actions": []}, "actions", "actions is []; pass at least 1"),
    ("decide", {"actions": ["a", 7]}, "actions.1", "actions.1 is 7; pass text"),
    ("decide", {"context": context(0), "actions": ["x"]}, "actions", "actions has 'x', which is"),
    ("decide", {"context": context(0), "actions": ["offer"] * 2}, "actions", "has one twice"),
    ("decide", {"context": context(0), "top": 4}, "top", "top is 4, of 3 actions; pass fewer"),
    ("decide", {"event_id": "a b"}, "event_id", 'event_id is "a b"; pass text that matches'),
    ("decide", {"subject": "x" * 300}, "subject", "xxx ...; pass at most 256 letters"),
    ("decide", 7, "", "the body is 7; pass an object"),
    ("decide:batch", {}, "", "the body is {}; pass a list"),
    ("events/x/reward", {}, "value", "value is missing; pass it"),
    ("events/x/reward", {"value": "much"}, "value", 'value is "much"; pass a number'),
    ("events/x/reward", {"value": 1, "trials": 2, "sigma": 3}, "", "pass one of them"),
]


@pytest.mark.parametrize(("path", "body", "where", "words"), WRONG)
def test_errors_say_what_is_wrong_and_what_to_do(service, path, body, where, words):
    service.create()
    status, held = service.ask("POST", f"/v1/loops/shop/{path}", body)
    assert (status, held["error"]["where"]) == (422, where)
    assert words in held["error"]["message"]
    if path == "decide":
        assert service.ask("POST", "/v1/loops/shop/decide:batch", [body])[1][0] == {
            "status": 422, "error": held["error"],
        }  # fmt: skip


def test_errors_of_settings_name_the_field(service):
    for settings, where, words in (
        ({"context": {"age": 1.5}}, "settings.context.age", "age is 1.5; pass 'number' or a list"),
        ({"context": {"c": ["de", 3]}}, "settings.context.c.1", "is 3; pass text"),
        ({"rewards": "clicks"}, "settings.rewards", "'binary', 'share' or 'continuous'"),
        ({"actions": {"a": [1, "x"]}}, "settings.actions.a.1", 'is "x"; pass a number'),
        ({"explore": 1.5}, "settings.explore", "is 1.5; pass a number of at most 1"),
    ):
        body = {"name": "shop", "settings": {**SHOP, **settings}}
        held = service.ask("POST", "/v1/loops", body)[1]["error"]
        assert (held["code"], held["where"]) == ("invalid", where), held
        assert words in held["message"]
    form = {"content-type": "application/x-www-form-urlencoded"}
    held = service.ask("POST", "/v1/loops", {"name": "shop"}, form)[1]["error"]
    assert "as JSON, with the header content-type: application/json" in held["message"]
    held = service.ask("GET", "/v1/loops?digest=1")[1]
    assert held == []
    service.create()
    held = service.ask("GET", "/v1/loops/shop/events?after=x")[1]["error"]
    assert (held["where"], held["message"]) == ("after", 'after is "x"; pass a whole number')


def test_probabilities_are_those_of_the_draws(service):
    """Shares of groups and actions in 2,000 decisions: each misses 5 sds with less than 1e-6."""
    service.create(context={}, explore=0.3, holdout=0.2, actions=["a", "b", "c"], baseline="c")
    answers = []
    for _ in range(4):
        answers += service.ask("POST", "/v1/loops/shop/decide:batch", [{}] * 500)[1]
    for name, share in (("holdout", 0.2), ("explore", 0.24)):
        seen = np.mean([each["group"] == name for each in answers])
        assert abs(seen - share) < 5 * np.sqrt(share * (1 - share) / len(answers))
    for name in "abc":
        p = np.array(
            [
                next(r["probability"] for r in each["ranking"] if r["action"] == name)
                for each in answers
            ]
        )
        played = np.array([each["action"] == name for each in answers])
        assert abs(np.sum(played - p)) < 5 * np.sqrt(np.sum(p * (1 - p)))


def test_a_subject_stays_in_its_group(service):
    service.create(holdout=0.5)
    held = [
        {service.decide(i, subject=f"user {s}")["group"] == "holdout" for i in range(3)}
        for s in range(12)
    ]
    assert all(len(each) == 1 for each in held)
    assert len(set.union(*held)) == 2  # all alike with probability 2^-11


def test_several_actions_and_their_slots(service):
    service.create(explore=0, holdout=0)
    answer = service.decide(top=2, event_id="page")
    assert len(answer["ranking"]) == 2 == len({*answer["actions"]})
    assert service.reward("page", 1)[0] == 422  # which slot?
    assert service.reward("page", 1, slot=1)[0] == 204
    assert service.reward("page", 0, slot=1)[0] == 409
    assert service.reward("page", 0, slot=0)[0] == 204
    service.learnt(3)
    agent = service.engine.find("shop").agent
    assert (agent.state.count, agent.pending) == (2, ())


def test_late_rewards_are_kept_and_not_learnt(service):
    service.create(reward_wait=0.01)
    service.decide(event_id="one")
    wait_until(lambda: service.version() == 2, 20)  # the decision, and the end of the wait
    status, held = service.reward("one", 1)
    assert (status, held) == (202, {"reward": "late"})
    batch = [{"event_id": "one", "value": 1}]
    assert service.ask("POST", "/v1/loops/shop/reward:batch", batch)[1] == [
        {"reward": "late", "status": 202}
    ]
    service.learnt(3)
    agent = service.engine.find("shop").agent
    assert (agent.state.count, agent.pending) == (0, ())


def test_a_default_reward_is_learnt_when_the_wait_is_over(service):
    service.create(reward_wait=0.01, default_reward=0.0)
    service.decide()
    service.learnt(2)
    assert service.engine.find("shop").agent.state.count == 1


def test_rewards_are_summed_when_asked(service):
    service.create(reward_wait=1.0, aggregate="sum", rewards="continuous")
    service.decide(event_id="one")
    assert service.reward("one", 1, sigma=2)[0] == 422  # of which sum would it be?
    for name, value in (("a", 2.5), ("b", -1.0)):
        assert service.reward("one", value, reward_id=name)[0] == 204
    service.learnt(4)
    agent = service.engine.find("shop").agent
    assert agent.state.count == 1
    assert agent.state.number.origin == 1.5


def played(service, count, start=0):
    """Play decisions, of which most have rewards, some twice and some never."""
    rng = np.random.default_rng(start)
    for i in range(start, start + count):
        answer = service.decide(i, event_id=f"e{i}")
        if rng.random() < 0.8:
            value = float(rng.random() < (0.7 if answer["action"] == "offer" else 0.3))
            assert service.reward(f"e{i}", value)[0] == 204


def test_the_state_is_a_function_of_the_log(service):
    """Served, replayed from the start, and replayed from a snapshot: equal to the last bit."""
    service.create()
    played(service, 60)
    version = len(rows_of(service.database, "shop"))
    digest = service.learnt(version)
    service.engine._save(service.engine.find("shop"))
    assert replayed(service.database, "shop") == (version, digest)
    played(service, 20, start=60)
    more = len(rows_of(service.database, "shop"))
    digest = service.learnt(more)
    for snapshots in (False, True):
        assert replayed(service.database, "shop", snapshots) == (more, digest)


def test_a_service_goes_on_where_it_was(tmp_path):
    with Service(tmp_path) as service:
        service.create()
        played(service, 30)
        digest = service.learnt(len(rows_of(service.database, "shop")))
    with Service(tmp_path) as service:
        assert service.engine.find("shop").digest == digest
        assert service.decide(event_id="e0") == service.decide(event_id="e0")


def test_verify_finds_a_row_that_was_changed(tmp_path):
    with Service(tmp_path) as service:
        service.create()
        played(service, 30)
    run = CliRunner()
    command = ["replay", "shop", "--verify", "--database", service.database]
    done = run.invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "equal" in done.output
    raw = sqlite3.connect(tmp_path / "log.db")
    raw.execute(
        "UPDATE events SET body = replace(body, '\"value\":1.0', '\"value\":0.0') "
        "WHERE id = (SELECT min(id) FROM events WHERE body LIKE '%\"value\":1.0%')"
    )
    raw.commit()
    raw.close()
    done = run.invoke(main, command)
    assert done.exit_code == 1
    assert "DIFFERENT" in done.output


def test_rollback(service):
    service.create()
    played(service, 20)
    version = len(rows_of(service.database, "shop"))
    service.learnt(version)
    count = service.engine.find("shop").agent.state.count
    status, _ = service.ask("POST", "/v1/loops/shop/rollback", {"version": 10})
    assert status == 200
    service.learnt(version + 1)
    assert service.engine.find("shop").agent.state.count < count
    pending = next(
        event for _, kind, event, *_ in rows_of(service.database, "shop")
        if kind == "decide" and not any(
            other == event and kind == "reward"
            for _, kind, other, *_ in rows_of(service.database, "shop")
        )
    )  # fmt: skip
    assert service.reward(pending, 1)[0] == 204  # its decision is no longer counted: learnt apart
    played(service, 5, start=20)
    version = len(rows_of(service.database, "shop"))
    digest = service.learnt(version)
    for snapshots in (False, True):
        assert replayed(service.database, "shop", snapshots) == (version, digest)
    status, held = service.ask("POST", "/v1/loops/shop/rollback", {"version": version + 1})
    assert (status, held["error"]["where"]) == (422, "version")


def test_old_rows_go_and_a_snapshot_stands_for_them(service):
    service.create(retain_days=1, reward_wait=3600)
    played(service, 20)
    version = len(rows_of(service.database, "shop"))
    service.learnt(version)
    service.engine._save(service.engine.find("shop"))
    raw = sqlite3.connect(service.database.removeprefix("sqlite:///"))
    raw.execute("UPDATE events SET at = at - 200000")
    raw.execute("UPDATE snapshots SET at = at - 200000")
    raw.commit()
    raw.close()
    service.engine._retain(service.engine.find("shop"))
    assert rows_of(service.database, "shop") == []
    played(service, 5, start=20)
    more = version + len(rows_of(service.database, "shop"))
    assert replayed(service.database, "shop") == (more, service.learnt(more))


@pytest.mark.parametrize("back", [0, 1])
def test_old_rows_stay_where_later_ones_need_them(service, back):
    """A decision whose reward comes after the base, and all to which a rollback leads."""
    service.create(retain_days=1)
    played(service, 10)
    service.decide(event_id="late")
    version = len(rows_of(service.database, "shop"))
    service.learnt(version)
    service.engine._save(service.engine.find("shop"))
    path = "/v1/loops/shop/rollback"
    assert service.ask("POST", path, {"version": version - back})[0] == 200
    assert service.reward("late", 1)[0] == 204  # of a decision that does not count any more
    digest = service.learnt(version + 2)
    raw = sqlite3.connect(service.database.removeprefix("sqlite:///"))
    raw.execute("UPDATE snapshots SET at = at - 200000")
    raw.execute("UPDATE events SET at = at - 200000")
    raw.commit()
    raw.close()
    with service.engine.store.reading() as connection:
        upkeep.retain(connection, service.engine.owner, service.engine.find("shop").loop)
    left = [row[1] for row in rows_of(service.database, "shop")]
    assert len(left) == version + 2 if back else left == ["decide", "rollback", "reward"]
    assert replayed(service.database, "shop") == (version + 2, digest)


def test_a_long_look_at_the_log_stops_nobody(service):
    """A command reads while the service writes, and sees the log as it was."""
    service.create()
    service.decide()
    with service.engine.store.reading() as connection, connection.snapshot():
        before = connection.rows("SELECT count(*) FROM events")
        service.decide()
        assert connection.rows("SELECT count(*) FROM events") == before


def test_settings_change_and_the_log_says_so(service):
    service.create()
    path = "/v1/loops/shop"
    assert service.ask("PATCH", path, {"settings": {"reward_wait": 60}})[0] == 200
    assert service.ask("GET", path)[1]["settings"]["reward_wait"] == 60
    status, held = service.ask("PATCH", path, {"settings": {"baseline": "offer"}})
    assert status == 422
    assert "can't be changed" in held["error"]["message"]
    before = service.decide(event_id="one")
    with service.engine.store.reading() as connection:  # as another process would
        loops.update(connection, "shop", {"explore": 0.2})
    assert service.ask("POST", f"{path}/pause")[1]["paused"]
    assert service.ask("GET", path)[1]["settings"]["explore"] == 0.2
    status, held = service.ask("POST", f"{path}/decide", {"context": context(0)})
    assert (status, held["error"]["code"]) == (409, "paused")
    assert service.decide(event_id="one") == before  # retried, though paused meanwhile
    assert not service.ask("POST", f"{path}/resume")[1]["paused"]
    service.decide()
    kinds = [row[1] for row in rows_of(service.database, "shop")]
    assert kinds == ["settings", "decide", *["settings"] * 3, "decide"]


GOODS = {"pen": {"price": 0.2, "kind": "office"}, "tea": {"price": 0.5, "kind": "food"}}


@pytest.mark.parametrize("kind", ["names", "features"])
def test_actions_are_added_to_a_running_loop(tmp_path, kind):
    """Served, replayed from the start, from a snapshot and after a rollback: equal bit for bit."""
    if kind == "names":
        old, new, given = ["a", "b"], ["c", "d"], {"reserve": 2}
        further = ["c", "b", "a", "d"]
    else:  # larger features: the largest number of a context that is not cut is another one
        old, new, given = GOODS, ["rum", "ink"], {"interactions": "shared"}
        rum, ink = {"price": 9e9, "kind": "food"}, {"price": 1.0, "kind": "office"}
        further = {"rum": rum, **GOODS, "ink": ink}
    path, huge = "/v1/loops/shop", {"age": 1e30, "country": "de"}
    with Service(tmp_path) as service:
        service.create(actions=old, baseline="uniform", **given)
        for i in range(20):
            service.decide(i, event_id=f"e{i}")
            service.reward(f"e{i}", i % 2)
        service.decide(event_id="huge", **{"context": huge})
        before = service.version()
        status, held = service.ask("PATCH", path, {"settings": {"actions": further}})
        assert status == 200, held
        assert [*held["settings"]["actions"]] == [*old, *new]
        assert held["settings"]["reserve"] == 0
        for i in range(20, 40):
            assert service.decide(i, event_id=f"e{i}", actions=new)["action"] in new
            assert service.reward(f"e{i}", i % 2)[0] == 204
        assert service.reward("huge", 1)[0] == 204
        assert {each["action"] for each in service.decide(event_id="x")["ranking"]} == {*old, *new}
        version = len(rows_of(service.database, "shop"))
        digest = service.learnt(version)
        assert replayed(service.database, "shop") == (version, digest)
        service.engine._save(service.engine.find("shop"))
        assert service.ask("POST", f"{path}/rollback", {"version": before})[0] == 200
        assert service.reward("x", 1)[0] == 204
        assert service.decide(event_id="y", actions=new)["action"] in new
        assert service.reward("y", 1)[0] == 204
        version += 4
        digest = service.learnt(version)
        for snapshots in (False, True):
            assert replayed(service.database, "shop", snapshots) == (version, digest)
        assert service.ask("GET", "/loops/shop")[0] == 200
    with Service(tmp_path) as service:
        assert service.engine.find("shop").digest == digest
        assert service.engine.find("shop").arms.actions == (*old, *new)
    done = CliRunner().invoke(main, ["replay", "shop", "--verify", "--database", service.database])
    assert (done.exit_code, done.output.count(": equal\n")) == (0, 2), done.output


@pytest.mark.parametrize(
    ("given", "actions", "words"),
    [
        ({}, ["a", "b", "c"], "has 1 more, and reserve is 0"),
        ({"reserve": 1}, ["a", "c"], "lacks or changes 'b'"),
        ({"reserve": 1}, {"a": [1], "b": [2]}, "lacks or changes 'a'"),
        ({"actions": GOODS, "interactions": "shared"},
         {**GOODS, "bed": {"price": 3.0, "kind": "home"}}, "a word among features"),
        ({"actions": GOODS, "interactions": "shared"},
         {**GOODS, "tea": {"price": 3.0, "kind": "food"}}, "lacks or changes 'tea'"),
        ({"reserve": 1}, 7, "actions is 7; pass a list or an object"),
        ({"reserve": 1}, ["a", "b", ["c"]], 'actions.2 is ["c"]; pass text'),
    ],
)  # fmt: skip
def test_actions_that_can_not_be_added(service, given, actions, words):
    service.create(**{"actions": ["a", "b"], "baseline": "uniform", **given})
    before = service.ask("GET", "/v1/loops/shop")[1]["settings"]
    status, held = service.ask("PATCH", "/v1/loops/shop", {"settings": {"actions": actions}})
    assert status == 422
    assert words in held["error"]["message"]
    assert service.ask("GET", "/v1/loops/shop")[1]["settings"] == before
    assert rows_of(service.database, "shop") == []


def test_an_agent_before_actions_were_added_is_that_of_its_settings(service):
    """Without a context it compares actions: as many as there were."""
    service.create(actions=["a", "b"], context={}, baseline="uniform", reserve=1)
    for i in range(3):
        service.decide(event_id=f"e{i}", context={})
        service.reward(f"e{i}", 1)
    digest = service.learnt(6)
    assert (
        service.ask("PATCH", "/v1/loops/shop", {"settings": {"actions": ["a", "b", "c"]}})[0] == 200
    )
    with service.engine.store.reading() as connection:
        built = learning.build(connection, loops.named(connection, "shop"), 6)
    assert (built.digest, built.arms.actions) == (digest, ("a", "b"))
    kept = learning.loaded(learning.saved(built.agent))
    assert (learning.digest(kept), kept.experiment.actions) == (digest, 2)


def test_settings_just_changed_are_not_replaced_by_older_ones(service, monkeypatch):
    """The learner has read the loops before a change, and goes on with them after it."""
    service.create(actions=["a", "b"], baseline="uniform", reserve=1)
    every, read, changed, seen = loops.every, threading.Event(), threading.Event(), []

    def slow(connection):
        if read.is_set():
            seen.append(service.engine.find("shop").loop.settings.actions)
            return every(connection)
        found = every(connection)
        read.set()
        changed.wait(20)
        return found

    monkeypatch.setattr(loops, "every", slow)
    assert read.wait(20)
    body = {"settings": {"actions": ["a", "b", "c"]}}
    assert service.ask("PATCH", "/v1/loops/shop", body)[0] == 200
    changed.set()
    wait_until(lambda: seen, 20)
    assert seen[0] == ["a", "b", "c"]


class Broken:
    """An event that no code can settle, such as one with a damaged row."""

    loop, event_id = 1, "broken"

    def settle(self, found):
        raise KeyError("asked")


def test_a_task_that_fails_is_raised_where_it_was_asked_for(service):
    service.create()

    def fails(connection):
        connection.change("DELETE FROM loops")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        service.engine.writer.later(fails).result(20)
    assert service.engine.alive
    service.decide()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_fails_leaves_nobody_waiting(tmp_path):
    """Not those of the same batch, nor those behind it, those who ask later, or who closes."""
    engine = Engine(Store(f"sqlite:///{tmp_path}/log.db")).open()
    writer, free = engine.writer, threading.Event()
    held = writer.later(lambda connection: free.wait(20))
    asked = [writer.append([]), writer.append([Broken()]), writer.append([])]
    behind = writer.later(lambda connection: None)
    free.set()
    assert held.result(20)
    for each in asked:
        assert isinstance(each.exception(20), KeyError)
    assert isinstance(behind.exception(20), KeyError | Unavailable)
    writer.join(20)
    assert not engine.alive
    assert isinstance(writer.append([]).exception(20), Unavailable)
    assert isinstance(writer.later(lambda connection: None).exception(20), Unavailable)
    closing = threading.Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_reading(service):
    service.create()
    played(service, 10)
    rows = rows_of(service.database, "shop")
    service.learnt(len(rows))
    listed = service.ask("GET", "/v1/loops")[1]
    assert [(each["name"], each["version"]) for each in listed] == [("shop", len(rows))]
    page = service.ask("GET", "/v1/loops/shop/events?after=3&limit=4")[1]
    assert [each["seq"] for each in page] == [4, 5, 6, 7]
    why = service.ask("GET", "/v1/loops/shop/explain?event_id=e0")[1]
    assert why["context"] == context(0)
    assert why["sentence"].startswith(repr(why["chosen"][0]))
    now = service.ask("GET", "/v1/loops/shop/explain")[1]
    assert {"gain", "health", "version"} <= {*now}
    text = service.ask("GET", "/metrics")[1]
    route = "/v1/loops/{loop}/decide"
    assert f'noisewise_requests_total{{route="{route}",status="201"}} 10' in text
    assert f'noisewise_version{{loop="shop"}} {len(rows)}' in text
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert service.ask("GET", path)[0] == 200


def test_the_gain_is_that_of_the_log(service):
    """Means by group from the rows are those of `loop_facts.gain`; a restart changes nothing."""
    service.create(holdout=0.4, explore=0)
    assert loop_facts.gain(service.engine.find("shop"))["difference"] is None
    played(service, 60)
    service.learnt(len(rows_of(service.database, "shop")))
    groups, values = {}, {"holdout": [], "agent": []}
    for _, kind, event, _, body in rows_of(service.database, "shop"):
        held = json.loads(body)
        if kind == "decide":
            groups[event] = held["group"]
        else:
            values[groups[event]].append(held["value"])
    for event in [*service.engine.find("shop").agent.pending]:  # else later ones do not count yet
        service.engine.find("shop").agent.forget(event)
    found = loop_facts.gain(service.engine.find("shop"))
    assert found["agent"] == pytest.approx(np.mean(values["agent"]))
    assert found["baseline"] == pytest.approx(np.mean(values["holdout"]))
    assert found["counts"]["decisions"] == [len(values["agent"]), len(values["holdout"])]
    assert found["lower"] < found["difference"] < found["upper"]
    assert {each.name for each in loop_facts.health(service.engine.find("shop"))} > {"restarts"}


def test_subjects_are_compared_where_there_are_some(service):
    service.create(holdout=0.5)
    for i in range(20):
        more = {"subject": f"user {i % 5}"} if i != 7 else {}
        service.decide(i, event_id=f"e{i}", **more)
        service.reward(f"e{i}", i % 2)
    version = len(rows_of(service.database, "shop"))
    digest = service.learnt(version)
    assert loop_facts.gain(service.engine.find("shop"))["counts"]["subjects"]
    assert replayed(service.database, "shop") == (version, digest)


def test_loops_are_deleted_and_names_are_free_again(service):
    service.create()
    service.decide()
    assert service.ask("POST", "/v1/loops", {"name": "shop", "settings": SHOP})[0] == 409
    assert service.ask("DELETE", "/v1/loops/shop")[0] == 204
    assert service.ask("GET", "/v1/loops/shop")[0] == 404
    service.create()
    assert service.decide()["version"] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"actions": []},
        {"actions": ["a", "a"]},
        {"baseline": "x"},
        {"explore": 1.5},
        {"reward_wait": 0},
        {"aggregate": "sum"},
        {"default_reward": 2},
        {"retain_days": 0.001},
        {"unknown": 1},
        {"context": {"word": 1000}, "actions": [str(i) for i in range(100)]},
    ],
)
def test_settings_that_can_not_be(service, settings):
    body = {"name": "shop", "settings": {**SHOP, **settings}}
    status, held = service.ask("POST", "/v1/loops", body)
    assert status == 422
    assert held["error"]["message"]
    assert "settings" in held["error"]["where"]
    assert service.ask("GET", "/v1/loops")[1] == []


def test_every_route_asks_for_its_scope(service):
    """With a token of each other scope 403, without one 401; a fitting one comes further."""
    service.create()
    service.decide(event_id="x")
    with service.engine.store.reading() as connection:
        held = {scope: tokens.create(connection, scope, [scope]) for scope in tokens.SCOPES}
    wait_until(lambda: len(service.engine.tokens) == len(held), 20)
    paths = service.app.openapi()["paths"]
    routes = [(m.upper(), path) for path, known in paths.items() for m in known]
    open_ones = {"/healthz", "/readyz"}
    assert len(routes) > 14
    seen = set()
    for method, path in routes:
        where = path.format(loop="shop", event_id="x")
        if path in open_ones:
            assert service.ask(method, where)[0] == 200
            continue
        assert service.ask(method, where)[0] == 401, path
        assert service.ask(method, where, headers={"authorization": "Bearer nw_x"})[0] == 401
        status = {
            scope: service.ask(method, where, headers={"authorization": f"Bearer {held[scope]}"})
            for scope in sorted(tokens.SCOPES, key="reward read decide admin".index)
        }
        allowed = [scope for scope, answer in status.items() if answer[0] != 403]
        assert len(allowed) == 1, (path, status)
        seen.add(allowed[0])
    assert seen == {*tokens.SCOPES}
    with service.engine.store.reading() as connection:
        tokens.revoke(connection, "read")
        stored = connection.rows("SELECT * FROM tokens")
    assert not any(token in str(stored) for token in held.values())
    wait_until(lambda: any(each.revoked for each in service.engine.tokens), 20)
    gone = {"authorization": f"Bearer {held['read']}"}
    assert service.ask("GET", "/v1/loops", headers=gone)[0] == 401


def test_a_page_of_another_site_changes_nothing(service):
    service.create()
    for origin, status in (("https://evil.example", 403), ("null", 403), (None, 200)):
        where = origin or f"http://127.0.0.1:{service.running.port}"
        asked = service.ask("POST", "/v1/loops/shop/pause", headers={"origin": where})
        assert asked[0] == status


def test_without_tokens_only_this_machine_is_answered(service, tmp_path):
    status, held = service.ask("GET", "/v1/loops", headers={"host": "evil.example"})
    assert (status, held["error"]["where"]) == (403, "host")
    done = CliRunner().invoke(
        main, ["serve", "--host", "0.0.0.0", "--database", f"sqlite:///{tmp_path}/b.db"]
    )
    assert done.exit_code == 2
    assert "no tokens" in done.output


def test_limits(tmp_path):
    with Service(tmp_path, body=2000, batch=3, decisions=5) as service:
        service.create()
        status, held = service.ask("POST", "/v1/loops/shop/decide", {"subject": "x" * 3000})
        assert (status, held["error"]["code"]) == (413, "body_too_large")
        batch = [{"context": context(0)}] * 4
        assert service.ask("POST", "/v1/loops/shop/decide:batch", batch)[0] == 422
        answers = [service.ask("POST", "/v1/loops/shop/decide:batch", batch[:3]) for _ in range(2)]
        assert [status for status, _ in answers] == [200, 429]


def test_a_full_disk_loses_nothing(service):
    """503 while there is no room, then it goes on."""
    service.create()
    service.decide(event_id="before")
    writer = service.engine.writer
    ((pages,),) = writer.do(lambda connection: connection.rows("PRAGMA page_count"))
    writer.do(lambda connection: connection.rows(f"PRAGMA max_page_count = {pages}"))
    big = [{"context": context(i), "event_id": f"b{i}"} for i in range(200)]
    status, held = service.ask("POST", "/v1/loops/shop/decide:batch", big)
    assert status == 503
    assert "full" in held["error"]["message"]
    assert [row[2] for row in rows_of(service.database, "shop")] == ["before"]
    writer.do(lambda connection: connection.rows(f"PRAGMA max_page_count = {2**30}"))
    assert service.ask("POST", "/v1/loops/shop/decide:batch", big)[0] == 200
    assert service.reward("before", 1)[0] == 204
    version = len(rows_of(service.database, "shop"))
    assert version == 202
    assert replayed(service.database, "shop") == (version, service.learnt(version))


def test_a_second_process_is_refused_and_network_shares_are(service, tmp_path):
    with pytest.raises(ValueError, match="served by another process"):
        Engine(Store(service.database)).open()
    mounts = f"a / ext4 rw 0 0\nb:/c {tmp_path} nfs4 rw 0 0\n"
    assert file_system(tmp_path / "log.db", mounts) == "nfs4"
    refuse_network_share(tmp_path / "log.db")
    with pytest.raises(ValueError, match="no folder"):
        Store(f"sqlite:///{tmp_path}/none/log.db")


def test_an_owner_that_was_replaced_writes_nothing(tmp_path):
    """Numbers, snapshots, ends of waits and deletions carry the fence, and fail with an old one."""
    with Service(tmp_path) as service:
        service.create(reward_wait=0.01, retain_days=1)
        service.decide()
        service.learnt(1)
    store = Store(service.database)
    with store.reading() as connection:
        loop = loops.named(connection, "shop")
        one, other = Owner(store), Owner(store)
        for owner in (one, other):
            owner.renew(connection, [loop.id])
        assert other.fences[loop.id] == one.fences[loop.id] + 1
        loops.update(connection, "shop", {})  # a row without a number
        before = connection.rows("SELECT id, seq FROM events"), rows_in(connection)
        writes = [
            lambda: one.number(connection, loop.id),
            lambda: upkeep.expire(connection, one, loop),
            lambda: upkeep.keep(connection, one, loop, 9, "digest", b""),
            lambda: upkeep.retain(connection, one, loop),
        ]
        fence = one.fences[loop.id]
        for write in writes:
            one.fences[loop.id] = fence
            with pytest.raises(Fenced), connection.transaction():
                write()
        one.fences[loop.id] = fence
        one.renew(connection, [loop.id])
        assert one.fences == {}
        assert (connection.rows("SELECT id, seq FROM events"), rows_in(connection)) == before
        assert other.number(connection, loop.id) > 0
    store.close()


def rows_in(connection):
    return [
        connection.rows(f"SELECT count(*) FROM {name}") for name in ("events", "snapshots", "loops")
    ]


def test_threads_do_not_count_a_reward_twice(service):
    service.create()
    service.decide(event_id="one")
    found = []

    def work():
        client = Client(f"http://127.0.0.1:{service.running.port}")
        for _ in range(5):
            path = "/v1/loops/shop/events/one/reward"
            found.append(client.ask("POST", path, {"value": 1})[0])
        client.connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {*found} == {204}
    assert len(rows_of(service.database, "shop")) == 2


def test_commands(tmp_path):
    database = ["--database", f"sqlite:///{tmp_path}/log.db"]

    def run(*words, code=0):
        done = CliRunner().invoke(main, [*words, *database])
        assert done.exit_code == code, done.output
        return done.output

    settings = json.dumps({**SHOP, "context": {"age": "number"}})
    run("loops", "create", "shop", "--settings", settings)
    assert "another loop" in run("loops", "create", "shop", "--settings", settings, code=2)
    assert "actions" in run("loops", "create", "b", "--settings", '{"actions": 3}', code=2)
    assert run("tokens", "create", "web", "--scope", "decide").startswith("nw_")
    assert "in use" in run("tokens", "list")
    run("tokens", "revoke", "web")
    assert "revoked" in run("tokens", "list")
    table = tmp_path / "past.csv"
    lines = ["age,action,reward", *(f"{20 + i},offer,{i % 2}" for i in range(40))]
    table.write_text("\n".join(lines))
    for _ in range(2):  # the same file counts once
        run("loops", "import", "shop", str(table))
    table.write_text("age,action,reward\n3,offer,1\n3,offer,7\n")
    assert "row 2" in run("loops", "import", "shop", str(table), code=2)
    lines = [
        {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "c":
         {"age": 20 + i, "_multi": [{"_tag": "offer"}, {"_tag": "nothing"}]}}
        for i in range(40)
    ]  # fmt: skip
    other = tmp_path / "past.dsjson"
    other.write_text("\n".join(map(json.dumps, lines)))
    run("loops", "create", "vw", "--settings", settings)
    assert "40 decisions" in run("loops", "import", "vw", str(other))
    with Service(tmp_path) as service:
        service.learnt(80)
        agent = Agent.for_binary_rewards(arms=service.engine.find("shop").agent.arms)
        for i in range(40):
            agent.adopt({"age": 20 + i}, "offer", key=i)
            agent.learn(i, float(i % 2))
        theirs = service.engine.find("shop").agent.state
        np.testing.assert_allclose(theirs.vector.theta, agent.state.vector.theta, rtol=1e-9)
        assert service.ask("GET", "/v1/loops")[0] == 401  # there was a token once
    assert "80 rows" in run("loops", "list")
    run("loops", "pause", "shop")
    assert "paused" in run("loops", "list")
    run("loops", "resume", "shop")
    run("loops", "rollback", "shop", "10")
    out = tmp_path / "log.parquet"
    assert "40 decisions" in run("loops", "export", "shop", str(out))
    assert "no loop 'x'" in run("replay", "x", code=2)


def test_an_export_is_what_evaluate_reads(service, tmp_path):
    import pandas

    import noisewise as nw

    service.create(explore=0.5)
    played(service, 40)
    out = Path(tmp_path) / "log.csv"
    done = CliRunner().invoke(
        main, ["loops", "export", "shop", str(out), "--database", service.database]
    )
    assert done.exit_code == 0, done.output
    frame = pandas.read_csv(out)
    assert {"slot", "group", "probabilities"} <= {*frame.columns}
    found = nw.off_policy_value(frame, context=["age", "country"])
    assert found.of("played", "mean").value == pytest.approx(frame["reward"].mean())


def test_an_agent_adopts_what_another_chose():
    """The same decisions and rewards in the same order: equal bit for bit."""
    settings = loops.Settings.model_validate(SHOP)
    one, other = settings.agent(), settings.agent()
    for i in range(60):
        for agent in (one, other):
            agent.adopt(context(i), SHOP["actions"][i % 3], key=i)
            if i % 4:
                agent.learn(i - i % 2, float(i % 3 == 0)) if agent.is_pending(i - i % 2) else None
        other = learning.loaded(learning.saved(other)) if i == 30 else other
    assert learning.digest(one) == learning.digest(other)
    assert one.state.pending == len(one.pending)
    with pytest.raises(ValueError, match="pending already"):
        one.adopt(context(0), "offer", key=one.pending[0])
    with pytest.raises(ValueError, match="no arms"):
        Agent.for_binary_rewards(dim=2).adopt({}, "offer", key=1)


def test_no_query_reads_the_whole_log(service, monkeypatch):
    """As SQLite plans them: else each request would take longer the longer the log is."""
    plans, plain = {}, Connection.rows

    def planned(self, sql, *values):
        plans[sql] = [row[3] for row in plain(self, f"EXPLAIN QUERY PLAN {sql}", *values)]
        return plain(self, sql, *values)

    service.create()
    monkeypatch.setattr(Connection, "rows", planned)
    items = [{"event_id": str(i), "context": context(i)} for i in range(3)]
    service.ask("POST", "/v1/loops/shop/decide:batch", items)
    rewards = [{"event_id": str(i), "value": 1} for i in range(3)]
    service.ask("POST", "/v1/loops/shop/reward:batch", rewards)
    service.ask("GET", "/v1/loops/shop/explain?event_id=1")
    service.ask("GET", "/v1/loops/shop/events?after=1")
    service.learnt(6)
    monkeypatch.undo()
    log = {sql: plan for sql, plan in plans.items() if "events" in sql}
    assert len(log) >= 5
    for sql, plan in log.items():
        assert not [part for part in plan if part in ("SCAN events", "SCAN e")], (sql, plan)
