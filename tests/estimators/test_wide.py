"""Tables of many columns: a plain dense twin, the same in all shapes, interrupts, and hashing."""

import math
import signal
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from instances import close
from scipy import sparse

import noisewise as nw
from noisewise.estimators import width
from noisewise.estimators.hashing import hashed_rows
from noisewise.kernels.self_tuning import self_tuned_rounds
from noisewise.kernels.self_tuning.self_tuned_numbers import WIDE as FEATURES
from noisewise.kernels.self_tuning.self_tuned_numbers import Moments
from noisewise.regression.self_tuned import wide_ridge
from noisewise.support.interruptible import interruptible
from noisewise.tabular import fitting, reading

GRID = 10.0 ** np.arange(-3, 4.25, 0.5)
LOG_PRIOR = -np.log(1 + np.log10(GRID) ** 2)


def penalty(c, v, size):
    R = np.where(v > 0, c * len(v) * v, 1.0)
    return np.append(R, np.full(size - len(v), 1e-8))


def chosen(G, b, q, n, v):
    """The ridge by the evidence of whole matrices."""
    logs, p, d = LOG_PRIOR.copy(), len(b), len(v)
    for k, c in enumerate(GRID) if n >= 2.5 else ():
        H = G + np.diag(penalty(c, v, p))
        S = max(q - b @ np.linalg.solve(H, b), 1e-12 * q, 1e-300)
        growth = np.linalg.slogdet(H)[1] - np.log(c * d * v[v > 0]).sum()
        logs[k] -= growth / 2 + (n - (p - d)) / 2 * math.log(S)
    mass = np.exp(logs - logs.max())
    return math.exp(mass @ np.log(GRID) / mass.sum())


def twin(x, y, w, gamma=1.0, intercept=True):
    """One-step-ahead predictions of one forgetting factor, unclipped, by solving at every row."""
    d, p = x.shape[1], x.shape[1] + intercept
    z = np.column_stack([x - x[0], np.ones(len(x))]) if intercept else x
    label = y - y[0] * intercept
    G, b, q, n = np.zeros((p, p)), np.zeros(p), 0.0, 0.0
    used, R, c, due, factored = np.zeros(d), np.append(np.ones(d), np.full(p - d, 1e-8)), 1.0, 0, 0

    def spread(rows):
        square = (rows**2).mean(axis=0)
        v = rows.var(axis=0) if intercept else square
        return np.where(v > 1e-14 * square, v, 0.0)

    means = []
    for t in range(len(y)):
        v = spread(z[: t + 1, :d])
        moved = (v > 2 * used) | (used > 2 * v)
        used = np.where(moved, v, used)
        if np.sum(moved & (np.diag(G)[:d] > 0)) > 1 + d // 64:
            R, factored = penalty(c, used, p), t
        R = np.where(np.append(moved, np.zeros(p - d, dtype=bool)),
                     gamma ** (t - factored) * penalty(c, used, p), R)  # fmt: skip
        theta = np.linalg.solve(G + np.diag(R), b)
        means.append(z[t] @ theta + y[0] * intercept if t else 0.0)
        G = gamma * G + w[t] * np.outer(z[t], z[t])
        b, q, n = (
            gamma * b + w[t] * label[t] * z[t],
            gamma * q + w[t] * label[t] ** 2,
            gamma * n + 1,
        )
        R = gamma * R
        if t + 1 >= due:
            used = spread(z[: t + 1, :d])
            c = chosen(G, b, q, n, used)
            wait = (t + 1) / 4
            if gamma < 1:
                wait = min(wait, max(1 / (1 - gamma), d / 10))
            due = t + 1 + max(1, wait)
            R, factored = penalty(c, used, p), t + 1
        elif gamma < 1 and t + 1 - factored >= max(1, d / 10, 0.2 / (1 - gamma)):
            R, factored = penalty(c, used, p), t + 1
    return np.array(means)


