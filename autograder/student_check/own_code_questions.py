"""Questions about the student's own lines, for an answer that passes its check; its traced runs decide what is right.

Not graded. The same code always gets the same questions.
"""

import ast
import inspect
import linecache
import random
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run
from ..tracing.definitions import Definition, Edit, definitions
from ..tracing.explain import describe_call, quote
from ..tracing.reference import TraceCase, has_same_values
from ..tracing.repair_operators import generic_edits
from .fault_location import quiet_runs, read_cases, trace_answer
from .notebook_functions import is_open, matches_answer, required_kind
from .run_examples import code_file

_OUTCOMES = ("error", "shape", "values", "nothing")
_CHOICES = 'Answer "error", or what changes in the result: "shape", "values" or "nothing".'
_MOST_EDITS, _LIKELY = 16, 2
"""Maximum number of tried edits, and highest rank of an edit that a person might write."""
_SLIPS = {
    "a call that is too many", "an operation that is too many", "an argument that is missing",
    "an argument that is too many", "an operator", "the order", "a function", "a comparison",
    "a root or power that is missing",
}  # fmt: skip
"""Subjects of edits that people make by mistake; so are other numbers as arguments of a call."""
_INVENTED = "an operand that is missing"
"""The subject of edits that nobody makes, such as `keys = queries + self.W_key(x)`."""


@dataclass(frozen=True)
class Question:
    """A question, its answer (a shape, a line's number or a word), and the sentence that explains the answer."""

    text: str
    answer: list[int] | int | str
    because: str


def explain_own_code(
    names: Mapping[str, Any], exercise: str, data: Path, number: Any, value: Any
) -> tuple[str, list[str]]:
    """Return a title and lines: all questions on an answer, or the verdict on the student's answer to one of them.

    names: the notebook's. data: the unit's data file. number: which question, from 1; None for all of them. value: the
    student's answer.
    """
    call, questions = own_code_questions(names, exercise, data)
    if not questions:
        return "", [f"There are no questions about the lines of `{exercise}`."]
    if number is None:
        lines = [f"{at}. {one.text}" for at, one in enumerate(questions, start=1)]
        lines.append(f'Answer by number, as in `explain("{exercise}", 1, ...)`. None of this is graded.')
        return f"Your own lines, in the call {call}:", lines
    if number not in range(1, len(questions) + 1):
        return "", [f"The questions on `{exercise}` have the numbers 1 to {len(questions)}."]
    question = questions[number - 1]
    if is_open(value):
        return "", [question.text, "Write your answer instead of `...`."]
    right = matches_answer(question.answer, value)
    if right is None:
        return "", [required_kind(question.answer)]
    return "Yes." if right else "Not quite.", [question.because]


def own_code_questions(names: Mapping[str, Any], exercise: str, data: Path) -> tuple[str, list[Question]]:
    """Return a call, and questions on it: a tensor's shape, a line that uses an input, and what an edit changes."""
    call, questions = "", list[Question]()
    with quiet_runs():
        answer, file = names[exercise], code_file(names[exercise])
        definition = definitions(exercise, [(file, "".join(linecache.getlines(file)))], ())[0]
        draw = random.Random(zlib.crc32(definition.encoded))
        cases = read_cases(data, data.stat().st_mtime_ns, exercise)
        watched = [_watched(answer, case, definition) for case in cases]
        lines = max(watched, key=lambda one: len(one.executed))  # the first call that runs as many lines as any
        case, run = cases[watched.index(lines)], lines.run
        call = describe_call(case).rstrip(".")
        questions += _of_shape(definition, lines, draw)
        questions += _of_dependence(answer, definition, case, run, draw)
        questions += _of_edit(names, definition, case, lines, draw)
    return call, questions


@dataclass(eq=False)
class _Lines:
    """The lines of a definition that a call runs, and the shapes of what they assign to a name or return."""

    run: Run = field(default_factory=Run)
    executed: set[int] = field(default_factory=set)
    shapes: defaultdict[int, set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))
    """An empty shape stands for a value that is no tensor."""

    def note(self, line: int, value: Any) -> None:
        self.shapes[line].add(tuple(value.shape) if isinstance(value, torch.Tensor) else ())


