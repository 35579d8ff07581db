"""RidgeMixture: against a plain implementation, against its own experts, on real data."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.special import expit, gammaln, log_ndtr, ndtr

import noisewise as nw
from noisewise.model.families import FAMILIES as KINDS
from noisewise.regression.mixtures.ridge_mixture import GRID, PRIOR

FAMILIES = tuple(KINDS)
SIGNS = "tanh", "algebraic"
SCORE_BOUND = {"binomial": 15.0, "poisson": 30.0, "probit": 5.0, "tanh": 7.5, "algebraic": 1000.0}


def parts(family, score):
    """Potential, mean and slope of the link, continued along its tangent."""
    S = SCORE_BOUND[family]
    c = np.clip(score, -S, S)
    potential, mean, slope = {
        "binomial": lambda: (np.logaddexp(0, c), expit(c), expit(c) * expit(-c)),
        "poisson": lambda: (np.exp(c),) * 3,
        "probit": lambda: (c * ndtr(c) + density(c), ndtr(c), density(c)),
        "tanh": lambda: (np.logaddexp(c, -c), np.tanh(c), np.cosh(c) ** -2.0),
        "algebraic": lambda: (np.hypot(1, c), c / np.hypot(1, c), np.hypot(1, c) ** -3.0),
    }[family]()
    away = score - c
    return potential + (mean + 0.5 * slope * away) * away, mean + slope * away, slope


def density(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def refit(family, z, y, w, ridge, theta):
    """The minimiser of the penalised loss, by damped Newton steps."""

    def value(t):
        return w @ (parts(family, z @ t)[0] - y * (z @ t)) + 0.5 * t @ (ridge * t)

    for _ in range(100):
        _, mean, slope = parts(family, z @ theta)
        g = z.T @ (w * (mean - y)) + ridge * theta
        step = np.linalg.solve(z.T @ ((w * slope)[:, None] * z) + np.diag(ridge), -g)
        s = 1.0
        while s > 1e-9 and value(theta + s * step) > value(theta) + 1e-4 * s * g @ step:
            s /= 2
        theta = theta + s * step
        if -g @ step < 1e-16:
            break
    return theta


def log_density(family, y, mean):
    if family in SIGNS:
        y, mean = (1 + y) / 2, (1 + mean) / 2
    if family != "poisson":
        return y * np.log(mean) + (1 - y) * np.log1p(-mean)
    return y * np.log(mean) - mean - gammaln(y + 1)


def plain(family, x, y, w):
    """The method word by word: means, loss of the mixture, losses of experts, who is alive."""
    d, S = x.shape[1], SCORE_BOUND[family]
    grid = [4.0**k for k in range(-5, 6)]
    prior = np.array([(1 + np.log10(c) ** 2) ** -0.5 for c in grid])
    posterior = dict(enumerate(prior / prior.sum()))
    thetas, losses = np.zeros((11, d + 1)), np.zeros(11)
    z = np.column_stack([x - x[0], np.ones(len(x))])
    more, free = (0, 0.25) if family == "poisson" else (1, 64.0**-2)  # rows before the first
    half = np.full(more, 0.0 if family in SIGNS else 0.5)
    rows = np.vstack([np.eye(d + 1)[d + 1 - more :], z]), np.append(half, y), np.append(half**0, w)
    used, means, total = np.zeros(d), [], 0.0
    for t in range(len(x)):
        v = x[: t + 1].var(axis=0)
        v[v < 1e-14 * (z[: t + 1, :d] ** 2).mean(axis=0)] = 0.0
        if (v > 2 * used).any() or (used > 2 * v).any():
            used = v
        mixed = density = 0.0
        for k, weight in posterior.items():
            ridge = np.append(np.where(used > 0, grid[k] * d * used, 1.0), free)
            thetas[k] = refit(family, *(each[: t + more] for each in rows), ridge, thetas[k])
            mean = parts(family, np.clip(z[t] @ thetas[k], -S, S))[1]
            log = w[t] * log_density(family, y[t], mean)
            losses[k] -= log
            mixed += weight * (np.log(mean) if family == "poisson" else mean)
            density += weight * np.exp(log)
            posterior[k] = weight * np.exp(log)
        means.append(np.exp(mixed) if family == "poisson" else mixed)
        total -= np.log(density)
        posterior = {k: weight / density for k, weight in posterior.items()}
        if t + 1 in (64, 128, 256):
            kept = {k: weight for k, weight in posterior.items() if weight >= 1e-6}
            posterior = {k: weight / sum(kept.values()) for k, weight in kept.items()}
    return np.array(means), total, losses, list(posterior)


def stream(family, seed=0, count=150, dim=3, size=1.0):
    """Features of very different units, labels of the family."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(count, dim))
    unit = np.logspace(-2, 3, dim)
    score = z @ rng.normal(size=dim) * size / np.sqrt(dim)
    if family == "poisson":
        y = rng.poisson(np.exp(np.minimum(score, 4.0)))
    else:
        y = rng.random(count) < expit(score)
        y = 2 * y - 1 if family in SIGNS else y
    return z * unit + 100 * np.arange(dim), y.astype(float)


