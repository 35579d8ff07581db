"""Predictions combined: the theorem on streams of all sorts, and a second computation."""

import math

import numpy as np
import pytest

import noisewise as nw
from noisewise.kernels.self_tuning.safe_mixture_numbers import MixtureNumbers
from noisewise.regression.safe_mixture import SafeMixture

KINDS = ["squares", "counts", "shares"]


def loss(kind, p, y):
    """The loss of a label of weight 1."""
    p = np.asarray(p)
    if kind == "squares":
        return (p - y) ** 2
    if kind == "counts":
        return p - y * np.log(p)
    return -y * np.log(p) - (1 - y) * np.log1p(-p)


class Twin:
    """The rule as its description has it, in numpy: histories instead of sums."""

    def __init__(self, kind, learners, mean=True):
        self.kind, self.y, self.w, self.own = kind, [], [], []
        each = {"squares": 3, "counts": 2, "shares": 1}[kind]
        prior = {"squares": 0.1, "counts": 0.1, "shares": 0.05}[kind] * mean
        self.prior = np.append(np.full(learners * each, (1 - prior) / learners / each), prior)
        self.losses = []

    def experts(self, raw):
        y, w, n = np.array(self.y), np.array(self.w), len(self.y)
        if self.kind == "squares":
            mean = np.average(y, weights=w) if n else 0.0
            low, high = (y.min(), y.max()) if n >= 2 else (-math.inf, math.inf)
            widths = [m * (high - low) if n >= 2 else 0.0 for m in (0.25, 0.1, 0.0)]
            found = [np.clip(r, low - m, high + m) for r in raw for m in widths]
        elif self.kind == "counts":
            one = min(1 / w.mean(), self.top) if n else 1.0
            mean = (n * np.average(y, weights=w) + one / 2) / (n + 1) if n else 0.5
            found = [
                np.clip(r, 0.5 * mean / (n + 1), k * self.top + one) if n else r
                for r in raw
                for k in (2, 1)
            ]
        else:
            mean = (w @ y + 0.5) / (w.sum() + 1) if n else 0.5
            found = list(raw)
        return np.array([*found, mean])

    @property
    def top(self):
        return max(*self.y, min(1.0, 1 / self.w[0])) if self.y else 1.0

    @property
    def rate(self):
        if self.kind == "squares":
            return 2 / np.ptp(self.y) ** 2
        return 1 / self.top if self.kind == "counts" else 1.0

    def potential(self):
        """Phi, and the weights that belong to it."""
        with np.errstate(divide="ignore"):
            slow = self.rate / max(self.w, default=1.0)
            logs = np.log(self.prior) - slow * np.sum([np.zeros(len(self.prior)), *self.losses], 0)
        return -np.logaddexp.reduce(logs) / slow, np.exp(logs - np.logaddexp.reduce(logs))

    def predict(self, raw):
        p = self.experts(raw)
        if self.kind == "squares" and (len(self.y) < 3 or np.ptp(self.y) == 0):
            return self.prior @ p
        phi, q = self.potential()
        if sum(self.own) <= phi + 1e-9 * max(self.w, default=1.0) / self.rate:
            return self.fast() @ p
        return self.safe(p, q)

    def safe(self, p, q):
        if self.kind == "shares":
            return q @ p
        if self.kind == "counts":
            return -self.top * np.log(q @ np.exp(-p / self.top))
        low, high, rate = min(self.y), max(self.y), self.rate
        g = {y: -np.log(q @ np.exp(-rate * (p - y) ** 2)) / rate for y in (low, high)}
        middle = (low + high) / 2 - (g[high] - g[low]) / (2 * (high - low))
        return np.clip(middle, low, high)

    def fast(self):
        capped, rate = np.sum([np.zeros(len(self.prior)), *self.losses], 0), 1.0
        if self.kind == "squares":
            capped, own = np.zeros(len(self.prior)), 0.0
            for t, (mine, row) in enumerate(zip(self.own, self.losses, strict=True)):
                seen, cap = self.y[: t + 2], math.inf
                if t >= 10:
                    cap = max(25 * own, np.mean(self.w[: t + 2]) * np.ptp(seen) ** 2) / t
                own, capped = own + min(mine, cap), capped + np.minimum(row, cap)
            rate = 0.25 * len(self.own) / own if own else 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior) - rate * (capped - capped.min())
        return np.exp(logs - np.logaddexp.reduce(logs))

    def learn(self, raw, y, w):
        """Return the prediction, and by how much the row cost more than its best expert lost."""
        p, mean = self.experts(raw), self.predict(raw)
        row, mine = w * loss(self.kind, p, y), float(w * loss(self.kind, mean, y))
        if self.y or self.kind != "squares":
            self.losses.append(row)
            self.own.append(mine)
        self.y.append(y)
        self.w.append(w)
        return mean, mine - row.min()


