"""The routes, and who may ask for them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Annotated, Any, TypeVar

from fastapi import Body, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import Field, ValidationError

from ... import __version__
from ..choices import Request as Asked
from ..engine import Engine
from ..learner import Learner
from ..log.events import DecideBody, Identity, RewardBody, Rewarded
from ..log.writer import Event
from ..loops import Name, Settings, Strict, dumped
from . import loop_facts, page
from .answers import Answer, Failure, Refused, answer_errors, refusal, refusing
from .limits import Allowance, Gate, Limits
from .meter import Meter
from .tokens import find

T = TypeVar("T")

LOCAL = {"127.0.0.1", "localhost", "[::1]"}


class NewLoop(Strict):
    """A loop to be created."""

    name: Name
    settings: Settings


class Version(Strict):
    """A number of the log."""

    version: Annotated[int, Field(ge=0, le=2**62)]


class RewardItem(RewardBody):
    """A reward in a batch."""

    event_id: Identity


scopes: dict[object, str] = {}  # that a dependency of a route asks for


@cache
def needs(scope: str) -> Any:
    """Return what a route depends on: a token with a scope, where there are tokens at all."""

    async def token_with(request: Request) -> str:
        """Return the name of the token."""
        known, headers = request.app.state.engine.tokens, request.headers
        host = headers.get("host", "")
        if request.method != "GET" and headers.get("origin", host).rpartition("/")[2] != host:
            raise Refused(403, "a page of another site has asked for this", "origin")
        if not known:
            if host.rsplit(":", 1)[0] not in LOCAL:
                raise Refused(403, "without tokens only this machine is answered", "host")
            return ""
        found = find(known, _given(headers.get("authorization", "")))
        if found is None:
            raise Refused(401, "pass a token that is in use: 'Authorization: Bearer nw_...'")
        if scope not in found.scopes:
            raise Refused(403, f"the token {found.name!r} lacks the scope {scope!r}")
        return found.name

    scopes[token_with] = scope
    return Depends(token_with)


def _given(header: str) -> str:
    """Return the token of a header; browsers send it as the password."""
    kind, _, rest = header.partition(" ")
    if kind.lower() != "basic":
        return rest.strip()
    try:
        return base64.b64decode(rest, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


async def found(request: Request, loop: Name) -> Learner:
    """Return the learner of the loop in the path."""
    engine: Engine = request.app.state.engine
    try:
        return engine.find(loop)
    except LookupError:
        raise Refused(404, f"there is no loop {loop!r}", "loop", "unknown_loop") from None


This = Annotated[Learner, Depends(found)]
Who = Annotated[str, needs("decide")]


def application(engine: Engine, limits: Limits = Limits()) -> FastAPI:  # noqa: B008 - a value
    """Return the service of an engine that is open; it is closed with the application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(engine.close)

    causes: dict[int | str, dict[str, Any]] = {
        status: {"model": Failure} for status in (400, 401, 403, 404, 409, 413, 422, 429, 503)
    }
    app = FastAPI(
        title="noisewise", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url=None, responses=causes,
    )  # fmt: skip
    app.state.engine, app.state.limits, app.state.meter = engine, limits, Meter()
    app.state.allowance = Allowance(limits.decisions)
    app.add_middleware(Gate, limits=limits, meter=app.state.meter)
    answer_errors(app)
    _decisions(app, engine)
    _loops(app, engine)
    _reads(app, engine)
    app.include_router(page.router(engine, app.state.meter, [needs("read")]))
    return app


