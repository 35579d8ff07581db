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


EXPLORE = {
    "VW epsilon .05": "--epsilon .05",
    "VW squarecb": "--squarecb --cb_type mtr",
    "VW rnd 3": "--rnd 3 --epsilon .025",
}


def choices(z, y, K):
    """Return what contextual bandits choose, with products of the context and each action."""
    found = {}
    contexts = ["shared |C " + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(row)) for row in z]
    actions = [f"|A a{k}" for k in range(K)]
    for name, options in EXPLORE.items():
        model = Workspace(f"--quiet --cb_explore_adf -q CA {options}")
        rng = np.random.default_rng(0)
        found[name] = np.empty(len(y), dtype=np.int64)
        for t, context in enumerate(contexts):
            p = np.array(model.predict([context, *actions]))
            k = found[name][t] = np.searchsorted(np.cumsum(p), rng.random() * p.sum(), "right")
            told = actions.copy()
            told[k] = f"0:{float(k != y[t])}:{p[k]} {actions[k]}"
            model.learn([context, *told])
        model.finish()
    return found


CONDITIONAL = {
    "VW ccb .05": "--epsilon .05",
    "VW ccb squarecb": "--squarecb",
}


def slates(x, z, clicks, own, top, options):
    """Return what conditional contextual bandits choose, (T, top): costs are -1 for a click."""
    pairs = "-q CA" if own else ""
    model, found = Workspace(f"--quiet --ccb_explore_adf {pairs} {options}"), []
    for t in range(len(x)):
        context = " ".join(f"{i}:{v:.6g}" for i, v in enumerate(z[t])) if own else ""
        lines = [f"ccb shared |C {context}"]
        for k, row in enumerate(x[t]):
            own_features = " ".join(f"{i}:{v:.6g}" for i, v in enumerate(row))
            lines.append(f"ccb action |A {f'a{k}' if own else own_features}")
        slots = [f"|S s{i}" for i in range(top)]
        drawn = [each[0] for each in model.predict([*lines, *(f"ccb slot {s}" for s in slots)])]
        model.learn([
            *lines,
            *(
                f"ccb slot {k}:{-clicks[t, k]:g}:{p:.6g} {slot}"
                for (k, p), slot in zip(drawn, slots, strict=True)
            ),
        ])  # fmt: skip
        found.append([k for k, _ in drawn])
    model.finish()
    return np.array(found)
