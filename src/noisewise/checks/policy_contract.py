"""The checks of a policy: the contract of `noisewise.protocols`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bandits.arms import norm_bound
from ..confidence import Confident, Ellipsoid
from ..model.glm import GLM
from ..protocols import AnyPolicy, Array, Policy, State, trait
from .comparison import Check, close, named, refuses, reloaded, same


def policy_checks(policy: AnyPolicy) -> Iterator[tuple[str, Check]]:
    """Yield the checks of a policy."""
    yield from named(
        _select_writes_nothing,
        _select_is_decided_by_the_generator,
        _inputs_are_neither_kept_nor_changed,
        _permuting_arms_permutes_choices,
        _rotation_leaves_choices_alone,
        _late_rewards_give_the_same_estimate,
        _confidence_sets_are_ellipsoids,
        _saved_state_continues_to_the_same_choices,
        _one_arm_works,
        _one_dimension_works,
        _ties_give_the_lowest_index,
        _a_zero_arm_is_legal,
        _arms_of_single_precision_may_be_of_the_largest_norm,
        _bad_input_leaves_the_state_alone,
        args=(policy,),
    )


def _reach(policy: AnyPolicy) -> float | None:
    """The longest arm the policy takes, where it knows one."""
    return norm_bound(policy, "feature_bound")


def _rows(policy: AnyPolicy, count: int, dim: int = 3, seed: int = 0) -> Array:
    """Arms of different norms, or unit vectors where the policy takes nothing else."""
    rng = np.random.default_rng([20220213, seed])
    if trait(policy, "one_hot", False):
        return np.eye(dim)[rng.integers(dim, size=count)]
    x = rng.normal(size=(count, dim))
    length = (_reach(policy) or 1.0) * rng.uniform(0.3, 1.0, size=(count, 1))
    return np.asarray(x * length / np.linalg.norm(x, axis=1, keepdims=True))


def _played(
    policy: Policy[State], turn: Array | None = None, order: Iterable[int] = range(12)
) -> State:
    """A state that has learnt a dozen rewards."""
    rng = np.random.default_rng(3)
    x, y, s = _rows(policy, 12), rng.uniform(size=12), rng.uniform(0.2, 1.0, size=12)
    state = policy.start(3)
    for i in order:
        policy.update(state, x[i] if turn is None else x[i] @ turn, y[i], s[i])
    return state


def _choices(policy: Policy[State], state: State, turn: Array | None = None) -> list[int]:
    """What the policy chooses from thirty sets of arms."""
    one = np.eye(3) if turn is None else turn
    sets = (_rows(policy, 7, seed=i) @ one for i in range(1, 31))
    return [_select(policy, state, arms, i) for i, arms in enumerate(sets)]


def _select(policy: Policy[State], state: State, arms: NDArray[np.floating], seed: int = 0) -> int:
    sigma = np.full(len(arms), 0.5)
    k = policy.select(state, arms, np.random.default_rng(seed), sigma)
    assert isinstance(k, int), f"select returns {type(k).__name__}, not int"
    assert 0 <= k < len(arms), f"select returns {k}, but there are {len(arms)} arms"
    return k


def _select_writes_nothing(policy: AnyPolicy) -> None:
    state = _played(policy)
    before = copy.deepcopy(state)
    _choices(policy, state)
    assert same(before, state), "select changed the state"


def _select_is_decided_by_the_generator(policy: AnyPolicy) -> None:
    state = _played(policy)
    assert _choices(policy, state) == _choices(policy, state), "equal seeds, unequal choices"
    assert _choices(policy, _played(policy)) == _choices(policy, state), "a replay chooses else"


def _inputs_are_neither_kept_nor_changed(policy: AnyPolicy) -> None:
    state, arms = _played(policy), _rows(policy, 5)
    copies = arms.copy()
    policy.update(state, arms[_select(policy, state, arms)], 0.5, 0.5)
    assert np.array_equal(arms, copies), "select or update changed its input"
    other = copy.deepcopy(state)
    arms[:] = 0.1
    for each in (state, other):
        policy.update(each, copies[0], 0.2, 0.5)
    assert _choices(policy, state) == _choices(policy, other), "update kept its input"


def _permuting_arms_permutes_choices(policy: AnyPolicy) -> None:
    state = _played(policy)
    for i in range(20):
        arms, order = _rows(policy, 7, seed=i), np.random.default_rng(i).permutation(7)
        one, other = arms[_select(policy, state, arms, i)], arms[order]
        same_arm = np.array_equal(one, other[_select(policy, state, other, i)])
        assert same_arm, "permuting the arms changes which one is chosen"


def _rotation_leaves_choices_alone(policy: AnyPolicy) -> None:
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    plain, turned = _choices(policy, _played(policy)), _choices(policy, _played(policy, turn), turn)
    assert plain == turned, "rotating the features changes choices"


def _late_rewards_give_the_same_estimate(policy: AnyPolicy) -> None:
    """Only asked of linear estimates: others are known to a tolerance."""
    if trait(policy, "glm", GLM()).linear:
        orders = range(12), np.random.default_rng(8).permutation(12).tolist()
        usual, late = (trait(_played(policy, order=each), "theta", 0.0) for each in orders)
        close(late, usual, 1e-9, "the order of rewards changes the estimate")


def _confidence_sets_are_ellipsoids(policy: AnyPolicy) -> None:
    if not isinstance(policy, Confident):
        return
    for state in (policy.start(3), _played(policy)):
        sets = policy.confidence(state)
        assert isinstance(sets, tuple), f"confidence returns {type(sets).__name__}, not a tuple"
        for each in sets:
            assert isinstance(each, Ellipsoid), f"confidence holds a {type(each).__name__}"
            finite = np.isfinite(each.upper(np.eye(3))).all() and np.isfinite(each.radius)
            assert finite, "a confidence set has no finite bounds"
            assert each.contains(each.centre), "a confidence set does not hold its centre"


def _saved_state_continues_to_the_same_choices(policy: AnyPolicy) -> None:
    state = _played(policy)
    loaded = reloaded(policy, state)
    for arm in _rows(policy, 4, seed=40):
        for each in (state, loaded):
            policy.update(each, arm, 0.7, 0.4)
    assert same(state, loaded), "a loaded state continues to other numbers"
    assert _choices(policy, state) == _choices(policy, loaded), "a loaded state chooses else"


def _one_arm_works(policy: AnyPolicy) -> None:
    for state in (policy.start(3), _played(policy)):
        assert _select(policy, state, _rows(policy, 1)) == 0, "the only arm is not chosen"


def _one_dimension_works(policy: AnyPolicy) -> None:
    state, arms = policy.start(1), _rows(policy, 4, dim=1)
    for _ in range(6):
        policy.update(state, arms[_select(policy, state, arms)], 0.5, 0.5)


def _ties_give_the_lowest_index(policy: AnyPolicy) -> None:
    for state in (policy.start(3), _played(policy)):
        arms = _rows(policy, 5)
        assert _select(policy, state, np.tile(arms[:1], (4, 1))) == 0, "equal arms: not the first"
        twice = _select(policy, state, np.concatenate([arms, arms]))
        assert twice == _select(policy, state, arms), "of two equal arms not the first is chosen"


def _a_zero_arm_is_legal(policy: AnyPolicy) -> None:
    state = _played(policy)
    policy.update(state, np.zeros(3), 1.0, 0.5)
    _select(policy, state, np.zeros((2, 3)))


def _arms_of_single_precision_may_be_of_the_largest_norm(policy: AnyPolicy) -> None:
    """Scaled in float32 about half of them exceed it by rounding."""
    state, arms = _played(policy), _rows(policy, 40).astype(np.float32)
    arms *= np.float32(_reach(policy) or 1.0) / np.linalg.norm(arms, axis=1, keepdims=True)
    for arm in arms:
        _select(policy, state, arms)
        policy.update(state, arm, 0.5, 0.5)


def _bad_input_leaves_the_state_alone(policy: AnyPolicy) -> None:
    state, arms = _played(policy), _rows(policy, 3)
    row = arms[0]
    updates: list[tuple[ArrayLike, ...]] = [
        (row * np.nan, 1.0, 0.5),
        (row[:2], 1.0, 0.5),
        (arms, 1.0, 0.5),
        (row, np.nan, 0.5),
        (row, np.inf, 0.5),
        (row, [1.0, 2.0], 0.5),
        (row, 1.0, -0.5),
        (row, 1.0, np.nan),
        (row, 1.0, np.inf),
        ("words", 1.0, 0.5),
    ]
    endless = np.full_like(arms, np.inf)
    selects: list[ArrayLike] = [np.empty((0, 3)), arms[:, :2], row, arms * np.nan, endless, "words"]
    if _reach(policy):
        updates.append((9 * row, 1.0, 0.5))
        selects.append(9 * arms)
    if trait(policy, "one_hot", False):
        updates.append((row / 2, 1.0, 0.5))
        selects.append(arms / 2)
    rng, sigma = np.random.default_rng(0), np.full(3, 0.5)
    calls: list[tuple[Callable[..., object], tuple[object, ...]]]
    calls = [(policy.update, case) for case in updates]
    calls += [(policy.select, (case, rng, sigma)) for case in selects]
    if trait(policy, "needs_sigma", False):
        bad = (None, sigma[:2], 0.5, -sigma, sigma * np.nan)
        calls += [(policy.select, (arms, rng, case)) for case in bad]
    for verb, case in calls:
        refuses(verb, state, case)
