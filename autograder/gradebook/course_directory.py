"""A folder as an nbgrader course: the repository itself, the demo, or one that a build makes and throws away."""

import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

from ..course.settings import folder
from ..errors import UserError

SETTINGS = "nbgrader_config.py"


class CourseProblem(UserError):
    """A course's folder, settings or gradebook cannot be used; `str()` says why and what to do."""


def course_directory(root: Path, *, db_url: str | None = None, **folders: Path) -> Any:
    """Return nbgrader's CourseDirectory for the course in `root`, with the course's settings.

    db_url: the URL of another gradebook than the course's.
    folders: other paths of `source`, `release` or `submitted` than nbgrader's. Raises CourseProblem.
    """
    put_commands_on_path()
    # From nbgrader's own use of SQLAlchemy, each time a submission is created.
    warnings.filterwarnings("ignore", category=SAWarning, message="Object of type <Submitted")
    config = nbgrader_settings(root)
    config.CourseDirectory.root = str(root)
    if db_url is not None:
        config.CourseDirectory.db_url = db_url
    for name, place in folders.items():
        config.CourseDirectory[f"{name}_directory"] = str(place)
    return CourseDirectory(config=config)


def nbgrader_api(root: Path, *, db_url: str | None = None, **folders: Path) -> Any:
    """Return nbgrader's API for the course in `root`. The `log` of each result has what nbgrader would print."""
    from nbgrader.apps.api import NbGraderAPI  # a second of imports that most commands do not need

    log = logging.getLogger("autograder.nbgrader")
    for its in (log, logging.getLogger("tornado.application")):  # the gradebook's logger
        its.propagate = False
        its.addHandler(logging.NullHandler())
    directory = course_directory(root, db_url=db_url, **folders)
    return NbGraderAPI(directory, config=directory.config, log=log)


def first_error(result: Any) -> str:
    """Return the first error in the log of a result of nbgrader's API."""
    lines = ((result.get("log") or "") + "\n" + (result.get("error") or "")).splitlines()
    errors = [line.strip() for line in lines if re.match(r"\s*[\w.]*(Error|Exception|MissingEntry)\b.*:", line)]
    return (errors or [line.strip() for line in lines if line.strip()] or ["nbgrader reported no reason."])[0]


def put_commands_on_path() -> None:
    """Put the folder of this Python's commands on the PATH: nbgrader calls commands by their bare names."""
    folder = str(Path(sys.executable).parent)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if folder not in folders:
        os.environ["PATH"] = os.pathsep.join([folder, *folders])


def nbgrader_settings(root: Path) -> Config:
    """Return the course's settings, overridden by those of the folder `root`, if it has its own.

    Raises CourseProblem if the course's own settings cannot be read.
    """
    config = _settings_in(folder() / SETTINGS)
    own = root / SETTINGS
    if own.is_file() and own != folder() / SETTINGS:
        try:
            config.merge(_settings_in(own))
        except SystemExit as reason:
            raise CourseProblem(str(reason)) from None
        except Exception as error:  # it is a program, and may raise anything
            raise CourseProblem(
                f"The course's settings {own} cannot be used: {type(error).__name__}: {error}."
            ) from None
    return config


def _settings_in(file: Path) -> Config:
    """Read a file by its whole path: if traitlets looks for a name in a folder, it expands `$` in the folder's path."""
    return PyFileConfigLoader(str(file.absolute()), path=str(file.parent)).load_config()
