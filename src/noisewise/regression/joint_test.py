"""JointTest: are several coefficients, together, what a hypothesis says?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class JointTest:
    """The test that several coefficients have given values.

    Attributes
    ----------
    statistic : float
        F, nan where rows and labels tell nothing; ``note`` says why. With noise of known sd it is
        chi-squared over its degrees of freedom.
    count : int
    freedom : float
        Degrees of freedom of F: ``count`` and these, infinite where the noise is known.
    p_value : float
        If ``anytime``, with probability 1 - p it is never below p, however often you look; else at
        one sample size fixed in advance.
    evidence : float
        How many times better a mixture of alternatives explains the labels: an e-value, whose mean
        is at most 1 at any stopping time. 1/p_value if ``anytime`` and above 1.
    anytime : bool
    rests_on, note : str
    """

    statistic: float
    count: int
    freedom: float
    p_value: float
    evidence: float
    anytime: bool
    rests_on: str
    note: str
