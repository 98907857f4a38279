"""Write template files for a new exercise, as CONTRIBUTING.md lists them, and find the parts left to write.

In the templates, `MARK` precedes each part that the author has to write. Placeholders: $name, $snake (the name in lower
case), $unit, $check (the module from which students import the check).
"""

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from string import Template

from .. import output_files
from ..course import content
from ..course.folder import folder
from ..course.settings import load
from ..errors import UserError

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


MARK = "TO WRITE:"


class NotBegun(UserError):
    """Raised if no files for a new exercise can be written; `str()` says why. Nothing was written."""


def new_exercise(unit: str, name: str, *, of_a_class: bool = False) -> list[Path]:
    """Write the template files of an exercise, and those of its unit if the unit is new; return their paths.

    of_a_class: True if students write a class, not a function. Raises NotBegun, NotWritable and BadSettings.
    """
    for identifier in (unit, name):
        is_name = identifier.isidentifier() and identifier.isascii() and not identifier.startswith("_")
        if not is_name or keyword.iskeyword(identifier):
            raise NotBegun(f"`{identifier}` cannot be the name of a unit or exercise: use letters, digits and `_`.")
    if unit == content.NOTEBOOK:
        raise NotBegun(f"solutions/{unit}.py contains what every notebook defines: give the unit another name.")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    text_file, lesson_file, solutions_file = files_of_unit(unit)
    graders_file = content.place(content.HIDDEN) / unit / f"test_{snake}.py"
    mistakes_file = content.place(content.MISCONCEPTIONS) / unit / f"{snake}.yaml"
    right_answers_file = content.place(content.RIGHT_ANSWERS) / unit / f"{snake}.py"
    words = {"name": name, "snake": snake, "unit": unit, "check": load().check}
    text = read_text(text_file) or UNIT_TEXT.substitute(words)
    solutions = read_text(solutions_file) or UNIT_SOLUTIONS.substitute(words)
    _reject_taken(unit, name, text, solutions)
    for file in (graders_file, mistakes_file, right_answers_file):
        if file.exists():
            raise NotBegun(f"{file.relative_to(folder())} already exists: move it, or choose another name.")
    solutions = _importing("from torch import nn" if of_a_class else "", _importing("import torch", solutions))
    definition = CLASS if of_a_class else FUNCTION
    graders = GRADERS_OF_A_CLASS if of_a_class else GRADERS_OF_A_FUNCTION
    right_answer = RIGHT_ANSWER_OF_A_CLASS if of_a_class else RIGHT_ANSWER_OF_A_FUNCTION
    contents = {
        text_file: text.rstrip("\n") + "\n" + TEXT.substitute(words),
        solutions_file: solutions.rstrip("\n") + "\n" + definition.substitute(words),
        graders_file: graders.substitute(words),
        mistakes_file: MISTAKES.substitute(words),
        right_answers_file: right_answer.substitute(words),
    }
    if lesson := read_text(lesson_file):
        contents[lesson_file] = _with_hints(lesson, HINTS.substitute(words))
    for file in contents:
        output_files.check(file, makes_folder=True)
    output_files.write({file: content.encode() for file, content in contents.items()}, makes_folder=True)
    return list(contents)


def left_to_write(unit: str) -> list[str]:
    """Return the parts left to write in a unit's files, each as `FILE, line NUMBER: TEXT`."""
    files = files_of_unit(unit)
    for kind in content.OF_EACH_UNIT:
        files += sorted(path for path in (content.place(kind) / unit).rglob("*") if path.suffix in (".py", ".yaml"))
    return [
        f"{file.relative_to(folder())}, line {number}: " + line.partition(MARK)[2].strip(' "')
        for file in files
        if file.is_file()
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if MARK in line
    ]


def files_of_unit(unit: str) -> list[Path]:
    """Return the paths of a unit's text, of its guesses and hints, and of its solutions; they may not exist."""
    text = folder() / "exercises" / f"{unit}.py"
    return [text, text.with_suffix(".yaml"), content.place(content.SOLUTIONS) / f"{unit}.py"]


def _reject_taken(unit: str, name: str, text: str, solutions: str) -> None:
    """Raise NotBegun if the unit's solutions define this name, or a cell of its text has it."""
    try:
        names = set(_bound(ast.parse(solutions)))
    except SyntaxError as error:
        raise NotBegun(f"solutions/{unit}.py, line {error.lineno}, is not Python: {error.msg}.") from None
    if name in names:
        raise NotBegun(f"solutions/{unit}.py has a `{name}` already: give the exercise another name.")
    if re.search(rf'^# %%.*"{name}"', text, re.MULTILINE):
        raise NotBegun(f"exercises/{unit}.py has a cell called `{name}` already: take another name.")


def _with_hints(lesson: str, new: str) -> str:
    """Return the text of a unit's guesses and hints with a new exercise's hints inserted before the others.

    lesson: the present text. new: the YAML of the new hints, which is indented like the others.
    """
    found = re.search(r"^hints:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?=( +)\S)", lesson, re.M)
    if found:
        return lesson[: found.end()] + textwrap.indent(new, found[1]) + lesson[found.end() :]
    if re.search(r"^hints:", lesson, re.M):  # all hints are on one line: the build reports the missing ones
        return lesson
    return f"{lesson.rstrip()}\n\nhints:\n{textwrap.indent(new, '  ')}"


def _bound(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or imports."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name).partition(".")[0] for one in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _importing(line: str, solutions: str) -> str:
    """Return a module's source with an import added below its other imports, unless it has the imported name.

    line: the import statement; empty to add none.
    """
    module = ast.parse(solutions)
    if not line or line.split()[-1] in _bound(module):
        return solutions
    imports = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    docstring = module.body[:1] if ast.get_docstring(module) is not None else []
    after = max((node.end_lineno or 0 for node in [*docstring, *imports]), default=0)
    lines = solutions.splitlines()
    lines[after:after] = [line] if imports else ["", line]
    return "\n".join(lines) + "\n"


def read_text(path: Path) -> str:
    """Return a file's text; empty if the file does not exist. Raises NotBegun if it cannot be read."""
    try:
        return path.read_text() if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotBegun(f"{path.relative_to(folder())} cannot be read: {error}.") from None
