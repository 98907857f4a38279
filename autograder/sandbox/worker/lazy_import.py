"""Modules that are imported when something in them is first used: few notebooks that are marked alone draw a plot."""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class Later:
    """Has a module wait, in this process and those that it forks, until `now` is called."""

    def __init__(self, name: str) -> None:
        self._name = name
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module as it is found anyway, but with a loader that waits."""
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec

    def now(self) -> ModuleType:
        """Imports it as usual."""
        sys.meta_path.remove(self)
        return importlib.import_module(self._name)
