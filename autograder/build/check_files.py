"""The student check as students get it: a short module, and a zip with the modules that it needs."""

import ast
import io
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_FACADE = _PACKAGE / "handout" / "facade.py"
_LOADER, _CHECK = _PACKAGE / "handout" / "loader.py", _PACKAGE / "handout" / "check.py"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The first that a zip can hold: the bytes must depend on nothing but the modules."""
_UNIX, _MODE = 3, 0o644 << 16


def facade() -> bytes:
    """Return the content of the module that notebooks import."""
    return _FACADE.read_bytes()


@cache
def zipped_modules() -> bytes:
    """Return the zip of the modules that the student check imports, as they are in the package.

    The modules are stored, not compressed, so that the bytes do not depend on the version of zlib.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for path in modules():
            about = zipfile.ZipInfo(path.relative_to(_PACKAGE.parent).as_posix(), _DATE)
            about.create_system, about.external_attr = _UNIX, _MODE
            archive.writestr(about, path.read_bytes())
    return content.getvalue()


def modules() -> list[Path]:
    """Return the files of the check, of its loader, and of all modules of the package that these import."""
    found, left = set[Path](), [_LOADER, _CHECK]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _imported(path)
    return sorted(found, key=lambda path: path.relative_to(_PACKAGE).as_posix())


def _imported(path: Path) -> Iterator[Path]:
    """Yield the modules of the package that a module imports, and the packages that it is in."""
    yield from (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(_PACKAGE))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in node.names:
                yield _module(place / name.name) or _module(place) or _missing(path, node)


def _module(place: Path) -> Path | None:
    candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _missing(path: Path, node: ast.ImportFrom) -> Path:
    raise AssertionError(f"{path}, line {node.lineno}, imports a module that is not in the package.")
