"""nbgrader's `release_feedback`, for folders in which a student may have changed or deleted anything.

nbgrader's own ends for the whole class if one student's time or secret is missing or is not text. And it looks for both
next to the page, where `autograder grade` does not put them.
"""

import re
import shutil
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

from ..submitted.folder import NotAFile, OpenedFolder, read_up_to
from .literal_paths import paths_like

SECRET = "submission_secret.txt"
_LONGEST_SECRET = 1000  # bytes; nbgrader writes 128


class ReleaseFeedback(ExchangeReleaseFeedback):
    """Releases the pages of everyone whose submission came through the exchange, and names the others."""

    def copy_files(self) -> None:
        left_out = set((self.coursedir.student_id_exclude or "").split(","))
        for page in sorted(map(Path, paths_like(f"{self.src_path}/*.html"))):  # for everyone
            student = self._student(page)
            if student in left_out:
                continue
            secret = self._secret(page.parent, student)
            if secret is None:
                self.log.error("Not released: %s (no %s was handed in).", ascii(student)[1:-1], SECRET)
                continue
            released = Path(self.dest_path) / f"{notebook_hash(secret=secret, notebook_id=page.stem)}.html"
            part = released.with_name(f"{released.stem}-tmp.html")
            shutil.copy(page, part)
            part.replace(released)
            self.log.info("Feedback released for student '%s' to: %s", ascii(student)[1:-1], released)

    def _student(self, page: Path) -> str:
        pattern = self.coursedir.format_path(
            self.coursedir.feedback_directory, "(?P<student>.*)", self.coursedir.assignment_id, escape=True
        )
        found = re.fullmatch(pattern, str(page.parent), re.DOTALL)
        return found["student"] if found else ""

    def _secret(self, beside: Path, student: str) -> str | None:
        """The secret by which the student finds the page; None if there is none."""
        coursedir = self.coursedir
        handed_in = coursedir.format_path(coursedir.submitted_directory, student, coursedir.assignment_id)
        for folder in (beside, Path(handed_in)):
            try:
                with OpenedFolder.of_student(folder) as opened, opened.file(SECRET) as file:
                    return (read_up_to(file, _LONGEST_SECRET) or b"").decode("ascii") or None
            except (NotAFile, OSError, ValueError):
                continue
        return None
