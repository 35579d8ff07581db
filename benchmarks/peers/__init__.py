"""One file per library. Each offers ``rounds(x, y)``, a function that predicts and learns every row
of a linear stream one by one, or ``refit(x, y)``, a function that fits a logistic model once."""
