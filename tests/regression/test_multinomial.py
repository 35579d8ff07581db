"""Several classes: row steps, minimisers and evidence against scipy, bounds, intervals."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import binom

import noisewise as nw
from noisewise.estimators.class_model import PRIORS, ClassModel
from noisewise.kernels.self_tuning import multinomial_rounds as kernel
from noisewise.regression.intervals.class_intervals import ClassPairs
from noisewise.regression.mixtures import multinomial
from noisewise.regression.mixtures.batch_multinomial import batch_state, log_evidence
from noisewise.regression.mixtures.multinomial import GRID, PRIOR, MultinomialMixture
from noisewise.regression.mixtures.multinomial_newton import Table, by_newton

RNG = np.random.default_rng


def world(n=120, d=3, K=3, seed=0, size=1.0):
    rng = RNG([n, d, K, seed])
    z = rng.normal(size=(n, d))
    scores = size * (z @ rng.normal(size=(d, K)) + rng.normal(size=K))
    y = (scores + rng.gumbel(size=(n, K))).argmax(axis=1)
    return z * np.logspace(-2, 2, d) + 7.0, y.astype(float)


def loss_of(theta, x, y, w, ridge):
    """The penalised loss by scipy, the constant column last and its prior row of weight K/2."""
    K, b = len(theta), theta[:, -1]
    prior = K / 2 * (np.logaddexp.reduce(b) - b.mean())
    rows = -w @ log_softmax(x @ theta.T, axis=1)[np.arange(len(y)), y.astype(int)]
    return rows + prior + ridge / 2 * (theta[:, :-1] ** 2).sum()


def standardised(x):
    return np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))])


@pytest.mark.parametrize("most", [multinomial.MOST, 0], ids=["Hessian", "bound"])
def test_a_batch_has_the_minimisers_of_scipy(most, monkeypatch):
    monkeypatch.setattr(multinomial, "MOST", most)
    x, y = world()
    w = RNG(1).choice([0.5, 1.0, 3.0], size=len(y))
    ridge = 0.7
    mixture = MultinomialMixture(3, ridge=ridge)
    state = batch_state(mixture, x, y, w, np.zeros(3))
    z = standardised(x)
    found = minimize(
        lambda t: loss_of(t.reshape(3, 4), z, y, w, 2 * ridge), np.zeros(12), tol=1e-10
    )
    best = found.x.reshape(3, 4)
    assert_allclose(mixture.predict(state, x), softmax(z @ best.T, axis=1), atol=1e-5)
    scores = x @ state.coefficients.T + state.intercepts
    assert_allclose(softmax(scores, axis=1), mixture.predict(state, x), atol=1e-10)
    assert_allclose(state.coefficients.sum(axis=0) * x.std(axis=0), 0.0, atol=1e-10)
    table, theta = mixture.table(state), state.theta[0]
    penalty = table.penalties(2 * ridge)
    gradient = table.gradient(theta, table.look(theta, penalty)[1], penalty)
    assert np.abs(gradient).max() < 1e-7


def test_the_hessian_is_that_of_differences():
    x, y = world(n=20)
    table = Table(standardised(x), np.eye(3)[y.astype(int)], RNG(0).random(20), False)
    penalty, theta = table.penalties(0.3), RNG(1).normal(size=(3, 4))
    gradient = lambda t: table.gradient(t, table.look(t, penalty)[1], penalty)  # noqa: E731
    p = table.look(theta, penalty)[1]
    H, h = table.hessian(p, penalty), 1e-6
    for i in range(12):
        step = (h * np.eye(12)[i]).reshape(3, 4)
        column = (gradient(theta + step) - gradient(theta - step)) / (2 * h)
        assert_allclose(H[:, i].reshape(3, 4), column, atol=1e-7)
        assert_allclose(table.times(step / h, p, penalty), column, atol=1e-7)
    slope = (table.look(theta + step, penalty)[0] - table.look(theta - step, penalty)[0]) / (2 * h)
    assert_allclose(gradient(theta).ravel()[-1], slope, atol=1e-7)


@pytest.mark.parametrize("n", [3, 40], ids=["few rows", "many rows"])
def test_boehnings_matrix_is_above_the_hessian(n):
    x, y = world(n=n, d=8)
    x = np.vstack([np.eye(9)[-1], np.column_stack([x - 7, np.ones(n)])])
    table = Table(x, np.eye(3)[np.append(0, y).astype(int)], np.append(1.5, np.ones(n)), True)
    penalty = table.penalties(0.2)
    inverse, log_det = table.bound(penalty)
    B = (x * (0.5 * table.w)[:, None]).T @ x + np.diag(penalty)
    assert_allclose(inverse @ B, np.eye(9), atol=1e-8)
    assert_allclose(log_det, np.linalg.slogdet(B)[1])
    H = table.hessian(table.look(RNG(0).normal(size=(3, 9)), penalty)[1], penalty)
    project = np.kron(np.eye(3) - 1 / 3, np.eye(9))  # classes that add up to zero
    assert np.linalg.eigvalsh(project @ (np.kron(np.eye(3), B) - H) @ project)[0] > -1e-9


def test_both_ways_to_solve_agree():
    x, y = world(n=200, d=6, K=4, size=2.0)
    table = Table(standardised(x), np.eye(4)[y.astype(int)], np.ones(200), False)
    one, _ = by_newton(table, [np.zeros((4, 7))], 0.05, 1e-16)
    other, _ = by_newton(table, [np.zeros((4, 7))], 0.05, 1e-16, 1000)
    assert_allclose(other, one, atol=1e-7)


@pytest.mark.parametrize("way", ["Hessian", "bound"])
def test_a_row_step_is_the_minimiser_of_its_loss(way):
    """Distance in the inverse's metric and the row's loss, minimised by scipy."""
    rng, K, p = RNG(3), 3, 4
    theta, x, w, label = rng.normal(size=(K, p)), rng.normal(size=p), 2.5, 1
    size = K * p if way == "Hessian" else p
    A = rng.normal(size=(size, size))
    P = A @ A.T / size + 0.1 * np.eye(size)
    metric = np.linalg.inv(P if way == "Hessian" else np.kron(np.eye(K), P))

    def objective(flat):
        t = flat.reshape(K, p)
        away = flat - theta.ravel()
        return 0.5 * away @ metric @ away - w * log_softmax(t @ x)[label]

    best = minimize(objective, theta.ravel(), tol=1e-12).x.reshape(K, p)
    learnt, inverse, out = theta[None].copy(), P[None].copy(), np.empty((1, K))
    kernel.learn(
        x[None], np.array([label]), np.array([w]), learnt, inverse, np.zeros(1), np.zeros(1),
        np.zeros(1), out,
    )  # fmt: skip
    assert_allclose(out[0], softmax(theta @ x))
    learnt, inverse = learnt[0], inverse[0]
    assert_allclose(learnt, best, atol=1e-5)
    share = softmax(learnt @ x)
    if way == "Hessian":
        more = w * np.kron(np.diag(share) - np.outer(share, share), np.outer(x, x))
    else:
        more = 0.5 * w * np.outer(x, x)
    assert_allclose(inverse, np.linalg.inv(np.linalg.inv(P) + more), atol=1e-9)


@pytest.mark.parametrize("most", [multinomial.MOST, 0], ids=["Hessian", "bound"])
def test_a_stream_stays_near_its_minimisers(most, monkeypatch):
    monkeypatch.setattr(multinomial, "MOST", most)
    mixture, n = MultinomialMixture(4, ridge=0.5), 1
    while n < 300:
        n = mixture.next_renewal(n)
    x, y = world(n=n, d=4, K=4)
    state = mixture.start(4)
    mixture.update(state, x, y)
    batch = batch_state(mixture, x, y, np.ones(n), np.zeros(4))
    assert np.abs(mixture.predict(state, x) - mixture.predict(batch, x)).max() < 0.01


def played(mixture, x, y, w=1.0):
    state = mixture.start(x.shape[1])
    p = mixture.update(state, x, y, w)
    return float(-np.sum(w * np.log(p[np.arange(len(y)), y.astype(int)]))), state


@pytest.mark.parametrize("kind", ["drawn", "separated", "adversary"])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_mixture_is_within_its_prior_of_each_ridge(kind, weight):
    """ln(1/prior) for each, for any labels, whatever the experts; none is dropped in 60 rows."""
    x, y = world(n=60)
    if kind == "separated":
        y = 1.0 * np.digitize(x[:, 0], np.quantile(x[:, 0], [0.3, 0.6]))
    mixture = MultinomialMixture(3)
    if kind == "adversary":
        state = mixture.start(3)
        for t in range(len(y)):
            y[t] = mixture.predict(state, x[t : t + 1])[0].argmin()
            mixture.update(state, x[t : t + 1], y[t : t + 1], weight)
    own, state = played(mixture, x, y, weight)
    assert len(state.ridges) == len(GRID)
    assert (own <= state.losses - np.log(PRIOR) + 1e-9).all()
    for c in (0, 5):
        alone, _ = played(MultinomialMixture(3, ridge=GRID[c] * 3 / 2), x, y, weight)
        assert_allclose(alone, state.losses[c], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_classifier_is_within_its_prior_of_three_experts(seed):
    x, y = world(n=120, seed=seed, size=[0.0, 0.5, 3.0][seed])
    row, losses = np.arange(len(y)), []
    counts = np.cumsum(np.vstack([np.full(3, 0.5), np.eye(3)[y.astype(int)]]), axis=0)[:-1]
    for kind in ("multinomial", "ovr", "auto"):
        p = nw.OnlineGLMClassifier(multi_class=kind).update(x, y.astype(int), [0, 1, 2])
        losses.append(-np.log(p[row, y.astype(int)]).sum())
    losses.insert(
        1, -np.log((counts / counts.sum(axis=1, keepdims=True))[row, y.astype(int)]).sum()
    )
    *experts, own = losses
    assert (own <= np.array(experts) - np.log(PRIORS) + 1e-9).all()


def test_heavy_rows_slow_the_weights():
    """All rows of weight 3 give the weights of rows of weight 1: a row is predicted once."""
    x, y = world(n=40)
    model = ClassModel.start(3, "auto", True, 3, True)
    model.learn(x, y, np.full(40, 3.0))
    logs = np.log(PRIORS) - model.losses / 3
    assert_allclose(model.weights, np.exp(logs) / np.exp(logs).sum())


def test_without_features_it_is_krichevsky_and_trofimov():
    y = RNG(0).integers(4, size=30)
    p = played(MultinomialMixture(4), np.ones((30, 1)), 1.0 * y)[1]
    counts = np.bincount(y, minlength=4)
    found = MultinomialMixture(4).predict(p, [[1.0]])[0]
    assert_allclose(found, (counts + 0.5) / 32, atol=2e-3)


def test_the_evidence_of_a_batch_is_that_of_an_integral():
    """One feature, no intercept, two classes: a plane, integrated on a grid."""
    x, y = world(n=25, d=1, K=2)
    z = (x - 7) / np.sqrt(((x - 7) ** 2).mean())
    mixture, found = MultinomialMixture(2, fit_intercept=False), []
    grid = np.linspace(-12, 12, 1201)
    differences = grid[:, None] - grid
    rows = sum(
        np.logaddexp(0.0, -(1 - 2 * label) * zt * differences)
        for zt, label in zip(z[:, 0], y, strict=True)
    )
    state = batch_state(mixture, x - 7, y, np.ones(25), np.zeros(1))
    table = mixture.table(state)
    for ridge in (0.25, 1.0, 4.0):
        theta, _ = mixture.solve(table, np.zeros((1, 2, 1)), ridge, True)
        normal = ridge / 2 * (grid[:, None] ** 2 + grid**2) - np.log(ridge / (2 * np.pi))
        exact = np.log(np.exp(-rows - normal).sum()) + 2 * np.log(grid[1] - grid[0])
        found.append(log_evidence(table, theta, ridge) - exact)
    assert_allclose(found, 0.0, atol=0.05)


def test_units_and_shifts_do_not_matter():
    x, y = world(n=80)
    one = nw.OnlineGLMClassifier().update(x, y.astype(int))
    other = nw.OnlineGLMClassifier().update(1e3 * x - 50, y.astype(int))
    assert_allclose(other, one, atol=1e-6)


def test_predictions_do_not_depend_on_blocks_and_copies():
    x, y = world(n=150)
    mixture = MultinomialMixture(3)
    whole, parts = mixture.start(3), mixture.start(3)
    p = mixture.update(whole, x, y)
    for t in range(len(y)):
        assert_allclose(mixture.predict(parts, x[t : t + 1])[0], p[t], rtol=1e-10)
        mixture.update(parts, x[t : t + 1], y[t : t + 1])
        if t == 70:
            parts = pickle.loads(pickle.dumps(copy.deepcopy(parts)))
    assert_allclose(parts.theta, whole.theta, rtol=1e-8, atol=1e-10)
    before = mixture.predict(whole, x)
    mixture.update(whole, x[:5], y[:5], 0.0)
    assert_allclose(mixture.predict(whole, x), before, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, s: m.update(s, [[1.0]], [3.0]), "y is 3 at row 0; labels are 0, ..., 2"),
        (lambda m, s: m.update(s, [[1.0]], [0.5]), r"y is 0\.5"),
        (lambda m, s: m.update(s, [[1.0, 2.0]], [0.0]), "x has shape"),
        (lambda m, s: MultinomialMixture(4).predict(s, [[1.0]]), "a state that this spec started"),
        (lambda m, s: MultinomialMixture(1), "classes is 1"),
        (lambda m, s: MultinomialMixture(3, ridge=-1.0), "ridge is -1"),
        (lambda m, s: nw.OnlineGLMClassifier(multi_class="crammer").fit([[1.0], [2.0]], [0, 1]),
         "multi_class is 'crammer'; pass one of 'auto', 'multinomial', 'ovr'"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call, words):
    mixture = MultinomialMixture(3)
    state = mixture.start(1)
    with pytest.raises(ValueError, match=words):
        call(mixture, state)
    assert state.count == 0


def test_an_interrupted_update_is_noticed(monkeypatch):
    x, y = world()
    model = nw.OnlineGLMClassifier().partial_fit(x, y.astype(int))
    with monkeypatch.context() as patch:
        patch.setattr(MultinomialMixture, "renew", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(x, y.astype(int))
    with pytest.raises(ValueError, match="interrupted half-way"):
        model.predict(x)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda s: setattr(s, "theta", s.theta[:, :, :2]), "not of the same coefficients"),
        (lambda s: setattr(s, "due", 3), "not those of its count"),
        (lambda s: s.history.labels.__setitem__((1, 0), 7.0), "no label"),
        (lambda s: s.history.labels.__setitem__((0, 0), 0.0), "no weight"),
        (lambda s: setattr(s, "ridges", -s.ridges), "negative"),
        (lambda s: setattr(s, "losses", s.losses * np.nan), "not finite"),
    ],
)
def test_states_are_checked(edit, words):
    x, y = world(n=30)
    state = played(MultinomialMixture(3), x, y)[1]
    edit(state)
    state.theta = np.ascontiguousarray(state.theta)
    held = {name: getattr(state, name) for name in state.__dataclass_fields__}
    with pytest.raises(ValueError, match=words):
        type(state)(**held)


@pytest.mark.parametrize("weight", [1e-90, 1e15, 1e29])
def test_weights_of_any_size_give_probabilities(weight):
    x, y = world(n=60)
    for learn in ("fit", "partial_fit"):
        model = nw.OnlineGLMClassifier()
        getattr(model, learn)(x, y.astype(int), sample_weight=np.full(60, weight))
        p = model.predict_proba(x)
        assert (p > 0).all()
        assert_allclose(p.sum(axis=1), 1.0)


def test_one_versus_rest_is_dropped_where_it_has_no_weight():
    """Three ordered classes: none of the middle is on one side of a line."""
    x = RNG(0).normal(size=(256, 2))
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    model = nw.OnlineGLMClassifier().partial_fit(x[:63], y[:63])
    several, row = model._learnt.several, 63
    while several.rest:
        before = several.weights
        model.partial_fit(x[row : row + 1], y[row : row + 1])
        row += 1
    assert row in (64, 128, 256)
    assert before[2] < 1e-4
    assert_allclose(several.weights, before[:2] / before[:2].sum(), atol=1e-3)
    assert model.fit(x, y).score(x, y) > 0.95


def test_more_coefficients_than_a_matrix_holds_take_the_bound():
    x, y = world(n=90, d=70, K=4)
    mixture = MultinomialMixture(4)
    state = mixture.start(70)
    mixture.update(state, x, y)
    assert state.inverse.shape[1:] == (71, 71)
    batch = batch_state(mixture, x, y, np.ones(90), np.zeros(70))
    order = RNG(0).permutation(90)
    other = batch_state(mixture, x[order], y[order], np.ones(90), np.zeros(70))
    assert_allclose(mixture.predict(other, x), mixture.predict(batch, x), atol=1e-8)


def test_two_of_three_classes_are_a_logistic_regression():
    """The interval of one pair is that of `OnlineGLM` on the rows of the two; K = 2 is the same."""
    x, y = world(n=150)
    pairs = ClassPairs(x, y, np.ones(150), np.zeros(3), 3, True)
    two = y < 2
    pair = ClassPairs(x[two], y[two], np.ones(two.sum()), np.zeros(3), 2, True)
    glm = nw.OnlineGLM("binomial").partial_fit(x[two], y[two])
    for options in ({}, {"anytime": False}, {"simultaneous": True}):
        known = glm.predict_interval(x[:4], 0.1, **options)
        own = pair.interval(x[:4], 0.1, **options)
        assert_allclose([own.lower[:, 1], own.upper[:, 1]], list(known), rtol=1e-4, atol=1e-6)
        assert_allclose(1 - own.lower[:, 0], own.upper[:, 1])
        wide = pairs.interval(x[:4], 0.1, **options)
        assert (wide.lower <= wide.upper).all()
        assert "log odds of any two classes" in wide.rests_on
    model = nw.OnlineGLMClassifier().partial_fit(x[two], y[two].astype(int))
    found = model.predict_interval(x[:4], 0.1)
    assert_allclose(found.upper[:, 1], glm.predict_interval(x[:4], 0.1).upper)
    assert_allclose(found.lower[:, 0], 1 - found.upper[:, 1])


def test_classes_that_were_not_seen_may_have_any_share():
    x, _ = world(n=40)
    model = nw.OnlineGLMClassifier().partial_fit(x, ["b"] * 40, classes=list("abcd"))
    found = model.predict_interval(x[:2])
    assert (found.lower <= model.predict_proba(x[:2])).all()
    assert (found.upper >= model.predict_proba(x[:2])).all()
    assert "classes a and c, a and d, c and d: neither class was seen" in found.note
    assert (found.upper[:, 1] == 1).all()
    assert "c: " not in repr(model.summary())


def test_intervals_of_one_versus_rest_are_those_of_its_regressions():
    x, y = world(n=150)
    model = nw.OnlineGLMClassifier(multi_class="ovr").fit(x, y.astype(int))
    found = model.predict_interval(x[:3], 0.1)
    known = nw.OnlineGLM("binomial").fit(x, y == 2).predict_interval(x[:3], 0.1)
    assert_allclose([found.lower[:, 2], found.upper[:, 2]], list(known), rtol=1e-6)
    assert "each class against the rest" in found.rests_on
    with pytest.raises(ValueError, match="leave one of the two out"):
        model.predict_interval(x, simultaneous=True, anytime=False)


def misses(trials, anytime, seed):
    """How often the interval of class 0 at a row misses, at one time or at any of some."""
    rng, missed = RNG(seed), 0
    theta = rng.normal(size=(3, 2)) * 0.8
    place = np.array([[0.5, -0.5]])
    truth = softmax(place @ theta.T, axis=1)[0, 0]
    for _ in range(trials):
        x = rng.normal(size=(240, 2))
        y = (x @ theta.T + rng.gumbel(size=(240, 3))).argmax(axis=1)
        looks = (40, 80, 160, 240) if anytime else (240,)
        for n in looks:
            pairs = ClassPairs(x[:n] - x[0], y[:n], np.ones(n), x[0], 3, True)
            found = pairs.interval(place, 0.2, anytime)
            if not found.lower[0, 0] <= truth <= found.upper[0, 0]:
                missed += 1
                break
    return missed


def test_intervals_of_class_probabilities_cover():
    """At delta = 20 % of 60 streams; wrong by chance with probability below 1e-4."""
    assert misses(60, False, 0) <= binom.isf(1e-4, 60, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("anytime", "trials"), [(False, 500), (True, 100)])
def test_intervals_of_class_probabilities_cover_in_many_streams(anytime, trials):
    """At delta = 20 %, at four looks if at all times; wrong by chance with probability 1e-6."""
    assert misses(trials, anytime, 1) <= binom.isf(1e-6, trials, 0.2)
