"""The demo: a shop of known truth, from the command to what the page says of it."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from serving import Client, Running, answers, free_port, wait_until

from noisewise.service import demo
from noisewise.service.engine import Engine
from noisewise.service.log.store import Store
from noisewise.service.loops import Settings
from noisewise.service.web import loop_facts
from noisewise.service.web.api import application
from noisewise.service.web.limits import Limits


def test_the_command_serves_a_shop_until_it_is_interrupted():
    port = free_port()
    command = [sys.executable, "-c", "from noisewise.cli import main; main()", "demo"]
    process = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert "Starting" in process.stdout.readline()
        assert f"http://127.0.0.1:{port}/loops/shop" in process.stdout.readline()
        wait_until(lambda: answers(port), 60)
        client = Client(f"http://127.0.0.1:{port}")
        wait_until(lambda: client.ask("GET", "/v1/loops/shop")[1]["learnt"] > 100, 60)
        client.connection.close()
        done = subprocess.run([*command, "--port", str(port)], capture_output=True, text=True)
        assert (done.returncode, "in use" in done.stderr) == (2, True)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
        assert (process.returncode, out, errors) == (0, "", "")
    finally:
        process.kill()


def test_the_best_action_depends_on_the_visitor():
    visitor = {"age": 45.0, "country": "de", "returning": "no"}
    assert demo.rate(visitor, "nothing") == pytest.approx(1 / (1 + np.exp(1.8)))
    best = {
        max(demo.SETTINGS["actions"], key=lambda action: demo.rate(each, action))
        for each in (visitor, {**visitor, "age": 70.0}, {**visitor, "age": 70.0, "country": "fr"})
    }
    assert len(best) > 1, "one action is best for everyone, so there is nothing to learn"


@pytest.mark.slow
def test_after_twenty_thousand_decisions_the_truth_is_in_the_interval(tmp_path):
    """The interval of the difference misses the mean of rates with probability 1e-4 at most."""
    engine = Engine(Store(f"sqlite:///{tmp_path}/log.db")).open()
    engine.create(demo.LOOP, Settings(**demo.SETTINGS))
    running = Running(application(engine, Limits(decisions=1e6)))
    visitors = demo.Visitors(f"http://127.0.0.1:{running.port}", seed=1)
    for _ in range(200):
        assert visitors.come(100)
    visitors.client.close()
    learner = engine.find(demo.LOOP)
    wait_until(lambda: learner.version == 40_000, 60)
    truth = np.mean(visitors.more)
    careful, shown = (loop_facts.gain(learner, delta) for delta in (1e-4, 0.05))
    running.stop()
    assert truth > 0.1
    assert sum(shown["counts"]["decisions"]) == 20_000
    assert careful["lower"] < truth < careful["upper"]
    assert shown["lower"] > 0
    assert " more " in shown["sentence"]
    assert "open" not in shown["sentence"]
    print(f"truth {truth:.4f}, 95 % interval {shown['lower']:.4f} to {shown['upper']:.4f}")
