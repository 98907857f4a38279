"""Jupyter kernels that are forked from a process with torch imported, which takes longer than most notebooks.

`kernels` starts that process in an environment of its own. Each kernel is a process of its own all the same, with its
own names, working folder and environment, as if it had been started.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "forked"
SHOWN_INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""Set what a kernel sets before it imports matplotlib, which is imported already here."""


@contextmanager
def kernels(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Kernels that have imported what this environment lets them; the folder in which they are, called NAME."""
    asked, spec = folder / "asked", folder / NAME
    spec.mkdir()
    line = [sys.executable, "-I", "-S", __file__, str(asked), "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": line, "display_name": NAME, "language": "python"}))
    with (
        socket.socket(socket.AF_UNIX) as listening,
        subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            env={**environment, **SHOWN_INLINE},
            start_new_session=True,
        ),
    ):
        listening.bind(str(asked))
        listening.listen()
        yield folder


def _ask(path: str, connection: str) -> None:
    """Is what Jupyter takes for the kernel, until that has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent to it before the kernel is asked to end
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        server.sendall(json.dumps([connection, str(Path.cwd()), dict(os.environ)]).encode())
        server.shutdown(socket.SHUT_WR)
        server.recv(1)


def _serve(descriptor: int) -> None:
    """Forks a kernel for everyone who asks; ends, with all of them, when nothing more can come."""
    del sys.path[0]  # where this file is
    import matplotlib.pyplot  # noqa: F401
    import torch._dynamo  # noqa: F401  (as its optimizers do)
    from ipykernel import debugger, ipkernel, kernelapp  # noqa: F401

    __import__("IPython.core.debugger")  # which each kernel imports when it begins

    listening = socket.socket(fileno=descriptor)
    while select.select([listening, sys.stdin], [], [])[0] == [listening]:
        client, _ = listening.accept()
        with client.makefile("rb") as said:
            order = json.loads(said.read())
        if not os.fork():
            listening.close()
            _become(*order)
        client.close()
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
    os.killpg(0, signal.SIGKILL)


def _become(connection: str, cwd: str, environment: Mapping[str, str]) -> None:
    """Is from here on the kernel; its end is that of the connection to who asked."""
    from ipykernel import kernelapp

    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["ipykernel_launcher", "-f", connection]
    kernelapp.launch_new_instance()
    sys.exit()


if __name__ == "__main__":
    _serve(int(sys.argv[1])) if len(sys.argv) == 2 else _ask(*sys.argv[1:])
