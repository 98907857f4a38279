"""The files that `mark` writes beside what it prints."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import output_files
from ..output_files import NotWritable
from ..report import Report
from ..reports.exports import Visibility
from . import paths
from .paths import STANDARD_OUTPUT


@dataclass(frozen=True)
class ResultFiles:
    """Which files are asked for."""

    junit: Path | None
    gradescope: Path | None
    hidden: Visibility
    """Who sees, on Gradescope, what comes of the hidden graders."""
    is_quiet: bool = False
    """True if nothing else goes to standard output, so that one result file may be written to it."""

    def check(self, notebooks: Sequence[Path]) -> None:
        """Raise NotWritable if it is known before marking that a file cannot be written, or should not be."""
        asked = [path for path in (self.junit, self.gradescope) if path]
        if self.gradescope and len(notebooks) > 1:
            raise NotWritable("--gradescope takes one notebook: results.json is the result of one submission.")
        if len({os.path.realpath(path) for path in asked}) < len(asked):
            raise NotWritable(f"{self.junit} cannot hold both results. Give --junit and --gradescope different files.")
        for path in asked:
            if path != STANDARD_OUTPUT:
                output_files.check(path, notebooks)
            elif not self.is_quiet:
                raise NotWritable("Standard output has the reports already. Give --quiet too, or name a file.")

    def write(self, reports: Sequence[Report]) -> None:
        """Write them; raise NotWritable and OutputLost."""
        if self.junit:
            from ..reports.exports import junit_xml

            paths.write(self.junit, junit_xml(reports))
        if self.gradescope:
            from ..reports.exports import gradescope_results

            paths.write(self.gradescope, gradescope_results(reports[0], self.hidden))