def streams(kind, seed):
    """Yield rows: predictions of two learners, a label chosen once they are known, and its weight.

    One learner is good, the other wanders and at times explodes; labels are drawn, or, by an
    adversary who knows the prediction, at an end of what was seen; a few are far beyond.
    """
    rng = np.random.default_rng([KINDS.index(kind), seed])
    hostile, weighted, unit = seed % 2, seed % 4 >= 2, 10 ** rng.uniform(-3, 3)
    for t in range(int(rng.integers(20, 150))):
        truth = np.sin(t / 7)
        w = float(np.exp(rng.normal())) if weighted else 1.0
        if kind == "squares":
            y, raw = unit * (truth + rng.normal()), unit * np.array([truth, rng.standard_cauchy()])
            y = y * 30 if rng.random() < 0.02 else y
        elif kind == "counts":
            y = float(rng.poisson(4 * np.exp(truth))) / (w if weighted else 1)
            raw = 4 * np.exp([truth, 3 * np.clip(rng.standard_cauchy(), -8, 8)])
        else:
            w = float(rng.integers(1, 30)) if weighted else 1.0  # trials
            y = float(rng.binomial(int(w), 0.5 + truth / 3)) / w
            raw = np.array([0.5 + truth / 3, np.clip(rng.beta(0.1, 0.1), 1e-6, 1 - 1e-6)])
        choice = (lambda low, high, p: high if p < (low + high) / 2 else low) if hostile else None
        yield raw, y, w, choice


def cost(twin, raw, y):
    """The most that a row of weight 1 may cost above its best expert, records apart."""
    p, n = twin.experts(raw), len(twin.y)
    if twin.kind == "squares":
        return 25 / 16 * np.ptp(twin.y) ** 2 if n else math.inf
    if twin.kind == "counts":
        return twin.top * max(3.0, math.log(2 * (n + 1) * twin.top / p[-1]))
    return -math.log(min(p.min(), 1 - p.max()))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", KINDS)
def test_never_far_behind_any_expert(kind, seed):
    """The theorem, on random and adversarial streams, weights included; and the twin agrees."""
    mixture, twin = SafeMixture.start(kind, learners=(1.0, 1.0)), Twin(kind, 2)
    most, records, range_seen = 0.0, 0, [math.inf, -math.inf, 0.0]
    for raw, y, w, choose in streams(kind, seed):
        row = np.ascontiguousarray(raw[:, None])
        before = mixture.predict(row)[0]
        if choose and len(twin.y) > 5:
            y = choose(min(twin.y), max(twin.y), before)
        mean = mixture.learn(row, np.array([y]), np.array([w]))[0]
        assert mean == before
        allowed = w * cost(twin, raw, y)
        expected, excess = twin.learn(raw, y, w)
        assert mean == pytest.approx(expected, rel=1e-8, abs=1e-12 * (1 + abs(y)))
        low, high, heaviest = range_seen
        top = max(high, min(1.0, 1 / twin.w[0])) if kind == "counts" else high
        beyond = w > heaviest or (y > top if kind == "counts" else not low <= y <= high)
        early = kind == "squares" and len(twin.y) <= 3
        if kind == "shares":
            beyond = w > heaviest
        records += beyond or early
        assert beyond or early or excess <= allowed + 1e-9 * (1 + allowed)
        most = max(most, excess)
        range_seen = [min(low, y), max(high, y), max(heaviest, w)]
    phi, _ = twin.potential()
    slack = 1e-9 * (1 + abs(phi))
    assert mixture.loss <= phi + most * (1 + records) + slack
    bounds = mixture.losses + max(twin.w) / twin.rate * np.log(1 / mixture.priors)
    assert (phi <= bounds + slack).all()
    assert mixture.losses == pytest.approx(np.sum(twin.losses, axis=0), rel=1e-9)
    if kind == "shares" and max(twin.w) == 1:  # no row costs more than the potential grows by
        assert mixture.loss <= phi + slack


def test_an_exposure_is_a_weight_of_the_rate():
    """The loss of counts is that of rates, weighted by exposure, up to labels alone."""
    rng = np.random.default_rng(5)
    x, e = rng.normal(size=(150, 2)), rng.uniform(0.1, 10, 150)
    y, w = rng.poisson(e * np.exp(x[:, 0])).astype(float), rng.choice([0.5, 1.0, 2.0], 150)
    counts, rates = nw.OnlineGLM("poisson"), nw.OnlineGLM("poisson")
    means = counts.update(x, y, w, np.log(e))
    np.testing.assert_allclose(means, e * rates.update(x, y / e, w * e), rtol=1e-9)
    mixture = counts._model.mixture
    own = w @ (means - y * np.log(means / e))
    assert mixture.loss == pytest.approx(own, rel=1e-9)
    assert mixture.losses[-1] + mixture.known.top * (w * e).max() * math.log(10) > own


