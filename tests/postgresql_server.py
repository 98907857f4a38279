"""A PostgreSQL server of the tests' own: in a temporary folder, with a socket there, run by an ordinary user.

Its databases sort text by the rules of English, not by its bytes as SQLite does.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

ROLE, PASSWORD = "autograder", "se:cret/1"
READER = "reader"
"""A role that may not write; its password is the same."""
_HOMES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
_SETTINGS = {
    "listen_addresses": "", "fsync": "off", "autovacuum": "off", "shared_buffers": "16MB", "max_connections": "30",
    "max_wal_senders": "0", "wal_level": "minimal", "log_min_messages": "panic",
}  # fmt: skip
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_SECONDS = 30


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs, which Debian does not put on the PATH."""
    found = [path for home in _HOMES for path in sorted(Path("/").glob(f"{home[1:]}/{name}"), reverse=True)]
    return shutil.which(name) or (str(found[0]) if found else name)


class Server:
    """A server with roles, and a new database for each test that needs one."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has 107 characters at most
        self._who: dict[str, object] = {}
        if os.getuid() == 0:  # PostgreSQL refuses root
            user = pwd.getpwnam("nobody")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._numbers = count()
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        sorting = ("--locale-provider=icu", "--icu-locale=en", "--locale=C.UTF-8", "--encoding=UTF8")
        whose = (f"--username={ROLE}", f"--pwfile={secret}", "--auth=scram-sha-256")
        self._run("initdb", "--no-sync", *sorting, *whose).check_returncode()
        self.start()
        self.tell(f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data")

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        settings = {**_SETTINGS, "unix_socket_directories": str(self._folder)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        self._process = subprocess.Popen(
            [program("postgres"), "-D", str(self._folder / "data"), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
            **self._who,  # type: ignore[call-overload]
        )
        end = time.monotonic() + _SECONDS
        while True:
            try:
                return self.tell("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """Stops it at once, as a machine that goes down does; connections are cut."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def close(self) -> None:
        """Stops it, and removes what it kept."""
        self.stop()
        shutil.rmtree(self._folder)

    def tell(self, statement: str | sql.Composable) -> None:
        """Carries out one statement as the owner of all."""
        connection = psycopg.connect(host=str(self._folder), user=ROLE, password=PASSWORD, dbname="postgres")
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()

    def new_database(self, like: str = "template0") -> str:
        """The name of a new database: empty, or a copy of one that nobody is connected to."""
        name = f"class_{os.getpid()}_{next(self._numbers)}"
        parts = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
        self.tell(sql.SQL(parts).format(sql.Identifier(name), sql.Identifier(like)))
        return name

    def url(self, database: str, role: str = ROLE, password: str = PASSWORD) -> str:
        """URL that an instructor writes as CourseDirectory.db_url."""
        quoted = password.replace("/", "%2F").replace(":", "%3A")
        return f"postgresql://{role}:{quoted}@/{database}?host={self._folder}"

    def cut(self, database: str) -> None:
        """Ends all connections to a database."""
        ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
        self.tell(sql.SQL(ends).format(sql.Literal(database)))

    def _run(self, name: str, *options: str) -> subprocess.CompletedProcess[bytes]:
        command = [program(name), "-D", str(self._folder / "data"), *options]
        return subprocess.run(command, stdout=subprocess.DEVNULL, cwd=self._folder, **self._who)  # type: ignore[call-overload, no-any-return]


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT)
