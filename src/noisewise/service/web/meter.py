"""Counts of requests, and how long decisions took, as Prometheus reads them."""

from __future__ import annotations

from ..engine import Engine
from . import loop_facts

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


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
        states = [loop_facts.loop_state(engine, each) for each in [*engine.learners.values()]]
        for what in ("learnt", "pending", "version", "restarts", "refused"):
            lines.append(f"# TYPE noisewise_{what} gauge")
            lines += [f'noisewise_{what}{{loop="{each["name"]}"}} {each[what]}' for each in states]
        return "\n".join(lines) + "\n"