def _decisions(app: FastAPI, engine: Engine) -> None:
    def rewarded(learner: Learner, event_id: str, body: RewardBody) -> Rewarded:
        return refusing("value", engine.rewarded, learner, event_id, body, time.time())

    async def written(events: Sequence[Event]) -> list[Answer | Refused]:
        return await asyncio.wrap_future(engine.append(events))

    def allow(who: str, count: int) -> None:
        if not app.state.allowance.take(who, count):
            raise Refused(429, "too many decisions per second; try again", "", "too_many")

    def check(items: list[object]) -> None:
        if len(items) > (most := app.state.limits.batch):
            raise Refused(422, f"the batch has {len(items)} items, above {most}; split it")

    async def each(
        items: list[object],
        read: Callable[[object], T],
        take: Callable[[list[T]], Sequence[Event]],
    ) -> Response:
        """Answer items one by one, with one write for all that can be used."""
        good, refused = list[T](), dict[int, Refused]()
        for i, given in enumerate(items):
            try:
                good.append(read(given))
            except (ValidationError, Refused) as error:
                refused[i] = refusal(error, given)
        answers = iter(await written(take(good)) if good else ())
        found = [(refused.get(i) or next(answers)).item for i in range(len(items))]
        return Response(dumped(found), media_type="application/json")

    @app.post("/v1/loops/{loop}/decide", status_code=201)
    async def decide_one(learner: This, body: DecideBody, who: Who) -> Response:
        """Take a decision.

        The answer has ``event_id``, ``action``, ``ranking`` (of every action, or of the ``top``:
        action, estimate, lower, upper and the probability of being played), ``group`` (agent,
        explore or holdout) and ``version``, the row of the log up to which was learnt; with ``top``
        also ``actions``. The same ``event_id`` has the same answer again. 409: the ``event_id`` has
        another request, or the loop is paused. 422: the context can't be used, nothing is kept.
        """
        began = time.perf_counter()
        allow(who, 1)
        asked = refusing("context", engine.asked, learner, body)
        (answer,) = await written(engine.decided(learner, [asked], time.time()))
        app.state.meter.took(time.perf_counter() - began)
        return answer.response

    @app.post("/v1/loops/{loop}/decide:batch")
    async def decide_many(
        learner: This, items: Annotated[list[object], Body()], who: Who
    ) -> Response:
        """Take many decisions: a list of such bodies.

        The answer is a list: for each item its ``status``, and the decision or an ``error``.
        """
        began = time.perf_counter()
        check(items)
        allow(who, len(items))

        def read(given: object) -> Asked:
            return refusing("context", engine.asked, learner, DecideBody.model_validate(given))

        found = await each(items, read, lambda good: engine.decided(learner, good, time.time()))
        app.state.meter.took(time.perf_counter() - began)
        return found

    @app.post(
        "/v1/loops/{loop}/events/{event_id}/reward", status_code=204,
        dependencies=[needs("reward")], responses={202: {"description": "late: not learnt"}},
    )  # fmt: skip
    async def reward_one(learner: This, event_id: Identity, body: RewardBody) -> Response:
        """Give a decision its reward, once per ``reward_id``.

        204: kept. 202: kept, but it came after the wait and is not learnt. 404: there is no such
        decision. 409: the ``reward_id`` has another value.
        """
        (answer,) = await written([rewarded(learner, event_id, body)])
        return answer.response

    @app.post("/v1/loops/{loop}/reward:batch", dependencies=[needs("reward")])
    async def reward_many(learner: This, items: Annotated[list[object], Body()]) -> Response:
        """Give many rewards: a list of such bodies, each with an ``event_id``.

        The answer is a list: for each item its ``status``, and an ``error`` if there is one.
        """
        check(items)

        def read(given: object) -> Rewarded:
            body = RewardItem.model_validate(given)
            return rewarded(learner, body.event_id, body)

        return await each(items, read, list)


