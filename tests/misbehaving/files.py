"""Files that are no right notebooks: damaged, forged, or made to be expensive."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .case import CELL_FAILED, DAMAGED, FAILED, RIGHT, TARGET, UNHARMED, UNREADABLE, Must, handed_in

Change = Callable[[dict[str, Any]], None]


def _changed(right: bytes, change: Change) -> bytes:
    notebook = json.loads(right)
    change(notebook)
    return json.dumps(notebook).encode()


def _cell(notebook: dict[str, Any], grade_id: str) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


@handed_in(DAMAGED, speaks_alone=True)
def empty(right: bytes, path: Path) -> bytes | None:
    """An empty file."""
    return b""


@handed_in(DAMAGED, speaks_alone=True)
def cut_off(right: bytes, path: Path) -> bytes | None:
    """The first half of a notebook."""
    return right[: len(right) // 2]


@handed_in(DAMAGED, speaks_alone=True)
def a_web_page(right: bytes, path: Path) -> bytes | None:
    """A page that asks to sign in."""
    return b"<!doctype html><title>Sign in</title>"


@handed_in(DAMAGED, speaks_alone=True)
def zeros(right: bytes, path: Path) -> bytes | None:
    """A file of zeros, as a full disk leaves them."""
    return bytes(len(right))


@handed_in(DAMAGED, speaks_alone=True)
def another_encoding(right: bytes, path: Path) -> bytes | None:
    """A notebook in UTF-16."""
    return right.decode().encode("utf-16")


@handed_in(DAMAGED, speaks_alone=True)
def not_an_object(right: bytes, path: Path) -> bytes | None:
    """JSON that is a list."""
    return b"[1, 2, 3]"


@handed_in(DAMAGED, speaks_alone=True)
def nested_too_deeply(right: bytes, path: Path) -> bytes | None:
    """A hundred thousand brackets."""
    return b'{"nbformat": 4, "cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@handed_in(DAMAGED, speaks_alone=True)
def enormous_number(right: bytes, path: Path) -> bytes | None:
    """A format number of a million digits."""
    return b'{"cells": [], "nbformat": ' + b"9" * 1_000_000 + b"}"


@handed_in(DAMAGED, speaks_alone=True)
def no_cells(right: bytes, path: Path) -> bytes | None:
    """A notebook without cells."""
    return _changed(right, lambda n: n.update(cells=[]))


@handed_in(DAMAGED, speaks_alone=True)
def cells_of_a_wrong_type(right: bytes, path: Path) -> bytes | None:
    """Cells that are numbers."""
    return _changed(right, lambda n: n.update(cells=[1, 2]))


@handed_in(DAMAGED, speaks_alone=True)
def an_old_format(right: bytes, path: Path) -> bytes | None:
    """Format 3."""
    return _changed(right, lambda n: n.update(nbformat=3))


@handed_in(DAMAGED, speaks_alone=True)
def too_large(right: bytes, path: Path) -> bytes | None:
    """A notebook with twenty megabytes of outputs."""
    return right[:-2] + b" " * (20 << 20) + right[-2:]


@handed_in(UNHARMED, speaks_alone=True)
def sixty_megabytes_of_outputs(right: bytes, path: Path) -> bytes | None:
    """A notebook that is all outputs, in which nothing is wrong."""
    picture = '{"output_type": "display_data", "data": {"image/png": "' + "iVBO" * (15 << 20) + '"}, "metadata": {}}'
    return right.replace(b'"outputs": []', b'"outputs": [' + picture.encode() + b"]", 1)


@handed_in(DAMAGED, speaks_alone=True)
def outputs_that_never_end(right: bytes, path: Path) -> bytes | None:
    """Twenty million brackets where the outputs should be."""
    return right.replace(b'"outputs": []', b'"outputs": ' + b"[" * 20_000_000, 1)


@handed_in(DAMAGED)
def a_file_with_holes(right: bytes, path: Path) -> bytes | None:
    """A file of a terabyte that takes no place."""
    with path.open("wb") as file:
        file.truncate(1 << 40)
    return None


@handed_in(UNREADABLE)
def a_link_to_the_gradebook(right: bytes, path: Path) -> bytes | None:
    """A link in the place of the file."""
    path.symlink_to(path.parents[1] / "instructor" / "gradebook.db")
    return None


@handed_in(UNREADABLE)
def a_folder(right: bytes, path: Path) -> bytes | None:
    """A folder in the place of the file."""
    path.mkdir()
    return None


@handed_in(UNREADABLE)
def a_pipe(right: bytes, path: Path) -> bytes | None:
    """A pipe, from which reading never ends."""
    os.mkfifo(path)
    return None


@handed_in(UNHARMED, speaks_alone=True)
def other_points(right: bytes, path: Path) -> bytes | None:
    """Gives its exercises a thousand points each."""

    def change(notebook: dict[str, Any]) -> None:
        for cell in notebook["cells"]:
            cell["metadata"].get("nbgrader", {}).update(points=1000, grade=True, solution=True, locked=False)

    return _changed(right, change)


@handed_in(FAILED, speaks_alone=True)
def an_edited_check(right: bytes, path: Path) -> bytes | None:
    """A wrong answer, and a check that says it is right."""

    def change(notebook: dict[str, Any]) -> None:
        _cell(notebook, TARGET)["source"] = f"def {TARGET}(weights, inputs):\n    return weights"
        check = _cell(notebook, f"test_{TARGET}")
        check["source"] = "2.0"
        check["outputs"] = [
            {"output_type": "execute_result", "data": {"text/plain": "2.0"}, "execution_count": 1, "metadata": {}}
        ]

    return _changed(right, change)


@handed_in(UNHARMED, speaks_alone=True)
def checks_deleted(right: bytes, path: Path) -> bytes | None:
    """Deletes every check, without which stock nbgrader gives no points."""

    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"] = [
            cell
            for cell in notebook["cells"]
            if not cell["metadata"].get("nbgrader", {}).get("grade_id", "").startswith("test_")
        ]

    return _changed(right, change)


@handed_in(FAILED, speaks_alone=True)
def a_check_of_its_own(right: bytes, path: Path) -> bytes | None:
    """A second grade cell of the same name that gives full points."""

    def change(notebook: dict[str, Any]) -> None:
        _cell(notebook, TARGET)["source"] = f"def {TARGET}(weights, inputs):\n    return weights"
        forged = json.loads(json.dumps(_cell(notebook, f"test_{TARGET}")))
        notebook["cells"].append({**forged, "id": "forged", "source": "2.0"})

    return _changed(right, change)


@handed_in(UNHARMED, speaks_alone=True)
def instructors_cells_edited(right: bytes, path: Path) -> bytes | None:
    """Puts an exit into every cell that is not the student's."""

    def change(notebook: dict[str, Any]) -> None:
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("locked"):
                cell["source"] = "import os; os._exit(0)"

    return _changed(right, change)


