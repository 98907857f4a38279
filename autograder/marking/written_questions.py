"""The questions of a unit that are answered in words: whether a notebook has an answer, which a person then marks."""

from functools import cache

from .. import course
from ..course.cells import likenesses
from ..notebook import RawNotebook, parse
from ..report import WrittenQuestion


def written_questions(notebook: RawNotebook, unit: course.Unit) -> list[WrittenQuestion]:
    """Each question of the unit, with what is there of its answer."""
    cells = zip(notebook.cells, likenesses(notebook, unit), strict=True)
    texts = {likeness.name: cell.text for cell, likeness in cells if not likeness.is_copy}
    found = []
    for name, points in course.points(unit.name).items():
        if not name.startswith(course.CHECK_PREFIX):
            text = texts.get(name)
            unanswered = text is not None and text.strip() in ("", _released(unit.name).get(name))
            found.append(
                WrittenQuestion(name, "missing" if text is None else "unanswered" if unanswered else "answered", points)
            )
    return found


@cache
def _released(unit: str) -> dict[str, str]:
    """The text of each named cell as students get it."""
    notebook = parse(course.released(unit).read_bytes())
    assert isinstance(notebook, RawNotebook)
    return {cell.grade_id: cell.text.strip() for cell in notebook.cells}
