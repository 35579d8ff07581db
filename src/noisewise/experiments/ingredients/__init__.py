"""Players, data and figures of the studies."""
