"""Optimism over FTRL: `MORUCB` and `FTRLUCB`."""
