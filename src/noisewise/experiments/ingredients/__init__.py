"""Players, data and figures of the studies.

Files
    regressor_lineup    streams, players and guarantees of `regressors`
    bandit_lineup       who plays where in `bandits`, and why others do not
    agent_lineup        who plays in `agents` and `classification`
    fixed_settings      settings of other packages, as policies
    lemma_checks        which lemmas fail on a path, for `bounds`
    datasets            data of installed packages
    labelled_data       labelled data as bandits
    schools             what `real-data` does with the districts
    offline_evaluation  a policy judged by a log, for `replay`
    dot_rows            figures of a row per world and a dot per player
"""
