"""Worlds: features, parameters, noise and labels, drawn first and played later.

Files
    features       where rows come from
    parameters     where the true parameter comes from
    scales         how noise varies from round to round
    draws          noise as it is drawn
    streams        worlds of a generalised linear model: labels, `Stream`
    hard           the worlds of the lower bounds
    adversary      the minimax adversary of online least squares
    bandit_worlds  bandit worlds, those with a name in `WORLDS`
    practical      what practice breaks: late rewards, wrong sds, drift
"""

from .adversary import Adversary as Adversary
from .bandit_worlds import WORLDS as WORLDS
from .bandit_worlds import Corrupted as Corrupted
from .bandit_worlds import FamilyBandit as FamilyBandit
from .bandit_worlds import LogLinearBandit as LogLinearBandit
from .bandit_worlds import NoisyBandit as NoisyBandit
from .draws import ClippedGaussian as ClippedGaussian
from .draws import Gaussian as Gaussian
from .draws import Rademacher as Rademacher
from .draws import Sparse as Sparse
from .draws import StudentT as StudentT
from .draws import Uniform as Uniform
from .features import Ball as Ball
from .features import Correlated as Correlated
from .features import CyclicBasis as CyclicBasis
from .features import Drifting as Drifting
from .features import GaussianRows as GaussianRows
from .features import Given as Given
from .features import Sphere as Sphere
from .hard import Hard as Hard
from .hard import HardPrior as HardPrior
from .parameters import Cube as Cube
from .parameters import OnSphere as OnSphere
from .practical import PRACTICAL as PRACTICAL
from .practical import Deliveries as Deliveries
from .practical import Late as Late
from .practical import PracticalLinear as PracticalLinear
from .practical import PracticalLogistic as PracticalLogistic
from .practical import PracticalWorld as PracticalWorld
from .practical import Variants as Variants
from .scales import Levels as Levels
from .scales import LogUniform as LogUniform
from .scales import MostlyHigh as MostlyHigh
from .scales import geometric as geometric
from .streams import Family as Family
from .streams import Noisy as Noisy
from .streams import Stream as Stream
