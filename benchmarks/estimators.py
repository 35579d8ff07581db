"""What an estimator costs on top of its regressor: a row at a time, and in one block."""

from itertools import cycle

import numpy as np

import noisewise as nw

from .clock import asked, interleave

MOST_PER_CALL = 30.0  # microseconds of a row, d = 20
LEAST_PER_SECOND = {"gaussian": 3e5, "binomial": 5e4}  # rows of a block


def estimators(repeats, largest):
    """OnlineGLM at d = 20: a call for each row, and one call for all of them."""
    rng, n = np.random.default_rng(0), int(min(100_000, largest))
    x = rng.normal(size=(n, 20))
    score = x @ rng.normal(size=20) / 4
    labels = {
        "gaussian": score + rng.normal(size=n),
        "binomial": 1.0 * (rng.random(n) < 1 / (1 + np.exp(-score))),
    }
    for family, least in LEAST_PER_SECOND.items():
        y = labels[family]
        spent = interleave({"block": lambda y=y, f=family: nw.OnlineGLM(f).fit(x, y)}, 3)["block"]
        yield _row(family, "partial_fit, one block", n, spent, asked(n / spent, least=least))
    calls = min(10_000, n)
    model = nw.OnlineGLM().fit(x[:300], labels["gaussian"][:300])
    rows = cycle([(x[i : i + 1], labels["gaussian"][i : i + 1]) for i in range(calls)])

    def one_by_one():
        for _ in range(calls):
            model.partial_fit(*next(rows))

    spent = interleave({"rows": one_by_one}, min(repeats, 5))["rows"]
    verdict = asked(1e6 * spent / calls, most=MOST_PER_CALL)
    yield _row("gaussian", "partial_fit, one row", calls, spent, verdict)


def _row(family, what, rounds, seconds, verdict):
    return {
        "section": "estimators", "stream": family, "dim": 20, "rounds": rounds, "what": what,
        "us": 1e6 * seconds / rounds, **verdict,
    }  # fmt: skip
