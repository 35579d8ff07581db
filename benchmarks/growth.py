"""What grows with use: bytes per row in memory and in a file, and what a `save` holds up.

`python -m benchmarks.growth` prints three tables. The first has the bytes that `tracemalloc` finds
between two numbers of rows, and those of the files that `save` writes. The second is of an agent
that has recorded 10,000 decisions: how long `save` takes, and the longest time for which the lock
of the agent was held, so that no other thread could decide. The third is of agents that learn a
million rewards: what their states and files hold on the way.
"""

import gc
import tempfile
import tracemalloc
from pathlib import Path
from threading import RLock
from time import perf_counter, process_time

import numpy as np

import noisewise as nw

ARMS = 5
RECORDS = 10_000
SAVES = 5
LEARNT, AT_ONCE = (50_000, 100_000, 300_000, 1_000_000), 5000  # rewards


def rows(rng, count, dim):
    """Return rows of norm at most 1, and labels 0 and 1."""
    x = rng.uniform(-1, 1, (count, dim)) / np.sqrt(dim)
    return x, (rng.random(count) < 1 / (1 + np.exp(-2 * x.sum(axis=1)))).astype(float)


class Estimator:
    """An estimator that learns rows."""

    few, many = 20_000, 60_000

    def __init__(self, dim, family, nonlinear=False):
        self.dim, self.rng = dim, np.random.default_rng(0)
        self.model = nw.OnlineGLM(family, nonlinear=nonlinear)

    def grow(self, count):
        """Learn more rows."""
        self.model.partial_fit(*rows(self.rng, count, self.dim))

    def save(self, path):
        """Write a file."""
        nw.save(path, self.model)


class Decisions:
    """An agent that decides, and learns rewards unless they are to be pending."""

    few, many = 1000, 3000

    def __init__(self, dim, make, pending=False, **given):
        self.dim, self.agent, self.rng = dim, make(dim, **given), np.random.default_rng(0)
        self.pending, self.done = pending, 0

    def grow(self, count):
        """Decide more often."""
        for key in range(self.done, self.done + count):
            offer, y = rows(self.rng, ARMS, self.dim)
            k = self.agent.choose(offer, key=key)
            if not self.pending:
                self.agent.learn(key, float(y[k]))
        self.done += count

    def save(self, path):
        """Write a file."""
        self.agent.save(path)


def subjects(dim):
    """Yield names and what grows."""
    shares, numbers = nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards
    for family in ("gaussian", "binomial", "poisson"):
        yield f"OnlineGLM, {family}", Estimator(dim, family)
    yield "OnlineGLM, gaussian, nonlinear", Estimator(dim, "gaussian", nonlinear=True)
    yield "agent, a reward", Decisions(dim, shares)
    yield "agent, a continuous reward", Decisions(dim, numbers)
    yield "agent, a pending decision", Decisions(dim, shares, pending=True)
    yield f"agent, a record of {ARMS} arms", Decisions(dim, shares, randomise=0.1)
    yield "guaranteed agent, a reward", Decisions(dim, shares, guaranteed=True)
    yield "guaranteed agent, a continuous reward", Decisions(dim, numbers, guaranteed=True)


def bytes_per_row(subject, path):
    """Return bytes in memory and in a file."""
    tracemalloc.start()
    found = []
    for count in (subject.few, subject.many - subject.few):
        subject.grow(count)
        subject.save(path)
        gc.collect()
        found.append((tracemalloc.get_traced_memory()[0], path.stat().st_size))
    tracemalloc.stop()
    return (np.array(found[1]) - found[0]) / (subject.many - subject.few)


class Watched:
    """A lock that notes for how long it was held."""

    def __init__(self):
        self.lock, self.depth, self.since, self.held = RLock(), 0, 0.0, []

    def __enter__(self):
        self.lock.acquire()
        self.depth += 1
        if self.depth == 1:
            self.since = perf_counter()

    def __exit__(self, *_):
        self.depth -= 1
        if not self.depth:
            self.held.append(perf_counter() - self.since)
        self.lock.release()


class Contexts(Decisions):
    """An agent that is given contexts of numbers in place of arms."""

    def __init__(self, dim, make, **given):
        self.names = [f"x{j}" for j in range(dim)]
        actions = [f"action {k}" for k in range(ARMS)]
        arms = nw.Arms(actions, context=dict.fromkeys(self.names, float))
        super().__init__(dim, lambda _: make(arms=arms, **given))

    def grow(self, count):
        """Decide more often."""
        x, y = rows(self.rng, count, self.dim)
        for key, row, reward in zip(range(self.done, self.done + count), x, y, strict=True):
            self.agent.choose(dict(zip(self.names, row.tolist(), strict=True)), key=key)
            self.agent.learn(key, float(reward))
        self.done += count


def lock_time(kind, dim, path):
    """Return medians: how long `save` takes, and how long it holds the lock."""
    subject = kind(dim, nw.Agent.for_binary_rewards, randomise=0.1, record=RECORDS)
    subject.grow(RECORDS)
    taken, held = [], []
    for _ in range(SAVES):
        subject.agent._lock = watched = Watched()
        began = perf_counter()
        subject.save(path)
        taken.append(perf_counter() - began)
        held.append(max(watched.held))
    return np.median(taken), np.median(held)


def lasting(make, path):
    """Yield rewards learnt, bytes of the state and of its file, and CPU seconds so far."""
    rng, began, done = np.random.default_rng(0), process_time(), 0
    agent = make(arms=nw.Arms(["a", "b", "c"], context=4))
    coefficients = rng.normal(size=(3, 5))
    for goal in LEARNT:
        while done < goal:
            c, k = rng.normal(size=(AT_ONCE, 4)), rng.integers(3, size=AT_ONCE)
            block, x = np.insert(c, 0, 1.0, axis=1), np.zeros((AT_ONCE, 3, 5))
            x[np.arange(AT_ONCE), k] = block
            mean = 1 / (1 + np.exp(-(block * coefficients[k]).sum(axis=1)))
            agent.learn(x.reshape(AT_ONCE, -1), (rng.random(AT_ONCE) < mean).astype(float))
            done += AT_ONCE
        agent.save(path)
        held = sum(each.nbytes for each in vars(agent.state).values() if np.ndim(each))
        yield done, held, path.stat().st_size, process_time() - began


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.npz"
        print(f"{'bytes per row':<40}{'features':>9}{'memory':>9}{'file':>9}")
        for dim in (5, 20):
            for name, subject in subjects(dim):
                memory, file = bytes_per_row(subject, path)
                print(f"{name:<40}{dim:>9}{memory:>9.0f}{file:>9.0f}", flush=True)
        print(f"\n{f'save, {RECORDS:,} records':<40}{'features':>9}{'save':>9}{'lock':>9}")
        for kind, dim in ((Decisions, 5), (Decisions, 20), (Contexts, 5)):
            taken, held = lock_time(kind, dim, path)
            name = "contexts" if kind is Contexts else "matrices of arms"
            print(f"{name:<40}{dim:>9}{taken:>7.3f} s{held:>7.3f} s", flush=True)
        print(f"\n{'an agent of 3 actions, 4 columns':<40}{'rewards':>9}{'memory':>9}{'file':>9}")
        for make in (nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards):
            for done, held, size, taken in lasting(make, path):
                print(f"{make.__name__:<40}{done:>9}{held:>9}{size:>9}{taken:>7.1f} s", flush=True)


if __name__ == "__main__":
    main()
