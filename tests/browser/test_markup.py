"""Students' submissions and names stay plain text in the browser of an instructor."""

import json
import re
import shutil
from urllib.parse import quote

import pytest
from nbgrader.api import Gradebook
from playwright.sync_api import Error, expect

from autograder import course
from tests import RELEASE
from tests.recorded_class import opened_gradebook

from .conftest import UNIT, press, row

SUBMISSIONS = f"formgrader/manage_submissions/{UNIT}"
GRADE_CELLS = tuple(course.unit(UNIT).points)
MALLORY = "mallory"
TAKEN = "document.title='taken'"
# Folders with these names were enrolled before it was looked at what an id is made of.
OTHERS = [
    f'<img src=x onerror="{TAKEN}">',
    f'";{TAKEN};"',
    f"';{TAKEN};'",
    f"&lt;img src=x onerror={TAKEN}&gt;",
    "o'neil & sons",
]
MARKUP = f"<svg onload={TAKEN}>&lt;svg onload={TAKEN}&gt;"

# What made the next click anywhere give full credit: a button of the student's over the whole window.
BUTTONS = "".join(f'<span id="{cell}" class="score mallory"></span>' for cell in GRADE_CELLS)
TAKEOVER = (
    f'<div class="nbgrader_cell mallory"><div class="full-credit modal-backdrop fade mallory">x</div>{BUTTONS}</div>'
    f'<form action="https://mallory.example" class="mallory"><input class="tabbable mallory" autofocus></form>'
    f'<a href="https://mallory.example" data-toggle="collapse" data-target="#mallory" style="position:fixed">x</a>'
    f'<img src="https://mallory.example/x" onerror="{TAKEN}"><script>{TAKEN}</script>'
)
CLASSES = "full-credit modal-backdrop fade mallory"
FORMULAS = [
    f"$\\class{{{CLASSES}}}{{x}}$",
    f"$\\style{{position:fixed}}{{\\class{{{CLASSES}}}{{x}}}}$",
    "$\\id{mallory}{x}$ $\\cssId{mallory}{x}$ $\\data{mallory}{x}$ $\\href{https://mallory.example}{x}$",
    f"$$\\class{{{CLASSES}}}{{\\rule{{99em}}{{99em}}}}$$",
]
FENCES = [
    f"```{CLASSES}\nx\n```",
    f"```raw\nToken.A {CLASSES}\t'x'\nToken.A\" onclick=\"{TAKEN}\" id=\"mallory\t'x'\n```",
    f"```html\n{TAKEOVER}\n```",
    f"```mermaid\n{TAKEOVER}\n```",
]
MARKDOWN = [
    TAKEOVER,
    "# mallory\n\n[x](https://mallory.example) <https://mallory.example> https://mallory.example/ <m@mallory.example>",
    "![x](https://mallory.example/x) [x][m]\n\n[m]: https://mallory.example 'mallory'",
    "- [ ] mallory\n- [x] mallory\n\n| a |\n|:-:|\n| mallory |",
]
PROSE = "\n\n".join([*FORMULAS, *FENCES, *MARKDOWN])
PRINTS = (
    f"print('\\x1b[1;31;45mmallory\\x1b[0m', '''{TAKEOVER}''')\nraise ValueError('''\\x1b[38;2;1;2;3m{TAKEOVER}''')"
)


