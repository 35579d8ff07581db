"""Groups of decisions compared: the verbs `gain` and `compare`."""
