"""A folder as an nbgrader course: the repository itself, the demo, or one that a build uses and throws away."""

import logging
import re
import warnings
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

from .. import course
from . import tools

SETTINGS = course.REPOSITORY / "nbgrader_config.py"


class CourseProblem(Exception):
    """A course's folder, settings or gradebook cannot be used; `str()` says why and what to do."""


def course_directory(root: Path, **folders: Path) -> Any:
    """The course in `root`, with its settings.

    folders: any of `source`, `release`, `submitted` that is not where nbgrader looks for it. Raises CourseProblem.
    """
    tools.put_on_path()
    # nbgrader's own use of SQLAlchemy, each time a submission is created.
    warnings.filterwarnings("ignore", category=SAWarning, message="Object of type <Submitted")
    config = nbgrader_settings(root)
    config.CourseDirectory.root = str(root)
    for name, folder in folders.items():
        config.CourseDirectory[f"{name}_directory"] = str(folder)
    return CourseDirectory(config=config)


def nbgrader_api(root: Path, **folders: Path) -> Any:
    """nbgrader's API on the course in `root`; what nbgrader would print is in the `log` of each of its answers."""
    from nbgrader.apps.api import NbGraderAPI  # a second of imports that most commands do without

    log = logging.getLogger("autograder.nbgrader")
    for its in (log, logging.getLogger("tornado.application")):  # the gradebook's own
        its.propagate = False
        its.addHandler(logging.NullHandler())
    directory = course_directory(root, **folders)
    return NbGraderAPI(directory, config=directory.config, log=log)


def first_error(result: Any) -> str:
    """What went wrong, out of everything that nbgrader logged in one of its API's answers."""
    said = ((result.get("log") or "") + "\n" + (result.get("error") or "")).splitlines()
    errors = [line.strip() for line in said if re.match(r"\s*[\w.]*(Error|Exception|MissingEntry)\b.*:", line)]
    return (errors or [line.strip() for line in said if line.strip()] or ["it did not say why."])[0]


def nbgrader_settings(root: Path) -> Config:
    """This repository's settings, and over them those of the course in `root`, if it has its own.

    Raises CourseProblem where the course's own cannot be read.
    """
    config: Config = PyFileConfigLoader(SETTINGS.name, path=str(SETTINGS.parent)).load_config()
    own = root / SETTINGS.name
    if own.is_file() and own != SETTINGS:
        try:
            config.merge(PyFileConfigLoader(own.name, path=str(root)).load_config())
        except Exception as error:  # it is a program: whatever can be raised
            raise CourseProblem(
                f"The course's settings {own} cannot be used: {type(error).__name__}: {error}."
            ) from None
    return config
