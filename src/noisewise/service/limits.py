"""How much clients may ask for: bytes of a body, requests at a time, decisions a second."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .loops import dumped


@dataclass(frozen=True)
class Limits:
    """Limits of a service."""

    body: int = 2**20
    in_flight: int = 100
    batch: int = 1000
    decisions: float = 10_000.0  # a second, per token


class Gate:
    """Refuses requests that are too large, or too many at a time, before they are read further."""

    def __init__(self, app: ASGIApp, limits: Limits, meter: Any) -> None:
        self.app, self.limits, self.meter, self.running = app, limits, meter, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, with its whole body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                self.meter.add(route, message["status"])
            await send(message)

        parts, size, more = [], 0, True
        while more:
            part = await receive()
            if part["type"] == "http.disconnect":
                return
            parts.append(part.get("body", b""))
            size, more = size + len(parts[-1]), part.get("more_body", False)
            if size > self.limits.body:
                text = f"the body has more than {self.limits.body} bytes; split it"
                await _refuse(sent, 413, "body_too_large", text)
                return
        if self.running >= self.limits.in_flight and scope["path"] != "/healthz":
            text = f"{self.running} requests are being answered; try again"
            await _refuse(sent, 503, "busy", text)
            return
        self.running += 1
        try:
            await self.app(scope, _Whole(b"".join(parts), receive), sent)
        finally:
            self.running -= 1


class _Whole:
    """What gives a body that was read."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        body, self.body = self.body, None
        if body is None:
            return await self.receive()
        return {"type": "http.request", "body": body, "more_body": False}


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = dumped({"error": {"code": code, "message": message, "where": ""}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers += [(b"retry-after", b"1")] if status == 503 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Allowance:
    """Decisions per second, for each token: as many as come in a second may come at once."""

    def __init__(self, rate: float) -> None:
        self.rate, self._left = rate, dict[Any, tuple[float, float]]()

    def take(self, whose: Any, count: int) -> bool:
        """Return whether so many more are allowed now."""
        now = time.monotonic()
        left, then = self._left.get(whose, (self.rate, now))
        left = min(self.rate, left + (now - then) * self.rate)
        self._left[whose] = left - count if left >= count else left, now
        return left >= count