@pytest.mark.parametrize("kind", KINDS)
def test_a_safe_row_costs_at_most_what_the_potential_grows_by(kind):
    """For all labels in the range and all weights up to the largest, whatever the experts say."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        twin = Twin(kind, 2)
        for _ in range(int(rng.integers(4, 12))):
            raw = np.exp(rng.normal(size=2)) if kind == "counts" else rng.random(2)
            y = float(rng.integers(0, 9)) if kind == "counts" else float(rng.random())
            twin.learn(raw, round(y) if kind == "shares" else y, float(np.exp(rng.normal())))
        raw = np.exp(rng.normal(scale=3, size=2)) if kind == "counts" else rng.random(2)
        p, (_, q) = twin.experts(raw), twin.potential()
        mean, slow = twin.safe(p, q), twin.rate / max(twin.w)
        ends = (0.0, twin.top) if kind == "counts" else (min(twin.y), max(twin.y))
        for y in np.linspace(*ends, 7):
            for w in max(twin.w) * np.array([1e-3, 0.3, 1.0]):
                grown = -np.log(q @ np.exp(-slow * w * loss(kind, p, y))) / slow
                assert w * loss(kind, mean, y) <= grown + 1e-9 * (1 + abs(grown))


def test_worse_than_the_mean_by_little_where_the_learner_explodes():
    """Counts of mean 3 beside a learner whose rate doubles every row: at most Y ln 10 and a row."""
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0, 300).astype(float)
    mixture = SafeMixture.start("counts")
    mixture.learn(np.exp(0.5 * np.arange(300.0))[None].clip(max=1e12), y, np.ones(300))
    assert mixture.loss <= mixture.losses[-1] + y.max() * math.log(10) + 2 * y.max() + 1


def test_the_potential_never_falls_when_weights_change():
    """Heavy rows, then light ones, then heavy ones: the rate of counts may only fall."""
    rng, twin = np.random.default_rng(3), Twin("counts", 1)
    mixture, last = SafeMixture.start("counts"), math.inf
    for weight in (1.0, 0.01, 1.0, 0.01):
        for _ in range(60):
            raw = np.exp(rng.normal(scale=3, size=1)) if twin.y else np.ones(1)
            mixture.learn(raw[:, None], np.array([2.0]), np.array([weight]))
            twin.learn(raw, 2.0, weight)
            assert twin.rate <= last
            last = twin.rate
    phi, _ = twin.potential()
    assert mixture.loss == pytest.approx(sum(twin.own), rel=1e-9)
    row = 2 * 2 + 1 + 2 * math.log(2 * 241 * 2)  # the most that limits allow
    assert mixture.loss <= phi + 2 * row


def test_counts_with_weights_of_any_unit_stay_near_their_labels():
    """Weights that are no exposures: nothing is far above twice the largest."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(300, 2)), rng.poisson(2.0, 300).astype(float)
    for weight in (1e-20, 1e-4, 1 / 300, 1.0, 1e4):
        model = nw.OnlineGLM("poisson")
        assert model.update(x, y, np.full(300, weight)).max() <= 3 * y.max()
        assert nw.OnlineGLM("poisson").fit(x, y, np.full(300, weight)).predict(9 * x).max() < 30


def test_the_unit_of_weights_does_not_matter_to_squares():
    rng = np.random.default_rng(2)
    raw, y, w = rng.normal(size=(1, 200)), rng.normal(size=200), np.exp(rng.normal(size=200))
    plain, scaled = (SafeMixture.start("squares").learn(raw, y, u * w) for u in (1.0, 1e6))
    np.testing.assert_allclose(plain, scaled, rtol=1e-9)


def test_after_a_batch_only_the_widest_limit_is_left():
    """In the middle the learner's word counts alone; far beyond the labels it is held back."""
    mixture = SafeMixture.start("squares")
    mixture.count_rows(np.array([0.0, 1.0, 5.0]), np.array([1.0, 0.0, 2.0]))
    settled = mixture.settled(1.0, 0.5)
    found = settled.predict(np.array([[2.0, 100.0, -100.0]]))
    np.testing.assert_array_equal(found, [2.0, 6.25, -1.25])  # a quarter of 5 beyond 0 and 5
    assert settled.known.label_mean == pytest.approx(10 / 3)
    assert settled.count == 2


def test_what_no_stream_leads_to_is_refused():
    good = SafeMixture.start("shares")
    for name, value in (("high", 2.0), ("heaviest", 1.0), ("rows", -1.0)):
        numbers = MixtureNumbers(good.numbers.copy())
        setattr(numbers, name, value)
        with pytest.raises(ValueError, match="no stream"):
            SafeMixture("shares", numbers.array, good.experts)
    with pytest.raises(ValueError, match="no stream"):
        SafeMixture("shares", good.numbers, 2 * good.experts)
