"""Numbers of a context in any unit and around any value."""

import numpy as np
import pytest

import noisewise as nw


def played(make, unit, centre, seed, rounds):
    """Play an agent whose context has an age in some unit; return its choices and regret."""
    arms = nw.Arms(["a", "b", "c"], context={"age": float, "country": ["de", "fr"]})
    agent, rng = make(arms=arms, seed=seed), np.random.default_rng([3, seed])
    theta, lost, choices = 0.8 * rng.normal(size=(3, 3)), 0.0, []
    for t in range(rounds):
        age, fr = 18 + rng.integers(8 * 62) / 8, rng.integers(2)
        context = {"age": (age - centre) / unit, "country": ["de", "fr"][fr]}
        means = theta @ [1.0, (age - 49) / 16, 2.0 * fr - 1]
        if make == nw.Agent.for_binary_rewards:
            means = 1 / (1 + np.exp(-means))
            rewards = (rng.random() < means).astype(float)
        else:
            rewards = means + rng.normal()
        k = "abc".index(agent.choose(context, key=t))
        agent.learn(t, float(rewards[k]))
        lost += means.max() - means[k]
        choices.append(k)
    return choices, lost


MAKERS = [nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards]


@pytest.mark.parametrize("make", MAKERS)
def test_where_a_number_begins_does_not_matter(make):
    """Eighths around 49 or 0 or 1024: no digit is lost, so the choices are the same."""
    first, *others = (played(make, 16.0, centre, 0, 100)[0] for centre in (49.0, 0.0, -1024.0))
    assert all(other == first for other in others)


@pytest.mark.parametrize("make", MAKERS)
def test_the_unit_of_a_number_hardly_matters(make):
    """Eight worlds: ages in thousandths cost less than twice what standardised ones do.

    Without scales of its own the policy would lose four to twenty times as much.
    """
    standard, odd = (
        sum(played(make, unit, 49.0, seed, 300)[1] for seed in range(8)) for unit in (16.0, 0.001)
    )
    assert odd < 2 * standard


def test_the_origin_is_kept_in_files_and_checked(tmp_path):
    arms = nw.Arms(["a", "b"], context=["age"])
    agent = nw.Agent.for_binary_rewards(arms=arms)
    agent.choose({"age": 40.0}, key=1)
    agent.learn(1, 1.0)
    assert agent.arms.origin == (40.0,)
    agent.save(tmp_path / "agent.npz")
    again = nw.Agent.load(tmp_path / "agent.npz")
    assert again.arms == agent.arms
    assert again.choose({"age": 41.0}) == agent.choose({"age": 41.0})
    with pytest.raises(ValueError, match="origin has 2 numbers"):
        nw.Arms(["a"], context=["age"], origin=(1.0, 2.0))
    with pytest.raises(ValueError, match="origin"):
        nw.Arms(["a"], context=["age"], origin=(float("nan"),))
