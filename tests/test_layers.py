"""The floors of the house: a room imports only from rooms below it. See docs/design.md."""

import ast

import pytest

from autograder.course import REPOSITORY

PACKAGE = REPOSITORY / "autograder"

# From the top down. Rooms on one floor do not import each other.
FLOORS = [
    {"cli"},
    {"classroom", "build", "proof"},
    {"nbgrader_plugin"},
    {"grading"},
    {"diagnosis", "hidden"},
    {"right_answers"},
    {"catalogue", "feedback", "handed_in", "student"},
    {"compare", "kit", "notebook", "settings"},
    {"formatting"},
    {"course", "report", "sandbox", "handout", "six_words", "notebook_nodes"},
]
HEIGHT = {room: -floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))


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


@pytest.mark.parametrize("room", ["nbgrader_plugin", "classroom", "cli"])
def test_clients_import_neither_torch_nor_pytest(room):
    """formgrader imports the plugin into the Jupyter server, where torch must not be imported and forked."""
    import subprocess
    import sys

    modules = ", ".join(f"autograder.{room}.{path.stem}" for path in (PACKAGE / room).glob("[a-z]*.py"))
    code = f"import sys, {modules}; print([m for m in ('torch', 'pytest', 'solutions') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr
