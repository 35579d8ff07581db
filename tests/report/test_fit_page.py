"""What the page of a fit says, against the numbers it is computed from."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from noisewise.report import fit_pictures, sentences
from noisewise.report.fit import page
from noisewise.tabular.choosing import Options
from noisewise.tabular.diagnostics import KeptRows, Residuals
from noisewise.tabular.fitting import fit


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def world(n, seed=0, family="gaussian", dispersion=0.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, n),
            "age": rng.normal(30, 9, n),
            "city": rng.choice(["Roma", "Pisa"], n, p=[0.7, 0.3]),
        }
    )
    score = (frame["area"] - 80) / 20 - 0.5 * (frame["city"] == "Pisa")
    if family == "gaussian":
        return frame.assign(rent=500 + 100 * score + rng.normal(0, 30, n))
    if family == "binomial":
        return frame.assign(rent=1 * (rng.random(n) < expit(score)))
    mean = np.exp(1 + 0.5 * score)
    if dispersion:
        mean = mean * rng.gamma(1 / dispersion, dispersion, n)
    return frame.assign(rent=rng.poisson(mean))


def made(frame, **options):
    frame.to_csv("f.csv", index=False)
    given = {"target": "rent", "categorical": ["city"], **options}
    return fit(Path("f.csv"), Options(**given))


class Text(HTMLParser):
    """The words of a page, without its style."""

    def __init__(self, text):
        super().__init__()
        self.words, self.inside = "", ""
        self.feed(text)
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag, attributes):
        self.inside = tag

    def handle_data(self, data):
        self.words += "" if self.inside == "style" else f" {data}"


def shown(found):
    text = page(Path("out"), found)
    return text, Text(text).words


def test_the_page_answers_in_order():
    text, words = shown(made(world(300)))
    questions = ["What drives rent?", "How well does it predict?", "Can the intervals be trusted?",
                 "What was done with the columns?", "Use the model"]  # fmt: skip
    places = [words.index(question) for question in questions]
    assert places == sorted(places)
    assert text.count("<svg") == 4
    assert "Rows are sorted" not in words
    assert 'class="no"' not in text


def test_effects_are_those_of_the_summary():
    found = made(world(400))
    said = sentences.drivers(found)
    names, summary = found.encoding.names, found.summary
    area, pisa = names.index("area"), names.index("city=Pisa")
    sd = world(400)["area"].std(ddof=0)
    three = [
        sentences.short(sd * each)
        for each in (summary.estimates[area], summary.anytime.lower[area],
                     summary.anytime.upper[area])
    ]  # fmt: skip
    assert said.startswith(
        f"Other columns held fixed, rent rises by {three[0]} per standard deviation of area (95 %: "
        f"{three[1]} to {three[2]}); rent is "
    )
    lower = sentences.short(-summary.estimates[pisa])
    assert f"rent is {lower} lower where city is Pisa than where it is Roma (95 %: " in said
    assert said.endswith("The intervals of 2 of 3 effects exclude 0.")


@pytest.mark.parametrize(("family", "words"), [("binomial", "odds of"), ("poisson", "mean of")])
def test_effects_on_other_scales_are_factors(family, words):
    found = made(world(600, family=family), family=family)
    said = sentences.drivers(found)
    i = found.encoding.names.index("area")
    factor = sentences.short(float(np.exp(found.spreads[i] * found.summary.estimates[i])))
    verb = "are" if family == "binomial" else "is"
    assert f"the {words} rent {verb} multiplied by {factor} per standard deviation of area" in said


def test_a_textbook_interval_is_named_as_what_it_is():
    rng = np.random.default_rng(3)
    x = rng.normal(size=25)
    frame = pd.DataFrame({"x": x, "z": rng.normal(size=25), "rent": 0.55 * x})
    frame["rent"] += rng.normal(size=25)
    found = made(frame, categorical=[])
    lower, upper = (np.asarray(each)[:2] for each in found.summary.anytime)
    assert ((lower < 0) & (upper > 0)).all()
    assert sentences.drivers(found) == (
        "No interval that holds at all times excludes 0. Textbook intervals, for one look at a "
        "sample size fixed in advance, exclude 0 for x."
    )


def test_sixteen_rows_are_not_overstated():
    frame = world(16).assign(rent=np.random.default_rng(1).normal(size=16))
    found = made(frame)
    text, words = shown(found)
    assert (
        "No interval that holds at all times excludes 0. Nor do textbook intervals tell what "
        "drives rent." in words
    )
    assert "Least squares is not compared: its first fit takes 18 rows" in words
    assert "less than with least squares" not in words
    assert text.count("<svg") == 3  # no curve of so few rows
    few = made(frame[:5])
    assert "After 5 rows no effect has a finite interval that holds at all times." in shown(few)[1]
    assert "Intervals were not checked against new labels: there were too few rows." in (
        sentences.coverage(few)
    )


def test_sorted_rows_are_a_headline_and_nothing_is_claimed():
    found = made(world(300).sort_values("rent"))
    text, words = shown(found)
    assert re.search(r'<p class="no"><strong>Rows are sorted by the target', text)
    assert "so this does not say how well rows in another order would be predicted" in words
    assert "than with the running mean" not in words
    shuffled = made(world(300).sort_values("rent"), shuffle=0)
    assert "than with the running mean" in shown(shuffled)[1]


def test_too_few_labels_inside_are_a_headline():
    frame = world(400, family="poisson", dispersion=2.0)
    text, words = shown(made(frame, family="poisson", noise="likelihood"))
    heads = re.findall(r'<p class="no"><strong>(.*?)</strong>', text)
    assert len(heads) == 2
    assert re.match(
        r"95 % intervals, computed at 8 times .* That is too few: labels vary", heads[0]
    )
    assert heads[1].startswith("Labels scatter")
    assert re.search(r"Dispersion \S+: .*? Intervals assume that it is 1\.", words)
    text, words = shown(made(frame, family="poisson"))
    assert 'class="no"' not in text
    assert re.search(r"Dispersion \S+: labels scatter .*? Intervals allow for it\.", words)


def test_errors_are_compared_as_they_were_measured():
    found = made(world(300))
    said = sentences.accuracy(found)
    losses, all_rows = found.evaluation.losses, found.evaluation.all_rows.averages
    ratio = 100 * (1 - np.sqrt(all_rows[0] / all_rows[-1]))
    assert f"missed by {sentences.short(np.sqrt(all_rows[0]))} (root mean square)" in said
    assert f", {ratio:.1f} % less than with the running mean." in said
    against = 100 * abs(1 - np.sqrt(losses["noisewise"] / losses["least squares"]))
    assert f"Over the {found.evaluation.compared.rows} rows for which least squares had" in said
    assert f"the error is {against:.1f} % " in said


def test_residuals_are_those_of_least_squares():
    sm = pytest.importorskip("statsmodels.api")
    frame = world(150)
    held = made(frame).residuals
    X = np.column_stack([frame["area"], frame["age"], frame["city"] == "Pisa"]).astype(float)
    theirs = sm.OLS(frame["rent"].to_numpy(), sm.add_constant(X)).fit()
    assert_allclose(held.fitted, theirs.fittedvalues, rtol=1e-7)
    assert_allclose(held.scaled, theirs.resid / np.sqrt(theirs.mse_resid), rtol=1e-5, atol=1e-8)


def test_residuals_of_counts_are_pearson_s():
    frame = world(150, family="poisson")
    held = made(frame, family="poisson").residuals
    assert_allclose(held.labels, frame["rent"])
    assert_allclose(held.scaled, (held.labels - held.fitted) / np.sqrt(held.fitted))
    pearson = float(held.scaled @ held.scaled) / (150 - 4)
    assert_allclose(pearson, made(frame, family="poisson").summary.dispersion, rtol=0.05)


def test_rows_are_kept_evenly():
    for sizes in ([5000], [1, 999, 3000, 1000], [1500]):
        kept, at = KeptRows(), 0
        for size in sizes:
            y = np.arange(at, at + size, dtype=float)
            kept.add(y[:, None], y, np.ones(size), None)
            at += size
        rows = [row[1] for row in kept.rows]
        stride = 1 if at <= 2000 else 4
        assert rows == list(range(0, at, stride))


def residuals_of(y, fitted):
    return Residuals("gaussian", fitted, (y - fitted) / (y - fitted).std(), y, np.ones(len(y)))


def test_bends_and_spreads_are_noticed_and_not_invented():
    """Alarms have probability 0.001 and less; more than 4 of 200 come by chance below 1e-5."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(100):
        x = rng.normal(size=300)
        y = x + rng.normal(size=300)
        found = residuals_of(y, np.polyval(np.polyfit(x, y, 1), x))
        false += found.bend() + (found.spread_ratio() != 1)
    assert false <= 4
    bent = residuals_of(x + x**2 + rng.normal(size=300), 1 + x)
    assert "the relation is curved" in bent.sentences()[0]
    wide = residuals_of(x + np.exp(x) * rng.normal(size=300), x)
    assert re.match(
        r"Residuals scatter \d+\.\d times as much where fitted values are large as where they are "
        r"small, but intervals assume equal scatter; consider --weight\.$",
        wide.sentences()[-1],
    )
    positive = Residuals("gaussian", wide.fitted, wide.scaled, np.exp(x), wide.weights)
    assert positive.sentences()[-1].endswith("--weight, or the logarithm of the target.")


