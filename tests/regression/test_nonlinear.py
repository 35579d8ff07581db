"""`nonlinear=True`: functions of features by plain loops, learners mixed, what stays linear."""

import pickle

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit

import noisewise as nw
from noisewise.cli import main
from noisewise.kernels.self_tuning.ridge_rule import GRID, LOG_PRIOR
from noisewise.regression.nonlinear_features import FeatureMoments
from noisewise.regression.nonlinear_learners import CAUTION, NonlinearLearners
from noisewise.regression.safe_mixture import SafeMixture
from noisewise.regression.self_tuned import batch_linear

FAMILIES = ["gaussian", "binomial", "poisson", "tanh"]


def rows(family, n=300, seed=0):
    """A bent mean of the first feature, a saturating one of the second; the third is 0 or 1."""
    rng = np.random.default_rng([seed, n])
    x = np.column_stack([rng.normal(size=(n, 2)), rng.random(n) < 0.5])
    score = x[:, 0] ** 2 + np.tanh(3 * x[:, 1]) + x[:, 2] - 1
    x = x * [1e3, 1e-2, 1.0] + [0.0, 50.0, 0.0]
    if family == "gaussian":
        return x, 20 + 5 * score + rng.normal(size=n)
    if family == "poisson":
        return x, rng.poisson(np.exp(np.clip(score, -3, 3) / 2)).astype(float)
    y = 1.0 * (rng.random(n) < expit(2 * score))
    return x, 2 * y - 1 if family == "tanh" else y


def weights(n):
    return np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=n)


def plain(history, row):
    """The functions of a row by their definition, given the rows learnt before it."""
    seen = np.array([*history, row])
    z = (row - seen.mean(axis=0)) / np.maximum(seen.std(axis=0), 1e-300)
    z = np.where([len(set(column)) >= 3 for column in seen.T], z, 0.0)
    return np.arcsinh(z), np.minimum(z**2, 9.0)


