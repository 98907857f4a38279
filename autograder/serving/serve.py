"""`autograder serve`: marks whatever comes, until it is stopped.

Marking needs no lock; what is marked is recorded a batch at a time, under the lock that `autograder grade` takes too.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ..client.marker import MarkerRefused
from ..client.requests import Ready
from ..client.terms import on_device
from ..client.terms import terms as marking_terms
from ..course import UnknownUnit, UnusableUnit
from ..course.settings import BadSettings, load
from ..gradebook.course_directory import CourseProblem, course_directory
from ..gradebook.course_lock import AlreadyLocked, course_lock
from ..gradebook.roster import BadRoster, class_list, may_be_graded
from ..reports import page_filters
from ..sandbox.isolation import NotIsolated
from . import token
from .arrivals import Arrivals
from .desks import Desks
from .exchange import Exchange
from .http_answers import Office
from .http_server import HttpServer
from .rules import Served, Terms
from .shown import SHOWN
from .unit_served import KitChanged, UnitServed
from .watching import Watching

LOCK = ".serving.lock"
_KILOBYTE = 1000  # as nbgrader counts
_LOCKED_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.3
_TROUBLED_SECONDS = 5.0
_TROUBLES = (CourseProblem, UnknownUnit, UnusableUnit, BadRoster)


def serve(
    units: Sequence[str],
    terms: Terms,
    *,
    markers: int,
    port: int | None = None,
    on_start: Callable[[Ready, int | None], None],
    tell: Callable[[Served], None],
    remark: Callable[[str], None],
) -> None:
    """Serves until it is interrupted; what is marked by then is kept, and the rest is marked the next time.

    port: of this machine, for requests; 0 for a free one, None for none. on_start: is told the port that it is.
    remark: says what an instructor should know; each sentence once. Raises KitChanged when all has to be started anew,
    MarkerRefused, CourseProblem, and at the start what `assignment` raises.
    """
    said: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            remark(sentence)

    with ExitStack() as open_things:
        open_things.enter_context(course_lock(terms.root, LOCK, "serve"))
        server = open_things.enter_context(HttpServer(terms.root, port))
        its_terms = _marking_terms(terms)
        directory = course_directory(terms.root)
        submitted = (terms.root / directory.submitted_directory).resolve()
        submitted.mkdir(exist_ok=True)
        private, its_token = open_things.enter_context(token.fresh(terms.root))
        watching = open_things.enter_context(Watching())
        formatter = open_things.enter_context(page_filters.formatter(terms.settings))
        exchange = Exchange(terms.root, SHOWN, once)
        desks = Desks(
            terms.root,
            units,
            (submitted,),
            device=terms.device,
            settings=terms.settings,
            markers=markers,
            woken=lambda: watching.wake("done"),
            remark=once,
        )
        served = {name: UnitServed(name, terms, desks, formatter, exchange, tell) for name in units}
        arrivals = Arrivals(submitted, lambda: watching.wake("files"))
        arrivals.put_back(units)
        open_things.enter_context(desks)  # not before: what the markers read must not be older than the kit's digest
        formatter.start()
        for unit in served.values():
            unit.prepare()
            open_things.callback(unit.close)
        ready = desks.start()
        office = Office(
            frozenset(units),
            may_be_graded(directory),
            lambda student: is_listed(terms, student),
            int(directory.max_file_size) * _KILOBYTE,
            private,
            arrivals.put,
            desks.ask,
            ready,
            frozenset({on_device(its_terms, terms.device), on_device(its_terms, ready.device)}),
        )
        open_things.callback(arrivals.close)
        server.start(office, its_token)
        open_things.callback(server.refuse)
        on_start(ready, server.port)
        try:
            _Serving(terms, served, exchange, desks, arrivals, watching, submitted, once).run()
        except (KeyboardInterrupt, KitChanged):
            for unit in served.values():
                unit.forget_tries()
            raise


def is_listed(terms: Terms, student: str) -> bool:
    """Return whether requests may submit for this id: it is on the roster as it is now, or need not be.

    Raises BadRoster and CourseProblem.
    """
    if terms.unlisted:
        return True
    listed = class_list(terms.root, terms.roster, terms.id_column).roster
    return any(its.id == student for its in listed.students)


def _marking_terms(terms: Terms) -> str:
    try:
        return marking_terms(terms.settings)
    except NotIsolated as reason:
        raise MarkerRefused(str(reason)) from None


class _Serving:
    """The loop, and one round of it."""

    def __init__(
        self,
        terms: Terms,
        units: Mapping[str, UnitServed],
        exchange: Exchange,
        desks: Desks,
        arrivals: Arrivals,
        watching: Watching,
        submitted: Path,
        remark: Callable[[str], None],
    ) -> None:
        self._terms = terms
        self._units = units
        self._exchange = exchange
        self._desks = desks
        self._arrivals = arrivals
        self._watching = watching
        self._submitted = submitted
        self._remark = remark

    def run(self) -> None:
        """Goes on until something is raised."""
        look = everything = True
        is_troubled = False
        looked = looked_at_all = 0.0
        while True:
            look = self._watches_anew() or look
            looked_at_all = time.monotonic() if everything else looked_at_all
            looked = time.monotonic() if look else looked
            again, has_trouble = self._round(look=look, everything=everything)
            is_troubled = has_trouble or (is_troubled and not everything)
            if is_troubled:
                again = min(again, _TROUBLED_SECONDS)
            if not look:
                again = min(again, _LOOK_AGAIN_SECONDS)
            reasons = self._watching.sleep(time.monotonic() + max(again, 0.0))
            now = time.monotonic()
            everything = now - looked_at_all >= (_LOCKED_SECONDS if is_troubled else self._watching.look_seconds)
            # A student whose file was being marked may have handed in another one meanwhile.
            look = everything or "files" in reasons or now - looked >= _LOOK_AGAIN_SECONDS

    def _watches_anew(self) -> bool:
        """Sees to it that the folders that are there now are watched; whether another one is."""
        try:
            return self._watching.watch({self._submitted: True, self._exchange.inbound: False})
        except CourseProblem:  # the round meets it too
            return False

    def _round(self, *, look: bool, everything: bool) -> tuple[float, bool]:
        """In how many seconds the next look is due, and whether this one did not come to its end, as it says then.

        Raises KitChanged where all can be started anew.
        """
        try:
            return self._look(look=look, everything=everything)
        except AlreadyLocked:
            self._remark(
                "Another `autograder` command is writing to the course: what comes waits until that one is done."
            )
            return _LOCKED_SECONDS, True
        except KitChanged:
            if self._can_start():
                raise
        except _TROUBLES as trouble:
            self._say(trouble)
        return _TROUBLED_SECONDS, True

    def _say(self, trouble: Exception) -> None:
        self._remark(f"{trouble} Trying again every {_TROUBLED_SECONDS:g} seconds.")

    def _look(self, *, look: bool, everything: bool) -> tuple[float, bool]:
        """One look at everything that is to be looked at; what it returns is as in `_round`."""
        again = self._watching.look_seconds
        self._arrivals.place()
        if look:
            collected = self._exchange.collect(self._units, lambda unit, who: self._units[unit].is_busy(who))
            again = again if collected is None else min(again, collected)
        for done in self._desks.taken():
            self._units[done.unit].done(done)
        is_troubled = False
        for unit in self._units.values():
            try:
                again = min(again, unit.step(look=look, everything=everything))
            except AlreadyLocked:
                raise
            except _TROUBLES as trouble:  # what is wrong with one unit keeps no other from being marked
                self._say(trouble)
                is_troubled = True
            for one in unit.refused:
                self._remark(f"NOT GRADED: {one.name}: {one.reason}")
        self._arrivals.tell(lambda its, look: self._units[its.unit].became(its, look))
        return again, is_troubled

    def _can_start(self) -> bool:
        """Whether the settings, which somebody is changing, can be read."""
        try:
            load()
            course_directory(self._terms.root)
        except (BadSettings, CourseProblem) as trouble:
            self._remark(str(trouble))
            return False
        return True
