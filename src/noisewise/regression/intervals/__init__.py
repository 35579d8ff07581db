"""Intervals of coefficients, means and new labels.

Files
    fixed_row            of the mean at a row fixed in advance
    linear_intervals     around weighted least squares
    span                 coordinates of what rows span, and columns that say the same
    curved_intervals     of shares and counts
    class_intervals      of class probabilities
    maximum_likelihood   the fit without a ridge
    unregularised        what that fit is: estimates, standard errors
    dispersion           how far labels scatter around it
    quadratic_intervals  what that means for a row
    new_labels           what it means for a label
    candidate_mixture    how far the loss of the truth is above its minimum
    level_sets           what that means for a row
"""