def test_functions_are_those_of_their_definition():
    """Row by row from the history; outliers, columns that stand still, two values, weight 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 6)) * [1, 1e-5, 1e4, 1, 1, 1]
    x[40, 0] = 1e6
    x[:, 3], x[:, 4] = 7.0, np.arange(80) % 2
    x[:, 5] = np.where(np.arange(80) < 50, x[:, 4], 2.0)  # a third value comes late
    w = np.where(np.arange(80) % 3, 0.5, 0.0)
    moments, history = FeatureMoments.start(6), []
    whole = FeatureMoments.start(6).learn(x, w)
    for t in range(80):
        expected = plain(history, x[t])
        for found in (moments.predict(x[t : t + 1]), moments.learn(x[t : t + 1], w[t : t + 1])):
            np.testing.assert_allclose(np.vstack(found), expected, rtol=1e-7, atol=1e-7)
        for all_rows, one in zip(whole, found, strict=True):
            np.testing.assert_array_equal(all_rows[t], one[0])  # however rows are split
        if w[t]:
            history.append(x[t])
    assert moments.count == len(history)
    assert not np.vstack(whole)[:, 3:5].any()
    assert np.vstack(whole)[:, 5].any()


def test_functions_of_a_batch_are_standardised_by_all_rows():
    x, _ = rows("gaussian")
    moments = FeatureMoments.start(3).around_mean(x)
    found, z = moments.of_own(x), (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(found.asinh[:, :2], np.arcsinh(z)[:, :2], atol=1e-11)
    np.testing.assert_allclose(found.square[:, :2], np.minimum(z**2, 9)[:, :2], atol=1e-11)
    assert not found.asinh[:, 2].any()
    streamed = FeatureMoments.start(3)
    streamed.learn(x, np.ones(len(x)))
    for ours, theirs in zip(streamed.predict(2 * x), moments.predict(2 * x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def by_hand(family, x, y, w):
    """The same predictions, put together of public regressors and the mixture."""
    asinh, square = (np.array(each) for each in zip(*_functions(x, w), strict=True))
    if family == "gaussian":
        players = [
            (nw.SelfTuned(clip=False, steady=0.95), x, 5.0),
            (nw.SelfTuned(forgetting=1.0, clip=False), np.hstack([x, asinh, square]), 4.0),
        ]
    else:
        mixture = nw.RidgeMixture(family)
        players = [
            (mixture, x, 2.0),
            (mixture, np.hstack([x, asinh]), 1.0),
            (mixture, np.hstack([x, square]), 1.0),
        ]
    unit = w[w > 0][0] if family == "gaussian" else 1.0
    raw = [nw.predictions(method, z, y, weight=w / unit) for method, z, _ in players]
    kind = {"gaussian": "squares", "poisson": "counts"}.get(family, "shares")
    half = 0.5 if family == "tanh" else 1.0
    priors = [prior for _, _, prior in players]
    shares = (lambda v: half * v + 1 - half) if half < 1 else (lambda v: v)
    found = SafeMixture.start(kind, learners=priors).learn(shares(np.array(raw)), shares(y), w)
    return (found - (1 - half)) / half


def _functions(x, w):
    history = []
    for row, weight in zip(x, w, strict=True):
        yield plain(history, row)
        if weight:
            history.append(row)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_is_the_mixture_of_its_learners(family):
    x, y = rows(family, 120)
    w = weights(120)
    whole = nw.OnlineGLM(family, nonlinear=True)
    np.testing.assert_allclose(whole.update(x, y, w), by_hand(family, x, y, w), rtol=1e-6)
    parts = nw.OnlineGLM(family, nonlinear=True)
    for part in np.split(np.arange(120), [1, 2, 60]):
        before = parts.predict(x[part[:1]]) if part[0] else None
        found = parts.update(x[part], y[part], w[part])
        assert before is None or before[0] == pytest.approx(found[0], rel=1e-12)
    np.testing.assert_allclose(parts.predict(x), whole.predict(x), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_linear_stays_linear(family):
    x, y = rows(family, 200)
    for verb in ("fit", "partial_fit"):
        line, bent = (getattr(nw.OnlineGLM(family, nonlinear=b), verb)(x, y) for b in (False, True))
        np.testing.assert_array_equal(bent.coef_, line.coef_)
        assert bent.intercept_ == line.intercept_
        np.testing.assert_array_equal(bent.predict_interval(x), line.predict_interval(x))
        ours, theirs = bent.summary(), line.summary()
        assert ours.cells() == theirs.cells()
        assert CAUTION[1:] in " ".join(ours.notes)
        assert CAUTION in bent.predict_interval(x).note
        assert CAUTION not in line.predict_interval(x).note + " ".join(theirs.notes)
        assert not np.allclose(bent.predict(x), line.predict(x), rtol=0.05)


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
def test_bent_means_are_predicted(verb):
    """Of new rows the line leaves a variance of about 55, of which 50 is the square's, and noise 1.

    What functions leave is below a fifth of that unless the fit misses the square by a third.
    """
    x, y = rows("gaussian", 900)
    line, bent = (
        getattr(nw.OnlineGLM(nonlinear=each), verb)(x[:300], y[:300]) for each in (False, True)
    )
    left = [np.mean((each.predict(x[300:]) - y[300:]) ** 2) for each in (line, bent)]
    assert left[1] < left[0] / 5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_leaves_the_line_where_means_bend(family):
    """With 500 rows logarithms of evidence differ by 20 or more, many times what chance moves."""
    x, y = rows(family, 500)
    model = nw.OnlineGLM(family, nonlinear=True).fit(x, y)._model
    assert model.mixture.priors[0] < 0.01


def test_a_batch_keeps_to_the_line_where_means_are_straight():
    """Six superfluous features cost about half of ln 500 each, so the odds are far above 100."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(500, 3))
    y = z @ [1.0, 0.5, 0.0] + rng.normal(size=500)
    assert nw.OnlineGLM(nonlinear=True).fit(z, y)._model.mixture.priors[0] > 0.9


