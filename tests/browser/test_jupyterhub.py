"""A unit on its whole way on a JupyterHub: one who teaches and two who learn do what deploy/jupyterhub.md says."""

import os
import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from tests import REPOSITORY

from .conftest import UNIT, checked_pages, new_context, row
from .hub import PASSWORD, STUDENTS, TEACHER, commands, started
from .student_steps import MISTAKE, PASSES, RIGHT, WRONG, answer, choose, fetch, open_feedback, open_notebook, submit

SCREEN_READER = "~/.jupyter/lab/user-settings/@jupyterlab/terminal-extension/plugin.jupyterlab-settings"
"""File of a JupyterLab setting with which a terminal's text is in the page, and not only drawn."""
EXCHANGE = "/srv/nbgrader/exchange/attention"
WITH_ACCOUNTS = {"without_accounts": False} | ({"with_accounts": True} if os.environ.get("DISPOSABLE") == "1" else {})
"""A hub with accounts runs as root: `make search DISPOSABLE=1` starts it."""


@pytest.fixture(params=WITH_ACCOUNTS.values(), ids=WITH_ACCOUNTS.keys())
def hub(request, tmp_path):
    with started(tmp_path, has_accounts=request.param) as hub:
        folder, name = SCREEN_READER.rsplit("/", 1)
        written = hub.run_as(TEACHER, f"mkdir -p {folder}; echo '{{\"screenReaderMode\": true}}' > {folder}/{name}")
        assert written == 0
        yield hub


@pytest.fixture
def pages(hub, browser):
    """Each person's page, signed in to the hub."""
    with ExitStack() as opened:
        pages = {}
        for name in (TEACHER, *STUDENTS):
            context = new_context(browser, f"{hub.address}user/{name}/")
            pages[name] = opened.enter_context(checked_pages(context, hub.address)(f"hub_of_{name}"))
            pages[name].goto(f"{hub.address}hub/login")
            pages[name].get_by_label("Username").fill(name)
            pages[name].get_by_label("Password").fill(PASSWORD)
            pages[name].get_by_role("button", name="Sign in").click()
        for page in pages.values():
            page.get_by_role("button", name="No", exact=True).click()  # JupyterLab asks whether it may bring news
        yield pages


def test_a_unit_goes_out_and_comes_back_on_a_hub(hub, pages):
    teacher, sofie, tom = pages.values()
    teacher.locator(".jp-LauncherCard", has_text="Terminal").click()
    run_commands(teacher, "Release")
    for student, code, verdict in ((sofie, RIGHT, PASSES), (tom, WRONG, MISTAKE)):
        fetch(student)
        open_notebook(student)
        answer(student, code, verdict)
        submit(student)
    if hub.has_accounts:
        tom_submits_for_sofie(hub)
    run_commands(teacher, "Grade")
    if hub.has_accounts:
        tom_lists_nobodys_work(hub)
    expect(open_feedback(sofie).get_by_role("row", name="right scaled_softmax 4 of 4")).to_be_visible()
    expect(open_feedback(tom).locator("body")).to_contain_text(MISTAKE)
    choose(teacher, "Nbgrader", "Formgrader")
    frame = teacher.frame_locator("iframe").locator("body")
    expect(frame).to_contain_text("in a browser tab of its own")
    address = frame.locator("p").last.inner_text()
    assert address.startswith(f"{hub.address}user/{TEACHER}/formgrader")
    teacher.goto(f"{address.partition('/formgrader')[0]}/formgrader/manage_submissions/{UNIT}")
    expect(row(teacher, "sofie")).to_contain_text("4 / 39")
    expect(row(teacher, "tom")).to_contain_text("1.09 / 39")


def test_the_page_installs_what_the_tests_use():
    installed = commands("Install") + commands("The teacher's folder")
    tested = "".join((REPOSITORY / name).read_text() for name in ("Makefile", "pyproject.toml"))
    pins = set(re.findall(r"[\w-]+(?:==|@)[\d.]+", "".join(installed)))
    assert {pin for pin in pins if pin not in tested} == set()
    assert len(pins) == 4


def tom_submits_for_sofie(hub):
    """He puts his wrong answer into the exchange in her name, as if it were later than her own."""
    forged = f"{EXCHANGE}/inbound/sofie+{UNIT}+2100-01-01 00:00:00.000000 UTC+0"
    assert hub.run_as("tom", f"cp -r ~/{UNIT} '{forged}'") == 0


def tom_lists_nobodys_work(hub):
    """The others can list these folders."""
    of_the_teacher = ("/home/teacher/autumn", f"{EXCHANGE}/inbound", f"{EXCHANGE}/feedback")
    for folder, owner in {f"/home/sofie/{UNIT}": "sofie", **dict.fromkeys(of_the_teacher, TEACHER)}.items():
        assert hub.run_as(owner, f"ls {folder}") == 0
        assert hub.run_as("tom", f"ls {folder}") != 0


def run_commands(page, section):
    """Type a section's commands into the terminal, and wait until all have succeeded."""
    (block,) = commands(section)
    page.get_by_role("textbox", name="Terminal input").click()
    page.keyboard.type(f"{' && '.join(block.splitlines())}; echo {section} ended with $?\n")
    ended = re.compile(rf"{section} ended with \d+")
    screen = page.locator(".xterm-accessibility")
    expect(screen).to_contain_text(ended)
    assert f"{section} ended with 0" in screen.inner_text()
