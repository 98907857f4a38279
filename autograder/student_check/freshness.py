"""Whether the answer that is tried is the one that stands in its cell."""

import inspect
import json
import linecache
import os
import re
import time
from pathlib import Path
from typing import Any

_first_tried: dict[str, tuple[str, float]] = {}
"""By exercise the text of the cell that was tried last, and when it was tried first."""


def not_what_was_run(names: dict[str, Any], exercise: str) -> str:
    """A sentence where it is not; nothing where it is, or where that cannot be told."""
    tried = _cell_of(names.get(exercise))
    if not tried:
        return ""
    definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(exercise)}\b", re.M)
    run = [text for text in names.get("In", ()) if isinstance(text, str) and definition.search(text)]
    if run and run[-1].strip() != tried and tried in [text.strip() for text in run]:
        return (
            f"When its cell was run last, it ended in an error before `{exercise}` was defined: "
            "what is tried here is the version before."
        )
    text, since = _first_tried.get(exercise, ("", 0.0))
    if text != tried:
        _first_tried[exercise] = tried, time.time()
        return ""
    saved = _saved(names, exercise, since)
    if saved and saved != tried:
        return "Its cell has changed since it was run: run it again, then this check."
    return ""


def _cell_of(thing: Any) -> str:
    """The text of the cell that defined it."""
    file = file_of(thing)
    return "".join(linecache.getlines(file)).strip() if file else ""


def file_of(thing: Any) -> str:
    """What the kernel calls the code of a function or class: the cell's name in the place of a file's."""
    functions = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
    codes = [code for one in functions if inspect.iscode(code := getattr(one, "__code__", None))]
    return codes[0].co_filename if codes else ""


def _saved(names: dict[str, Any], exercise: str, since: float) -> str:
    """The cell's text in the notebook's file, if that was saved since then."""
    path = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    try:
        file = Path(str(path))
        if not path or file.stat().st_mtime <= since:
            return ""
        cells = json.loads(file.read_text())["cells"]
        found = [one for one in cells if one["metadata"].get("nbgrader", {}).get("grade_id") == exercise]
        return "".join(found[0]["source"]).strip() if found else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
