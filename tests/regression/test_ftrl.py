import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from instances import LINKS, sphere
from scipy.optimize import minimize

import noisewise as nw
from noisewise.regression.ftrl.sets import uniform

X = np.array([[1, 0], [0.6, 0.8], [-0.8, 0.6], [0, 1.0]])
Y = np.array([1, -2, 3, 0.5])

GOLDEN = {
    "identity": (
        4,
        [(1 / 9, 0), (-1 / 84, -0.18452380952380953), (-0.26, 1 / 45), (-0.26, 0.07)],
        0.446287102628,
        -2.686617457168,
    ),
    "logistic": (
        1.271540317408,
        [
            (0.179056490868, 0),
            (-0.318659636917, -0.728447061897),
            (-0.995274896551, -0.179923109636),
            (-0.995267156450, -0.165026590020),
        ],
        0.287551247748,
        -0.909532438608,
    ),
}


@pytest.mark.parametrize("link", GOLDEN)
def test_golden_vectors(link):
    ridge, thetas, log_det, regret = GOLDEN[link]
    glm = nw.GLM(link)
    ftrl = nw.FTRL(glm, tolerance=0)
    assert glm.ridge == pytest.approx(ridge, abs=1e-11)
    state, measured = ftrl.start(2), 0.0
    truth = np.array([0.6, -0.8])
    for x, y, theta in zip(X, Y, thetas, strict=True):
        played, best = x @ state.theta, x @ truth
        measured += glm.potential(played) - y * played - (glm.potential(best) - y * best)
        ftrl.update(state, x, y)
        np.testing.assert_allclose(state.theta, theta, atol=1e-10)
    assert uniform(glm, state)[1] == pytest.approx(log_det, abs=1e-11)
    assert measured == pytest.approx(regret, abs=1e-11)


@pytest.mark.parametrize(("extend", "theta"), [(True, 9.383161242267), (False, 11.010287762067)])
def test_golden_labels_outside_the_range(extend, theta):
    ftrl = nw.FTRL(nw.GLM("logistic", extend=extend), tolerance=0)
    state = ftrl.start(1)
    ftrl.update(state, np.ones((3, 1)), [10.0, 12.0, 9.0])
    np.testing.assert_allclose(state.theta, theta, atol=1e-10)


def exact_ridge(x, y, w, ridge):
    """The minimiser of ridge |mu|^2 + sum w (x.mu - y)^2 / 2, exact sums, solved in 60 digits."""
    x, y, w = (np.vectorize(Fraction)(part) for part in (x, y, w))
    G, b = x.T @ (w[:, None] * x), x.T @ (w * y)
    with mpmath.workdps(60):
        exact = mpmath.matrix([[_digits(v) for v in row] for row in G])
        exact += 2 * mpmath.mpf(ridge) * mpmath.eye(len(b))
        solution = mpmath.lu_solve(exact, mpmath.matrix([_digits(v) for v in b]))
        return np.array([float(v) for v in solution])


def _digits(v):
    return mpmath.mpf(v.numerator) / v.denominator


@pytest.mark.parametrize("dim", [1, 4, 9])
def test_identity_equals_ridge_in_extended_precision(dim):
    rng = np.random.default_rng(dim)
    x, y = sphere(rng, 60, dim), rng.normal(size=60)
    w = rng.uniform(0.2, 3.0, size=60)
    ftrl = nw.FTRL(nw.GLM(), ridge=0.3, tolerance=0)
    state = ftrl.start(dim)
    for t in range(60):
        ftrl.update(state, x[t], y[t], w[t])
        exact = exact_ridge(x[: t + 1], y[: t + 1], w[: t + 1], 0.3)
        np.testing.assert_allclose(state.theta, exact, atol=1e-12)
        distance = np.sqrt(
            (exact - state.theta) @ np.linalg.solve(state.inverse(), exact - state.theta)
        )
        assert distance <= state.gap


