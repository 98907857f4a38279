"""Slides of a unit: what its notebook says and draws is on them, no code is, and they open without network."""

import ast
import html
import re

import nbformat
import pytest

from autograder import course
from autograder.cli.slides import compose, split_paragraphs
from autograder.student_check.unit_data import LESSON
from tests import REPOSITORY, released_data
from tests.browser.chromium import chromium
from tests.commands import run

UNIT = "dot_product_attention"
SOLUTIONS = REPOSITORY / "solutions" / f"{UNIT}.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file, of the real notebook."""
    place = tmp_path_factory.mktemp("slides") / "shown" / "unit.html"
    assert str(place) in run("slides", UNIT, "--output", place).output
    return place


@pytest.fixture(scope="module")
def pages(made):
    """Return each slide's text and HTML."""
    found = re.findall(r"<section .*?</section>", made.read_text(), re.S)
    return [(html.unescape(re.sub(r"<[^>]+>", "", one)), one) for one in found]


def cells():
    return nbformat.read(course.source(UNIT), as_version=4).cells


def test_each_section_has_a_slide_but_those_about_the_notebook_itself(pages):
    text = "\n".join(cell.source for cell in cells() if cell.cell_type == "markdown")
    headings = re.findall(r"^## (.+)$", text, re.M)
    shown = {re.search(r"<h2>(.*?)</h2>", one)[1] for _, one in pages if "<h2>" in one}
    assert len(headings) > 5
    assert {one for one in headings if one not in ("How far you are", "How to submit")} == shown - {title(pages)}


def title(pages):
    return re.search(r"<h1>(.*?)</h1>", pages[0][1])[1]


def test_each_picture_and_number_that_a_cell_makes_is_there(pages):
    calls = [
        cell.source for cell in cells() if cell.cell_type == "code" and re.search(r"^(show|draw)\(", cell.source, re.M)
    ]
    drawing = [one for one in calls if "plt.show()" in one or one.startswith("draw(")]
    pictures = [one for _, page in pages for one in re.findall(r'<img[^>]* src="data:image/png;base64,([^"]+)"', page)]
    assert len(drawing) == len(pictures) == 3
    tensors = sum(text.count("tensor([") for text, _ in pages)
    assert tensors >= sum(one.count("lambda") for one in calls) - 2  # those of `draw`
    assert any("tensor([0.9544" in text and "1.0865" in text and "What yours gives" in text for text, _ in pages)


def test_a_guess_is_asked_on_one_slide_and_answered_on_the_next(pages):
    guesses = released_data(UNIT)[LESSON]["guesses"]
    asked = [number for number, (_, page) in enumerate(pages) if page.startswith('<section class="question"')]
    assert len(asked) == len(guesses)
    for number, guess in zip(asked, guesses.values(), strict=True):
        question, (answer, page) = pages[number][0], pages[number + 1]
        assert "Guess first" in question
        assert page.startswith('<section class="answer"')
        assert guess["because"].replace("`", "") in answer
        assert guess["because"].replace("`", "") not in question
        assert f"<strong>{guess['answer']}</strong>" in page
    assert not [text for text, _ in pages if "Put your guess" in text]


def test_what_only_says_what_to_write_is_left_out():
    def slides_of(*cells):
        found = []
        for number, (kind, text) in enumerate([("markdown", "# Unit\n\nText."), *cells]):
            metadata = {"nbgrader": {"solution": True}} if text == "def it(): ..." else {}
            new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
            found.append(new(text, id=f"c{number}", metadata=metadata))
        for cell in found:
            if cell.source == "shows":
                cell.outputs = [nbformat.v4.new_output("stream", text="1\n")]
        return [[one.source for one in slide.cells if one.source] for slide in compose(found, {})][1:]

    exercise, shows = ("code", "def it(): ..."), ("code", "shows")
    assert slides_of(("markdown", "Write it."), exercise) == []
    assert slides_of(("markdown", "Write it."), exercise, shows) == [[]]
    assert slides_of(("markdown", "Write it."), exercise, ("markdown", "This is it:"), shows) == [["This is it:"]]
    assert slides_of(exercise, ("markdown", "<details><summary>What is tested</summary>\n\nAll.\n\n</details>")) == []
    assert slides_of(("markdown", "Divide.\n\n$$a$$"), exercise) == [["Divide.", "$$a$$"]]
    assert slides_of(("markdown", "The data:"), ("code", "x = 1"), ("markdown", "Now."), shows) == [["Now."]]


