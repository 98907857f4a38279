"""Replaces steps of nbgrader that trust what students choose, or the course's path, and have no setting for it.

- nbgrader opens files by their paths, follows links and waits for pipes.
- One odd time or name ends the work for the whole class.
- It puts the course's path into globs (`[`, `*`, `?`), into regular expressions (`(`, `+`, if a folder of the course
  is given by its whole path) and into the address of a database (`%`, `?`).
- It neither counts nor completes a row of the gradebook that has only an extension, as that of no submission.
- It reads a due date without a zone in UTC, though it shows due dates in the class's time zone.
- It takes a unit for generated that is in `release/`, where a course has it from the start, even if the gradebook does
  not know it.
- formgrader's templates escape nothing: a student's id or name would be HTML on them, or code in their scripts, with
  the rights of the instructor who is signed in.

`guard` replaces nbgrader's functions by those of this module, for as long as the process lives. `make_safe` escapes
everything that is put into a template of formgrader. As a second defence, the response's policy lets the browser run
only the templates' own scripts.
"""

import base64
import glob
import hashlib
import logging
import os
import re
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

from dateutil.tz import gettz
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader
from jinja2.ext import Extension
from markupsafe import escape
from nbconvert.exporters import HTMLExporter
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import api
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.dbapp import DbAssignmentAddApp
from nbgrader.converters import Autograde, GenerateAssignment, base
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import collect, exchange, fetch_feedback, release_feedback
from nbgrader.exchange.default import list as exchange_list
from tornado.log import LogFormatter

from ..course.notebook import printable
from ..course.submitted_files import RULE, NotAFile, OpenedFolder, read_up_to
from ..gradebook import lateness
from ..gradebook.nbgrader_course import GRADEBOOK, address_of
from ..gradebook.roster import may_be_graded
from ..gradebook.time_stamp import TIMESTAMP, StampFormat, stamp_at, time_in

SECRET = "submission_secret.txt"
_BESIDE = {TIMESTAMP: 100, SECRET: 1000}
"""The files next to a notebook that nbgrader's later steps need, and their longest length in bytes."""
_WITH_GLOBS = (utils, api, base, collect, exchange, fetch_feedback, exchange_list, release_feedback)
_literal: set[str] = set()
"""Folders in whose path no character is a wildcard."""

_nbgraders_init_assignment = BaseConverter.init_assignment
_nbgraders_init_destination = BaseConverter.init_destination
_nbgraders_parse_utc = utils.parse_utc
_nbgraders_submitted_students = NbGraderAPI.get_submitted_students
_nbgraders_format_path = CourseDirectory.format_path
_nbgraders_update_or_create = Gradebook.update_or_create_submission
_nbgraders_add_assignment = DbAssignmentAddApp.start
_nbgraders_start: Callable[..., None] = exchange.Exchange.start
_tornados_format = LogFormatter.format
_OF_ONE_STUDENT: dict[str, Callable[..., Any]] = {
    name: getattr(NbGraderAPI, name) for name in ("autograde", "generate_feedback", "release_feedback")
}

_AVERAGES: dict[str, Callable[..., float]] = {
    name: getattr(Gradebook, name) for name in (f"average_assignment{kind}_score" for kind in ("", "_code", "_written"))
}


def guard() -> None:
    """Replace the unsafe steps of nbgrader in this process, once. The course's settings call this in each program."""
    LogFormatter.format = _format  # type: ignore[method-assign]
    utils.parse_utc = _parse_utc
    utils.is_ignored = _is_ignored
    for module in _WITH_GLOBS:
        module.glob = _Glob
    CourseDirectory.format_path = _format_path
    CourseDirectory._db_url_default = _address_of_gradebook
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    exchange.Exchange.start = _start
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    NbGraderAPI.get_submitted_students = _submitted_students
    for name, method in _OF_ONE_STUDENT.items():
        setattr(NbGraderAPI, name, _of_one_student(method))
    Gradebook.update_or_create_submission = _update_or_create_submission
    for name, method in _AVERAGES.items():
        setattr(Gradebook, name, _average(method))
    DbAssignmentAddApp.start = _add_assignment
    BaseConverter.init_assignment = _init_assignment
    GenerateAssignment.init_destination = _init_destination
    Autograde.init_notebooks = _init_notebooks
    Autograde.convert_notebooks = _convert_notebooks


