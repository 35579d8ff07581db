"""Compiled code: every loop and link as the readable one, in threads, and from the cache."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from instances import CAUCHIT, sphere
from numba import njit

import noisewise as nw
from noisewise.kernels.compiling.compile_options import COMPILED
from noisewise.kernels.glm.history_passes import scan
from noisewise.kernels.glm.layout import UNIT, Header
from noisewise.kernels.glm.numbers import start
from noisewise.kernels.glm.rounds import numbers_of, vector


@pytest.mark.parametrize("d", [1, 3, 4, 5, 7, 8, 9, 12, 17, 20, 33])
def test_vector_loops_at_every_remainder(d):
    """Inverse, step and Gram matrix against numpy: whole and broken groups of 4 and 8 numbers."""
    rng = np.random.default_rng(d)
    x, y, w = sphere(rng, 700, d), rng.normal(size=700), rng.uniform(0.1, 3, 700)
    ftrl = nw.FTRL(nw.GLM("identity"), 0.5)
    state = ftrl.start(d)
    for first, last in ((0, 2 * d - 1), (2 * d - 1, 700)):  # before any factorisation, and after
        ftrl.update(state, x[first:last], y[first:last], w[first:last])
        H = np.eye(d) + x[:last].T @ (w[:last, None] * x[:last])
        np.testing.assert_allclose(state.inverse(), np.linalg.inv(H), atol=1e-12)
        theta = np.linalg.solve(H, x[:last].T @ (w[:last] * y[:last]))
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)
    n = state.folded
    assert n >= 512
    np.testing.assert_allclose(state.gram, x[:n].T @ (w[:n, None] * x[:n]), atol=1e-10)


@pytest.mark.parametrize("name", sorted(nw.LINKS))
def test_compiled_links_equal_the_readable_ones(name):
    """The sums and curvatures of one pass, compiled against numpy."""
    rng, n = np.random.default_rng(1), 300  # whole chunks of a pass, and a broken one
    glm = nw.GLM(name, 1.0, 2.0)
    memory = start(1, 2, code=glm.link.compiled.code, bound=2.0, ridge=3.0)
    theta, fresh, gradient = np.array([1.0, 0.0]), np.zeros(n), np.zeros(2)
    z = np.append(rng.normal(size=n - 4) * 3, [-2.0, 2.0, 0.0, 1e-9])
    w, wy, old = rng.uniform(0.1, 10, (3, n))
    x, labels = np.stack([z, np.ones(n)], axis=1), np.stack([w, wy])
    scan = njit(scan_first) if COMPILED else scan_first
    found = scan(memory, theta, x, labels, old, fresh, n, gradient)
    residual, ratio = w * glm.mean(z) - wy, w * glm.slope(z) / old
    np.testing.assert_allclose(gradient, residual @ x + 3 * theta, rtol=1e-11)
    np.testing.assert_allclose(fresh, w * glm.slope(z), rtol=1e-12)
    value, size, skew, low, high, stale = found
    drawn = wy * z
    assert value == pytest.approx(w @ glm.potential(z) - drawn.sum() + 1.5, rel=1e-12)
    assert size == pytest.approx(w @ np.abs(glm.potential(z)) + np.abs(drawn).sum() + 1.5)
    assert low == pytest.approx(min(1, ratio.min()))
    assert high == pytest.approx(max(1, ratio.max()))
    assert stale == pytest.approx(old @ (ratio - 1) ** 2)
    # the skew is the largest |phi''|/phi' at the clipped scores, by a difference inside [-S, S]
    c, h = np.clip(z, -2 + 1e-5, 2 - 1e-5), 1e-5
    bend = np.abs(glm.link.slope(c + h) - glm.link.slope(c - h)) / (2 * h * glm.link.slope(c))
    assert skew == pytest.approx(bend.max(), abs=1e-4)
    for i in range(0, n, 7):  # and each residual alone
        one = slice(i, i + 1)
        scan(memory, theta, x[one], labels[:, one].copy(), old[one], fresh, 1, gradient)
        assert gradient[1] == pytest.approx(residual[i], rel=1e-11, abs=1e-12)


def scan_first(memory, theta, x, labels, old, fresh, n, gradient):
    """A pass of the first learner."""
    a = memory[0]
    s = numbers_of(a)
    return scan(s, vector(s, a, UNIT), theta, x, labels, old, fresh, n, gradient, False)


def test_exponential_and_logarithm_are_those_of_the_library():
    """Within two units in the last place, also at the ends and at the seam of the two branches."""
    from noisewise.kernels.matrices.exponential import LEAST, MOST, ROOT, exponential, log_one_plus

    exp = njit(lambda x: exponential(x)) if COMPILED else exponential
    log = njit(lambda x: log_one_plus(x)) if COMPILED else log_one_plus
    rng = np.random.default_rng(2)
    for x in [LEAST, MOST, 0.0, 1e-300, *rng.uniform(-700, 700, 500), *rng.normal(size=500)]:
        assert abs(exp(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))
    for x in [0.0, 1.0, ROOT, ROOT + 1e-15, *rng.random(500), *10 ** rng.uniform(-300, 0, 500)]:
        assert abs(log(x) - math.log1p(x)) <= 2 * math.ulp(math.log1p(x))
    assert exp(-1e4) == exp(LEAST) < 1e-300
    assert math.isnan(exp(math.nan))


@pytest.mark.parametrize("name", ["logistic", "probit"])
def test_a_fresh_state_is_what_a_pass_would_make_it(name):
    """But for the last bits of the inverse, and what passes count."""
    glm = nw.GLM(name, 1.0, 2.0)
    state = nw.FTRL(glm, ridge=0.3).start(5)
    before = state.array.copy()
    state.solver.rebuild(glm, state)
    assert (state.passes, state.factors) == (1, 1)
    state.head.passes = state.head.factors = 0.0
    np.testing.assert_allclose(state.array, before, rtol=1e-11)


def test_trials_in_threads_equal_trials_one_by_one():
    rng = np.random.default_rng(4)
    x, y = sphere(rng, 5 * 700, 3).reshape(5, 700, 3), rng.random((5, 700))
    for link in ("logistic", "identity", CAUCHIT):
        ftrl = nw.FTRL(nw.GLM(link))
        together = nw.predictions(ftrl, x, y, threads=3)
        assert together.shape == (5, 700)
        for i in range(5):
            np.testing.assert_array_equal(together[i], nw.predictions(ftrl, x[i], y[i]))


@pytest.mark.parametrize("name", sorted(nw.LINKS))
def test_losses_of_a_block_equal_those_of_its_rows(name):
    """What a block adds up at its end, and a row at once; weight 0 has a mean and no loss."""
    rng = np.random.default_rng(4)
    ftrl = nw.FTRL(nw.GLM(name, 1.0, 1.5), 0.5)
    x, w = 0.9 * sphere(rng, 1100, 3), rng.uniform(0.1, 3, 1100) * (rng.random(1100) < 0.8)
    y = ftrl.glm.mean(x @ np.full(3, 0.8)) + rng.normal(size=1100)
    one, many = ftrl.start(3), ftrl.start(3)
    rows = [(row[0] @ one.theta, ftrl.update(one, *row)) for row in zip(x, y, w, strict=True)]
    expected, rows = map(np.array, zip(*rows, strict=True))
    ends = 0, 5, 140, 700, 1100  # within the buffer, chunks whole and broken, across a flush
    blocks = [slice(*pair) for pair in itertools.pairwise(ends)]
    means = [ftrl.update(many, x[each], y[each], w[each]) for each in blocks]
    np.testing.assert_allclose(np.concatenate(means), rows, rtol=1e-9, atol=1e-9)
    scores = nw.predictions(ftrl, x, y, w, scores=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    assert many.head.played == pytest.approx(one.head.played, rel=1e-9)
    assert many.head.value == pytest.approx(one.head.value, rel=1e-9)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_a_step_takes_rows_of_floats_and_numbers_alone():
    """Whatever else lies in memory is refused before it is read."""
    state = nw.FTRL(nw.GLM()).start(3)
    row, step = np.array([0.1, 0.2, 0.3]), state.step
    numbers = 1, True, 0.5, np.float64(0.5), np.int64(3), -(2**20)
    for number in numbers:
        for given in ((number, 1.0), (1.0, abs(number))):
            a = state.array.copy()
            assert step(*given, a, row) == 0.0
            assert Header(a).count == 1.0
            assert Header(a).squares == float(given[0]) ** 2 * float(given[1])
    before = state.array.copy()
    uneven = np.frombuffer(bytes(25), np.uint8)[1:].view(float)
    others = [row.astype(each) for each in ("f4", ">f8", int, str, object)]
    for bad in (*others, row[None], np.ones((3, 2))[:, 0], row[::-1], uneven, np.array(1.0)):
        with pytest.raises(TypeError, match="in one piece"):
            step(1.0, 1.0, state.array, bad)
    for bad in ("1", b"1", None, [1.0], np.ones(1), np.ones(1, int), 1j, np.str_("1"), object()):
        for given in ((bad, 1.0), (1.0, bad)):
            with pytest.raises(TypeError):
                step(*given, state.array, row)
    with pytest.raises(OverflowError):
        step(10**400, 1.0, state.array, row)
    assert math.isnan(step(1.0, 1.0, state.array, row[:2]))  # of another length
    np.testing.assert_array_equal(state.array, before)


@pytest.mark.parametrize("place", ["label", "weight"])
def test_a_row_is_read_after_the_code_of_its_numbers_has_run(place):
    """A number may be an object whose answer frees the row: that memory is not learnt."""
    ftrl, row = nw.FTRL(nw.GLM()), np.array([0.1, 0.2, 0.3])

    class Number:
        def __index__(self):
            row.resize(2, refcheck=False)
            return 1

    state = ftrl.start(3)
    y, w = (Number(), 1.0) if place == "label" else (1.0, Number())
    with pytest.raises(ValueError, match="shape"):
        ftrl.update(state, row, y, w)
    assert state.count == 0


@pytest.mark.slow
def test_a_second_process_finds_the_cache_and_rounds_alike(tmp_path):
    """Also where some of the code on disk is gone, and is compiled anew beside the rest."""
    code = (
        "import numpy as np, noisewise as nw\n"
        "f = nw.FTRL(nw.GLM('logistic')); s = f.start(5); r = np.random.default_rng(0)\n"
        "x = r.uniform(-0.4, 0.4, (200, 5)); f.update(s, x[0], 1.0)\n"
        "print(f.update(s, x, r.random(200)).tobytes().hex())\n"
        "from noisewise.kernels.compiling.compile_options import entries\n"
        "k = {e.__name__: e for e in entries}\n"
        "for n in ('step', 'run', 'first_refused', 'solve'):\n"
        " k[n].compile(); t = k[n].kernel.stats\n"
        " print(sum(t.cache_hits.values()), sum(t.cache_misses.values()))\n"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts, answers = [], []
    for gone in ("nothing", "nothing", "step.run"):
        for path in tmp_path.rglob(f"{gone}-*"):
            path.unlink()
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        answer, *lines = done.stdout.splitlines()
        answers.append(answer)
        counts.append([tuple(map(int, line.split())) for line in lines])
    assert all(misses == 1 for _, misses in counts[0])
    assert all(pair == (1, 0) for pair in counts[1])
    assert counts[2] == [(1, 0), (0, 1), (1, 0), (1, 0)]
    assert answers[1:] == answers[:-1]
