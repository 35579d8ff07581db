"""Fits over partitions, and merged states, against learning the rows themselves."""

import copy
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest
from scipy.optimize import minimize

import noisewise as nw
from noisewise.checks.comparison import same
from noisewise.regression.ftrl import condensed_sets, newton
from noisewise.regression.ftrl.sets import adaptive_level
from noisewise.regression.ftrl.sums import Sums, added
from noisewise.theory import radii

RNG = np.random.default_rng
CURVED = ["logistic", "probit", "exponential", "tanh", "algebraic"]
SHARES = 7  # partitions


def drawn(link, n=700, d=4, seed=0, bound=2.0):
    rng, glm = RNG([seed, n]), nw.GLM(link, parameter_bound=bound)
    x = rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1).max()
    theta = rng.normal(size=d)
    y = glm.prediction(x @ theta / np.linalg.norm(theta)) + rng.normal(size=n)
    w = rng.uniform(0.1, 3.0, n)
    w[::9] = 0.0
    return glm, x, y, w


def shares(x, y, w, number=SHARES):
    return list(zip(*(np.array_split(each, number) for each in (x, y, w)), strict=True))


def learnt(ftrl, x, y, w):
    state = ftrl.start(x.shape[1])
    ftrl.update(state, x, y, w)
    ftrl.solve(state)
    return state


def uniform_norm(glm, ridge, x, w, v):
    H = 2 * ridge * np.eye(len(v)) + glm.min_slope * (x.T * w) @ x
    return float(np.sqrt(v @ H @ v))


@pytest.mark.parametrize("link", ["identity", *CURVED])
def test_the_minimiser_is_that_of_the_rows_learnt_one_by_one(link):
    glm, x, y, w = drawn(link)
    ftrl = nw.FTRL(glm, ridge=0.7)
    whole = learnt(ftrl, x, y, w)
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    assert state.theta == pytest.approx(whole.theta, rel=1e-12, abs=1e-12)
    assert state.count == whole.count == np.count_nonzero(w)
    assert state.gap < 1e-9
    for name in ("heaviest", "longest", "squares", "lowest", "highest"):
        assert getattr(state.head, name) == pytest.approx(getattr(whole.head, name), rel=1e-12)
    assert ftrl.predict(state, x[:5]) == pytest.approx(ftrl.predict(whole, x[:5]), rel=1e-12)


def test_the_minimiser_is_also_what_scipy_finds():
    glm, x, y, w = drawn("logistic")

    def objective(theta):
        z = x @ theta
        return 0.7 * theta @ theta + w @ (glm.potential(z) - y * z)

    found = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    assert state.theta == pytest.approx(found.x, abs=1e-5)


def test_a_link_of_your_own_without_known_curvature():
    link = nw.Link("cubic", lambda z: z + z**3, lambda z: 1 + 3 * z**2)
    glm, x, y, w = drawn(link, n=60, bound=1.0)
    whole = learnt(nw.FTRL(glm, ridge=0.7), x, y, w)
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    assert state.theta == pytest.approx(whole.theta, rel=1e-12, abs=1e-12)
    assert state.gap < 1e-9
    nw.FTRL(glm, ridge=0.7).update(state, x[0], 1.0)
    nw.FTRL(glm, ridge=0.7).solve(state)
    assert state.gap == np.inf  # nothing is known of how the loss goes on


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 100])
def test_how_rows_are_split_changes_rounding_only(number):
    glm, x, y, w = drawn("logistic")
    state = nw.fit_partitions(glm, shares(x, y, w, number), ridge=0.7)
    other = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    assert state.theta == pytest.approx(other.theta, rel=1e-12)


def test_fewer_rows_than_features():
    glm, x, y, w = drawn("logistic", n=3, d=6)
    w = np.ones(3)
    whole = learnt(nw.FTRL(glm, ridge=0.7), x, y, w)
    state = nw.fit_partitions(glm, shares(x, y, w, 2), ridge=0.7)
    assert state.theta == pytest.approx(whole.theta, abs=1e-12)
    nw.FTRL(glm, ridge=0.7).solve(state)
    assert state.theta == pytest.approx(whole.theta, abs=1e-12)


