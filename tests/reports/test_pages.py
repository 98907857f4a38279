"""Students' markdown on the pages that are read: it stays text, and formulas are MathML."""

import json
import re
from html import escape

import pytest

from autograder import course
from autograder.course.notebook import parse
from autograder.formatting.rendering import LONGEST_FORMULA, highlight_code, markdown2html, mathml
from tests import RELEASE
from tests.recorded_class import UNIT, feedback_page, put_submission


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (markdown2html, "\\begin{a}" * 200_000),
        (markdown2html, "a.b <i> " * 20_000),
        (highlight_code, "a." * 1_000_000),
        (highlight_code, "a = 1  # <i>\n" * 20_000),
        (highlight_code, "a." * 300),
    ],
    ids=["environments", "prose", "dots", "code", "one long line"],
)
def test_what_is_longer_than_anyone_reads_is_shown_as_it_is(form, written):
    """The formatter needs quadratic time for some texts; the first of these would take days."""
    assert form(written) == f'<div class="highlight"><pre>{escape(written)}</pre></div>'


def test_a_page_formats_so_much_and_shows_the_rest_as_it_is(recorded, tmp_path):
    released = json.loads((RELEASE / UNIT / f"{UNIT}.ipynb").read_bytes())
    for number in range(30):
        source = f"Paragraph {number} is *long*. " + "word " * 1800
        released["cells"].append({"id": f"n{number}", "cell_type": "markdown", "source": source, "metadata": {}})
    put_submission(tmp_path, "ada", json.dumps(released).encode())
    recorded.grade(tmp_path)
    page = feedback_page(tmp_path, "ada").read_text()
    assert "Paragraph 0 is <em>long</em>" in page
    assert "Paragraph 29 is *long*" in page


def test_code_is_highlighted_but_not_in_a_fence_with_a_long_line():
    assert "<span" not in markdown2html(f"```ipython3\n{'a.' * 4000}\n```")
    for page in (markdown2html("```python\ndef f():\n    return 1\n```"), highlight_code("def f():\n    return 1")):
        assert '<span class="k">def</span>' in page


def test_markdown_is_markdown():
    assert "<strong>why</strong>" in markdown2html("This is **why** it is `a < b`.")
    assert "<code>a &lt; b</code>" in markdown2html("This is **why** it is `a < b`.")
    assert "a &lt; b" in markdown2html("Then a &lt; b.")


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_formula_of_a_unit_is_shown(unit):
    notebook = parse((RELEASE / unit / f"{unit}.ipynb").read_bytes())
    page = "".join(markdown2html(cell.text) for cell in notebook.cells if cell.cell_type == "markdown")
    assert "<math" in page
    assert "$" not in page
    assert not re.search(r"\\[a-zA-Z]", page)


@pytest.mark.parametrize(
    "latex",
    ["x_", "\\left( x", "x" * (LONGEST_FORMULA + 1), "\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\a", "\\newcommand{\\a}{x}\\a"],
)
def test_what_is_no_formula_is_shown_as_typed(latex):
    assert mathml(latex, "inline") == f"<code>${latex}$</code>"
