"""Checks anyone can run on a link, a regressor, a policy or an environment of their own.

Each check is a small function that raises `AssertionError` with a sentence. `yield_checks` lists
those that apply to an object; `check_link`, `check_regressor`, `check_policy` and
`check_environment` run them all. A class that does not promise something names the check in a
tuple ``not_promised``.
"""

from collections.abc import Iterator
from typing import Any

from ..links import LINKS, Link
from .comparison import Check, not_promised, run
from .environments import environment_checks
from .finding import FAULTS, find
from .links import link_checks
from .policies import policy_checks
from .regressors import regressor_checks

__all__ = [
    "FAULTS",
    "check_environment",
    "check_link",
    "check_policy",
    "check_regressor",
    "find",
    "not_promised",
    "yield_checks",
]


def check_link(link: Link | str, score_bound: float = 2.0) -> None:
    """Check a link on ``[-score_bound, score_bound]`` and its extension beyond."""
    run(link_checks(LINKS[link] if isinstance(link, str) else link, score_bound))


def check_regressor(regressor: Any) -> None:
    """Check that a regressor keeps the contract of `noisewise.protocols`."""
    run(regressor_checks(regressor))


def check_policy(policy: Any) -> None:
    """Check that a policy keeps the contract of `noisewise.protocols`."""
    run(policy_checks(policy))


def check_environment(environment: Any) -> None:
    """Check that an environment draws honest tables of rounds from nothing but its generator."""
    run(environment_checks(environment))


def yield_checks(thing: Any) -> Iterator[tuple[str, Check]]:
    """Yield the name and the function of every check that applies to ``thing``."""
    if isinstance(thing, Link):
        yield from link_checks(thing, 2.0)
    elif _has(thing, "start", "predict", "update"):
        yield from regressor_checks(thing)
    elif _has(thing, "start", "select", "update"):
        yield from policy_checks(thing)
    elif _has(thing, "draw"):
        yield from environment_checks(thing)
    else:
        raise ValueError(
            f"{thing!r} is neither a noisewise.Link nor has start, predict and update, or start, "
            "select and update, or draw; pass a link, a regressor, a policy or an environment "
            "(an instance, not a class)"
        )


def _has(thing: Any, *verbs: str) -> bool:
    return all(callable(getattr(thing, verb, None)) for verb in verbs)
