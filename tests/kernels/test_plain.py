"""Without a compiler, or with what numba documents alone, results are the same."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from numba import float64, njit, types

from noisewise.kernels.compiling import compile_options
from noisewise.kernels.glm.layout import padded
from noisewise.kernels.matrices import vectors
from noisewise.kernels.policies import arm_forms

compiled = pytest.mark.skipif(not compile_options.COMPILED, reason="nothing is compiled")
SIZES = (1, 3, 4, 5, 8, 11, 17)
CODE = """
import sys, warnings
import numpy as np, noisewise as nw
warnings.simplefilter("error")
rng, out = np.random.default_rng(0), []
for link in ("identity", "logistic"):
    for d in (3, 9):
        ftrl = nw.FTRL(nw.GLM(link))
        state, x, y = ftrl.start(d), rng.uniform(-0.3, 0.3, (600, d)), rng.random(600)
        out += [ftrl.update(state, x[0], 1), ftrl.update(state, [0.1] * d, 0.5)]
        out += [*ftrl.update(state, x, y), *state.theta, state.gap]
        ftrl.solve(state)
        out += [*state.theta, *ftrl.interval(state, x[0], nw.SubGaussian(1.0))]
for policy in (nw.MORUCB(), nw.FTRLUCB(nw.GLM("logistic")), nw.FTRLUCB(radius="practical"),
               nw.LOSAN(), nw.GLBOMD(loss="exact", ridge=1e-3), nw.NormalUCB()):
    state = policy.start(4)
    for _ in range(30):
        arms = rng.normal(size=(5, 4))
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        arms = np.eye(4) if isinstance(policy, nw.NormalUCB) else arms
        k = policy.select(state, arms, rng)
        policy.update(state, arms[k], float(rng.random()), 0.5)
        out.append(k)
    out += [*getattr(state, "theta", ())]
agent = nw.Agent.for_binary_rewards(3)
for t in range(30):
    out.append(agent.choose(rng.uniform(-0.5, 0.5, (4, 3)), key=t))
    if t % 3:
        agent.learn(t, float(rng.random() < 0.5))
    if t % 10 == 9:
        keys = [f"{t}, {i}" for i in range(5)]
        out += agent.choose_many(rng.uniform(-0.5, 0.5, (5, 4, 3)), keys)
        agent.learn(keys[1:], [0.0, 1.0, 0.5, 0.5], trials=[1, 2, 4, 6])
np.save(sys.argv[1], np.array(out, dtype=float))
"""


def test_streams_policies_and_agents_run_without_a_compiler(tmp_path):
    results = []
    for switch in "01":
        path = tmp_path / f"{switch}.npy"
        env = {**os.environ, "NUMBA_DISABLE_JIT": switch}
        subprocess.run([sys.executable, "-c", CODE, path], env=env, check=True)
        results.append(np.load(path))
    assert len(results[0]) > 2400
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-9)


DOCUMENTED = """
import sys, warnings
import numpy as np
from noisewise.support import supported
supported.NUMBA_FIRST = supported.NUMBA_BEYOND  # as if none were tested
import noisewise as nw
from noisewise.kernels.compiling import compile_options
assert compile_options.COMPILED and not compile_options.TESTED
warnings.simplefilter("error")
rng, out = np.random.default_rng(0), []
for link in ("identity", "logistic"):
    for d in (3, 9):
        ftrl = nw.FTRL(nw.GLM(link))
        state, x, y = ftrl.start(d), rng.uniform(-0.3, 0.3, (600, d)), rng.random(600)
        out += [ftrl.update(state, x[0], 1), ftrl.update(state, [0.1] * d, 0.5)]
        for bad in (("1", 1.0), (None, 1.0), (1.0, np.ones(2))):
            try:
                ftrl.update(state, x[0], *bad)
            except ValueError:
                out.append(state.count)
        out += [*ftrl.update(state, x, y), *state.theta, state.gap]
assert not any(name.startswith("noisewise.kernels.") and name.endswith(PRIVATE)
               for name in sys.modules for PRIVATE in ("borrowed", "linked_parts", "vector_sweep"))
