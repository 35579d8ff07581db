"""The page of the service: what it says, what it escapes, and how it behaves in a browser."""

import base64
import json
import math
import re
import shutil
import time
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urlsplit

import numpy as np
import pytest
from serving import context, rows_of, wait_until
from test_service import Service

from noisewise.service.web import charts, loop_facts, sections, tokens
from noisewise.service.web.page import Page
from noisewise.service.web.recent import WINDOWS, Recent
from noisewise.support.printing import count_of

EVIL = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "a\u202egnissap",
    "x" * 300,
]


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as running:
        yield running


class Seen(HTMLParser):
    """A page as a browser would read it: elements with attributes and text, by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def played(service, count, reward, name="shop", given=context, start=0):
    """Take decisions by the hundred, give each its reward, and wait until all are learnt."""
    for first in range(start, start + count, 100):
        items = [{"context": given(i)} for i in range(first, min(first + 100, start + count))]
        answers = service.ask("POST", f"/v1/loops/{name}/decide:batch", items)[1]
        rewards = [{"event_id": a["event_id"], "value": reward(a["action"])} for a in answers]
        service.ask("POST", f"/v1/loops/{name}/reward:batch", rewards)
        learner = service.engine.find(name)
        rows = len(rows_of(service.database, name))
        wait_until(lambda learner=learner, rows=rows: learner.view.version >= rows, 20)


def page(service, path="/loops/shop"):
    status, text = service.ask("GET", path)
    assert status == 200, text
    return Seen(text)


def test_pages_ask_nobody_else_and_run_nothing_but_their_script(service):
    service.create()
    played(service, 30, lambda action: 1.0)
    for path in ("/", "/loops/shop", "/loops/none", "/static/page.js", "/static/page.css"):
        connection = service.running.client.connection
        connection.request("GET", path)
        answer = connection.getresponse()
        text, policy = answer.read().decode(), answer.headers["content-security-policy"]
        assert answer.status == (404 if path.endswith("none") else 200)
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.findall(r"(?:src|href|action)=\"(?!/|\?|#)", text)
        assert not re.findall(r"@import|url\(|//[a-z]+\.", text)
        for tag, attributes in Seen(text).tags:
            assert not any(name == "style" or name.startswith("on") for name in attributes), tag
            assert tag != "script" or attributes == {"src": "/static/page.js", "defer": None}
    assert service.ask("GET", "/static/../page.py")[0] == 404


def test_sections_come_in_order_and_charts_have_names(service):
    service.create()
    played(service, 200, lambda action: float(action == "offer"))
    found = page(service)
    ids = [a["id"] for tag, a in found.tags if tag == "div" and "data-live" in a]
    assert ids == ["gain", "traffic", "shares", "widths", "effects", "health", "decisions",
                   "latency"]  # fmt: skip
    every = [a["id"] for _, a in found.tags if "id" in a]
    assert len(every) == len(set(every))
    tags = [tag for tag, _ in found.tags]
    for i, (tag, attributes) in enumerate(found.tags):
        if tag == "svg" and attributes.get("role") == "img":
            assert tags[i + 1] == "title"
    assert sum(a.get("class") == "chart" for tag, a in found.tags if tag == "svg") >= 3


@pytest.mark.parametrize(
    ("settings", "reward", "verdict", "words"),
    [
        ({"explore": 0}, {"offer": 1.0}, "better", "more per decision than the baseline 'nothing'"),
        ({"explore": 1}, {"nothing": 1.0}, "worse", "less per decision than the baseline"),
        ({"explore": 1, "baseline": "uniform"}, {}, "undecided", "than actions drawn at random"),
    ],
)
def test_the_sentence_is_right(service, settings, reward, verdict, words):
    """Truths are +1, at most -2/3, and 0.

    The first two are missed with a probability below 1e-6, and with rewards that are all equal no
    interval leaves 0.
    """
    service.create(holdout=0.5, context={}, **settings)
    played(service, 300, lambda action: reward.get(action, 0.0), given=lambda i: {})
    found = loop_facts.gain(service.engine.find("shop"))
    assert found["verdict"] == verdict
    assert words in found["sentence"]
    held = {"better": found["lower"] > 0, "worse": found["upper"] < 0}
    assert held.get(verdict, found["lower"] <= 0 <= found["upper"])
    shown = [charts.number(abs(found[end]), "", found["upper"] - found["lower"])
             for end in ("lower", "upper")]  # fmt: skip
    first, second = shown[::-1] if verdict == "worse" else shown
    between = f"between {first}{' less' * (verdict == 'undecided')} and {second} "
    assert between in found["sentence"]
    text = page(service).text
    assert found["sentence"] in text
    badges = {"better": "Better than the baseline", "worse": "Worse than the baseline",
              "undecided": "Not decided yet"}  # fmt: skip
    assert [each for each in badges.values() if each in text] == [badges[verdict]]


def test_loops_without_decisions_or_holdout_say_so(service):
    assert "There is no loop yet" in page(service, "/").text
    service.create()
    service.create("plain", holdout=0)
    empty, plain = page(service).text, page(service, "/loops/plain").text
    assert "No comparison yet No decisions yet. Ask for the first one:" in empty
    assert f"127.0.0.1:{service.running.port}/v1/loops/shop/decide" in empty
    body = re.search(r"-d '(.*?)'", empty)[1]
    assert service.ask("POST", "/v1/loops/shop/decide", body.encode())[0] == 201
    assert "Not measured This loop has no holdout" in plain
    played(service, 20, lambda action: 1.0, "plain")
    assert "better per decision" not in page(service, "/loops/plain").text
    both = page(service, "/").text
    assert "no holdout to compare with" in both
    assert "No reward of the agent or of the baseline 'nothing' counts yet." in both
    status, text = service.ask("GET", "/loops/%3Cb%3E")
    assert status == 404
    assert "“&lt;b&gt;”" in text


def test_names_are_escaped(service):
    fields = {"<b>x</b>": EVIL[:2], "&lt;": "number", "--><i>": 2}
    service.create(actions=EVIL, baseline=EVIL[0], context=fields, holdout=0.4)

    def given(i):
        return {"<b>x</b>": EVIL[i % 2], "&lt;": float(i), "--><i>": f"</svg>{i % 3}"}

    played(service, 300, lambda action: float(action == EVIL[1]), given=given)
    for path in ("/", "/loops/shop"):
        text = service.ask("GET", path)[1]
        found = Seen(text)
        assert [tag for tag, _ in found.tags].count("script") == 1
        assert not any(tag == "i" or "onerror" in a for tag, a in found.tags)
        assert sum(tag == "img" for tag, _ in found.tags) == 1
        assert "\u202e" not in text
    assert EVIL[0] in found.text
    assert "</svg>1" in found.text


def test_the_page_asks_for_a_token_that_may_read(service):
    service.create()
    with service.engine.store.reading() as connection:
        held = {scope: tokens.create(connection, scope, [scope]) for scope in ("read", "decide")}
    wait_until(lambda: len(service.engine.tokens) == len(held), 20)

    def asked(path, token=None):
        mark = base64.b64encode(f"anyone:{token}".encode()).decode()
        more = {"authorization": f"Basic {mark}"} if token else {}
        return service.ask("GET", path, headers=more)[0]

    for path in ("/", "/loops/shop"):
        assert [asked(path), asked(path, "x"), asked(path, held["decide"])] == [401, 401, 403]
        assert asked(path, held["read"]) == 200
    service.running.client.connection.request("GET", "/")
    answer = service.running.client.connection.getresponse()
    assert answer.headers["www-authenticate"].startswith("Basic ")
    answer.read()


def test_recent_counts_are_those_of_the_log(service):
    """Also in a process that starts later; what is imported counts as no traffic."""
    service.create(reward_wait=0.5)
    played(service, 150, lambda action: float(action == "offer"))
    service.decide(event_id="slow")
    wait_until(lambda: "expire" in [row[1] for row in rows_of(service.database, "shop")], 20)
    assert service.reward("slow", 1)[0] == 202
    rows = rows_of(service.database, "shop")
    service.learnt(len(rows))
    decided = [json.loads(row[4]) for row in rows if row[1] == "decide"]
    late = sum(json.loads(row[4])["late"] for row in rows if row[1] == "reward")
    later = Page(service.engine, service.app.state.meter)
    for found in (Recent(service.engine.find("shop")), later.seen(service.engine.find("shop"))):
        found.refresh(service.engine.store)
        for name in WINDOWS:
            buckets = [bucket for _, bucket in found.window(name, time.time())]
            assert sum(each.decisions for each in buckets) == len(decided)
            assert sum(each.rewards for each in buckets) == 151
            assert sum(each.late for each in buckets) == late >= 1
            actions = sum((each.actions for each in buckets), Counter())
            assert actions == Counter(each["chosen"][0] for each in decided)
            known = [row[3] - row[2] for row in (each["ranking"][0] for each in decided)
                     if row[2] is not None]  # fmt: skip
            assert sum(each.width for each in buckets) == pytest.approx(sum(known))
        assert [*found.events] == [row[2] for row in rows if row[1] == "decide"][-10:]
    told = {each.name: each for each in later.health(found)}
    found = f"{count_of(late, 'reward')} of the last day's 151 came after"
    assert found in told["late rewards"].sentence


class Fixed:
    """A learner as `Recent` needs it, of a loop created at 1004."""

    class loop:
        id, created = 1, 1004.0

    version = 0


def test_windows_begin_with_the_loop_and_end_now():
    recent = Recent(Fixed())
    row = {"chosen": ["a"], "group": "agent", "context": [], "ranking": [["a", 0, 0.2, 0.5, 1]]}
    for at in (1005.0, 1018.0, 1019.0):
        recent._add("decide", f"e{at}", at, json.dumps(row))
    recent._add("decide", "old", 1019.0, json.dumps({**row, "group": "import"}))
    recent._add("reward", "old", 1019.0, json.dumps({"late": False}))
    window = recent.window("10m", 1023.0)
    assert [seconds for seconds, _ in window] == [6, 10, 3]
    assert [bucket.decisions for _, bucket in window] == [1, 2, 0]
    assert window[1][1].width == pytest.approx(0.6)
    assert len(recent.window("10m", 5000.0)) == 60
    assert recent.usual(1023.0) == "10m"
    assert recent.usual(1900.0) == "1h"
    assert recent.usual(1e6) == "30d"
    shown = sections.traffic(window, "10m")
    assert [(each["total"], each["rate"]) for each in shown["totals"]] == [(3, 12.0), (0, 0.0)]


def test_the_curve_keeps_few_points():
    recent = Recent(Fixed())
    for at in range(10_000):
        recent._keep({"lower": 0.1}, float(at))
    times = [at for at, _ in recent.gains]
    assert len(times) <= 240
    assert times[0] == 0.0
    assert len(set(np.diff(times[:-1]))) == 1


def test_a_slow_comparison_is_made_seldom(service, monkeypatch):
    service.create()
    calls = []

    def gain(*_):
        calls.append(ends := time.thread_time() + 0.03)
        while time.thread_time() < ends:
            pass

    recent = Recent(service.engine.find("shop"))
    monkeypatch.setattr(loop_facts, "gain", gain)
    for row in range(4):
        recent.refresh(service.engine.store)
        recent.refresh(service.engine.store)
        assert len(calls) == min(row + 1, 2)
        service.decide()
        service.learnt(row + 1)


def test_effects_are_those_that_explain_gives(service):
    """Once nothing is pending: estimates and intervals in two contexts."""
    service.create(context={"age": "number", "country": ["de", "fr"], "page": 3})
    words = ["home", "cart", "help", "news"]

    def given(i):
        return {**context(i), "page": words[i % 4]}

    played(service, 300, lambda action: float(action == "offer"), given=given)
    learner = service.engine.find("shop")
    learner.publish()
    contexts = [tuple(given(i).values()) for i in range(300)]
    found = loop_facts.effects(learner, contexts, ["offer", "nothing"])
    assert found["context"]["country"] == "de"
    assert found["context"]["age"] == np.median([each[0] for each in contexts])
    for row in found["means"]:
        (mine,) = (e for e in learner.agent.explain(found["context"]) if e.action == row["action"])
        told = [row["estimate"], row["lower"], row["upper"]]
        assert told == pytest.approx([mine.estimate, mine.lower, mine.upper], rel=1e-5)
    row = next(each for each in found["changes"] if each["field"] == "country")
    changed = {**found["context"], "country": row["value"]}
    (mine,) = (e for e in learner.agent.explain(changed) if e.action == row["action"])
    assert row["estimate"] == pytest.approx(mine.estimate, rel=1e-5)
    assert row["change"] == pytest.approx(row["estimate"] - row["usual"])
    sizes = [abs(each["change"]) for each in found["changes"]]
    assert sizes == sorted(sizes, reverse=True)
    assert loop_facts.effects(learner, [], ["offer"]) is None
    (told,) = loop_facts.collisions(learner.loop.settings.arms.context, contexts)
    assert told.name == "collisions of page"
    assert told.value >= 0.5  # four words in three columns


def test_why_names_the_reason():
    ranking = [["a", 0.2, 0.0, 0.9, 1.0], ["b", 0.3, 0.2, 0.4, 0.0], ["c", None, None, None, 0.0]]
    held = {"chosen": ["a"], "group": "agent", "top": None, "ranking": ranking}
    assert loop_facts._why(held) == (
        "'a' was played: estimated 0.2, less than 'b' with 0.3, but uncertain enough to be worth "
        "trying."
    )
    assert "highest estimate, 0.2" in loop_facts._why({**held, "ranking": ranking[:1]})
    tied = [ranking[1], ["d", 0.3, 0.0, 0.9, 0.0]]
    assert "no other had a higher estimate than 0.3" in loop_facts._why({**held, "ranking": tied})
    assert "nothing was known" in loop_facts._why({**held, "ranking": ranking[2:]})
    for group, words in (("explore", "at random"), ("holdout", "baseline"), ("import", "imported")):
        assert words in loop_facts._why({**held, "group": group})
    both = {**held, "chosen": ["a", "b"], "top": 2}
    assert loop_facts._why(both).startswith("'a' and 'b' were played: their sums")


def test_refused_contexts_are_counted(service):
    service.create()
    for _ in range(3):
        service.ask("POST", "/v1/loops/shop/decide", {"context": {"age": 1.0}})
    found = {each.name: each for each in loop_facts.health(service.engine.find("shop"))}
    assert found["refused contexts"].value == 3
    assert "422" in found["refused contexts"].advice


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-0.3, 0.52), (0, 4321), (1e-9, 3e-9), (5, 5), (0, 0), (-1e6, -1)]
)
def test_axes_hold_what_they_show(low, high):
    found = charts.axis(low, high)
    assert found.low <= low + 1e-9 * abs(low)
    assert found.high >= high - 1e-9 * abs(high)
    assert 2 <= len(found.ticks) <= 6
    assert found.y(found.low) > found.y(found.high)
    assert found.x(found.high + 1) == 100


def test_lines_have_gaps_and_bars_their_heights():
    line = charts.Line("s0", [0.0, 0.5, 1.0], [1.0, None, 3.0], [0.0, None, 2.0], [2.0, None, 4.0])
    text = charts.lines("<t>", "&", charts.axis(0, 4), ("then", "now"), [line], ["<n>"])
    assert re.findall(r'class="line s0" d="([^"]*)"', text) == ["M0.0 122.5h0M1000.0 47.5h0"]
    assert "<title>&lt;t&gt;</title><desc>&amp;</desc>" in text
    assert "<title>&lt;n&gt;</title>" in text
    text = charts.stacks("t", "", ("a", "b"), [[0.5, 0.5], [1.0, 0.0]])
    assert [float(h) for h in re.findall(r'height="([\d.]+)"/>', text)] == [75.0, 75.0, 150.0]
    text = charts.interval("t", charts.axis(0, 1), 0.5, -math.pi, 0.75, 0.25)
    assert 'class="span" x1="0.00%" x2="75.00%"' in text


def test_latency_says_what_counts_say():
    said = sections.latency((0.001, 0.01), [50, 48, 2])["sentence"]
    assert said == "Half of 100 requests for decisions took at most 1 ms, 99 % more than 10 ms."
    assert "99 % at most 10 ms" in sections.latency((0.001, 0.01), [0, 3, 0])["sentence"]
    assert sections.latency((0.001,), [0, 0]) is None


TAB, ENTER = "\ue004", "\ue007"
CONTRAST = """
const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
function behind(e) {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
}
let worst = [99, ""];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.checkVisibility() || e.closest("desc, title")) continue;
  const style = getComputedStyle(e);
  const [a, b] = [light(rgb(e.closest("svg") ? style.fill : style.color)), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 200)];
}
return worst;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Debian's Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    where = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if missing := [name for name, path in where.items() if path is None]:
        pytest.skip(f"{missing[0]} is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = where["chromium"]
    for each in ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 f"user-data-dir={tmp_path_factory.mktemp('profile')}"):  # fmt: skip
        options.add_argument(f"--{each}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(where["chromedriver"]))
    yield found
    found.quit()


def wide(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False},
    )


