"""The estimators behind the interfaces of other libraries, which are imported on first use.

Files
    river  the estimators as river's models
"""

from ..support.lazy import importer, listed

_NAMES = listed(__spec__)
__all__ = [*_NAMES]
__getattr__ = importer(__name__, _NAMES)
