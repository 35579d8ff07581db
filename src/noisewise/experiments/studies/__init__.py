"""One module per study: ``cells``, ``data``, ``plot``, ``holds``, ``numbers``.

Files
    links             FTRL under every link
    figure2           stochastic labels against adversarial ones
    figure3           regret against dimension, horizon and variance
    bounds            regret between lower and upper bounds; which lemmas fail
    coverage          how often confidence sets miss
    lower_bound       what no method can beat
    regressors        every regressor beside its guarantee
    bandits           every policy on the same worlds
    unknown_variance  variances estimated from rewards
    real_data         shares of pupils in school districts
    replay            policies judged by logs
    agents            the default agent in practical worlds
    classification    data with labels, played as bandits
"""
