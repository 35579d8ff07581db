"""Rows of learners with a link: `FTRL`, and `RidgeMixture` on one history.

A state of `FTRL` is one array: header, vectors, inverse, a buffer of 512 rows. `FIELDS` in
`layout` names the header's numbers, for kernels (``s.gap``) and for Python (``state.head.gap``).

Files
    layout          what a streaming state knows, by name, and where its vectors lie
    numbers         what learners on one history know, by name, and their vectors
    link_values     built-in links by integer code
    step            a round of anchored Newton, and the loop over rounds
    learner_rounds  a round for each learner of a history
    rounds          what rounds of all learners share
    history_passes  passes over the history, other penalties and units, new inverses
    certificate     how far the estimate is from the minimiser at most
    adaptive_set    scalar formulas of the adaptive confidence set
"""
