"""The model of each family. Estimators contain no mathematics; they ask a model for it.

Every model has a ``method`` (a spec) and its ``state``, and the same verbs: `start`, `learn` (which
returns what was predicted before), `gather` (rows without predicting them) and `refitted` (all of
them as a batch), `predict`, `interval`, `coefficients`, `coefficient_interval`, `spreads` (of
features), `check` (was an update interrupted half-way?) and `check_noise` (can intervals rest on
that?); ``centre``, ``quality`` and ``caution`` are words for a table. Estimators check rows; an
``offset`` is added to scores.
"""

import math

from ..inputs import flag, one_of, shown
from ..regression.families import BY_LINK, FAMILIES
from .curved_model import CurvedModel
from .linear_model import LinearModel

AnyModel = LinearModel | CurvedModel
KINDS: dict[str, type[AnyModel]] = {
    "gaussian": LinearModel,
    "identity": LinearModel,
    **dict.fromkeys((*FAMILIES, *BY_LINK), CurvedModel),
}


def start_model(
    family: str,
    ridge: str | float,
    forgetting: str | float | tuple[float, ...],
    fit_intercept: bool,
    dim: int,
    nonlinear: bool = False,
) -> AnyModel:
    """Return the model of a family that has learnt nothing."""
    kind = KINDS[one_of("family", family, tuple(KINDS))]
    if flag("nonlinear", nonlinear):
        for name, given, wanted in (
            ("ridge", ridge, "auto"),
            ("fit_intercept", fit_intercept, True),
        ):
            if not isinstance(given, type(wanted)) or given != wanted:
                raise ValueError(
                    f"nonlinear is True and {name} {shown(given)}; functions of the features need "
                    f"{name}={wanted!r}: leave one of the two out"
                )
    return kind.start(family, ridge, forgetting, fit_intercept, dim, nonlinear)


def least_label(family: object) -> float:
    """Return the least label of a family, -infinity where there is none."""
    name = BY_LINK.get(family, family) if isinstance(family, str) else ""
    return FAMILIES[name].label_range[0] if name in FAMILIES else -math.inf