class _Glob:
    """Replacement for the module `glob`, which takes folders of the course literally, even with wildcard characters."""

    escape = staticmethod(glob.escape)

    @staticmethod
    def glob(pattern: str) -> list[str]:
        """Return the paths that match a pattern. A folder at its start that is in `_literal` is taken literally."""
        folder = max((one for one in _literal if pattern.startswith(one + os.sep)), key=len, default="")
        return glob.glob(glob.escape(folder) + pattern.removeprefix(folder))  # noqa: PTH207  as nbgrader does


paths_like = _Glob.glob


def _format_path(self: Any, nbgrader_step: str, student_id: str, assignment_id: str, escape: bool = False) -> str:
    """Return a path in the course, or a regular expression for such paths: the folder of the step stands for itself."""
    _literal.add(self.root)
    if nbgrader_step.startswith(os.sep):
        _literal.add(nbgrader_step)
    step = re.escape(nbgrader_step) if escape else nbgrader_step
    path: str = _nbgraders_format_path(self, step, student_id, assignment_id, escape)
    return path


def _address_of_gradebook(self: Any) -> str:
    return address_of(Path(self.root).absolute() / GRADEBOOK)


def _start(self: Any) -> Any:
    _literal.update((self.root, self.cache))
    return _nbgraders_start(self)


def _is_ignored(filename: str, ignore_globs: Any = None) -> bool:
    folder = glob.escape(os.path.dirname(filename))  # noqa: PTH120  as nbgrader does
    return any(filename in glob.glob(os.path.join(folder, one)) for one in ignore_globs or ())  # noqa: PTH118, PTH207


def _format(self: Any, record: logging.LogRecord) -> str:
    """Return a line of nbgrader's log, without control characters in the names that students choose."""
    record.msg, record.args = "\n".join(map(printable, record.getMessage().split("\n"))), ()
    line: str = _tornados_format(self, record)
    return line


def _parse_utc(text: Any) -> Any:
    """Return a due date in UTC. nbgrader reads `+0200` as 200 seconds, and an unknown zone as UTC.

    Raises ValueError for an unknown zone.
    """
    if not isinstance(text, str):
        return _nbgraders_parse_utc(text)
    if (moment := time_in(text.encode(), StampFormat(None))) is not None:
        return moment
    words = text.split(" ")
    if len(words) == 3 and words[2].isalpha() and gettz(words[2]) is None:
        raise ValueError(f"{text!r} has an unknown time zone. Write an offset, such as +0200, or UTC.")
    return _nbgraders_parse_utc(text)


def _add_assignment(self: Any) -> None:
    """Read a due date without a zone in the class's time zone, and not in UTC as nbgrader does."""
    written = (self.duedate or "").encode()
    moment = time_in(written, StampFormat.of_course(self.coursedir))
    if moment is None and time_in(written) is not None:
        self.fail(f"Clocks in the class's time zone show {self.duedate} twice or never. Add the offset, such as +0200.")
    if moment is not None:
        self.duedate = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    _nbgraders_add_assignment(self)


def _existing_timestamp(self: Any, dest_path: str) -> datetime | None:
    """Return the submission time; None without a time stamp, or if the stamp does not determine a time."""
    return time_in(stamp_at(Path(dest_path)), StampFormat.of_course(self))


def _submitted_timestamp(self: Any, assignment_id: str, student_id: str) -> datetime | None:
    directory = self.coursedir
    path = directory.format_path(directory.submitted_directory, student_id, assignment_id)
    return _existing_timestamp(directory, path)


def _submitted_students(self: Any, assignment_id: str) -> set[str]:
    """Return the students with a folder. nbgrader lists any folder; a click on one called `*` would act on all."""
    return set(filter(may_be_graded(self.coursedir), _nbgraders_submitted_students(self, assignment_id)))


