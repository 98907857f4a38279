"""A folder as an nbgrader course: its settings, the database of its gradebook, and the lock of its one writer.

The course is the repository itself, a class's folder, the demo, or one that a build makes and throws away. The database
is an SQLite file in the folder, or a database of a PostgreSQL server.
"""

import fcntl
import logging
import os
import re
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader import dbutil
from nbgrader.api import Gradebook, InvalidEntry
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, SAWarning, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from traitlets.config import Config, PyFileConfigLoader

from .. import UserError
from ..course.settings import folder

SETTINGS = "nbgrader_config.py"
GRADEBOOK = "gradebook.db"
"""Name of SQLite's file in the course's folder."""
KILOBYTE = 1000
"""Bytes in a kilobyte, as nbgrader counts them in its settings."""
LONGEST_ID = 128
"""Maximum number of characters of a student's id in nbgrader's tables."""
_POSTGRESQL = "postgresql"
_CONNECT_SECONDS = 10
_ADVICE_OF_LIBPQ = "Is the server running"
"""Beginning of libpq's advice, which is cut off: our own messages ask the same."""


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


def address_of(file: Path) -> str:
    """Return SQLAlchemy's URL of the SQLite database in a file."""
    return "sqlite:///" + str(file).replace("%", "%25").replace("?", "%3F")


@dataclass(frozen=True)
class Database:
    """The database of a course's gradebook. `str()` is for people, and has no password."""

    root: Path
    """The course's folder."""
    url: URL

    @classmethod
    def in_file(cls, file: Path) -> "Database":
        """Return the SQLite database in a file of the course's folder."""
        return cls(file.parent, make_url(address_of(file)))

    @property
    def file(self) -> Path | None:
        """SQLite's file; None if the gradebook is on a server."""
        return Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None

    @property
    def address(self) -> str:
        """The URL, including the password, with which nbgrader opens the database."""
        return address_of(self.file) if self.file else self.url.render_as_string(hide_password=False)

    def __str__(self) -> str:
        url = self.url
        return str(self.file or URL.create(_POSTGRESQL, url.username, None, url.host, url.port, url.database))

    def holds_id(self, student: str) -> bool:
        """Return whether the database takes this id: a server rejects ids that are wider than the column."""
        return self.file is not None or len(student) <= LONGEST_ID

    def engine(self, **options: Any) -> Engine:
        """Return a SQLAlchemy engine for the database. Raises CourseProblem if the server's driver is not installed.

        options: further arguments of SQLAlchemy's `create_engine`.
        """
        is_limited = self.file or "connect_timeout" in self.url.query
        wait = {} if is_limited else {"connect_timeout": _CONNECT_SECONDS}
        try:
            return create_engine(self.address, connect_args=wait, **options)
        except (ImportError, ArgumentError) as error:
            raise CourseProblem(
                f"The gradebook {self} needs a driver that is not installed here ({self._without_password(error)}): "
                "pip install 'attention-autograder[postgresql]'."
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Session | None]:
        """Open a session that cannot write; None if there is no gradebook yet. Raises CourseProblem."""
        if self.file and not self.file.is_file():
            yield None
            return
        if self.file:
            uri = f"{self.file.resolve().as_uri()}?mode=ro"
            engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True))
        else:
            engine = self.engine(execution_options={"postgresql_readonly": True})
        try:
            with self.explained_errors(), Session(engine) as session:
                yield session if inspect(session.connection()).has_table("assignment") else None
        finally:
            engine.dispose()

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Turn errors of the database, of the server and of files into a CourseProblem."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise self.problem(error) from error
        except InvalidEntry as error:  # nbgrader raises it instead of some errors of the database
            if not isinstance(error.__context__, SQLAlchemyError):
                raise
            raise self.problem(error.__context__) from error

    def problem(self, error: BaseException) -> CourseProblem:
        """Return the message for an error of the database, or of a file in the course's folder."""
        reason = self._without_password(getattr(error, "orig", None) or error)
        kept = "What was recorded is kept; run the same command again for the rest."
        if self.file or isinstance(error, OSError):
            return CourseProblem(
                f"The gradebook {self} or a file in {self.root} cannot be opened and written: {reason}. Is the folder "
                f"there and yours, the disk not full, and no other program writing to it? {kept}"
            )
        return CourseProblem(
            f"The gradebook {self} cannot be used: {reason}. Is the server running, is CourseDirectory.db_url right, "
            f"and may its role write to this database? {kept}"
        )

    def _without_password(self, message: object) -> str:
        """Return another program's message in one line, without the URL's password."""
        text = " ".join(str(message).partition(_ADVICE_OF_LIBPQ)[0].split()).removesuffix(".")
        for secret in {self.url.password, self.url.query.get("password")}:
            if secret:
                text = text.replace(str(secret), "***")
        return text


