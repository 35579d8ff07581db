"""Rows of learners with a link: `FTRL`, and `RidgeMixture` on one history."""
