"""A process that runs Python on a copy of some of our code, in a folder of its own, with what confines it around it."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import isolation, temporary
from .confine.confinement import Level

ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONWARNINGS": "ignore"}  # warnings never change a mark


@dataclass(frozen=True)
class ConfinedProcess:
    """The process, the control connection to it, and the folder with its code."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    room: Path

    def end(self, seconds: float) -> None:
        """Hangs up, and kills it if it has not ended by then. Its folder goes with it."""
        self.control.close()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):  # at worst a folder stays behind, which a later run removes
            temporary.remove(self.room)


def start(
    code: str,
    room: Path,
    level: Level,
    environment: Mapping[str, str],
    *,
    scratch_bytes: int,
    cuda: bool = False,
    own_session: bool = False,
) -> ConfinedProcess:
    """Starts Python on this code, which finds the descriptor of its end of the connection last in sys.argv.

    -S leaves out the .pth files of site-packages, one of which may put this repository on the path. The environment is
    made from nothing. own_session: Ctrl-C in a terminal does not reach it. OSError where nothing can be started; the
    folder is removed then.
    """
    control, far_end = socket.socketpair()
    command = [isolation.python(), "-P", "-s", "-S", "-B", "-c", code, str(far_end.fileno())]
    if level == "A":
        command = isolation.bubblewrapped(command, room, scratch_bytes, cuda=cuda)
    with far_end:
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[far_end.fileno()],
                cwd=room,
                env={**ENVIRONMENT, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError:
            control.close()
            temporary.remove(room)
            raise
    return ConfinedProcess(process, control, room)
