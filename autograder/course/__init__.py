"""The course: its folder, settings and units, and notebooks as data, also as students submit them.

A course is what an author makes; the package `classroom` grades the students of a class.

`units` reads each unit's exercises and points. `submitted_files` and `notebook_file` read a submission safely, even if
its student changes it meanwhile. `notebook` decodes it, and `cells` matches its cells with those of the unit. No module
executes a student's code or imports torch. Others import any of its modules.
"""

from .units import CHECK_PREFIX as CHECK_PREFIX
from .units import RELEASE as RELEASE
from .units import SOURCE as SOURCE
from .units import Exercise as Exercise
from .units import Unit as Unit
from .units import UnknownUnit as UnknownUnit
from .units import UnusableUnit as UnusableUnit
from .units import accompanying_files as accompanying_files
from .units import refuse_removed_exercises as refuse_removed_exercises
from .units import released as released
from .units import source as source
from .units import unit as unit
from .units import unit_files as unit_files
from .units import unit_names as unit_names
from .units import units_root as units_root
