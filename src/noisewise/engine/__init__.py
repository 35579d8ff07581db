"""The compiled learner of rows with a curved link: several on one history, which is kept once.

Files
    numbers   what learners know, by name, and their vectors
    learner   a round of anchored Newton, for each learner of a history
    passes    passes over the history, other penalties and units, new inverses
    matrices  inverses by blocks, and bounds of their eigenvalues
"""
