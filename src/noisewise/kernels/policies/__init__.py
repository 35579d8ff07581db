"""Other policies."""
