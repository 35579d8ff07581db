"""Other policies.

Files
    arm_forms      lengths, quadratic forms and ties of arms; ridge regression
    optimism       choice and update of `MORUCB` and `FTRLUCB`
    policy_params  what they know, by name
    normal_rounds  arms without features
    mirror         roots of `GLBOMD`'s exact step
"""
