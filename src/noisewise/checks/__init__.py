"""Checks anyone can run on a link, a regressor, a policy or an environment of their own.

Each check is a small function that raises `AssertionError` with a sentence. `yield_checks` lists
those that apply to an object; `check_link`, `check_regressor`, `check_policy` and
`check_environment` run them all. A class that does not promise something names the check in a
tuple ``not_promised``.

Files
    comparison            names of checks, and how two results are compared
    link_contract         the checks of a link
    regressor_contract    the checks of a regressor
    policy_contract       the checks of a policy
    environment_contract  the checks of an environment
    finding               a user's object by MODULE:NAME
"""

from collections.abc import Iterator

from ..inputs import refuse_class
from ..model.links import LINKS, Link
from ..protocols import AnyPolicy, AnyRegressor, Environment, Policy, Regressor
from .comparison import Check, not_promised, run
from .environment_contract import environment_checks
from .finding import FAULTS, find
from .link_contract import link_checks
from .policy_contract import policy_checks
from .regressor_contract import regressor_checks

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


def check_regressor(regressor: AnyRegressor) -> None:
    """Check that a regressor keeps the contract of `noisewise.protocols`."""
    refuse_class("regressor", regressor)
    run(regressor_checks(regressor))


def check_policy(policy: AnyPolicy) -> None:
    """Check that a policy keeps the contract of `noisewise.protocols`."""
    refuse_class("policy", policy)
    run(policy_checks(policy))


def check_environment(environment: Environment) -> None:
    """Check that an environment draws honest tables of rounds from nothing but its generator."""
    refuse_class("environment", environment)
    run(environment_checks(environment))


def yield_checks(thing: object) -> Iterator[tuple[str, Check]]:
    """Yield the name and the function of every check that applies to ``thing``."""
    if isinstance(thing, Link):
        yield from link_checks(thing, 2.0)
    elif isinstance(thing, Regressor):
        yield from regressor_checks(thing)
    elif isinstance(thing, Policy):
        yield from policy_checks(thing)
    elif isinstance(thing, Environment):
        yield from environment_checks(thing)
    else:
        raise ValueError(
            f"{thing!r} is neither a noisewise.Link nor has start, predict and update, or start, "
            "select and update, or draw; pass a link, a regressor, a policy or an environment "
            "(an instance, not a class)"
        )
