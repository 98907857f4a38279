"""`make site`: the site is whole, needs nothing from the network, and can be searched and read on a small screen."""

import html
import re
import subprocess
import sys
import typing
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from playwright.sync_api import expect

from autograder import course
from autograder.catalogue.known_answers import Misconception
from autograder.cli import app
from autograder.course.settings import Settings
from autograder.report import ExerciseStatus, SubmissionStatus
from tests import REPOSITORY
from tests.browser.chromium import chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "docs/_ext/pages.py", folder]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"Open {folder / 'index.html'}\n"
    return folder


class Links(HTMLParser):
    """The addresses in a page: those that the browser loads, and those of links; and the anchors."""

    def __init__(self, page):
        super().__init__()
        self.loaded, self.linked, self.anchors = [], [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.add(values.get("id"))
        self.loaded += [values[name] for name in ("src", "srcset", "poster", "data") if values.get(name)]
        (self.linked if tag == "a" else self.loaded).extend([values["href"]] if values.get("href") else [])


def test_nothing_is_loaded_from_the_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert {address for page in pages for address in Links(page).loaded if re.match("(https?:)?//", address)} == set()
    styles = "".join(style.read_text() for style in site.rglob("*.css"))
    assert re.findall(r"@import|url\([\"']?(?:https?:)?//[^)]*", styles) == []


def test_each_link_leads_to_a_file_and_an_anchor(site):
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    lost = []
    for page, links in pages.items():
        for address in {*links.loaded, *links.linked}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            has_anchor = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
            if not target.is_file() or not has_anchor:
                lost.append((page.relative_to(site), address))
    assert lost == []


def text_of(page):
    """The text of a page in the order in which it is read."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def keys(struct):
    """The fields of a struct and of those that they hold."""
    for field in msgspec.structs.fields(struct):
        yield field.name
        for inner in (field.type, *typing.get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from keys(inner)


def used_by_hidden_tests():
    """The functions and classes that hidden tests of several modules import, and the contracts."""
    texts = [file.read_text() for file in (REPOSITORY / "autograder" / "hidden").rglob("*.py")]
    imports = r"^from autograder\.(?:graders\.\w+|core\.comparison|catalogue\.bug_hunts) import (?:\(([^)]*)\)|(.*))"
    names = {
        name
        for text in texts
        for found in re.findall(imports, text, re.M)
        for name in re.findall(r"\w+", "".join(found))
    }
    contracts = {name for text in texts for name in re.findall(r"\bcontracts\.(\w+)\(", text)}
    return {name for name in names | contracts if not name.isupper()}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("commands", {f"autograder {command.name}" for command in app().registered_commands}),
        ("settings", {*keys(Settings)}),
        ("misconceptions", {*keys(Misconception), "exercises"}),
        ("statuses", {*typing.get_args(SubmissionStatus), *typing.get_args(ExerciseStatus)}),
        ("contracts", used_by_hidden_tests()),
    ],
)
def test_the_reference_has_everything_that_the_code_has(site, page, names):
    text = text_of(site / "reference" / f"{page}.html")
    assert len(names) > 5
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("unit", course.unit_names())
def test_a_unit_has_a_page_with_its_formulas_and_without_answers(site, unit):
    page = site / "release" / unit / f"{unit}.html"
    assert text_of(page).count("raise NotImplementedError()") >= len(course.unit(unit).exercises)
    assert "<math" in page.read_text()
    assert "<code>$" not in page.read_text()  # a formula that cannot be converted


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_a_page_is_found_by_search_without_a_network(site, browser, width, scheme):
    problems = []
    page = browser.new_page(offline=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.on("console", lambda message: problems.append(message.text))
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.goto((site / "search.html").as_uri() + "?q=late_days")
    expect(page.locator("#search-results li").first).to_be_visible()
    page.locator("#search-results a", has_text="Settings").first.click()
    expect(page.locator("h1")).to_contain_text("autograder.toml")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (int(shade) < 128) == (scheme == "dark")
    assert problems == []
    page.close()


BROKEN = """
import sys
sys.path.insert(0, "docs/_ext")
import pages
pages.write_pages = lambda tree: (tree / "index.md").write_text("# Site\\n\\n[Lost](#no-such-heading)\\n")
sys.exit(pages.main(sys.argv[1], "--builder=dummy"))
"""
"""Builds a site of one page."""


def test_a_broken_link_is_an_error(tmp_path):
    command = [sys.executable, "-c", BROKEN, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert (ended.returncode != 0, "no-such-heading" in ended.stderr) == (True, True), ended.stderr