@pytest.mark.parametrize("link", ["identity", *CURVED])
@pytest.mark.parametrize("more", [3, 100])
def test_it_goes_on_and_the_gap_covers_what_was_condensed(link, more):
    """The exact minimiser is computed from all rows, which the state no longer has."""
    glm, x, y, w = drawn(link)
    ftrl, own = nw.FTRL(glm, ridge=0.7), RNG(5)
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    u, v = own.permuted(x, axis=1)[:more], 2 + y[:more]  # other rows, another truth
    ftrl.update(state, u, v)
    exact = learnt(ftrl, np.vstack([x, u]), np.append(y, v), np.append(w, np.ones(more))).theta
    weights = np.append(w, np.ones(more))
    far = uniform_norm(glm, 0.7, np.vstack([x, u]), weights, state.theta - exact)
    assert far <= state.gap
    ftrl.solve(state)
    left = uniform_norm(glm, 0.7, np.vstack([x, u]), weights, state.theta - exact)
    assert left <= state.gap
    if link == "identity":
        assert left < 1e-10
    else:  # the departure is of second order, so what is left is a small part of the way
        way = uniform_norm(glm, 0.7, np.vstack([x, u]), weights, exact - state.condensed[0].centre)
        assert 0 < left < 0.1 * way


def test_the_condensed_rows_have_gradient_and_hessian_of_all():
    from noisewise.regression.ftrl.newton import visit

    glm, x, y, w = drawn("probit")
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    theta = state.condensed[0].centre
    z = x @ theta
    here = visit(glm, 0.7, state.blocks(), theta)
    gradient = x.T @ (w * (glm.mean(z) - y)) + 1.4 * theta
    assert here.gradient == pytest.approx(gradient, abs=1e-10)
    assert here.curvature == pytest.approx((x.T * (w * glm.slope(z))) @ x, rel=1e-10, abs=1e-10)
    assert state.rows.count == 4


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_sets_are_those_of_the_rows_or_refused(link):
    glm, x, y, w = drawn(link)
    ftrl, noise = nw.FTRL(glm, ridge=0.7), nw.SubGaussian(1.0)
    whole, state = learnt(ftrl, x, y, w), nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    for _ in range(2):
        a, b = (ftrl.ellipsoid(each, noise, radius="self-normalised") for each in (whole, state))
        assert b.inverse == pytest.approx(a.inverse, rel=1e-9)
        assert a.radius - 1e-9 <= b.radius
        for each in (whole, state):
            ftrl.update(each, x[:5], y[:5])
    if link == "identity":
        exact = ftrl.interval(state, x[:3], noise)
        assert (exact.lower < exact.upper).all()
        return
    refused = {"anytime": False}, {"simultaneous": False}, {"radius": "played"}
    for asked in (*refused, {"noise": nw.Bounded(1.0, 0.5, max_weight=9.0)}):
        with pytest.raises(ValueError, match="holds a summary of 622 of them"):
            ftrl.interval(state, x[:3], **{"noise": noise} | asked)


@pytest.mark.parametrize("noise", [nw.SubGaussian(0.5), nw.Likelihood()])
def test_adaptive_sets_of_a_summary_are_those_of_the_rows_made_wider(noise):
    """Evidence, curvature and radii against those of a state that holds all rows."""
    glm, x, y, w = drawn("logistic")
    y = (y > 0.5) * 1.0
    ftrl = nw.FTRL(glm, ridge=0.7)
    constant = radii.conversion_constant(glm, noise)
    whole = learnt(ftrl, x, y, w)
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    rng, ratios = RNG(8), []
    for _ in range(8):
        sets = ftrl.confidence(state, noise)
        whole.solver.uniform(glm, whole)  # the Gram matrix
        exact = whole.solver.mixture(glm, whole, constant)
        found = condensed_sets.mixture(glm, state, constant)
        assert found >= exact - 1e-6 * abs(exact)
        G, _ = condensed_sets.curvature(glm, state, glm.self_concordance)
        true = newton.visit(glm, 0.7, whole.blocks(), state.theta).curvature
        assert np.linalg.eigvalsh(true - G)[0] >= -1e-9 * np.trace(true)
        level = adaptive_level(2.0, constant, ridge=0.7, excess=np.inf, delta=0.05, mixture=exact)
        assert sets[0].radius >= (1 - 1e-6) * np.sqrt(2 * level)
        ratios.append([found - exact, sets[0].radius / np.sqrt(2 * level)])
        assert len(sets) == 2
        rows = x[rng.integers(len(x), size=2)]
        for each in (whole, state):
            ftrl.update(each, rows, [1.0, 0.0])
        ftrl.solve(whole)
    assert abs(ratios[0][0]) < 1e-6
    assert ratios[0][1] == pytest.approx(1, abs=1e-6)
    assert ratios[-1][1] < 1.01


