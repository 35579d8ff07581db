"""FTRL: follow the regularised leader, exactly or with a certified gap.

Three solvers write one state. Identity link: `least_squares`. A built-in link and a tolerance above
0: `anchored`, compiled. A link of your own whose self-concordance is known: `own_link`, the same in
numpy. Else `newton`, passes over all rows after every row. `code_for` in `solver` chooses.

Files
    ftrl            `FTRL`: input checked, a state taken into use, its solver asked
    state           `FTRLState`: one array, and the history in blocks
    solver          what FTRL asks of a solver, and how a state is taken into use
    least_squares   the identity link: recursive, with a Gram matrix
    anchored        anchored Newton: compiled step, passes, certified gap
    own_link        anchored Newton for a user's link, in numpy
    newton          damped Newton over all rows
    sets            confidence sets from the state
    condensed       the few rows that stand for many, and how far that is off
    condensed_sets  confidence sets of states of such rows
    moving          another ridge, other weights or units
    sums            what a pass over rows adds up
    joining         states of sums or of rows learnt at once, and `merge`
"""
