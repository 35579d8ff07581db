"""Progressive validation, block by block: what is summed up, and when intervals are looked at."""

import math

import numpy as np
from numpy.typing import NDArray

from ...protocols import Array, trait
from .looks import Looks
from .losses import LOSSES
from .players import EstimatorPlayer, Player, play
from .result import Comparison, Evaluation
from .textbook import FEWEST, Textbook

GROWTH = 1.04  # of the rows between two points of a curve
LOOK_GROWTH = 1.5  # of the rows between two looks at intervals
ROWS_PER_LOOK = 200
SAMPLE = 2000  # rows kept for a picture, at least half of them
Flags = NDArray[np.bool_]


class _Sums:
    """Sums over rows, of weights, losses and squared differences of losses, kept at some times."""

    def __init__(self, players: int) -> None:
        self.players, self.rows, self.first = players, 0, 0
        self.now = np.zeros(2 + 3 * players)
        self.times: list[Array] = []
        self.kept: list[Array] = []

    def add(self, t: Array, w: Array, losses: Array, counted: Flags, shown: Flags) -> None:
        """Add rows of times t; those not ``counted`` add nothing."""
        w = np.where(counted, w, 0.0)
        weighted = np.where(counted, w * losses, 0.0)
        apart = w * (weighted[0] - weighted)
        sums = np.vstack([w, weighted, w * w, apart, (weighted[0] - weighted) ** 2])
        sums = self.now[:, None] + np.cumsum(sums, axis=1)
        at = shown & (sums[0] > 0)
        self.times.append(t[at])
        self.kept.append(sums[: self.players + 1, at])
        self.now = sums[:, -1]
        there = w > 0
        if there.any() and not self.rows:
            self.first = int(t[np.argmax(there)])
        self.rows += int(there.sum())

    def result(self, end: int, players: list[int]) -> Comparison:
        """Return the sums of some players, with the end as last time."""
        k = self.players
        last = self.now[: k + 1, None]
        totals = np.hstack([*self.kept, last])
        w, (squares, *rest) = self.now[0], self.now[k + 1 :]
        apart, both = np.array(rest[:k]), np.array(rest[k:])
        mean = (self.now[1] - self.now[1 : k + 1]) / w
        variance = both - 2 * mean * apart + mean**2 * squares
        return Comparison(
            rows=self.rows,
            first=self.first,
            times=np.append(np.concatenate(self.times), end),
            weights=totals[0],
            totals=totals[1:][players],
            errors=(np.sqrt(np.maximum(variance, 0.0)) / w)[players],
        )


class Validation:
    """Players who predict the same rows, and what it cost them.

    The first row of positive weight is not counted: nothing is known before it. Rows that a player
    has no prediction for (NaN) are left out of the comparison for all. Intervals are asked of the
    first player, from row 2d + 10 on at times that grow by a half, for the next rows (at most 200,
    and none twice) before any of them is learnt.
    """

    def __init__(self, players: dict[str, Player], family: str, delta: float) -> None:
        self.players, self.family, self.delta = players, family, delta
        self.loss = LOSSES[family]
        self.count, self.begun = 0, False
        self.all, self.shared = _Sums(len(players)), _Sums(len(players))
        self.predicted = np.zeros(len(players))
        self.next_look = 0
        self.looks = Looks(delta)
        self.sample: list[Array] = []
        self.stride = 1

    def update(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> Array:
        """Let all learn the rows in order; return what the first predicted before each."""
        means = np.empty(y.shape)
        at = 0
        if not self.next_look:
            self.next_look = 2 * x.shape[1] + 10
        while at < len(y):
            if self.count >= self.next_look:
                self.next_look = math.ceil(LOOK_GROWTH * self.count)
                ahead = slice(at, at + min(self.next_look - self.count, ROWS_PER_LOOK))
                self._look(x[ahead], y[ahead], w[ahead], None if offset is None else offset[ahead])
            here = slice(at, min(len(y), at + self.next_look - self.count))
            shift = None if offset is None else offset[here]
            means[here] = self._play(x[here], y[here], w[here], shift)
            at = here.stop
        return means

    def _play(self, x: Array, y: Array, w: Array, offset: Array | None) -> Array:
        found = [play(each, self.family, x, y, w, offset) for each in self.players.values()]
        counted = w.copy()
        if not self.begun and w.any():
            counted[np.argmax(w > 0)] = 0.0
            self.begun = True
        losses = np.array([self.loss.of(means, y) for means in found])
        missing = np.isnan(losses)
        t = self.count + np.arange(1.0, len(y) + 1.0, dtype=np.float64)
        shown = _curve_times(t)
        self.all.add(t, counted, losses, np.ones(len(t), dtype=np.bool_), shown)
        self.shared.add(t, counted, losses, ~missing.any(axis=0), shown)
        self.predicted += (~missing & (counted > 0)).sum(axis=1)
        self._keep(t, y, found[0])
        self.count = int(t[-1])
        return found[0]

    def _keep(self, t: Array, y: Array, means: Array) -> None:
        """Keep every k-th row for a picture; k doubles when they get many."""
        if y.ndim == 1:
            at = (t - 1) % self.stride == 0
            self.sample += list(np.column_stack([t, means, y])[at])
            while len(self.sample) > SAMPLE:
                self.sample, self.stride = self.sample[::2], 2 * self.stride

    def _look(self, x: Array, y: Array, w: Array, offset: Array | None) -> None:
        first = next(iter(self.players.values()))
        if isinstance(first, EstimatorPlayer) and first.has_intervals:
            self.looks.look(first, self.family, self.count, x, y, w, offset)

    def result(self, title: str, means: Array | None = None) -> Evaluation:
        """Return what was found so far."""
        if not self.all.now[0] > 0:
            raise ValueError("there are fewer than two rows of positive weight; pass more")
        whole = self.predicted == self.all.rows
        kept = [int(i) for i in np.flatnonzero(whole | (self.predicted >= FEWEST))]
        complete = len(kept) == len(self.players)
        model, names = next(iter(self.players.values())), list(self.players)
        compared = self.shared if complete else self.all
        return Evaluation(
            title=title,
            loss=self.loss.name,
            names=tuple(names[i] for i in kept),
            rows=self.count,
            compared=compared.result(self.count, kept),
            all_rows=self.all.result(self.count, kept),
            looks=self.looks,
            predictions=means,
            sample=np.array(self.sample).reshape(-1, 3),
            model=trait(model, "model", model),
            about=tuple(
                each.about(self.shared.rows if complete else 0)
                for each in self.players.values()
                if isinstance(each, Textbook)
            ),
        )


def _curve_times(t: Array) -> Flags:
    """Return which rows are points of a curve: those where a power of GROWTH is passed."""
    log = np.log(t) / math.log(GROWTH)
    before = np.log(np.maximum(t - 1, 1)) / math.log(GROWTH)
    return np.asarray((np.floor(log) > np.floor(before)) | (t == 1))
