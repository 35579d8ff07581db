"""Linear rewards: policies on weighted ridge regression."""