def prefer(browser, **features):
    named = [{"name": f"prefers-{k.replace('_', '-')}", "value": v} for k, v in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})


def text_of(browser, part):
    return browser.execute_script("return document.getElementById(arguments[0]).innerText", part)


def test_the_page_lives_in_a_browser_and_talks_to_nobody_else(service, browser):
    """Loaded with a token, it follows the rewards, until updates are paused or it is read."""
    service.create()
    with service.engine.store.reading() as connection:
        token = tokens.create(connection, "all", [*tokens.SCOPES])
    wait_until(lambda: service.engine.tokens, 20)
    service.running.client.headers["authorization"] = f"Bearer {token}"
    played(service, 100, lambda action: float(action == "offer"))
    host = f"127.0.0.1:{service.running.port}"
    browser.get_log("performance")  # of what the browser does when it starts
    browser.get(f"http://me:{token}@{host}/loops/shop")
    before = text_of(browser, "gain")
    played(service, 100, lambda action: float(action == "offer"), start=100)
    wait_until(lambda: text_of(browser, "gain") != before, 10)
    assert "200 in all" in text_of(browser, "traffic")

    browser.find_element("css selector", "#decisions summary").click()
    opened = text_of(browser, "decisions")
    assert "Probability" in opened
    played(service, 50, lambda action: 1.0, start=200)
    wait_until(lambda: "250 in all" in text_of(browser, "traffic"), 10)
    assert "Probability" in text_of(browser, "decisions")  # stands still while it is read

    browser.find_element("id", "pause").click()
    assert text_of(browser, "status") == "Paused"
    played(service, 50, lambda action: 1.0, start=250)
    time.sleep(3)
    assert "250 in all" in text_of(browser, "traffic")
    browser.find_element("id", "pause").click()
    wait_until(lambda: "300 in all" in text_of(browser, "traffic"), 10)

    browser.get(f"http://{host}/")
    browser.find_element("link text", "shop").click()
    wait_until(lambda: browser.title == "shop · noisewise", 10)
    assert browser.get_log("browser") == []
    sent = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    asked = {each["params"]["request"]["url"] for each in sent
             if each["method"] == "Network.requestWillBeSent"}  # fmt: skip
    hosts = [urlsplit(url).netloc.rpartition("@")[2] for url in asked
             if not url.startswith(("data:", "chrome"))]  # fmt: skip
    assert len(hosts) >= 5  # two pages, script, style sheet and icon
    assert {*hosts} == {host}


