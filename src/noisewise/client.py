"""A client of the decision service. It needs the standard library alone: the file may be copied.

>>> client = Client("http://127.0.0.1:1")  # where nobody answers
>>> decision = client.decide("shop", {"age": 31}, baseline="nothing")
>>> decision.action, decision.group
('nothing', 'fallback')
>>> client.reward("shop", decision, 1.0)  # of a decision that the service has not taken
False
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import local
from typing import Any, TypedDict, Unpack
from urllib.parse import quote, urlsplit

AGAIN = {429, 500, 502, 503, 504}  # statuses after which the same is asked once more
PAUSE = 0.02  # seconds before it is, doubled each time
log = logging.getLogger("noisewise.client")


class ServiceError(Exception):
    """The service has refused a request, or was not reached (status 0)."""

    def __init__(self, status: int, code: str, message: str, where: str = "") -> None:
        super().__init__(f"{message} ({where})" if where else message)
        self.status, self.code, self.message, self.where = status, code, message, where


class Asked(TypedDict, total=False):
    """What a request for a decision may have beside its context."""

    event_id: str
    subject: str
    actions: Sequence[str]
    top: int


class Given(TypedDict, total=False):
    """What a reward may have beside its value."""

    reward_id: str
    trials: float
    sigma: float
    slot: int


class _Line(local):
    """The connection of a thread."""

    connection: HTTPConnection | None = None


@dataclass(frozen=True)
class Decision:
    """What to play. ``group`` is agent, explore or holdout; or fallback, and ``cause`` says why.

    One that fell back has no ``event_id``: a reward of it would be that of another action.
    """

    event_id: str
    actions: list[str]
    group: str
    ranking: list[dict[str, object]] = field(default_factory=list)
    version: int = 0
    cause: str = ""

    @property
    def action(self) -> str:
        """The first of the actions, or the only one."""
        return self.actions[0]


class Client:
    """Asks the service, over a connection per thread that stays open.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8000``.
    token : str, optional
        With the scopes decide and reward; to explain it needs read.
    timeout : float
        Seconds that a decision may take, retries included; then the baseline is played.
    patience : float
        Seconds for everything else, retries included; then `ServiceError` is raised.
    """

    def __init__(
        self, address: str, token: str | None = None, *, timeout: float = 0.25, patience: float = 10
    ) -> None:
        self._address, self._timeout, self._patience = urlsplit(address), timeout, patience
        self._headers = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._mine = _Line()

    def decide(
        self,
        loop: str,
        context: Mapping[str, float | str] | None = None,
        *,
        baseline: str | Sequence[str],
        **more: Unpack[Asked],
    ) -> Decision:
        """Return a decision; that of the baseline where the service gives none in time.

        ``more`` are ``event_id``, ``subject``, ``actions`` and ``top``. The same ``event_id`` has
        the same answer; by default it is a new one, and so a retry counts once.
        """
        return self.decide_many(loop, [{"context": dict(context or {}), **more}], baseline)[0]

    def decide_many(
        self, loop: str, items: Sequence[Mapping[str, object]], baseline: str | Sequence[str]
    ) -> list[Decision]:
        """Return decisions for many requests, each a dictionary as `decide` takes them."""
        named = [{"event_id": uuid.uuid4().hex, **each} for each in items]
        try:
            _, found = self._ask(f"{_path(loop)}/decide:batch", named, self._timeout)
        except ServiceError as error:
            refused = {"code": error.code, "message": str(error)}
            found = [{"error": refused}] * len(named)
        return [_decision(answer, baseline) for answer in found]

    def reward(
        self, loop: str, decision: Decision | str, value: float, **more: Unpack[Given]
    ) -> bool:
        """Give a decision, or that of an event, its reward; return whether it came in time.

        ``more`` are ``reward_id``, ``trials``, ``sigma`` and ``slot``. A decision that fell back
        to the baseline has none: the service has not taken it.
        """
        if isinstance(decision, Decision):
            if decision.group == "fallback":
                return False
            decision = decision.event_id
        path = f"{_path(loop)}/events/{quote(decision, safe='')}/reward"
        return self._ask(path, {"value": value, **more}, self._patience)[0] == 204

    def reward_many(
        self, loop: str, items: Sequence[Mapping[str, object]]
    ) -> list[bool | ServiceError]:
        """Give many rewards, each a dictionary with ``event_id`` and ``value``."""
        _, found = self._ask(f"{_path(loop)}/reward:batch", list(items), self._patience)
        return [
            ServiceError(each["status"], **each["error"]) if "error" in each
            else each["status"] == 204
            for each in found
        ]  # fmt: skip

    def explain(self, loop: str, event_id: str | None = None) -> dict[str, object]:
        """Return why a decision was taken, or what is known of the loop now."""
        asked = f"?event_id={quote(event_id, safe='')}" if event_id else ""
        found: dict[str, object] = self._ask(f"{_path(loop)}/explain{asked}", None, self._patience)[
            1
        ]
        return found

    def _ask(self, path: str, body: object, seconds: float) -> tuple[int, Any]:
        """Return status and body of an answer, asking again until the time is over."""
        ends, pause = time.monotonic() + seconds, PAUSE
        text = None if body is None else json.dumps(body, allow_nan=False).encode()
        while True:
            fresh = self._mine.connection is None
            try:
                status, found = self._once(path, text, ends)
                if status < 300:
                    return status, found
                error = _error(status, found)
            except (OSError, HTTPException) as problem:
                self.close()
                error = ServiceError(0, "unreached", f"{type(problem).__name__}: {problem}")
                if not fresh and not isinstance(problem, TimeoutError):
                    continue  # the connection was idle for too long
            if error.status not in {0, *AGAIN} or time.monotonic() + pause >= ends:
                raise error
            time.sleep(pause)
            pause *= 2

    def _once(self, path: str, text: bytes | None, ends: float) -> tuple[int, Any]:
        connection = self._mine.connection
        if connection is None:
            kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
            connection = kind(self._address.hostname or "", self._address.port)
            self._mine.connection = connection
        method, where = "GET" if text is None else "POST", self._address.path.rstrip("/") + path
        connection.timeout = _left(ends)
        if connection.sock is not None:
            connection.sock.settimeout(_left(ends))
        connection.request(method, where, text, self._headers)
        connection.sock.settimeout(_left(ends))
        answer = connection.getresponse()
        held = b""
        while part := answer.read1(65536):
            held += part
            if connection.sock is not None:
                connection.sock.settimeout(_left(ends))
        try:
            return answer.status, json.loads(held) if held else None
        except ValueError:
            raise HTTPException("the answer is no JSON") from None

    def close(self) -> None:
        """Close the connection of this thread; used again, it opens again."""
        connection = self._mine.connection
        self._mine.connection = None
        if connection is not None:
            connection.close()


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def _path(loop: str) -> str:
    return f"/v1/loops/{quote(loop, safe='')}"


def _error(status: int, found: Any) -> ServiceError:
    try:
        return ServiceError(status, **found["error"])
    except (KeyError, TypeError):  # of something between us and the service
        return ServiceError(status, "unknown", f"status {status}")


def _decision(answer: dict[str, Any], baseline: str | Sequence[str]) -> Decision:
    if "error" in answer:
        cause = f"{answer['error']['code']}: {answer['error']['message']}"
        log.warning("the baseline is played, since %s", cause)
        actions = [baseline] if isinstance(baseline, str) else list(baseline)
        return Decision("", actions, "fallback", cause=cause)
    actions = answer.get("actions") or [answer["action"]]
    return Decision(
        answer["event_id"], actions, answer["group"], answer["ranking"], answer["version"]
    )
