"""A folder as an nbgrader course: the repository itself, the demo, or one that a build makes and throws away."""

import logging
import re
import warnings
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

from ..course.folder import folder
from ..errors import UserError
from . import tools

SETTINGS = "nbgrader_config.py"


class CourseProblem(UserError):
    """A course's folder, settings or gradebook cannot be used; `str()` says why and what to do."""


def course_directory(root: Path, *, db_url: str | None = None, **folders: Path) -> Any:
    """The course in `root`, with its settings.

    db_url: the address of another gradebook than the course's.
    folders: `source`, `release` or `submitted`, if not where nbgrader looks for it. Raises CourseProblem.
    """
    tools.put_on_path()
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
    """nbgrader's API for the course in `root`; what nbgrader would print is in the `log` of each result."""
    from nbgrader.apps.api import NbGraderAPI  # a second of imports that most commands do not need

    log = logging.getLogger("autograder.nbgrader")
    for its in (log, logging.getLogger("tornado.application")):  # the gradebook's logger
        its.propagate = False
        its.addHandler(logging.NullHandler())
    directory = course_directory(root, db_url=db_url, **folders)
    return NbGraderAPI(directory, config=directory.config, log=log)


def first_error(result: Any) -> str:
    """What went wrong, found in everything that nbgrader logged in one result of its API."""
    said = ((result.get("log") or "") + "\n" + (result.get("error") or "")).splitlines()
    errors = [line.strip() for line in said if re.match(r"\s*[\w.]*(Error|Exception|MissingEntry)\b.*:", line)]
    return (errors or [line.strip() for line in said if line.strip()] or ["it did not say why."])[0]


def nbgrader_settings(root: Path) -> Config:
    """The course's settings, overridden by those of the folder `root`, if it has its own.

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
    """Read a file by its whole path: where traitlets looks for a name in a folder, it expands `$` in the folder's."""
    config: Config = PyFileConfigLoader(str(file.absolute()), path=str(file.parent)).load_config()
    return config
