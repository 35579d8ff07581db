"""Studies: one module each with ``cells``, ``data``, ``plot``, ``holds`` and ``numbers``."""

# name -> module, so that listing them imports nothing
EXPERIMENTS = {"links": "noisewise.experiments.links"}