np.save(sys.argv[1], np.array(out, dtype=float))
"""


@compiled
def test_the_documented_interface_of_numba_is_enough(tmp_path):
    """With a version that was not tested; the same as without a compiler."""
    results = []
    for switch in "01":
        path = tmp_path / f"{switch}.npy"
        env = {**os.environ, "NUMBA_DISABLE_JIT": switch, "NUMBA_CACHE_DIR": str(tmp_path)}
        code = (
            DOCUMENTED.replace("compile_options.COMPILED and", "") if switch == "1" else DOCUMENTED
        )
        subprocess.run([sys.executable, "-c", code, path], env=env, check=True)
        results.append(np.load(path))
    assert len(results[0]) > 2400
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-9)


@compiled
def test_sweeps_are_alike_and_those_of_numpy():
    """In vector code, compiled plain loops and plain loops; only fours up to the diagonal count."""
    assert vectors.sweep is not vectors.plain_sweep
    names = "a, d, ld, P, old, x, new, c"
    kinds = [njit(eval(f"lambda {names}: code({names})", {"code": code}))
             for code in (vectors.sweep, vectors.plain_sweep)]  # fmt: skip
    for d in SIZES:
        rng, ld = np.random.default_rng(d), padded(d)
        a, fours = memory(rng, d), -(-d // 4) * 4
        k, x, P = a[:d], a[ld : ld + d], a[8 * ld :].reshape(ld, ld)[:d, :d]
        wanted = P + 0.3 * np.outer(k, k)
        where = map(np.uint64, (d, ld, 8 * ld, 0, ld, 2 * ld))
        where = [*where]
        a[2 * ld : 3 * ld] = np.nan  # nothing but what is written there is read
        a[2 * ld : 2 * ld + fours] = 0.0
        for sweep in (*kinds, vectors.plain_sweep.py_func):
            b = a.copy()
            (q,) = sweep(b, *where, 0.3)
            assert q == pytest.approx(x @ wanted @ x, rel=1e-12)
            np.testing.assert_allclose(b[2 * ld : 2 * ld + d], wanted @ x, 1e-12, 1e-12)
            found = b[8 * ld :].reshape(ld, ld)[:d, :d]
            np.testing.assert_allclose(np.tril(found), np.tril(wanted), 1e-13, 1e-13)
            np.testing.assert_array_equal(b[:ld], a[:ld])


@pytest.mark.parametrize("count", [1, 3, 8, 63, 64, 65, 200])
def test_quadratic_forms_are_those_of_numpy(count):
    for d in SIZES:
        rng = np.random.default_rng(d)
        x, root = rng.normal(size=(count, d)), rng.normal(size=(d, d))
        P, found = root @ root.T, np.full(count, np.nan)
        arm_forms.forms_of(x, P, found)
        np.testing.assert_allclose(found, ((x @ P) * x).sum(axis=1), 1e-11, 1e-11)


@compiled
def test_loops_of_a_round_equal_products_of_numpy():
    """Compiled or not; nothing is read past the end of the last row."""
    code = {"copy_and_dot": vectors.copy_and_dot, "advance": vectors.advance}
    forms = "lambda a, x, d, x0, row, unit, m, u: ", "lambda a, d, u, k, g, x, move, r: "
    calls = "copy_and_dot(a, x, d, x0, row, unit, m, u)", "advance(a, d, u, k, g, x, move, r)"
    in_code = [njit(eval(form + call, code)) for form, call in zip(forms, calls, strict=True)]
    two_ways = in_code, (vectors.copy_and_dot.py_func, vectors.advance.py_func)
    for (copy_and_dot, advance), d in product(two_ways, SIZES):
        rng, ld = np.random.default_rng(d), padded(d)
        a, x = memory(rng, d), np.append(rng.normal(size=2 * d), [np.nan] * 8)
        m, u, k, g, v = a[: 5 * ld].reshape(5, ld).copy()
        unit, a[5 * ld : 6 * ld] = a[6 * ld : 6 * ld + d], 0.0
        x0, row = x[d : 2 * d], np.uint64(5 * ld)
        lines = np.arange(7, dtype=np.uint64) * np.uint64(ld)
        found, z = copy_and_dot(a, x, np.uint64(d), np.uint64(d), row, *lines[[6, 0, 1]]), x0 * unit
        np.testing.assert_allclose(found, [z @ m[:d], z @ u[:d], z @ z], 1e-13, 1e-13)
        assert np.array_equal(a[5 * ld : 6 * ld], np.pad(z, (0, ld - d)))
        found = advance(a, np.uint64(d), *lines[1:5], 0.3, -0.7)
        u, g = u + 0.3 * k, g - 0.7 * v
        np.testing.assert_allclose(found, [g @ u, u @ u], 1e-13, 1e-13)
        np.testing.assert_allclose(a[: 5 * ld], [*m, *u, *k, *g, *v], 1e-13, 1e-13)


def memory(rng, d):
    """Return eight padded vectors and a padded symmetric matrix, as in a state."""
    ld = padded(d)
    vector, P = np.zeros((8, ld)), rng.normal(size=(ld, ld))
    vector[:, :d] = rng.normal(size=(8, d))
    P[d:] = P[:, d:] = 0.0
    return np.concatenate([vector.reshape(-1), (P + P.T).reshape(-1)])


def test_without_a_compiler_arguments_are_checked_as_the_compiled_code_would():
    called = compile_options.strict(
        float64(float64[::1], float64, types.int64), lambda x, y, n: x[0] + y + n
    )
    x = np.array([1.0, 2.0])
    assert called(x, 1, 2) == 4.0
    frozen = x.copy()
    frozen.flags.writeable = False
    for bad in ([1.0], x.astype("f4"), x[None], x[::-1], frozen, 1.0):
        with pytest.raises(TypeError, match="taken"):
            called(bad, 1.0, 2)
    with pytest.raises(TypeError, match="taken"):
        called(x, "1", 2)
