"""Small matrices, vectors and elementary functions."""