@pytest.mark.parametrize("dim", [3, 10])
def test_identity_far_from_the_origin(dim):
    """Offset 10^4 and ridge 10^-6: predictions exact to 10^-6 of a label's sd from n = 2d on."""
    rng = np.random.default_rng(5)
    T = 6000 if dim == 3 else 700
    checked = {2 * dim, 2 * dim + 1, 3 * dim, 4 * dim - 1, 4 * dim, 10 * dim, 511, T // 2, T}
    x = 1e4 + rng.normal(size=(T, dim))
    y = (x - 1e4) @ rng.normal(size=dim) + rng.normal(size=T)
    probe = 1e4 + rng.normal(size=(50, dim))
    bound = 2e4 * np.sqrt(dim)
    ftrl = nw.FTRL(nw.GLM("identity", bound, 10.0), ridge=1e-6, tolerance=0)
    state, worst = ftrl.start(dim), 0.0
    for t in range(T):
        ftrl.update(state, x[t], y[t])
        if t + 1 in checked:
            exact = exact_ridge(x[: t + 1], y[: t + 1], np.ones(t + 1), 1e-6)
            worst = max(worst, np.abs(probe @ exact - ftrl.predict(state, probe)).max())
    assert worst <= 1e-6 * y.std()


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_agrees_with_an_independent_optimiser(link):
    """Weights over four decades, labels far outside the link's range."""
    rng = np.random.default_rng(11)
    glm, n, d = nw.GLM(link, 1.0, 2.0), 40, 3
    x, w = sphere(rng, n, d), 10 ** rng.uniform(-2, 2, size=n)
    y = 30 * rng.normal(size=n)
    ftrl = nw.FTRL(glm, ridge=0.5, tolerance=0)
    state = ftrl.start(d)
    ftrl.update(state, x, y, w)

    def gradient(mu):
        return mu + x.T @ (w * (glm.mean(x @ mu) - y))

    def value(mu):
        z = x @ mu
        return 0.5 * mu @ mu + w @ (glm.potential(z) - y * z)

    def hessian(mu):
        return np.eye(d) + x.T @ ((w * glm.slope(x @ mu))[:, None] * x)

    found = minimize(
        value,
        np.zeros(d),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-9, "maxiter": 2000},
    )
    scale = 1 + np.abs(found.x).max()
    np.testing.assert_allclose(state.theta, found.x, atol=1e-8 * scale)
    assert state.gap <= 1e-8


def test_undamped_newton_would_diverge_here():
    """The stream that makes the line search necessary: the exact estimate is still found."""
    glm = nw.GLM("logistic", 1.0, 8.0, extend=False)
    ftrl = nw.FTRL(glm, ridge=1e-3, tolerance=0)
    state = ftrl.start(1)
    ftrl.update(state, [[1.0], [1.0]], [1.0, 0.0], [1e4, 1.0])
    gradient = 2e-3 * state.theta[0] + 10001 / (1 + np.exp(-state.theta[0])) - 1e4
    assert abs(gradient) < 1e-8
    assert state.gap < 1e-6


def test_prediction_shapes_and_counts():
    ftrl = nw.FTRL(nw.GLM("logistic"), tolerance=0)
    state = ftrl.start(2)
    assert ftrl.predict(state, [1.0, 0.0]) == 0.5
    assert ftrl.update(state, X, Y).shape == (4,)
    assert state.count == 4
    ftrl.update(state, X[:0], Y[:0])
    ftrl.update(state, X[0], 1.0, 0.0)
    assert state.count == 4
    copy = state.theta
    copy[:] = 9
    assert state.theta[0] != 9


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"glm": "logistic"}, "glm"),
        ({"ridge": 0}, "ridge"),
        ({"ridge": np.inf}, "ridge"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"certificate": "sure"}, "certificate"),
        ({"oversize": "ignore"}, "oversize"),
    ],
)
def test_bad_specs_are_refused(kwargs, word):
    with pytest.raises(ValueError, match=word):
        nw.FTRL(**kwargs)


