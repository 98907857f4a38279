"""Groups: the submission that counts for each member, of all that the members submitted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from ..course.notebook import printable
from ..report import joined
from .submissions import UNREAD, Submission


def of_member(
    student: str,
    members: Sequence[str],
    submission: Callable[[str], Submission],
    time: Callable[[Submission], datetime | None],
    is_readable: Callable[[Submission], bool],
    due: datetime | None,
) -> Submission:
    """Return the submission that counts for a student: the group's latest by the student's due date, else the latest.

    Unreadable files count only if the group has no other; the note names those that would have counted.

    members: everyone in the group, the student included. submission: returns a member's own. time: returns the time of
    one in UTC; None if it is unknown. A submission of unknown time is in time, and earlier than all others.
    Of submissions at the same time, the one of the first student by id counts.
    """
    submissions = [own for member in sorted(members) if (own := submission(member)).notebook is not None]
    if not submissions or list(members) == [student]:
        return submission(student)
    times = {own.student: time(own) for own in submissions}

    def order(own: Submission) -> tuple[bool, datetime]:
        moment = times[own.student]
        return due is None or moment is None or moment <= due, moment or datetime.min

    ranked = sorted(submissions, key=order, reverse=True)
    best = next(filter(is_readable, ranked), ranked[0])
    unread = [printable(own.student) for own in ranked[: ranked.index(best)]]
    warning = f"{UNREAD}{', '.join(unread)}." if unread else ""
    if best.student == student:
        return replace(best, note=joined(warning, best.note), warning=warning)
    note = f"This is your group's submission, submitted by {printable(best.student)}."
    return replace(best, student=student, author=best.student, note=joined(warning, note, best.note), warning=warning)
