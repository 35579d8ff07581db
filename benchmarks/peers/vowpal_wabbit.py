"""vowpalwabbit's default learner (not exact), from Python, examples parsed from text."""

import numpy as np
from vowpalwabbit import Workspace


def rounds(x, y):
    texts = [
        f"{label} | " + " ".join(f"{i}:{v}" for i, v in enumerate(row))
        for row, label in zip(x.tolist(), y, strict=True)
    ]

    def play():
        model = Workspace("--quiet --noconstant")
        for text in texts:
            example = model.example(text)
            model.predict(example)
            model.learn(example)
            model.finish_example(example)
        model.finish()

    return play


OPTIONS = {
    "gaussian": "",
    "binomial": " --loss_function logistic --link logistic",
    "poisson": " --loss_function poisson --link poisson",
}


def forecasts(x, y, family):
    """Return the means predicted one step ahead."""
    model, means = Workspace("--quiet" + OPTIONS[family]), np.empty(len(y))
    labels = 2 * y - 1 if family == "binomial" else y
    for t, row in enumerate(x.tolist()):
        text = f"{labels[t]} | " + " ".join(f"{i}:{v}" for i, v in enumerate(row))
        example = model.example(text)
        means[t] = model.predict(example)
        model.learn(example)
        model.finish_example(example)
    model.finish()
    return {"vowpalwabbit": means}
