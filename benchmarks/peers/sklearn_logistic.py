"""scikit-learn LogisticRegression, its fastest solver here, tolerance as its default."""

from sklearn.linear_model import LogisticRegression


def refit(x, y):
    model = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky")
    return lambda: model.fit(x, y)
