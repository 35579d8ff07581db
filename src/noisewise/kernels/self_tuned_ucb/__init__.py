"""The default agent's policy, `SelfTunedUCB`.

Files
    self_tuned_ucb_rounds   choice, rewards and pending decisions
    self_tuned_ucb_numbers  what it knows, by name
    self_tuned_learner      a learner, whose past may be discounted
    self_tuned_history      rewards since the last change, and solving for them
    self_tuned_contexts     contexts in units of their own
    self_tuned_prior        how strongly coefficients are drawn to 0 and together
    self_tuned_noise        the size of the noise
    change_evidence         what a reward says of a change of the world
    self_tuned_restart      dropping the rewards of before the change
"""
