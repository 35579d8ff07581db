"""Without a compiler: the loops in plain Python equal the compiled ones, and all works."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import float64, njit, types

from noisewise.kernels import compile_options, gram, plain, vectors
from noisewise.kernels.layout import padded

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


@pytest.mark.skipif(not compile_options.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("module", "name", "arrays", "offsets", "numbers"),
    [
        (vectors, "square", 1, 2, 0),
        (vectors, "copy_and_dot", 2, 5, 0),
        (vectors, "advance", 1, 5, 2),
        (vectors, "sweep", 1, 6, 1),
        (gram, "squares", 2, 4, 0),
    ],
)
def test_plain_loops_equal_the_compiled_ones(module, name, arrays, offsets, numbers):
    """At whole and broken groups of 4 and 8 numbers; what is written too."""
    spelt, names = getattr(module, name), ", ".join("abcdefghi"[: arrays + offsets + numbers])
    compiled = njit(eval(f"lambda {names}: spelt({names})", {"spelt": spelt}))
    for d in (1, 3, 4, 5, 8, 11, 17):
        rng, ld = np.random.default_rng(d), padded(d)
        a = np.zeros(8 * ld + ld * ld)
        vector = a[: 8 * ld].reshape(8, ld)
        vector[:, :d] = rng.normal(size=(8, d))
        P = rng.normal(size=(ld, ld))
        P[d:] = P[:, d:] = 0.0
        a[8 * ld :] = (P + P.T).reshape(-1)
        given = {
            "square": ((rng.normal(size=3 * d),), (d, d)),
            "copy_and_dot": ((a, rng.normal(size=3 * d)), (d, d, 5 * ld, 0, ld)),
            "advance": ((a,), (d, 0, ld, 2 * ld, 3 * ld)),
            "sweep": ((a,), (d, ld, 8 * ld, 0, ld, 2 * ld)),
            "squares": ((a, rng.normal(size=ld * ld)), (d, ld, 0, 8)),
        }[name]
        more = (0.3, -0.7)[:numbers]
        results = []
        for function in (compiled, getattr(plain, name)):
            held = [each.copy() for each in given[0]]
            found = function(*held, *map(np.uint64, given[1]), *more)
            if name == "squares":  # only the lower triangle counts
                held[1] = np.tril(held[1].reshape(ld, ld)[:d, :d])
            if name == "sweep":  # likewise, by eights
                held[0][8 * ld :] *= np.tril(np.ones((ld, ld))).reshape(-1)
            results.append([*held, np.array(found)])
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


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
