import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import BARE, CAUCHIT, LINKS, cauchit_mean, cauchit_slope

import noisewise as nw

EXACT = {
    "identity": lambda z: z**2 / 2,
    "logistic": lambda z: mpmath.log1p(mpmath.exp(z)) - mpmath.log(2),
    "probit": lambda z: z * mpmath.ncdf(z) + mpmath.npdf(z) - mpmath.npdf(0),
    "tanh": lambda z: mpmath.log(mpmath.cosh(z)),
    "algebraic": lambda z: mpmath.sqrt(1 + z**2) - 1,
    "exponential": lambda z: mpmath.expm1(z),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("z", [-700.0, -30.0, -1.5, -1e-6, 0.0, 1e-6, 1.5, 30.0, 700.0])
def test_stable_forms_against_high_precision(name, z):
    link, exact = nw.LINKS[name], EXACT[name]
    with mpmath.workdps(400):
        m = mpmath.mpf(z)
        wanted = [exact(m), mpmath.diff(exact, m), mpmath.diff(exact, m, 2)]
        wanted = [float(value) for value in wanted]
    at = np.array([z])
    with np.errstate(under="ignore"):
        found = [link.potential(at)[0], link.mean(at)[0], link.slope(at)[0]]
    # the potential is a difference of order-one terms near 0
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[1:], wanted[1:], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("S", [0.2, 1.0, 5.0])
def test_slopes_over_the_interval(S):
    table = {
        "identity": (1, 1),
        "logistic": (1 / (2 + 2 * np.cosh(S)), 0.25),
        "probit": (np.exp(-S * S / 2) / np.sqrt(2 * np.pi), 1 / np.sqrt(2 * np.pi)),
        "tanh": (np.cosh(S) ** -2, 1),
        "algebraic": ((1 + S * S) ** -1.5, 1),
        "exponential": (np.exp(-S), np.exp(S)),
    }
    for name, (kappa, K) in table.items():
        glm = nw.GLM(name, S, 1.0)
        np.testing.assert_allclose([glm.min_slope, glm.max_slope], [kappa, K], rtol=1e-13)
        np.testing.assert_allclose(glm.ridge, 4 * S * S * K * K / kappa, rtol=1e-13)


@pytest.mark.parametrize("S", [0.1, 1.0, 6.0, 12.0])
def test_slopes_of_a_users_link_are_safe_and_close(S):
    glm = nw.GLM(CAUCHIT, 1.0, S)
    kappa, K = cauchit_slope(S), cauchit_slope(0.0)
    assert 0.97 * kappa <= glm.min_slope <= kappa
    assert K <= glm.max_slope <= 1.01 * K


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(z=st.floats(-8, 8), S=st.floats(0.05, 3))
def test_extension_is_the_tangent(link, z, S):
    glm = nw.GLM(link, 1.0, S)
    c = min(max(z, -S), S)
    slope = float(link.slope(np.array(c)))
    assert glm.mean(z) == pytest.approx(float(link.mean(np.array(c))) + slope * (z - c), rel=1e-13)
    assert glm.slope(z) == pytest.approx(slope, rel=1e-13)


def test_potential_by_quadrature_is_exact():
    glm = nw.GLM(BARE, 1.0, 3.0)
    z = np.linspace(-3, 3, 501)
    exact = z / 2 + (z * np.arctan(z) - np.log1p(z * z) / 2) / np.pi
    np.testing.assert_allclose(glm.potential(z), exact, atol=2e-15 * 3, rtol=1e-13)
    assert np.isnan(glm.potential(np.array([np.nan]))).all()  # and no score of some other panel


def test_unextended_link_is_the_link_itself():
    glm = nw.GLM("logistic", extend=False)
    assert glm.mean(5.0) == pytest.approx(1 / (1 + np.exp(-5.0)))
    np.testing.assert_array_equal(glm.score(np.array([1.5, -0.5])), [np.inf, -np.inf])
    z = np.array([-9.0, 0.0, 9.0])
    np.testing.assert_allclose(glm.score(glm.mean(z)), z, rtol=1e-9)


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"link": "logit"}, "logit"),
        ({"link": 3}, "link"),
        ({"feature_bound": 0}, "feature_bound"),
        ({"feature_bound": np.nan}, "feature_bound"),
        ({"parameter_bound": -1.0}, "parameter_bound"),
        ({"parameter_bound": "big"}, "parameter_bound"),
        ({"link": "exponential", "parameter_bound": 800.0}, "slopes"),
        ({"link": nw.Link("down", lambda z: -z, lambda z: -np.ones_like(z))}, "down"),
        ({"link": nw.Link("off", cauchit_mean, lambda z: 2 * cauchit_slope(z))}, "slope"),
        ({"link": BARE, "extend": False}, "potential"),
    ],
)
def test_bad_models_are_refused(kwargs, word):
    with pytest.raises(ValueError, match=word):
        nw.GLM(**kwargs)


@pytest.mark.parametrize(
    "args", [("", np.tanh, np.tanh), ("a", 3, np.tanh), ("a", np.tanh, None), (1, np.tanh, np.exp)]
)
def test_bad_links_are_refused(args):
    with pytest.raises(ValueError, match="pass"):
        nw.Link(*args)
    with pytest.raises(ValueError, match="self_concordance"):
        nw.Link("a", np.tanh, np.tanh, None, -1.0)


def test_an_infinite_score_has_a_mean_without_the_extension():
    for link, mean in (("exponential", np.inf), ("logistic", 1.0), ("identity", np.inf)):
        assert float(nw.GLM(link, extend=False).prediction(np.inf)) == mean


def test_means_have_the_ends_of_their_links():
    inf = np.inf
    ends = {"logistic": (0, 1), "probit": (0, 1), "tanh": (-1, 1), "algebraic": (-1, 1)}
    ends |= {"identity": (-inf, inf), "exponential": (0, inf)}
    assert {name: nw.GLM(name).ends for name in ends} == ends
