"""What there is to harm: an instructor's files, a process of the same user, something that listens. With a look after."""

import hashlib
import os
import resource
import secrets
import shutil
import socket
import sqlite3
import subprocess
from pathlib import Path

from tests import REPOSITORY

from .case import UNIT


class Instructor:
    """A folder with a secret, a gradebook, a neighbour's work and copies of graders and answers, and what runs beside."""

    def __init__(self, folder: Path) -> None:
        self.token = "CANARY" + secrets.token_hex(16)
        os.environ["CANARY_TOKEN"] = self.token  # the marking process inherits it; a worker must not
        self._folder = folder / "instructor"
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        os.environ["TMPDIR"] = str(self._temporary)
        self.secret = self._file("secret", self.token)
        self.neighbour = self._file("submitted/nell/unit.ipynb", self.token)
        self.graders = self._copy(f"autograder/hidden/{UNIT}/test_functions.py")
        self.answers = self._copy(f"solutions/{UNIT}.py")
        self.gradebook = self._folder / "gradebook.db"
        with sqlite3.connect(self.gradebook) as database:
            database.execute("create table grade (student text, score real)")
            database.execute("insert into grade values (?, 12)", (self.token,))
        database.close()
        self._bystander = subprocess.Popen(["sleep", "100000"])
        self._port = socket.create_server(("127.0.0.1", 0))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._folder / "socket"))
        for listener in (self._port, self._socket):
            listener.listen()
            listener.setblocking(False)
        self._before = self._state()
        self._processes = 0
        self._temporary_files: set[str] = set()

    def names(self, grading_process: int) -> dict[str, object]:
        """What the cases call the things that they try to reach."""
        return {
            "SECRET": str(self.secret),
            "GRADEBOOK": str(self.gradebook),
            "NEIGHBOUR": str(self.neighbour),
            "GRADERS": str(self.graders),
            "ANSWERS": str(self.answers),
            "REPOSITORY": str(REPOSITORY),
            "PORT": self._port.getsockname()[1],
            "SOCKET": str(self._folder / "socket"),
            "BYSTANDER": self._bystander.pid,
            "GRADER": grading_process,
            "TOKEN": self.token[::-1],  # backwards, so that it is not found where a case says what it looks for
        }

    def settle(self) -> None:
        """What is running now is what may run."""
        self._processes = len(_descendants(os.getpid()))
        self._temporary_files = _kinds(self._temporary)

    def harm(self) -> list[str]:
        """What has changed since the beginning, in words; empty where nothing has."""
        now = self._state()
        harm = [name for name, value in self._before.items() if now.get(name) != value]
        harm += [f"new: {name}" for name in now if name not in self._before]
        return harm + self._left()

    def close(self) -> None:
        """Ends what runs beside."""
        self._bystander.kill()
        self._bystander.wait()
        self._port.close()
        self._socket.close()

    def _file(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def _copy(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, path)
        return path

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = {}
        for path in sorted(self._folder.rglob("*")):
            status = path.lstat()
            state[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, os.listxattr(path))
            if path.is_file():
                state[f"content of {path}"] = hashlib.sha256(path.read_bytes()).hexdigest()
        pid = self._bystander.pid
        state["the bystander's life"] = self._bystander.poll()
        state["its limits"] = [resource.prlimit(pid, kind) for kind in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)]
        state["its processors"] = os.sched_getaffinity(pid)
        state["its scheduling"] = (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid))
        state["connections"] = [_is_reached(self._port), _is_reached(self._socket)]
        state["System V"] = [
            Path(f"/proc/sysvipc/{kind}").read_text().count(" 4711 ") for kind in ("shm", "msg", "sem")
        ]
        return state

    def _left(self) -> list[str]:
        """Processes and files that a submission has left behind."""
        left = [f"a process: {name}" for name in _descendants(os.getpid())] if self._too_many() else []
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
            left += [str(path) for path in (Path(folder) / "left-for-you", Path(folder) / "left") if path.exists()]
        for room in self._temporary.iterdir():
            left += [str(path) for path in (room / "home").glob("*") if path.name.startswith("submission-")]
        left += sorted(_kinds(self._temporary) - self._temporary_files)
        return left

    def _too_many(self) -> bool:
        return self._processes > 0 and len(_descendants(os.getpid())) > self._processes


def _kinds(folder: Path) -> set[str]:
    """The names in a folder, those of fork servers' rooms without their random ends."""
    return {"a room" if path.name.startswith("autograder-") else path.name for path in folder.iterdir()}


def _is_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _descendants(pid: int) -> list[str]:
    """The names of all processes below this one."""
    children: dict[int, list[tuple[int, str]]] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(lines["PPid"]), []).append((int(lines["Pid"]), lines["Name"]))
    found, waiting = [], [pid]
    while waiting:
        for child, name in children.get(waiting.pop(), []):
            found.append(f"{name} ({child})")
            waiting.append(child)
    return found
