"""One Dask worker and two: python -m benchmarks.workers [ROWS [TRIALS]], four minutes when idle.

Times the study figure-3 and a fit to Parquet files with one worker and with two, in turn. A gain is
a ratio of medians: of walls, which need two idle cores, and of the processor time of the busiest
worker, which says what other work on the machine hides. The overhead of a study is the share of
the workers' time, from the first batch given out to the last one back, that was not inside batches.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import noisewise as nw
from noisewise.experiments import runner

from .clock import asked
from .scaling import GLM, RIDGE, write_files
from .spent import Spent

REPEATS = 2
GAIN, OVERHEAD = 1.7, 0.05
results = runner.cluster.results


class Silent(runner.tqdm):
    """A progress bar that is not drawn."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options | {"disable": True})


def study(client, folder, trials):
    """Run figure-3; return what was spent in all, the number of batches, and what was lost."""
    batches, began, ended = [], [], []

    def counted(*words):
        began.append(time.perf_counter())
        for done, count in results(*words):
            batches.append(done.seconds)
            ended.append(time.perf_counter())
            yield done, count

    out, address = folder / "results", client.scheduler.address
    runner.cluster.results = counted
    try:
        with Spent(client) as spent:
            runner.Run("figure-3", out, trials, scheduler=address).execute()
    finally:
        runner.cluster.results = results
        shutil.rmtree(out)
    given = len(spent.workers) * (ended[-1] - began[0])
    return spent, {"batches": len(batches), "overhead": 1 - sum(batches) / given}


def fit(client, folder, _):
    with Spent(client) as spent:
        nw.fit_partitions(GLM, folder / "rows", ridge=RIDGE, target="label")
    return spent, {}


def measured(count, folder, trials):
    """Yield a record of each job with that many workers, which meet a small one first."""
    from distributed import Client, LocalCluster

    options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as machines, Client(machines) as client:
        for job, scale in ((study, trials), (fit, None)):
            job(client, folder, 2 * count)
            spent, more = job(client, folder, scale)
            known = {"wall": spent.wall, "busiest": spent.busiest, "driver": spent.driver}
            yield {"what": job.__name__, "workers": count, **known, "cpu": spent.cpu, **more}


def main():
    given = [int(float(each)) for each in sys.argv[1:]]
    rows, trials = given + [2_000_000, 300][len(given) :]
    folder, runner.tqdm = Path(tempfile.mkdtemp(prefix="noisewise-workers-")), Silent
    try:
        (folder / "rows").mkdir()
        write_files(folder / "rows", rows)
        records = [
            record
            for _ in range(REPEATS)
            for count in (1, 2)
            for record in measured(count, folder, trials)
        ]
    finally:
        shutil.rmtree(folder)
    report(pd.DataFrame(records))


def report(table):
    print(table.round(3).to_string(index=False))
    middle = table.groupby(["what", "workers"]).median()
    for what in ("study", "fit"):
        one, two = middle.loc[what, 1], middle.loc[what, 2]
        for clock in ("wall", "busiest"):
            gain = one[clock] / two[clock]
            print(
                json.dumps({"what": what, "clock": clock, "gain": gain, **asked(gain, least=GAIN)})
            )
    for count in (1, 2):
        share = middle.loc[("study", count), "overhead"]
        print(json.dumps({"workers": count, "overhead": share, **asked(share, most=OVERHEAD)}))
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
