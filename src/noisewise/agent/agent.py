"""Agent: a policy with its state, its generator and its pending decisions."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from threading import RLock
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..bandits.arms import spreads
from ..bandits.self_tuned_ucb import SelfTunedUCB
from ..inputs import integer, probability, refuse_class, shown
from ..model.glm import GLM
from ..model.links import Link
from ..protocols import AnyPolicy, Array, Policy, trait
from ..storage import archive
from ..support.forking import Inside, register
from .actions import slates
from .actions.action_features import Arms
from .actions.offers import Offer, Offers, dimension_of, listed_offers, read_offer, read_offers
from .actions.plays import Play, play_one, play_slate
from .actions.randomisation import randomisation
from .agent_state import load_agent, snapshot
from .comparison import comparing
from .comparison.difference import Difference
from .comparison.experiment import Experiment
from .comparison.holdout import holdout as holdout_of
from .explanations.explanation import Explanation, explanation, past_explanation, seen
from .explanations.health import Health, Watch, health
from .learning import RewardLearner
from .record.decision_log import CAPACITY, DecisionLog
from .record.past_decisions import LearntTable, Names, Reader
from .rewards.observations import (
    Action,
    Key,
    Observations,
    batch_keys,
    checked_key,
    limits_of,
    owner,
    parse,
    refuse_keys_as_features,
    refuse_unknown,
)
from .rewards.residuals import ResidualScale
from .rewards.reward_scale import LEAST_NOISE


class Agent:
    """Chooses among arms, and learns from rewards that come at once, late, in any order or never.

    Threads may share an agent: it locks. A call of `learn` that was interrupted may be repeated
    as it was: what it had learnt is not learnt twice, and a call for several slates may be refused
    then, as having its rewards. A process that forks leaves each child an
    agent of its own, which draws other random numbers; copies draw the same.

    Parameters
    ----------
    policy : Policy
        One of noisewise or your own.
    dim : int
        The number of features of an arm; may be left out where ``arms`` are given.
    seed : int
        Of the generator that policies with random choices draw from.
    sigma : float > 0 or "estimated"
        The standard deviation of a reward learnt without one. "estimated" takes a running sd of
        the residuals (`ResidualScale`); then no guarantee is claimed, and `explain` says so.
    rewards : (float, float), optional
        The range of a reward; one outside is refused.
    capacity : int
        How many decisions may be pending, without a reward yet. One more drops the oldest: counted
        in ``dropped``, with a warning the first time.
    arms : Arms, optional
        Turns contexts into arms: then `choose` takes a context and returns an action's name.
    randomise : float, from 0 to 1
        The share of decisions drawn uniformly at random, so that the `log` can judge other
        policies. Which arms are drawn from depends on ``among``.
    among : {"plausible", "all"}
        "plausible" arms may still be the best one: their index reaches the best estimated mean. All
        others have probability 0, so the log says nothing about policies that play them. "all"
        serves every policy and costs more regret.
    record : int, optional
        How many decisions `log` holds: by default 10,000 where decisions are randomised or held
        out, else 0.
    baseline : action or "uniform", optional
        What would be done without the agent: an action (the index of an arm where there are no
        ``arms``), or an even draw of those on offer. Held-out decisions get it; the agent learns
        from their rewards, too.
    holdout : float, in [0, 1)
        The share of decisions that get the baseline, for `gain`: drawn one by one, or once for each
        ``subject`` of `choose`, by a hash. Agents of equal ``seed`` hold out the same subjects.

    Examples
    --------
    >>> agent = Agent.for_means(dim=2)
    >>> offers = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> first, second = agent.choose_many([offers, offers], keys=["monday", "tuesday"])
    >>> first != second  # a decision whose reward is pending counts
    True
    >>> agent.learn("tuesday", reward=0.2, trials=50)  # ten of fifty visitors
    >>> agent.choose(offers) == first, agent.pending
    (True, ('monday', None))
    >>> agent.learn(offers[1], reward=0.6, trials=20)  # an arm may be given by its features
    """

    def __init__(
        self,
        policy: AnyPolicy,
        dim: int | None = None,
        seed: int = 0,
        *,
        sigma: float | str = 1.0,
        rewards: tuple[float, float] | None = None,
        capacity: int = 10_000,
        arms: Arms | None = None,
        randomise: float = 0.0,
        among: str = "plausible",
        record: int | None = None,
        baseline: object = None,
        holdout: float = 0.0,
    ) -> None:
        refuse_class("policy", policy)
        if not isinstance(policy, Policy):
            raise ValueError(f"policy is {shown(policy)}; pass a policy, such as FTRLUCB()")
        self.arms, self.dim = arms, dimension_of(dim, arms)
        if arms is not None and isinstance(policy, SelfTunedUCB):
            policy = replace(policy, **arms.layout)
        self._learner = RewardLearner(policy, self.dim, sigma)
        self.randomisation = randomisation(policy, self.state, randomise, among)
        salt = integer("seed", seed, least=0, most=2**128)
        self.holdout = holdout_of(holdout, baseline, arms, salt)
        usual = CAPACITY if randomise or self.holdout.share else 0
        self.record = DecisionLog(usual if record is None else record)
        self.rng = np.random.default_rng(salt)
        self.capacity, self.dropped = integer("capacity", capacity), 0
        self.watch = Watch()
        self._unfinished: str | None = None  # a `learn` that was interrupted once all was learnt
        self._lock, self._saving = RLock(), RLock()
        register(self)
        self.rewards = None if rewards is None else limits_of(rewards)
        self.experiment = Experiment.of(
            arms, self.randomisation, self.holdout.share, self.rewards, self.capacity
        )

    @classmethod
    def for_binary_rewards(
        cls,
        dim: int | None = None,
        seed: int = 0,
        *,
        arms: Arms | None = None,
        randomise: float = 0.0,
        among: str = "plausible",
        record: int | None = None,
        capacity: int = 10_000,
        keep_rows: int = 50_000,
        forget_after: float | str = "auto",
        baseline: object = None,
        holdout: float = 0.0,
        guaranteed: bool = False,
        feature_bound: float = 1.0,
        parameter_bound: float = 1.0,
    ) -> Agent:
        """Return an agent for rewards 0 or 1, or shares of them: `SelfTunedUCB` of shares.

        It needs no tuning and takes features of any size, but has no regret proof. With
        ``guaranteed`` the policy is logistic `FTRLUCB`, which explores more and has one, for arms
        of norm at most ``feature_bound`` and a parameter of norm at most ``parameter_bound``; these
        bounds are not used otherwise. At most ``keep_rows`` rewards are kept, older ones as sums.
        By default the agent starts over when it notices that the world has changed. If you know how
        fast it drifts, pass a number as ``forget_after``: older rewards then count less and less,
        so that all together count as that many. `for_means` is the same function: there each reward
        is the mean of ``trials`` rewards 0 or 1, and a share of n trials counts n times. The other
        arguments are those of `Agent`.
        """
        glm = GLM("logistic", feature_bound, parameter_bound)
        policy: AnyPolicy = SelfTunedUCB("binomial", keep_rows=keep_rows, forget_after=forget_after)
        if guaranteed:
            _refuse_forgetting(forget_after)
            policy = import_module("noisewise.bandits.optimistic.ftrl_ucb").FTRLUCB(
                glm, "likelihood"
            )
        return cls(
            policy, dim, seed, rewards=(0.0, 1.0), arms=arms, randomise=randomise, among=among,
            record=record, capacity=capacity, baseline=baseline, holdout=holdout,
        )  # fmt: skip

    for_means = for_binary_rewards

    @classmethod
    def for_continuous_rewards(
        cls,
        dim: int | None = None,
        seed: int = 0,
        *,
        arms: Arms | None = None,
        randomise: float = 0.0,
        among: str = "plausible",
        record: int | None = None,
        capacity: int = 10_000,
        keep_rows: int = 50_000,
        forget_after: float | str = "auto",
        baseline: object = None,
        holdout: float = 0.0,
        guaranteed: bool = False,
        feature_bound: float = 1.0,
        parameter_bound: float = 1.0,
    ) -> Agent:
        """Return an agent for rewards whose mean is linear in the features: `SelfTunedUCB`.

        Units and offsets of rewards do not matter. Pass the standard deviation of each reward to
        `learn` where it is known, if only up to a common factor. Otherwise all rewards count alike,
        and their standard deviation is learnt. No regret bound is proved. With ``guaranteed`` the
        policy is `FTRLUCB`, for sub-Gaussian noise, arms of norm at most ``feature_bound`` and a
        parameter of norm at most ``parameter_bound`` (pass it unless rewards are of size 1). There
        a running standard deviation of residuals replaces one that is not given, and `explain` says
        so. The bounds are not used otherwise. At most ``keep_rows`` rewards are kept, older ones as
        sums; ``forget_after`` is as for `for_binary_rewards`. The other arguments are those of
        `Agent`.
        """
        glm = GLM("identity", feature_bound, parameter_bound)
        policy: AnyPolicy = SelfTunedUCB("gaussian", keep_rows=keep_rows, forget_after=forget_after)
        size = glm.score_bound
        if guaranteed:
            _refuse_forgetting(forget_after)
            kind, ridge = import_module("noisewise.bandits.optimistic.ftrl_ucb").FTRLUCB, glm.ridge
            policy = kind(glm, noise_floor=0.05 * size, ridge=ridge / glm.parameter_bound**2)
        agent = cls(
            policy, dim, seed, sigma="estimated" if guaranteed else 1.0, arms=arms,
            randomise=randomise, among=among, record=record, capacity=capacity, baseline=baseline,
            holdout=holdout,
        )  # fmt: skip
        if guaranteed:
            agent.scale = ResidualScale(size * size, floor=LEAST_NOISE * size)
        return agent

    @property
    def policy(self) -> AnyPolicy:
        """The policy; one for rewards of unknown size may change with them."""
        return self._learner.policy

    @property
    def state(self) -> Any:
        """The state of the policy."""
        return self._learner.state

    @property
    def sigma(self) -> float:
        """The standard deviation of a reward that comes without one."""
        return self._learner.sigma

    @property
    def scale(self) -> ResidualScale | None:
        """The running sd of residuals, where sigma is estimated."""
        return self._learner.scaling.scale

    @scale.setter
    def scale(self, scale: ResidualScale | None) -> None:
        self._learner.scaling = self._learner.scaling._replace(scale=scale)

    @property
    def unit(self) -> float | None:
        """The largest reward, where it stands in for norm bounds."""
        return self._learner.scaling.unit

    @unit.setter
    def unit(self, unit: float | None) -> None:
        self._learner.scaling = self._learner.scaling._replace(unit=unit)

    def choose(
        self,
        arms: object = None,
        key: Key = None,
        sigma: ArrayLike | None = None,
        *,
        actions: Sequence[str] | None = None,
        top: int | None = None,
        with_probabilities: bool = False,
        subject: Key = None,
    ) -> Any:
        """Return the index of the arm to play, and remember its features under ``key``.

        ``arms`` is (K, dim) and may be another set every time; or a context where the agent has
        `Arms` (nothing where there is none), and an action's name is returned, of those in
        ``actions`` or of all. Without a key
        only the last decision is remembered, under None. ``sigma``, (K,), is the standard deviation
        of each arm's reward, for policies that need it. ``with_probabilities`` adds the probability
        of each arm. ``subject`` says who the decision is for, a string or an integer: with a
        holdout all decisions for a subject are held out, or none.

        With ``top`` a list of so many different arms is returned, best first: one decision, whose
        rewards are learnt slot by slot. All arms are evaluated once, by their own rewards: that two
        of them are alike does not matter. Probabilities then have a row per slot.

        What is refused changes nothing: NaN and infinite numbers, arms of norm above 1e20, and,
        with policies that do not find units of contexts themselves as the default does, numbers of
        a context beyond 2^53 (about 9e15).
        """
        key = None if key is None else checked_key(key, self.dim)
        if self.arms is None and arms is None:
            raise ValueError("arms is None; pass the arms to choose from")
        try:
            offer = read_offer(self.arms, arms, actions, self._learner.clips)
        except ValueError:
            self.watch.refused += self.arms is not None
            raise
        sigma = None if sigma is None else spreads(sigma, len(np.atleast_1d(offer.x)))
        who = None if subject is None else self.holdout.subject(subject)
        with self._lock, Inside(self):
            if key is not None:
                self._learner.refuse_pending([key])
            if self.holdout.share:
                self._check_holdout([offer], [who], top)
            chosen, p = self._decide(offer, key, sigma, top, with_probabilities, who)
        return (chosen, p) if with_probabilities else chosen

    def choose_many(
        self,
        offers: object,
        keys: Sequence[Key],
        *,
        actions: Sequence[str] | None = None,
        top: int | None = None,
        subjects: Sequence[Key] | None = None,
    ) -> list[Any]:
        """Return what `choose` returns for each of many offers, in order, each under its key.

        ``offers`` are contexts (a list, or a data frame) where the agent has `Arms`, else matrices
        of arms, a list or (n, K, dim). If any of them is refused, no decision is taken. A policy
        that anticipates, as the default does, counts each decision before it takes the next, so
        that a batch does not repeat one; the default takes all of them in one compiled call, unless
        ``top`` is given.
        ``subjects`` says who each is for.
        """
        names, choices = batch_keys(keys, self.capacity, self.dim), listed_offers(offers)
        if len(names) != len(choices):
            raise ValueError(
                f"keys has length {len(names)}, offers {len(choices)}; pass one key each"
            )
        if not names:
            return []
        learner = self._learner
        read = read_offers(self.arms, choices, actions, learner.clips, self.dim, learner.longest)
        people = [None] * len(names) if subjects is None else list(subjects)
        if len(people) != len(names):
            raise ValueError(
                f"subjects has length {len(people)}, keys {len(names)}; pass one for each"
            )
        who = [self.holdout.subject(each) for each in people]
        with self._lock, Inside(self):
            self._learner.refuse_pending(names)
            if self.holdout.share:
                self._check_holdout(read.each(), who, top)
            try:
                return self._decide_many(read, names, who, top)
            except BaseException:
                for key in names:
                    self._give_up(key)
                raise

    def _check_holdout(
        self, offers: Iterable[Offer], subjects: Sequence[int | None], top: int | None
    ) -> None:
        """Raise where the holdout can't be drawn, or decisions don't belong together."""
        self.holdout.check(offers, top)
        if self.experiment is not None:
            self.experiment.check_subjects(subjects, slates=top is not None)

    def _decide_many(
        self, offers: Offers, keys: list[Key], subjects: Sequence[int | None], top: int | None
    ) -> list[Any]:
        """Return the actions to play: in one call of the policy, unless Python takes part."""
        learner, policy = self._learner, self._learner.batching
        fits = len(learner.pending.arms) + len(keys) <= self.capacity
        if top is not None or not fits or self._draws or policy is None:  # each is looked at
            return [
                self._decide(each, key, None, top, False, subject)[0]
                for each, key, subject in zip(offers.each(), keys, subjects, strict=True)
            ]
        learner.announce(successor=keys[0])
        played, arms = policy.select_many(learner.state, *offers[:3], self.rng)
        learner.add_many(keys, arms)
        chosen: list[int] = played.tolist()
        if self.experiment is not None:
            for each, key, k in zip(offers.each(), keys, chosen, strict=True):
                self.experiment.decide(key, each, k, None, None)
        names = offers.actions(chosen)
        if self.watch.note_many(keys, names):
            *_, last = offers.each()
            self.watch.look(self.policy, learner.state, last, chosen[-1])
        self.watch.forget_all_but(learner.pending.arms)
        return names

    @property
    def _draws(self) -> bool:
        """Whether decisions have probabilities that are drawn from, or recorded."""
        return bool(self.randomisation.share or self.holdout.share or self.record.capacity)

    def _decide(
        self,
        offer: Offer,
        key: Key,
        sigma: Array | None,
        top: int | None,
        with_probabilities: bool,
        subject: int | None,
    ) -> tuple[Action | list[Action], Array | None]:
        """Return what to play, and the probabilities of each slot where these are needed."""
        size = 1 if top is None else slates.size_of(top, len(offer.x), self.capacity)
        learner, drawn = self._learner, with_probabilities or self._draws
        learner.announce(offer.x, key)
        policy, state, rng = learner.scaling.policy, learner.state, self.rng
        chance = self.randomisation, self.holdout, rng
        if top is not None:
            play = play_slate(policy, state, offer, size, sigma, subject, *chance, drawn)
        else:
            k = policy.select(state, offer.x, rng, sigma)
            play = play_one(policy, state, offer, k, subject, *chance) if drawn else Play([k], k)
        chosen, p = play.chosen, play.probabilities
        if key is None:
            self.watch.given_up += len(learner.give_up(None))
        if len(learner.pending.arms) + size > self.capacity:
            self._make_room(size)
        actions = offer.actions(chosen)
        try:
            if top is None:
                learner.add(key, offer.x[chosen[0]].copy())
            else:
                learner.add_slate(key, tuple(actions), [offer.x[k].copy() for k in chosen])
            self._note(key, offer, actions, play.preferred)
            if p is not None or self.experiment is not None:
                self._record_decision(offer, key, play, top is not None, subject)
        except BaseException:
            self._give_up(key)
            raise
        return (actions[0] if top is None else actions), p

    def _record_decision(
        self, offer: Offer, key: Key, play: Play, slate: bool, subject: int | None
    ) -> None:
        """Keep the newest decision in the record, and to compare groups."""
        slots, chosen, p = self._learner.pending.newest, play.chosen, play.probabilities
        if p is not None and self.record.capacity:
            why = seen(self.policy, self.state, offer, self.arms, chosen)
            for slot, k, row, each in zip(slots, chosen, np.atleast_2d(p), why, strict=True):
                self.record.decide(slot, offer.kept(), k, row, each)
        if self.experiment is not None and not slate:
            self.experiment.decide(key, offer, chosen[0], play.own, subject, play.baseline)
        elif self.experiment is not None:
            for slot in slots:
                self.experiment.assign(slot, play.baseline, play.subject)

    def _note(self, key: Key, offer: Offer, actions: list[Action], preferred: int) -> None:
        """Remember for `health` what was chosen, and what the policy preferred."""
        watch = self.watch
        if watch.note(key, actions):
            watch.look(self.policy, self.state, offer, preferred)
        watch.forget_all_but(self._learner.pending.arms)

    def adopt(
        self,
        context: object,
        action: str,
        key: Key,
        *,
        baseline: bool | None = None,
        subject: Key = None,
    ) -> None:
        """Count a decision that was taken elsewhere as pending, for an agent with `Arms`.

        ``baseline`` says whether it was held out, for `gain`, and ``subject`` who it was for; by
        default it does not count there.

        No random number is drawn, and the policy counts the decision at once. So agents that adopt
        the same decisions and learn the same rewards, in the same order, are equal bit for bit.

        >>> agent = Agent.for_binary_rewards(arms=Arms(["ad", "mail"], context=["age"]))
        >>> agent.adopt({"age": 31}, "mail", key="monday")
        >>> agent.learn("monday", reward=1.0)
        """
        key = checked_key(key, self.dim)
        if self.arms is None:
            raise ValueError("the agent has no arms; pass arms=Arms(...) when you create it")
        offer = read_offer(self.arms, context, [action], self._learner.clips)
        who = None if subject is None else self.holdout.subject(subject)
        with self._lock, Inside(self):
            learner = self._learner  # not before: `learn_table` puts another in its place
            learner.refuse_pending([key])
            learner.announce(offer.x, key)
            self._make_room(1)
            try:
                learner.add(key, offer.x[0].copy())
                self._note(key, offer, offer.actions([0]), 0)
                if baseline is not None and self.experiment is not None:
                    self.experiment.assign(key, baseline, who)
                learner.announce(offer.x)
            except BaseException:
                self._give_up(key)
                raise

    def learn(
        self,
        arm_or_key: object,
        reward: ArrayLike,
        sigma: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, once, or of an arm.

        Parameters
        ----------
        arm_or_key : key of a decision (None: the last one without a key), or features (dim,)
            Many at once: a list of keys, or features (n, dim), with ``reward`` of shape (n,). If
            any of them is refused, none is learnt.
        reward : float
            Of several actions, chosen by ``top``: a list of rewards in their order, None where one
            is still to come, or a dictionary by action. Each is learnt as a reward of its own.
        sigma : float >= 0, optional
            The standard deviation of the reward's noise. For binary rewards and shares, whose
            variance follows from their mean, it is relative to that of one trial: 1/sqrt(n) for n,
            so pass ``trials`` there and not a standard error.
        trials : float > 0, optional
            Instead: how many trials the reward is the mean of. One trial has the agent's sigma,
            that is 1 or the estimated one, and n have 1/sqrt(n) of it.
        """
        pending, slots = self._learner.pending, None
        if pending.slates or pending.last[1]:
            again = self._unfinished is not None  # then slots may be learnt that are repeated
            slots = slates.rewards_of(pending, arm_or_key, reward, sigma, trials, again)
        if slots is not None:
            observed = parse(*slots, self.rewards, self.dim)
        else:
            observed = parse(arm_or_key, reward, sigma, trials, self.rewards, self.dim)
        learnt: list[bool] = []  # that it is too late to learn nothing

        def record_rewards() -> None:
            learnt.append(True)
            if self.record.capacity or self.experiment is not None:
                self._record_rewards(observed)

        try:
            with self._lock, Inside(self):
                if observed.single and isinstance(arm_or_key, list | tuple) and not observed.keys:
                    refuse_keys_as_features(arm_or_key, pending.arms)
                if self._unfinished is not None and self._unfinished == observed.content:
                    record_rewards()  # the same call was interrupted after all was learnt
                    self._learner.release(observed)
                else:
                    named = self.arms is not None
                    remedy = "pass a pending key" if named else "pass the features of the arm"
                    refuse_unknown(observed.keys, pending.arms, remedy)
                    self._learner.learn(observed, record_rewards)
                self._unfinished = None
        except BaseException:
            if learnt:
                self._unfinished = observed.content
            raise

    def _record_rewards(self, observed: Observations) -> None:
        """Note that decisions have their rewards; again is the same."""
        if self.record.capacity:
            for key, reward in observed.by_key():
                self.record.record_reward(key, reward)
        if self.experiment is not None:
            for key, reward in observed.by_key():
                self.experiment.record_reward(key, reward)

    def learn_table(
        self,
        table: object,
        *,
        action: str = "action",
        reward: str = "reward",
        context: Sequence[str] | None = None,
        probability: str | None = None,
        sigma: str | None = None,
        trials: str | None = None,
        progress: bool | None = None,
    ) -> LearntTable:
        """Learn a table of past decisions, a row each, in order: a warm start.

        The agent is then what it would be had it taken these decisions itself and learnt each
        reward at once. Rows that can't be used are left out, counted by reason, with a warning. If
        an error or an interrupt comes, nothing was learnt. `compare` and `gain` do not count these
        rows, as the agent did not draw their actions.

        Parameters
        ----------
        table : data frame of pandas or polars, Arrow table, or dictionary of columns
            Such as a `log`.
        action, reward : names of columns
            Actions are those of the agent's `Arms`.
        context : names of columns, optional
            The fields of the context that were declared, in their order; by default the columns of
            their names. Without `Arms`: the features of the arm that was played, by default all
            other columns, or a column ``arms`` with the matrices on offer, as `log` has it.
        probability : name of a column, optional
            With which the action was taken, for agents that keep a record: the last decisions then
            enter it. Of more than two actions a column ``probabilities`` has those of all, as
            in `log`. Estimates do not depend on it.
        sigma, trials : names of columns, optional
            As for `learn`.
        progress : bool, optional
            Show a progress bar; by default on a terminal where tqdm is installed, after a second.

        Returns
        -------
        LearntTable
            How many rows were learnt, and how many were left out for which reason.

        Examples
        --------
        >>> import noisewise as nw
        >>> agent = nw.Agent.for_binary_rewards(arms=nw.Arms(["a", "b"], interactions=None))
        >>> agent.learn_table({"action": ["a", "b", "a", "b"] * 9, "reward": [0, 1, 0, 1] * 9})
        learnt 36 of 36 rows
        >>> agent.choose(None)
        'b'
        """
        if probability is not None and not self.record.capacity:
            raise ValueError(
                f"probability is {probability!r}, but decisions are not recorded; pass "
                "record=10_000 to the agent, or leave probability out: learning does without"
            )
        context = [context] if isinstance(context, str) else context
        names, learner = Names(action, reward, context, probability, sigma, trials), self._learner
        past = Reader(
            table, names, self.arms, self.dim, clip=learner.clips, rewards=self.rewards,
            longest=learner.longest, sigma=learner.sigma,
        )  # fmt: skip
        with self._lock, Inside(self):
            learner = self._learner.after_table(past, progress)
            record, counts = self.record.with_past(past.decisions), past.counts
            if counts.rows and not counts.learnt:
                raise ValueError(f"table has no row that can be learnt: {counts}")
            if counts.left_out:
                warnings.warn(str(counts), stacklevel=2)  # which may raise
            vars(self).update(_learner=learner, record=record)
        return counts

    def forget(self, key: Key) -> None:
        """Give up a pending decision, whose reward will never come."""
        with self._lock, Inside(self):
            refuse_unknown([key], self._learner.pending, "there is nothing to forget")
            self._give_up(key)

    def _give_up(self, key: Key) -> None:
        for slot in self._learner.give_up(key):
            self.watch.given_up += 1
            self.record.forget(slot)
            if self.experiment is not None:
                self.experiment.forget(slot)

    def gain(self, delta: float = 0.05) -> Difference:
        r"""Return how much more the agent earns per decision than its baseline.

        Where the agent was created with ``baseline=`` and ``holdout=``, the holdout says what would
        be earned without it. Its interval holds at all times at once: look as often as you like,
        and stop when you have seen enough. It covers the average gain over the decisions so far,
        whatever the agent has learnt and however rates have moved meanwhile. For rewards with a
        known range it is proved, by betting; for others, and where decisions have a ``subject``, it
        is approximate. With subjects the interval is over subjects.

        Parameters
        ----------
        delta : float, in (0, 1)
            The probability that the interval ever misses.

        Returns
        -------
        Difference
            Prints as a sentence and a table.

        References
        ----------
        Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), Anytime-valid off-policy
        inference for contextual bandits.
        """
        delta, baseline = probability("delta", delta), self.holdout.baseline
        with self._lock, Inside(self):
            return comparing.gain(self.experiment, baseline, self.rewards, delta)

    def compare(
        self, first: object, second: object, *, steady: bool | None = None, delta: float = 0.05
    ) -> Difference:
        r"""Return how much more one action earns per decision than another.

        The interval holds at all times at once, though the agent prefers what it believes in.
        Decide on ``steady`` before you see rewards. Rows of `learn_table` do not count.

        Parameters
        ----------
        first, second : names of actions
        steady : bool, optional
            Whether what each action earns on average stays the same, as it may without a context.
            Then the interval comes from the actions' own rewards; this is the default without a
            context, unless all decisions are drawn at random, as in an A/B test. If not, it comes
            from rewards divided by the probabilities with which actions were drawn, and is of the
            average difference over the decisions so far, whatever contexts and rates do. The agent
            must draw ``among="all"`` for that. It is wider where the agent prefers one action for a
            while and then another.
        delta : float, in (0, 1)
            The probability that the interval ever misses: 0.05 for a 95 % interval. Divide it by
            the number of comparisons if all of them are to hold together.

        Returns
        -------
        Difference
            Prints as a sentence and a table.

        Examples
        --------
        >>> from noisewise import Agent, Arms
        >>> arms = Arms(["A", "B"], interactions=None)
        >>> agent = Agent.for_binary_rewards(arms=arms, randomise=0.2, among="all")
        >>> for visit in range(400):
        ...     shown = agent.choose()
        ...     agent.learn(None, float(shown == "A"))
        >>> agent.compare("A", "B").lower > 0
        True
        """
        delta = probability("delta", delta)
        actions = () if self.arms is None else self.arms.actions
        all_drawn = self.randomisation.share == 1
        with self._lock, Inside(self):
            return comparing.compare(
                self.experiment, actions, first, second, steady, all_drawn, self.rewards, delta
            )

    def log(self, as_frame: bool = False) -> Any:
        """Return the recorded decisions that have their rewards as columns, oldest first.

        ``arms`` or the fields of the context; ``action``, ``reward``, ``probability`` of the action
        and ``probabilities`` of all, by name: a log for `off_policy_value`. Decisions of several
        actions have a row for each, and there is a column ``slot``, counted from 0. ``as_frame``
        returns a data frame of pandas instead of a dictionary of columns.
        """
        with self._lock:
            columns = self.record.columns(self.arms)
        return import_module("pandas").DataFrame(columns) if as_frame else columns

    def __getstate__(self) -> dict[str, object]:
        """Return copies of what an agent is made of, without its locks."""
        with self._lock:
            parts = {k: v for k, v in vars(self).items() if k not in ("_lock", "_saving")}
            return copy.deepcopy(parts)

    def __setstate__(self, parts: dict[str, object]) -> None:
        vars(self).update(parts, _lock=RLock(), _saving=RLock())
        register(self)

    def __copy__(self) -> Agent:
        """Return an agent of its own that goes on in the same way."""
        twin = object.__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin

    def __deepcopy__(self, _: object) -> Agent:
        """Do the same."""
        return self.__copy__()

    def _forked(self, child: int) -> None:
        """Make this the agent of a child: nobody is inside, and its random numbers are its own."""
        self._lock, self._saving = RLock(), RLock()
        seed = blake2b(repr((self.rng.bit_generator.state, child)).encode(), digest_size=16)
        self.rng = np.random.default_rng(int.from_bytes(seed.digest(), "little"))

    def __repr__(self) -> str:
        """Return the policy, and how many rewards were learnt and are pending."""
        learnt: object = trait(self.state, "count", "?")
        return f"<Agent of {self.policy}, {learnt} rewards learnt, {len(self.pending)} pending>"

    @property
    def pending(self) -> tuple[Key, ...]:
        """The keys of the decisions without a reward yet, oldest first."""
        return self._learner.pending.keys

    waiting = pending  # its earlier name

    def is_pending(self, key: Key) -> bool:
        """Return whether the decision under a key has no reward yet."""
        return key in self._learner.pending

    def explain(
        self,
        arms: object = None,
        actions: Sequence[str] | None = None,
        *,
        key: Key | EllipsisType = ...,
    ) -> Explanation:
        """Return why each arm is ranked as it is, a list of `Reason` that prints as a table.

        The table has the estimate of each mean, its interval, the exploration bonus, and the
        largest contributions of features, all on the scale of rewards; by default a context
        contributes relative to the average one. Above it stands in words why the first row is
        chosen, below it what else was learnt. As for `choose`, pass a context where the agent has
        `Arms`: then actions and features have names. Where there is no context pass nothing.

        With ``key`` a decision is explained as it was taken, pending or not, if it is still in the
        record, see ``record`` and `log`.
        """
        if key is not ...:
            return self._explain_decision(key, arms, actions)
        if self.arms is None and arms is None:
            raise ValueError("arms is None; pass the arms to choose from, or key= of a decision")
        offer = read_offer(self.arms, arms, actions, self._learner.clips)
        with self._lock, Inside(self):
            learner = self._learner
            learner.announce(offer.x)
            bounded, caveats = self.unit is None, learner.scaling.caveats
            why = explanation(self.policy, self.state, offer, self.arms, bounded, caveats)
            why.advice = self.health().advice
            return why

    def health(self) -> Health:
        """Return what there is to say of decisions and rewards, with advice where that is odd.

        Shares without reward and of one action, the age of the oldest pending decision, restarts,
        contexts refused and clipped, and how many of recent decisions were taken to learn. It
        prints as a list; `explain` shows the advice.
        """
        with self._lock:
            pending = self._learner.pending.arms
            return health(self.watch, pending, self.capacity, self.dropped, self.state)

    def _explain_decision(self, key: Key, arms: object, actions: object) -> Explanation:
        if arms is not None or actions is not None:
            raise ValueError("arms or actions were passed with a key; pass one of them")
        with self._lock:
            decisions = self.record.of(checked_key(key))
        if not decisions or not decisions[0].estimates:
            why = "was not recorded"
            if self.record.capacity:
                why = (
                    f"is not in the record, which holds the last {self.record.capacity:,} "
                    "decisions without forgotten ones"
                )
            raise ValueError(
                f"the decision of key {key!r} {why}; pass a larger record= to the agent beforehand"
            )
        return past_explanation(decisions, self.arms)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write policy, state, generator, pending decisions and the record to one file.

        Other threads may decide and learn while it is written: the file holds what was there when
        `save` was called. Of two calls the later one writes last.
        """
        with self._saving:
            with self._lock, Inside(self):
                self._learner.announce()
                policy, parts = self.policy, snapshot(self)
            archive.save(path, policy, parts)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        link: Link | None = None,
        types: tuple[type, ...] = (),
    ) -> Agent:
        """Return the agent saved at ``path``; it goes on as if never stopped.

        A link of your own is passed again, and so are dataclasses of your own, as ``types``.
        """
        return load_agent(cls, path, link, types)

    def _make_room(self, size: int) -> None:
        """Drop the oldest decisions, where so many more actions are beyond the capacity."""
        arms = self._learner.pending.arms
        while len(arms) + size > self.capacity:
            if self.dropped == 0:
                warnings.warn(
                    f"more than {self.capacity:,} decisions are pending; the oldest is dropped and "
                    "can't learn its reward, and so are later ones: pass a larger capacity, or "
                    "learn 0 or forget where no reward will come",
                    stacklevel=4,
                )
            self.dropped += 1
            self._give_up(owner(next(iter(arms))))


def _refuse_forgetting(forget_after: float | str) -> None:
    if forget_after != "auto":
        raise ValueError(
            f"forget_after is {forget_after!r} for a guaranteed agent, whose bounds hold where "
            "nothing changes; leave one of them out"
        )
