"""The checks of an environment: honest tables of rounds, from nothing but the generator."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

import numpy as np

from ..protocols import BanditRounds, Environment, Rounds, trait
from .comparison import Check, named, same


def environment_checks(environment: Environment) -> Iterator[tuple[str, Check]]:
    """Yield the checks of an environment."""
    if len(signature(environment.draw).parameters) not in (1, 3):
        raise ValueError(
            f"{environment!r} draws a part of a world; pass a whole one, with draw(rng) or "
            "draw(rng, rounds, dim), for example environments.Stream(parameter=...)"
        )
    yield from named(
        _rounds_have_their_shapes,
        _the_generator_decides_everything,
        _noise_has_mean_zero_whatever_is_known,
        args=(environment,),
    )


def _size(environment: Environment) -> tuple[int, int]:
    """Return how many rounds and features to draw: all there are of rows that are given."""
    T, d = np.shape(trait(trait(environment, "features", None), "rows", np.empty((4000, 3))))
    return T, d


def _drawn(environment: Environment, seed: int = 20220213) -> Rounds | BanditRounds:
    rng = np.random.default_rng(seed)
    if len(signature(environment.draw).parameters) == 1:  # a bandit world knows its size
        return environment.draw(rng)
    return environment.draw(rng, *_size(environment))


def _rounds_have_their_shapes(environment: Environment) -> None:
    rounds = _drawn(environment)
    if isinstance(rounds, BanditRounds):
        T, K = rounds.means.shape
        d = rounds.arms.shape[-1]
        shapes = {
            "arms": [(T, K, d), (K, d)], "rewards": [(T, K)], "sigma": [(T,), (T, K)],
        }  # fmt: skip
    else:
        assert isinstance(rounds, Rounds), f"draw returns {rounds!r}, neither of the two tables"
        T, d = _size(environment)
        shapes = {"x": [(T, d)], "mean": [(T,)], "y": [(T,)], "weight": [(T,)]}
        if (T, d) == (4000, 3):  # any size may be asked for
            one = environment.draw(np.random.default_rng(0), 1, 1)
            assert vars(one)["x"].shape == (1, 1), "one round of one feature does not work"
    for name, allowed in shapes.items():
        array = np.asarray(vars(rounds)[name])
        assert array.shape in allowed, f"{name} has shape {array.shape}, not {allowed[0]}"
        assert np.isfinite(array).all(), f"{name} holds NaN or infinity"
        assert name not in ("weight", "sigma") or (array >= 0).all(), f"a {name} is negative"


def _the_generator_decides_everything(environment: Environment) -> None:
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    first, again, other = _drawn(environment), _drawn(environment), _drawn(environment, 7)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert same(before, after), "the global generator was used"
    assert same(first, again), "the same seed gives another table"
    assert not same(first, other), "another seed gives the same table"


def _noise_has_mean_zero_whatever_is_known(environment: Environment) -> None:
    """Residuals average to zero, alone and times what is known before them: six errors each."""
    rounds = _drawn(environment)
    if isinstance(rounds, BanditRounds):
        noise = rounds.rewards - rounds.means
        sigma = np.broadcast_to(rounds.sigma.reshape(len(noise), -1), noise.shape)
        known = {"one": np.ones(noise.shape), "sigma": sigma, "the mean": rounds.means}
    else:
        noise = (rounds.y - rounds.mean) * np.sqrt(rounds.weight)
        known = {f"feature {i}": x for i, x in enumerate(rounds.x.T)}
        known |= {"one": np.ones(len(noise)), "log weight": np.log(rounds.weight + 1e-300)}
    for name, factor in known.items():
        product = (noise * factor).reshape(len(noise), -1)  # a column an arm
        error = product.std(axis=0) / np.sqrt(len(product))
        far = np.abs(product.mean(axis=0)) - 6 * error
        arm = int(np.argmax(far))
        assert far[arm] <= 1e-12, (
            f"label less mean, times {name}, averages {product[:, arm].mean():.3g} (error "
            f"{error[arm]:.3g})" + (f" on arm {arm}" if product.shape[1] > 1 else "")
        )
