"""Without a compiler, or without vector code, the plain twins serve and give the same."""

import inspect
import os
import subprocess
import sys
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from llvmlite import ir
from numba import float64, njit, types

from noisewise.kernels import arms, compile_options, gram, plain, simd, vectors
from noisewise.kernels.layout import padded

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


def unwritable(build, P, x, quads, d):
    raise NotImplementedError("planted")


def unknown_to_the_compiler(build, P, x, quads, d):
    kind = ir.FunctionType(simd.NUMBER, [x.vector])
    build.call(ir.Function(build.module, kind, "llvm.vector.reduce.fadd.v8f64"), [x.get(d)])


@pytest.mark.skipif(not compile_options.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("write", [arms.eight_forms, unwritable, unknown_to_the_compiler])
def test_a_twin_serves_where_vector_code_cant_be_compiled(write):
    def twin(P, x, quads, d):
        """Leave a mark."""
        quads[0] = 7.0

    code = simd.make_intrinsic(twin, lanes=8)(inspect.unwrap(write))
    forms = njit(lambda P, x, quads: code(P, x, quads, np.uint64(1)))
    quads, works = np.zeros(8), write is arms.eight_forms
    with nullcontext() if works else pytest.warns(RuntimeWarning, match="plain loop serves"):
        forms(np.eye(1), np.eye(4, 8), quads)
    assert quads[0] == (1.0 if works else 7.0)


@pytest.mark.skipif(not compile_options.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("module", "name"), [(vectors, "sweep"), (gram, "squares"), (arms, "eight_forms")]
)
def test_twins_equal_vector_code_compiled_or_not(module, name):
    """At whole and broken groups of 4 and 8 numbers; what is written too."""
    twin = getattr(plain, name)
    names = ", ".join(inspect.signature(twin).parameters)
    compiled = njit(eval(f"lambda {names}: code({names})", {"code": getattr(module, name)}))
    for d in SIZES:
        rng, ld = np.random.default_rng(d), padded(d)
        a, columns = memory(rng, d), np.zeros((d + 3, 8))
        columns[:d] = rng.normal(size=(d, 8))
        P = a[8 * ld :].reshape(ld, ld)[:d, :d].copy()
        given = {
            "sweep": ((a,), (d, ld, 8 * ld, 0, ld, 2 * ld), (0.3,)),
            "squares": ((a, rng.normal(size=ld * ld)), (d, ld, 0, 8), ()),
            "eight_forms": ((P, columns, np.ones(8)), (d,), ()),
        }[name]
        results = []
        for function in (compiled, twin, njit(twin)):
            held = [each.copy() for each in given[0]]
            found = function(*held, *map(np.uint64, given[1]), *given[2])
            if name == "squares":  # only the lower triangle counts
                held[1] = np.tril(held[1].reshape(ld, ld)[:d, :d])
            if name == "sweep":  # likewise, by fours
                held[0][8 * ld :] *= np.tril(np.ones((ld, ld))).reshape(-1)
            results.append([*held, np.array(found or 0.0)])
        for one, *others in zip(*results, strict=True):
            for other in others:
                np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


@pytest.mark.skipif(not compile_options.COMPILED, reason="nothing is compiled")
def test_loops_of_a_round_equal_products_of_numpy():
    """In vector code and in plain loops; nothing is read past the end of the last row."""
    code = {"copy_and_dot": vectors.copy_and_dot, "advance": vectors.advance}
    forms = "lambda a, x, d, x0, row, m, u: ", "lambda a, d, u, k, g, x, move, r: "
    calls = "copy_and_dot(a, x, d, x0, row, m, u)", "advance(a, d, u, k, g, x, move, r)"
    compiled = [njit(eval(form + call, code)) for form, call in zip(forms, calls, strict=True)]
    two_ways = compiled, (plain.copy_and_dot, plain.advance)
    square = njit(vectors.square.py_func)
    for (copy_and_dot, advance), d in product(two_ways, SIZES):
        rng, ld = np.random.default_rng(d), padded(d)
        a, x = memory(rng, d), np.append(rng.normal(size=2 * d), [np.nan] * 8)
        m, u, k, g, v = a[: 5 * ld].reshape(5, ld).copy()
        a[5 * ld : 6 * ld] = 0.0
        x0, row = x[d : 2 * d], np.uint64(5 * ld)
        at = np.arange(5, dtype=np.uint64) * np.uint64(ld)
        np.testing.assert_allclose(square(x, d, d), [x0 @ x0], rtol=1e-13)
        found = copy_and_dot(a, x, np.uint64(d), np.uint64(d), row, at[0], at[1])
        np.testing.assert_allclose(found, [x0 @ m[:d], x0 @ u[:d], x0 @ x0], 1e-13, 1e-13)
        assert np.array_equal(a[5 * ld : 6 * ld], np.pad(x0, (0, ld - d)))
        found = advance(a, np.uint64(d), *at[1:], 0.3, -0.7)
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
