"""Processor seconds, wall and memory of a call, here and on the workers of a Dask client."""

import resource
import time
from dataclasses import dataclass


def used():
    """Return processor seconds and peak memory in GiB of this process."""
    mine = resource.getrusage(resource.RUSAGE_SELF)
    return mine.ru_utime + mine.ru_stime, mine.ru_maxrss / 2**20


@dataclass
class Spent:
    """What a block of code has cost: ``with Spent(client) as spent: ...``.

    ``busiest`` is of the workers, ``driver`` of this process, which has Dask's scheduler.
    """

    client: object = None
    wall: float = 0.0
    driver: float = 0.0
    workers: tuple = ()
    memory: float = 0.0

    def __enter__(self):
        self._before, self._driver, self._wall = self._look(), used()[0], time.perf_counter()
        return self

    def __exit__(self, *_):
        self.wall = time.perf_counter() - self._wall
        self.driver = used()[0] - self._driver
        after = self._look()
        self.workers = tuple(cpu - self._before[name][0] for name, (cpu, _) in after.items())
        self.memory = max([used()[1], *(peak for _, peak in after.values())])

    def _look(self):
        return {} if self.client is None else self.client.run(used)

    @property
    def busiest(self):
        return max(self.workers, default=0.0)

    @property
    def cpu(self):
        return self.driver + sum(self.workers)
