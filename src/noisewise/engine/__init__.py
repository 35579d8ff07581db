"""The compiled learner of rows with a curved link: one, or several on one history.

Files
    numbers   what learners know, by name, and their vectors
    learner   a loop over rows, for each learner of a history
    passes    passes over the history, other penalties and units, new inverses
    matrices  inverses by blocks, and bounds of their eigenvalues
"""
