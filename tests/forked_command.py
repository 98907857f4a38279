"""Run a command of this environment in a process of its own: `autograder` and `nbgrader` are as `subprocess.run`.

`Started` is as `subprocess.Popen`: it runs while the test goes on, which may end it, or not read its output.

The process is forked from one that has imported nbgrader and typer, which takes more time than most commands. The
program itself is run from its beginning, and our commands' modules are imported again. Marking processes that a command
starts are forked too, with torch imported, and run from their beginning; their sandboxes start as ever.
"""

import atexit
import contextlib
import json
import math
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NoReturn, TextIO

PYTHON = Path(sys.executable)
PROGRAMS = PYTHON.parent
REPOSITORY = Path(__file__).resolve().parents[1]


def run(
    program: str,
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float = 400,
    python: Path = PYTHON,
    course: Path = REPOSITORY,
) -> subprocess.CompletedProcess[str]:
    """Run a command; return its output and exit code. program: its name, or the path of a Python file.

    python: of the environment whose program it is. course: any that its engine takes, to be imported for.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("out", "err")]
        order = _order(python.parent / program, arguments, cwd, env)
        code = _answer({**order, "said": list(map(str, said)), "timeout": timeout}, python, course)
        assert code is not None
        out, err = (path.read_text() for path in said)
    if code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(order["command"], timeout, out, err)
    return subprocess.CompletedProcess(order["command"], code, out, err)


autograder, nbgrader = partial(run, "autograder"), partial(run, "nbgrader")


def autograder_in(course: Path) -> Callable[..., str]:
    """Return a function that runs the command in a course, requires an exit code, and returns what was printed."""

    def run_there(*arguments: object, code: int = 0) -> str:
        done = autograder(*arguments, cwd=course)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run_there


class Started:
    """A command that runs. What it says is read from `stdout` and `stderr`, but for what goes to descriptors given."""

    def __init__(
        self,
        program: str,
        *arguments: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        pipes = [os.pipe() if given is None else None for given in (stdout, stderr)]
        theirs = [pipe[1] if pipe else given for pipe, given in zip(pipes, (stdout, stderr), strict=True)]
        _, _, descriptors = _server(PYTHON, REPOSITORY)
        socket.send_fds(descriptors, [b"+"], theirs)
        pid = _answer(_order(PROGRAMS / program, arguments, cwd, env))
        assert pid is not None
        self.pid = pid
        self.stdout, self.stderr = (os.fdopen(pipe[0]) if pipe else None for pipe in pipes)
        for _, far in filter(None, pipes):
            os.close(far)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self.returncode is None:
            self.returncode = _answer({"ended": self.pid})
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float = 400) -> tuple[str, str]:
        """The rest of what it says, to its end."""
        end = time.monotonic() + timeout
        with ThreadPoolExecutor(2) as threads:
            streams = (self.stdout, self.stderr)
            said = list(threads.map(lambda stream: "" if stream is None else stream.read(), streams))
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout, *said)
            time.sleep(0.01)
        for stream in filter(None, streams):
            stream.close()
        return said[0], said[1]


def _order(
    program: Path, arguments: tuple[str | Path, ...], cwd: Path, env: Mapping[str, str] | None
) -> dict[str, object]:
    return {
        "command": [str(program), *map(str, arguments)],
        "cwd": str(cwd),
        "env": dict(os.environ if env is None else env),
    }


def _answer(order: Mapping[str, object], python: Path = PYTHON, course: Path = REPOSITORY) -> int | None:
    orders, answers, _ = _server(python, course)
    orders.write(json.dumps(order) + "\n")
    orders.flush()
    answer = json.loads(answers.readline())
    return None if answer is None else int(answer)


@cache
def _server(python: Path, course: Path) -> tuple[TextIO, TextIO, socket.socket]:
    """Return the streams for orders and answers, and the socket for the descriptors of a command's output."""
    environment = {**os.environ, "AUTOGRADER_COURSE": str(course)}
    environment["PYTHONHASHSEED"] = "0"  # as grading processes have it
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [python, __file__, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env=environment,
            text=True,
        )
    atexit.register(ours.close)
    atexit.register(server.communicate)
    assert server.stdin
    assert server.stdout
    return server.stdin, server.stdout, ours


def _serve() -> None:
    """Carries out one order a line, and answers each in a line."""
    descriptors = socket.socket(fileno=int(sys.argv[1]))
    sys.modules.setdefault("rfc3987_syntax", None)  # as our command does: see `cli`
    for module in ("nbgraderapp", "autogradeapp", "generateassignmentapp", "generatefeedbackapp", "collectapp"):
        __import__(f"nbgrader.apps.{module}")
    for module in ("classroom.grade", "pool.grading_pool", "grading.service"):
        __import__(f"autograder.{module}")  # not `cli`, which looks at the environment
    for module in ("typer.main", "typer.rich_utils", "rich.progress", "rich.table", "pydantic.functional_validators"):
        __import__(module)
    for name in [name for name in sys.modules if name.startswith("autograder.grading")]:
        del sys.modules[name]  # one of them keeps which course it is
    sys.modules["autograder.course.settings"].folder.cache_clear()
    sys.modules["autograder.pool.grading_pool"].subprocess = _Starting
    for line in sys.stdin:
        order = json.loads(line)
        if "ended" in order:
            print(json.dumps(_ended(order["ended"])), flush=True)
            continue
        said = None if "said" in order else socket.recv_fds(descriptors, 1, 2)[1]
        pid = os.fork()
        if not pid:
            descriptors.close()
            _become(order, said or [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in order["said"]])
        if said:
            for descriptor in said:
                os.close(descriptor)
            print(pid, flush=True)
            continue
        end = time.monotonic() + order["timeout"]
        while (code := _ended(pid)) is None:
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.01)
        print(code, flush=True)


def _ended(pid: int) -> int | None:
    """Return the exit code; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(order: dict, said: list[int]) -> None:
    """Is from here on the command. said: the descriptors of what it says."""
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, descriptor in enumerate([os.open(os.devnull, os.O_RDWR), *said]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.argv = order["command"]
    sys.orig_argv = [sys.executable, *sys.argv]  # with which `serve` starts itself anew
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
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError as error:  # of which Python complains too
            code = 120
            with contextlib.suppress(OSError):
                print(f"Exception ignored while flushing {stream.name}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


class _Forked:
    """A grading process that is forked from the command, as its client asks of one."""

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
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("marking", timeout)
            time.sleep(0.005)

    def poll(self) -> int | None:
        """Return 0 once the process has ended, else None; may be called in any thread."""
        try:
            self._has_ended = self._has_ended or bool(os.waitpid(self.pid, os.WNOHANG)[0])
        except ChildProcessError:  # another thread has waited for it
            self._has_ended = True
        return 0 if self._has_ended else None


class _Starting:
    """In the place of `subprocess` where a command starts its grading process."""

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    @staticmethod
    def Popen(command: list[str], *, env: Mapping[str, str], **pipes: int) -> "subprocess.Popen[bytes] | _Forked":
        """Start a forked process, or an ordinary one if other threads run, with which forking is unsafe."""
        if threading.active_count() > 1:
            return subprocess.Popen(command, env=env, **pipes)
        return _Forked(command, env)


def _mark(command: list[str], environment: Mapping[str, str], stdin: int, stdout: int) -> NoReturn:
    """Is from here on the grading process."""
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
