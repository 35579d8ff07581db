"""The theory as functions: radii of confidence ellipsoids."""

from . import radii

__all__ = ["radii"]
