"""SelfTuned against a readable twin, batch solutions, and measured errors."""

import math
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances import close

import noisewise as nw
from noisewise.kernels.self_tuning import self_tuned_rounds
from noisewise.kernels.self_tuning.self_tuned_numbers import ExpertNumbers, Moments

GRID = 10.0 ** np.arange(-3, 4.25, 0.5)
LOG_PRIOR = -np.log(1 + np.log10(GRID) ** 2)


class Factor:
    """Ridge regression with one forgetting factor, in numpy."""

    def __init__(self, gamma, size):
        self.gamma, self.n, self.q, self.loss, self.next = gamma, 0.0, 0.0, 0.0, 0.0
        self.G, self.b = np.zeros((size, size)), np.zeros(size)

    def choose(self, v, t):
        moved, logs = v > 0, LOG_PRIOR.copy()
        for k, c in enumerate(GRID) if self.n >= 2.5 else ():
            H = self.G + self.penalty(c, v)
            S = max(self.q - self.b @ np.linalg.solve(H, self.b), 1e-12 * self.q, 1e-300)
            growth = np.linalg.slogdet(H)[1] - np.log(c * len(v) * v[moved]).sum()
            logs[k] -= growth / 2 + (self.n - (len(self.b) - len(v))) / 2 * math.log(S)
        mass = np.exp(logs - logs.max())
        self.c = math.exp(mass @ np.log(GRID) / mass.sum())
        most = 1 / (1 - self.gamma) if self.gamma < 1 else math.inf
        self.next = t + max(1, min(0.25 * t, most))

    def penalty(self, c, v):
        R = np.where(v > 0, c * len(v) * v, 1.0)
        return np.diag(np.append(R, np.full(len(self.b) - len(v), 1e-8)))

    def factor(self, v, t):
        self.P = np.linalg.inv(self.G + self.penalty(self.c, v))
        self.B, self.factored = self.P @ self.b, t

    def stale(self, dim, t):
        if self.gamma == 1:
            return False
        return t - self.factored >= max(1, 0.2 / (1 - self.gamma), dim / 10)

    def learn(self, z, y, w):
        Pz = self.P @ z
        a = w / (self.gamma + w * (z @ Pz))
        self.B = self.B + a * Pz * (y - z @ self.B)
        P = (self.P - a * np.outer(Pz, Pz)) / self.gamma
        self.P = (P + P.T) / 2
        self.G = self.gamma * self.G + w * np.outer(z, z)
        self.b = self.gamma * self.b + w * y * z
        self.q, self.n = self.gamma * self.q + w * y * y, self.gamma * self.n + 1


def twin(x, y, weight=None, intercept=True):
    """The one-step-ahead predictions of `SelfTuned`, in numpy."""
    dim, weight = x.shape[1], np.ones(len(y)) if weight is None else weight
    prior = {g: p for g, p in {1.0: 0.8, 0.99: 0.1, 0.97: 0.1}.items()
             if g == 1 or 1 / (1 - g) >= 2 * dim - 1e-9}  # fmt: skip
    factors = [Factor(gamma, dim + intercept) for gamma in prior]
    prior = shares = np.array([*prior.values()]) / sum(prior.values())
    z = np.column_stack([x - x[0], np.ones(len(x))]) if intercept else x
    y0, used, V, m, means = y[0] * intercept, np.zeros(dim), 0.0, 0, []
    for t in range(len(y)):
        seen = z[: t + 1, :dim]
        v = seen.var(axis=0) if intercept else (seen**2).mean(axis=0)
        v = np.where(v > 1e-14 * (seen**2).mean(axis=0), v, 0.0)
        moved = ((v > 2 * used) | (used > 2 * v)).any()
        used = v if moved else used
        for f in factors:
            if moved or t >= f.next:
                f.choose(used, t)
                f.factor(used, t)
            elif f.stale(dim, t):
                f.factor(used, t)
        each = np.array([y0 + z[t] @ f.B if t else 0.0 for f in factors])
        mean = shares @ each
        low, high = y[:t].min(initial=np.inf), y[:t].max(initial=-np.inf)
        more = 0.25 * (high - low)
        means.append(np.clip(mean, low - more, high + more) if t >= 2 else mean)
        for f in factors:
            f.learn(z[t], y[t] - y0, weight[t])
        if t:
            cap = max(25 * V / m, np.ptp(y[: t + 1]) ** 2 / m) if m >= 10 else np.inf
            V, m = V + min(weight[t] * (y[t] - mean) ** 2, cap), m + 1
            for f, p in zip(factors, each, strict=True):
                f.loss += min(weight[t] * (y[t] - p) ** 2, cap)
            losses = np.array([f.loss for f in factors])
            shares = prior * np.exp((losses.min() - losses) * m / (2 * V)) if V else prior
            shares = shares / shares.sum()
    return np.array(means)


