"""Compiled steps: arrays and integer link codes in, arrays out. Here and in `engine` is numba.

Rows of one learner, for `FTRL`
    layout              what a streaming state knows, by name, and where its vectors lie
    step                one row, and a loop over rows
    rounds              a round of anchored Newton, for the learners of `engine` too
    certificate         how far the estimate is from the minimiser at most
    adaptive_set        scalar formulas of the adaptive confidence set
    links               built-in links by integer code
    vectors             vector loops of a round
    vector_sweep        the sweep over an inverse in vector code
    named               numbers by name, the same in kernels and in Python

Small matrices and elementary functions
    dense               products, Cholesky factor, inverses and their change by rank one
    exponential         exponential and logarithm that loops can vectorise
    ridge_rule          how ridges are chosen and features scaled

Learners that tune themselves
    self_tuned          rounds of `SelfTuned`
    self_tuned_numbers  what it knows, by name
    self_tuned_changes  a feature whose variance has moved
    safe_mixture        predictions combined, fast while that is safe
    safe_mixture_numbers  what a safe mixture knows, by name
    multinomial         rows of several classes

The default agent's policy, `SelfTunedUCB`
    self_tuned_ucb          choice, rewards and pending decisions
    self_tuned_ucb_numbers  what it knows, by name
    self_tuned_learner      a learner, whose past may be discounted
    self_tuned_history      rewards since the last change, and solving for them
    self_tuned_contexts     contexts in units of their own
    self_tuned_prior        how strongly coefficients are drawn to 0 and together
    self_tuned_noise        the size of the noise
    change_evidence         what a reward says of a change of the world
    self_tuned_restart      dropping the rewards of before the change

Other policies
    arms            lengths, quadratic forms and ties of arms; ridge regression
    optimism        choice and update of `MORUCB` and `FTRLUCB`
    policy_params   what they know, by name
    normal          arms without features
    mirror          roots of `GLBOMD`'s exact step

How kernels are compiled
    compile_options  entries that Python calls, and the parts compiled into them
    linked_parts     parts are compiled once, where they are linked
    borrowed         arguments of a step, read where they lie in Python's memory
    cache            machine code on disk, by a digest of the sources
    compile_note     the note on a terminal meanwhile
    warm_up          all kernels ahead
"""

from ..support.supported import check_numba

check_numba()
