"""Lemmas: both sides by hand, that they hold on every path, and which fail as printed."""

import math

import numpy as np
import pytest
from histories import random_path
from hypothesis import given
from hypothesis import strategies as st
from instances import CAUCHIT
from scipy.special import ndtri
from scipy.stats import binom

import noisewise as nw
from noisewise.theory import lemmas


def twice(z):
    return 2 * np.asarray(z)


def two(z):
    return np.full_like(np.asarray(z, dtype=float), 2.0)


def square(z):
    return np.asarray(z) ** 2


# slope 1, two rounds: scores 0 and 1, errors -1 and 0, noise 1 and -1, leverages 1/2 and 1/3
LINE = lemmas.path(nw.GLM(), 0.5, [1.0], [[0.0], [1.0], [2 / 3]], [[1.0], [1.0]], [2.0, 0.0])


# slope 2, one round: error -1, mean error -2, noise 2, leverage 1/4
STEEP = lemmas.path(
    nw.GLM(nw.Link("twice", twice, two, square)), 1.0, [1.0], [[0.0], [1.0]], [[1.0]], [4.0]
)


@pytest.mark.parametrize(
    ("lemma", "line", "steep"),
    [
        (lemmas.decomposition_printed, (1.5, 7 / 6), (3, 2)),
        (lemmas.decomposition, (1.5, 5 / 3), (3, 3)),
        (lemmas.decomposition_split, (1.5, 11 / 6), (3, 3)),
        (lemmas.ftrl_identity, (1.5, 1.5), (3, 3)),
        (lemmas.bregman_from_scores, (0.5, 0.5), (1, 1)),
        (lemmas.bregman_from_means, (0.5, 0.5), (1, 1)),
        (lemmas.bregman_above, (0.5, 0.5), (1, 1)),
        (lemmas.potential, (5 / 6, math.log(3)), (0.25, math.log(2) / 2)),
        (lemmas.potential_previous, (1.5, math.log(3) / math.log(2)), (0.5, 0.5)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_sides_by_hand(lemma, line, steep):
    assert lemma(LINE) == pytest.approx(line, rel=1e-12)
    assert lemma(STEEP) == pytest.approx(steep, rel=1e-12)


def test_probabilistic_sides_by_hand():
    """log(1/delta) = 1, scale 1 on the first path and 1/2 on the second, where h_max = 1/4."""
    delta = math.exp(-1)
    assert lemmas.connection(LINE, 1.0, delta) == pytest.approx((1, 4 * 1.5 + 8))
    assert lemmas.connection(STEEP, 0.5, delta) == pytest.approx((1, 4 * 3 / 2 + 8 / 4 / 4))
    assert lemmas.connection_printed(LINE, 1.0, delta) == pytest.approx((1, 4 * 1.5 + 16))
    assert lemmas.connection_printed(STEEP, 0.5, delta) == pytest.approx(
        (1, 4 * 3 / 2 + 16 / 4 / 4)
    )
    gaussian = 2 * math.log(2) / 4 / 4 + 4 / 4 / 4
    assert lemmas.noise_sum(STEEP, 0.5, delta) == pytest.approx((1, gaussian))
    bounded = (math.e - 1) / 4 / 4 + 9 / 4
    assert lemmas.noise_sum(STEEP, 0.5, delta, bound=3.0) == pytest.approx((1, bounded))


def test_square_root_trick_is_attained():
    assert lemmas.square_root_trick(1.0, 0.0, 1.0) == (1.0, 1.0)
    assert lemmas.square_root_trick(3.0, 3.0, 2.0) == (9.0, 10.0)


DETERMINISTIC = [
    lemmas.decomposition,
    lemmas.decomposition_split,
    lemmas.bregman_from_scores,
    lemmas.bregman_from_means,
    lemmas.bregman_above,
    lemmas.potential,
    lemmas.potential_previous,
]


@pytest.mark.parametrize("link", [*nw.LINKS.values(), CAUCHIT], ids=repr)
@pytest.mark.parametrize("noise", [0.1, 1.0, 30.0])
def test_deterministic_lemmas_hold_on_every_path(link, noise):
    for seed in range(4):
        for ridge in (None, 0.3):
            p = random_path(link, seed, noise, ridge=ridge)
            for lemma in DETERMINISTIC:
                sides = lemma(p)
                assert sides.holds, (lemma.__name__, sides)
            sides = lemmas.ftrl_identity(p)
            size = 1 + abs(sides.left) + np.abs(p.y).sum() * 3
            assert abs(sides.left - sides.right) <= 1e-9 * size


def test_azoury_warmuth_is_an_equality():
    for seed in range(20):
        sides = lemmas.azoury_warmuth(random_path("identity", seed, 3.0))
        assert sides.left == pytest.approx(sides.right, rel=1e-12, abs=1e-11)
    with pytest.raises(ValueError, match="identity"):
        lemmas.azoury_warmuth(random_path("logistic", 0))


def test_the_printed_decomposition_fails_and_the_corrected_one_does_not():
    p = lemmas.path(nw.GLM(), 4.0, [1.0], [[0.0], [10 / 9]], [[1.0]], [10.0])
    printed, corrected = lemmas.decomposition_printed(p), lemmas.decomposition(p)
    assert printed.left == pytest.approx(9.5)
    assert printed.right == pytest.approx(8.5556, abs=1e-4)
    assert not printed.holds
    assert corrected.holds
    short = [random_path("identity", seed, 9.0, d=1, T=1) for seed in range(40)]
    assert not all(lemmas.decomposition_printed(p).holds for p in short)
    assert all(lemmas.decomposition(p).holds for p in short)


@given(a=st.floats(0, 1e3), b=st.floats(0, 1e3), share=st.floats(0, 1))
def test_square_root_trick(a, b, share):
    largest = (b + np.sqrt(b * b + 4 * a)) / 2
    sides = lemmas.square_root_trick(0.999999 * share * largest, a, b)
    assert sides.holds
    with pytest.raises(ValueError, match="lemma"):
        lemmas.square_root_trick(1.001 * largest + 1e-3, a, b)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.3), (-1.0, 0.2), (0.0, 0.5)])