def database_of(root: Path) -> Database:
    """Return the database of the course in this folder. Raises CourseProblem."""
    return database_of_directory(course_directory(root))


def database_of_directory(directory: Any) -> Database:
    """Return the database of a course. directory: nbgrader's CourseDirectory.

    Raises CourseProblem for an SQLite file outside the course's folder: the next run, `--dry-run` and formgrader would
    not find it. Raises CourseProblem, too, for a URL that is not of SQLite or PostgreSQL.
    """
    root = Path(directory.root)
    if directory.db_url == address_of(root / GRADEBOOK):
        return Database.in_file(root / GRADEBOOK)
    try:
        url = make_url(directory.db_url)
    except (ArgumentError, ValueError):  # which may quote a part of the password
        raise _no_address("cannot be read as one") from None
    name = url.get_backend_name()
    if name == "sqlite":
        raise CourseProblem(
            f"The course's nbgrader_config.py puts the gradebook at {url}; `autograder grade` keeps it in "
            f"{root / GRADEBOOK}. Take CourseDirectory.db_url out of that file."
        )
    if name != _POSTGRESQL:
        raise _no_address(f"begins with {name}://")
    if "@" in (url.host or ""):
        raise _no_address("has an extra @: in a password, write @ as %40")
    return Database(root, url)


def database_of_program(directory: Any) -> Database:
    """Return the database that nbgrader's own programs use, whose settings may put SQLite's file anywhere."""
    url = str(directory.db_url)
    is_file = url.startswith("sqlite:///")
    return Database(Path(directory.root), make_url(url)) if is_file else database_of_directory(directory)


def _no_address(what: str) -> CourseProblem:
    return CourseProblem(
        "CourseDirectory.db_url in the course's nbgrader_config.py is not the address of a gradebook: it "
        f"{what}. Write postgresql://ROLE@HOST/DATABASE, or delete the setting to keep the gradebook in {GRADEBOOK}."
    )


@contextmanager
def explained_errors(root: Path) -> Iterator[None]:
    """Turn errors of a course's gradebook and of its files into a CourseProblem."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, InvalidEntry) as error:
        with database_of(root).explained_errors():
            raise error


def newest_version() -> str:
    """Return the version of nbgrader's gradebooks without starting alembic's command, which takes seconds."""
    from alembic.script import ScriptDirectory  # only a new gradebook needs it

    head = ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head()
    assert head is not None  # nbgrader ships its versions
    return head


LOCK = ".grading.lock"
_KEY = 0x6175746F67726164
"""Key of PostgreSQL's advisory lock: the letters `autograd` as a number."""
_KEEP_ALIVE = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 15; SET tcp_keepalives_count = 4"
"""Statement that ends the lock of a machine without power after two minutes instead of the system's two hours."""


class AlreadyLocked(CourseProblem):
    """Another process is writing to the course."""


@contextmanager
def course_lock(root: Path, lock: str = LOCK, command: str = "grade`, `import` or `serve") -> Iterator[None]:
    """Lock the course for this process; the system releases the lock however the process ends.

    If a server has the gradebook, it is locked as well: another machine may have a folder of its own.

    lock: name of the file that is locked; only LOCK locks the gradebook. command: the commands that take this lock.
    Raises AlreadyLocked if another process holds the lock, and CourseProblem if nothing can be written there.
    """
    try:
        file = os.open(root / lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CourseProblem(
            f"The course folder {root} cannot be written to: {error.strerror}. Is the folder there and yours?"
        ) from None
    with ExitStack() as stack:
        stack.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _already_locked(command, f"the course {root} already") from None
        gradebook = database_of(root) if lock == LOCK else None
        if gradebook and not gradebook.file:
            engine = gradebook.engine(isolation_level="AUTOCOMMIT", poolclass=NullPool)
            with gradebook.explained_errors():
                connection = stack.enter_context(engine.connect())
                connection.execute(text(_KEEP_ALIVE))
                is_ours = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY})
            if not is_ours:
                raise _already_locked(command, f"the gradebook {gradebook} already, perhaps on another machine")
        yield


@contextmanager
def writing(root: Path) -> Iterator[Session]:
    """Lock a course, and open a session in its gradebook, which is committed unless the block raises an error.

    Raises CourseProblem.
    """
    directory = course_directory(root)
    database = database_of_directory(directory)
    with (
        course_lock(root),
        database.explained_errors(),
        closing(Gradebook(database.address, directory.course_id)) as gradebook,
    ):
        yield gradebook.db
        gradebook.db.commit()


def _already_locked(command: str, what: str) -> AlreadyLocked:
    return AlreadyLocked(
        f"Another `autograder {command}` is writing to {what}. Nothing was changed; run this command again when "
        "the other has ended."
    )
