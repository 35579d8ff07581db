"""What scikit-learn gives to an estimator, and a stand-in where it is not installed."""

import inspect

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning, NotFittedError
except ModuleNotFoundError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """The estimator has not learnt anything."""

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """Labels were given in a shape that had to be changed."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Marks a regressor."""

    class ClassifierMixin:  # type: ignore[no-redef]
        """Marks a classifier."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, object]:
            """Return the parameters of the constructor."""
            return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters}

        def set_params(self, **params: object) -> "BaseEstimator":
            """Set parameters by name; they take effect with the next `fit`."""
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(
                        f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                        f"{list(known)!r}."
                    )
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            usual = inspect.signature(type(self)).parameters
            held = self.get_params().items()
            changed = [f"{k}={v!r}" for k, v in held if repr(v) != repr(usual[k].default)]
            return f"{type(self).__name__}({', '.join(changed)})"


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DataConversionWarning",
    "NotFittedError",
    "RegressorMixin",
]
