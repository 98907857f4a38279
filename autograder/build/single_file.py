"""Notebooks that contain the check's files in a cell, for courses in which students can be sent only one file."""

import base64
import lzma
import tarfile
import textwrap
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell

from .. import output_files
from ..course.cells import CARRIED
from ..course.folder import folder
from ..student_check.unit_data import data_file, zip_file
from .solution_cell import COLUMNS
from .source_notebook import BuildError, locked

FOLDER = "single_file"

_CELL = '''# The check, which this notebook carries with it. Run this cell; there is nothing to read.
import atexit
import base64
import io
import shutil
import sys
import tarfile
import tempfile

_carried = """
{packed}
"""
_folder = tempfile.mkdtemp()  # gone when the kernel stops
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
with tarfile.open(fileobj=io.BytesIO(base64.b64decode(_carried))) as _files:
    _files.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
    _files.extractall(_folder)
sys.path.insert(0, _folder)
del _carried, _files, _folder'''


def single_files(root: Path, check: str) -> dict[Path, str]:
    """Return each unit's notebook, from its release below a folder, by its path in the course.

    check: the module that notebooks import the check from. Raises BuildError.
    """
    released = sorted(path for path in root.glob("release/*/*.ipynb") if path.stem == path.parent.name)
    return {Path(FOLDER, path.name): nbformat.writes(single_file(path, check)) + "\n" for path in released}


def write(texts: dict[Path, str]) -> list[Path]:
    """Write the notebooks that are missing or differ, and return their paths. Raises NotWritable."""
    changed = []
    for path, text in texts.items():
        target, content = folder() / path, text.encode()
        if target.is_symlink() or not target.is_file() or target.read_bytes() != content:
            output_files.write({target: content}, makes_folder=True)
            changed.append(path)
    return changed


def single_file(released: Path, check: str) -> Any:
    """Return a released notebook with the files in a cell above the import of the check; raises BuildError."""
    notebook = nbformat.read(released, as_version=4)
    imports = f"from {check} import "
    cells = enumerate(notebook.cells)
    first = next((at for at, cell in cells if cell.cell_type == "code" and imports in cell.source), None)
    if first is None:
        raise BuildError(f"{released.name}: no cell imports the check; begin a line of one with `{imports}check`.")
    files = [released.with_name(name) for name in (f"{check}.py", zip_file(check), data_file(released.stem))]
    metadata = {
        "nbgrader": locked(CARRIED),
        "jupyter": {"source_hidden": True},
        "cellView": "form",  # collapsed, in Colab
        "deletable": False,
        "editable": False,
    }
    source = _CELL.format(packed=_packed(files))
    notebook.cells.insert(first, new_code_cell(source, id=CARRIED, metadata=metadata))
    return notebook


def _packed(files: list[Path]) -> str:
    """Return the files in lines of text, the same for the same files."""
    held = BytesIO()
    with lzma.open(held, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for file in files:
            about = tarfile.TarInfo(file.name)
            about.size = file.stat().st_size
            archive.addfile(about, BytesIO(file.read_bytes()))
    return "\n".join(textwrap.wrap(base64.b64encode(held.getvalue()).decode(), COLUMNS))
