"""Groups of decisions compared: the verbs `gain` and `compare`.

Files
    comparing        the verbs
    holdout          who gets the baseline
    experiment       decisions in order, until they count
    group_rewards    sums that do not grow
    subject_rewards  the same of subjects
    difference       the result
"""
