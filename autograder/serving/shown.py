"""The pages as students see them now: put where they are released from, and released."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from ..classroom import whole_files
from ..classroom.assignment import Assignment
from ..classroom.student_folders import Autograded
from ..gradebook.class_gradebook import Times
from .exchange import EVERYONE, Exchange
from .looking import status
from .rules import Terms
from .students_page import limited, public_statements, with_notice

SHOWN = "shown"
"""The course's folder with the pages as students see them; `feedback` has them as they are after the due date."""

_AGAIN_SECONDS = 5.0
"""What could not be released is tried again so much later, with the next look at what may have changed."""


class Shown:
    """One unit's pages."""

    def __init__(self, unit: str, terms: Terms, exchange: Exchange) -> None:
        self._unit = unit
        self._terms = terms
        self._exchange = exchange
        self._seen: dict[str, object] = {}
        """What each student's page was made of."""
        self._again_at = 0.0
        self._unreleased = {EVERYONE}
        """Of whom the page may not be released: the last run may have ended before it had released what it made."""

    def page(self, student: str) -> Path:
        """The path of the page that a student sees."""
        return self._terms.root / SHOWN / student / self._unit / f"{self._unit}.html"

    def is_new(self, student: str) -> None:
        """Another mark of the student's was recorded."""
        self._seen.pop(student, None)

    def shows_all(self, times: Times | None) -> bool:
        """Whether a student sees the usual page, points included."""
        return self._terms.rules.show == "all" or (times is not None and _is_due(times))

    def update(
        self,
        work: Assignment,
        usual: Callable[[str], Path],
        times: Mapping[str, Times],
        notices: Mapping[str, str],
    ) -> None:
        """Puts what each student is to see now in its place, and releases it.

        usual: where a student's feedback page is. notices: what is said on top of the page of a student
        whose next file waits.
        """
        autograded = Autograded(work.directory, self._unit)
        changed: set[str] = set()
        for student, its_times in times.items():
            page, notice = usual(student), notices.get(student)
            its = (status(page), _is_due(its_times), its_times, notice)
            if its[0] is None or its == self._seen.get(student):
                continue
            content = self._content(autograded, student, page, its_times, notice)
            place = self.page(student)
            if content is not None and (not place.is_file() or place.read_bytes() != content):
                self._unreleased.add(student)  # should the next one's page raise an error
                changed.add(student)
                whole_files.fill(place.parent, {place.name: content}, page.stat().st_mode & 0o777)
            self._seen[student] = its
        self._release(changed)

    def _release(self, changed: set[str]) -> None:
        """Releases these, and from time to time what could not be released before."""
        self._unreleased |= changed
        asked = self._unreleased if time.monotonic() >= self._again_at else changed
        if not asked:
            return
        failed = self._exchange.release(self._unit, None if EVERYONE in asked else sorted(asked))
        self._unreleased = failed if EVERYONE in asked else (self._unreleased - asked) | failed
        if failed:
            self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _content(
        self, autograded: Autograded, student: str, usual: Path, times: Times, notice: str | None
    ) -> bytes | None:
        """What the student is to see; None if there is nothing yet."""
        rules = self._terms.rules
        if self.shows_all(times):
            page = usual.read_bytes()
        else:
            report = autograded.report(student)
            if report is None:
                return None
            page = limited(report, rules.show, self._statements, due=times.due, handed_in=times.handed_in)
        return page if notice is None else with_notice(page, notice)

    @cached_property
    def _statements(self) -> dict[str, list[str]]:
        return public_statements(self._unit, self._terms.root)


def _is_due(times: Times) -> bool:
    return times.due is not None and times.due.replace(tzinfo=UTC) <= datetime.now(UTC)
