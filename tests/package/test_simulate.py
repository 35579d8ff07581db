import numpy as np
import pytest
from instances import FTRLS, sphere

import noisewise as nw


@pytest.mark.parametrize("ftrl", FTRLS, ids=lambda r: f"{r.glm.link.name}-{r.tolerance}")
def test_predictions_are_one_step_ahead(ftrl):
    rng = np.random.default_rng(0)
    x, y = sphere(rng, 30, 3, ftrl.glm.feature_bound), rng.normal(size=30)
    w = rng.uniform(0.5, 2, size=30)
    state, means, scores = ftrl.start(3), [], []
    for t in range(30):
        scores.append(x[t] @ state.theta)
        means.append(ftrl.update(state, x[t], y[t], w[t]))
    np.testing.assert_allclose(nw.predictions(ftrl, x, y, w), means, atol=1e-12)
    np.testing.assert_allclose(nw.predictions(ftrl, x, y, w, scores=True), scores, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "weight", "word"),
    [
        (np.ones((0, 2)), [], None, "at least one row"),
        (np.ones((3, 0)), [1.0] * 3, None, "column"),
        (np.ones(3), [1.0] * 3, None, "x"),
        (np.ones((3, 1)), [1.0] * 2, None, "y"),
        (np.ones((3, 1)), [1.0] * 3, [1.0, -1.0, 1.0], "weight"),
        (np.full((3, 1), np.nan), [1.0] * 3, None, "x"),
    ],
)
def test_bad_streams_are_refused(x, y, weight, word):
    with pytest.raises(ValueError, match=word):
        nw.predictions(nw.FTRL(), x, y, weight)
