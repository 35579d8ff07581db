"""The types of arrays that everything passes on, and the largest number in them."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FloatOrArray = float | Array  # for one row, for many

# of labels, and of weights times labels or squared lengths: beyond it products would overflow
LARGEST = 1e100
