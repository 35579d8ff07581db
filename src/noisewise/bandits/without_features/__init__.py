"""Arms without features, and no learning at all."""
