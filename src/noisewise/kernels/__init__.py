"""Compiled steps: arrays and integer link codes in, arrays out. Numba is here alone.

A kernel is called with what it expects, floats in one piece, and reads and writes arrays only. A
choice is an index, or -1 for arms it refuses. Learning a reward is a status: done, not learnt,
something is due, or a set that rounding makes doubtful. The one call where speed forbids more,
`step`, answers with the mean: NaN says not learnt, infinity that something is due and the mean lies
in the header. What is due lies there, too, as one number (``due``), and whether Python is writing
the state (``busy``). Both survive an interrupt, and no row is learnt before what is due is done.

Entries are what Python calls, parts are compiled into them.

Files
    compiling/       How kernels are compiled, and where machine code is kept
    matrices/        Small matrices, vectors and elementary functions
    glm/             Rows of learners with a link: `FTRL`, and `RidgeMixture` on one history
    self_tuning/     Learners that tune themselves: rows of numbers, and of several classes
    self_tuned_ucb/  The default agent's policy, `SelfTunedUCB`
    policies/        Other policies
    named            numbers by name, the same in kernels and in Python
"""

from ..support.supported import check_numba

check_numba()
