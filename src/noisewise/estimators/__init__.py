"""Estimators in the manner of scikit-learn, which need not be installed."""
