"""Studies: one module each with ``cells``, ``data``, ``plot``, ``holds`` and ``numbers``."""

from typing import Any

Record = dict[str, Any]  # the settings of a cell, a row of a table, a summary

# name -> module, so that listing them imports nothing
EXPERIMENTS = {
    "links": "noisewise.experiments.studies.links",
    "figure-2": "noisewise.experiments.studies.figure2",
    "figure-3": "noisewise.experiments.studies.figure3",
    "bounds": "noisewise.experiments.studies.bounds",
    "coverage": "noisewise.experiments.studies.coverage",
    "lower-bound": "noisewise.experiments.studies.lower_bound",
    "regressors": "noisewise.experiments.studies.regressors",
    "bandits": "noisewise.experiments.studies.bandits",
    "unknown-variance": "noisewise.experiments.studies.unknown_variance",
    "real-data": "noisewise.experiments.studies.real_data",
    "replay": "noisewise.experiments.studies.replay",
    "agents": "noisewise.experiments.studies.agents",
    "classification": "noisewise.experiments.studies.classification",
}
