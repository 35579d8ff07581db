"""The routes: JSON in, JSON out, and an error that says what is wrong and where."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException

from .. import __version__
from . import page, reading
from .engine import Engine
from .events import Answer, DecideBody, Identity, RewardBody
from .learner import Learner
from .limits import Allowance, Gate, Limits
from .loops import Name, NameTaken, Settings, Strict, dumped
from .store import Unavailable
from .tokens import Tokens

LOCAL = {"127.0.0.1", "localhost", "[::1]"}
CODES = {400: "bad_request", 401: "no_token", 403: "forbidden", 404: "not_found",
         405: "method_not_allowed", 409: "conflict", 413: "body_too_large", 422: "invalid",
         429: "too_many", 503: "unavailable"}  # fmt: skip
LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


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


class Cause(BaseModel):
    """What was wrong, and where."""

    code: str
    message: str
    where: str


class Failure(BaseModel):
    """The body of every error."""

    error: Cause


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, where: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.where = status, message, where
        self.code = code or CODES.get(status, "error")


class Meter:
    """What `/metrics` shows: requests by route and status, and how long decisions took."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds, self.slowest = [0] * (len(LATENCIES) + 1), 0.0
        self.total = 0.0

    def add(self, route: str, status: int) -> None:
        """Count a request."""
        self.requests[route, status] = self.requests.get((route, status), 0) + 1

    def took(self, seconds: float) -> None:
        """Count a decision."""
        self.total += seconds
        place = next((i for i, most in enumerate(LATENCIES) if seconds <= most), len(LATENCIES))
        self.seconds[place] += 1

    def text(self, engine: Engine) -> str:
        """Return all as Prometheus reads it."""
        lines = ["# TYPE noisewise_requests_total counter"]
        lines += [
            f'noisewise_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE noisewise_decide_seconds histogram")
        sofar = 0
        for most, count in zip([*LATENCIES, "+Inf"], self.seconds, strict=True):
            sofar += count
            lines.append(f'noisewise_decide_seconds_bucket{{le="{most}"}} {sofar}')
        lines += [f"noisewise_decide_seconds_sum {self.total}",
                  f"noisewise_decide_seconds_count {sofar}"]  # fmt: skip
        for what in ("learnt", "pending", "version", "restarts", "refused"):
            lines.append(f"# TYPE noisewise_{what} gauge")
            for name in reading.names(engine):
                value = reading.loop_state(engine, name)[what]
                lines.append(f'noisewise_{what}{{loop="{name}"}} {value}')
        return "\n".join(lines) + "\n"


def needs(scope: str) -> Any:
    """Return what a route depends on: a token with a scope, where there are tokens at all."""

    async def check(request: Request) -> str:
        tokens: Tokens = request.app.state.tokens
        if not tokens.known:
            host = request.headers.get("host", "").rsplit(":", 1)[0]
            if host not in LOCAL:
                raise Refused(403, "without tokens only this machine is answered", "host")
            return ""
        found = tokens.find(_given(request.headers.get("authorization", "")))
        if found is None:
            raise Refused(401, "pass a token that is in use: 'Authorization: Bearer nw_...'")
        if scope not in found.scopes:
            raise Refused(403, f"the token {found.name!r} lacks the scope {scope!r}")
        return found.name

    return Depends(check)


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
    app.state.engine, app.state.tokens = engine, Tokens(engine.store)
    app.state.limits, app.state.meter = limits, Meter()
    app.state.allowance = Allowance(limits.decisions)
    app.add_middleware(Gate, limits=limits)
    _errors(app)
    _decisions(app, engine)
    _loops(app, engine)
    _reads(app, engine)
    app.include_router(page.router(engine, app.state.meter, LATENCIES, [needs("read")]))
    return app


def _errors(app: FastAPI) -> None:
    async def invalid(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        status = 400 if first["type"] == "json_invalid" else 422
        return failure(Refused(status, first["msg"], _where(first["loc"])))

    async def other(_: Request, error: Any) -> Response:
        return failure(Refused(error.status_code, str(error.detail)), error.headers)

    async def unavailable(_: Request, error: Any) -> Response:
        return failure(Refused(503, f"nothing was stored; try again ({error})"))

    async def refused(_: Request, error: Any) -> Response:
        return failure(error)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)
    app.add_exception_handler(Unavailable, unavailable)
    app.add_exception_handler(Refused, refused)


def failure(error: Refused, headers: Any = None) -> Response:
    """Return an error as a response."""
    more = {401: {"www-authenticate": 'Basic realm="noisewise"'}, 503: {"retry-after": "1"}}
    return Response(
        dumped({"error": _cause(error)}), error.status, media_type="application/json",
        headers={**more.get(error.status, {}), **dict(headers or {})},
    )  # fmt: skip


def _cause(error: Refused) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "where": error.where}