def notebook():
    """The released notebook, untouched but for markup wherever a student can write."""
    written = json.loads((RELEASE / UNIT / f"{UNIT}.ipynb").read_bytes())
    for cell in written["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("locked"):
            cell["source"] = f"# forged by mallory\n{TAKEOVER}"
        elif about.get("grade"):
            cell["source"] = PROSE
    for number, kind in enumerate(["raw", "shout", "html", "markdown", "heading"]):
        source = PROSE if kind == "markdown" else TAKEOVER
        metadata = {"raw_mimetype": "text/html", "tags": [CLASSES]}
        cell = {"cell_type": kind, "id": f"x{number}", "metadata": metadata, "source": source}
        written["cells"].insert(0, cell)
    outputs = [{"output_type": "display_data", "data": {"text/html": TAKEOVER}, "metadata": {}}]
    written["cells"].append(
        {"cell_type": "code", "id": "p", "metadata": {}, "source": PRINTS, "outputs": outputs, "execution_count": 1}
    )
    return json.dumps(written)


@pytest.fixture(scope="module")
def hostile(lab, released, new_page):
    """A class with a student who writes markup, and with students who are called markup; afterwards it is as before."""
    gradebook = f"sqlite:///{lab.folder}/gradebook.db"
    with Gradebook(gradebook, "attention") as open_gradebook:
        for student in (MALLORY, *OTHERS):
            open_gradebook.add_student(student, first_name=MARKUP, last_name=MARKUP, email=MARKUP)
    folders = [lab.folder / "submitted" / student for student in (MALLORY, *OTHERS)]
    for folder in folders:
        (folder / UNIT).mkdir(parents=True)
        (folder / UNIT / f"{UNIT}.ipynb").write_text(notebook())
    with new_page("formgrader_hostile_autograded") as page:
        page.goto(SUBMISSIONS)
        press(page, MALLORY, "autograde")
    yield
    with Gradebook(gradebook, "attention") as open_gradebook:
        for student in (MALLORY, *OTHERS):
            open_gradebook.remove_student(student)
    for folder in folders:
        shutil.rmtree(folder)


def scores(lab):
    with opened_gradebook(lab.folder) as gradebook:
        submission = gradebook.find_submission_notebook(UNIT, UNIT, MALLORY)
        return {grade.name: (grade.auto_score, grade.manual_score, grade.extra_credit) for grade in submission.grades}


def attributes(page):
    """All that elements of the page carry, as (element, attribute, value)."""
    walk = "all => all.flatMap(one => [...one.attributes].map(a => [one.localName, a.name, a.value]))"
    return [tuple(found) for found in page.locator("body *").evaluate_all(walk)]


def is_untouched(page):
    """No script ran, and no element carries anything that a student wrote."""
    assert page.evaluate("document.title") != "taken"
    strange = [found for found in attributes(page) if re.search(r"mallory|taken", found[2])]
    # By these formgrader sorts, and leads to a student's page.
    assert not [found for found in strange if found[1] != "data-order" and not found[2].startswith("/formgrader/")]
    assert page.locator("body img, body form, body iframe, body object, body embed, body base, body meta").count() == 0


def opened(page):
    """The page of the hostile notebook, loaded with its scores."""
    page.goto(SUBMISSIONS)
    row(page, MALLORY).get_by_role("link").first.click()
    row(page, UNIT).get_by_role("link", name=UNIT).click()
    expect(page.locator("#test_encode")).to_have_attribute("placeholder", "0")
    page.evaluate("jQuery.fx.off = true")  # or formgrader scrolls on while something is clicked
    return page


@pytest.fixture(scope="module")
def shown(new_page, hostile):
    """The same, for tests that look at it and do nothing there."""
    with new_page("a_hostile_notebook") as page:
        yield opened(page)


def test_nothing_of_a_students_is_an_element_that_acts(shown):
    assert shown.locator(".full-credit").count() == len(GRADE_CELLS)
    assert shown.locator(".modal-backdrop").count() == 0
    for cell in GRADE_CELLS:
        assert shown.locator(f'[id="{cell}"]').count() == 1
    assert shown.locator("#notebook-container").locator("a, img, form, script, style, link, svg, video").count() == 0
    within = shown.locator(".text_cell_render, .input_area, .output")
    assert within.locator("[id], [onclick], [href], [src], [data-target], input, button, select").count() == 0
    body = shown.locator("body")
    navigation = {found for found in attributes(shown) if found[1] in ("href", "data-link") and "mallory" in found[2]}
    assert len(navigation) <= 1  # the kit's own link to the notebook
    assert not [found for found in attributes(shown) if "mallory" in found[2] and found not in navigation]
    expect(body).to_contain_text('<div class="full-credit modal-backdrop fade mallory">')
    expect(body).to_contain_text("https://mallory.example")


def click_where_it_comes_to_rest(one):
    """A click before it may have moved the page, which then scrolls on while this one is made."""
    for _ in range(5):
        try:
            return one.click(force=True)
        except Error as error:
            if "outside of the viewport" not in str(error):
                raise
            one.page.wait_for_timeout(200)
    return one.click(force=True)


def test_clicks_anywhere_move_no_score(page, hostile, lab):
    shown = opened(page)
    before = scores(lab)
    saved = []
    shown.on("request", lambda request: saved.append(request.url) if request.method != "GET" else None)
    for x, y in [(5, 500), (800, 500), (1270, 890), (800, 60)]:
        shown.mouse.click(x, y)
    for one in shown.locator(".rendered_html, .text_cell_render pre, .output pre, math").all():
        click_where_it_comes_to_rest(one)
    for key in ("Escape", "Tab", "Shift+Tab", "Enter"):
        shown.keyboard.press(key)
    shown.wait_for_timeout(500)
    assert not saved
    assert scores(lab) == before
    assert all(manual is None for _, manual, _ in before.values())


def test_names_are_text_in_the_lists(page, hostile):
    for place in ("manage_students", f"manage_submissions/{UNIT}", f"gradebook/{UNIT}/{UNIT}", "gradebook"):
        page.goto(f"formgrader/{place}")
        expect(page.locator("#main-table a").first).to_be_attached()
        is_untouched(page)
    page.goto("formgrader/manage_students")
    for student in OTHERS:
        expect(row(page, student)).to_be_visible()
    page.get_by_role("searchbox").fill("o'neil & sons")
    expect(page.locator("#main-table tr")).to_have_count(1)
    is_untouched(page)


def test_an_id_is_text_on_each_students_own_page(page, hostile):
    for student in OTHERS:
        page.goto("formgrader/manage_students")
        row(page, student).get_by_role("link").first.click()
        expect(page.locator(".breadcrumb .active")).to_have_text(student)
        assert page.evaluate("student_id") == student
        expect(row(page, f"{UNIT} (not autograded)")).to_be_visible()
        is_untouched(page)
        page.goto(f"formgrader/manage_students/{quote(student)}/{UNIT}")
        expect(page.locator(".breadcrumb")).to_contain_text(student)
        is_untouched(page)


def test_an_address_that_someone_sent_runs_nothing(page, hostile):
    hostile_parts = [quote(part) for part in ("\\", f';{TAKEN};"', OTHERS[0])]
    for first, second in zip(hostile_parts, [*hostile_parts[1:], hostile_parts[0]], strict=True):
        # Each in either place, and one that ends a text at the end of one that escapes what ends it.
        page.goto(f"formgrader/manage_students/{first}/{second}")
        is_untouched(page)


def test_what_a_dialog_says_is_text(page, hostile):
    page.goto(SUBMISSIONS)
    page.route("**/autograde", lambda route: route.fulfill(status=500, body="x"))
    row(page, OTHERS[0]).locator(".autograde").get_by_role("link").click()
    expect(page.get_by_role("dialog")).to_contain_text(OTHERS[0])
    is_untouched(page)


def test_an_id_that_is_markup_is_autograded(page, hostile):
    page.goto(SUBMISSIONS)
    press(page, OTHERS[0], "autograde")
    expect(row(page, OTHERS[0])).to_contain_text("0 / 39")
    is_untouched(page)
    row(page, OTHERS[0]).get_by_role("link").first.click()
    row(page, UNIT).get_by_role("link", name=UNIT).click()
    expect(page.locator("#test_encode")).to_have_attribute("placeholder", "0")
    page.locator(".live-notebook .glyphicon-eye-open").click()
    expect(page.locator(".name-shown").first).to_contain_text(MARKUP)
    assert page.locator("body img, #notebook-container a").count() == 0


def test_data_is_no_page(page, hostile):
    answer = page.goto("formgrader/api/students")
    assert answer.ok
    assert answer.headers["content-type"].startswith("text/plain")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert page.locator("body img, body svg").count() == 0
    assert page.evaluate("document.title") != "taken"