@handed_in(UNHARMED, speaks_alone=True)
def strange_metadata(right: bytes, path: Path) -> bytes | None:
    """Metadata of wrong types everywhere."""

    def change(notebook: dict[str, Any]) -> None:
        notebook["metadata"] = {"kernelspec": {"name": "../../bin/sh", "language": 3}, "autograder": {"damaged": "yes"}}
        for number, cell in enumerate(notebook["cells"]):
            cell["id"] = "the same"
            if "nbgrader" not in cell["metadata"]:
                cell["metadata"] = [None, {"nbgrader": 3}, {"nbgrader": {"grade_id": 7}}][number % 3]

    return _changed(right, change)


@handed_in(UNHARMED, speaks_alone=True)
def attachments_and_outputs(right: bytes, path: Path) -> bytes | None:
    """Outputs that are scripts, and megabytes of them."""

    def change(notebook: dict[str, Any]) -> None:
        script = {
            "output_type": "display_data",
            "data": {"text/html": "<script>alert(1)</script>" * 10_000},
            "metadata": {},
        }
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = [script]

    return _changed(right, change)


@handed_in(CELL_FAILED, speaks_alone=True)
def a_cell_of_a_megabyte(right: bytes, path: Path) -> bytes | None:
    """A cell with more text than anyone writes."""
    return _changed(right, lambda n: _cell(n, TARGET).update(source=RIGHT + "# more\n" * 200_000))


@handed_in(UNHARMED, speaks_alone=True)
def a_cell_of_empty_lines(right: bytes, path: Path) -> bytes | None:
    """A cell of a million line ends, in which a careless search for definitions never ends."""
    cell = {"cell_type": "code", "id": "empty", "metadata": {}, "outputs": [], "execution_count": None}
    return _changed(right, lambda n: n["cells"].append({**cell, "source": "\n" * 190_000}))


@handed_in(Must("cells_failed", {}), speaks_alone=True)
def a_thousand_cells(right: bytes, path: Path) -> bytes | None:
    """A thousand cells of its own, each of which fails."""

    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"] += [
            {
                "cell_type": "code",
                "id": f"n{i}",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "source": "1 / 0",
            }
            for i in range(1000)
        ]

    return _changed(right, change)


@handed_in(UNHARMED, speaks_alone=True)
def names_of_folders(right: bytes, path: Path) -> bytes | None:
    """Cells whose names are paths."""

    def change(notebook: dict[str, Any]) -> None:
        for number in range(3):
            metadata = {"nbgrader": {"grade_id": "../" * number + "etc/passwd", "solution": True, "schema_version": 3}}
            notebook["cells"].append({"cell_type": "code", "id": f"p{number}", "metadata": metadata, "source": "x = 1"})

    return _changed(right, change)


@handed_in(DAMAGED, speaks_alone=True)
def nothing_but_line_ends(right: bytes, path: Path) -> bytes | None:
    """Fifteen megabytes of empty lines, each of which would be a string of its own in the marked notebook."""

    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"].append({"cell_type": "raw", "id": "e", "metadata": {}, "source": "\n" * 7_500_000})

    return _changed(right, change)
