"""Studies: one module each with ``cells``, ``data``, ``plot``, ``holds`` and ``numbers``."""

from typing import Any

Record = dict[str, Any]  # the settings of a cell, a row of a table, a summary

# name -> module, so that listing them imports nothing
EXPERIMENTS = {
    "links": "noisewise.experiments.links",
    "figure-2": "noisewise.experiments.figure2",
    "figure-3": "noisewise.experiments.figure3",
    "bounds": "noisewise.experiments.bounds",
    "coverage": "noisewise.experiments.coverage",
    "lower-bound": "noisewise.experiments.lower_bound",
    "regressors": "noisewise.experiments.regressors",
    "bandits": "noisewise.experiments.bandits",
    "unknown-variance": "noisewise.experiments.unknown_variance",
    "real-data": "noisewise.experiments.real_data",
    "replay": "noisewise.experiments.replay",
    "agents": "noisewise.experiments.agents",
    "classification": "noisewise.experiments.classification",
}
