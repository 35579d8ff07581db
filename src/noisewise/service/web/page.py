"""The page: what a loop decides, what it has learnt and whether it is better than its baseline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources

from fastapi import APIRouter, FastAPI, Request, params
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from ...agent.explanations.health import Finding
from ...support.printing import clean, count_of
from ..engine import Engine
from ..learner import Learner
from ..log.store import Unavailable
from . import charts, loop_facts, sections
from .meter import LATENCIES, Meter
from .recent import WINDOWS, Recent

EVERY = 2.0  # seconds between looks at the log while nobody looks at the page
SPANS = {"10m": "10 minutes", "1h": "Hour", "1d": "Day", "30d": "30 days"}
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip
log = logging.getLogger("noisewise")


def router(engine: Engine, meter: Meter, read: list[params.Depends]) -> APIRouter:
    """Return the routes of the page; ``read`` are what a route depends on that shows a loop."""
    page = Page(engine, meter)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        ended = asyncio.Event()
        watching = asyncio.create_task(page.watch(ended))
        yield
        ended.set()
        await watching

    routes = APIRouter(lifespan=lifespan, include_in_schema=False)

    @routes.get("/", dependencies=read)
    def every() -> Response:
        return page.shown("loops.html", 200, loops=page.loops())

    @routes.get("/loops/{name}", dependencies=read)
    def one(name: str, request: Request, over: str = "") -> Response:
        try:
            known = page.loop(name, over, str(request.base_url))
        except LookupError:
            return page.shown("missing.html", 404, name=name)
        return page.shown("loop.html", 200, **known)

    @routes.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in page.files:
            return Response(status_code=404)
        kind = KINDS[name.rpartition(".")[2]]
        return Response(page.files[name], media_type=kind, headers=HEADERS)

    return routes


class Page:
    """Pages of an engine's loops, with what this process has seen of them of late."""

    def __init__(self, engine: Engine, meter: Meter) -> None:
        self.engine, self.meter = engine, meter
        self.recent: dict[int, Recent] = {}
        folder = resources.files(__package__) / "static"
        self.files = {each.name: each.read_bytes() for each in folder.iterdir()}
        self.templates = Environment(
            loader=PackageLoader(__package__, "templates"), autoescape=True, finalize=_spelt,
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.filters.update(
            number=charts.number, ago=sections.ago, moment=sections.moment
        )
        self.templates.globals.update(charts=charts, count_of=count_of)

    def shown(self, template: str, status: int, **known: object) -> Response:
        """Return a page."""
        text = self.templates.get_template(template).render(now=time.time(), **known)
        return HTMLResponse(text, status, {**HEADERS, "cache-control": "no-store"})

    async def watch(self, ended: asyncio.Event) -> None:
        """Follow the log, so that curves have no gaps where nobody looks."""
        while not ended.is_set():
            try:
                await asyncio.to_thread(self._follow)
            except Unavailable as error:
                log.warning("the page can't read the log", extra={"cause": str(error)})
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), EVERY)

    def _follow(self) -> None:
        for learner in [*self.engine.learners.values()]:
            self.seen(learner)
        there = {learner.loop.id for learner in [*self.engine.learners.values()]}
        for gone in {*self.recent} - there:
            self.recent.pop(gone, None)

    def seen(self, learner: Learner) -> Recent:
        """Return what happened in a loop up to now."""
        recent = self.recent.setdefault(learner.loop.id, Recent(learner))
        recent.refresh(self.engine.store)
        return recent

    def loops(self) -> list[dict[str, object]]:
        """Return what the list shows of each loop."""
        found, now = list[dict[str, object]](), time.time()
        for _, learner in sorted(self.engine.learners.items()):
            recent = self.seen(learner)
            hour = recent.window("1h", now)
            found.append({
                "state": loop_facts.loop_state(self.engine, learner), "gain": recent.gain,
                "decisions": sum(bucket.decisions for _, bucket in hour),
                "rewards": sum(bucket.rewards for _, bucket in hour),
                "odd": sum(bool(each.advice) for each in self.health(recent)),
            })  # fmt: skip
        return found

    def health(self, recent: Recent) -> list[Finding]:
        """Return findings, those with advice first."""
        day = [bucket for _, bucket in recent.window("1d", time.time())]
        late, count = sum(each.late for each in day), sum(each.rewards for each in day)
        said = (
            f"{count_of(late, 'reward')} of the last day's {count:,} came after reward_wait, and "
            "taught nothing."
        )
        advice = "Raise reward_wait." if late > 0.05 * count else ""
        found = [
            *loop_facts.health(recent.learner),
            Finding("late rewards", late, said if late else "No reward came too late.", advice),
            *loop_facts.collisions(recent.learner.arms.context or (), [*recent.contexts]),
        ]
        return sorted(found, key=lambda each: not each.advice)

    def loop(self, name: str, over: str, base: str) -> dict[str, object]:
        """Return what the page of a loop shows; LookupError where there is none."""
        learner = self.engine.find(name)
        recent, now, settings = self.seen(learner), time.time(), learner.loop.settings
        over = over if over in WINDOWS else recent.usual(now)
        window, last = recent.window(over, now), [*reversed(recent.events)]
        names = sections.most_played(window, learner.arms.actions)
        return {
            "name": name, "state": loop_facts.loop_state(self.engine, learner),
            "settings": settings.model_dump(), "base": base, "gain": recent.gain,
            "curve": sections.curve(recent, now), "spans": SPANS, "over": over,
            "traffic": sections.traffic(window, over), "widths": sections.widths(window, over),
            "shares": sections.shares(window, over, names),
            "effects": sections.effects(loop_facts.effects(learner, [*recent.contexts], names)),
            "health": self.health(recent),
            "decisions": loop_facts.decisions(self.engine, learner, last) if last else [],
            "latency": sections.latency(LATENCIES, self.meter.seconds),
            "example": sections.example(settings.context),
        }  # fmt: skip


def _spelt(value: object) -> object:
    """Return what a page shows: names can't reorder the text around them."""
    return clean(value) if type(value) is str else value
