"""Speed against peers and against the limit: python -m benchmarks."""
