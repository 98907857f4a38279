"""Starts the formatter's process, confined like a submission's."""

import json
from dataclasses import asdict

from ..sandbox import isolation, temporary
from ..sandbox.confine.confinement import Level, Terms
from ..sandbox.confine.resources import WorkerLimits
from ..sandbox.launch import ConfinedProcess, copy_packages, start
from .limits import PageLimits

_MEGABYTE = 1 << 20
_CHILDS_CPU_SECONDS = 600
"""For everything that one child formats; it is replaced long before that."""


def launch(level: Level, limits: PageLimits) -> ConfinedProcess:
    """Starts Python on a copy of the code that formats and the code that confines; raises OSError.

    The caller deletes the copy once the process has said that it is ready.
    """
    room = temporary.make("autograder-")
    copy_packages(("formatting", "core", "sandbox/confine"), room / "autograder")
    terms = Terms(level, isolation.readable(), devices=isolation.devices(cuda=False))
    worker = WorkerLimits(_CHILDS_CPU_SECONDS, limits.memory_megabytes * _MEGABYTE, 0, 32, 1)
    code = f"""
import json, sys
sys.path[:0] = [{str(room)!r}]
sys.path += {isolation.packages()!r}
from autograder.formatting.formatter import main
from autograder.sandbox.confine.confinement import Terms
from autograder.sandbox.confine.resources import WorkerLimits
sys.path.remove({str(room)!r})
terms, limits = json.loads({json.dumps([asdict(terms), asdict(worker)])!r})
main(int(sys.argv.pop()), Terms(**terms), WorkerLimits(**limits))
"""
    return start(code, room, level, {"HOME": "/"}, scratch_bytes=_MEGABYTE, own_session=True)
