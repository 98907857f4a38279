"""`autograder serve`: marks whatever comes, until it is stopped.

Marking needs no lock; what is marked is recorded a batch at a time, under the lock that `autograder grade` takes too.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ..classroom.one_run import AlreadyLocked, one_run
from ..client.requests import Ready
from ..course import UnknownUnit, UnusableUnit
from ..course.settings import BadSettings, load
from ..feedback import page_filters
from ..gradebook.course_directory import CourseProblem, course_directory
from ..gradebook.roster import BadRoster
from .desks import Desks
from .exchange import Exchange
from .rules import Served, Terms
from .unit_served import SHOWN, KitChanged, UnitServed
from .watching import Watching

LOCK = ".serving.lock"
_LOCKED_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.3
_TROUBLED_SECONDS = 5.0
_TROUBLES = (CourseProblem, UnknownUnit, UnusableUnit, BadRoster)


def serve(
    units: Sequence[str],
    terms: Terms,
    *,
    markers: int,
    on_start: Callable[[Ready], None],
    tell: Callable[[Served], None],
    remark: Callable[[str], None],
) -> None:
    """Serves until it is interrupted; what is marked by then is kept, and the rest is marked the next time.

    remark: says what an instructor should know; each sentence once. Raises KitChanged when all has to be started anew,
    MarkerRefused, and at the start what `assignment` raises.
    """
    said: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            remark(sentence)

    with ExitStack() as open_things:
        open_things.enter_context(one_run(terms.root, LOCK, "serve"))
        directory = course_directory(terms.root)
        submitted = (terms.root / directory.submitted_directory).resolve()
        submitted.mkdir(exist_ok=True)
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
        )
        served = {name: UnitServed(name, terms, desks, formatter, exchange, tell) for name in units}
        open_things.enter_context(desks)  # not before: what the markers read must not be older than the kit's digest
        formatter.start()
        for unit in served.values():
            unit.prepare()
            open_things.callback(unit.close)
        on_start(desks.start())
        look = everything = True
        looked = looked_at_all = 0.0

        def step() -> float:
            """One look at everything that is to be looked at; in how many seconds the next one is due."""
            again = watching.look_seconds
            if look:
                again = min(again, exchange.collect(units, lambda unit, who: served[unit].is_busy(who)) or again)
            for done in desks.taken():
                served[done.unit].done(done)
            for unit in served.values():
                again = min(again, unit.step(look=look, everything=everything))
                for one in unit.refused:
                    once(f"NOT GRADED: {one.name}: {one.reason}")
            return again

        while True:
            is_troubled = True
            try:
                look = watching.watch({submitted: True, exchange.inbound: False}) or look
                looked_at_all = time.monotonic() if everything else looked_at_all
                looked = time.monotonic() if look else looked
                again = step()
                is_troubled = False
            except AlreadyLocked:
                once("Another `autograder` command is writing to the course: what comes waits until that one is done.")
                again = _LOCKED_SECONDS
            except KitChanged:
                if _can_start(terms, once):
                    raise
                again = _TROUBLED_SECONDS
            except _TROUBLES as trouble:
                once(f"{trouble} Trying again every {_TROUBLED_SECONDS:g} seconds.")
                again = _TROUBLED_SECONDS
            if not look:
                again = min(again, _LOOK_AGAIN_SECONDS)
            reasons = watching.sleep(time.monotonic() + max(again, 0.0))
            now = time.monotonic()
            everything = is_troubled or now - looked_at_all >= watching.look_seconds
            # A student whose file was being marked may have handed in another one meanwhile.
            look = everything or "files" in reasons or now - looked >= _LOOK_AGAIN_SECONDS


def _can_start(terms: Terms, remark: Callable[[str], None]) -> bool:
    """Whether the settings, which somebody is changing, can be read."""
    try:
        load()
        course_directory(terms.root)
    except (BadSettings, CourseProblem) as trouble:
        remark(str(trouble))
        return False
    return True
