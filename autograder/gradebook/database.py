"""The database that a course's gradebook is: SQLite's file in its folder, or a database of a PostgreSQL server."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import InvalidEntry
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import Session

from .course_directory import CourseProblem, course_directory

FILE = "gradebook.db"
"""SQLite's, in the course's folder."""
LONGEST_ID = 128
"""Characters of a student's id in nbgrader's tables."""
_POSTGRESQL = "postgresql"
_CONNECT_SECONDS = 10
_REPLACED = "***"
_ASKS = "Is the server running"
"""What PostgreSQL's library adds to the reason, and we say too."""


def address_of(file: Path) -> str:
    """Return the address by which SQLAlchemy knows SQLite's database in a file."""
    return "sqlite:///" + str(file).replace("%", "%25").replace("?", "%3F")


@dataclass(frozen=True)
class Database:
    """Where a course's gradebook is. `str()` is for people, and has no password."""

    root: Path
    """The course's folder."""
    url: URL

    @property
    def file(self) -> Path | None:
        """SQLite's file; None where a server has the gradebook."""
        return None if self.url.get_backend_name() == _POSTGRESQL else self.root / FILE

    @property
    def address(self) -> str:
        """The address that nbgrader opens, with its password."""
        return address_of(self.file) if self.file else self.url.render_as_string(hide_password=False)

    def __str__(self) -> str:
        url = self.url
        return str(self.file or URL.create(_POSTGRESQL, url.username, None, url.host, url.port, url.database))

    def holds_id(self, student: str) -> bool:
        """Return whether the database takes this id: a server keeps to the width of a column, SQLite does not."""
        return self.file is not None or len(student) <= LONGEST_ID

    def engine(self, **more: Any) -> Engine:
        """For connections to a server's database. Raises CourseProblem where there is no driver for it.

        more: what SQLAlchemy is to be told besides.
        """
        wait = {} if "connect_timeout" in self.url.query else {"connect_timeout": _CONNECT_SECONDS}
        try:
            return create_engine(self.url, connect_args=wait, **more)
        except (ImportError, ArgumentError) as error:
            raise CourseProblem(
                f"The gradebook {self} needs a driver that is not installed here ({self.without_password(error)}): "
                "pip install 'attention-autograder[postgresql]'."
            ) from None

    def problem(self, error: BaseException) -> CourseProblem:
        """What to say of an error of the database, or of a file beside it."""
        reason = self.without_password(getattr(error, "orig", None) or error)
        kept = "What was recorded is kept; run the same command again for the rest."
        if self.file:
            return CourseProblem(
                f"The gradebook {self.file} or a file beside it cannot be opened and written: {reason}. Is the folder "
                f"there and yours, the disk not full, and no other program writing to it? {kept}"
            )
        if isinstance(error, OSError):
            return CourseProblem(
                f"A file in {self.root} cannot be opened and written: {reason}. Is the folder there and yours, and the "
                f"disk not full? {kept}"
            )
        return CourseProblem(
            f"The gradebook {self} cannot be used: {reason}. Is the server running, is CourseDirectory.db_url right, "
            f"and may its role write to this database? {kept}"
        )

    def without_password(self, said: object) -> str:
        """What a program said, in one line, without the password that the address has."""
        text = " ".join(str(said).partition(_ASKS)[0].split()).removesuffix(".")
        for secret in {self.url.password, self.url.query.get("password")}:
            if secret:
                text = text.replace(str(secret), _REPLACED)
        return text


def of(root: Path) -> Database:
    """The database of the course in this folder, as its settings have it. Raises CourseProblem."""
    return of_directory(course_directory(root))


def of_directory(directory: Any) -> Database:
    """The database of a course; raises CourseProblem where the kit keeps no gradebook.

    SQLite's file can only be where the next run, `--dry-run` and formgrader look for it.
    """
    root = Path(directory.root)
    if directory.db_url == address_of(root / FILE):
        return Database(root, make_url("sqlite:///"))
    try:
        url = make_url(directory.db_url)
    except (ArgumentError, ValueError):  # which may quote a part of the password
        raise _no_address("cannot be read as one") from None
    name = url.get_backend_name()
    if name == "sqlite":
        raise CourseProblem(
            f"The course's nbgrader_config.py puts the gradebook at {url}; `autograder grade` keeps it in "
            f"{root / FILE}. Take CourseDirectory.db_url out of that file."
        )
    if name != _POSTGRESQL:
        raise _no_address(f"begins with {name}://")
    if "@" in (url.host or ""):
        raise _no_address("has an @ too many: in a password it is written %40")
    return Database(root, url)


def _no_address(what: str) -> CourseProblem:
    return CourseProblem(
        "CourseDirectory.db_url in the course's nbgrader_config.py is no address of a gradebook: it "
        f"{what}. Write postgresql://ROLE@HOST/DATABASE, or take it out to keep the gradebook in {FILE}."
    )


@contextmanager
def said_in_a_sentence(root: Path) -> Iterator[None]:
    """Turns a locked or damaged database, a server that is gone, a full disk and the like into a CourseProblem."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise of(root).problem(error) from error
    except InvalidEntry as error:  # what nbgrader makes of some of them
        if not isinstance(error.__context__, SQLAlchemyError):
            raise
        raise of(root).problem(error.__context__) from error


@contextmanager
def reading(root: Path) -> Iterator[Session | None]:
    """A session in the gradebook of the course in this folder. As `reading_from`."""
    with reading_from(of(root)) as session:
        yield session


@contextmanager
def reading_from(database: Database) -> Iterator[Session | None]:
    """A session that cannot write; None if there is no gradebook yet. Raises CourseProblem."""
    if database.file and not database.file.is_file():
        yield None
        return
    engine = _reader(database)
    try:
        with said_in_a_sentence(database.root), Session(engine) as session:
            is_there = database.file or inspect(session.connection()).has_table("assignment")
            yield session if is_there else None
    finally:
        engine.dispose()


def _reader(database: Database) -> Engine:
    if database.file is None:
        return database.engine(execution_options={"postgresql_readonly": True})
    uri = f"{database.file.resolve().as_uri()}?mode=ro"
    return create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True))