def _where(loc: Any) -> str:
    return ".".join(str(each) for each in loc if each != "body")


def _decisions(app: FastAPI, engine: Engine) -> None:
    def ask(learner: Learner, body: DecideBody) -> Any:
        if learner.loop.paused:
            raise Refused(409, "the loop is paused; play the baseline", "loop", "paused")
        try:
            return engine.asked(learner, body)
        except ValueError as error:
            raise Refused(422, str(error), "context") from None

    def reward(learner: Learner, event_id: str, body: RewardBody, now: float) -> Any:
        try:
            return engine.rewarded(learner, event_id, body, now)
        except ValueError as error:
            raise Refused(422, str(error), "value") from None

    async def written(events: list[Any]) -> list[Answer]:
        if not events:
            return []
        answers: list[Answer] = await engine.append(events, asyncio.get_running_loop())
        return answers

    def allow(who: str, count: int) -> None:
        if not app.state.allowance.take(who, count):
            raise Refused(429, "too many decisions per second; try again", "", "too_many")

    def check(items: list[Any]) -> None:
        if len(items) > (most := app.state.limits.batch):
            raise Refused(422, f"the batch has {len(items)} items, above {most}; split it")

    async def each(
        items: list[Any], read: Callable[[Any], Any], take: Callable[[list[Any]], list[Any]]
    ) -> list[dict[str, Any]]:
        """Answer items one by one, with one write for all that can be used."""
        results: list[Any] = []
        for item in items:
            try:
                results.append(read(item))
            except ValidationError as error:
                first = error.errors(include_url=False, include_context=False)[0]
                results.append(Refused(422, first["msg"], _where(first["loc"])))
            except Refused as error:
                results.append(error)
        good = [r for r in results if not isinstance(r, Refused)]
        answers = iter(await written(take(good) if good else []))
        return [
            {"status": each.status, "error": _cause(each)} if isinstance(each, Refused)
            else _item(next(answers))
            for each in results
        ]  # fmt: skip

    @app.post("/v1/loops/{loop}/decide", status_code=201)
    async def decide_one(learner: This, body: DecideBody, who: Who) -> Response:
        """Take a decision."""
        began = time.perf_counter()
        allow(who, 1)
        (answer,) = await written(engine.decided(learner, [ask(learner, body)], time.time()))
        app.state.meter.took(time.perf_counter() - began)
        return _response(answer)

    @app.post("/v1/loops/{loop}/decide:batch")
    async def decide_many(learner: This, items: Annotated[list[Any], Body()], who: Who) -> Response:
        """Take many decisions, each answered on its own."""
        began = time.perf_counter()
        check(items)
        allow(who, len(items))
        answers = await each(
            items,
            lambda item: ask(learner, DecideBody.model_validate(item)),
            lambda asked: engine.decided(learner, asked, time.time()),
        )
        app.state.meter.took(time.perf_counter() - began)
        return Response(dumped(answers), media_type="application/json")

    @app.post(
        "/v1/loops/{loop}/events/{event_id}/reward", status_code=204,
        dependencies=[needs("reward")], responses={202: {"description": "late: not learnt"}},
    )  # fmt: skip
    async def reward_one(learner: This, event_id: Identity, body: RewardBody) -> Response:
        """Give a decision its reward."""
        (answer,) = await written([reward(learner, event_id, body, time.time())])
        return _response(answer)

    @app.post("/v1/loops/{loop}/reward:batch", dependencies=[needs("reward")])
    async def reward_many(learner: This, items: Annotated[list[Any], Body()]) -> Response:
        """Give many rewards, each answered on its own."""
        check(items)
        now = time.time()

        def read(item: Any) -> Any:
            body = RewardItem.model_validate(item)
            return reward(learner, body.event_id, body, now)

        return Response(dumped(await each(items, read, list)), media_type="application/json")


