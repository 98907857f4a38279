"""Code that looks for what is hidden: graders, references, others' work, secrets."""

from .case import UNHARMED, must


@must(UNHARMED)
def the_graders():
    """Imports the graders and the answers."""
    import importlib

    for name in (
        "autograder",
        "autograder.hidden",
        "solutions",
        "solutions.dot_product_attention",
        "tests",
        "nbgrader_config",
    ):
        attempt(importlib.import_module, name)


@must(UNHARMED)
def the_graders_by_path():
    """Puts the repository on the path and imports from it."""
    import importlib
    import sys

    sys.path.insert(0, REPOSITORY)
    importlib.invalidate_caches()
    attempt(importlib.import_module, "solutions.dot_product_attention")
    attempt(importlib.import_module, "autograder.catalogue")


@must(UNHARMED)
def the_instructors_files():
    """Opens the gradebook, a neighbour's notebook, the graders and the answers."""
    for path in (SECRET, GRADEBOOK, NEIGHBOUR, GRADERS, ANSWERS):
        attempt(lambda: open(path, "rb").read(200))
        attempt(lambda: __import__("os").open(path, 0))
        attempt(lambda: __import__("sqlite3").connect(f"file:{path}?mode=ro", uri=True).execute("select 1").fetchall())


@must(UNHARMED)
def the_files_through_other_doors():
    """Reads files by mapping, by numpy, by torch, by C, by links, and relative to its folder."""
    import ctypes
    import os

    import numpy
    import torch

    attempt(numpy.fromfile, SECRET, dtype="u1")
    attempt(torch.from_file, SECRET, size=8, dtype=torch.uint8)
    attempt(torch.load, SECRET)
    os.symlink(SECRET, "link")
    attempt(lambda: open("link").read())
    attempt(lambda: os.link(SECRET, "hard") or open("hard").read())
    attempt(lambda: open(os.path.relpath(SECRET)).read())
    attempt(lambda: open("/proc/self/root" + SECRET).read())
    attempt(lambda: open("/proc/1/root" + SECRET).read())
    if ctypes.CDLL(None).open(SECRET.encode(), 0) >= 0:
        print("ESCAPED by open(2)")


@must(UNHARMED)
def the_folders():
    """Lists the folders of the instructor."""
    import glob
    import os

    for folder in (
        os.path.dirname(SECRET),
        REPOSITORY,
        os.path.expanduser("~root"),
        "/home",
        "/proc",
        "/dev/shm",
        "/etc",
    ):
        attempt(lambda: [name for name in os.listdir(folder) if print(name)] or 1 / 0)
    print(glob.glob(os.path.dirname(SECRET) + "/**", recursive=True))


@must(UNHARMED)
def the_processes():
    """Reads other processes' command lines, environments, memory and open files."""
    import os

    for pid in ("self", "1", str(os.getppid()), str(BYSTANDER), str(GRADER)):
        for name in ("cmdline", "environ", "mem", "maps", "fd/3", "cwd/secret", "root" + SECRET):
            attempt(lambda: open(f"/proc/{pid}/{name}", "rb").read(100))


@must(UNHARMED)
def the_environment():
    """Looks for secrets among the environment variables."""
    import os

    for name, value in os.environ.items():
        if "CANARY" in name or "TOKEN" in name or TOKEN in value:
            print("ESCAPED", name)


@must(UNHARMED, speaks_alone=True)
def the_memory():
    """Searches every object in the process for the token and for modules of the graders."""
    import gc
    import sys

    parts = TOKEN[:6], TOKEN[6:]
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            for key, value in list(thing.items()):
                if isinstance(value, str) and value.startswith("".join(parts)) and key != "TOKEN":
                    print("ESCAPED in memory", key)
    for name in sys.modules:
        if name.split(".")[0] in ("pytest", "_pytest", "autograder", "solutions", "nbgrader"):
            print("ESCAPED module", name)


@must(UNHARMED)
def the_descriptors():
    """Reads and writes every file descriptor that it was born with, except for the connection."""
    import os
    import stat

    for number in range(3, 256):
        try:
            if stat.S_ISREG(os.fstat(number).st_mode):
                print("ESCAPED: a regular file is open as", number)
        except OSError:
            pass


@must(UNHARMED)
def the_packages():
    """Changes an installed package, so that the next submission imports what it likes."""
    import torch

    attempt(open, torch.__file__, "a")
    attempt(open, torch.__file__.replace("__init__.py", "new_module.py"), "w")
    attempt(__import__("os").remove, torch.__file__)
    attempt(__import__("os").rename, torch.__file__, "torch.py")


@must(UNHARMED)
def traces_left_for_the_next():
    """Leaves files where the next submission, or the last, might look."""
    import os
    import tempfile

    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", tempfile.gettempdir() + "/..", ".."):
        attempt(lambda: open(os.path.join(folder, "left-for-you"), "w"))


@must(UNHARMED)
def exfiltrates_by_error():
    """Raises what it has read."""

    def context_vector(weights, inputs):
        try:
            said = open(SECRET).read()
        except OSError:
            return weights @ inputs
        raise ValueError(said)
