"""A course opened by `make lab`, the sample class or another, and a Chromium in front of it."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests import REPOSITORY

from .chromium import chromium

UNIT = "self_attention"
ATTACK = "<img src=x onerror=\"document.title='taken'\">"
BIN = Path(sys.executable).parent
SCREENSHOTS = REPOSITORY / "artifacts" / "screenshots"
MINUTES = 3 * 60_000  # until something is given up that takes seconds: the machine may be busy


@dataclass(frozen=True)
class Lab:
    """JupyterLab as it runs."""

    course: Path
    address: str
    token: str
    server: psutil.Process


@pytest.fixture(scope="package")
def lab(tmp_path_factory) -> Iterator[Lab]:
    """`make lab` on the sample class as `make` sets it up; one answer in it is an attack."""
    folder = tmp_path_factory.mktemp("lab")
    course = folder / "demo"
    course.mkdir()
    for file in ("sample_class.py", "roster.csv"):
        shutil.copy(REPOSITORY / "demo" / file, course)
    shutil.copytree(REPOSITORY / "demo" / "submitted", course / "submitted", ignore=shutil.ignore_patterns("*.txt"))
    subprocess.run([sys.executable, course / "sample_class.py"], cwd=REPOSITORY, check=True, capture_output=True)
    write_answer(course / "submitted" / "jonas" / UNIT / f"{UNIT}.ipynb", ATTACK)
    roster = ["db", "student", "import", "roster.csv"]
    subprocess.run([BIN / "nbgrader", *roster], cwd=course, check=True, capture_output=True)
    with opened(course, folder / "home") as running:
        yield running


@contextmanager
def opened(course: Path, home: Path) -> Iterator[Lab]:
    """`make lab` on a course, in a home with nothing in it."""
    home.mkdir()
    theirs = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MAKE", "MFLAGS"))}
    environment = {**theirs, "HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    # This environment is the one that make would set up.
    make = ["make", f"--directory={REPOSITORY}", "--old-file=.venv/ready-cpu", "TORCH=cpu", f"BIN={BIN}"]
    command = [*make, "lab", f"COURSE={course}", "LAB=--no-browser --port=0"]
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"(http://\S+/)lab\?token=(\w+)", line):
                break
        else:
            pytest.fail("make lab ended: " + "".join(said))
        rest = threading.Thread(target=process.stdout.read)  # or the pipe would fill
        rest.start()
        (server,) = psutil.Process(process.pid).children()
        try:
            _wait_until_it_listens(found[1])
            yield Lab(course, *found.groups(), server)
        finally:
            family = [server, *server.children(recursive=True)]
            server.terminate()
            _, left = psutil.wait_procs(family, timeout=60)
            for one in left:
                one.kill()
            rest.join()
    assert not left, "processes outlived JupyterLab"


def _wait_until_it_listens(address: str) -> None:
    """Its address is told a moment before."""
    at = urlsplit(address)
    for _ in range(MINUTES // 100):
        with suppress(ConnectionRefusedError), socket.create_connection((at.hostname, at.port)):
            return
        time.sleep(0.1)
    pytest.fail(f"Nothing listens at {address}.")


def write_answer(file: Path, text: str) -> None:
    """Puts a text of one's own under the written question."""
    notebook = nbformat.read(file, as_version=4)
    next(cell for cell in notebook.cells if cell.id == "why_scale").source = text
    nbformat.write(notebook, file)


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
    """Opens pages which have to work without an error, and without anything from another machine."""
    signed_in = browser.new_context(base_url=lab.address, viewport={"width": 1600, "height": 1000})
    signed_in.set_default_timeout(MINUTES)
    signed_in.request.get("lab", params={"token": lab.token})

    @contextmanager
    def new_page(picture: str) -> Iterator[Page]:
        page = signed_in.new_page()
        wrong = []
        own = (lab.address, "data:", "blob:", "file:")
        page.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        try:
            yield page
        finally:
            page.screenshot(path=SCREENSHOTS / f"{picture}.png")
            page.close()
        assert not wrong

    return new_page


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