def lines_of_code(source):
    """The lines of what functions do, without the docstrings."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            found |= {line for statement in body for line in ast.unparse(statement).splitlines()}
    return {line.strip() for line in found if len(line.strip()) > 8}


def test_no_code_is_on_them(made, pages):
    text = "\n".join(text for text, _ in pages)
    everything = html.unescape(made.read_text())
    answers = lines_of_code(SOLUTIONS.read_text())
    assert len(answers) > 8
    assert not [line for line in answers if line in everything]
    for word in ("def ", "import ", "BEGIN SOLUTION", "YOUR CODE HERE", "lambda", "plt.", "check(", "points"):
        assert word not in text
    (model_answer,) = course.unit(UNIT).model_answers.values()
    assert model_answer.split(".")[0] not in text


def test_it_is_one_small_file_that_asks_for_nothing(made):
    text = made.read_text()
    assert len(text.encode()) < 2_000_000
    addresses = set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]{1,40})""", text))
    assert all(one.startswith("data:image/png") for one in addresses)
    assert set(re.findall(r"https?://[^\"<\s]+", text)) <= {"http://www.w3.org/1998/Math/MathML"}


def test_keys_turn_the_slides_and_nothing_is_cut_off(made, pages):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        wrong = []
        page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else wrong.append(one.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(made.as_uri())

        def now():
            (shown,) = page.locator("section").evaluate_all(
                "all => all.flatMap((one, at) => getComputedStyle(one).visibility === 'visible' ? [at + 1] : [])"
            )
            return shown

        assert now() == 1
        for key, number in [("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", len(pages)), ("Home", 1)]:
            page.keyboard.press(key)
            assert now() == number, key
        page.get_by_role("button", name="the next slide").click()
        assert now() == 2
        page.goto(f"{made.as_uri()}#4")
        page.reload()
        assert now() == 4
        cut = "one => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1"
        assert not page.locator("section").evaluate_all(f"all => all.filter({cut}).map(one => one.textContent)")
        smaller = page.locator("section").evaluate_all("all => all.filter(one => one.style.fontSize).length")
        assert smaller == 0  # what was estimated is enough here
        printed = page.pdf(prefer_css_page_size=True, print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(pages)
        assert not wrong


def test_text_is_cut_at_empty_lines_but_for_those_in_formulas_and_code():
    parts = ["## A *b*", "Text\nmore:", "$$a\n\nb$$", "| a |\n|---|\n| 1 |", "```\nx\n\ny\n```", "1. one\n2. two"]
    assert split_paragraphs("\n\n".join(parts)) == parts


@pytest.fixture
def own_class(tmp_path):
    """A class's folder with a unit of three cells; makes the slides of what they are."""

    def make(*codes, code=0):
        folder = tmp_path / "source" / "small"
        folder.mkdir(parents=True)
        markdown = nbformat.v4.new_markdown_cell("# A <b>title</b>\n\nText.")
        written = nbformat.v4.new_notebook(cells=[markdown, *map(nbformat.v4.new_code_cell, codes)])
        nbformat.write(written, folder / "small.ipynb")
        return " ".join(run("slides", "small", "--course", tmp_path, code=code).output.split())

    return tmp_path, make


def test_the_notebook_is_the_classes_own_and_its_folder_stays_as_it_is(own_class):
    root, make = own_class
    make("open('left', 'w').write('behind')\nprint('<script>alert(1)</script>')")
    text = (root / "slides" / "small.html").read_text()
    assert "&lt;script&gt;alert(1)" in text
    assert "A &lt;b&gt;title" in text
    assert [one.name for one in (root / "source" / "small").iterdir()] == ["small.ipynb"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "fails with the answers filled in: ZeroDivisionError: division by zero"),
        ("import os\nos._exit(3)", "fails with the answers filled in: Kernel died"),
    ],
)
def test_a_notebook_that_does_not_run_is_said_in_a_sentence(own_class, code, said):
    root, make = own_class
    message = make("x = 1", code, code=2)
    assert "Cell 2 " in message
    assert said in message
    assert not (root / "slides").exists()


def test_what_cannot_be_written_is_said_in_a_sentence(own_class):
    root, make = own_class
    (root / "slides").write_text("a file")
    assert "cannot be written: Not a directory. Give another name." in make("x = 1", code=2)
