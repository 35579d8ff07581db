"""What the pages on the decision service say is run, in one folder, in turn."""

import json
import re
import shlex
import subprocess

import pytest
from click.testing import CliRunner
from places import ROOT
from serving import Running, wait_until

from noisewise.cli import main
from noisewise.service.engine import Engine
from noisewise.service.log.events import RewardBody
from noisewise.service.log.store import Store
from noisewise.service.web.api import application

HOWTO = ROOT / "docs" / "howto"
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def port(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("noisewise.service.engine.SNAPSHOTS", 1)  # rows, as if a day had passed
    running = Running(application(Engine(Store("sqlite:///noisewise.db")).open()))
    yield running.port
    running.stop()


def run(code, port):
    """Run a block of commands and return what it prints."""
    if not re.search(r"^noisewise ", code, re.MULTILINE):
        code = code.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        done = subprocess.run(["bash", "-ec", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    out = ""
    for line in code.splitlines():
        if line.startswith("noisewise "):
            done = CliRunner().invoke(main, shlex.split(line)[1:])
            assert done.exit_code == 0, (line, done.output)
            out += done.output
        else:
            out += run(line, port)
    return out


def test_commands_of_the_pages(port, tmp_path):
    """Answers have the fields that the page shows, and none is an error."""
    out, said = "", []
    for name in ("service", "operate"):
        for kind, code in BLOCK.findall((HOWTO / f"{name}.md").read_text()):
            if kind == "json":
                shown, answer = json.loads(code), json.loads(out)
                assert shown.keys() == answer.keys()
                assert shown["ranking"][0].keys() == answer["ranking"][0].keys()
            else:
                out = run(code, port)
                said.append(out)
                assert '"error"' not in out, out
        if name == "service":
            wait_until(lambda: '"version":6' in run(ASKED, port), 20)
    assert "204\n" in said
    assert any(each.startswith("nw_") for each in said)
    assert any(": equal" in each for each in said)
    assert (tmp_path / "backup.db").stat().st_size > 0
    assert (tmp_path / "log.csv").read_text().count("\n") == 4


ASKED = "curl -s http://127.0.0.1:8000/v1/loops/shop"


def test_the_reference_has_every_route(monkeypatch):
    """It is made from the routes: each with words, and with the scope that it asks for."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import routes

    known = routes.routes()
    app = application(Engine(Store("sqlite:///noisewise.db")))
    assert len(known) == sum(map(len, app.openapi()["paths"].values())) > 14
    for method, path, words, _, scope, statuses in known:
        assert words, path
        assert statuses, path
        assert scope or path in ("/healthz", "/readyz"), path
        if path.endswith(("decide", "decide:batch")):
            assert (method, scope) == ("POST", "decide")
    text = routes.fields(RewardBody)
    assert "`sigma`" in text
    assert "required" in text
    assert routes.PAGE.read_text() == routes.page(), "run: python docs/routes.py"
