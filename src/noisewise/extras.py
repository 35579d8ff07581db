"""How to get what the library alone does not install."""


def install(extra: str) -> str:
    """Return how to install an extra of noisewise, which no package index has.

    >>> install("studies")
    "pip install '.[studies]' in a checkout of noisewise"
    """
    return f"pip install '.[{extra}]' in a checkout of noisewise"
