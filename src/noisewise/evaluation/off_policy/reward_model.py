"""Rewards predicted before they are seen, for every action, by a regressor that learns online."""

from collections.abc import Iterator

import numpy as np

from ...protocols import AnyRegressor, Array
from ...regression.self_tuned.self_tuned import SelfTuned
from .decision_table import DecisionTable

FIRST, GROWTH = 16, 8  # rows of the first blocks; later ones are that part of what was learnt


class RewardModel:
    """One regressor for each action on the context, or one for all on features of arms."""

    def __init__(self, table: DecisionTable, regressor: AnyRegressor | None = None) -> None:
        self.table, self.regressor = table, regressor or SelfTuned(forgetting=1.0)
        self.K = len(table.actions)
        self.sum, self.count = 0.0, 0
        self.learnt = np.zeros(self.K, dtype=np.int64)
        if table.arms is None:
            x = table.features()
            self.x = x if x.shape[1] else np.zeros((len(table), 1))
            count, dim = self.K, self.x.shape[1]
        else:
            count, dim = 1, table.arms[0].shape[1]
        self.states = [self.regressor.start(dim) for _ in range(count)]

    def predict(self, rows: slice) -> Array:
        """Return the reward expected of every action, (n, K), from what was learnt so far."""
        mean = self.sum / max(self.count, 1)
        if self.table.arms is not None:
            offers = self.table.arms[rows]
            sizes = [len(each) for each in offers]
            found = np.asarray(self.regressor.predict(self.states[0], np.vstack(offers)))
            q = np.full((len(offers), self.K), mean)
            for row, part in zip(q, np.split(found, np.cumsum(sizes)[:-1]), strict=True):
                row[: len(part)] = part
            return q
        x = self.x[rows]
        q = np.full((len(x), self.K), mean)
        for k in np.flatnonzero(self.learnt):
            q[:, k] = self.regressor.predict(self.states[k], x)
        return q

    def learn(self, rows: slice) -> None:
        """Learn the rewards of decisions."""
        y, a = self.table.reward[rows], self.table.action[rows]
        self.sum, self.count = self.sum + float(y.sum()), self.count + len(y)
        if self.table.arms is not None:
            x = np.array([arms[k] for arms, k in zip(self.table.arms[rows], a, strict=True)])
            self.regressor.update(self.states[0], x, y)
            return
        for k in np.unique(a):
            at = a == k
            self.regressor.update(self.states[k], self.x[rows][at], y[at])
            self.learnt[k] += at.sum()


def predictions(table: DecisionTable, regressor: AnyRegressor | None = None) -> Array:
    """Return what was expected of every action, (n, K), each row by the rows before its block."""
    model = RewardModel(table, regressor)
    found = []
    for rows in _blocks(len(table)):
        found.append(model.predict(rows))
        model.learn(rows)
    return np.vstack(found)


def greedy(table: DecisionTable, regressor: AnyRegressor | None = None) -> tuple[int, Array]:
    """Return half of the rows, and for the others the action of the best reward expected.

    The model has learnt the first half only: a policy that does not know what it is judged by.
    """
    half = len(table) // 2
    model = RewardModel(table, regressor)
    model.learn(slice(0, half))
    best = model.predict(slice(half, len(table))).argmax(axis=1)
    return half, np.eye(len(table.actions))[best]


def _blocks(count: int) -> Iterator[slice]:
    start = 0
    while start < count:
        end = min(start + max(FIRST, start // GROWTH), count)
        yield slice(start, end)
        start = end
