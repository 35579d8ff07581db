"""What policies are worth, from a log of another's decisions."""
