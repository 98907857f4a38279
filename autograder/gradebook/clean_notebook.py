"""Makes the notebook that nbgrader gets: the student's cells with the released notebook's metadata.

nbgrader trusts a submission's metadata: a duplicated grade_id, changed points or an unknown kernel stop it or change
a score. So only the text of the cells comes from the student, and only for cells that students may change. Everything
else that nbgrader reads comes from the release.

Files replace pictures and attachments in text cells. A picture in a text, as `data:image/png;base64,...`, may be a
million characters long. It would crowd out the text below it in all programs that cut texts.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import msgspec
import nbformat
from nbformat import NotebookNode

from .. import course
from ..course.cells import CARRIED, WrittenAnswer, edits, is_addition, is_training, likenesses, written_answers
from ..course.locked_cells import Edit
from ..course.nodes import copied, new_cell, truncate_for_storage
from ..course.notebook import CUT, RawCell, RawNotebook, UnreadableNotebook, cell_name, joined, parse
from ..formatting.rendering import DOWNLOADED, LEFT_OUT, SHOWN

PICTURES = "autograder_pictures"
"""Metadata key under which a cleaned notebook holds its files' contents, by name, until it is written."""
_MOST_FILES = 50
_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "png", b"GIF87a": "gif", b"GIF89a": "gif", b"\xff\xd8\xff": "jpg"}
"""File endings of raster pictures, by the bytes with which a file begins."""
_MOST_NAMES = 4_000
"""Maximum number of strings in a cell's attachments, each of which may be a name."""
_SHORTEST = 200
"""Minimum number of characters of data that are not base64 and become a file."""
_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}((?:;[\w.+=-]{1,80}){0,5}),([^\s)\"'<>]*+)")
_ATTACHED = re.compile(r"attachment:([^\s)\"'<>]+)")
_NAMES = rf"{SHOWN.pattern}|{DOWNLOADED.pattern}|{LEFT_OUT}"
_IMG = re.compile(rf"<img\b[^<>]{{0,1000}}?\bsrc\s{{0,9}}=\s{{0,9}}[\"']?({_NAMES})[\"']?[^<>]{{0,1000}}>", re.I)
_ALT = re.compile(r"\balt\s{0,9}=\s{0,9}[\"']([^\"'<>\[\]]{0,300})", re.I)


def _kind_of(content: bytes) -> str:
    """Return a raster picture's file ending, such as `png`; empty for other content."""
    is_webp = content.startswith(b"RIFF") and content[8:12] == b"WEBP"
    return "webp" if is_webp else next((kind for begins, kind in _BEGINNINGS.items() if content.startswith(begins)), "")


@dataclass
class _Files:
    """The files of one notebook, by name."""

    contents: dict[str, bytes] = field(default_factory=dict)
    _names: dict[bytes, str] = field(default_factory=dict)

    def add(self, content: bytes | None) -> str:
        """Return the name of the file with this content; LEFT_OUT if the content is not stored."""
        if not content or len(self.contents) >= _MOST_FILES:
            return self._names.get(content or b"", LEFT_OUT)
        if content not in self._names:
            number, kind = len(self.contents) + 1, _kind_of(content)
            self._names[content] = f"picture-{number}.{kind}" if kind else f"attachment-{number}.bin"
            self.contents[self._names[content]] = content
        return self._names[content]


def take_out(notebook: RawNotebook) -> dict[str, bytes]:
    """Replace each picture in a notebook's text cells by the name of a file, in place.

    Return the files' contents by name. Take time linear in the length of the texts.
    """
    files = _Files()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            continue
        text = cell.text
        attachments = _attachments(cell)
        if not attachments and "data:" not in text:
            continue
        names = {name: files.add(content) for name, content in attachments.items()}
        text = _DATA.sub(lambda match: _inline(match, files), text)
        text = _ATTACHED.sub(lambda match, names=names: names.get(unquote(match[1]), match[0]), text)  # type: ignore[misc]
        text = _IMG.sub(_as_markdown, text)
        unused = [name for name in names if f"({names[name]})" not in text and f": {names[name]}" not in text]
        cell.source = "\n\n".join([text, *(f"![{_bare(name)}]({names[name]})" for name in unused)])
        cell.attachments = msgspec.Raw(b"null")
    return files.contents


