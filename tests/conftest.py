"""Drawn examples are the same in every run of `make test`; `make test-all` looks for new ones."""

import os
from importlib import import_module
from pkgutil import iter_modules

# before numpy is imported: threads of BLAS in several processes wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeat")


def pytest_sessionstart():
    """Compile kernels once: of two processes one begins with the first, the other with the last."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    from noisewise import kernels
    from noisewise.kernels.compile_options import entries

    for module in iter_modules(kernels.__path__):
        import_module(f"{kernels.__name__}.{module.name}")
    for each in entries[:: -1 if int(worker[2:]) % 2 else 1]:
        each.compile()