def played(mixture, x, y, w=1.0):
    state = mixture.start(x.shape[1])
    return mixture.update(state, x, y, w), state


CASES = [
    ("binomial", {"count": 130}, 1.0),
    ("binomial", {"seed": 1, "count": 80, "dim": 6, "size": 3.0}, 1.0),
    ("poisson", {"count": 70}, 1.0),
    ("poisson", {"seed": 1, "count": 80, "dim": 5, "size": 0.5}, 0.5),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("binomial", {"seed": 2, "count": 80, "dim": 2}, 3.0),
            ("probit", {"count": 70}, 1.0),
            ("tanh", {"seed": 1, "count": 70, "size": 2.0}, 1.0),
            ("algebraic", {"seed": 2, "count": 70, "dim": 2}, 2.0),
        )
    ),
]


@pytest.mark.parametrize(("family", "how", "weight"), CASES)
def test_it_is_the_plain_mixture_of_exact_refits(family, how, weight):
    x, y = stream(family, **how)
    w = np.full(len(y), weight)
    means, loss, losses, alive = plain(family, x, y, w)
    found, state = played(nw.RidgeMixture(family), x, y, w)
    error = np.log(found / means) if family == "poisson" else found - means
    assert np.abs(error).max() < (1e-2 if family == "poisson" else 2e-3)
    assert np.abs(error).mean() < 5e-4
    assert state.loss == pytest.approx(loss, rel=1e-3)
    assert list(np.log2(state.ridges) / 2 + 5) == pytest.approx(alive)
    assert (state.loss <= (losses - np.log(PRIOR))[alive] + 0.01).all()
    close, exact = played(nw.RidgeMixture(family, tolerance=1e-7), x, y, w)
    assert np.abs(close - means).max() < 1e-5 * max(1, means.max())
    assert exact.loss == pytest.approx(loss, abs=1e-4)
    nw.RidgeMixture(family).solve(state)
    assert state.gap < 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_shares_are_trials_and_weights(family):
    """A share of n trials with weight n has the likelihood of its trials."""
    x, y = stream(family, count=30)
    w = np.random.default_rng(1).integers(1, 9, size=30).astype(float)
    y = np.round(y * w) / w
    found, state = played(nw.RidgeMixture(family), x, y, w)
    means, loss, *_ = plain(family, x, y, w)
    assert np.abs(found - means).max() < 2e-3 * max(1, means.max())
    assert state.loss == pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [0.0, 1.0, 4.0])