def test_scores_of_a_linear_fit_count_as_zero():
    """The excess is then the loss at zero less the minimum."""
    glm, x, y, w = drawn("identity")
    state = nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    theta = state.theta
    least = 0.7 * theta @ theta + 0.5 * w @ (y - x @ theta) ** 2 - 0.5 * w @ y**2
    assert state.solver.excess(state) == pytest.approx(-least, rel=1e-10)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_it_is_saved_copied_and_loaded(link, tmp_path):
    glm, x, y, w = drawn(link)
    ftrl, state = nw.FTRL(glm, ridge=0.7), nw.fit_partitions(glm, shares(x, y, w), ridge=0.7)
    nw.save(tmp_path / "a.npz", ftrl, state)
    _, again = nw.load(tmp_path / "a.npz")
    for each in (state, again, twin := copy.deepcopy(state)):
        ftrl.update(each, x[:600], y[:600])
    assert np.array_equal(again.theta, state.theta)
    assert np.array_equal(twin.theta, state.theta)
    assert again.gap == state.gap


def folder_of(tmp_path, x, y, w, number=3):
    import pandas as pd

    names = [f"x{j}" for j in range(x.shape[1])]
    for i, (a, b, c) in enumerate(shares(x, y, w, number)):
        table = pd.DataFrame(a, columns=names).assign(label=b, weight=c)
        table.to_parquet(tmp_path / f"part-{i}.parquet", index=False)
    return tmp_path


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask itself
def test_files_functions_and_dask_give_the_same_bits(tmp_path):
    import dask
    import dask.array as da
    import dask.dataframe as dd

    glm, x, y, w = drawn("logistic")
    pieces, folder = shares(x, y, w, 3), folder_of(tmp_path, x, y, w)
    columns = {"target": "label", "weight": "weight"}
    held = nw.fit_partitions(glm, pieces)
    sizes = (tuple(len(each[1]) for each in pieces),)
    arrays = da.from_array(x, (*sizes, 2)), da.from_array(y, sizes), da.from_array(w, 100)
    others = [
        nw.fit_partitions(glm, folder, **columns),
        nw.fit_partitions(glm, sorted(folder.iterdir()), **columns),
        nw.fit_partitions(glm, [lambda each=each: each for each in pieces]),
        nw.fit_partitions(glm, [dask.delayed(each) for each in pieces]),
        nw.fit_partitions(glm, dd.read_parquet(folder, split_row_groups=False), **columns),
        nw.fit_partitions(glm, arrays),
    ]
    for other in others:
        assert same(other, held)


@pytest.mark.parametrize("number", [15, 16, 17, 40, 100])
def test_many_partitions_on_dask_give_the_same_bits(number):
    import dask

    glm, *rows = drawn("identity")
    pieces = shares(*rows, number)
    with dask.config.set(scheduler="synchronous"):
        state = nw.fit_partitions(glm, [dask.delayed(each) for each in pieces])
    assert same(state, nw.fit_partitions(glm, pieces))


def test_columns_may_be_in_another_order(tmp_path):
    import pandas as pd

    glm, x, y, w = drawn("identity")
    folder = folder_of(tmp_path, x, y, w)
    held = nw.fit_partitions(glm, folder, target="label", weight="weight")
    last = folder / "part-2.parquet"
    pd.read_parquet(last).iloc[:, ::-1].to_parquet(last, index=False)
    assert same(nw.fit_partitions(glm, folder, target="label", weight="weight"), held)


