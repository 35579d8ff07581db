"""The default agent's policy, `SelfTunedUCB`."""