def test_the_loss_is_within_the_logarithm_of_the_prior_of_every_expert(family, size):
    """A theorem; losses of experts alone are those of the mixture with that ridge only."""
    x, y = stream(family, 3, count=200, dim=4, size=size)
    means, state = played(nw.RidgeMixture(family), x, y)
    for c in state.ridges:
        alone = played(nw.RidgeMixture(family, ridge=2 * c), x, y)[1].loss
        assert state.loss <= alone - np.log(PRIOR[np.argmin(np.abs(GRID - c))]) + 1e-6
    if family != "poisson":
        assert -log_density(family, y, means).sum() == pytest.approx(state.loss, abs=1e-8)


def test_the_prior_costs_185_to_300_nats():
    costs = -np.log(PRIOR)
    assert (costs.min(), costs.max()) == pytest.approx((1.85, 3.0), abs=0.01)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_block_is_its_rows(family):
    x, y = stream(family, 5, count=700, dim=4)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0], size=700)
    mixture = nw.RidgeMixture(family)
    whole, state = played(mixture, x, y, w)
    other = mixture.start(4)
    rows = [mixture.update(other, *row) for row in zip(x, y, w, strict=True)]
    np.testing.assert_allclose(whole, rows, rtol=1e-10)
    np.testing.assert_allclose(state.theta, other.theta, rtol=1e-10)
    assert state.count == other.count == (w > 0).sum()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_state_continues_to_the_same_numbers(family, tmp_path):
    x, y = stream(family, 6, count=900)
    mixture = nw.RidgeMixture(family)
    state = played(mixture, x[:600], y[:600])[1]
    nw.save(tmp_path / "a.npz", mixture, state)
    spec, loaded = nw.load(tmp_path / "a.npz")
    assert spec == mixture
    assert np.array_equal(
        mixture.update(state, x[600:], y[600:]), spec.update(loaded, x[600:], y[600:])
    )
    with pytest.raises(ValueError, match="another model"):
        nw.RidgeMixture("poisson" if family != "poisson" else "binomial").predict(state, x)
    with pytest.raises(ValueError, match="fit_intercept"):
        nw.RidgeMixture(family, fit_intercept=False).predict(state, x)


def test_units_and_offsets_do_not_matter():
    x, y = stream("binomial", 7, count=300)
    means = played(nw.RidgeMixture(), x, y)[0]
    moved = x * [2.0**-20, 2.0**9, -(2.0**30)]
    np.testing.assert_allclose(played(nw.RidgeMixture(), moved, y)[0], means, rtol=1e-9)
    np.testing.assert_allclose(played(nw.RidgeMixture(), x + 1e6, y)[0], means, atol=1e-4)


def test_estimates_are_in_the_units_of_the_features():
    x, y = stream("binomial", 8, count=500)
    state = played(nw.RidgeMixture(ridge=0.5), x, y)[1]
    nw.RidgeMixture(ridge=0.5).solve(state)
    score = x @ state.theta + state.intercept
    np.testing.assert_allclose(nw.RidgeMixture(ridge=0.5).predict(state, x), expit(score), 1e-9)


def test_predicting_a_far_row_rescales_a_copy():
    x, y = stream("binomial", 9, count=50)
    mixture = nw.RidgeMixture()
    state = played(mixture, x, y)[1]
    far = x[:2] + np.array([0.0, 0.0, 1e6])
    before = state.variances.copy()
    both = mixture.predict(state, far)
    assert np.array_equal(state.variances, before)
    assert both[0] == pytest.approx(mixture.update(state, far[0], 1.0), rel=1e-9)
    assert not np.array_equal(state.variances, before)


