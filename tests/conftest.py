"""Drawn examples are the same in every run of `make test`; `make test-all` looks for new ones."""

import os

# before numpy is imported: threads of BLAS in several processes wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeat")
