"""The catalogue of known answers, what it says of a wrong answer, and how well it does.

`known_answers` collects misconceptions and alternative solutions. `diagnose` finds the misconceptions that behave like
a wrong answer, `pairs` two at once, `explained_tests` those that explain a part of the hidden tests. `mutation_report`
and `golden_record` measure all that on the catalogue itself. `bug_hunts` makes exercises of misconceptions. Others
import all its modules but `candidate`, `edit`, `explained_tests` and `known_answers`.
"""

from .candidate import KINDS as KINDS
from .candidate import Candidate as Candidate
from .candidate import Code as Code
from .candidate import Kind as Kind
from .candidate import can_be_combined as can_be_combined
from .candidate import combined as combined
from .candidate import moved as moved
from .edit import Edit as Edit
from .edit import EditError as EditError
from .known_answers import FORBIDDEN as FORBIDDEN
from .known_answers import misconceptions as misconceptions
from .known_answers import right_answer as right_answer
from .known_answers import right_answers as right_answers
from .known_answers import solutions as solutions
from .known_answers import used_by as used_by
