"""A student's account on another machine, as it were: of all that is the instructor's it has the exchange alone."""

import os
import pwd
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .file_system import ETC, confined

EXCHANGE = "/srv/nbgrader/exchange"


@dataclass(frozen=True)
class StudentAccount:
    """Another user than the instructor's if the tests run as root, otherwise the same in another home.

    `name` is what nbgrader takes the student's id from. Where `home` and `exchange` are is where the tests find them;
    for the student they are at other places, and neither the kit nor a course is anywhere.
    """

    name: str
    home: Path
    exchange: Path

    def command(self, *command: str) -> list[str]:
        """The line that runs one of the environment's programs as this student, with home as the working folder."""
        home = f"/home/{self.name}"
        etc = {f"/etc/{name}": Path("/etc", name) for name in (*ETC, "passwd", "group")}
        etc["/etc/jupyter/nbgrader_config.py"] = self.home.with_name("nbgrader_config.py")
        line = [*confined(etc, {home: self.home, EXCHANGE: self.exchange}), "--chdir", home]
        for name, value in {"HOME": home, "PATH": f"{sys.prefix}/bin:/usr/bin:/bin"}.items():
            line += ["--setenv", name, value]
        if os.geteuid() == 0:
            line += ["setpriv", f"--reuid={self.name}", "--regid=nogroup", "--clear-groups", "--no-new-privs"]
        return [*line, *command]


def student_account(folder: Path, exchange: Path, course_id: str) -> StudentAccount:
    """Makes the account's home in a folder, and the settings that docs/instructor.md asks for on its machine."""
    name = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    home = folder / "home"
    home.mkdir(parents=True)
    if os.geteuid() == 0:
        shutil.chown(home, name)
    settings = {"CourseDirectory.course_id": course_id, "Exchange.root": EXCHANGE}
    lines = [f"c.{setting} = {value!r}" for setting, value in settings.items()]
    (folder / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines, ""]))
    return StudentAccount(name, home, exchange)
