"""Detect that the checked answer is not the current text of its cell: the cell changed, or its last run failed."""

import inspect
import json
import linecache
import os
import re
import time
from pathlib import Path
from typing import Any

_first_checked: dict[str, tuple[str, float]] = {}
"""By exercise, the text of the cell that was checked last, and the time of its first check."""


def stale_warning(names: dict[str, Any], exercise: str) -> str:
    """Return a warning if the answer is not the text of its cell; empty if it is, or if that is unknown.

    names: the notebook's.
    """
    checked = _cell_of(names.get(exercise))
    if not checked:
        return ""
    definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(exercise)}\b", re.M)
    run = [text for text in names.get("In", ()) if isinstance(text, str) and definition.search(text)]
    if run and run[-1].strip() != checked and checked in [text.strip() for text in run]:
        return (
            f"When its cell was run last, it ended in an error before `{exercise}` was defined. "
            "The earlier version is tried here."
        )
    text, since = _first_checked.get(exercise, ("", 0.0))
    if text != checked:
        _first_checked[exercise] = checked, time.time()
        return ""
    saved = _saved(names, exercise, since)
    if saved and saved != checked:
        return "Its cell has changed since it was run: run it again, then this check."
    return ""


def _cell_of(thing: Any) -> str:
    """Return the text of the cell that defined a function or class."""
    file = code_file(thing)
    return "".join(linecache.getlines(file)).strip() if file else ""


def code_file(thing: Any) -> str:
    """Return the file name of the code of a function or class, which in a kernel identifies a cell."""
    functions = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
    codes = [code for one in functions if inspect.iscode(code := getattr(one, "__code__", None))]
    return codes[0].co_filename if codes else ""


def _saved(names: dict[str, Any], exercise: str, since: float) -> str:
    """Return the cell's text in the notebook's file, if the file was saved after `since`."""
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
