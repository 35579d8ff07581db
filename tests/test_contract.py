"""The public checks over every instance, and that the checks can fail."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from instances import LINKS, REGRESSORS

import noisewise as nw
from noisewise import checks
from noisewise.simulate import started


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.parametrize("bound", [0.3, 1.0, 4.0])
def test_every_link_passes(link, bound):
    checks.check_link(link, bound)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_every_regressor_passes(regressor):
    checks.check_regressor(regressor)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_an_empty_block_is_nothing(regressor):
    state = started(regressor, np.ones((1, 2)) / 2)
    before = copy.deepcopy(state)
    assert regressor.update(state, np.empty((0, 2)), np.empty(0)).shape == (0,)
    assert checks._same(before, state)


@pytest.mark.parametrize("thing", [*LINKS, *REGRESSORS], ids=repr)
def test_specs_are_values(thing):
    again = pickle.loads(pickle.dumps(thing))
    assert again == thing
    assert hash(thing) == hash(thing)
    assert type(thing).__name__ in repr(thing)


def _square(z):
    return z + 0.3 * z * z


BROKEN_LINKS = {
    "slope": nw.Link("s", np.tanh, lambda z: 1.01 / np.cosh(z) ** 2),
    "potential": nw.Link("p", np.tanh, lambda z: np.cosh(z) ** -2.0, lambda z: 0.4 * z * z),
    "concordance": nw.Link("c", np.tanh, lambda z: np.cosh(z) ** -2.0, None, 1.0),
    "increasing": nw.Link("i", _square, lambda z: 1 + 0.6 * z),
}


@pytest.mark.parametrize("fault", BROKEN_LINKS)
def test_a_faulty_link_is_found(fault):
    with pytest.raises((AssertionError, ValueError)):
        checks.check_link(BROKEN_LINKS[fault], 2.0)


@dataclasses.dataclass(frozen=True)
class Faulty(nw.FTRL):
    """FTRL with one fault at a time; each must be caught by some check."""

    fault: str = ""

    def predict(self, state, x):
        if self.fault == "predict writes":
            state.folded += 1
        return super().predict(state, x)

    def update(self, state, x, y, weight=1.0):
        if self.fault == "weight ignored":
            weight = np.sign(weight)
        if self.fault == "late mean":
            super().update(state, x, y, weight)
            return self.predict(state, x)
        if self.fault == "changes input" and isinstance(x, np.ndarray):
            x *= 0.5
        if self.fault == "first axis":
            x = np.array(x, dtype=float)
            x[..., 0] *= 0.5
        if self.fault == "touches before checking":
            state.folded += 1
        if self.fault == "block as one" and np.ndim(x) == 2:
            before = self.predict(state, x)
            super().update(state, x, y, weight)
            return before
        return super().update(state, x, y, weight)


@pytest.mark.parametrize(
    "fault",
    [
        "predict writes",
        "weight ignored",
        "late mean",
        "changes input",
        "first axis",
        "touches before checking",
        "block as one",
    ],
)
def test_a_faulty_regressor_is_found(fault):
    with pytest.raises(AssertionError):
        checks.check_regressor(Faulty(nw.GLM(), tolerance=0, fault=fault))


def test_a_faultless_subclass_passes():
    checks.check_regressor(Faulty(nw.GLM(), tolerance=0))