def odd_streams():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    split = (x[:, 0] > 0).astype(float)
    constant, late, wild, rare = x.copy(), x.copy(), x.copy(), (x > 2.3).astype(float)
    constant[:, 1], late[:200, 1], late[200:, 1] = 7.0, 0.0, 1e5 * x[200:, 1]
    wild[::100] *= 1e9
    wide = rng.normal(size=(20, 60))
    return {
        "separated": (x, split),
        "all ones": (x, np.ones(300)),
        "all zeros": (x, np.zeros(300)),
        "one class first": (x, np.where(np.arange(300) < 150, 0.0, split)),
        "constant column": (constant, split),
        "offset": (x + 1e6, split),
        "late feature": (late, split),
        "outliers": (wild, split),
        "rare features": (rare, rare[:, 0]),
        "equal columns": (x[:, [0, 0, 1]], split),
        "more features than rows": (wide, split[:20]),
        "one row": (x[:1], split[:1]),
        "tiny": (1e-160 * x, split),
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", odd_streams())
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_odd_streams_do_no_harm(family, name, fit_intercept):
    x, y = odd_streams()[name]
    y = 2 * y - 1 if family in SIGNS else y
    mixture = nw.RidgeMixture(family, fit_intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        means, state = played(mixture, x, y)
        later = mixture.predict(state, np.vstack([x, 1e8 * x[:2]]))
    for each in (means, later):
        assert np.isfinite(each).all()
        assert (each > KINDS[family].label_range[0]).all()
        assert family == "poisson" or (each < 1).all()
    assert np.isfinite([state.loss, *state.theta, state.intercept]).all()
    assert state.gap >= 0
    share = (1 + y) / 2 if family in SIGNS else y
    average = np.append(0.5, (np.cumsum(share) + 0.5)[:-1] / np.arange(2, len(y) + 1))
    average = 2 * average - 1 if family in SIGNS else average
    if fit_intercept:
        usual = -log_density(family, y, average).sum()
        assert max(state.loss, -log_density(family, y, means).sum()) <= 1.1 * usual + 10


@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "poisson"])
def test_equal_labels_cost_what_krichevsky_and_trofimov_pay(family):
    """Without features, (n + 1/2)/(n + 1) after n labels; features cost less than a nat more."""
    n = np.arange(1000)
    usual = (n + 0.5) / (n + 1)
    for label in KINDS[family].label_range:
        y = np.full(1000, label)
        for x in (np.zeros((1000, 1)), np.random.default_rng(0).normal(size=(1000, 2))):
            means, state = played(nw.RidgeMixture(family), x, y)
            low, high = KINDS[family].label_range
            found = np.abs(means - low - high + label) / (high - low)  # what the label was given
            if not x.any():
                np.testing.assert_allclose(1 - found, 1 - usual, rtol=0.02)
            assert -np.log(found).sum() == pytest.approx(state.loss, rel=1e-9)
            assert state.loss <= -np.log(usual).sum() + 1.0 * x.any() + 0.02


