"""Students' answers, output and names are text on all pages, in every way there is to write."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions import formgrader
from traitlets.config import Config

from autograder.course.nodes import new_output
from autograder.formatting.rendering import MATHML_ATTRIBUTES, MATHML_ELEMENTS, markdown2html, mathml
from autograder.gradebook.clean_notebook import released
from autograder.gradebook.lateness import Deadline
from autograder.reports import pages
from autograder.reports.pages import escape_markdown
from tests.recorded_class import UNIT

BOOTSTRAP = Path(formgrader.__file__).parent / "static" / "node_modules" / "bootstrap" / "dist" / "css"
CLASSES = "full-credit modal-backdrop fade"
ELEMENT = f'<div class="{CLASSES}" id="test_encode" style="position:fixed" onclick="x()">mallory</div>'
PROSE = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "i", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "div", "span"),
    *("details", "summary"),
}
# Classes are pygments' own, of two or three characters, and the box around code.
CLASS = re.compile(r"highlight|[a-z][a-z0-9]{0,2}")

PIECES = st.sampled_from([
    "<div class=x id=y>", "</div>", "<img src=x onerror=x()>", "<script>", "<!--", "-->", "<svg/onload=x()>",
    "<a href='javascript:x()'>", "<form action=x>", "<style>", "<math><mi href=x>", "&lt;b id=x&gt;", "&#60;b&#62;",
    "[x](http://e.example 'y')", "[x][y]", "\n[y]: http://e.example 'z'\n", "![x](data:x)", "<http://e.example>",
    "https://e.example/x", "<m@e.example>", "mailto:m@e.example", "[^1]", "\n[^1]: x\n", "| a | b |\n|:-|-:|\n|", "|",
    "\n\n", "\n", " ", "    ", "\t", "# ", "> ", "- ", "- [ ] ", "1. ", "9. ", "***", "---", "===", "~~", ": ", "\\",
    "`", "```", "```raw\nToken.A b\" id=x\t'y'\n", "```python\n", "```mermaid\n", "```a-class b\n", "~~~", "\n```\n",
    "$", "$$", "\\\\(", "\\\\)", "\\\\[", "\\\\]", "\\begin{matrix}", "\\end{matrix}", "{", "}", "^", "_", "&",
    "\\class{x y}{z}", "\\id{x}{y}", "\\cssId{x}{y}", "\\style{position:fixed}{x}", "\\href{javascript:x()}{y}",
    "\\data{x}{y}", '\\color{x" id=y}', "\\textcolor{red}{x}", "\\rule{9em}{9em}", "\\text{<b id=x>}", "\\unicode{60}",
])  # fmt: skip
HOSTILE = st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join)


def is_text(page):
    """No element of the page acts, points or carries a name."""
    for element in BeautifulSoup(page, "html.parser").find_all():
        attributes = dict(element.attrs)
        if element.name in MATHML_ELEMENTS:
            assert attributes.keys() <= MATHML_ATTRIBUTES, element
            continue
        assert element.name in PROSE, element
        assert all(CLASS.fullmatch(name) for name in attributes.pop("class", [])), element
        assert re.fullmatch(r"\d*", attributes.pop("start", "")), element
        assert attributes.pop("scope", "col") == "col", element
        assert not attributes, element


@given(HOSTILE)
def test_markdown_becomes_structure_and_text(written):
    is_text(markdown2html(written))


ATTACK = "<img src=x onerror=alert(1)>"
ATTACKS = [
    ATTACK, f"<div>\n{ATTACK}\n</div>", f"`{ATTACK}`", f"# {ATTACK}", f"```\n{ATTACK}\n```",
    f"```mermaid\n{ATTACK}\n```", f"```python\n{ATTACK}\n```", f"![{ATTACK}](x)", f"[{ATTACK}](x)", f"![]({ATTACK})",
    '![](x"onerror="alert(1))', "&lt;img src=x onerror=alert(1)&gt;", f"$\\text{{{ATTACK}}}$",
    "$\\text{&lt;img src=x onerror=alert(1)&gt;}$", f"$$\\frac{{{ATTACK}$$",
    f"\\begin{{aligned}}{ATTACK}\\end{{aligned}}", f"\\begin{{x}}{ATTACK}",
    f"| {ATTACK} |\n|---|\n| {ATTACK} |", "[x](javascript:alert(1))", "<javascript:alert(1)>",
    "$\\href{javascript:alert(1)}{x}$", "![plot](attachment:plot.png)", "![plot](https://elsewhere.example/plot.png)",
    f"```raw\nToken.A {CLASSES}\t'mallory'\nToken.A\" id=\"x\t'mallory'\n```",
]  # fmt: skip


@pytest.mark.parametrize("written", ATTACKS)
def test_an_attack_is_text(written):
    is_text(markdown2html(written))


@given(HOSTILE)
def test_a_formula_is_made_of_what_mathml_core_knows(latex):
    for element in BeautifulSoup(mathml(latex, "inline"), "html.parser").find_all():
        assert element.name in MATHML_ELEMENTS | {"code"}
        assert element.attrs.keys() <= MATHML_ATTRIBUTES, element


@pytest.mark.parametrize(
    "latex",
    [
        f"\\class{{{CLASSES}}}{{x}}",
        "\\id{test_encode}{x}",
        "\\cssId{test_encode}{x}",
        "\\style{position:fixed}{x}",
        "\\href{https://mallory.example}{x}",
        "\\fcolorbox{red}{a b}{x}",
    ],
)
def test_a_formula_carries_nothing_that_formgrader_looks_for(latex):
    page = mathml(latex, "inline")
    assert not re.search(r"<[^>]* (class|id|style|href|border-color)=", page)


def test_a_formula_looks_as_ever():
    assert 'mathcolor="red"' in mathml("\\color{red}x", "inline")
    assert '<mspace width="1em" />' in mathml("a\\quad b", "inline")
    assert 'columnalign="right"' in mathml("\\begin{array}{rl}a&b\\end{array}", "block")


def test_a_folded_box_stays_and_other_html_is_text():
    page = markdown2html("<details><summary>What is tested</summary>\n\n- one\n\n</details>\n")
    box = BeautifulSoup(page, "html.parser").details
    assert (box.summary.text, box.li.text) == ("What is tested", "one")
    for written in ("<details open>", "<details><summary><b>x</b></summary>", '<summary onclick="x">'):
        assert not BeautifulSoup(markdown2html(f"{written}\n\ntext\n"), "html.parser").find_all(["details", "summary"])


def test_a_link_shows_where_it_leads():
    page = markdown2html("[here](https://e.example/x) and <https://f.example> and https://g.example")
    assert page == "<p>here (https://e.example/x) and https://f.example and https://g.example</p>\n"


def test_what_stands_in_for_a_formula_cannot_be_written():
    first, second = (markdown2html(f"$x$ {number}-0; 0; -0;") for number in ("0" * 32, "f" * 32))
    assert first.count("<math") == second.count("<math") == 1


@given(HOSTILE.map(lambda text: "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")))
def test_a_sentence_of_the_kits_is_text_whatever_it_names(name):
    message = f"`{name}` was graded; the notebook should be called `{UNIT}.ipynb`."
    page = BeautifulSoup(markdown2html(f"> **Marked.** {escape_markdown(message)}"), "html.parser")
    assert {element.name for element in page.find_all()} <= {"blockquote", "p", "strong", "code"}
    assert not any(element.attrs for element in page.find_all())
    said = page.get_text()
    assert "".join(said.replace("`", "").split()) == "".join(f"Marked. {message}".replace("`", "").split())
    assert page.find_all("code")[-1].text == f"{UNIT}.ipynb"


def test_a_plain_name_is_code_in_the_kits_note():
    message = "`homework (final) v2.ipynb` was graded; the notebook should be called `self_attention.ipynb`."
    assert escape_markdown(message) == message


def page_of(kind, node):
    """The page as `nbgrader generate_feedback` or formgrader makes it."""
    config = Config(HTMLExporter={"template_name": kind, "extra_template_basedirs": pages.templates()})
    config.HTMLExporter.extra_template_paths = [str(BOOTSTRAP)]
    config.HTMLExporter.template_file = pages.PAGE
    config.HTMLExporter.filters = pages.filters(pages.of_this_process)
    about = {
        "nbgrader": {"notebook": UNIT, "score": 0.0, "max_score": 0.0, "late_penalty": 0.0, "deadline": Deadline()},
        "index": 0,
        "total": 1,
    }
    return HTMLExporter(config=config).from_notebook_node(node, about)[0]


@pytest.mark.parametrize("kind", ["feedback", "formgrade"])
@pytest.mark.parametrize(
    "cell",
    [
        {"cell_type": "raw", "source": ELEMENT, "metadata": {"raw_mimetype": "text/html"}},
        {"cell_type": "code", "outputs": [new_output("stream", name="stdout", text=f"\x1b[1;31m{ELEMENT}\x1b[0m")]},
        {"cell_type": "code", "outputs": [new_output("stream", name="stderr", text=f"\x1b[38;2;1;2;3m{ELEMENT}")]},
        {"cell_type": "code", "outputs": [new_output("error", ename="E", evalue="", traceback=[f"\x1b[41m{ELEMENT}"])]},
        *(
            {"cell_type": "code", "outputs": [new_output("display_data", data={kind: ELEMENT, "text/plain": ELEMENT})]}
            for kind in (
                *("text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript", "text/plain"),
                "application/vnd.jupyter.widget-view+json",
            )
        ),
    ],
    ids=lambda cell: cell["outputs"][0]["output_type"] if "outputs" in cell else cell["cell_type"],
)
def test_cells_and_outputs_are_text_on_both_pages(kind, cell):
    node = released(UNIT)
    node.cells = [nbformat.from_dict({"id": "x", "source": "", "metadata": {}, "execution_count": None, **cell})]
    page = BeautifulSoup(page_of(kind, node), "html.parser").select_one("#notebook-container")
    assert ELEMENT in page.text
    assert not page.select(".full-credit, [id=test_encode], [onclick], [style], [class*=ansi]")
