"""Both sides of every lemma on two paths that can be followed by hand."""

import math

import numpy as np
import pytest

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
