"""Progressive validation, block by block: what is summed up, and when intervals are looked at."""

import math
from typing import Any

import numpy as np

from ..protocols import Array, trait
from .losses import LOSSES
from .players import EstimatorPlayer, Player
from .result import Evaluation, Looks

GROWTH = 1.04  # of the rows between two points of a curve
LOOK_GROWTH = 1.5  # of the rows between two looks at intervals
ROWS_PER_LOOK = 200
SAMPLE = 2000  # rows kept for a picture, at least half of them


class Validation:
    """Players who predict the same rows, and what it cost them.

    The first row of positive weight is not counted: nothing is known before it. Intervals are asked
    of the first player, from row 2d + 10 on at times that grow by a half, for the next rows (at
    most 200, and none twice) before any of them is learnt.
    """

    def __init__(self, players: dict[str, Player], family: str, delta: float) -> None:
        self.players, self.family, self.delta = players, family, delta
        self.loss = LOSSES[family]
        self.count, self.weight, self.begun = 0, 0.0, False
        self.sums = np.zeros(len(players))
        self.times: list[Array] = []
        self.totals: list[Array] = []
        self.next_look = 0
        self.looks = Looks(delta)
        self.sample: list[Array] = []
        self.stride = 1

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Let all learn the rows in order; return what the first predicted before each."""
        means = np.empty(y.shape)
        at = 0
        if not self.next_look:
            self.next_look = 2 * x.shape[1] + 10
        while at < len(y):
            if self.count >= self.next_look:
                self.next_look = math.ceil(LOOK_GROWTH * self.count)
                ahead = min(self.next_look - self.count, ROWS_PER_LOOK)
                self._look(*(each[at : at + ahead] for each in (x, y, w)))
            end = min(len(y), at + self.next_look - self.count)
            means[at:end] = self._play(x[at:end], y[at:end], w[at:end])
            at = end
        return means

    def _play(self, x: Array, y: Array, w: Array) -> Array:
        found = [player.update(x, y, w) for player in self.players.values()]
        counted = w.copy()
        if not self.begun and w.any():
            counted[np.argmax(w > 0)] = 0.0
            self.begun = True
        losses = np.array([counted * self.loss.of(means, y) for means in found])
        sums = self.sums[:, None] + np.cumsum(losses, axis=1)
        weights = self.weight + np.cumsum(counted)
        t = self.count + np.arange(1.0, len(y) + 1.0, dtype=np.float64)
        shown = _curve_times(t) & (weights > 0)
        self.times.append(t[shown])
        self.totals.append(np.vstack([weights, sums])[:, shown])
        self._keep(t, y, found[0])
        self.sums, self.weight, self.count = sums[:, -1], float(weights[-1]), int(t[-1])
        return found[0]

    def _keep(self, t: Array, y: Array, means: Array) -> None:
        """Keep every k-th row for a picture; k doubles when they get many."""
        if y.ndim == 1:
            at = (t - 1) % self.stride == 0
            self.sample += list(np.column_stack([t, means, y])[at])
            while len(self.sample) > SAMPLE:
                self.sample, self.stride = self.sample[::2], 2 * self.stride

    def _look(self, x: Array, y: Array, w: Array) -> None:
        first = next(iter(self.players.values()))
        if isinstance(first, EstimatorPlayer) and first.has_intervals:
            self.looks.look(first, self.family, self.count, x, y, w)

    def result(self, title: str, means: Array | None = None) -> Evaluation:
        """Return what was found so far."""
        if not self.weight > 0:
            raise ValueError("there are fewer than two rows of positive weight; pass more")
        model = next(iter(self.players.values()))
        totals = np.hstack([*self.totals, np.hstack([self.weight, self.sums])[:, None]])
        return Evaluation(
            title=title,
            loss=self.loss.name,
            names=tuple(self.players),
            rows=self.count,
            times=np.append(np.concatenate(self.times), self.count),
            weights=totals[0],
            totals=totals[1:],
            looks=self.looks,
            predictions=means,
            sample=np.array(self.sample).reshape(-1, 3),
            model=trait(model, "model", model),
        )


def _curve_times(t: Array) -> Any:
    """Return which rows are points of a curve: those where a power of GROWTH is passed."""
    log = np.log(t) / math.log(GROWTH)
    before = np.log(np.maximum(t - 1, 1)) / math.log(GROWTH)
    return (np.floor(log) > np.floor(before)) | (t == 1)