def table(kind, rows, dim, seed=0):
    """Features of a kind, labels and weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, dim)) * 10.0 ** rng.uniform(-2, 2, dim) + rng.normal(size=dim)
    if kind == "one-hot":
        x, levels = np.zeros((rows, dim)), dim // 3
        for block in range(3):
            x[np.arange(rows), block * levels + rng.integers(0, levels, rows)] = 1.0
    elif kind == "heavy":
        x = rng.standard_cauchy(size=(rows, dim))
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    y = 5 + x @ (rng.normal(size=dim) / scale) / math.sqrt(dim) + 0.3 * rng.normal(size=rows)
    return x, y, rng.uniform(0.2, 3.0, rows)


@pytest.mark.parametrize("kind", ["dense", "one-hot", "heavy"])
@pytest.mark.parametrize(("intercept", "gamma"), [(True, 1.0), (False, 1.0), (True, 0.95)])
def test_it_equals_its_dense_twin_before_and_after_as_many_rows_as_columns(kind, intercept, gamma):
    x, y, w = table(kind, 220, FEATURES + 26)
    method = nw.SelfTuned(forgetting=gamma, fit_intercept=intercept, clip=False)
    found = nw.predictions(method, x, y, w)
    wanted = twin(x, y, w, gamma, intercept)
    away = np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted) / y.std())
    assert away.max() < 1e-7 * y.std()


@pytest.mark.parametrize("kind", ["dense", "one-hot", "heavy"])
def test_predict_says_what_update_would(kind):
    """Also for a row that moves the variances of all columns, and of weight 0."""
    x, y, w = table(kind, 150, FEATURES + 26)
    x[[40, 120]] *= 50.0
    w[::7] = 0.0
    method = nw.SelfTuned(forgetting=(1.0, 0.97))
    block, single = method.start(x.shape[1]), method.start(x.shape[1])
    means = method.update(block, x, y, w)
    for t in range(len(y)):
        scale = max(1.0, abs(means[t]))
        assert method.predict(single, x[t]) == pytest.approx(means[t], abs=1e-8 * scale)
        assert method.update(single, x[t], y[t], w[t]) == pytest.approx(means[t], abs=1e-8 * scale)
    kept = w > 0
    close(nw.predictions(method, x[kept], y[kept], w[kept]), means[kept], 1e-8)


def test_few_rows_cost_no_factor_of_all_columns():
    """A = L L' with as many columns as rows says the same as A."""
    x, y, w = table("dense", 40, 120)
    z = np.column_stack([x, np.ones(40)])
    G, b, q = z.T @ (w[:, None] * z), z.T @ (w * y), float(w @ y**2)
    sums = wide_ridge.scaled(np.tril(G), b, q, x.var(axis=0))
    part = wide_ridge.narrow(sums, 40)
    assert 39 <= len(part.K) <= 40
    ridges = [wide_ridge.choose_ridge(sums, each, 40.0, 120, True) for each in (part, None)]
    assert ridges[0] == pytest.approx(ridges[1], rel=1e-8)
    (P, theta), (Q, other) = (
        wide_ridge.inverse(sums, each, 120 * ridges[0]) for each in (part, None)
    )
    H = G + np.diag(np.append(120 * ridges[0] * x.var(axis=0), 1e-8))
    for each in (P, Q):
        assert np.abs(H @ each - np.eye(121)).max() < 1e-7
    assert np.abs(z @ (theta - other)).max() < 1e-9 * y.std()
    assert np.abs(z @ (np.linalg.solve(H, b) - other)).max() < 1e-8 * y.std()


@pytest.mark.parametrize("kind", ["dense", "one-hot"])
def test_sparse_dense_and_row_by_row_are_the_same(kind):
    x, y, w = table(kind, 160, FEATURES + 26)
    whole, single, thin = nw.OnlineGLM(), nw.OnlineGLM(), nw.OnlineGLM()
    means = whole.update(x, y, w)
    close(thin.update(sparse.csr_array(x), y, w), means)
    for t in range(len(y)):
        found = single.update(x[t : t + 1], y[t : t + 1], w[t : t + 1])
        assert found == pytest.approx(means[t], abs=1e-8 * y.std())
    close(single.coef_ * x.std(axis=0), whole.coef_ * x.std(axis=0), 1e-8)
    close(nw.OnlineGLM().fit(sparse.csr_array(x), y, w).predict(x), whole.refit().predict(x), 1e-8)


@pytest.mark.parametrize("rows", [50, 150])
def test_a_stream_goes_on_after_a_batch(rows):
    """With a given ridge a batch and a stream differ by the variances that are used alone."""
    x, y, _ = table("dense", rows + 100, FEATURES + 26)
    model = nw.OnlineGLM(ridge=1.0).fit(x[:rows], y[:rows])
    model.partial_fit(x[rows:], y[rows:])
    v = Moments(*model.state_.moments).used
    z = x - x.mean(axis=0)
    theta = np.linalg.solve(z.T @ z + np.diag(2.0 * v), z.T @ (y - y.mean()))
    assert np.abs(z @ (model.coef_ - theta)).max() < 1e-8 * y.std()