def test_pictures_have_what_their_captions_say():
    found = made(world(600, family="binomial"), family="binomial")
    assert "They should lie near the line." in fit_pictures.caption(found)
    counts = made(world(300, family="poisson"), family="poisson")
    assert fit_pictures.caption(counts) == (
        "About 95 % of the dots should lie in the grey band if the family were exact. Orange: "
        "means of rows of about the same fitted value, with two standard errors; they should lie "
        "near 0."
    )
    for rows in (16, 60):  # rows of one or of three groups are not of about the same fitted value
        few = made(world(rows))
        assert fit_pictures.caption(few) == "About 95 % of the dots should lie in the grey band."
    classes = made(world(40, family="binomial"), family="binomial")
    assert fit_pictures.caption(classes) == (
        "Each dot is a row: 0 or 1, over its fitted probability."
    )


def test_no_row_of_a_few_is_beyond_the_picture():
    values = np.append(np.arange(30.0), [1000.0, -500.0])
    assert fit_pictures._ends(values, 0.005) == (-500.0, 1000.0)
    low, high = fit_pictures._ends(np.append(np.arange(10_000.0), 1e9), 0.005)
    assert (low, high) == (50.0, 9950.0)


@pytest.mark.parametrize(("rows", "pictures"), [(2, 1), (4, 1), (6, 3), (80, 4)])
def test_no_picture_has_a_few_dots_alone(rows, pictures):
    found = made(world(rows), features=["area"], categorical=[])
    text, _ = shown(found)
    assert text.count("<svg") == pictures
    assert ("after row" in text) == (2 < rows < 80)
