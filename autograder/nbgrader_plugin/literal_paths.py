"""Makes nbgrader take the path of a course, and of an exchange, for what it is.

nbgrader puts such paths into globs (`[`, `*`, `?`), into regular expressions (`(`, `+`, if a folder of the course is
given by its whole path) and into the address of a database (`%`, `?`). `take_literally` replaces its functions, for as
long as the process lives.
"""

import glob
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbgrader import utils
from nbgrader.apps import api
from nbgrader.converters import base
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import collect, exchange, fetch_feedback, release_feedback
from nbgrader.exchange.default import list as exchange_list

from ..gradebook.database import FILE, address_of

_WITH_GLOBS = (utils, api, base, collect, exchange, fetch_feedback, exchange_list, release_feedback)
_literal: set[str] = set()
"""The folders of which no character is a wildcard."""

_any_path = CourseDirectory.format_path
_any_exchange: Callable[..., None] = exchange.Exchange.start


def take_literally() -> None:
    """Replace nbgrader's functions; do nothing the second time."""
    CourseDirectory.format_path = _format_path
    CourseDirectory._db_url_default = _address_of_gradebook
    exchange.Exchange.start = _start
    utils.is_ignored = _is_ignored
    for module in _WITH_GLOBS:
        module.glob = _Glob


class _Glob:
    """In the place of the module `glob`."""

    escape = staticmethod(glob.escape)

    @staticmethod
    def glob(pattern: str) -> list[str]:
        """Return the paths that match, of which the longest folder known to be literal is taken as it is."""
        folder = max((one for one in _literal if pattern.startswith(one + os.sep)), key=len, default="")
        return glob.glob(glob.escape(folder) + pattern.removeprefix(folder))  # noqa: PTH207  as nbgrader does


def paths_like(pattern: str) -> list[str]:
    """Return the paths that match a pattern, which nbgrader's `format_path` made."""
    return _Glob.glob(pattern)


def _format_path(self: Any, nbgrader_step: str, student_id: str, assignment_id: str, escape: bool = False) -> str:
    """Return a path in the course, or a regular expression for such paths: the folder of the step stands for itself."""
    _literal.add(self.root)
    if nbgrader_step.startswith(os.sep):
        _literal.add(nbgrader_step)
    path: str = _any_path(
        self, re.escape(nbgrader_step) if escape else nbgrader_step, student_id, assignment_id, escape
    )
    return path


def _address_of_gradebook(self: Any) -> str:
    return address_of(Path(self.root).absolute() / FILE)


def _start(self: Any) -> Any:
    _literal.update((self.root, self.cache))
    return _any_exchange(self)


def _is_ignored(filename: str, ignore_globs: Any = None) -> bool:
    folder = glob.escape(os.path.dirname(filename))  # noqa: PTH120  as nbgrader does
    return any(filename in glob.glob(os.path.join(folder, one)) for one in ignore_globs or ())  # noqa: PTH118, PTH207
