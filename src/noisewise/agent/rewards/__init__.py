"""Rewards as an agent is given them, until they are learnt."""
