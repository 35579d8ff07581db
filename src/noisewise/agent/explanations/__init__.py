"""Why an agent chose, and whether it is well."""
