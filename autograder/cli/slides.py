"""`autograder slides`: a unit's text, predictions and cell outputs as slides for the teacher, without any code.

`execute` runs the unit's notebook with its solutions, `compose` distributes text and outputs over slides, and
`page` has nbconvert write them into one HTML file, which loads nothing from the network.
"""

import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from .. import UserError, course
from ..build.source_notebook import HOW_TO_HAND_IN, QUESTION, LessonCall, called_in, states_points
from ..course.notebook import printable
from ..formatting.rendering import markdown2html
from ..student_check.unit_data import LESSON, data_file, read_unit
from .console import (
    STANDARD_OUTPUT,
    Course,
    UnitName,
    check_result,
    class_folder,
    path_option,
    print_lines,
    write_result,
)

_FOLDER = "slides"
"""Folder of slides, in the folder of the course or class."""
_TEMPLATE = Path(__file__).with_name("slides.html.j2")
_SHARP_FIGURES = "%matplotlib inline\n%config InlineBackend.figure_formats = ['retina']"
_CELL_SECONDS = 600
"""Time limit for a cell, in seconds. A training cell may take half a minute."""
_CALLS_CHECK = "check()"
_SLIDE_LINES = 16
_FIGURE_LINES = 11
_PNG, _HTML = "image/png", "text/html"
_HEADING = re.compile(r"##? .+")
_LIST = re.compile(r"(?:[-*+]|\d+[.)])\s")
_ANNOUNCES = (":", ",", " are", " is", " be")


class NotebookFailed(UserError):
    """The notebook cannot be run; the message names the cell and the reason."""


@dataclass
class Slide:
    """A slide's heading and cells: text, and code cells of which only the outputs are shown."""

    heading: str
    kind: str = "text"
    """The slide's class in the HTML: title, text, question or answer."""
    cells: list[NotebookNode] = field(default_factory=list)


def slides(
    unit: UnitName,
    output: Annotated[
        Path | None,
        path_option("FILE", "The file to write, `-` for standard output; COURSE/slides/UNIT.html if not given."),
    ] = None,
    course_folder: Course = None,
) -> None:
    """Write slides for teaching a unit: its text, its predictions, and the output of its cells with the answers."""
    root = class_folder(course_folder).resolve()
    file = output or root / _FOLDER / f"{unit}.html"
    check_result(file, makes_folder=True)
    course.unit(unit, root)
    cells = nbformat.read(course.source(unit, root), as_version=4).cells
    execute(cells, course.source(unit, root), course.accompanying_files(unit, root))
    deck = compose(cells, _predictions(course.released(unit, root)))
    write_result(file, page(deck, unit).encode(), makes_folder=True)
    if file != STANDARD_OUTPUT:
        print_lines([file])


def execute(cells: Sequence[NotebookNode], notebook: Path, files: Sequence[Path]) -> None:
    """Run a notebook's code cells, but for the checks, guesses and hints, and store the outputs in the cells.

    The kernel is this Python's. It runs in a copy of the notebook's folder.

    notebook: where the cells are from.
    files: the student check and its data, which git does not track in source/.
    Raises NotebookFailed.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.client import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    code = [cell for cell in cells if cell.cell_type == "code" and not _is_left_out(cell)]
    code.insert(0, new_code_cell(_SHARP_FIGURES, id="figures"))
    # Without folders of kernels it is this environment's own, not one of the same name in somebody's home.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    silent = logging.Logger("nbclient", logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="slides-") as folder:
        copy = shutil.copytree(notebook.parent, Path(folder) / "unit")
        for file in files:
            shutil.copy(file, copy)
        client = NotebookClient(
            new_notebook(cells=code), km=manager, timeout=_CELL_SECONDS, shutdown_kernel="immediate", log=silent
        )
        environment = {**os.environ, "IPYTHONDIR": str(Path(folder) / "ipython")}
        null = subprocess.DEVNULL
        try:
            client.execute(cleanup_kc=True, cwd=str(copy), env=environment, stdout=null, stderr=null)
        except (CellExecutionError, CellTimeoutError, RuntimeError) as error:
            number = max(client.code_cells_executed - 1, 0)
            reason = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error).strip()
            raise NotebookFailed(
                f"Cell {number} (`{printable(code[number].id)}`) of {notebook} fails with the answers filled in: "
                f"{printable(reason.partition(chr(10))[0])}."
            ) from None


def compose(cells: Sequence[NotebookNode], predictions: Mapping[str, Any]) -> list[Slide]:
    """Distribute a unit's text and outputs over slides.

    Each heading begins a slide, and each guess takes two: the question and the answer.

    Points, written questions, how to submit, and text that only leads to an exercise are left out.

    cells: the notebook's, with outputs.
    predictions: the released answer to each `guess()`, by the guess's name.
    """
    deck, heading, pieces = list[Slide](), "", list[NotebookNode]()
    for cell, following in zip(cells, [*cells[1:], new_code_cell()], strict=True):
        if cell.cell_type == "markdown" and not _is_left_out(cell) and not _only_leads_to(following, cell.source):
            paragraphs = [text for text in split_paragraphs(cell.source) if not states_points(text)]
            for text in _introduction(paragraphs) if cell is cells[0] else paragraphs:
                if _HEADING.fullmatch(text):
                    deck += _paginate(heading, pieces)
                    heading, pieces = text, []
                else:
                    pieces.append(new_markdown_cell(text))
            if cell is cells[0]:
                deck.append(Slide(heading, "title", pieces))
                pieces = []
        elif questions := [call.name for call in _calls(cell) if call.function == "guess"]:
            question = _without_typing(pieces[-1].source) if pieces else ""
            deck += _paginate(heading, pieces[:-1])
            deck.append(Slide(heading, "question", [new_markdown_cell(question)]))
            for prediction in (predictions[name] for name in questions if name in predictions):
                answer = f"{question}\n\n**{_in_words(prediction['answer'])}**\n\n{prediction['because']}"
                deck.append(Slide(heading, "answer", [new_markdown_cell(answer)]))
            pieces = []
        elif cell.source.strip() == _CALLS_CHECK:
            heading, pieces = "", []
        elif outputs := _visible(cell):
            pieces.append(new_code_cell(outputs=outputs, metadata={"alt": heading.lstrip("# ")}))
        elif cell.cell_type == "code" and pieces and pieces[-1].source.endswith(":"):
            pieces.pop()  # it announces code, which slides leave out
    return [*deck, *_paginate(heading, pieces)]


def page(deck: Sequence[Slide], unit: str) -> str:
    """Return the slides as an HTML page. Without its script they stand below each other."""
    from nbconvert.exporters import HTMLExporter

    for slide in deck:
        slide.cells.insert(0, new_markdown_cell(slide.heading))
        slide.cells[0].metadata["slide"] = slide.kind
    exporter = HTMLExporter(
        template_name="basic",
        template_file=str(_TEMPLATE),
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        filters={"markdown2html": markdown2html},
    )
    exporter.display_data_priority = [_PNG, "text/plain"]
    notebook = new_notebook(cells=[cell for slide in deck for cell in slide.cells])
    title = deck[0].heading.lstrip("# ") if deck else unit
    html: str = exporter.from_notebook_node(notebook, {"metadata": {"name": title}})[0]
    return html


def _predictions(released: Path) -> dict[str, Any]:
    """Return the answers to a unit's guesses. released: its notebook for students."""
    file = released.with_name(data_file(released.stem))
    try:
        answers: dict[str, Any] = read_unit(file).get(LESSON, {}).get("guesses", {}) if file.exists() else {}
    except (OSError, ValueError, AttributeError) as error:
        raise NotebookFailed(f"{file} cannot be read: {error}. `autograder build` writes it.") from None
    return answers


