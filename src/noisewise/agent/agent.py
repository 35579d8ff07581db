"""Agent: a policy with its state, its generator and its pending decisions."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from threading import RLock
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import archive
from ..bandits.arms import candidates, norm_bound, spreads
from ..bandits.self_tuned_ucb import SelfTunedUCB
from ..forking import Inside, register
from ..glm import GLM
from ..inputs import integer, numbers, positive, refuse_class, shown
from ..links import Link
from ..protocols import Array, Policy, trait
from . import agent_state, slates
from .action_features import Arms
from .comparing import Comparing
from .decision_log import CAPACITY, DecisionLog
from .experiment import Experiment
from .explanation import Explanation, explanation, past_explanation, seen
from .health import Health, Watch, health
from .holdout import holdout as holdout_of
from .kinds import is_ftrl_ucb
from .learning import Learning
from .observations import (
    Key,
    batch_keys,
    checked_key,
    limits_of,
    owner,
    refuse_pending,
    refuse_unknown,
)
from .offers import (
    Offer,
    Offers,
    dimension_of,
    listed,
    read_offer,
    read_offers,
)
from .pending import Batching, Pending
from .randomisation import randomisation
from .reasons import means
from .residuals import ResidualScale
from .reward_scale import LEAST_NOISE, stand_ins


class Agent(Learning, Comparing):
    """Chooses among arms, and learns from rewards that come at once, late, in any order or never.

    Threads may share an agent: it locks. A call of `learn` that was interrupted may be repeated
    as it was; what it had learnt is not learnt twice. A process that forks leaves each child an
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
        policy: Policy[Any],
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
        self.policy = policy
        self._clips = isinstance(policy, SelfTunedUCB) and policy.context > 0
        self.state = policy.start(self.dim)
        self.randomisation = randomisation(policy, self.state, randomise, among)
        salt = integer("seed", seed, least=0, most=2**128)
        self.holdout = holdout_of(holdout, baseline, arms, salt)
        usual = CAPACITY if randomise or self.holdout.share else 0
        self.record = DecisionLog(usual if record is None else record)
        self.rng = np.random.default_rng(salt)
        self.capacity, self.dropped = integer("capacity", capacity), 0
        self.watch = Watch()
        self._pending = Pending(policy, self.state)
        self._longest = norm_bound(policy, "feature_bound") or math.inf
        self._lock, self._saving = RLock(), RLock()
        register(self)
        self.rewards = None if rewards is None else limits_of(rewards)
        self.experiment = Experiment.of(
            arms, self.randomisation, self.holdout.share, self.rewards, self.capacity
        )
        self.scale = ResidualScale() if isinstance(sigma, str) and sigma == "estimated" else None
        self.sigma = 1.0 if self.scale else positive("sigma", sigma)
        if self.scale and is_ftrl_ucb(policy) and policy.noise == "estimated":
            raise ValueError(
                f"sigma is 'estimated', but {policy} estimates variances itself; leave sigma out"
            )
        self.unit = None
        if self.scale and means(policy, self.state, np.zeros((1, self.dim))) is None:
            raise ValueError(f"sigma is 'estimated', but {policy} predicts nothing; pass a number")

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
        policy: Policy[Any] = SelfTunedUCB(
            "binomial", keep_rows=keep_rows, forget_after=forget_after
        )
        if guaranteed:
            _refuse_forgetting(forget_after)
            policy = import_module("noisewise.bandits.ftrl_ucb").FTRLUCB(glm, "likelihood")
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
        policy: Policy[Any] = SelfTunedUCB(
            "gaussian", keep_rows=keep_rows, forget_after=forget_after
        )
        size = glm.score_bound
        if guaranteed:
            _refuse_forgetting(forget_after)
            kind, ridge = import_module("noisewise.bandits.ftrl_ucb").FTRLUCB, glm.ridge
            policy = kind(glm, noise_floor=0.05 * size, ridge=ridge / glm.parameter_bound**2)
        agent = cls(
            policy, dim, seed, sigma="estimated" if guaranteed else 1.0, arms=arms,
            randomise=randomise, among=among, record=record, capacity=capacity, baseline=baseline,
            holdout=holdout,
        )  # fmt: skip
        if guaranteed:
            agent.scale = ResidualScale(size * size, floor=LEAST_NOISE * size)
        return agent

    def choose(
        self,
        arms: Any = None,
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
        offer = None
        if self.arms or actions:
            try:
                offer = read_offer(self.arms, arms, actions, self._clips)
            except ValueError:
                self.watch.refused += 1
                raise
        x = offer.x if offer else numbers("arms", arms, check=False)  # the policy looks at values
        sigma = None if sigma is None else spreads(sigma, len(np.atleast_1d(x)))
        who = None if subject is None else self.holdout.subject(subject)
        with self._lock, Inside(self):
            if key is not None:
                refuse_pending([key], self._pending)
            if self.holdout.share:
                self._check_holdout([offer or Offer(x)], [who], top)
            k: Any
            if top is None:
                k, p = self._decide(x, offer, key, sigma, with_probabilities, who)
            else:
                k, p = self._decide_slate(x, offer, key, sigma, top, with_probabilities, who)
        chosen = offer.called(k) if offer else k
        return (chosen, p) if with_probabilities else chosen

    def choose_many(
        self,
        offers: Any,
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
        whose, given = batch_keys(keys, self.capacity, self.dim), listed(offers)
        if len(whose) != len(given):
            raise ValueError(
                f"keys has length {len(whose)}, offers {len(given)}; pass one key each"
            )
        if not whose:
            return []
        read = read_offers(self.arms, given, actions, self._clips, self.dim, self._longest)
        people = [None] * len(whose) if subjects is None else list(subjects)
        if len(people) != len(whose):
            raise ValueError(
                f"subjects has length {len(people)}, keys {len(whose)}; pass one for each"
            )
        who = [self.holdout.subject(each) for each in people]
        with self._lock, Inside(self):
            refuse_pending(whose, self._pending)
            self._check_holdout(read.each(), who, top)
            try:
                chosen = self._decide_many(read, whose, who, top)
            except BaseException:
                for key in whose:
                    self._give_up(key)
                raise
        return read.called(chosen)

    def _decide_many(
        self, offers: Offers, keys: list[Key], subjects: Sequence[int | None], top: int | None
    ) -> list[Any]:
        """Return the arms to play: in one call of the policy, unless Python takes part."""
        if top is not None:
            return [
                self._decide_slate(each.x, each, key, None, top, False, subject)[0]
                for each, key, subject in zip(offers.each(), keys, subjects, strict=True)
            ]
        room = len(self._pending.arms) + len(keys) <= self.capacity
        alone = self.randomisation.share or self.holdout.share or self.record.capacity
        if not room or alone or not isinstance(self.policy, Batching):  # each is looked at
            return [
                self._decide(each.x, each, key, None, False, subject)[0]
                for each, key, subject in zip(offers.each(), keys, subjects, strict=True)
            ]
        self._pending.announce(self.policy, self.state, keys[0])
        chosen, arms = self.policy.select_many(self.state, *offers[:3], self.rng)
        self._pending.add_many(keys, arms)
        played: list[int] = chosen.tolist()
        if self.experiment is not None:
            for each, key, k in zip(offers.each(), keys, played, strict=True):
                self._note_decision(key, each, k, None, None)
        named = offers.called(played) if any(offers.names) else played
        if self.watch.note_many(keys, named):
            *_, last = offers.each()
            self.watch.look(self.policy, self.state, last, played[-1])
        self.watch.forget_all_but(self._pending.arms)
        return played

    def _decide(
        self, x: Array, offer: Offer | None, key: Key, sigma: Array | None, told: bool,
        subject: int | None,
    ) -> tuple[int, Array | None]:  # fmt: skip
        """Return the arm to play, and probabilities where these are recorded or to be ``told``."""
        self._announce(x, key)
        k, p = self.policy.select(self.state, x, self.rng, sigma), None
        preferred = k
        if self.randomisation.share or self.holdout.share or self.record.capacity or told:
            k, p = self.randomisation.draw(self.policy, self.state, x, k, self.rng)
        own, held = p, False
        if self.holdout.share and p is not None:
            place = self.holdout.place(offer or Offer(x))
            k, p, held = self.holdout.draw(k, p, place, subject, self.rng)
        if key is None:
            self.watch.given_up += self._pending.remove(self.policy, self.state, None)
        if len(self._pending.arms) >= self.capacity:
            self._drop()
        self._pending.add(key, x[k].copy())
        self._note(key, x, offer, [k], preferred)
        if p is not None:
            self._write_down([key], offer or Offer(x), [k], [p])
        if self.experiment is not None:
            self._note_decision(key, offer, k, own, subject, held)
        return k, p

    def _note(
        self, key: Key, x: Array, offer: Offer | None, chosen: list[int], preferred: int
    ) -> None:
        """Remember for `health` what was chosen, and what the policy preferred."""
        if self.watch.note(key, offer.called(chosen) if offer else chosen):
            self.watch.look(self.policy, self.state, offer or Offer(x), preferred)
        self.watch.forget_all_but(self._pending.arms)

    def _write_down(self, keys: list[Any], offer: Offer, chosen: list[int], p: Any) -> None:
        """Record what was chosen and why."""
        if self.record.capacity:
            why = seen(self.policy, self.state, offer, self.arms, chosen)
            for each in zip(keys, [offer.kept()] * len(keys), chosen, p, why, strict=True):
                self.record.decide(*each)

    def _decide_slate(
        self,
        x: Array,
        offer: Offer | None,
        key: Key,
        sigma: Array | None,
        top: int,
        told: bool,
        subject: int | None,
    ) -> tuple[list[int], Array | None]:
        """Return several arms to play, best first, and the probabilities in each slot."""
        size = slates.size_of(top, len(x), self.capacity)
        self._announce(x, key)
        best = slates.ranked(self.policy, self.state, x, size, self.rng, sigma)
        preferred, p, held = best[0], None, False
        if self.randomisation.share or self.holdout.share or self.record.capacity or told:
            best, p = slates.draw(self.randomisation, self.policy, self.state, x, best, self.rng)
        if self.holdout.share and p is not None:
            subject = self.holdout.someone(self.rng) if subject is None else subject
            best, p, held = self.holdout.draw_slate(best, p, subject, self.rng)
        if key is None:
            self.watch.given_up += self._pending.remove(self.policy, self.state, None)
        while len(self._pending.arms) + size > self.capacity:
            self._drop()
        called = offer.called(best) if offer else best
        self._pending.add_slate(key, tuple(called), [x[k].copy() for k in best])
        self._note(key, x, offer, best, preferred)
        if p is not None:
            self._write_down([*self._pending.newest], offer or Offer(x), best, p)
        for slot in self._pending.newest if self.experiment is not None else ():
            self._note_decision(slot, None, 0, None, subject, held)
        return best, p

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
        offer, who = read_offer(self.arms, context, [action], self._clips), None
        if subject is not None:
            who = self.holdout.subject(subject)
        with self._lock, Inside(self):
            refuse_pending([key], self._pending)
            self._announce(offer.x, key)
            if len(self._pending.arms) >= self.capacity:
                self._drop()
            self._pending.add(key, offer.x[0].copy())
            self._note(key, offer.x, offer, [0], 0)
            if baseline is not None:
                self._note_decision(key, None, 0, None, who, baseline)
            self._announce(offer.x)

    def forget(self, key: Key) -> None:
        """Give up a pending decision, whose reward will never come."""
        with self._lock, Inside(self):
            refuse_unknown([key], self._pending, "there is nothing to forget")
            self._give_up(key)

    def _announce(self, arms: Array, successor: Key = "") -> None:
        """Let the policy count all pending decisions, unless it would refuse these arms."""
        if self._pending.newest:
            candidates(arms, self.dim, self._longest)
        self._pending.announce(self.policy, self.state, successor)

    def _give_up(self, key: Key) -> None:
        slots = self._pending.slots(key)
        self.watch.given_up += self._pending.remove(self.policy, self.state, key)
        for each in slots:
            self.record.forget(each)
            if self.experiment is not None:
                self.experiment.forget(each)

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
            held = {k: v for k, v in vars(self).items() if k not in ("_lock", "_saving")}
            return copy.deepcopy(held)

    def __setstate__(self, held: dict[str, object]) -> None:
        vars(self).update(held, _lock=RLock(), _saving=RLock())
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
        held = blake2b(repr((self.rng.bit_generator.state, child)).encode(), digest_size=16)
        self.rng = np.random.default_rng(int.from_bytes(held.digest(), "little"))

    def __repr__(self) -> str:
        """Return the policy, and how many rewards were learnt and are pending."""
        learnt: object = trait(self.state, "count", "?")
        return f"<Agent of {self.policy}, {learnt} rewards learnt, {len(self.pending)} pending>"

    @property
    def pending(self) -> tuple[Key, ...]:
        """The keys of the decisions without a reward yet, oldest first."""
        return self._pending.keys

    waiting = pending  # its earlier name

    def is_pending(self, key: Key) -> bool:
        """Return whether the decision under a key has no reward yet."""
        return key in self._pending

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
        offer = read_offer(self.arms, arms, actions, self._clips)
        with self._lock, Inside(self):
            self._announce(offer.x)
            found = explanation(
                self.policy, self.state, offer, self.arms, self.unit is None,
                stand_ins(self.unit, self.scale),
            )  # fmt: skip
            found.advice = self.health().advice
            return found

    def health(self) -> Health:
        """Return what there is to say of decisions and rewards, with advice where that is odd.

        Shares without reward and of one action, the age of the oldest pending decision, restarts,
        contexts refused and clipped, and how many of recent decisions were taken to learn. It
        prints as a list; `explain` shows the advice.
        """
        with self._lock:
            return health(self.watch, self._pending.arms, self.capacity, self.dropped, self.state)

    def _explain_decision(self, key: Key, arms: object, actions: object) -> Explanation:
        if arms is not None or actions is not None:
            raise ValueError("arms or actions were passed with a key; pass one of them")
        with self._lock:
            found = self.record.of(checked_key(key))
        if not found or not found[0].estimates:
            kept = (
                "is not in the record, which holds the last {:,} decisions without forgotten ones"
            )
            why = kept.format(self.record.capacity) if self.record.capacity else "was not recorded"
            raise ValueError(
                f"the decision of key {key!r} {why}; pass a larger record= to the agent beforehand"
            )
        return past_explanation(found, self.arms)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write policy, state, generator, pending decisions and the record to one file.

        Other threads may decide and learn while it is written: the file holds what was there when
        `save` was called. Of two calls the later one writes last.
        """
        with self._saving:
            with self._lock, Inside(self):
                self._pending.announce(self.policy, self.state)
                policy, held = self.policy, agent_state.snapshot(self)
            archive.save(path, policy, held)

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
        agent, pending = agent_state.load(cls, path, link, types)
        agent._pending = pending
        return agent

    def _drop(self) -> None:
        if self.dropped == 0:
            warnings.warn(
                f"more than {self.capacity:,} decisions are pending; the oldest is dropped and "
                "can't learn its reward, and so are later ones: pass a larger capacity, or learn "
                "0 or forget where no reward will come",
                stacklevel=4,
            )
        self.dropped += 1
        self._give_up(owner(next(iter(self._pending.arms))))


def _refuse_forgetting(forget_after: float | str) -> None:
    if forget_after != "auto":
        raise ValueError(
            f"forget_after is {forget_after!r} for a guaranteed agent, whose bounds hold where "
            "nothing changes; leave one of them out"
        )
