"""Imports the modules of the student check from memory; run by `facade`, which has read them from the zip."""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any


class StudentCheckLoader(MetaPathFinder, ExecutionLoader):
    """Finds and imports the modules of one version of the student check.

    The modules get a package name of their own, which holds a digest of their sources: an installed `autograder` is
    neither used nor hidden, and two versions in one kernel do not mix. Replacing a file later changes nothing in the
    kernel. Because of `get_source`, tracebacks and `inspect.getsource` show the sources.
    """

    def __init__(
        self,
        facade: Path,
        read: Callable[[], tuple[Path, dict[str, bytes]]],
        place: Path,
        sources: Mapping[str, bytes],
    ) -> None:
        """facade: the file that notebooks import. read: returns place and sources as they are on disk now.

        place: the zip, or the folder of the unpacked zip. sources: by path in it, such as `autograder/core/cost.py`.
        """
        self._facade, self._read, self._place, self._sources = facade, read, place, sources
        digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()
        self._package = f"{facade.stem}_modules_{digest[:12]}"

    def load(self) -> Any:
        """Return the functions that notebooks import, after importing the modules if necessary."""
        if self._package not in sys.modules:
            sys.meta_path.insert(0, self)  # before Python's own import from zips, which reads the file again
            importlib.import_module(f"{self._package}.student_check.check")
        return sys.modules[f"{self._package}.student_check.check"].StudentCheck(self._facade, self._is_current)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if self._file(fullname) in self._sources else None

    def is_package(self, fullname: str) -> bool:
        return self._file(fullname).endswith("/__init__.py")

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._sources[self._file(fullname)])

    def get_filename(self, fullname: str) -> str:
        return os.path.join(self._place, *self._file(fullname).split("/"))  # noqa: PTH118

    def _file(self, fullname: str) -> str:
        """Return the path of a module in the sources; for any other module a path that is not in them."""
        package, *parts = fullname.split(".")
        module = "/".join(["autograder", *parts]) if package == self._package else ""
        return f"{module}.py" if f"{module}.py" in self._sources else f"{module}/__init__.py"

    def _is_current(self) -> bool:
        """Return whether the files are still those that this kernel has read."""
        try:
            return self._read()[1] == self._sources
        except (ImportError, OSError):
            return False