def test_a_row_of_label_one_half_stands_before_the_first():
    """With it 3/2 - 2 mean = b/64^2, b the intercept."""
    mixture = nw.RidgeMixture(ridge=0.5, tolerance=0.0)
    state = mixture.start(1)
    mixture.update(state, [2.0], 1.0)
    assert mixture.predict(state, [2.0]) == pytest.approx(0.749866, abs=1e-6)
    assert state.intercept == pytest.approx(np.log(0.749866 / 0.250134), abs=1e-5)
    for wrong in (0, 2):
        with pytest.raises(ValueError, match=r"have not learnt|prior_rows"):
            dataclasses.replace(state, prior_rows=wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_likelihoods_are_those_of_the_means(family):
    """Also at the largest scores, where a formula in terms of the mean has lost its digits."""
    S = SCORE_BOUND[family]
    z = np.linspace(-S, S, 41)
    low, _ = KINDS[family].label_range
    for label in (low, 0.3, 1.0):
        found = KINDS[family].log_likelihood(z, np.full(41, label))
        expected = log_density(family, label, nw.LINKS[KINDS[family].link].mean(z))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(KINDS["probit"].log_likelihood(z, 0.0 * z), log_ndtr(-z))


def test_a_link_names_its_family():
    assert nw.RidgeMixture("logistic") == nw.RidgeMixture("binomial")
    assert nw.RidgeMixture("exponential") == nw.RidgeMixture("poisson")


def test_large_counts_are_learnt():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = rng.poisson(1e6 * np.exp(0.5 * x[:, 0])).astype(float)
    means, state = played(nw.RidgeMixture("poisson"), x, y)
    assert np.abs(means[200:] / y[200:] - 1).max() < 0.02
    assert state.theta == pytest.approx([0.5, 0.0], abs=0.01)
    assert np.isfinite(played(nw.RidgeMixture("poisson"), x, np.full(300, 1e12))[0]).all()


@pytest.mark.parametrize(
    ("family", "label", "words"),
    [
        ("binomial", 3.0, r"y is 3 at row 1; .*in \[0, 1\].*trials as weights"),
        ("binomial", -1.0, "y is -1 at row 1; .*0 and 1"),
        ("poisson", -1.0, "y is -1 at row 1; .*at least 0.*counts"),
        ("poisson", 1e14, "at most 1e13"),
        ("probit", 2.0, r"in \[0, 1\]"),
        ("tanh", -1.5, r"in \[-1, 1\]: signs"),
    ],
)
def test_labels_of_another_family_are_refused(family, label, words):
    mixture = nw.RidgeMixture(family)
    state = mixture.start(1)
    with pytest.raises(ValueError, match=words):
        mixture.update(state, [[1.0], [2.0]], [1.0, label])
    assert state.count == 0
    mixture.update(state, [[1.0], [2.0]], [1.0, label], [1.0, 0.0])
    assert state.count == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"family": "gaussian"},
        {"family": 1},
        {"fit_intercept": 1},
        {"ridge": 0.0},
        {"tolerance": -1.0},
        {"certificate": "x"},
    ],
)
def test_bad_specs_are_refused(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        nw.RidgeMixture(**fault)
    with pytest.raises(ValueError, match="weight"):
        played(nw.RidgeMixture(), np.ones((2, 1)), np.ones(2), 1e40)


def table(name):
    """A data set of an installed package: features and labels 0 and 1."""
    if name == "breast_cancer":
        both = pytest.importorskip("sklearn.datasets").load_breast_cancer(return_X_y=True)
        return both[0], both[1].astype(float)
    if name in ("Phishing", "Bananas"):
        stream = getattr(pytest.importorskip("river.datasets"), name)()
        rows, labels = zip(*stream, strict=True)
        return np.array([[*row.values()] for row in rows], float), np.array(labels, float)
    datasets = pytest.importorskip("statsmodels.api").datasets
    data = getattr(datasets, name).load_pandas().data
    target = {"fair": "affairs", "anes96": "vote"}[name]
    labels = (data[target] > 0).to_numpy(float)
    return data.drop(columns=target).to_numpy(float), labels


def orders(name, count):
    """Streams of river as they are, tables in three orders."""
    if name in ("Phishing", "Bananas"):
        return [np.arange(count)]
    return [np.random.default_rng(s).permutation(count) for s in range(3)]


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("breast_cancer", 0.1083),
        ("anes96", 0.2554),
        ("Phishing", 0.2572),
        ("Bananas", 0.6862),
        pytest.param("fair", 0.5502, marks=pytest.mark.slow),
    ],
)
def test_log_loss_on_real_data(name, loss):
    x, y = table(name)
    found = [
        -log_density("binomial", y[o], played(nw.RidgeMixture(), x[o], y[o])[0]).mean()
        for o in orders(name, len(y))
    ]
    assert np.mean(found) == pytest.approx(loss, rel=0.005)


@pytest.mark.slow
def test_log_loss_of_visits_to_doctors():
    pytest.importorskip("statsmodels")
    from statsmodels.datasets import randhie

    data = randhie.load_pandas().data[:8000]
    x, y = data.drop(columns="mdvis").to_numpy(float), data["mdvis"].to_numpy(float)
    found = [
        played(nw.RidgeMixture("poisson"), x[o], y[o])[1].loss / 8000 for o in orders("", 8000)
    ]
    assert np.mean(found) == pytest.approx(3.518, rel=0.005)
