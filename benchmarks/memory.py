"""Memory of the processes while a class is graded, from the kernel's smaps_rollup."""

import os
import threading
from pathlib import Path
from types import TracebackType

_OFTEN_SECONDS = 0.1
ROLES = ("coordinator", "grading process", "fork server", "worker")


class Watching:
    """Measures, within the block, the most that each kind of process held, in MB: (resident, proportional, private).

    Proportional memory divides what is shared among those who share it, so it changes as workers come and go.
    """

    def __init__(self, root: int | None = None, seconds: float = _OFTEN_SECONDS) -> None:
        """root: the coordinator's process id; this process's if not given. seconds: between two looks."""
        self.most: dict[str, tuple[float, ...]] = {}
        self.now: dict[str, tuple[float, ...]] = {}
        """At the last look; of several processes of a kind the largest."""
        self._root = root or os.getpid()
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(self._seconds):
            now: dict[str, tuple[float, ...]] = {}
            for pid, role in roles(self._root).items():
                if held := _held(pid):
                    now[role] = tuple(map(max, held, now.get(role, held)))
            self.now = now
            for role, held in now.items():
                self.most[role] = tuple(map(max, held, self.most.get(role, held)))

    def __enter__(self) -> "Watching":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()


def roles(root: int) -> dict[int, str]:
    """Return the role of each process of a batch: the tree is coordinator, grader, (bwrap,) fork server, worker."""
    roles, waiting = {root: ROLES[0]}, [(root, 0)]
    while waiting:
        pid, depth = waiting.pop()
        for child in _children(pid):
            if _name(child) == "bwrap":
                waiting.append((child, depth))
            elif depth + 1 < len(ROLES):
                roles[child] = ROLES[depth + 1]
                waiting.append((child, depth + 1))
    return roles


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())  # any thread may have started a grader
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _held(pid: int) -> tuple[float, ...] | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {name: int(rest.split()[0]) / 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"]
