"""vowpalwabbit's default learner (not exact), from Python, examples parsed from text."""

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
