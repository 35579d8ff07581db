"""How much clients may ask for: bytes of a body, requests at a time, decisions a second."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .answers import Refused
from .meter import Meter


@dataclass(frozen=True)
class Limits:
    """Limits of a service."""

    body: int = 2**20
    in_flight: int = 100
    batch: int = 1000
    decisions: float = 10_000.0  # a second, per token


class Gate:
    """Refuses requests that are too large, or too many at a time, before they are read further."""

    def __init__(self, app: ASGIApp, limits: Limits, meter: Meter) -> None:
        self.app, self.limits, self.meter, self.running = app, limits, meter, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, with its whole body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope["route"].path if "route" in scope else "none"
                self.meter.add(route, message["status"])
            await send(message)

        body, more = b"", True
        while more:
            part = await receive()
            if part["type"] == "http.disconnect":
                return
            body, more = body + part.get("body", b""), part.get("more_body", False)
            if len(body) > self.limits.body:
                text = f"the body has more than {self.limits.body} bytes; split it"
                await _close(Refused(413, text), scope, receive, sent)
                return
        if self.running >= self.limits.in_flight and scope["path"] != "/healthz":
            text = f"{self.running} requests are being answered; try again"
            await _close(Refused(503, text, code="busy"), scope, receive, sent)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Message:
            return whole.pop() if whole else await receive()

        self.running += 1
        try:
            await self.app(scope, received, sent)
        finally:
            self.running -= 1


async def _close(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with an error, and end the connection."""
    response = refused.response
    response.headers["connection"] = "close"
    await response(scope, receive, send)


class Allowance:
    """Decisions per second, for each token: as many as come in a second may come at once."""

    def __init__(self, rate: float) -> None:
        self.rate, self._left = rate, dict[str, tuple[float, float]]()

    def take(self, whose: str, count: int) -> bool:
        """Return whether so many more are allowed now."""
        now = time.monotonic()
        left, then = self._left.get(whose, (self.rate, now))
        left = min(self.rate, left + (now - then) * self.rate)
        self._left[whose] = left - count if left >= count else left, now
        return left >= count
