"""One file per library. Each offers ``rounds(x, y)``, a function that predicts and learns every row
of a linear stream one by one, ``refit(x, y)``, a function that fits a logistic model once,
``forecasts(x, y, family)``, what its models predict for each row before they learn it, or
``choices(z, y, K)``, which of K classes its bandits choose for each row, told only if it is y."""