def test_bad_files_are_named(tmp_path):
    import pandas as pd

    glm, x, y, w = drawn("logistic")
    folder, last = folder_of(tmp_path, x, y, w), tmp_path / "part-2.parquet"
    good = pd.read_parquet(last)

    def fit(**named):
        return nw.fit_partitions(glm, folder, **{"target": "label", "weight": "weight", **named})

    for table, words in (
        (good.assign(x1=good["x1"].where(good.index != 17)), r"part-2.*: x1 is nan at row 17 "),
        (good.assign(label=np.inf), r"part-2.*: label is inf at row 0"),
        (good.assign(weight=-1.0), r"part-2.*: weight is -1 at row 0"),
        (good.assign(x0=3.0), r"part-2.*norm 3.* above feature_bound 1;"),
        (good.rename(columns={"x1": "z"}), r"part-2.* other columns .* lacks 'x1'"),
        (good.assign(z=0.0), r"part-2.* other columns .* also has 'z'"),
        (good.assign(x1="a"), r"part-2.*: column 'x1' holds no numbers"),
        (good[:0], r"part-2.* holds no row; leave it out"),
    ):
        table.to_parquet(last, index=False)
        with pytest.raises(ValueError, match=words):
            fit()
    last.write_bytes(b"no")
    with pytest.raises(ValueError, match=r"part-2.* is no Parquet file"):
        fit()
    last.unlink()
    with pytest.raises(ValueError, match=r"part-0.* has no column 'y'; it has x0, x1"):
        fit(target="y")
    with pytest.raises(ValueError, match="say which column holds the labels"):
        fit(target=None)
    with pytest.raises(ValueError, match="target is 3"):
        fit(target=3)
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty holds no Parquet file"):
        nw.fit_partitions(glm, empty, target="label")
    with pytest.raises(ValueError, match="does not exist"):
        nw.fit_partitions(glm, tmp_path / "none", target="label")


def test_bad_arrays_are_named():
    glm, x, y, w = drawn("logistic")
    good = (x, y, w)
    for parts, words in (
        ([], "partitions is empty"),
        (3, "partitions is a int"),
        ([good, (x[:, 1:], y, w)], "partition 1 has 3 features and the first partition 4"),
        ([good, (x[:0], y[:0])], "partition 1 holds no row"),
        ([good, (x, y[1:])], r"partition 1 has X of shape \(700, 4\), y of shape \(699,\)"),
        ([good, (x, np.where(np.arange(700) == 9, np.nan, y))], "partition 1: y is nan at row 9"),
        ([good, (np.where(x > 0.5, np.nan, x), y)], r"partition 1: X\[:, \d\] is nan at row \d+"),
        ([good, 3], "partition 1 is a int; pass"),
        ([good, ("a", "b")], "partition 1 holds what is no number"),
        ([lambda: good, lambda: None], "partition 1 is a NoneType"),
    ):
        with pytest.raises(ValueError, match=words):
            nw.fit_partitions(glm, parts)
    with pytest.raises(ValueError, match="glm is 'logistic'"):
        nw.fit_partitions("logistic", [good])


def changed(part, rng):
    """Return a partition after each of several changes, and what they are."""
    x, y, w = part
    some = rng.permutation(len(x))
    one = np.arange(len(x)) == 5
    return {
        "other rows": (rng.permutation(x.ravel()).reshape(x.shape), y, w),
        "labels in another order": (x, y[some], w),
        "weights in another order": (x, y, w[some]),
        "one feature": (np.where(one[:, None] & (np.arange(x.shape[1]) == 1), 1.001 * x, x), y, w),
        "one label": (x, np.where(one, y + 1e-6, y), w),
        "one weight": (x, y, np.where(one, w * 1.001, w)),
        "a row less": (x[1:], y[1:], w[1:]),
        "a row more": (np.vstack([x, 0 * x[:1]]), [*y, 0.0], [*w, 0.0]),
        "NaN": (np.full_like(x, np.nan), y, w),
    }


@pytest.mark.parametrize("units", [1.0, 1e-6])
def test_a_partition_that_changes_between_passes_is_named(units):
    glm, x, y, w = drawn("logistic")
    x = x * np.array([1.0, units, 1.0, 1.0])  # a column of another size changes as visibly
    first, second, third = shares(x, y, w, 3)
    for what, after in changed(second, RNG(1)).items():
        turns = chain([second], repeat(after))
        with pytest.raises(ValueError, match="partition 1 does not hold the rows that it held"):
            nw.fit_partitions(glm, [first, lambda turns=turns: next(turns), third])
        assert what
    drawing, rng = glm.prediction, RNG(2)

    def fresh():  # draws new rows every time
        z = rng.normal(size=(100, 4)) / 10
        return z, drawing(z.sum(axis=1))

    with pytest.raises(ValueError, match="partition 0 does not hold"):
        nw.fit_partitions(glm, [fresh])


