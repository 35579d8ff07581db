"""Agent: a policy with state, generator and pending decisions; what reads and scales rewards."""