def put(node: Any, contents: dict[str, bytes]) -> None:
    """Store the files of a notebook in its metadata until it is written."""
    if contents:
        node.metadata[PICTURES] = {name: base64.b64encode(content).decode() for name, content in contents.items()}


def pop_files(node: Any) -> dict[str, bytes]:
    """Take the files of a notebook out of its metadata, and return them."""
    return {name: base64.b64decode(content) for name, content in node.metadata.pop(PICTURES, {}).items()}


def _attachments(cell: RawCell) -> dict[str, bytes | None]:
    """Return the contents of a cell's attachments by name; None for one that was cut."""
    raw = bytes(cell.attachments)
    if raw == b"null" or raw.count(b'"') > 2 * _MOST_NAMES:
        return {}
    try:
        attachments = msgspec.json.decode(raw, type=dict[str, dict[str, str | list[str] | None]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    texts = {name: joined(next(iter(kinds.values()), "") or "") for name, kinds in attachments.items()}
    return {name: _decoded(text) for name, text in texts.items() if name}


def _inline(match: re.Match[str], files: _Files) -> str:
    parameters, data = match.groups()
    if ";base64" in parameters.lower():
        return files.add(_decoded(data))
    return files.add(unquote_to_bytes(data)) if len(data) >= _SHORTEST else match[0]


def _decoded(data: str) -> bytes | None:
    """Decode a text in base64; return None if it was cut or is something else."""
    if data.endswith(CUT.decode()):
        return None
    try:
        content = unquote_to_bytes(data)
        return binascii.a2b_base64(content + b"=" * (-len(content) % 4))
    except (binascii.Error, ValueError):
        return None


def _as_markdown(match: re.Match[str]) -> str:
    alt = _ALT.search(match[0])
    return f"![{alt[1] if alt else ''}]({match[1]})"


def _bare(name: str) -> str:
    """Return an attachment's name, which a student chose, without markup, as the description of a picture."""
    return re.sub(r"[\[\]\\()<>`*_\n]", " ", name)[:300]


PUT_BACK = "# This cell was missing from the submitted notebook; grading has restored it.\n"

MOVED = "*[What was written here is in the answer to `{name}`.]*"
FOUND = "*[The answer was not written into this cell. It was found in {where}:]*\n\n{text}"

CHECK_LEFT_OUT = "[The check that this notebook contained was here. Grading does not use it.]"

ADDED_TO = "added_to"
"""Metadata key of a cell with lines that a student added to a locked cell; the value is the locked cell's name."""
DAMAGED = "damaged"
_PUT_BACK = "put_back"


def released(unit: str, class_folder: Path | None = None) -> Any:
    """Return a copy of the released notebook. Raises UnusableUnit if there is none."""
    path = course.released(unit, class_folder)
    if not path.is_file():
        raise course.UnusableUnit(f"{path} is not there: run `nbgrader generate_assignment {unit}`.")
    return copied(_released(path, path.stat().st_mtime_ns))


@lru_cache(maxsize=64)
def _released(path: Path, changed: int) -> Any:
    return nbformat.read(path, as_version=4)


def clean_or_stand_in(content: bytes | UnreadableNotebook, unit: str, class_folder: Path | None = None) -> Any:
    """Return the cleaned notebook; for a damaged one the released notebook, with the reason in its metadata."""
    submission = parse(content)
    if isinstance(submission, RawNotebook):
        return clean(submission, unit, class_folder)
    notebook = released(unit, class_folder)
    notebook.metadata["autograder"] = {DAMAGED: str(submission)}
    return notebook


def damage(node: Any) -> UnreadableNotebook | None:
    """Return why the file that this notebook replaces could not be read; None for a student's own notebook."""
    reason = node.metadata.get("autograder", {}).get(DAMAGED)
    return UnreadableNotebook(reason) if isinstance(reason, str) else None


def clean(submission: RawNotebook, unit: str, class_folder: Path | None = None) -> Any:
    """Return a valid notebook with the student's cells in their order, which gets the same grade as the submission.

    - Of a duplicated cell, the last copy keeps the name; both run, unless the cell is a check.
    - Lines that were added to a locked cell get a cell of their own.
    - Deleted cells that nbgrader needs for a score are added at the end, where they change no other cell's number.
    - A written answer moves into its question's cell, because nbgrader lets a person grade only that cell.
    - Pictures in text cells become files: see `pictures`.
    - Texts that are too long to be run or read are cut.
    """
    notebook = released(unit, class_folder)
    put(notebook, take_out(submission))
    named = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    its = course.unit(unit, class_folder)
    found = likenesses(submission, its)
    edited = edits(submission, its, found)
    answers = written_answers(submission, its, class_folder)
    moved = {place: name for name, answer in answers.items() for place in answer.moved}
    present = {likeness.name for likeness in found}
    cells: list[Any] = []
    number = 0
    for position, (raw, likeness) in enumerate(zip(submission.cells, found, strict=True)):
        original = named.get(likeness.name)
        question = moved.get(position)
        if question and question in present:
            cells.append(new_cell("markdown", f"cell-{position + 1}", MOVED.format(name=question)))
        elif question:  # its own cell was deleted, and this one takes its place
            present.add(question)
            cells.append(_with_text(named[question], _answer(answers[question], named[question])))
        elif original is None or likeness.is_copy:
            cells.append(_unnamed(raw, position + 1, named.get(raw.grade_id)))
            if is_training(raw, likeness, its):
                cells[-1].metadata["autograder"] = {"training": True}
            if is_addition(raw, likeness, its):
                cells[-1].metadata["autograder"] = {ADDED_TO: raw.autograder.added_to}
        else:
            is_answer = likeness.name in answers
            text = _answer(answers[likeness.name], original) if is_answer else _text(raw, original)
            cells.append(_with_text(original, text))
        number += not is_addition(raw, likeness, its)
        edit = edited.get(position, Edit())
        if edit.has_changes:
            cells[-1].metadata.setdefault("autograder", NotebookNode())["changed"] = True
        if edit.added:
            addition = new_cell("code", f"added-{position + 1}", edit.added)
            addition.metadata["autograder"] = {ADDED_TO: cell_name(number, "" if likeness.is_copy else likeness.name)}
            cells.insert(len(cells) - (likeness.name in its.check_cells), addition)
    for grade_id, original in named.items():
        if grade_id not in present and original.metadata["nbgrader"]["grade"]:
            if original.cell_type == "code":
                original.source = PUT_BACK + original.source
            elif grade_id in answers:
                original.source = _answer(answers[grade_id], original)
            original.metadata["autograder"] = {_PUT_BACK: True}
            cells.append(original)
    truncate_for_storage(cells)
    notebook.cells = cells
    return notebook


def _answer(answer: WrittenAnswer, original: Any) -> str:
    """Return the text of a question's cell: the answer, or the released text, which nbgrader grades as blank."""
    if answer.found_in:
        return FOUND.format(where=answer.found_in, text=answer.text)
    return answer.text or str(original.source)


def without_put_back(notebook: Any) -> Any:
    """Return the notebook without the cells that `clean` added, so with no more cells than were submitted."""
    cells = [cell for cell in notebook.cells if not cell.metadata.get("autograder", {}).get(_PUT_BACK)]
    return NotebookNode({**notebook, "cells": cells})


def _with_text(original: Any, text: str) -> Any:
    cell = new_cell(original.cell_type, original.id, text)
    cell.metadata = original.metadata
    return cell


def _unnamed(raw: RawCell, number: int, claimed: Any) -> Any:
    """Return a cell without grade_id, for a student's cell that stands for no released cell.

    claimed: the released cell whose grade_id the student's cell has nevertheless, because it is a copy or has another
    type. If the released cell is locked, the new cell has its text, and runs only if grading runs the locked cell.
    """
    if raw.grade_id == CARRIED:
        return new_cell("raw", f"cell-{number}", CHECK_LEFT_OUT)
    kind = raw.cell_type if raw.cell_type in ("code", "markdown") else "raw"
    is_of_type = claimed is not None and claimed.cell_type == kind
    if claimed is None or (kind == "code" and not is_of_type):
        return new_cell(kind, f"cell-{number}", raw.text)
    about = claimed.metadata["nbgrader"]
    is_run = is_of_type and not about["grade"]
    return new_cell(kind if is_run or about["solution"] else "raw", f"cell-{number}", _text(raw, claimed))


def _text(raw: RawCell, original: Any) -> str:
    """Return the student's text if the released cell is for an answer, else the released text."""
    return raw.text if original.metadata["nbgrader"]["solution"] else str(original.source)
