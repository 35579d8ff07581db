# Public names of the adapters.
from .river import RiverClassifier as RiverClassifier
from .river import RiverRegressor as RiverRegressor
