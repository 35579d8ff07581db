"""Shares, counts, signs and classes: mixtures over ridges, nothing to tune.

Files
    ridge_mixture        `RidgeMixture`
    ridge_mixture_state  its learners with their weights
    wide_mixture         how it sees many columns
    row_space            coordinates of the span of rows, for all ridges
    batch_mixture        fitted to all rows at once
    stream_replay        the rows it keeps, and the loss of a stream over them
    multinomial          `MultinomialMixture`: several classes
    multinomial_state    its experts with their losses, and their rows
    multinomial_newton   minimisers of the multinomial loss
    batch_multinomial    fitted to all rows at once
"""
