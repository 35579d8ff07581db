"""Lower bounds: below what is attained, and in closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import sphere

import noisewise as nw
from noisewise import theory
from noisewise.numerics.bessel import bessel_zero


@given(d=st.integers(1, 8), T=st.integers(1, 60), seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_lower_bound_below_exact_below_mean_bound(d, T, seed):
    x = sphere(np.random.default_rng(seed), T, d)
    _, h = theory.design_terms(nw.GLM(), x, 4.0)
    worst = theory.worst_mean_regret(x)
    bound = theory.mean_bound(nw.GLM(), nw.SubGaussian(), dim=d, horizon=T, leverages=h)
    ball, cube = theory.lower_bound(x), theory.lower_bound(x, prior="cube")
    assert cube <= ball * (1 + 1e-12)
    assert ball <= worst * (1 + 1e-12)
    assert worst <= bound * (1 + 1e-12)


def test_gaussian_prior_is_attained_by_ftrl():
    """Averaged over mu* ~ N(0, tau^2 I), FTRL with 2 lam = sigma^2/tau^2 meets the lower bound."""
    rng = np.random.default_rng(2)
    x, sigma, tau = sphere(rng, 80, 4), 0.6, 0.35
    ridge = sigma**2 / (2 * tau**2)
    bias, variance = theory.regret.mean_regret_parts(x, sigma=sigma, ridge=ridge)
    average = variance.sum() + 0.5 * tau**2 * (bias**2).sum()
    bound = theory.lower_bound(x, sigma=sigma, parameter_bound=2 * tau, prior="gaussian")
    assert average == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("prior", ["ball", "cube", "gaussian"])
def test_basis_design_in_closed_form(prior):
    x = 0.7 * np.eye(3)[np.arange(50) % 3]
    at = {"sigma": 0.4, "parameter_bound": 1.3, "prior": prior}
    closed = theory.basis_lower_bound(3, 50, feature_bound=0.7, **at)
    assert closed == pytest.approx(theory.lower_bound(x, **at), rel=1e-12)


def test_ball_precision_by_dimension():
    assert bessel_zero(-0.5) == pytest.approx(np.pi / 2)
    assert bessel_zero(0.5) == pytest.approx(np.pi)
    assert bessel_zero(0) == pytest.approx(2.404825557695773)
    d = 4000
    ratio = theory.lower.prior_precision(d) / d
    assert 1 < ratio < 1.05
    x = sphere(np.random.default_rng(0), 50, 3)
    linear = theory.lower_bound(x, sigma=0.5, parameter_bound=2.0)
    same = theory.glm_lower_bound(x, sigma=0.5, parameter_bound=2.0, min_slope=1.0, max_slope=1.0)
    assert same == pytest.approx(linear)
    curved = theory.glm_lower_bound(x, sigma=0.5, parameter_bound=2.0, min_slope=0.1, max_slope=1.0)
    assert curved == pytest.approx(0.1 * linear)


def test_lower_bound_of_a_link_from_its_formula():
    """kappa sigma^2/(2 K^2) sum x'(V + rho/K^2)^-1 x: two rows of d = 1, rho = sigma^2/B^2 = 4."""
    at = {"sigma": 2.0, "parameter_bound": 1.0, "prior": "gaussian"}
    two = theory.glm_lower_bound([[1.0], [1.0]], min_slope=0.1, max_slope=0.5, **at)
    assert two == pytest.approx(0.5 * 0.1 * 16 * (1 / 16 + 1 / 17))
