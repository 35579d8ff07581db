"""Drawn examples are the same in every run of `make test`; `make test-all` looks for new ones."""

from hypothesis import settings

settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeat")
