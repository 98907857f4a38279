"""The pages that people read: one stylesheet, text that can be read in both themes, tables and headings in order."""

import re
from datetime import datetime
from itertools import pairwise, product

import pytest
from bs4 import BeautifulSoup

from autograder import course
from autograder.gradebook.class_gradebook import Times
from autograder.reports.class_report import compose, page_path, write
from autograder.reports.pages import TEMPLATES, environment, read_report
from autograder.serving.released_pages import limited
from tests import REPOSITORY
from tests.browser.chromium import chromium
from tests.recorded_class import UNIT, comment, feedback_page, put_submission, set_due, write_settings
from tests.reports.test_contents import WRONG
from tests.typed import solved

DUE = datetime(2026, 7, 1, 16)
TEXTS = ("ink", "soft", "accent", "right", "wrong", "warn")
BACKGROUNDS = ("paper", "panel", "fault", "note")
OF_THE_MAP = ("all", "most", "some", "none", "waits")
LEAST_CONTRAST = 4.5
"""The least contrast of text at level AA of the Web Content Accessibility Guidelines."""
WIDE = "wide = torch.zeros(3, 4)  # " + "a line of code that is longer than a telephone is wide, " * 3
TABLE = f"|  | {' | '.join('abcdefghijkl')} |\n|{'---|' * 13}\n| row |{' 0.123456 |' * 12}\n\n$$\n{'x + ' * 40}y\n$$"


def style():
    """The stylesheet of whole pages."""
    return environment(TEMPLATES / "class_report").get_template("page.css").render()


def themes():
    """The colours of both themes by their names."""
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r":root\{(.*?)\}", style(), re.S))
    return {"light": light, "dark": dark}


def contrast(one, other):
    """The ratio of two colours' luminance, as WCAG 2 defines it."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_text_colour_can_be_read_on_each_background(theme):
    assert contrast("#fff", "#000000") == pytest.approx(21)
    colours = themes()[theme]
    pairs = [*product(TEXTS, BACKGROUNDS), *(("ink", background) for background in OF_THE_MAP)]
    too_low = {pair: contrast(*(colours[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in too_low.items() if ratio < LEAST_CONTRAST} == {}


def test_the_stylesheet_has_no_other_colours_and_there_is_no_second_one():
    assert themes()["light"].keys() == themes()["dark"].keys()
    assert set(themes()["light"]) == {*TEXTS, *BACKGROUNDS, *OF_THE_MAP, "line", "bar"}
    rules = re.sub(r":root\{.*?\}", "", style(), flags=re.S)
    assert not re.search(r"#[0-9a-f]{3}\b|rgb\(", rules)
    assert set(re.findall(r"(?<![-\w])color:var\(--(\w+)\)", rules)) <= set(TEXTS)
    assert set(re.findall(r"background:var\(--(\w+)\)", rules)) <= {*BACKGROUNDS, *OF_THE_MAP, "bar"}
    package = REPOSITORY / "autograder"
    assert sorted(path.name for path in package.rglob("*.css")) == ["page.css", "parts.css"]
    templates = [*TEMPLATES.rglob("*.j2"), *TEMPLATES.rglob("*.html"), *(package / "serving").rglob("*.html")]
    styled = {path.name: re.findall('style="[^{"]*', path.read_text()) for path in templates}
    assert {name: found for name, found in styled.items() if found} == {"report.html": ['style="width:']}


@pytest.fixture(scope="module")
def pages(recorded, tmp_path_factory):
    """A page of each kind, by its name."""
    root = tmp_path_factory.mktemp("class")
    write_settings(root)
    (root / "autograder.toml").write_text('[late_penalty]\nrule = "linear"\npoints_a_day = 1.5\nlate_days = 1\n')
    set_due(root, DUE)
    wrong = solved(UNIT, **WRONG, why_softmax=TABLE)
    put_submission(root, "wrong", wrong)
    put_submission(root, "right", solved(UNIT))
    put_submission(root, "damaged", b"{")
    put_submission(root, "late", wrong, "2026-07-03 16:00:00.0 UTC")
    put_submission(root, "failed", solved(UNIT, softmax=f"def softmax(scores)\n    {WIDE}"))
    recorded.grade(root)
    comment(root, "late", "See the *last* line.")
    recorded.grade(root)
    made = {name: feedback_page(root, name) for name in ("wrong", "right", "damaged", "late", "failed")}
    made["report"] = page_path(root / "reports", is_anonymous=False)
    write(compose(root, UNIT), made["report"])
    report = read_report(root / "autograded" / "wrong" / UNIT, UNIT)
    for show in ("check", "names"):
        made[show] = root / f"{show}.html"
        made[show].write_bytes(limited(report, show, {}, Times(DUE, DUE), None))
    return made


KINDS = ["wrong", "right", "damaged", "late", "failed", "report", "check", "names"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_what_it_is_to_every_reader(pages, kind):
    text = pages[kind].read_text()
    page = BeautifulSoup(text, "html.parser")
    assert text.startswith("<!DOCTYPE html>")
    assert page.html["lang"] == "en"
    assert page.title.text
    assert page.select_one("meta[name=viewport]")["content"] == "width=device-width, initial-scale=1"
    assert "default-src 'none'" in page.select_one("meta[http-equiv=Content-Security-Policy]")["content"]
    assert not page.select("script, link, iframe, img, [src]")
    assert len(page.select("main")) == 1
    levels = [int(heading.name[1]) for heading in page.find_all(re.compile("^h[1-6]$"))]
    assert levels[0] == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))
    names = [element["id"] for element in page.select("[id]")]
    assert len(names) == len(set(names))
    for link in page.select("a[href]"):
        assert page.find(id=link["href"].removeprefix("#")), link
    for table in page.select("table"):
        assert table.select("thead th") or table.find_parent(class_="cell")
        assert all(head["scope"] in ("col", "row") and head.text.strip() for head in table.select("th"))
    for sign in re.findall(r"[✓✗][^<]*", page.main.get_text("<")):
        assert re.match(r"[✓✗] [a-z]+", sign), sign


def test_a_comment_is_markdown_and_a_cell_that_failed_is_the_verdict(pages):
    late, failed = (BeautifulSoup(pages[kind].read_text(), "html.parser") for kind in ("late", "failed"))
    assert late.select_one(".remarks em").text == "last"
    assert failed.select_one("#exercise-softmax .verdict").text == "✗ its cell failed"


def test_the_report_on_a_small_class_judges_no_exercise_and_counts_no_ungraded_answer(pages):
    page = BeautifulSoup(pages["report"].read_text(), "html.parser")
    rows = page.select("section[aria-labelledby=exercises] tbody tr")
    assert len(rows) == len(course.unit(UNIT).points)
    assert {row("td")[-1].text for row in rows} == {"too few grades"}
    assert "Left out of all these figures: why_softmax, because" in " ".join(page.figcaption.text.split())
    assert "of 18" in page.select_one(".figures").text


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_a_telephone_a_dark_room_and_four_sheets(pages, browser, kind):
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(pages[kind].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    paper = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        paper.append(page.locator("html").evaluate("one => getComputedStyle(one).backgroundColor"))
    assert len(set(paper)) == 2
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("html").evaluate("one => getComputedStyle(one).backgroundColor") == paper[0]
    assert not page.locator(".notebook").is_visible()
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 4
    page.close()
