"""The sample class opened by `make lab`, and a Chromium in front of it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from tests import REPOSITORY, forked_command

from .chromium import chromium
from .servers import MINUTES, Lab, opened

UNIT = "self_attention"
SCREENSHOTS = REPOSITORY / "artifacts" / "screenshots"
PICTURES = 10
"""Tried of a page before its test fails."""


@pytest.fixture(scope="package")
def lab(tmp_path_factory) -> Iterator[Lab]:
    """`make lab` on the sample class as `make` sets it up."""
    folder = tmp_path_factory.mktemp("lab")
    course = folder / "demo"
    course.mkdir()
    for file in ("sample_class.py", "roster.csv"):
        shutil.copy(REPOSITORY / "demo" / file, course)
    shutil.copytree(REPOSITORY / "demo" / "submitted", course / "submitted", ignore=shutil.ignore_patterns("*.txt"))
    forked_command.run(str(course / "sample_class.py"), cwd=REPOSITORY).check_returncode()
    forked_command.nbgrader("db", "student", "import", "roster.csv", cwd=course).check_returncode()
    with opened(course, folder / "home") as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium."""
    expect.set_options(timeout=MINUTES)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def new_page(lab, browser):
    """Opens a page of `lab`."""
    return pages(lab, browser)


def pages(lab: Lab, browser: Browser) -> Callable[[str], AbstractContextManager[Page]]:
    """Opens pages of a JupyterLab, checked as those of `checked_pages`."""
    signed_in = new_context(browser, lab.address)
    signed_in.request.get("lab", params={"token": lab.token})
    return checked_pages(signed_in, lab.address)


def new_context(browser: Browser, address: str) -> BrowserContext:
    """Return a context whose pages have addresses below this one."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(MINUTES)
    return context


def checked_pages(context: BrowserContext, address: str) -> Callable[[str], AbstractContextManager[Page]]:
    """Opens pages which have to work without an error, and without anything from elsewhere than this address."""

    @contextmanager
    def new_page(picture: str) -> Iterator[Page]:
        page = context.new_page()
        wrong = []
        own = (address, "data:", "blob:", "file:")
        page.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        try:
            yield page
        finally:
            _take(page, SCREENSHOTS / f"{picture}.png")
            page.close()
        assert not wrong

    return new_page


def _take(page: Page, path: Path) -> None:
    """Takes a picture. A click may have opened another page, and Chromium refuses until this one is drawn again."""
    for _ in range(PICTURES - 1):
        page.bring_to_front()
        try:
            page.screenshot(path=path)
            return
        except Error:
            page.wait_for_timeout(1_000)
    page.screenshot(path=path)


@pytest.fixture
def page(new_page, request) -> Iterator[Page]:
    """A page; what it shows at the test's end becomes a picture of this name."""
    with new_page(request.node.name.removeprefix("test_")) as page:
        yield page


@pytest.fixture
def picture(page):
    """Keeps what the page shows now as a picture of its own."""
    return lambda name: page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture(scope="package")
def released(new_page):
    """The unit is in the gradebook and in the exchange: formgrader's Generate and Release were pressed."""
    with new_page("formgrader_released") as page:
        page.goto("formgrader/manage_assignments")
        press(page, UNIT, "assign")
        press(page, UNIT, "release")


def row(page, name):
    """The table's row with a cell that says this name."""
    return page.get_by_role("row").filter(has=page.get_by_role("gridcell", name=name, exact=True))


def press(page, name, button):
    """Presses a button in a row of formgrader, waits until that is done, and closes what it says."""
    row(page, name).locator(f".{button}").get_by_role("link").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Success")
    dialog.get_by_role("button", name="OK").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".modal-backdrop")).to_have_count(0)  # it fades
