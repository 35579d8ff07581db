"""RidgeMixture of many columns: against a plain implementation, its own narrow form, interrupts."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from test_ridge_mixture import SCORE_BOUND, log_density, parts, refit

import noisewise as nw
from noisewise.regression.mixtures import ridge_mixture, row_space, wide_mixture
from noisewise.regression.mixtures.stream_replay import kept_rows


def plain(family, x, y):
    """The method word by word: means, loss of the mixture, the scales in the end."""
    (n, d), S = x.shape, SCORE_BOUND[family]
    grid = [4.0**k for k in range(-5, 6)]
    prior = np.array([(1 + np.log10(c) ** 2) ** -0.5 for c in grid])
    posterior, thetas = dict(enumerate(prior / prior.sum())), np.zeros((11, d + 1))
    z = np.column_stack([x - x[0], np.ones(n)])
    more, free = (0, 0.25) if family == "poisson" else (1, 64.0**-2)  # rows before the first
    half = np.full(more, 0.5)
    rows = np.vstack([np.eye(d + 1)[d + 1 - more :], z]), np.append(half, y), np.ones(n + more)
    used, means, total, look = np.zeros(d), [], 0.0, 1
    for t in range(n):
        v = z[: t + 1, :d].var(axis=0)
        used = np.where((used == 0) | (v > 4 * used), v, used)
        mixed = density = 0.0
        for k, weight in posterior.items():
            ridge = np.append(np.where(used > 0, grid[k] * d * used, 1.0), free)
            thetas[k] = refit(family, *(each[: t + more] for each in rows), ridge, thetas[k])
            mean = parts(family, np.clip(z[t] @ thetas[k], -S, S))[1]
            p = np.exp(log_density(family, y[t], mean))
            mixed += weight * (np.log(mean) if family == "poisson" else mean)
            density += weight * p
            posterior[k] = weight * p
        means.append(np.exp(mixed) if family == "poisson" else mixed)
        total -= np.log(density)
        posterior = {k: weight / density for k, weight in posterior.items()}
        if t + 1 in (64, 128):
            kept = {k: weight for k, weight in posterior.items() if weight >= 1e-6}
            posterior = {k: weight / sum(kept.values()) for k, weight in kept.items()}
        if t + 1 == look:
            look = t + 1 + max(1, (t + 1) // 4)
            if ((v > 2 * used) | (used > 2 * v)).any():
                used = v
    return np.array(means), total, used


def table(kind, n, d, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "dense":
        x = rng.normal(size=(n, d)) * np.logspace(-2, 2, d) + 7
    elif kind == "heavy":
        x = rng.standard_t(1.2, size=(n, d))
    elif kind == "one-hot":
        x = np.zeros((n, d))
        for part in np.split(np.arange(d), 3):
            x[np.arange(n), part[0] + rng.integers(len(part), size=n)] = 1.0
    else:
        x = np.where(rng.random((n, d)) < 0.05, rng.poisson(3, (n, d)), 0.0)
    return x, rng


def labelled(family, kind, n, d, seed=0):
    x, rng = table(kind, n, d, seed)
    z = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    score = z @ rng.normal(size=d) / np.sqrt(d)
    y = rng.random(n) < expit(2 * score) if family == "binomial" else rng.poisson(np.exp(score))
    return x, y.astype(float)


CASES = [
    ("binomial", "one-hot", 80, 54),
    ("binomial", "heavy", 40, 141),
    ("poisson", "sparse", 60, 54),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("binomial", "dense", 110, 60),
            ("binomial", "sparse", 140, 75),
            ("poisson", "one-hot", 110, 141),
            ("poisson", "dense", 40, 90),
            ("poisson", "heavy", 70, 60),
        )
    ),
]


@pytest.mark.parametrize(("family", "kind", "n", "d"), CASES)
def test_it_is_the_plain_mixture_of_exact_refits(family, kind, n, d):
    x, y = labelled(family, kind, n, d)
    means, loss, used = plain(family, x, y)
    mixture = nw.RidgeMixture(family)
    state = mixture.start(d)
    found = mixture.update(state, x, y)
    error = np.log(found / means) if family == "poisson" else found - means
    assert np.abs(error).max() < (3e-2 if family == "poisson" else 1e-2)  # grows like root d
    assert np.abs(error).mean() < 1e-3
    assert state.loss == pytest.approx(loss, rel=2e-3)
    np.testing.assert_allclose(state.variances, used, rtol=1e-9)
    close = nw.RidgeMixture(family, tolerance=1e-7)
    state = close.start(d)
    found = [close.update(state, *row) for row in zip(x, y, strict=True)]
    assert np.abs(found - means).max() < 1e-5 * max(1, means.max())
    assert state.loss == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("kind", ["one-hot", "heavy", "sparse"])
def test_a_block_is_its_rows_and_a_saved_state_goes_on(kind, tmp_path):
    x, y = labelled("binomial", kind, 90, 150)
    mixture = nw.RidgeMixture()
    whole, rows = mixture.start(150), mixture.start(150)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0], size=90)
    means = mixture.update(whole, x, y, w)
    found = [mixture.update(rows, *row) for row in zip(x[:50], y[:50], w[:50], strict=True)]
    nw.save(tmp_path / "a.npz", mixture, rows)
    spec, rows = nw.load(tmp_path / "a.npz")
    found += [spec.update(rows, *row) for row in zip(x[50:], y[50:], w[50:], strict=True)]
    np.testing.assert_allclose(found, means, rtol=1e-6)
    np.testing.assert_allclose(rows.theta, whole.theta, rtol=1e-5, atol=1e-9)
    assert whole.rank == rows.rank <= len(whole.basis) < 150
    kept, labels, weights, origin = kept_rows(mixture, whole)
    np.testing.assert_allclose(kept + origin, x[w > 0], atol=1e-9 * np.abs(x).max())
    np.testing.assert_allclose(labels, y[w > 0])
    np.testing.assert_allclose(weights, w[w > 0])


@pytest.mark.parametrize("n", [30, 120])
def test_a_row_is_predicted_as_the_next_though_variances_leap(n):
    x, y = labelled("binomial", "sparse", n, 75)
    mixture = nw.RidgeMixture(tolerance=1e-7)
    state = mixture.start(75)
    mixture.update(state, x, y)
    assert (state.basis is not None) == (n == 30)
    far = x[:3].copy()
    far[0, np.argmax(state.variances)] += 100.0
    far[1, :40:8] += 30.0
    before = state.variances.copy()
    predicted = mixture.predict(state, far)
    assert np.array_equal(state.variances, before)
    plainly = mixture._family.mix(state.weights[:, None], state.scores(far - state.shift))
    for i, row in enumerate(far):
        twin = mixture.start(75)
        mixture.update(twin, x, y)
        assert predicted[i] == pytest.approx(mixture.update(twin, row, 1.0), rel=1e-3)
    assert np.abs(predicted - plainly)[:2].min() > 0.01
    assert predicted[2] == pytest.approx(plainly[2], rel=1e-12)


def test_columns_that_say_the_same_need_no_more_directions():
    x, y = labelled("binomial", "dense", 300, 8)
    turn = np.random.default_rng(1).normal(size=(8, 200))
    state = nw.RidgeMixture().start(200)
    nw.RidgeMixture().update(state, x @ turn, y)
    assert state.rank == 8
    assert state.history.x.shape[1] == wide_mixture.FIRST + 1


def test_bases_keep_products_of_rows():
    rng = np.random.default_rng(0)
    rows, basis = rng.normal(size=(6, 20)) * np.logspace(-3, 3, 20), np.zeros((9, 20))
    rows[4] = rows[0] - 2 * rows[1]
    rank = row_space.widened(basis, 0, rows)
    assert rank == 5
    x = rows @ basis.T
    np.testing.assert_allclose(x @ basis, rows, rtol=1e-9, atol=1e-9 * np.abs(rows).max())
    factors = rng.uniform(0.1, 2.0, 20)
    made, L = row_space.scaled(basis, rank, factors)
    np.testing.assert_allclose(x @ L @ made, x @ basis * factors, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made[:rank] @ made[:rank].T, np.eye(rank), atol=1e-12)
    before = x @ basis
    e, t = row_space.stretched(basis, 3, 0.2)
    before[:, 3] *= 0.2
    turned = x + np.outer((t - 1) * (x @ e), e)
    np.testing.assert_allclose(turned @ basis, before, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(basis[:rank] @ basis[:rank].T, np.eye(rank), atol=1e-12)


def test_an_interrupt_is_heard_after_a_few_rows_and_said(monkeypatch):
    x, y = labelled("binomial", "dense", 300, 60)
    model, own, seen = nw.OnlineGLM("binomial"), nw.RidgeMixture._play, []

    def played(mixture, state, z, *rest):
        seen.append(len(z))
        if sum(seen) > 200:
            raise KeyboardInterrupt
        return own(mixture, state, z, *rest)

    model.partial_fit(x[:20], y[:20])
    monkeypatch.setattr(nw.RidgeMixture, "_play", played)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(x, y)
    assert max(seen) <= wide_mixture.AHEAD
    with pytest.raises(ValueError, match="interrupted half-way"):
        model.predict(x)


def test_sparse_matrices_are_their_rows():
    x, y = labelled("poisson", "sparse", 60, 90)
    dense = nw.OnlineGLM("poisson").partial_fit(x, y)
    thin = nw.OnlineGLM("poisson").partial_fit(sparse.csr_matrix(x), y)
    np.testing.assert_array_equal(thin.predict(x), dense.predict(sparse.csr_matrix(x)))


@pytest.mark.parametrize("n", [40, 150])
def test_a_batch_is_that_of_few_columns(n, monkeypatch):
    """The same minimisers and weights, in the span of rows or not; and it goes on learning."""
    x, y = labelled("binomial", "sparse", n + 5, 90)
    fit = nw.OnlineGLM("binomial").fit(x[:n], y[:n])
    assert (fit.state_.basis is not None) == (n == 40)
    means = fit.predict(x[:n])
    ends = fit.predict_interval(x[:3])
    monkeypatch.setattr(ridge_mixture, "NARROW", 1000)
    other = nw.OnlineGLM("binomial").fit(x[:n], y[:n])
    assert other.state_.basis is None
    np.testing.assert_allclose(means, other.predict(x[:n]), atol=1e-6)
    np.testing.assert_allclose(fit.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(fit.state_.weights, other.state_.weights, atol=1e-6)
    np.testing.assert_allclose(ends, other.predict_interval(x[:3]), atol=1e-4)
    monkeypatch.undo()
    fit.partial_fit(x[n:], y[n:])
    assert fit.state_.count == n + 5
