"""A Dask cluster of two worker processes, until standard input ends; prints where it is."""

import json
import os
import sys

from distributed import Client, LocalCluster

if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        print(json.dumps({"address": cluster.scheduler_address, "workers": pids}), flush=True)
        sys.stdin.read()
