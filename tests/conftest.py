"""Drawn examples are the same in every run of `make test`; `make test-all` looks for new ones."""

import os

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
    from noisewise.kernels.compiling.compile_options import entries
    from noisewise.kernels.compiling.warm_up import import_all

    import_all()
    for each in entries[:: -1 if int(worker[2:]) % 2 else 1]:
        each.compile()