def _loops(app: FastAPI, engine: Engine) -> None:
    admin = [needs("admin")]

    def known(name: str, status: int = 200) -> JSONResponse:
        return JSONResponse(loop_facts.loop_state(engine, engine.find(name)), status)

    @app.post("/v1/loops", status_code=201, dependencies=admin)
    def create(body: NewLoop) -> Response:
        """Create a loop.

        The answer has its settings and state. 409: another loop has the name.
        """
        refusing("name", engine.create, body.name, body.settings)
        return known(body.name, 201)

    @app.patch("/v1/loops/{loop}", dependencies=admin)
    def patch(learner: This, settings: Annotated[dict[str, object], Body(embed=True)]) -> Response:
        """Change settings: those given, while the others stay.

        What was learnt rests on context, interactions, reserve, rewards, holdout and baseline, so
        these can't be changed (422). ``actions`` may have new ones beside all that there are. Each
        takes one of the ``reserve``, unless interactions are "shared" or null and actions have
        features.
        """
        try:
            refusing("settings", engine.change, learner.loop.name, settings)
        except ValidationError as error:
            raise refusal(error, settings) from None
        return known(learner.loop.name)

    @app.post("/v1/loops/{loop}/pause", dependencies=admin)
    def pause(learner: This) -> Response:
        """Refuse decisions from now on (409); rewards are still learnt."""
        engine.change(learner.loop.name, {}, True)
        return known(learner.loop.name)

    @app.post("/v1/loops/{loop}/resume", dependencies=admin)
    def resume(learner: This) -> Response:
        """Take decisions again."""
        engine.change(learner.loop.name, {}, False)
        return known(learner.loop.name)

    @app.post("/v1/loops/{loop}/rollback", dependencies=admin)
    def rollback(learner: This, body: Version) -> Response:
        """Let the state be again what it was after so many rows of the log."""
        refusing("version", engine.rollback, learner.loop.name, body.version)
        return known(learner.loop.name)

    @app.delete("/v1/loops/{loop}", status_code=204, dependencies=admin)
    def delete(learner: This) -> Response:
        """Delete a loop with its log."""
        engine.delete(learner)
        return Response(status_code=204)


def _reads(app: FastAPI, engine: Engine) -> None:
    read = [needs("read")]

    @app.get("/v1/loops", dependencies=read)
    def every() -> JSONResponse:
        """List the loops."""
        learners = sorted(engine.learners.items())
        return JSONResponse([loop_facts.loop_state(engine, each) for _, each in learners])

    @app.get("/v1/loops/{loop}", dependencies=read)
    def one(learner: This, digest: bool = False) -> JSONResponse:
        """Return settings and state of a loop; with ``digest`` a hash of all that was learnt."""
        return JSONResponse(loop_facts.loop_state(engine, learner, digest))

    @app.get("/v1/loops/{loop}/events", dependencies=read)
    def events(
        learner: This,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> JSONResponse:
        """Return rows of the log with a number above ``after``, in order."""
        return JSONResponse(loop_facts.recent_events(engine, learner, after, limit))

    @app.get("/v1/loops/{loop}/explain", dependencies=read)
    def explain(learner: This, event_id: Identity | None = None) -> JSONResponse:
        """Return why a decision was taken: context, ranking, group, a sentence, and its rewards.

        Without ``event_id``, what is known now: the state of the loop, what the agent earns more
        than the baseline with an interval that holds at all times, and what is odd.
        """
        if event_id is None:
            state, health = loop_facts.loop_state(engine, learner), loop_facts.health(learner)
            more = {"gain": loop_facts.gain(learner), "health": [each._asdict() for each in health]}
            return JSONResponse(state | more)
        found = loop_facts.decisions(engine, learner, [event_id])
        if not found:
            raise Refused(404, "there is no such decision", "event_id", "unknown_event")
        return JSONResponse(found[0])

    @app.get("/metrics", dependencies=read)
    def metrics() -> PlainTextResponse:
        """Return counts as Prometheus reads them."""
        return PlainTextResponse(app.state.meter.text(engine))

    @app.get("/openapi.json", dependencies=read, include_in_schema=False)
    def openapi() -> JSONResponse:
        """Return the description of all routes."""
        return JSONResponse(app.openapi())

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        """Say that the process answers. It needs no token."""
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """Say whether the log can be read, or else 503. It needs no token."""
        if not (engine.alive and engine.reached):
            raise Refused(503, "the log can't be read, or the service is ending")
        return JSONResponse({"status": "ready"})
