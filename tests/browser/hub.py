"""JupyterHub as deploy/jupyterhub.md sets it up: with the settings and commands that the page contains."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import REPOSITORY
from tests.processes import wait_until

from .file_system import confined

TEACHER, STUDENTS = "teacher", ("sofie", "tom")
_PAGE = (REPOSITORY / "deploy" / "jupyterhub.md").read_text()
_USER = "1000"


@dataclass(frozen=True)
class Hub:
    """A hub that runs. The folders of accounts are in `homes`."""

    address: str
    homes: Path


def commands(section: str) -> list[str]:
    """Return the blocks of commands in a section of the page."""
    text = _PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


@contextmanager
def hub_without_accounts(folder: Path) -> Iterator[Hub]:
    """Start the hub; its files are in this folder, which has the places of the page's paths."""
    _write_settings(folder)
    (folder / "srv" / "nbgrader" / "exchange").mkdir(parents=True)
    (folder / "srv" / "nbgrader" / "exchange").chmod(0o1777)
    (folder / "etc" / "passwd").write_text(f"jovyan:x:{_USER}:{_USER}::/home/jovyan:/bin/bash\n")
    (folder / "etc" / "group").write_text(f"jovyan:x:{_USER}:\n")
    environment = folder / "home" / TEACHER / "attention" / ".venv"
    environment.parent.mkdir(parents=True)
    environment.symlink_to(sys.prefix)
    inside = _inside(folder)
    _, make_class = commands("The teacher's folder")
    subprocess.run([*inside, "--setenv", "HOME", f"/home/{TEACHER}", "bash", "-ec", make_class], check=True)

    (start,) = commands("Start")
    log = folder / "hub.log"
    public, internal, proxy = _free_ports(3)
    address = f"http://127.0.0.1:{public}/"
    options = [
        f"--JupyterHub.bind_url={address}",
        f"--JupyterHub.hub_port={internal}",
        f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{proxy}",
    ]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*inside, "bash", "-ec", f"{start.rstrip()} {' '.join(options)}"], stdout=output, stderr=output
        )
    try:
        wait_until(lambda: process.poll() is not None or "JupyterHub is now running" in log.read_text())
        if process.poll() is not None:
            pytest.fail("JupyterHub ended: " + log.read_text())
        yield Hub(address, folder / "home")
    finally:
        process.kill()  # and with it everything that it started
        process.wait()


def _write_settings(folder: Path) -> None:
    """Write each block of settings into the file that its first line names."""
    for block in re.findall(r"^```python\n(.*?)^```$", _PAGE, re.M | re.S):
        place = block.partition("\n")[0].rpartition(" ")[2]
        file = folder / place.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as settings:
            settings.write(block)


def _inside(folder: Path) -> list[str]:
    """Return the beginning of a command line: the page's paths, and an account named `jovyan`."""
    etc = {f"/etc/{name}": folder / "etc" / name for name in ("passwd", "group", "jupyter")}
    line = confined({str(REPOSITORY): REPOSITORY, **etc}, {f"/{name}": folder / name for name in ("srv", "home")})
    line += ["--unshare-user", "--uid", _USER, "--gid", _USER, "--symlink", sys.prefix, "/opt/jupyterhub"]
    return [*line, "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/srv/jupyterhub"]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
