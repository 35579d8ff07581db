"""Rewards with a link, or of a known family."""