def test_rounding_and_the_order_of_rows_are_no_change():
    """Workers of other processors may differ in the last bit, and Dask may shuffle rows."""
    glm, x, y, w = drawn("logistic", bound=1.0)
    glm, rng = nw.GLM("logistic", 1.1), RNG(3)

    def again():
        at = rng.permutation(len(x))
        return (x * (1 + 1e-15 * rng.uniform(-1, 1, x.shape)))[at], y[at], w[at]

    found = nw.fit_partitions(glm, [again, again], ridge=0.7)
    whole = nw.fit_partitions(glm, [(x, y, w)] * 2, ridge=0.7)
    assert found.theta == pytest.approx(whole.theta, rel=1e-9)


def test_integers_may_name_the_columns_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    glm, x, y, w = drawn("logistic")
    frame = pd.DataFrame(np.column_stack([x, y, w]))
    found = nw.fit_partitions(glm, [frame], ridge=0.7, target="4", weight="5")
    np.testing.assert_array_equal(found.theta, nw.fit_partitions(glm, [(x, y, w)], ridge=0.7).theta)
    frame.columns = [0, 1, "1", 3, 4, 5]
    with pytest.raises(ValueError, match="partition 0 has 2 columns named '1'; rename or remove"):
        nw.fit_partitions(glm, [frame], target="4", weight="5")


@pytest.mark.parametrize("number", [*range(1, 18), 1000])
def test_sums_are_added_as_in_a_tree(number):
    """Level by level, as on Dask, is the same as one by one."""
    parts = [replace(Sums.none(1), value=float(v)) for v in RNG(3).normal(size=number)]
    level = [each.value for each in parts]
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
    assert added(parts).value == level[0]