def _calls(cell: NotebookNode) -> list[LessonCall]:
    return list(called_in(cell.source)) if cell.cell_type == "code" else []


def _is_left_out(cell: NotebookNode) -> bool:
    """Return whether a cell is a check, a guess, a hint, a written question, its answer, or on tests or submitting."""
    return (
        bool(cell.metadata.get("nbgrader", {}).get("grade"))
        or cell.id == HOW_TO_HAND_IN
        or cell.id.startswith(QUESTION)
        or cell.source.startswith("<details>")  # what is tested
        or cell.source.strip() == _CALLS_CHECK
        or any(call.function in ("guess", "hint") for call in _calls(cell))
    )


def _only_leads_to(cell: NotebookNode, text: str) -> bool:
    """Return whether a text only introduces the exercise in a cell: it has no heading, formula or table."""
    is_exercise = cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    return bool(is_exercise) and not re.search(r"^#|\$\$|^\|", text, re.M)


def _visible(cell: NotebookNode) -> list[NotebookNode]:
    """Return what a cell printed and drew, without warnings and HTML."""
    return [
        output
        for output in cell.get("outputs", ())
        if output.get("name") == "stdout" or _PNG in (data := output.get("data", {})) or (data and _HTML not in data)
    ]


def split_paragraphs(text: str) -> list[str]:
    """Split a text at its blank lines, except for those within a block of code or a formula."""
    blocks = re.split(r"(```.*?```|\$\$.*?\$\$)", text, flags=re.S)
    parts = [[part] if number % 2 else re.split(r"\n\s*\n", part) for number, part in enumerate(blocks)]
    return [paragraph.strip() for part in parts for paragraph in part if paragraph.strip()]


def _introduction(paragraphs: list[str]) -> list[str]:
    """Return what the first cell says about the unit; how to work with the notebook follows the cell's first list."""
    lists = [number for number, text in enumerate(paragraphs) if _LIST.match(text)]
    return paragraphs[: lists[0] + 1 if lists else 2]


def _without_typing(question: str) -> str:
    """Return a question without the sentences on how to type the guess."""
    before, dots, _ = question.partition("`...`")
    return question[: max(before.rfind(end) for end in ".?!") + 1] if dots else question


def _in_words(answer: Any) -> str:
    return {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else str(answer)


def _paginate(heading: str, pieces: Sequence[NotebookNode]) -> list[Slide]:
    """Put a section's pieces on as few slides as hold them. A sentence that announces a piece stays with that piece."""
    deck, group = [Slide(heading)], list[NotebookNode]()
    for piece in pieces:
        group.append(piece)
        if piece.source.endswith(_ANNOUNCES) and piece is not pieces[-1]:
            continue
        if deck[-1].cells and sum(map(_lines, [*deck[-1].cells, *group])) > _SLIDE_LINES:
            deck.append(Slide(heading))
        deck[-1].cells += group
        group = []
    return deck if pieces else []


def _lines(piece: NotebookNode) -> float:
    """Estimate the lines of a slide that a piece takes."""
    if piece.cell_type == "markdown":
        return 2 + 1.4 * float(piece.source.count("\n"))
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in piece.outputs]
    figures = sum(_PNG in output.get("data", {}) for output in piece.outputs)
    return float(_FIGURE_LINES * figures + sum(1.5 + text.count("\n") for text in texts))
