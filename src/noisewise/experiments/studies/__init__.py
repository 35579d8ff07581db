"""One module per study: ``cells``, ``data``, ``plot``, ``holds``, ``numbers``."""