def interrupt_after(seconds, function):
    """Whether an interrupt after some seconds ends a call."""

    def raised(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raised)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        function()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def test_an_interrupted_update_is_whole_or_says_so(monkeypatch):
    x, y, _ = table("dense", 1500, 600)
    model, learn, calls = nw.OnlineGLM().partial_fit(x[:2], y[:2]), self_tuned_rounds.learn, []

    def second(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(*args)

    monkeypatch.setattr(self_tuned_rounds, "learn", second)
    with pytest.raises(KeyboardInterrupt):
        model.update(x[2:], y[2:])
    with pytest.raises(ValueError, match="interrupted half-way"):
        model.predict(x[:1])


def test_a_call_returns_after_a_bounded_piece_of_work():
    """So an interrupt is heard between two of them."""
    x, y, w = table("dense", 3000, 200)
    state = nw.SelfTuned().start(200)
    nw.SelfTuned().update(state, x[:1000], y[:1000])
    done = self_tuned_rounds.learn(
        state.numbers, state.moments, state.experts, state.gram, state.moment, state.inverse,
        state.theta, 0.0, 1, 0, x[1000:], y[1000:], w[1000:], np.empty(2000),
    )  # fmt: skip
    assert 0 < done <= 1 + self_tuned_rounds.BUDGET / 200**2
    assert state.count == 1000 + done


def test_a_call_in_a_thread_of_its_own_answers_fails_and_is_interrupted():
    assert interruptible(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        interruptible(divmod)(7, 0)
    slept = []
    assert interrupt_after(0.1, lambda: interruptible(lambda: slept.append(time.sleep(20)))())
    assert not slept  # or it was not heard


def test_it_says_beforehand_how_long_very_many_columns_take(monkeypatch):
    monkeypatch.setattr(width, "MOST", 4)
    x, y, _ = table("dense", 12, 5)
    with pytest.warns(UserWarning, match=r"5 columns: 12 rows will take about .* hashed=1024"):
        nw.OnlineGLM().fit(x, y)
    with pytest.warns(UserWarning, match=r"5 columns: 1,000 rows will take about"):
        model = nw.OnlineGLM().partial_fit(x[:1], y[:1])
    with warnings.catch_warnings(action="error"):
        model.partial_fit(x[1:], y[1:])  # once
        nw.OnlineGLM(hashed=4).fit(x, y)
        nw.OnlineGLM().fit(x[:, :4], y)


def test_hashing_adds_signed_columns_up_and_keeps_products():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 20000))
    h, given = hashed_rows(x, 64, None)
    assert (h.shape, given) == ((3, 64), 20000)
    close(hashed_rows(sparse.csr_array(x), 64, None)[0], h, 1e-12)
    unit = hashed_rows(np.eye(500), 64, None)[0]
    assert (np.abs(unit).sum(axis=1) == 1).all()
    assert ((unit != 0).sum(axis=1) == 1).all()
    close(hashed_rows(x[:, :500], 64, None)[0], x[:, :500] @ unit, 1e-12)
    # each bucket has 500/64 columns in the mean; P(one has more than 30) < 1e-7
    assert np.abs(unit).sum(axis=0).max() <= 30
    # a sum of 500 signs is within 6 standard deviations but with probability 2e-9
    assert abs(unit.sum()) < 6 * math.sqrt(500)


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_hashed_model_learns_saves_and_names_its_buckets(family, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(1.0 * (rng.random((300, 40)) < 0.1)).add_prefix("word")
    y = 1.0 * (frame.word3 + frame.word7 + 0.3 * rng.normal(size=300) > 0.5)
    model = nw.OnlineGLM(family, hashed=16).fit(frame, y)
    other = nw.OnlineGLM(family).fit(hashed_rows(frame, 16, None)[0], y)
    close(model.predict(frame), other.predict(hashed_rows(frame, 16, None)[0]))
    assert (model.n_features_in_, len(model.coef_)) == (40, 16)
    close(model.predict(frame[frame.columns[::-1]]), model.predict(frame))
    assert model.summary().names == (*(f"bucket {i}" for i in range(16)), "intercept")
    nw.save(tmp_path / "a.npz", model)
    loaded = nw.load(tmp_path / "a.npz")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    plain = nw.OnlineGLM(family, hashed=16).fit(frame.to_numpy(), y)
    with pytest.raises(ValueError, match="39 features, but OnlineGLM is expecting 40"):
        plain.predict(frame.to_numpy()[:, :39])
    for wrong in (0, 2.5, "many"):
        with pytest.raises(ValueError, match="hashed"):
            nw.OnlineGLM(hashed=wrong).fit(frame, y)


def test_a_file_is_learnt_in_pieces_and_very_many_columns_are_announced(
    monkeypatch, tmp_path, capsys
):
    x, y, _ = table("dense", 60, 5)
    pd.DataFrame(x, columns=list("abcde")).assign(y=y).to_csv(tmp_path / "a.csv", index=False)
    asked = fitting.Options(target="y")
    whole = fitting.fit(tmp_path / "a.csv", asked)
    assert "columns" not in capsys.readouterr().err
    monkeypatch.setattr(width, "MOST", 4)
    monkeypatch.setattr(fitting, "WORK", 25.0)
    monkeypatch.setattr(reading, "CELLS", 100)
    pieces = fitting.fit(tmp_path / "a.csv", asked)
    said = capsys.readouterr().err
    assert "There are 5 columns: 1,000 rows will take about" in said
    assert "--features" in said
    close(pieces.evaluation.all_rows.totals, whole.evaluation.all_rows.totals, 1e-9)
    close(pieces.model.coef_, whole.model.coef_, 1e-9)
