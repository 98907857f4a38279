"""The course: its folder, settings and units, and notebooks as data, also as students submit them.

`units` says which exercises a unit has and what they are worth. `submitted_files` and `notebook_file` read
a submission, whatever its student does to it meanwhile; `notebook` decodes it and `cells` relates its cells to those of
the unit. Nothing here executes a student's code, and nothing needs torch. Others import any of its modules.
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
