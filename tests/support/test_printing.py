"""What people see when they type a name or ask for help: one line, and short signatures."""

import inspect
from types import ModuleType

import numpy as np
import pytest
from instances import ENVIRONMENTS, POLICIES, REGRESSORS

import noisewise as nw
from noisewise.simulate import started
from noisewise.support.printing import LONGEST

LONGEST_SIGNATURE = 420, 35  # characters, and per parameter beyond twelve


def check_line(thing):
    text = repr(thing)
    assert text.startswith(f"{type(thing).__name__}(")
    assert "\n" not in text
    assert len(text) <= LONGEST


@pytest.mark.parametrize("dim", [1, 50])
def test_states_print_on_one_line(dim):
    x, rng = np.full((3, dim), 0.1), np.random.default_rng(0)
    found = set()
    for spec in [*REGRESSORS, *POLICIES]:
        state = started(spec, x) if hasattr(spec, "predict") else spec.start(dim)
        check_line(state)
        parts = vars(state).values()
        for each in [*parts, *(e for part in parts if isinstance(part, list) for e in part)]:
            if type(each).__module__.startswith("noisewise.") and "kernels" not in repr(type(each)):
                assert "\n" not in repr(each)
        found.add(type(state).__name__)
    assert len(found) >= 24, sorted(found)
    model = nw.OnlineGLM("binomial").fit(x, [0.0, 1.0, 1.0])
    for each in (model._learnt, model._model, nw.Ellipsoid(np.zeros(dim), np.eye(dim), 1.0)):
        check_line(each)
    for world in ENVIRONMENTS:
        bandit = "rounds" not in inspect.signature(world.draw).parameters
        check_line(world.draw(rng) if bandit else world.draw(rng, 20, dim))


def test_a_state_says_how_much_it_has_learnt():
    ftrl = nw.FTRL(ridge=0.5)
    state = ftrl.start(dim=2)
    ftrl.update(state, [[0.3, 0.4], [0.1, 0.2]], [1.0, 0.5])
    assert repr(state).startswith("FTRLState(dim=2, count=2, ridge=0.5, gap=")


def test_an_interval_of_many_rows_is_cut_short():
    found = nw.OnlineGLM().fit(np.eye(3), [1.0, 2.0, 4.0]).predict_interval(np.ones((500, 3)))
    assert "\n" not in repr(found)
    assert len(repr(found)) < 300


def public():
    """Every public function, class and method, by name."""
    for name in dir(nw):
        thing = getattr(nw, name)
        if isinstance(thing, ModuleType):
            for part, each in inspect.getmembers(thing, callable):
                if not part.startswith("_") and each.__module__.startswith("noisewise."):
                    yield f"{name}.{part}", each
        elif callable(thing):
            yield name, thing
            if isinstance(thing, type):
                for part, each in inspect.getmembers(thing, callable):
                    if not part.startswith("_"):
                        yield f"{name}.{part}", each


def test_signatures_in_help_are_short():
    named = dict(public())
    assert len(named) > 350
    for name, thing in named.items():
        signature = inspect.signature(thing)
        text, more = str(signature), max(len(signature.parameters) - 12, 0)
        assert len(text) <= LONGEST_SIGNATURE[0] + more * LONGEST_SIGNATURE[1], (name, text)
        assert "_SupportsArray" not in text, (name, text)
        assert "**" not in text or not name.startswith("Agent."), (name, text)
