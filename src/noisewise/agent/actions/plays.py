"""What is played: the choice of the policy, a random draw, or the baseline."""

from typing import NamedTuple

import numpy as np

from ...protocols import AnyPolicy, Array
from ..comparison.holdout import Holdout
from . import slates
from .offers import Offer
from .randomisation import Randomisation


class Play(NamedTuple):
    """Arms to play, best first, and which one the policy preferred.

    Where these are needed there are probabilities of all arms, for several by slot; before those
    of the holdout they were the agent's ``own``. ``baseline`` says that the holdout decided.
    """

    chosen: list[int]
    preferred: int
    probabilities: Array | None = None
    own: Array | None = None
    baseline: bool = False
    subject: int | None = None


def play_one(
    policy: AnyPolicy,
    state: object,
    offer: Offer,
    preferred: int,
    subject: int | None,
    randomisation: Randomisation,
    holdout: Holdout,
    rng: np.random.Generator,
) -> Play:
    """Return the arm to play where the policy prefers one, and probabilities."""
    k, own = randomisation.draw(policy, state, offer.x, preferred, rng)
    if not holdout.share:
        return Play([k], preferred, own, own)
    k, p, baseline = holdout.draw(k, own, holdout.place(offer), subject, rng)
    return Play([k], preferred, p, own, baseline, subject)


def play_slate(
    policy: AnyPolicy,
    state: object,
    offer: Offer,
    size: int,
    sigma: Array | None,
    subject: int | None,
    randomisation: Randomisation,
    holdout: Holdout,
    rng: np.random.Generator,
    drawn: bool,
) -> Play:
    """Return several arms to play, best first, with probabilities in each slot if ``drawn``."""
    best, p, baseline = slates.ranked(policy, state, offer.x, size, rng, sigma), None, False
    preferred = best[0]
    if drawn:
        best, p = slates.draw(randomisation, policy, state, offer.x, best, rng)
    if holdout.share and p is not None:
        subject = holdout.someone(rng) if subject is None else subject
        best, p, baseline = holdout.draw_slate(best, p, subject, rng)
    return Play(best, preferred, p, None, baseline, subject)