def _item(answer: Answer) -> dict[str, Any]:
    if answer.code:
        error = Refused(answer.status, answer.message, answer.where, answer.code)
        return {"status": answer.status, "error": _cause(error)}
    return {**(answer.body or {}), "status": answer.status}


def _response(answer: Answer) -> Response:
    if answer.code:
        raise Refused(answer.status, answer.message, answer.where, answer.code)
    if answer.body is None:
        return Response(status_code=answer.status)
    return Response(dumped(answer.body), answer.status, media_type="application/json")


def _loops(app: FastAPI, engine: Engine) -> None:
    admin = [needs("admin")]

    def known(name: str) -> JSONResponse:
        return JSONResponse(reading.loop_state(engine, name))

    def refusing(field: str, task: Callable[[], Any]) -> Any:
        try:
            return task()
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise Refused(422, first["msg"], _where(first["loc"])) from None
        except ValueError as error:
            raise Refused(409 if isinstance(error, NameTaken) else 422, str(error), field) from None

    @app.post("/v1/loops", status_code=201, dependencies=admin)
    def create(body: NewLoop) -> Response:
        """Create a loop."""
        refusing("name", lambda: engine.create(body.name, body.settings))
        return JSONResponse(reading.loop_state(engine, body.name), 201)

    @app.patch("/v1/loops/{loop}", dependencies=admin)
    def patch(learner: This, settings: Annotated[dict[str, Any], Body(embed=True)]) -> Response:
        """Change settings."""
        loop = learner.loop
        changed = refusing("settings", lambda: loop.settings.changed(settings))
        engine.change(learner, changed, loop.paused)
        return known(loop.name)

    @app.post("/v1/loops/{loop}/pause", dependencies=admin)
    def pause(learner: This) -> Response:
        """Refuse decisions from now on; rewards are still learnt."""
        engine.change(learner, learner.loop.settings, True)
        return known(learner.loop.name)

    @app.post("/v1/loops/{loop}/resume", dependencies=admin)
    def resume(learner: This) -> Response:
        """Take decisions again."""
        engine.change(learner, learner.loop.settings, False)
        return known(learner.loop.name)

    @app.post("/v1/loops/{loop}/rollback", dependencies=admin)
    def rollback(learner: This, body: Version) -> Response:
        """Let the state be again what it was after so many rows of the log."""
        refusing("version", lambda: engine.rollback(learner, body.version))
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
        return JSONResponse([reading.loop_state(engine, each) for each in reading.names(engine)])

    @app.get("/v1/loops/{loop}", dependencies=read)
    def one(learner: This, digest: bool = False) -> JSONResponse:
        """Return settings and state of a loop; with ``digest`` a hash of all that was learnt."""
        return JSONResponse(reading.loop_state(engine, learner.loop.name, digest))

    @app.get("/v1/loops/{loop}/events", dependencies=read)
    def events(
        learner: This,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> JSONResponse:
        """Return rows of the log, in order."""
        return JSONResponse(reading.recent_events(engine, learner.loop.name, after, limit))

    @app.get("/v1/loops/{loop}/explain", dependencies=read)
    def explain(learner: This, event_id: Identity) -> JSONResponse:
        """Return why a decision was taken."""
        try:
            return JSONResponse(reading.explain(engine, learner.loop.name, event_id))
        except LookupError:
            raise Refused(404, "there is no such decision", "event_id", "unknown_event") from None

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
        """Say that the process answers."""
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """Say whether decisions are taken."""
        if not engine.alive:
            raise Refused(503, "the service is ending")
        return JSONResponse({"status": "ready"})