def test_moment_is_an_equality_for_gaussian_noise(alpha, beta):
    grid = 0.7 * ndtri((np.arange(400_000) + 0.5) / 400_000)
    sides = lemmas.moment(grid, alpha, beta, 0.7)
    assert sides.left == pytest.approx(sides.right, rel=1e-4)
    signs = lemmas.moment(np.array([-1.0, 1.0]), alpha, beta, 1.0)
    assert signs.holds
    with pytest.raises(ValueError, match="beta"):
        lemmas.moment(grid, alpha, 5.0, 0.7)


def test_hoeffding_with_a_random_scale_fails():
    """Against the exact chance of a walk to cross within 100 steps; 20,000 walks, six sds."""
    at, crossed = {0: 1.0}, 0.0
    for n in range(1, 101):
        after = {}
        for place, chance in at.items():
            for step in (-1, 1):
                after[place + step] = after.get(place + step, 0.0) + chance / 2
        border = np.sqrt(2 * n * np.log(20))
        crossed += sum(chance for place, chance in after.items() if place > border)
        at = {place: chance for place, chance in after.items() if place <= border}
    assert crossed == pytest.approx(0.0629, abs=1e-4)
    share = lemmas.hoeffding_failure(np.random.default_rng(0), 100, 20_000, 0.05)
    assert share == pytest.approx(crossed, abs=6 * np.sqrt(crossed / 20_000))


def test_probabilistic_lemmas_fail_no_more_often_than_allowed():
    """80 paths, delta = 0.1; each of four checks has a false alarm below 1e-8."""
    allowed = int(binom.isf(1e-8, 80, 0.1))
    for link, noise in (("identity", 2.0), ("logistic", 0.5)):
        paths = [random_path(link, 100 + s, noise, T=60) for s in range(80)]
        assert sum(not lemmas.connection(p, noise, 0.1).holds for p in paths) <= allowed
        assert sum(not lemmas.noise_sum(p, noise, 0.1).holds for p in paths) <= allowed
