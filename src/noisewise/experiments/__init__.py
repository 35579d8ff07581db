"""Studies: one module each with ``cells``, ``data``, ``plot``, ``holds`` and ``numbers``.

Files
    studies/      One module per study: ``cells``, ``data``, ``plot``, ``holds``, ``numbers``
    ingredients/  Players, data and figures of the studies
    runner        a run: what is missing, computed, summarised
    workers       processes that end with their parent
    cluster       batches on Dask
    parts         finished batches and their checksums
    tables        a study's table, written and summarised by chunks
    moments       means over trials that add up
    digest        a digest of rounded tables
    verdicts      claims judged, with what was measured
    checkpoints   when a run is looked at
    plotting      figures that are the same from the same numbers
    gallery       the loop of practical worlds, for a policy or an agent
"""

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
