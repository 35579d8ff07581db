"""Learners that tune themselves: rows of numbers, and of several classes.

Files
    self_tuned_rounds     rounds of `SelfTuned`
    self_tuned_numbers    what it knows, by name
    self_tuned_changes    a feature whose variance has moved
    ridge_rule            how ridges are chosen and features scaled
    safe_mixture_rounds   predictions combined, fast while that is safe
    safe_mixture_numbers  what a safe mixture knows, by name
    multinomial_rounds    rows of several classes
"""
