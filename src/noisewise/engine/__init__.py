"""The compiled learner of rows with a curved link: several on one history, which is kept once."""
