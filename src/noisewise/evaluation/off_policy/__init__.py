"""What policies are worth, from a log of another's decisions.

Files
    off_policy      `off_policy_value`
    decision_table  logs, read and checked
    logging_policy  probabilities that were not recorded, estimated
    target_policy   what a policy would have done
    reward_model    rewards predicted before they are seen
    estimates       estimators and intervals
    reliability     whether means are about normal
    differences     one policy against another
    value_table     the result
"""
