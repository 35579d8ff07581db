"""Linear regression without tuning parameters."""
