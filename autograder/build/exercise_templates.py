"""The texts that a new exercise begins with; `MARK` stands wherever its author is to write something.

Placeholders: $name, $snake (the name in lower case), $unit, $check (the module that students import the check from).
"""

from string import Template

UNIT_TEXT = Template("""\
# %% [markdown]
# # TO WRITE: the unit's title
#
# TO WRITE: what it is about

# %% locked="setup"
import torch
from torch import nn

from $check import check
""")

UNIT_SOLUTIONS = Template('''\
"""TO WRITE: what the unit is about."""
''')

TEXT = Template("""
# %% [markdown]
# ## $name
#
# TO WRITE: what `$name` is to do, what goes in and what comes out, with shapes; and how many points it is worth

# %% exercise="$name" points=1
""")

HINTS = Template("""\
$name:
  - "TO WRITE: a question that leads there"
  - "TO WRITE: a plan of shapes"
  - "TO WRITE: the operation to look up"
""")

FUNCTION = Template('''

def $name(x: torch.Tensor) -> torch.Tensor:
    """TO WRITE: what it returns, with the shapes of what goes in and comes out."""
    return x  # TO WRITE: the right answer, with the arguments above
''')

CLASS = Template('''

class $name(nn.Module):
    """TO WRITE: what it is for, and what its layers are called."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d, d, bias=False)  # TO WRITE: its layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """TO WRITE: what it returns, with the shapes of what goes in and comes out."""
        return self.linear(x)  # TO WRITE: the right answer
''')

_CALLEE = """\
    def callee(self, face):
        return face.$name(5)  # TO WRITE: how an instance is built

"""

_GRADERS = '''\
"""Hidden graders of `$name`."""

from autograder.graders import contracts


@contracts.exercise("$name")
class TestItsGraders(contracts.Graders):
{callee}    def draw(self, rng, *sizes):
        return (rng.randn(*(sizes or (4, 5))),)  # TO WRITE: the arguments of a call, as drawn for these sizes

    # TO WRITE: what must hold, one grader each, with a statement for students; at least one is public
    test_rows = contracts.agree("Each row is what it should be.", [(4, 5), (1, 5)], public=True)
    test_leading_dimensions = contracts.agree("Any number of leading dimensions works.", [(2, 3, 5), (5,)])
    test_gradients = contracts.gradients("Gradients flow back to the input.")
    test_float64 = contracts.float64("In float64 the result is as exact as float64 is.")
    test_input_is_unchanged = contracts.unchanged("The input is left as it was.")
    test_follows_device = contracts.device("The result is on the input's device.")
'''

GRADERS_OF_A_FUNCTION = Template(_GRADERS.format(callee=""))
GRADERS_OF_A_CLASS = Template(_GRADERS.format(callee=_CALLEE))

MISTAKES = Template("""\
exercises: $name
# TO WRITE: at least three mistakes, as CONTRIBUTING.md says; `autograder matrix $unit -k $name` tries them
# value, caught by test_rows:
#   what_is_wrong:
#     says: "What is wrong; what to do instead."
#     edit: what the solution says -> what a student may write
""")

_RIGHT_ANSWERS = '''\
"""Right answers to `$name`, as different students write them."""
{imports}
from autograder.catalogue import right_answer


# TO WRITE: at least two right answers in other styles than the solution's
@right_answer("$name")
{answer}'''

_FUNCTION_IN_ANOTHER_STYLE = '''\
def ${snake}_in_another_style(x):
    """what its style is"""
    return x
'''
_CLASS_IN_ANOTHER_STYLE = '''\
class ${name}InAnotherStyle(nn.Module):
    """what its style is"""

    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, d, bias=False)

    def forward(self, x):
        return self.linear(x)
'''

RIGHT_ANSWER_OF_A_FUNCTION = Template(_RIGHT_ANSWERS.format(imports="", answer=_FUNCTION_IN_ANOTHER_STYLE))
RIGHT_ANSWER_OF_A_CLASS = Template(
    _RIGHT_ANSWERS.format(imports="\nfrom torch import nn\n", answer=_CLASS_IN_ANOTHER_STYLE)
)
