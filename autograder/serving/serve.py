"""`autograder serve`: grades each submission as soon as it comes, until it is stopped.

Grading needs no lock. Grades are recorded a batch at a time, under the lock that `autograder grade` takes too.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..course import UnknownUnit, UnusableUnit
from ..course.settings import BadSettings, load
from ..gradebook.nbgrader_course import KILOBYTE, AlreadyLocked, CourseProblem, course_directory, course_lock
from ..gradebook.roster import BadRoster, class_list, may_be_graded
from ..pool.grading_pool import pool_for_class
from ..pool.requests import Ready
from ..reports import pages
from .arrivals import POLL_SECONDS, Arrivals, FolderWatch
from .exchange import Exchange
from .http_server import HttpServer, Intake, fresh_token
from .released_pages import SHOWN
from .served_unit import KitChanged, Served, ServedUnit, ServeOptions
from .work_queue import GradingThreads

LOCK = ".serving.lock"
_EVERYTHING_SECONDS = 60.0
"""Seconds between polls of what other programs may have changed, such as due dates."""
_LOCKED_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.3
_TROUBLED_SECONDS = 5.0
_TROUBLES = (CourseProblem, UnknownUnit, UnusableUnit, BadRoster)


def serve(
    units: Sequence[str],
    options: ServeOptions,
    *,
    process_count: int,
    port: int | None = None,
    on_start: Callable[[Ready, int | None], None],
    on_outcome: Callable[[Served], None],
    remark: Callable[[str], None],
) -> None:
    """Serve until it is interrupted. What is graded by then is recorded; the rest is graded the next time.

    port: the port for requests on this machine; 0 for a free one, None for no requests. on_start: called with the port
    when serving begins. remark: reports to the instructor, each message once. Raises KitChanged if everything has to be
    started again, GradingRefused, CourseProblem, and at the start what `assignment` raises.
    """
    reported: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in reported:
            reported.add(sentence)
            remark(sentence)

    with ExitStack() as open_things:
        open_things.enter_context(course_lock(options.root, LOCK, "serve"))
        if port is not None:
            server = open_things.enter_context(HttpServer(port))
            folder, token = open_things.enter_context(fresh_token(options.root))
        directory = course_directory(options.root)
        submitted = (options.root / directory.submitted_directory).resolve()
        submitted.mkdir(exist_ok=True)
        watch = open_things.enter_context(FolderWatch())
        formatter = open_things.enter_context(pages.formatter(options.settings))
        exchange = Exchange(options.root, SHOWN, once)
        pool = pool_for_class(options.root, submitted, options.device, options.settings, process_count)
        threads = GradingThreads(pool, options.root, units, lambda: watch.wake("done"), once)
        served = {name: ServedUnit(name, options, threads, formatter, exchange, on_outcome) for name in units}
        arrivals = Arrivals(submitted, lambda: watch.wake("files"))
        arrivals.put_back(units)
        # Not before, because the code that the processes read must not be older than the kit's digest.
        open_things.enter_context(pool)
        formatter.start()
        for unit in served.values():
            unit.prepare()
            open_things.callback(unit.close)
        ready = threads.start()
        open_things.callback(arrivals.close)
        if port is not None:
            intake = Intake(
                frozenset(units),
                may_be_graded(directory),
                lambda student: is_listed(options, student),
                int(directory.max_file_size) * KILOBYTE,
                folder,
                arrivals.put,
                threads.put_unrecorded,
            )
            server.start(intake, token)
            open_things.callback(server.refuse)
            port = server.port
        on_start(ready, port)
        _Loop(options.root, served, exchange, threads, arrivals, watch, submitted, once).run()


def is_listed(options: ServeOptions, student: str) -> bool:
    """Return whether requests may submit for this id: it is on the roster as it is now, or need not be.

    Raises BadRoster and CourseProblem.
    """
    if options.unlisted:
        return True
    listed = class_list(options.root, options.roster, options.id_column).roster
    return any(its.id == student for its in listed.students)


@dataclass(frozen=True)
class _Loop:
    """The loop of the serving thread."""

    root: Path
    units: Mapping[str, ServedUnit]
    exchange: Exchange
    threads: GradingThreads
    arrivals: Arrivals
    watch: FolderWatch
    submitted: Path
    remark: Callable[[str], None]

    def run(self) -> None:
        """Make one round after another, until something is raised."""
        look_at = everything_at = 0.0
        reasons: set[str] = set()
        while True:
            now = time.monotonic()
            everything = now >= everything_at
            # A student whose file was being graded may have submitted another one meanwhile.
            look = self._watch_again() or everything or "files" in reasons or now >= look_at
            again, has_trouble = self._round(look=look, everything=everything)
            if look:
                look_at = now + _LOOK_AGAIN_SECONDS
            else:
                again = min(again, _LOOK_AGAIN_SECONDS)
            if everything or has_trouble:
                everything_at = now + (again if has_trouble else _EVERYTHING_SECONDS)
            reasons = self.watch.sleep(time.monotonic() + max(again, 0.0))

    def _watch_again(self) -> bool:
        """Watch the folders that are there now; return whether one of them is new."""
        try:
            return self.watch.watch({self.submitted: True, self.exchange.inbound: False})
        except CourseProblem:  # the round reports it
            return False

    def _round(self, *, look: bool, everything: bool) -> tuple[float, bool]:
        """Bring all units up to date, and report what prevents it.

        Returns the seconds until the next round is due, and whether anything was prevented. Raises KitChanged if
        `serve` can start again.
        """
        try:
            return self._step(look=look, everything=everything)
        except AlreadyLocked:
            self.remark(
                "Another `autograder` command is writing to the course: new submissions wait until it has ended."
            )
            return _LOCKED_SECONDS, True
        except KitChanged:
            if self._can_start():
                raise
        except _TROUBLES as trouble:
            self._report(trouble)
        return _TROUBLED_SECONDS, True

    def _report(self, trouble: Exception) -> None:
        self.remark(f"{trouble} Trying again every {_TROUBLED_SECONDS:g} seconds.")

    def _step(self, *, look: bool, everything: bool) -> tuple[float, bool]:
        again = POLL_SECONDS
        self.arrivals.place()
        if look:
            again = min(again, self.exchange.collect(self.units, lambda unit, who: self.units[unit].is_busy(who)))
        for name, graded in self.threads.results():
            self.units[name].add(graded)
        is_troubled = False
        for unit in self.units.values():
            try:
                again = min(again, unit.step(look=look, everything=everything))
            except AlreadyLocked:
                raise
            except _TROUBLES as trouble:  # which prevents no other unit from being graded
                self._report(trouble)
                is_troubled = True
            for refused in unit.refused:
                self.remark(f"NOT GRADED: {refused.name}: {refused.reason}")
        self.arrivals.answer(lambda about, fingerprint: self.units[about.unit].outcome(about, fingerprint))
        return again, is_troubled

    def _can_start(self) -> bool:
        """Return whether the settings, which somebody may be changing, can be read."""
        try:
            load()
            course_directory(self.root)
        except (BadSettings, CourseProblem) as trouble:
            self.remark(str(trouble))
            return False
        return True
