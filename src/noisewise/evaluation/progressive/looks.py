"""Intervals at a few times, compared with the labels that came next."""

from dataclasses import dataclass, field

import numpy as np

from ...protocols import Array
from ...support.printing import percent
from .players import EstimatorPlayer

FEWEST = 20  # labels, for a share of them to say something


@dataclass(eq=False)
class Looks:
    """Intervals at a few times: how wide they were, and how many of the next labels they held.

    ``table`` has a row per time: rows learnt, width of intervals of the mean (valid at all times at
    once), width of intervals of observations (valid at that time), labels looked at, labels inside.
    Widths are medians over the rows looked at, infinite where nothing is known. An observation is
    a label of its own row's weight: a share of as many trials, or a count of as much exposure.
    Observations are left out where labels are 0 and 1, or their interval is infinite. ``reason``
    says why too few may be inside.
    """

    delta: float
    rows: list[tuple[float, ...]] = field(default_factory=list)
    promises: dict[str, str] = field(default_factory=dict)
    reason: str = "labels vary more than these intervals assume"

    def look(
        self,
        asked: EstimatorPlayer,
        family: str,
        count: int,
        x: Array,
        y: Array,
        w: Array,
        offset: Array | None = None,
    ) -> None:
        """Ask for intervals at rows that are not learnt yet, and compare with their labels."""
        mean = asked.interval(x, self.delta, "mean", offset)
        self.promises["mean"] = mean.promise
        width = float(np.median(mean.upper - mean.lower))
        if family == "binomial" and width >= 1:
            width = np.inf
        found = [float(count), width, np.nan, 0.0, 0.0]
        there = w > 0
        if there.any() and asked.has_label_intervals(family, w[there]):
            o = None if offset is None else offset[there]
            label = asked.label_interval(family, x[there], w[there], self.delta, o)
            self.promises["observation"] = label.promise
            widths = np.asarray(label.upper - label.lower)
            inside = (label.lower <= y[there]) & (y[there] <= label.upper) & np.isfinite(widths)
            found[2:] = [
                float(np.median(widths)),
                float(np.isfinite(widths).sum()),
                float(inside.sum()),
            ]
        self.rows.append(tuple(found))

    @property
    def table(self) -> Array:
        """All looks, (k, 5)."""
        return np.array(self.rows).reshape(-1, 5)

    @property
    def labels(self) -> int:
        """How many labels were looked at."""
        return int(self.table[:, 3].sum())

    @property
    def too_few(self) -> bool:
        """Whether fewer labels were inside than chance explains: by four standard errors."""
        n, inside = self.table[:, 3:].sum(axis=0)
        return bool(inside < n * (1 - self.delta) - 4 * np.sqrt(n * self.delta * (1 - self.delta)))

    @property
    def coverage(self) -> float:
        """The share of labels inside their intervals, NaN where none were looked at."""
        *_, n, inside = self.table.T
        return float(inside.sum() / n.sum()) if n.sum() else float("nan")

    def sentence(self) -> str:
        """Return how many new labels lay inside, empty where none were looked at."""
        n = self.labels
        if not n:
            return ""
        times = "once" if len(self.rows) == 1 else f"at {len(self.rows)} times"
        held = f"{100 * (1 - self.delta):g} % intervals, computed {times} for the next rows, held"
        if n < FEWEST:
            inside = int(self.table[:, 4].sum())
            return f"{held} {inside} of {n} new labels, too few labels to judge by."
        said = f"{held} {percent(self.coverage, 1)} of {n:,} new labels."
        if self.too_few:
            said += f" That is too few: {self.reason}."
        return said
