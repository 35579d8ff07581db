"""FTRL: follow the regularised leader, exactly or with a certified gap."""