def drawn(seed, rounds=400, dim=3):
    """Rows in different units with a level, whose first coefficient changes half-way."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, dim)) * 10.0 ** rng.uniform(-2, 2, dim) + rng.normal(size=dim)
    y = 5 + x @ (rng.normal(size=dim) / x.std(axis=0)) + rng.normal(size=rounds)
    y[rounds // 2 :] += 2 * x[rounds // 2 :, 0] / x[:, 0].std()
    return x, y, rng.uniform(0.2, 3.0, rounds)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dim", [1, 3, 12, 20, 60])
def test_it_equals_its_readable_twin(dim, intercept):
    x, y, w = drawn(dim, dim=dim)
    wanted = twin(x, y, w, intercept)
    found = nw.predictions(nw.SelfTuned(fit_intercept=intercept), x, y, w)
    assert np.abs(found - wanted).max() < 1e-9 * y.std()


def folder(package):
    found = find_spec(package)
    if found is None:
        pytest.skip(f"{package}, whose data are read, is not installed")
    return Path(found.submodule_search_locations[0]) / "datasets"


@cache
def read(name):
    """Features and labels of a data set."""
    if name == "diabetes":
        data = folder("sklearn") / "data"
        x = np.loadtxt(data / "diabetes_data_raw.csv.gz")
        return x, np.loadtxt(data / "diabetes_target.csv.gz")
    if name in RIVER:
        table = pd.read_csv(folder("river") / RIVER[name][0])
        y = table.pop(RIVER[name][1])
    else:
        folder("statsmodels")
        import statsmodels.datasets as source

        table = getattr(source, name).load_pandas().data
        if name == "star98":
            above, below = table.pop("NABOVE"), table.pop("NBELOW")
            y = 100 * above / (above + below)
        elif name == "randhie":
            table = table.iloc[:8000]
            y = np.log1p(table.pop("mdvis"))
        else:
            y = table.pop("foodexp")
    return table.to_numpy(dtype=float), y.to_numpy(dtype=float)


RIVER = {
    "TrumpApproval": ("trump_approval.csv.gz", "five_thirty_eight"),
    "ChickWeights": ("chick-weights.csv", "weight"),
}
MEASURED = {"diabetes": 3324, "TrumpApproval": 2.11, "ChickWeights": 1244}
MEASURED |= {"engel": 13160, "star98": 103.5, "randhie": 0.6792}


def orders(name, count):
    """The orders in which a data set is met: as it is stored, or three permutations."""
    if name in RIVER:
        return [np.arange(count)]
    return [np.random.default_rng(seed).permutation(count) for seed in range(3)]


@pytest.mark.parametrize("name", MEASURED)
def test_errors_on_real_data_are_those_measured(name):
    x, y = read(name)
    errors = [
        np.mean((nw.predictions(nw.SelfTuned(), x[order], y[order]) - y[order]) ** 2)
        for order in orders(name, len(y))
    ]
    assert np.mean(errors) == pytest.approx(MEASURED[name], rel=2.5e-3)


@pytest.mark.parametrize("name", ["diabetes", "engel", "star98"])
def test_it_equals_its_twin_on_real_data(name):
    x, y = read(name)
    order = orders(name, len(y))[0]
    found = nw.predictions(nw.SelfTuned(), x[order], y[order])
    assert np.abs(found - twin(x[order], y[order])).max() < 1e-9 * y.std()


@pytest.mark.parametrize("gamma", [1.0, 0.99])
def test_between_renewals_it_is_a_batch_ridge_solution(gamma):
    """With forgetting the ridge is forgotten too, until the next factor."""
    x, y, w = drawn(7, rounds=150, dim=4)
    method = nw.SelfTuned(forgetting=gamma)
    state, between = method.start(4), 0
    z = np.column_stack([x - x[0], np.ones(len(x))])
    for t in range(len(y)):
        method.update(state, x[t], y[t], w[t])
        expert, n = ExpertNumbers(state.experts[0]), t + 1
        between += expert.factored < n
        weights = w[:n] * gamma ** np.arange(t, -1, -1)
        used = Moments(*state.moments).used
        R = np.append(np.where(used > 0, 4 * expert.ridge * used, 1.0), 1e-8)
        R *= gamma ** (n - expert.factored)
        H = z[:n].T @ (weights[:, None] * z[:n]) + np.diag(R)
        theta = np.linalg.solve(H, z[:n].T @ (weights * (y[:n] - y[0])))
        assert np.abs(z @ (state.theta[0] - theta)).max() < 1e-10 * y.std()
    assert between > 100


def test_a_given_ridge_is_that_of_standardised_features():
    x, y, _ = drawn(3, rounds=100)
    method = nw.SelfTuned(ridge=2.0, forgetting=1.0)
    state = method.start(3)
    method.update(state, x, y)
    s = np.sqrt(Moments(*state.moments).used)
    assert np.all(np.abs(s / x.std(axis=0) - 1) < 0.5)
    centred, residual = (x - x.mean(axis=0)) / s, y - y.mean()
    theta = np.linalg.solve(centred.T @ centred + 2 * 2.0 * np.eye(3), centred.T @ residual)
    np.testing.assert_allclose(state.coef, theta / s, rtol=1e-6)


def test_coefficients_are_in_the_units_of_the_data():
    x, y, _ = drawn(5)
    method = nw.SelfTuned()
    state = method.start(3)
    assert not state.coef.any()
    assert state.intercept == 0
    method.update(state, x, y)
    close(x @ state.coef + state.intercept, method.predict(state, x), 1e-9)
    assert state.shares.sum() == pytest.approx(1)
    assert state.shares[0] < 0.5  # the coefficients changed
    coef, intercept = state.estimate(1.0)
    alone = nw.SelfTuned(forgetting=1.0)
    other = alone.start(3)
    alone.update(other, x, y)
    close(coef, other.coef)
    close(intercept, other.intercept)
    with pytest.raises(ValueError, match=r"forgetting is 0\.5"):
        state.estimate(0.5)


@pytest.mark.parametrize("name", ["drawn", "diabetes"])
def test_units_do_not_matter(name):
    x, y = drawn(11, dim=6)[:2] if name == "drawn" else read(name)
    rng = np.random.default_rng(1)
    scale, shift = 10.0 ** rng.uniform(-4, 4, x.shape[1]), rng.normal(size=x.shape[1])
    plain = nw.predictions(nw.SelfTuned(), x, y)
    other = nw.predictions(nw.SelfTuned(), (x + shift) * scale, 1000 * y + 500)
    assert np.abs((other - 500) / 1000 - plain)[1:].max() < 1e-8 * y.std()


def test_a_block_is_its_rows_and_weight_zero_nothing():
    x, y, w = drawn(2, rounds=300, dim=12)
    w[::7] = 0.0
    method = nw.SelfTuned()
    block, single = method.start(12), method.start(12)
    means = method.update(block, x, y, w)
    for t in range(len(y)):
        assert method.predict(single, x[t]) == pytest.approx(means[t], abs=1e-10)
        assert method.update(single, x[t], y[t], w[t]) == pytest.approx(means[t], abs=1e-10)
    kept = w > 0
    close(nw.predictions(method, x[kept], y[kept], w[kept]), means[kept], 1e-10)
    assert single.count == kept.sum()


def test_a_saved_state_continues_and_another_spec_is_refused(tmp_path):
    x, y, w = drawn(4)
    method = nw.SelfTuned(forgetting=(1.0, 0.95))
    state = method.start(3)
    method.update(state, x[:111], y[:111], w[:111])
    nw.save(tmp_path / "a.npz", method, state)
    spec, loaded = nw.load(tmp_path / "a.npz")
    rest = [spec.update(each, x[111:], y[111:], w[111:]) for each in (state, loaded)]
    assert np.array_equal(*rest)
    for other in (nw.SelfTuned(), nw.SelfTuned(forgetting=(1.0, 0.95), fit_intercept=False)):
        with pytest.raises(ValueError, match="not those of the spec"):
            nw.save(tmp_path / "b.npz", other, state)


def test_an_interrupted_update_is_refused_afterwards(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    method = nw.SelfTuned()
    state = method.start(2)
    monkeypatch.setattr(self_tuned_rounds, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        method.update(state, [1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="interrupted half-way"):
        method.predict(state, [1.0, 2.0])


def test_forgetting_is_kept_where_it_can_pay():
    kept = {dim: nw.SelfTuned().start(dim).forgetting.tolist() for dim in (16, 17, 50, 51)}
    assert kept == {16: [1, 0.99, 0.97], 17: [1, 0.99], 50: [1, 0.99], 51: [1]}
    assert nw.SelfTuned(forgetting=(0.9, 1)).start(99).shares.tolist() == pytest.approx([0.2, 0.8])
    assert nw.SelfTuned(forgetting=(0.9, 0.8)).start(1).shares.tolist() == [0.5, 0.5]
    assert nw.SelfTuned().start(1).shares.tolist() == [0.8, 0.1, 0.1]
    assert nw.SelfTuned(steady=0.95).start(1).shares == pytest.approx([0.95, 0.025, 0.025])


@pytest.mark.parametrize(
    "wrong",
    [
        {"ridge": 0.0},
        {"ridge": "none"},
        {"forgetting": 0.0},
        {"forgetting": 1.1},
        {"forgetting": ()},
        {"forgetting": (1.0, 1)},
        {"forgetting": "never"},
        {"steady": 0.0},
        {"steady": 1.0},
        {"fit_intercept": 1},
    ],
    ids=repr,
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        nw.SelfTuned(**wrong)


def test_numbers_too_large_to_square_are_refused():
    method = nw.SelfTuned()
    state = method.start(1)
    with pytest.raises(ValueError, match="too large to compute with at row 1"):
        method.update(state, [[1.0], [1.0]], [1.0, 1e60])
    with pytest.raises(ValueError, match="too large to compute with at row 0"):
        method.update(state, [1.0], 1e40, 1e40)
    assert state.count == 0


@pytest.mark.parametrize("field", ["ridge", "forgetting"])
def test_a_masked_number_is_no_number(field):
    with pytest.raises(ValueError, match=field):
        nw.SelfTuned(**{field: np.ma.masked})
