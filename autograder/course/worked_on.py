"""Tell a notebook in which something was done from one that is as it was released."""

from functools import lru_cache
from pathlib import Path

from ..notebook import RawNotebook, parse
from . import Unit, released
from .cells import CARRIED


def is_worked_on(notebook: RawNotebook, unit: Unit, class_folder: Path | None = None) -> bool:
    """Return whether any cell has a text that no released cell of the unit has. Running cells changes no text."""
    path = released(unit.name, class_folder)
    if not path.is_file():
        return True
    texts = _released(path, path.stat().st_mtime_ns)
    return any(cell.text.strip() not in texts for cell in notebook.cells if cell.grade_id != CARRIED)


@lru_cache(maxsize=64)
def _released(path: Path, changed: int) -> frozenset[str]:
    notebook = parse(path.read_bytes())
    cells = notebook.cells if isinstance(notebook, RawNotebook) else []
    return frozenset({"", *(cell.text.strip() for cell in cells)})
