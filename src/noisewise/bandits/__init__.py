"""Bandit policies: one file per algorithm."""

# name -> module and class, so that listing them imports nothing
POLICIES: dict[str, str] = {}
