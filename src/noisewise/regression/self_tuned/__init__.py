"""Linear regression without tuning parameters.

Files
    self_tuned    `SelfTuned`: chooses its own ridge and forgetting
    wide_ridge    its ridges and factors with many features
    batch_linear  fitted to all rows at once
"""
