"""What is assumed: a generalised linear model, its link, its noise, its labels."""
