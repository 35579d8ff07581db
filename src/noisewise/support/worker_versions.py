"""Workers of a Dask cluster must have the noisewise of the process that gives them work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import provenance

if TYPE_CHECKING:
    from distributed import Client


def wanted() -> dict[str, str]:
    """Return what a worker must share with this process: versions and sources."""
    return {**provenance.versions(), "sources": provenance.sources()}


def difference(wanted: dict[str, str]) -> str:
    """Return how this process differs from the one that ``wanted`` describes, empty if it doesn't.

    >>> difference(wanted())
    ''
    """
    found = {**provenance.versions(), "sources": provenance.sources()}
    for name, version in wanted.items():
        if found.get(name) != version:
            words = "other sources of noisewise" if name == "sources" else f"another {name}"
            had = found.get(name, "none")[:12]
            return f"has {words} ({had}) than this process ({version[:12]})"
    return ""


def require(wanted: dict[str, str]) -> None:
    """Raise if this worker differs; called with every task, since workers may join later."""
    if odd := difference(wanted):
        from distributed import get_worker

        raise ValueError(_refusal(get_worker().address, odd))


def refuse_others(client: Client) -> None:
    """Raise if one of the workers that a client has now differs, before anything is sent to it.

    A noisewise so different that it does not know the question fails to answer it.
    """
    for address, odd in client.run(difference, wanted(), on_error="return").items():
        if isinstance(odd, Exception):
            odd = f"has no noisewise like that of this process ({type(odd).__name__}: {odd})"
        if odd:
            raise ValueError(_refusal(address, odd))


def _refusal(address: str, odd: str) -> str:
    return f"worker {address} {odd}; install the same on all workers"