@pytest.mark.parametrize("dim", [0, -1, 2.5, True, "3"])
def test_bad_dimension_is_refused(dim):
    with pytest.raises(ValueError, match="dim"):
        nw.FTRL().start(dim)


def test_rows_above_the_feature_bound():
    row = [3.0, 0.0]
    strict, lenient = nw.FTRL(), nw.FTRL(oversize="warn")
    state = strict.start(2)
    with pytest.raises(ValueError, match=r"norm 3.*feature_bound"):
        strict.update(state, row, 1.0)
    assert state.count == 0
    strict.update(state, [1 + 1e-10, 0.0], 1.0)
    state = lenient.start(2)
    with pytest.warns(UserWarning, match="feature_bound"):
        lenient.update(state, row, 1.0)
    assert state.count == 1


def test_messages_name_argument_value_and_remedy():
    ftrl = nw.FTRL()
    state = ftrl.start(2)
    for call, words in [
        (lambda: ftrl.update(state, [1.0, np.nan], 1.0), ("x", "nan", "drop")),
        (lambda: ftrl.update(state, [1.0], 1.0), ("x", "(1,)", "(2,)")),
        (lambda: ftrl.update(state, X, Y[:2]), ("y", "(2,)", "(4,)")),
        (lambda: ftrl.update(state, X[0], 1.0, -2.0), ("weight", "-2", ">= 0")),
        (lambda: ftrl.predict(state, [[np.inf, 0.0]]), ("x", "inf", "drop")),
    ]:
        with pytest.raises(ValueError) as error:
            call()
        assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_a_large_block_with_a_bad_row_leaves_the_state_as_it_was(link, aggregate):
    """All rows are checked before the first is learnt."""
    rng, d = np.random.default_rng(3), 3
    ftrl = nw.FTRL(nw.GLM(link, 1.0, 2.0), ridge=0.5, aggregate=aggregate)
    few = sphere(rng, 40, d)
    x, y = few[rng.integers(40, size=30_000)], rng.random(30_000)
    state = ftrl.start(d)
    ftrl.update(state, x[:3000], y[:3000])
    before = pickle.dumps(state)
    passes, factors = state.passes, state.factors
    for name, bad in (("norm", np.full(d, 2.0)), ("holds", np.full(d, np.nan))):
        worse = x.copy()
        worse[-1] = bad
        with pytest.raises(ValueError, match=f"x {'has ' if name == 'norm' else ''}{name}"):
            ftrl.update(state, worse, y)
        assert pickle.dumps(state) == before
    with pytest.raises(ValueError, match="too large to compute with"):
        ftrl.update(state, x, np.append(y[:-1], 1e120))
    assert pickle.dumps(state) == before
    means = ftrl.update(state, x, y)
    other = pickle.loads(before)
    np.testing.assert_array_equal(ftrl.update(other, x, y), means)
    assert state.factors > factors
    assert link == "identity" or state.passes > passes
    # one by one, in pieces that are checked beforehand
    third = pickle.loads(before)
    pieces = [
        ftrl.update(third, x[i : i + 500], y[i : i + 500], 1.0) for i in range(0, 30_000, 500)
    ]
    np.testing.assert_allclose(np.concatenate(pieces), means, atol=1e-9)


def test_oversized_rows_of_a_large_block_are_learnt_with_a_warning():
    rng = np.random.default_rng(4)
    x, y = 1.5 * sphere(rng, 20_000, 2), rng.random(20_000)
    ftrl = nw.FTRL(nw.GLM(), ridge=0.5, oversize="warn")
    state = ftrl.start(2)
    with pytest.warns(UserWarning, match="above feature_bound"):
        ftrl.update(state, x, y)
    theta = np.linalg.solve(np.eye(2) + x.T @ x, x.T @ y)
    np.testing.assert_allclose(state.theta, theta, atol=1e-12)
