"""Decisions written down, and past ones read."""
