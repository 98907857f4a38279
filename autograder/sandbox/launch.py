"""Starts the warm parent's process. Imports no torch, so that a caller's own imports run beside the parent's."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from . import isolation, temporary
from .confine.confinement import Level, Terms
from .confined_process import ConfinedProcess, start
from .limits import Limits

CHECK = "exercise_check"
"""What the module with the check is called, where a course says nothing else."""
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Launched:
    """A warm parent on its way, and the terms."""

    confined: ConfinedProcess
    level: Level
    limits: Limits
    cuda: bool
    check: str
    """The module that notebooks import their check from."""
    core: int | None
    """The processor that workers keep to; None leaves them to the system."""

    def again(self) -> "Launched":
        """Another one on the same terms."""
        return launch(self.level, self.limits, cuda=self.cuda, check=self.check, core=self.core)


def launch(level: Level, limits: Limits, *, cuda: bool, check: str = CHECK, core: int | None = None) -> Launched:
    """Start Python on a copy of the worker's packages, which is deleted before any student's code runs."""
    temporary.clear()
    room = temporary.make("autograder-")
    copy_packages(("core", "sandbox/confine", "sandbox/worker"), room / "inside")
    (room / "home").mkdir()
    home = "/tmp" if level == "A" else str(room / "home")
    scratch = isolation.SCRATCH if level == "A" else home
    devices = isolation.devices(cuda=cuda)
    terms = Terms(level, isolation.readable(), scratch, limits.scratch_bytes, devices, cuda)
    code = f"""
import gc, json, sys
gc.disable()
sys.path[:0] = [{str(room)!r}]
sys.path += {isolation.packages()!r}
from inside.sandbox.worker.warm_parent import main
from inside.sandbox.confine.confinement import Terms
sys.path.remove({str(room)!r})
main(int(sys.argv.pop()), Terms(**json.loads({json.dumps(asdict(terms))!r})), {check!r})
"""
    environment = {
        "HOME": home,
        "MPL_IGNORE_SYSTEM_FONTS": "1",  # or matplotlib reads every font of the machine at each start
        "TMPDIR": home,
        "LOGNAME": "student",
        "MPLBACKEND": "Agg",
        "TORCH_COMPILE_DISABLE": "1",  # there is no compiler here; torch.compile leaves a function as it is
        # A fork carries no threads over, so no pool may have been started before it.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # Large pages, where the kernel gives them: the table of pages, which each fork copies, is so much smaller.
        # One arena: the second has 64 MB of address space, in which a worker could exceed its memory limit.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1",
        "PYTHONHASHSEED": "0",  # a set is walked in the same order each time, so a mark repeats
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # what deterministic CUDA needs
    }
    try:
        confined = start(code, room, level, environment, scratch_bytes=limits.scratch_bytes, cuda=cuda)
    except OSError as error:
        raise isolation.NotIsolated(f"The sandbox could not be started: {error}.") from None
    return Launched(confined, level, limits, cuda, check, core)


def copy_packages(names: Iterable[str], folder: Path) -> None:
    """Copy packages of autograder into a new package. names: their paths below autograder/."""
    folder.mkdir()
    for name in names:
        shutil.copytree(_PACKAGE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for parent in (folder / name).relative_to(folder).parents:
            (folder / parent / "__init__.py").touch()
