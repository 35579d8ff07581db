"""Which Python and which numba noisewise works with, and how to install what it lacks."""

import re
import sysconfig

NUMBA_FIRST, NUMBA_BEYOND = (0, 61), (0, 69)  # tested, and not any more, as in pyproject.toml


def check_python() -> None:
    """Raise on a build of Python without the global interpreter lock."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ImportError(
            "noisewise does not work with a free-threaded build of Python, since states rely on "
            "the global interpreter lock; use the usual build of this version"
        )


def check_numba() -> None:
    """Raise if numba is newer than what was tested: kernels use interfaces that it may change."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("numba")
    except PackageNotFoundError:  # importing it says so
        return
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers and tuple(map(int, numbers.groups())) >= NUMBA_BEYOND:
        raise ImportError(
            f"noisewise is not tested with numba {found}, whose internal interfaces it uses; "
            "install an earlier one: pip install 'numba<{}.{}'".format(*NUMBA_BEYOND)
        )


def install(extra: str) -> str:
    """Return how to install an extra of noisewise, which no package index has.

    >>> install("studies")
    "pip install '.[studies]' in a checkout of noisewise"
    """
    return f"pip install '.[{extra}]' in a checkout of noisewise"
