"""The floors of the house: a room imports only from rooms below it. See docs/design.md."""

import ast

import pytest

from tests import REPOSITORY

PACKAGE = REPOSITORY / "autograder"

# From the top down. Rooms on one floor do not import each other.
FLOORS = [
    {"cli"},
    {"class_report", "cluster", "lms", "serving", "slides"},
    {"classroom", "build", "proof", "nbgrader_plugin"},
    {"marking", "gradebook", "exports"},
    {"graders"},
    {"client", "catalogue", "diagnosis", "feedback"},
    {"course", "student", "handout"},
    {"formatting", "compare", "handed_in", "tracing"},
    {"sandbox", "report", "notebook", "output_files"},
]
HEIGHT = {room: -floor for floor, rooms in enumerate(FLOORS) for room in rooms}
OF_COURSE = {"hidden", "misconceptions", "right_answers"}
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
    and path != PACKAGE / "__init__.py"
    and path.relative_to(PACKAGE).parts[0] not in OF_COURSE
)


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path):
    """The rooms of this package that a module imports from."""
    package = ["autograder", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module.split(".") if node.module else [])]
            for names in [module] if len(module) > 1 else [[*module, alias.name] for alias in node.names]:
                if names[0] == "autograder" and len(names) > 1 and names[1] != "__version__":
                    yield names[1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    room = room_of(path)
    for other in imported_rooms(path):
        assert other == room or HEIGHT[other] < HEIGHT[room], f"{room} imports {other}"


CLIENTS = [
    "client",
    "gradebook",
    "classroom",
    "cluster",
    "lms",
    "class_report",
    "serving",
    "slides",
    "nbgrader_plugin",
    "cli",
]


def test_clients_import_neither_torch_nor_pytest():
    """formgrader imports the plugin into the Jupyter server, where torch must not be imported and forked."""
    import subprocess
    import sys

    code = "import sys"
    for room in CLIENTS:  # in one process, of which each room takes seconds
        modules = ", ".join(f"autograder.{room}.{path.stem}" for path in (PACKAGE / room).glob("[a-z]*.py"))
        code += (
            f"\nimport {modules}\nprint({room!r}, [m for m in ('torch', 'pytest', 'solutions') if m in sys.modules])"
        )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines() == [f"{room} []" for room in CLIENTS], result.stderr
