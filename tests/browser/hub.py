"""JupyterHub as deploy/jupyterhub.md sets it up: with the settings and commands that the page contains."""

import re
import secrets
import shutil
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

from .file_system import ETC, confined
from .servers import MINUTES

TEACHER, STUDENTS = "teacher", ("sofie", "tom")
PASSWORD = secrets.token_urlsafe()
"""Password of every account; random, so that nobody else on the machine can sign in to the hub."""
_PAGE = (REPOSITORY / "deploy" / "jupyterhub.md").read_text()
_ETC_OF_ACCOUNTS = ("pam.d", "security", "login.defs", "skel")
_JOVYAN = "1000"
_READY = "JupyterHub is now running"


@dataclass(frozen=True)
class Hub:
    """A hub in a file system of its own, which has the page's paths. The hub runs if it has an address.

    With accounts, it runs as root, and each server as an account of that file system. Otherwise everything runs as the
    account of the tests, which is named `jovyan` there.
    """

    folder: Path
    has_accounts: bool
    address: str = ""

    def inside(self, *command: str, home: str = "/root") -> list[str]:
        """Return the line that runs a command in the hub's file system."""
        writable = {f"/{name}": self.folder / name for name in ("etc", "srv", "home")}
        line = confined({str(REPOSITORY): REPOSITORY}, writable)
        line += ["--cap-add", "ALL"] if self.has_accounts else ["--unshare-user", "--uid", _JOVYAN, "--gid", _JOVYAN]
        line += ["--perms", "0755", "--dir", "/opt", "--symlink", sys.prefix, "/opt/jupyterhub"]
        line += ["--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "HOME", home]
        return [*line, *command]

    def run_as(self, name: str, script: str) -> int:
        """Run commands as a person would in a shell, until one fails. Return the exit code."""
        shell = ["bash", "-ec", script]
        account = ["runuser", "--user", name, "--"] if self.has_accounts else []
        return subprocess.run(self.inside(*account, *shell, home=f"/home/{name}")).returncode


def commands(section: str) -> list[str]:
    """Return the blocks of commands in a section of the page."""
    text = _PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


@contextmanager
def started(folder: Path, *, has_accounts: bool) -> Iterator[Hub]:
    """Set up a hub and start it. Its files are in this folder."""
    hub = Hub(folder, has_accounts)
    for name in ("etc", "srv", "home"):
        (folder / name).mkdir()
    for name in (*ETC, *(_ETC_OF_ACCOUNTS if has_accounts else ())):
        origin, copy = Path("/etc", name), folder / "etc" / name
        if origin.is_dir():
            shutil.copytree(origin, copy, symlinks=True)
        elif origin.exists():
            shutil.copy(origin, copy)
    _make_accounts(hub)
    _write_settings(hub)
    environment = folder / "home" / TEACHER / "attention" / ".venv"
    environment.parent.mkdir()
    environment.symlink_to(sys.prefix)
    _, make_class = commands("The teacher's folder")
    assert hub.run_as(TEACHER, make_class) == 0
    with _running(hub) as address:
        yield Hub(folder, has_accounts, address)


def _make_accounts(hub: Hub) -> None:
    """Make the accounts, their homes and the exchange."""
    users, groups = hub.folder / "etc" / "passwd", hub.folder / "etc" / "group"
    _, make_accounts = commands("Install")
    if hub.has_accounts:
        users.write_text("root:x:0:0::/root:/bin/bash\n")
        groups.write_text("root:x:0:\n")
        subprocess.run(hub.inside("bash", "-ec", make_accounts), check=True)
        passwords = "".join(f"{name}:{PASSWORD}\n" for name in (TEACHER, *STUDENTS))
        subprocess.run(hub.inside("chpasswd"), input=passwords, text=True, check=True)
    else:
        users.write_text(f"jovyan:x:{_JOVYAN}:{_JOVYAN}::/home/jovyan:/bin/bash\n")
        groups.write_text(f"jovyan:x:{_JOVYAN}:\n")
        (hub.folder / "home" / TEACHER).mkdir()
        make_folders = make_accounts[make_accounts.index("mkdir") :]
        subprocess.run(hub.inside("bash", "-ec", make_folders), check=True)


def _write_settings(hub: Hub) -> None:
    """Write each block of settings into the file that its first line names."""
    for block in re.findall(r"^```python\n(.*?)^```$", _PAGE, re.M | re.S):
        first = block.partition("\n")[0]
        if not (first.startswith("# added to ") and hub.has_accounts):
            with (hub.folder / first.rpartition(" /")[2]).open("a") as settings:
                settings.write(block)
    with (hub.folder / "srv" / "jupyterhub" / "jupyterhub_config.py").open("a") as settings:
        settings.write(f"c.DummyAuthenticator.password = {PASSWORD!r}\n")


@contextmanager
def _running(hub: Hub) -> Iterator[str]:
    """Start the hub; return its address."""
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        public, internal, proxy = (one.getsockname()[1] for one in sockets)
    address = f"http://127.0.0.1:{public}/"
    options = [
        f"--JupyterHub.bind_url={address}",
        f"--JupyterHub.hub_port={internal}",
        f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{proxy}",
    ]
    (start,) = commands("Start")
    log = hub.folder / "hub.log"
    with log.open("w") as output:
        command = hub.inside("bash", "-ec", f"{start.rstrip()} {' '.join(options)}")
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_until(lambda: process.poll() is not None or _READY in log.read_text(), MINUTES / 1000)
        if process.poll() is not None:
            pytest.fail("JupyterHub ended: " + log.read_text())
        yield address
    finally:
        process.kill()  # and with it everything that it started
        process.wait()