def test_the_evidence_of_numbers_is_that_of_plain_matrices():
    """Of two sets of features, by n x n matrices: the difference of logarithms to 1e-6."""
    x, y = rows("gaussian", 40)
    w = np.random.default_rng(3).choice([0.5, 1.0, 2.0], size=40)

    def plain_evidence(z):
        d, v = z.shape[1], z.var(axis=0)
        z, v = z[:, v > 1e-12], v[v > 1e-12]
        u = w / w.mean()
        mean = np.average(z, axis=0, weights=w)
        root, labels = np.sqrt(u), y - np.average(y, weights=w)
        logs = []
        for c, prior in zip(GRID, LOG_PRIOR, strict=True):
            scaled = root[:, None] * (z - mean) / np.sqrt(c * d * v)
            cover = np.eye(40) + scaled @ scaled.T
            left = (root * labels) @ np.linalg.solve(cover, root * labels)
            logs.append(prior - np.linalg.slogdet(cover)[1] / 2 - 39 / 2 * np.log(left))
        return np.logaddexp.reduce(logs)

    model = nw.OnlineGLM(nonlinear=True).fit(x, y, w)._model
    functions = model.nonlinear.moments.of_own(x)
    states = model.state, model.nonlinear.states[0]
    ours = [batch_linear.log_evidence(each) for each in states]
    theirs = [plain_evidence(z) for z in (x, np.hstack([x, *functions]))]
    assert ours == pytest.approx(theirs, abs=1e-6)
    odds = 4 / 5 * np.exp(theirs[1] - theirs[0])
    share = max(odds / (1 + odds), 1e-6)
    assert model.mixture.priors[3] == pytest.approx(share, abs=2e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_files_and_pickles_go_on(family, tmp_path):
    x, y = rows(family, 100)
    for verb in ("fit", "partial_fit"):
        model = getattr(nw.OnlineGLM(family, nonlinear=True), verb)(x[:70], y[:70])
        nw.save(tmp_path / "model.npz", model)
        copies = nw.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))
        expected = model.update(x[70:], y[70:])
        for each in copies:
            assert each.nonlinear is True
            np.testing.assert_array_equal(each.update(x[70:], y[70:]), expected)
            np.testing.assert_allclose(each.refit().predict(x), _fitted(family, x, y), rtol=1e-8)


def _fitted(family, x, y):
    return nw.OnlineGLM(family, nonlinear=True).fit(x, y).predict(x)


@pytest.mark.parametrize("family", FAMILIES)
def test_units_do_not_matter_and_outliers_stay_bounded(family):
    x, y = rows(family, 100)
    units, shifts = np.array([1e-4, 1e5, 3.0]), np.array([5.0, -2.0, 100.0])
    plain_, moved = (
        nw.OnlineGLM(family, nonlinear=True).update(z, y) for z in (x, x * units + shifts)
    )
    np.testing.assert_allclose(moved, plain_, rtol=2e-2 if family == "gaussian" else 1e-2)
    model = nw.OnlineGLM(family, nonlinear=True).partial_fit(x, y)
    far = model.predict(np.vstack([1e9 * x[:1], -1e9 * x[:1]]))
    room = np.ptp(y) + 1
    assert (far >= y.min() - room).all()
    assert (far <= y.max() + 2 * room).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ridge": 1.0}, "nonlinear is True and ridge 1.0"),
        ({"fit_intercept": False}, "nonlinear is True and fit_intercept False"),
        ({"nonlinear": "yes"}, "nonlinear is 'yes'"),
    ],
)
def test_what_does_not_go_together_is_refused(given, words):
    for family in ("gaussian", "binomial"):
        with pytest.raises(ValueError, match=words):
            nw.OnlineGLM(family, **{"nonlinear": True, **given}).fit([[0.0], [1.0]], [0.0, 1.0])


def test_learners_that_do_not_belong_together_are_refused():
    good = NonlinearLearners.start(nw.SelfTuned(forgetting=1.0), 2)
    with pytest.raises(ValueError, match="not its own"):
        NonlinearLearners(good.method, good.moments, [])
    with pytest.raises(ValueError, match="of dim"):
        NonlinearLearners(good.method, FeatureMoments.start(3), good.states)
    with pytest.raises(ValueError, match="belongs there"):
        NonlinearLearners(nw.RidgeMixture(), good.moments, [*good.states, *good.states])
    moments = FeatureMoments.start(2)
    moments.low = moments.high + 1.0
    with pytest.raises(ValueError, match="no stream"):
        FeatureMoments(**vars(moments))


def test_the_command_fits_and_predicts(tmp_path):
    x, y = rows("gaussian", 200)
    table = np.column_stack([x, y])
    source, out = tmp_path / "rows.csv", tmp_path / "fit"
    np.savetxt(source, table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    words = ["fit", str(source), "--target", "y", "--nonlinear", "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "nonlinear=True" in done.output
    assert CAUTION[1:60] in " ".join(done.output.split())
    found = CliRunner().invoke(main, ["predict", str(out), str(source)])
    assert found.exit_code == 0, found.output
    expected = nw.OnlineGLM(nonlinear=True).fit(x, y).predict(x)
    means = np.genfromtxt(found.stdout.splitlines(), delimiter=",", names=True)
    np.testing.assert_allclose(means[means.dtype.names[0]], expected, rtol=1e-6)
