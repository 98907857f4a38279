"""The classes and functions that a course's `nbgrader_config.py` makes nbgrader use.

The package imports neither torch nor pytest: formgrader imports it into the Jupyter server. Others import `exchange`
and `guards`.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _be_the_engine() -> None:
    """Replace a course's folder of the same name by the engine: nbgrader would look for the engine's modules in it.

    nbgrader puts the working directory first on Python's path. A course's `autograder/` is no package, but where the
    engine is installed as a link to its checkout, Python takes such a folder before it asks the link.
    """
    engine = Path(__file__).resolve().parents[1]
    name = __name__.rpartition(".")[0]
    if getattr(sys.modules[name], "__file__", None) is not None:
        return
    spec = spec_from_file_location(name, engine / "__init__.py", submodule_search_locations=[str(engine)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


_be_the_engine()