def test_every_control_is_reached_by_the_tab_key_and_works_by_enter(service, browser):
    service.create()
    played(service, 100, lambda action: float(action == "offer"))
    browser.get(f"http://127.0.0.1:{service.running.port}/loops/shop")
    controls = "a[href], button:not([hidden]), summary, [tabindex='0']"
    count = len(browser.find_elements("css selector", controls))
    assert count == 3 + 1 + 4 + 10  # above, the list, spans of time, decisions
    mark = "const e = document.activeElement, all = document.querySelectorAll(arguments[0]); "
    mark += "return [[...all].indexOf(e), parseFloat(getComputedStyle(e).outlineWidth)]"
    for place in range(count):
        browser.switch_to.active_element.send_keys(TAB)
        assert browser.execute_script(mark, controls) == [place, 2]
    browser.switch_to.active_element.send_keys(ENTER)
    assert browser.execute_script("return document.activeElement.parentElement.open")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read_in_the_dark(service, browser, scheme):
    """No scrolling to the side at 390 px, contrast of at least 4.5, and nothing that moves."""
    service.create(actions=[*EVIL, "nothing"], context={"x" * 60: ["y" * 60, "z"]})
    service.create("n" * 63, explore=0)

    def given(i):
        return {"x" * 60: ["y" * 60, "z"][i % 2]}

    played(service, 200, lambda action: float(action == EVIL[1]), given=given)
    prefer(browser, color_scheme=scheme, reduced_motion="reduce")
    wide(browser, 390)
    for path in ("/", "/loops/shop", f"/loops/{'n' * 63}", "/loops/none"):
        browser.get(f"http://127.0.0.1:{service.running.port}{path}")
        for each in browser.find_elements("css selector", "summary")[:2]:
            each.click()
        sizes = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        needed, there = browser.execute_script(sizes)
        assert needed <= there <= 390, path
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, where
        assert browser.execute_script("return document.getAnimations().length") == 0
    shade = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", shade)[:3])) < 60) == (scheme == "dark")
