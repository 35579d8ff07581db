"""Batches of a study on a Dask cluster. Workers share no folder with the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import joblib

from ..support.supported import install

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")
TIMEOUT = 10.0  # seconds for a scheduler to answer
AHEAD = 2  # batches given out per thread of a worker


@contextmanager
def connection(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address, for as long as it is needed."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--scheduler needs {error.name}; install it with: {install('cluster')}"
        ) from None
    for name in [*logging.root.manager.loggerDict]:
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # we say what is wrong
    try:
        get_address_host_port(address)  # a client that can't parse it takes long to give up
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--scheduler {address} can't be reached ({' '.join(str(error).split())}); start one "
            "with: dask scheduler, and workers with: dask worker ADDRESS"
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=TIMEOUT)


def chosen_client() -> Client | None:
    """Return the client of ``joblib.parallel_config(backend="dask")``, None without it."""
    backend = joblib.parallel.get_active_backend()[0]
    return vars(backend).get("client")


def threads(client: Client) -> int:
    """Return how many batches the workers run at a time; wait for a worker to come."""
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise ValueError(
            f"the scheduler at {client.scheduler.address} has no worker; start one with: dask "
            f"worker {client.scheduler.address}"
        ) from None
    return max(sum(client.nthreads().values()), 1)


def results(
    client: Client, work: Callable[..., Found], batches: Iterable[tuple[object, ...]]
) -> Iterator[tuple[Found, int]]:
    """Yield what each batch gives, as it is done, and how many workers there are.

    What a lost worker had is run by others. At most two batches per thread are given out, so that
    results do not pile up; the next are taken only then.
    """
    from distributed import CancelledError, KilledWorker, as_completed

    waiting, given = iter(batches), as_completed(loop=client.loop)

    def give_out() -> int:
        cores = client.nthreads()
        room = AHEAD * max(sum(cores.values()), 1) - given.count()
        for each in islice(waiting, max(room, 1)):
            given.add(client.submit(work, *each, pure=False))
        return len(cores)

    try:
        workers = give_out()
        for future in given:
            yield future.result(), workers
            workers = give_out()
    except KilledWorker as error:
        raise RuntimeError(
            f"a batch ended {error.allowed_failures} workers (memory?); run the same command again "
            "to continue, with workers of more memory"
        ) from None
    except ModuleNotFoundError as error:
        raise ValueError(
            f"a worker has no {error.name}; on all workers: {install('studies')}"
        ) from None
    except (CancelledError, OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and client.status == "running":
            raise
        raise RuntimeError(
            f"the scheduler at {client.scheduler.address} was lost; what was done is kept, run the "
            "same command again to continue"
        ) from None
