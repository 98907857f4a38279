"""A unit on its whole way on a JupyterHub: one who teaches and two who learn do what deploy/jupyterhub.md says."""

import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from tests import REPOSITORY

from .conftest import UNIT, checked_pages, new_context, row
from .hub import STUDENTS, TEACHER, commands, hub_without_accounts
from .student_steps import MISTAKE, PASSES, RIGHT, WRONG, answer, fetch, open_feedback, open_notebook, submit

SCREEN_READER = ".jupyter/lab/user-settings/@jupyterlab/terminal-extension/plugin.jupyterlab-settings"
"""With this setting of the teacher's, the text in a terminal is in the page, and not only drawn."""


@pytest.fixture
def hub(tmp_path):
    with hub_without_accounts(tmp_path) as hub:
        settings = hub.homes / TEACHER / SCREEN_READER
        settings.parent.mkdir(parents=True)
        settings.write_text('{"screenReaderMode": true}')
        yield hub


@pytest.fixture
def pages(hub, browser):
    """The page of each person, who has signed in."""
    with ExitStack() as opened:
        pages = {}
        for name in (TEACHER, *STUDENTS):
            context = new_context(browser, f"{hub.address}user/{name}/")
            pages[name] = opened.enter_context(checked_pages(context, hub.address)(f"hub_of_{name}"))
            pages[name].goto(f"{hub.address}hub/login")
            pages[name].get_by_label("Username").fill(name)
            pages[name].get_by_label("Password").fill("any")
            pages[name].get_by_role("button", name="Sign in").click()
        for page in pages.values():
            page.get_by_role("button", name="No", exact=True).click()  # JupyterLab asks whether it may bring news
        yield pages


def test_a_unit_goes_out_and_comes_back_on_a_hub(pages):
    teacher, sofie, tom = pages.values()
    teacher.locator(".jp-LauncherCard", has_text="Terminal").click()
    run_commands(teacher, "Release")
    for student, code, verdict in ((sofie, RIGHT, PASSES), (tom, WRONG, MISTAKE)):
        fetch(student)
        open_notebook(student)
        answer(student, code, verdict)
        submit(student)
    run_commands(teacher, "Grade")
    expect(open_feedback(sofie).get_by_role("row", name="right scaled_softmax 4 of 4")).to_be_visible()
    expect(open_feedback(tom).locator("body")).to_contain_text(MISTAKE)
    teacher.goto(f"formgrader/manage_submissions/{UNIT}")
    expect(row(teacher, "sofie")).to_contain_text("4 / 39")
    expect(row(teacher, "tom")).to_contain_text("1.09 / 39")


def test_the_page_installs_what_the_tests_use():
    installed = commands("Install") + commands("The teacher's folder")
    tested = "".join((REPOSITORY / name).read_text() for name in ("Makefile", "pyproject.toml"))
    pins = set(re.findall(r"[\w-]+(?:==|@)[\d.]+", "".join(installed)))
    assert {pin for pin in pins if pin not in tested} == set()
    assert len(pins) == 4


def run_commands(page, section):
    """Type a section's commands into the terminal, and wait until all have succeeded."""
    (block,) = commands(section)
    page.get_by_role("textbox", name="Terminal input").click()
    page.keyboard.type(f"{' && '.join(block.splitlines())}; echo {section} ended with $?\n")
    ended = re.compile(rf"{section} ended with \d+")
    screen = page.locator(".xterm-accessibility")
    expect(screen).to_contain_text(ended)
    assert f"{section} ended with 0" in screen.inner_text()