def _watched(answer: Any, case: TraceCase, definition: Definition) -> _Lines:
    """Run the answer on a case, and return which lines it ran with which values.

    Values are read from the variables: `v = self.split(self.W_value(x))` assigns what `split` returns, in whose own
    lines the last tensor is made.
    """
    lines, targets = _Lines(), _targets(definition)

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != definition.cell or frame.f_code.co_name.startswith("<"):
            return None
        running = 0

        def follow(frame: FrameType, event: str, value: Any) -> Any:
            nonlocal running
            if event in ("line", "return") and targets.get(running):
                lines.note(running, frame.f_locals.get(targets[running]))
            if event == "return" and targets.get(running) == "":
                lines.note(running, value)
            running = frame.f_lineno if event == "line" else 0
            lines.executed.add(running)
            return follow

        return follow

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        lines.run = trace_answer(answer, case, definition.cell)
    finally:
        sys.settrace(before)
    lines.executed = {line for line in lines.executed if definition.line(line)}
    return lines


def _targets(definition: Definition) -> dict[int, str]:
    """Return, for each line with one whole statement, the name to which it assigns; an empty name if it returns."""
    found = defaultdict[int, list[str]](list)
    for node in ast.walk(definition.tree):
        if not isinstance(node, ast.stmt) or node.lineno != node.end_lineno:
            continue
        line = node.lineno - 1 + definition.first_line
        match node:
            case ast.Assign(value=ast.Name()) | ast.Return(value=ast.Name()):
                found[line] += ["", ""]  # makes no tensor
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[line].append(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
                found[line].append(name)
            case ast.Return(value=ast.expr()):
                found[line].append("")
            case _:
                found[line] += ["", ""]  # neither assigns to a name nor returns
    return {line: names[0] for line, names in found.items() if len(names) == 1}


def _line(definition: Definition, line: int) -> str:
    return f"line {line}, `{quote(definition.line(line))}`"


def _of_shape(definition: Definition, lines: _Lines, draw: random.Random) -> list[Question]:
    """Ask for the shape of the tensor that a line assigns to a name or returns, if it always has the same shape."""
    shapes = {line: next(iter(each)) for line, each in lines.shapes.items() if len(each) == 1}
    shapes = {line: shape for line, shape in shapes.items() if len(shape) > 1 and definition.line(line)}
    if not shapes:
        return []
    line = draw.choice(sorted(shapes))
    text = f"What is the shape of the tensor that {_line(definition, line)}, makes?"
    return [Question(text, list(shapes[line]), f"Its shape is {shapes[line]}.")]


def _changed(answer: Any, case: TraceCase) -> Iterator[tuple[str, TraceCase]]:
    """Yield the case with each of its arguments and parameters changed, and the name of what is changed."""
    if case.through:
        return
    call = answer if case.built is None else answer.forward
    arguments = [name for name in inspect.signature(call).parameters if name != "self"]
    for at, (name, argument) in enumerate(zip(arguments, case.arguments, strict=False)):
        if isinstance(argument, torch.Tensor) and argument.is_floating_point():
            others = (*case.arguments[:at], argument.flip(-1) + 0.5, *case.arguments[at + 1 :])
            yield name, replace(case, arguments=others)
    for name, parameter in (case.parameters or {}).items():
        yield name, replace(case, parameters={**(case.parameters or {}), name: parameter.flip(-1) + 0.5})


def _of_dependence(
    answer: Any, definition: Definition, case: TraceCase, run: Run, draw: random.Random
) -> list[Question]:
    """Ask which line is the first whose tensor depends on an argument or a parameter."""
    first: dict[str, int] = {}
    for name, changed in _changed(answer, case):
        for one, other in zip(run.made, trace_answer(answer, changed, definition.cell).made, strict=False):
            is_own = one.file == definition.cell and bool(definition.line(one.line))
            if not is_own and not one.inputs:
                continue  # such as a copy of an argument, made in the cell that asks
            if one.values.shape != other.values.shape or not has_same_values(one.values, other.values):
                if is_own:  # otherwise another function of the student uses it first, and no line is traced
                    first[name] = one.line
                break
    if len(set(first.values())) < 2:  # then no reading is needed
        return []
    name = draw.choice(sorted(first))
    text = (
        f"If every element of `{name}` changes, which line is the first whose tensor changes? Answer with its number."
    )
    return [Question(text, first[name], f"It is {_line(definition, first[name])}.")]


def _of_edit(
    names: Mapping[str, Any], definition: Definition, case: TraceCase, lines: _Lines, draw: random.Random
) -> list[Question]:
    """Ask what an edit of one line that the call runs changes, if possible an edit that people make by mistake."""
    tried: dict[str, Question] = {}
    edits = [
        edit
        for edit in generic_edits(definition)
        if edit.rank <= _LIKELY
        and edit.subject != _INVENTED
        and len(definition.lines(edit)) == 1
        and lines.executed.issuperset(definition.lines(edit))
        and _is_plain(definition, edit)
    ]
    numbers = _numbers_in_calls(definition)
    slips = [edit for edit in edits if edit.subject in _SLIPS or {span[:2] for span in edit.spans} <= numbers]
    edits = slips or edits
    for edit in draw.sample(edits, min(len(edits), _MOST_EDITS)):
        edited, line = definition.edited(edit), definition.lines(edit)[0]
        scope = dict(names)
        exec(compile(edited.text, definition.cell, "exec"), scope)
        changed = trace_answer(scope[definition.name], case, definition.cell)
        outcome, because = _compared(list(tensors_in(lines.run.result)), changed)
        text = f"Replace {_line(definition, line)}, by `{quote(edited.line(line))}`. What changes? {_CHOICES}"
        if outcome:
            tried.setdefault(outcome, Question(text, outcome, because))
        if len(tried) == len(_OUTCOMES):
            break
    return [tried[draw.choice(sorted(tried))]] if tried else []


def _is_plain(definition: Definition, edit: Edit) -> bool:
    """Return whether an edit changes one statement of a computation, and writes only what somebody might write."""
    computes = {
        node.lineno - 1 + definition.first_line
        for function in ast.walk(definition.tree)
        if isinstance(function, ast.FunctionDef) and function.name != "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return)
    }
    new = "".join(text for _, _, text in edit.spans)
    regrouped = {
        definition.span(node)
        for node in ast.walk(definition.tree)
        if isinstance(node, ast.BinOp) and any(isinstance(side, ast.Compare) for side in (node.left, node.right))
    }  # new texts of these leave out parentheses: (d < 0) | (d > w) becomes d < 0 & d > w
    is_regrouped = any(span[:2] in regrouped for span in edit.spans)
    is_computed = computes.issuperset(definition.lines(edit))
    return is_computed and not is_regrouped and not re.search(r"\n|\d{4}|e-\d|inf", new)


def _numbers_in_calls(definition: Definition) -> set[tuple[int, int]]:
    """Return the spans of numbers that are arguments of calls: dimensions, for instance."""
    return {
        definition.span(argument)
        for call in ast.walk(definition.tree)
        if isinstance(call, ast.Call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(argument, ast.Constant | ast.UnaryOp)
    }


def _compared(right: list[torch.Tensor], edited: Run) -> tuple[str, str]:
    """Return how the result of edited code differs from the right one, as a word and as a sentence.

    Both are empty for a result without tensors or in another dtype, and for an error other than those that PyTorch
    raises for shapes.
    """
    if isinstance(edited.error, RuntimeError | IndexError):
        return "error", f"It raises {type(edited.error).__name__}: {quote(str(edited.error).partition(chr(10))[0])}"
    result = list(tensors_in(edited.result))
    if edited.error is not None or not result or [one.dtype for one in result] != [one.dtype for one in right]:
        return "", ""
    shapes = [", ".join(str(tuple(one.shape)) for one in tensors) for tensors in (result, right)]
    if shapes[0] != shapes[1]:
        return "shape", f"The result has the shape {shapes[0]} instead of {shapes[1]}."
    if all(map(has_same_values, result, right)):
        return "nothing", "In this call the edit changes nothing: the result has the same shape and the same values."
    return "values", "The result has the same shape, but other values."
