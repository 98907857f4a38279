"""Packages import only from lower layers. See docs/design/architecture.md."""

import ast
import re
from collections import defaultdict
from functools import cache

import pytest

from tests import REPOSITORY

PACKAGE = REPOSITORY / "autograder"

# From the top down. Packages in one layer do not import each other.
LAYERS = [
    {"cli"},
    {"cluster", "lms", "serving"},
    {"build", "classroom", "grading", "nbgrader_plugin"},
    {"catalogue", "reports"},
    {"gradebook", "graders", "pool"},
    {"course", "formatting", "student_check"},
    {"output_files", "report", "sandbox", "tracing"},
    {"core"},
]
HEIGHT = {package: -layer for layer, packages in enumerate(LAYERS) for package in packages}
OF_COURSE = {"hidden", "misconceptions", "right_answers"}
OF_THE_FACE = {"__version__", "UserError"}
"""The names that `autograder/__init__.py` defines, which every package may import."""
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
    and path != PACKAGE / "__init__.py"
    and path.relative_to(PACKAGE).parts[0] not in OF_COURSE
)


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """Yield a module's imports from autograder, each as the parts of its name after `autograder`."""
    parts = ["autograder", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level + 1] if node.level else []
            module = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                if module[0] == "autograder" and alias.name not in OF_THE_FACE:
                    yield [*module[1:], alias.name]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    package = package_of(path)
    for other, *_ in imports(path):
        assert other == package or HEIGHT[other] < HEIGHT[package], f"{package} imports {other}"


def modules(package):
    """The names of a package's modules, those of its subpackages with the subpackage's name."""
    paths = [path.relative_to(PACKAGE / package).with_suffix("") for path in MODULES if package_of(path) == package]
    return {".".join(path.parts) for path in paths if path.name != "__init__"}


@cache
def imported_by_others():
    """The modules of each package that are imported outside of it."""
    imported = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for package, *name in imports(path):
            if package_of(path) != package:
                imported[package] |= {".".join(name[: length + 1]) for length in range(len(name))}
    return imported


ENTRANCES = [path.parent.name for path in sorted(PACKAGE.glob("*/__init__.py")) if path.parent.name not in OF_COURSE]


@pytest.mark.parametrize("package", ENTRANCES)
def test_others_import_the_modules_that_a_package_names(package):
    """A package's docstring says which of its modules others import: no more, and no fewer."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text()))
    rule = re.search(r"Others import (all its modules|any of its modules|)([^.]|\.\w)*\.$", " ".join(docstring.split()))
    named = set(re.findall(r"`([\w.]+)`", rule[0]))
    imported = imported_by_others()[package] & modules(package)
    match rule[1]:
        case "all its modules":
            assert imported == modules(package) - named
        case "":
            assert imported == named


def layers_in_words():
    """Return the table of the architecture page: a row for each layer, with each package's first sentence."""
    rows = ["| layer | packages |", "|---|---|"]
    for number, layer in zip(range(len(LAYERS), 0, -1), LAYERS, strict=True):
        packages = []
        for name in sorted(layer):
            path = PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"
            sentence = ast.get_docstring(ast.parse(path.read_text())).partition("\n\n")[0].replace("\n", " ")
            packages.append(f"`{name}`: {sentence.removesuffix('.')}")
        rows.append(f"| {number} | {'<br>'.join(packages)} |")
    return "\n".join(rows)


def test_the_architecture_page_has_the_layers():
    assert layers_in_words() in (REPOSITORY / "docs" / "design" / "architecture.md").read_text()


CLIENTS = ["pool", "gradebook", "classroom", "cluster", "lms", "reports", "serving", "nbgrader_plugin", "cli"]


def test_clients_import_neither_torch_nor_pytest():
    """formgrader imports the plugin into the Jupyter server, where torch must not be imported and forked."""
    import subprocess
    import sys

    code = "import sys"
    for package in CLIENTS:  # in one process, because the imports take seconds
        modules = ", ".join(f"autograder.{package}.{path.stem}" for path in (PACKAGE / package).glob("[a-z]*.py"))
        code += (
            f"\nimport {modules}\nprint({package!r}, [m for m in ('torch', 'pytest', 'solutions') if m in sys.modules])"
        )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines() == [f"{package} []" for package in CLIENTS], result.stderr
