"""Serve one unit of a small course in the test's own process, with reports that a grading process gave before."""

import sqlite3
import threading
import time
from contextlib import closing

from nbgrader.utils import notebook_hash

from autograder.course import settings
from autograder.serving.arrivals import Arrivals
from autograder.serving.exchange import Exchange
from autograder.serving.released_pages import SHOWN
from autograder.serving.served_unit import ServedUnit, ServeOptions

from . import REPOSITORY
from .recorded_class import UNIT, warm_formatter
from .requests_served import Requests

FIRST, SECOND, THIRD = (f"2026-01-0{day} 03:04:05 UTC" for day in (2, 3, 4))
OVERFLOWS = "exp overflows for large scores"
"""Part of the message about the mistake in a `recorded_class.wrong` notebook."""
RIGHT_ON_EXAMPLES = "Right on the public examples."
POINTS = r": [\d.]+ of \d+ points"


def submit(root, student, content, moment, secret="x"):
    """Put into the exchange what nbgrader's `submit` leaves there; return the folder."""
    folder = root / "exchange" / "attention" / "inbound" / f"{student}+{UNIT}+{moment}+{secret}"
    folder.mkdir()
    (folder / f"{UNIT}.ipynb").write_bytes(content)
    (folder / "timestamp.txt").write_text(moment)
    (folder / "submission_secret.txt").write_text(f"{student}{secret}")
    folder.chmod(0o777)
    return folder


def released(root, student, secret="x"):
    """Return the page that the exchange has for a student's submission, or None."""
    name = notebook_hash(secret=f"{student}{secret}", notebook_id=UNIT)
    page = root / "exchange" / "attention" / "feedback" / f"{name}.html"
    return page.read_text() if page.exists() else None


def attempts(root):
    """Return the attempts in the gradebook: student, digest and time of the submission."""
    with closing(sqlite3.connect(root / "gradebook.db")) as database:
        return sorted(database.execute("select student, submission, handed_in from autograder_attempt"))


def new_course(root):
    """Make a course folder with an exchange, in which all students submit from one account."""
    (root / "exchange" / "attention" / "inbound").mkdir(parents=True)
    (root / "exchange").chmod(0o777)
    (root / "submitted").mkdir()
    ours = (REPOSITORY / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(f"{ours}\nc.ExchangeCollect.check_owner = False\n")
    (root / "roster.csv").write_text("id,first_name\nada,Ada\nbo,Bo\ncy,Cy\namara,Amara\n")
    return root


class Serving:
    """The steps of `autograder serve` for one unit, taken when a test calls `work_off`."""

    settings = settings.load()

    def __init__(self, root, recorded, **options):
        self.recorded = recorded
        self.todo = []
        """Submissions that are queued for grading."""
        self.marked, self.outcomes, self.remarks = [], [], []
        self.arrived = threading.Event()
        """Set when a request has brought a notebook."""
        self.arrivals = Arrivals(root / "submitted", self.arrived.set)
        self.arrivals.put_back([UNIT])
        self.formatter = warm_formatter(settings.load())
        self.exchange = Exchange(root, SHOWN, self.remarks.append)
        options = ServeOptions(root, "auto", self.settings, **options)
        self.unit = ServedUnit(UNIT, options, self, self.formatter, self.exchange, self.outcomes.append)
        self.unit.prepare()
        self.is_all_due = True

    def put(self, work, submission):
        """Queue a submission, as ServedUnit expects of its grading threads."""
        self.todo.append((work, submission))

    def collect(self):
        """Collect submissions from the exchange; return the seconds until the next round is due."""
        return self.exchange.collect([UNIT], lambda unit, student: self.unit.is_busy(student))

    def work_off(self, *, mark=True, everything=False):
        """Take steps until nothing is left to do; return the seconds until there is.

        mark: grade what is queued. everything: the first step polls all that other programs may have changed.
        """
        self.is_all_due = self.is_all_due or everything
        while True:
            self.arrivals.place()
            self.collect()
            again = self.unit.step(look=True, everything=self.is_all_due)
            self.is_all_due = False
            self.arrivals.answer(self.unit.outcome)
            if not self.todo and again < 1:
                time.sleep(again)
                continue
            if not self.todo or not mark:
                return again
            self.marked.append(self.grade_next())

    def grade_next(self):
        """Grade the first submission in the queue; return its student."""
        work, submission = self.todo.pop(0)
        self.unit.add(self.recorded.marked(submission, work.files))
        return submission.student

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.arrivals.close()
        self.unit.close()
        self.formatter.close()


def serve(root, recorded, *, request=None, **options):
    """Serve until everything is graded; return the students graded. request: is sent meanwhile, see `Requests`."""
    with Serving(root, recorded, **options) as serving:
        if request is None:
            serving.work_off()
        else:
            with Requests(root, serving, recorded.grading_process) as requests:
                requests.during(request)
        return serving.marked
