"""Runs a command of this environment's in a process of its own: `autograder` and `nbgrader` are as `subprocess.run`.

The process is forked from one that has imported nbgrader, which takes two seconds, and more than most commands. The
program itself is run from its beginning, our commands' modules are imported anew. Marking processes that a command
starts are forked too, with torch imported, and run from their beginning; their sandboxes start as ever.
"""

import atexit
import contextlib
import json
import math
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

PROGRAMS = Path(sys.executable).parent
REPOSITORY = Path(__file__).resolve().parents[1]


def run(
    program: str,
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = 400,
    python: Path = Path(sys.executable),
    course: Path = REPOSITORY,
) -> subprocess.CompletedProcess[str]:
    """What the command said, and its exit code. program: its name, or the path of a Python file.

    python: of the environment whose program it is. course: any that its engine takes, to be imported for.
    """
    server = _server(python, course)
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("out", "err")]
        order = {
            "command": [str(python.parent / program), *map(str, arguments)],
            "cwd": str(cwd),
            "env": dict(os.environ if env is None else env),
            "said": list(map(str, said)),
            "timeout": timeout,
        }
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (path.read_text() for path in said)
    if code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(order["command"], timeout, out, err)
    return subprocess.CompletedProcess(order["command"], code, out, err)


autograder, nbgrader = partial(run, "autograder"), partial(run, "nbgrader")


@cache
def _server(python: Path, course: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "AUTOGRADER_COURSE": str(course)}
    environment["PYTHONHASHSEED"] = "0"  # as marking processes have it
    server = subprocess.Popen(
        [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    """Carries out one order a line."""
    sys.modules.setdefault("rfc3987_syntax", None)  # as our command does: see `cli`
    for module in ("nbgraderapp", "autogradeapp", "generateassignmentapp", "generatefeedbackapp", "collectapp"):
        __import__(f"nbgrader.apps.{module}")
    for module in ("classroom.grade", "classroom.preview", "client.marker", "marking.service"):
        __import__(f"autograder.{module}")  # not `cli`, which looks at the environment
    for name in [name for name in sys.modules if name.startswith("autograder.marking")]:
        del sys.modules[name]  # one of them keeps which course it is
    sys.modules["autograder.course.folder"].folder.cache_clear()
    sys.modules["autograder.client.marker"].subprocess = _Starting
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(order)
        end = time.monotonic() + order["timeout"]
        while not (done := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.01)
        print(os.waitstatus_to_exitcode(done[1]), flush=True)


def _become(order: dict) -> None:
    """Is from here on the command."""
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, path in enumerate([os.devnull, *order["said"]]):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = order["command"]
    tempfile.tempdir = None
    _run(lambda: runpy.run_path(sys.argv[0], run_name="__main__"))


def _run(program: Callable[[], object]) -> NoReturn:
    """Runs a program, and ends as it does."""
    code = 1
    try:
        program()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(code)


class _Forked:
    """A marking process that is forked from the command, as its client asks of one."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if not self.pid:
            _mark(command, environment, theirs_in, theirs_out)
        for descriptor in (theirs_in, theirs_out):
            os.close(descriptor)
        self.stdin, self.stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
        self._has_ended = False

    def kill(self) -> None:
        if not self._has_ended:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = math.inf) -> None:
        end = time.monotonic() + timeout
        while not self._has_ended:
            self._has_ended = bool(os.waitpid(self.pid, os.WNOHANG)[0])
            if not self._has_ended and time.monotonic() > end:
                raise subprocess.TimeoutExpired("marking", timeout)
            time.sleep(0.005)


class _Starting:
    """In the place of `subprocess` where a command starts its marking process."""

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    @staticmethod
    def Popen(command: list[str], *, env: Mapping[str, str], **pipes: int) -> "subprocess.Popen[bytes] | _Forked":
        """Beside other threads, which a fork may not survive, a process as ever."""
        if threading.active_count() > 1:
            return subprocess.Popen(command, env=env, **pipes)
        return _Forked(command, env)


def _mark(command: list[str], environment: Mapping[str, str], stdin: int, stdout: int) -> NoReturn:
    """Is from here on the marking process."""
    *_, module, start = command
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for number, descriptor in enumerate((stdin, stdout)):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.argv = [module, start]
    _run(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


if __name__ == "__main__":
    sys.path[0] = str(PROGRAMS)  # as it is for the programs themselves
    _serve()
