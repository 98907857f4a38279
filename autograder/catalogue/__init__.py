"""The catalogue of known answers, the diagnosis of wrong answers with it, and a report on how well that works.

`known_answers` collects misconceptions and alternative solutions. `diagnosis` finds one or two misconceptions that
behave like a wrong answer in the hidden tests. `mutation_report` grades all known answers and writes the results.
`bug_hunts` makes exercises of misconceptions. Others import all its modules but `candidate`.
"""

from .candidate import KINDS as KINDS
from .candidate import Candidate as Candidate
from .candidate import Code as Code
from .candidate import Edit as Edit
from .candidate import EditError as EditError
from .candidate import Kind as Kind
from .candidate import can_be_combined as can_be_combined
from .candidate import combined as combined
from .candidate import moved as moved
from .known_answers import FORBIDDEN as FORBIDDEN
from .known_answers import misconceptions as misconceptions
from .known_answers import right_answer as right_answer
from .known_answers import right_answers as right_answers
from .known_answers import solutions as solutions
