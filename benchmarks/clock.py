"""Interleaved timing: every candidate once a round, CPU time, medians; and targets."""

import time

import numpy as np


def interleave(candidates, repeats=15):
    """Return the median CPU seconds of each function in ``candidates`` (a dict)."""
    spent = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    for _ in range(repeats):
        for name, run in candidates.items():
            began = time.process_time()
            run()
            spent[name].append(time.process_time() - began)
    return {name: float(np.median(times)) for name, times in spent.items()}


def asked(measured, most=None, least=None):
    """Return the columns of a ratio that has a target: what is asked, and whether it holds."""
    if most is not None:
        return {"asked": f"<= {most:g}", "verdict": verdict(measured <= most)}
    return {"asked": f">= {least:g}", "verdict": verdict(measured >= least)}


def verdict(holds):
    """Return the word that the table shows and counts."""
    return "holds" if holds else "MISSED"
