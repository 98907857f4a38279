"""A folder as an nbgrader course: the repository itself, the demo, or one that a build uses and throws away."""

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

from .. import course

SETTINGS = course.REPOSITORY / "nbgrader_config.py"


def nbgrader_api(root: Path, **folders: Path) -> Any:
    """nbgrader's API on the course in `root`, with this repository's settings.

    folders: any of `source`, `release`, `submitted` that is not where nbgrader looks for it. What nbgrader would
    print is in the `log` of each of its answers.
    """
    # nbgrader calls `alembic`, which is beside this Python, by its bare name.
    tools = str(Path(sys.executable).parent)
    if tools not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = tools + os.pathsep + os.environ["PATH"]
    config = nbgrader_settings()
    config.CourseDirectory.root = str(root)
    for name, folder in folders.items():
        config.CourseDirectory[f"{name}_directory"] = str(folder)
    directory = CourseDirectory(config=config)
    # nbgrader's own use of SQLAlchemy, each time a submission is created.
    warnings.filterwarnings("ignore", category=SAWarning, message="Object of type <Submitted")
    log = logging.getLogger("autograder.nbgrader")
    log.propagate = False
    log.addHandler(logging.NullHandler())
    return NbGraderAPI(directory, config=config, log=log)


def nbgrader_settings() -> Config:
    """The settings in nbgrader_config.py."""
    config: Config = PyFileConfigLoader(SETTINGS.name, path=str(SETTINGS.parent)).load_config()
    return config
