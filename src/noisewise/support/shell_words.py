"""Sentences of the library as the shell says them: by options, and rows as a file counts them."""

import re

from .printing import clean

PHRASES = (  # what names arguments of Python, and what a user of the shell can do
    (r"""\bpass noise=["'](\w+)["']""", r"fit with --noise \1"),
    (r"""\bPass noise=["'](\w+)["']""", r"Fit with --noise \1"),
    (r"""\bnoise=["'](\w+)["']""", r"--noise \1"),
    (r""", or pass (noise=)?SubGaussian\(sigma\)""", ""),
    (r"""Pass SubGaussian\(sigma\), or wait for""", "Wait for"),
    (r"""; pass trials for a share of more""", ""),
    (r"""\bpass reward_range\b""", "add --reward-range"),
    (r"""\breward_range is \((.*?), (.*?)\)""", r"--reward-range is \1 \2"),
    (r"""^policy is (.*), no action of""", r"--policy is \1, no action of"),
    (r"""\bpass estimate_probability=True\b""", "add --estimate-probability"),
    (r"""\bestimate_probability is True\b""", "--estimate-probability is given"),
    (r"""\bleave estimate_probability out\b""", "leave --estimate-probability out"),
    (r"""; pass actions= if it was never taken""", ""),
)
ROW = re.compile(r"\brow ([0-9]+) \(counted from 0\)")
LEARNT = re.compile(r" at row [0-9]+\b(?! \()")  # of those learnt at once, not of the file
COUNTED = "Rows are counted from 1, without the line of column names."


def in_shell_words(text: object) -> str:
    """Return a sentence that names options in place of arguments, and rows from 1 on.

    >>> in_shell_words('too few rows; pass noise="likelihood" if labels are binomial')
    'too few rows; fit with --noise likelihood if labels are binomial'
    >>> in_shell_words('noise="asymptotic" uses the scatter seen')
    '--noise asymptotic uses the scatter seen'
    >>> in_shell_words("probability is 2 at row 0 (counted from 0)")
    'probability is 2 at row 1'
    """
    said = str(text)
    for python, shell in PHRASES:
        said = re.sub(python, shell, said)
    return ROW.sub(lambda found: f"row {int(found[1]) + 1}", said)


def refusal(error: ValueError) -> str:
    """Return why a command failed, with how rows are counted where it names one."""
    lines = LEARNT.sub("", str(error)).split("\n")
    said = "\n".join(clean(in_shell_words(line)) for line in lines)
    return f"{said}\n{COUNTED}" if re.search(r"\brow [0-9]", said) else said
