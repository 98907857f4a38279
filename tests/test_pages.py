"""Students' markdown on the pages that are read: it stays text, and formulas are MathML."""

import re

import pytest

from autograder import course
from autograder.nbgrader_plugin.formulas import LONGEST, mathml
from autograder.nbgrader_plugin.pages import markdown2html
from autograder.notebook import parse

ATTACK = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    "written",
    [
        ATTACK,
        f"<div>\n{ATTACK}\n</div>",
        f"`{ATTACK}`",
        f"# {ATTACK}",
        f"```\n{ATTACK}\n```",
        f"```mermaid\n{ATTACK}\n```",
        f"```python\n{ATTACK}\n```",
        f"![{ATTACK}](x)",
        f"[{ATTACK}](x)",
        f"![]({ATTACK})",
        '![](x"onerror="alert(1))',
        "&lt;img src=x onerror=alert(1)&gt;",
        f"$\\text{{{ATTACK}}}$",
        "$\\text{&lt;img src=x onerror=alert(1)&gt;}$",
        f"$$\\frac{{{ATTACK}$$",
        f"\\begin{{aligned}}{ATTACK}\\end{{aligned}}",
        f"\\begin{{x}}{ATTACK}",
        f"| {ATTACK} |\n|---|\n| {ATTACK} |",
    ],
)
def test_html_stays_text(written):
    page = markdown2html(written)
    assert "<img" not in page
    assert not re.search("<[^>]*onerror", page)


@pytest.mark.parametrize(
    "written", ["[x](javascript:alert(1))", "<javascript:alert(1)>", "$\\href{javascript:alert(1)}{x}$"]
)
def test_no_link_runs_a_script(written):
    assert not re.search("href=.?javascript", markdown2html(written))


@pytest.mark.parametrize("written", ["![plot](attachment:plot.png)", "![plot](https://elsewhere.example/plot.png)"])
def test_a_picture_is_named_and_not_fetched(written):
    page = markdown2html(written)
    assert "plot" in page
    assert "src=" not in page


def test_markdown_is_markdown():
    assert "<strong>why</strong>" in markdown2html("This is **why** it is `a < b`.")
    assert "<code>a &lt; b</code>" in markdown2html("This is **why** it is `a < b`.")
    assert "a &lt; b" in markdown2html("Then a &lt; b.")


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_formula_of_a_unit_is_shown(unit):
    notebook = parse((course.RELEASE / unit / f"{unit}.ipynb").read_bytes())
    text = "\n\n".join(cell.text for cell in notebook.cells if cell.cell_type == "markdown")
    page = markdown2html(text)
    assert "<math" in page
    assert "$" not in page
    assert not re.search(r"\\[a-zA-Z]", page)


@pytest.mark.parametrize(
    "latex",
    [
        "x_",
        "\\left( x",
        "x" * (LONGEST + 1),
        "\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\a",
        "\\newcommand{\\a}{x}\\a",
    ],
)
def test_what_is_no_formula_is_shown_as_typed(latex):
    assert mathml(latex, "inline") == f"<code>${latex}$</code>"