@pytest.mark.parametrize("link", ["identity", *CURVED])
def test_merged_states_are_those_of_the_union(link):
    glm, x, y, w = drawn(link)
    ftrl = nw.FTRL(glm, ridge=0.7)
    whole = learnt(ftrl, x, y, w)
    states = [learnt(ftrl, *part) for part in shares(x, y, w, 3)]
    before = [each.theta for each in states]
    merged = nw.merge(ftrl, states)
    assert merged.theta == pytest.approx(whole.theta, rel=1e-11, abs=1e-12)
    assert merged.count == whole.count
    assert merged.gap < 1e-9
    assert all(np.array_equal(a, b.theta) for a, b in zip(before, states, strict=True))
    a, b, c = states
    for other in ([c, a, b], [nw.merge(ftrl, [a, b]), c], [a, nw.merge(ftrl, [b, c])]):
        again = nw.merge(ftrl, other)
        assert again.theta == pytest.approx(merged.theta, rel=1e-11, abs=1e-12)
        assert again.head.played - again.head.value == pytest.approx(
            merged.head.played - merged.head.value, rel=1e-9
        )
    for each in (merged, whole):
        ftrl.update(each, x[:600], y[:600])
        ftrl.solve(each)
    assert merged.theta == pytest.approx(whole.theta, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_what_was_played_stays_played(link):
    """The loss of what states predicted is added up from the predictions themselves."""
    glm, x, y, w = drawn(link)
    ftrl, played, states = nw.FTRL(glm, ridge=0.7), 0.0, []
    for a, b, c in shares(x, y, w, 3):
        states.append(ftrl.start(4))
        z = np.clip(ftrl.update(states[-1], a, b, c, scores=True), -2.0, 2.0)
        played += c @ (glm.potential(z) - b * z)
    merged = nw.merge(ftrl, states)
    z = x @ merged.theta
    least = 0.7 * merged.theta @ merged.theta + w @ (glm.potential(z) - y * z)
    assert merged.solver.excess(merged) == pytest.approx(played - least, rel=1e-7)
    lower, upper = ftrl.interval(merged, x[:3], nw.SubGaussian(1.0))
    assert (lower < upper).all()


def test_summaries_are_merged_with_rows():
    glm, x, y, w = drawn("logistic", n=900)
    ftrl, parts = nw.FTRL(glm, ridge=0.7), shares(x, y, w, 3)
    fits = [nw.fit_partitions(glm, [each], ridge=0.7) for each in parts[:2]]
    merged = nw.merge(ftrl, [learnt(ftrl, *parts[2]), nw.merge(ftrl, fits[:1]), fits[1]])
    exact = learnt(ftrl, x, y, w).theta
    assert merged.count == np.count_nonzero(w)
    assert 0 < uniform_norm(glm, 0.7, x, w, merged.theta - exact) <= merged.gap
    whole = nw.fit_partitions(glm, parts, ridge=0.7)
    a, b = (
        ftrl.ellipsoid(s, nw.SubGaussian(1.0), radius="self-normalised") for s in (merged, whole)
    )
    assert a.inverse == pytest.approx(b.inverse, rel=1e-9)
    with pytest.raises(ValueError, match="aggregate=True"):
        nw.merge(replace(ftrl, aggregate=True), fits)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_rows_of_weight_zero_are_no_rows(link):
    glm, x, y, w = drawn(link)
    state = nw.fit_partitions(glm, [(x, y, 0 * w)], ridge=0.7)
    assert state.count == 0
    assert not state.theta.any()
    ftrl = nw.FTRL(glm, ridge=0.7)
    ftrl.update(state, x, y, w)
    ftrl.solve(state)
    assert state.theta == pytest.approx(learnt(ftrl, x, y, w).theta, rel=1e-11)


def test_equal_rows_stay_merged():
    glm, x, y, w = drawn("logistic")
    ftrl = nw.FTRL(glm, ridge=0.7, aggregate=True)
    x = np.round(x * 2) / 2
    x /= np.maximum(np.linalg.norm(x, axis=1), 1.0)[:, None]
    states = [learnt(ftrl, *part) for part in shares(x, y, w, 2)]
    merged, whole = nw.merge(ftrl, states), learnt(ftrl, x, y, w)
    assert merged.theta == pytest.approx(whole.theta, rel=1e-11)
    assert merged.rows.count == len(np.unique(x[w > 0] + 0.0, axis=0)) < merged.count
    with pytest.raises(ValueError, match="has merged equal rows; pass a spec with aggregate=True"):
        nw.merge(replace(ftrl, aggregate=False), states)


def test_what_cannot_be_merged():
    glm, x, y, w = drawn("logistic")
    ftrl = nw.FTRL(glm)
    state = learnt(ftrl, x, y, w)
    for states, words in (
        ([], "states is empty"),
        ([state, state], "one of them twice"),
        ([state, ftrl.start(3)], "states have 3 and 4 features"),
        ([state, nw.FTRL(nw.GLM("probit")).start(4)], "another model"),
        ([state, 3], "state is a int"),
    ):
        with pytest.raises(ValueError, match=words):
            nw.merge(ftrl, states)
    with pytest.raises(ValueError, match=r"spec is Ridge.*pass the FTRL"):
        nw.merge(nw.Ridge(), [nw.Ridge().start(2)])
    assert nw.merge(ftrl, [ftrl.start(2), ftrl.start(2)]).count == 0


def test_estimators_learn_blocks_of_dask_as_they_learn_arrays():
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    _, x, y, w = drawn("identity")
    whole = nw.OnlineGLM().fit(x, y, w)
    arrays = da.from_array(x, (100, 2)), da.from_array(y, 300), da.from_array(w, 100)
    model = nw.OnlineGLM().fit(*arrays)
    assert model.coef_ == pytest.approx(whole.coef_, rel=1e-9)
    table = pd.DataFrame(x, columns=list("abcd")).assign(y=y, w=w)
    frame = dd.from_pandas(table, npartitions=3)
    named = nw.OnlineGLM().fit(frame[list("abcd")], frame["y"], frame["w"])
    assert named.coef_ == pytest.approx(whole.coef_, rel=1e-9)
    assert list(named.feature_names_in_) == list("abcd")
    before = named.coef_
    for others, words in (
        ((y, None), "X is of Dask and y is a ndarray"),
        ((frame["y"].repartition(npartitions=2), None), "y has 2 partitions and X 3"),
        ((frame["y"].where(frame["y"] < 1.0), None), "y contains NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            named.fit(frame[list("abcd")], *others)
        assert np.array_equal(named.coef_, before)
