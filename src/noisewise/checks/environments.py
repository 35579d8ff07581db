"""The checks of an environment: honest tables of rounds, from nothing but the generator."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np

from ..protocols import BanditRounds, Rounds
from .comparison import Check, named, same


def environment_checks(environment: Any) -> Iterator[tuple[str, Check]]:
    """Yield the checks of an environment."""
    yield from named(
        _rounds_have_their_shapes,
        _the_generator_decides_everything,
        _noise_has_mean_zero_whatever_is_known,
        args=(environment,),
    )


def _drawn(environment: Any, seed: int = 20220213) -> Any:
    rng = np.random.default_rng(seed)
    if len(signature(environment.draw).parameters) == 1:  # a bandit world knows its size
        return environment.draw(rng)
    return environment.draw(rng, 4000, 3)


def _rounds_have_their_shapes(environment: Any) -> None:
    rounds = _drawn(environment)
    if isinstance(rounds, BanditRounds):
        T, K = rounds.means.shape
        d = rounds.arms.shape[-1]
        shapes = {
            "arms": [(T, K, d), (K, d)], "rewards": [(T, K)], "sigma": [(T,), (T, K)],
        }  # fmt: skip
    else:
        assert isinstance(rounds, Rounds), f"draw returns {rounds!r}, neither of the two tables"
        shapes = {"x": [(4000, 3)], "mean": [(4000,)], "y": [(4000,)], "weight": [(4000,)]}
        one = environment.draw(np.random.default_rng(0), 1, 1)
        assert one.x.shape == (1, 1), "one round of one feature does not work"
    for name, allowed in shapes.items():
        array = np.asarray(getattr(rounds, name))
        assert array.shape in allowed, f"{name} has shape {array.shape}, not {allowed[0]}"
        assert np.isfinite(array).all(), f"{name} holds NaN or infinity"
        assert name not in ("weight", "sigma") or (array >= 0).all(), f"a {name} is negative"


def _the_generator_decides_everything(environment: Any) -> None:
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    first, again, other = _drawn(environment), _drawn(environment), _drawn(environment, 7)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert same(before, after), "the global generator was used"
    assert same(first, again), "the same seed gives another table"
    assert not same(first, other), "another seed gives the same table"


def _noise_has_mean_zero_whatever_is_known(environment: Any) -> None:
    """Residuals average to zero, alone and times what is known before them: six errors each."""
    rounds = _drawn(environment)
    if isinstance(rounds, BanditRounds):
        noise = rounds.rewards[:, 0] - rounds.means[:, 0]
        sigma = rounds.sigma.reshape(len(noise), -1)[:, 0]
        known = {"one": np.ones(len(noise)), "sigma": sigma, "the mean": rounds.means[:, 0]}
    else:
        noise = (rounds.y - rounds.mean) * np.sqrt(rounds.weight)
        known = {f"feature {i}": x for i, x in enumerate(rounds.x.T)}
        known |= {"one": np.ones(len(noise)), "log weight": np.log(rounds.weight + 1e-300)}
    for name, factor in known.items():
        product = noise * factor
        error = product.std() / np.sqrt(len(product))
        assert abs(product.mean()) <= 6 * error + 1e-12, (
            f"label less mean, times {name}, averages {product.mean():.3g} (error {error:.3g})"
        )