def _of_one_student(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with the student's id taken literally, where nbgrader takes it for a pattern of ids."""

    def of_one_student(self: Any, assignment_id: str, student_id: str | None = None, **options: Any) -> Any:
        return method(self, assignment_id, student_id and glob.escape(student_id), **options)

    return of_one_student


def _init_assignment(self: Any, assignment_id: str, student_id: str) -> None:
    """Copy the files next to the notebooks; from a submission no more than nbgrader needs."""
    if not isinstance(self, Autograde):
        _nbgraders_init_assignment(self, assignment_id, student_id)
        return
    source = Path(self._format_source(assignment_id, student_id))
    destination = Path(self._format_dest(assignment_id, student_id))
    for name in _BESIDE:
        content = read_beside(source, name)
        if content is not None:
            destination.mkdir(parents=True, exist_ok=True)
            (destination / name).unlink(missing_ok=True)
            (destination / name).write_bytes(content)


def _update_or_create_submission(self: Any, assignment: str, student: str, **values: Any) -> Any:
    """Return the submission's row, with notebooks. nbgrader would take a row with only an extension for complete."""
    extension = lateness.take_extension(self.db, self.find_assignment(assignment).id, student)
    return _nbgraders_update_or_create(
        self, assignment, student, **values, **({"extension": extension} if extension else {})
    )


def _average(method: Callable[..., float]) -> Callable[..., float]:
    """Return nbgrader's average for an assignment, divided by the submissions: it divides by all rows."""

    def average(self: Any, assignment_id: str) -> float:
        assignment = self.find_assignment(assignment_id)
        submitted = max((notebook.num_submissions for notebook in assignment.notebooks), default=0)
        return method(self, assignment_id) * assignment.num_submissions / submitted if submitted else 0.0

    return average


def _init_destination(self: Any, assignment_id: str, student_id: str) -> bool:
    """Return whether to generate a unit: also one that is in release/ already, if the gradebook does not know it."""
    if not self.no_database and not self.force:
        self.force = not _notebook_names(self.coursedir, assignment_id)
    is_to_do: bool = _nbgraders_init_destination(self, assignment_id, student_id)
    return is_to_do


def _init_notebooks(self: Any) -> None:
    """Find the notebooks to grade: those of students, and of names that may become students.

    Leave a folder alone, with the mark that it has, if no notebook in it has the unit's name: nbgrader would delete the
    graded copy.
    """
    BaseConverter.init_notebooks(self)
    is_student = may_be_graded(self.coursedir)
    unit = self.coursedir.assignment_id
    names = _notebook_names(self.coursedir, unit)
    if not names:
        sentence = f"The gradebook has no `{unit}`: run `nbgrader generate_assignment {unit}` first."
        self.log.error(sentence)
        raise NbGraderException(sentence)
    self._not_named = []
    pattern = self._format_source("(?P<assignment_id>.*)", "(?P<student_id>.*)", escape=True)
    for path in list(self.assignments):
        match = re.match(pattern, path, re.DOTALL)
        student = match["student_id"] if match else Path(path).parent.name
        files = {Path(notebook).name for notebook in self.assignments[path]}
        if is_student(student) and names & files:
            continue
        del self.assignments[path]
        if not is_student(student):
            self.log.error("Not graded: %s. A new student's id has %s. Rename the folder.", printable(student), RULE)
            continue
        self._not_named.append(student)
        self.log.error(
            "Not graded: %s. There is no %s, only %s. Rename the file, or use `autograder grade`, which "
            "accepts any name.",
            *map(printable, (student, " or ".join(sorted(names)), ", ".join(sorted(files)))),
        )
    if not self.assignments:
        raise NbGraderException("Nothing was graded: the lines above say why.")


def _convert_notebooks(self: Any) -> None:
    """Grade the notebooks, and end as nbgrader does if somebody was not graded."""
    BaseConverter.convert_notebooks(self)
    if self._not_named:
        raise NbGraderException(f"{len(self._not_named)} not graded: the lines above say why.")


def _notebook_names(directory: CourseDirectory, unit: str) -> set[str]:
    """Return the names of the files that the gradebook knows for a unit; none if it does not know the unit."""
    with Gradebook(directory.db_url, directory.course_id) as gradebook, suppress(MissingEntry):
        return {f"{notebook.name}.ipynb" for notebook in gradebook.find_assignment(unit).notebooks}
    return set()


def read_beside(folder: Path, name: str) -> bytes | None:
    """Return the content of nbgrader's file in STUDENT/UNIT without following links; None if missing or too long."""
    try:
        with OpenedFolder.of_student(folder) as opened, opened.file(name) as file:
            return read_up_to(file, _BESIDE[name])
    except (NotAFile, OSError, ValueError):
        return None


_FORMGRADER = "nbgrader.server_extensions.formgrader"
_OURS = Path(__file__).parent / "templates" / "formgrader"
_SCRIPT = re.compile(r"<script(?=[\s>])")
_VALUE_IN_SCRIPT = re.compile(r'= "\{\{ *([\w.]+) *\}\}([\w/]*)";')
_HANDLER = re.compile(r'\son\w+="([^"]*)"', re.I)

_nonce: ContextVar[str] = ContextVar("_nonce")


def make_safe() -> None:
    """Change formgrader's handlers if it runs in this process, however it was started; else do nothing."""
    base, handlers = (sys.modules.get(f"{_FORMGRADER}.{name}") for name in ("base", "handlers"))
    if base is None or handlers is None or getattr(base.BaseHandler, "is_safe", False):
        return
    theirs = Path(handlers.template_path)
    base.BaseHandler.render = _render(theirs)
    base.BaseHandler.exporter = property(_Submissions)
    base.BaseHandler.scripts_allowed = _handlers_of(theirs)
    base.BaseHandler.is_safe = True
    # These answer with data, which tornado labels HTML, or with a file from a student's folder.
    base.BaseApiHandler.set_default_headers = _plain_text(base.BaseHandler.set_default_headers)
    for handler in (base.BaseApiHandler, handlers.SubmissionFilesHandler):
        handler.content_security_policy = property(_nothing_runs)


def _nothing_runs(handler: Any) -> str:
    return "frame-ancestors 'self'; default-src 'none'; sandbox"


def _plain_text(set_default_headers: Callable[[Any], None]) -> Callable[[Any], None]:
    def set_headers(handler: Any) -> None:
        set_default_headers(handler)
        handler.set_header("Content-Type", "text/plain; charset=UTF-8")

    return set_headers


def _render(theirs: Path) -> Callable[..., str]:
    loader = ChoiceLoader([FileSystemLoader([_OURS, theirs]), PrefixLoader({"nbgrader": FileSystemLoader(theirs)})])
    environment = Environment(loader=loader, autoescape=True, extensions=[_OwnScripts])
    environment.globals["script_nonce"] = _nonce.get

    def render(handler: Any, name: str, **values: Any) -> str:
        if _is_in_forbidden_frame(handler):
            handler.set_header("Content-Security-Policy", "frame-ancestors 'self'; default-src 'none'")
            return environment.get_template("in_a_frame.tpl").render(address=handler.request.full_url())
        _allow_own_scripts(handler)
        return environment.get_template(name).render(**values)

    return render


def _is_in_forbidden_frame(handler: Any) -> bool:
    """Return whether JupyterLab's menu opens formgrader on a hub, which lets no page show a person's server in a frame.

    The pages of all persons' servers have one origin, so a student's page could use a frame to change grades.
    """
    is_framed = handler.request.headers.get("Sec-Fetch-Dest") == "iframe"
    return is_framed and "frame-ancestors 'none'" in handler.content_security_policy


class _Submissions:
    """Replaces the exporter with which formgrader makes a page of a notebook."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def from_filename(self, filename: str, resources: dict[str, Any]) -> Any:
        """Return a notebook's page as HTML. resources: formgrader's variables for the part around the notebook."""
        _allow_own_scripts(self._handler)
        escaped = {name: escape(value) if isinstance(value, str) else value for name, value in resources.items()}
        return self._exporter().from_filename(filename, resources=escaped)

    def _exporter(self) -> Any:
        """Return an exporter with the settings of the open course; another course may be opened after it."""
        settings = self._handler.settings
        config = settings["nbgrader_formgrader"].config
        made_for, exporter = settings.get("autograder_exporter", (None, None))
        if exporter is None or made_for != config:
            exporter = HTMLExporter(config=config)
            exporter.environment.add_extension(_OwnScripts)
            exporter.environment.globals["script_nonce"] = _nonce.get
            settings["autograder_exporter"] = config, exporter
        return exporter


class _OwnScripts(Extension):
    """Gives templates' scripts the response's nonce, and makes values in scripts JavaScript literals."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        source = _VALUE_IN_SCRIPT.sub(r'= {{ (\1 ~ "\2") | tojson }};', source)
        return _SCRIPT.sub('<script nonce="{{ script_nonce() }}"', source)


def _allow_own_scripts(handler: Any) -> None:
    nonce = secrets.token_urlsafe(16)
    _nonce.set(nonce)
    scripts = f"script-src 'nonce-{nonce}' 'unsafe-hashes' {handler.scripts_allowed}"
    policy = f"{scripts}; object-src 'none'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
    handler.set_header("Content-Security-Policy", f"{handler.content_security_policy}; {policy}")


def _handlers_of(templates: Path) -> str:
    """Return the digests of the templates' own event handlers, as a policy lists them."""
    codes = {code for path in templates.rglob("*.*") if path.is_file() for code in _HANDLER.findall(path.read_text())}
    digests = (hashlib.sha256(code.encode()).digest() for code in sorted(codes))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
