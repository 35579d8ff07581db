"""The log: the tables, the one writer, and who numbers rows."""
