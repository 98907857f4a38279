"""Message on a wrong line: the line, the made and the needed numbers, and the steps that are right."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .located import Located
from .reference import TOLERANCE, TraceCase, comparable, is_mask
from .used import used_from_above

MAX_LINE = 100
"""Characters of a line that is quoted."""
_SHOWN = 4
_DIGITS, _MORE_DIGITS = 4, 7
_MOST_COMPARED = 1_000
_SMALL = 1e-3
_AT_FAULT = ("mended", "missing", "first of two", "one line")
"""How it was found, where one line is to be mended, or what it uses beside tensors."""
_ALIAS = re.compile(r"\s*([^\W\d]\w*) *= *((?!None\b|True\b|False\b)[^\W\d][\w.]*)\s*(?:#.*)?")
_ASSIGNED = re.compile(r"([\w.,\s*]+?)(?::[^=]*)?\s*(?:[-+*/@]|\*\*)?=(?!=)")

Source = Callable[[str], Sequence[str]]
"""The lines of a file; none where they are not known."""


def told(located: Located, case: TraceCase, source: Source) -> str:
    """Lines of plain text: the wrong line, what it made and what is needed, what was right, and what was tried.

    The text has no number of a hidden case.
    """
    wrong = located.lines[-1:] if located.how == "missing" else located.lines
    lines = source(located.file)

    def text(line: int) -> str:
        return line_of(lines, line)

    names = _assigned(text(wrong[0]))
    is_whole = located.expected is not None and not located.is_inner
    if len(wrong) > 1:
        said = [f"{_lines(wrong).capitalize()} do not fit together."]
    elif located.step in names or (is_whole and len(names) == 1):
        said = [f"Line {wrong[0]} makes `{located.step if located.step in names else names.pop()}` wrong."]
    else:
        said = [f"What line {wrong[0]} {_does(located, case, text(wrong[0]))} is wrong."]
    said += [f"  line {line}: {shown}" for line in located.lines if (shown := quoted(text(line)))]
    said += [f"  {one}" for one in (*_beside(located), *_seen(located))]
    others = [line for step, line in located.right_so_far.items() if step not in _assigned(text(line))]
    others = [] if located.how == "one line" else others
    used = used_from_above(lines, wrong[-1], located.watched, others) if located.how in _AT_FAULT else ""
    if not (used and located.how == "one line"):  # a number that goes in may be wrong
        said += _meaning(located, case)
    if used:
        said.append(f"If {_lines(wrong)} is right as it stands, look at what it uses: {used}.")
    if located.how == "another" and (alias := _alias_in(lines, wrong[-1])):
        said.append(alias)
    if right := _right_before(located, text):
        said.append(f"As it should be: {', '.join(right)}.")
    return "\n".join([*said, f"Tried on {call_in_words(case)}"])


def line_of(lines: Sequence[str], number: int) -> str:
    """One of a file's lines, counted from 1; empty where it has no such."""
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _right_before(located: Located, text: Callable[[int], str]) -> list[str]:
    """Return the solution's steps that were right by then, if their lines give them the solution's name.

    The last step that a line makes must have its name, too: otherwise the line goes on with the others.
    """
    last = {line: step for step, line in located.right_so_far.items()}
    return [
        f"`{step}` (line {line})"
        for step, line in located.right_so_far.items()
        if line not in located.lines and step != located.step and {step, last[line]} <= _assigned(text(line))
    ]


def _alias_in(lines: Sequence[str], line: int) -> str:
    """Return a message if a line uses a name that a line above it made another name for the same."""
    names = re.findall(r"\w+", line_of(lines, line))
    for number in range(line - 1, 0, -1):
        above = line_of(lines, number)
        if above.lstrip().startswith("def "):
            return ""
        if (alias := _ALIAS.fullmatch(above[:MAX_LINE])) and alias[1] in names:
            return f"Line {number} makes `{alias[1]}` another name for `{alias[2]}`."
    return ""


def _assigned(line: str) -> set[str]:
    """The names that a line gives to what it makes."""
    lefts = (_ASSIGNED.match(statement) for statement in line[:MAX_LINE].split(";"))
    return {name for left in lefts if left for name in re.findall(r"\w+", left[1])}


def _does(located: Located, case: TraceCase, line: str) -> str:
    """What the line does with what is wrong."""
    if located.how not in ("returned", "of another kind"):
        return "makes"
    return "keeps" if case.through and "return" not in line else "returns"


def _meaning(located: Located, case: TraceCase) -> list[str]:
    """What the lines have to do with each other, and where to look, in a sentence or two."""
    first, second = located.lines[0], located.lines[-1]
    is_one = first == second
    match located.how:
        case "missing" if not is_one:
            where = (
                f"A step of line {second} is wrong, or one is missing before it."
                if second == first + 1
                else f"Look at line {second}, and at what stands between the two: a step there is wrong, or missing."
            )
            return [f"What line {first} makes is right; what line {second} makes of it is not. {where}"]
        case "unused" if not is_one:
            return [
                f"What line {first} makes is right, but line {second} does not use it: "
                f"it goes on with what line {first} was given."
            ]
        case "mask" if not is_one:
            return [_of_mask(located)]
        case "swapped":
            where = f"between line {first} and line {second}" if not is_one else "in this line"
            return [f"Two tensors, each right in itself, stand in each other's places {where}: look at their order."]
        case "another" if _is_turned(located):
            return ["This mask is the other way round from what is needed here: turn it, as ~ does with a bool mask."]
        case "another":
            return ["What is there is right in itself, but it is the wrong one for this place: are two names mixed up?"]
        case "returned" if case.through:
            return ["It is not all that is required: is something lost that was there, or is another name meant?"]
        case "returned":
            return [
                "It is not the required result: does it return too early, is a last step left out, or is another "
                "name meant?"
            ]
        case "of another kind":
            asked = _tensors(located.wanted)
            return [
                f"It returns {_tensors(located.results)}; {asked} {'is' if located.wanted == 1 else 'are'} asked for."
            ]
        case "first of two":
            return ["To mend this line is not enough: a later one goes wrong too, perhaps for the same reason."]
        case "one line":
            return ["The tensors that go into this line are right: look at the line itself."]
    return []


def _of_mask(located: Located) -> str:
    first, second = located.lines
    made, needed = located.made, located.expected
    if made is not None and needed is not None and torch.equal(made == 0, needed == 0):
        return (
            f"The mask of line {first} is right in its places; what line {second} does with it needs other numbers "
            "there. Change one of the two lines."
        )
    return (
        f"Line {first} makes a mask, and line {second} takes it the other way round: what should be hidden is kept, "
        "and what should be kept is hidden. Change one of the two lines."
    )


def _is_turned(located: Located) -> bool:
    """Whether what was made is a mask, and hides what should be kept and the reverse."""
    made, needed = located.made, located.expected
    if made is None or needed is None or made.shape != needed.shape or not is_mask(made):
        return False
    return torch.equal(made == 0, needed != 0)


def _tensors(number: int | None) -> str:
    return "no tensor" if not number else "one tensor" if number == 1 else f"{number} tensors"


def _lines(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"


def quoted(line: str) -> str:
    """A line of code, as it stands in a sentence."""
    line = line.strip()
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def call_in_words(case: TraceCase) -> str:
    """The call of a case, in words."""
    if case.through:
        method, *read = case.through
        steps = range(0, len(case.arguments), len(read))
        each = (", ".join(map(_argument, case.arguments[n : n + len(read)])) for n in steps)
        return f"{case.exercise} after {' and '.join(f'{method}({step})' for step in each)}."
    args = ", ".join(map(_argument, case.arguments))
    built = "" if case.built is None else f"({', '.join(map(str, case.built))})"
    return f"{case.exercise}{built} with {args}." if built else f"{case.exercise}({args})."


def _argument(arg: Any) -> str:
    if isinstance(arg, tuple | list) and any(isinstance(one, torch.Tensor) for one in arg):
        return f"({', '.join(map(_argument, arg))})"
    return f"a tensor of shape {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else repr(arg)[:MAX_LINE]


def _beside(located: Located) -> list[str]:
    """Return lines with a few of the made and of the needed numbers, from where the printed digits differ."""
    made, needed, start, digits = located.made, located.expected, 0, _DIGITS
    above = ["On the way to its result, the line makes:"] if located.is_inner and made is not None else []
    if made is not None and needed is not None and made.shape == needed.shape and made.numel():
        one, other = comparable(made).flatten(), comparable(needed).flatten()
        apart = ((one - other).abs() > TOLERANCE * (1 + other.abs())).nonzero().flatten().tolist()[:_MOST_COMPARED]
        seen = [n for n in apart if f"{float(one[n]):.{digits}g}" != f"{float(other[n]):.{digits}g}"]
        start, digits = (seen or apart or [0])[0], digits if seen else _MORE_DIGITS
    rows = above if made is None else [*above, f"made:   {_tensor(made, start, digits)}"]
    return rows if needed is None else [*rows, f"needed: {_tensor(needed, start, digits)}"]


def _tensor(values: torch.Tensor, start: int, digits: int) -> str:
    if values.dim() == 0:
        return f"the number {float(values):.{digits}g}"
    numbers = ", ".join(f"{number:.{digits}g}" for number in (values + 0.0).flatten()[start : start + _SHOWN].tolist())
    more = ", …" if values.numel() > start + _SHOWN else ""
    place = (torch.arange(values.numel()).view(values.shape) == start).nonzero()[0].tolist() if start else []
    where = f"from {place} on" if start else "beginning with"
    return f"shape {tuple(values.shape)}, {where} {numbers}{more}" if numbers else f"shape {tuple(values.shape)}"


def _seen(located: Located) -> list[str]:
    """What can be said of the numbers without knowing the code."""
    made, needed = located.made, located.expected
    if made is None or needed is None or made.shape != needed.shape or made.dim() == 0 or not made.numel():
        return []
    made, needed = made.double(), needed.double()
    if bool(made.isnan().any()) and not bool(needed.isnan().any()):
        of = "infinity - infinity, 0 * infinity, 0 / 0 and the root of a negative number"
        return [f"There are NaN in it: {of} give them."]
    if is_mask(made) or is_mask(needed):
        is_turned = located.how == "mask" and torch.equal(made == 0, needed != 0)
        return ["It is the other way round: 0 where something else is needed, and the reverse."] if is_turned else []
    return [*_of_rows(made, needed), *_of_a_factor(made, needed)]


def _of_rows(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    sums = torch.stack([made, needed]).sum(dim=-1)
    if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return []
    largest, should = float(made.amax(dim=-1).mean()), float(needed.amax(dim=-1).mean())
    if abs(largest - should) < 0.02 or not torch.equal(made == 0, needed == 0):
        return []
    how = "too even" if largest < should else "too uneven"
    if made.dim() == 1:
        return [f"They sum to 1, but are {how}: the largest is {largest:.2f}, and should be {should:.2f}."]
    return [f"Each row sums to 1, but they are {how}: the largest of a row is {largest:.2f}, and should be {should:.2f}"
            ", on average."]  # fmt: skip


def _of_a_factor(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    there = needed.isfinite() & made.isfinite() & (needed.abs() > 1e-6)
    if int(there.sum()) < 2 or not torch.equal(needed.isfinite(), made.isfinite()):
        return []
    ratio = made[there] / needed[there]
    factor = float(ratio[0])
    if (
        not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3)
        or not torch.allclose(made[~there & made.isfinite()], torch.zeros(()).to(made), atol=1e-6)
        or abs(factor) < _SMALL
        or abs(factor - 1) < _SMALL
    ):
        return []
    return [f"It is {factor:.4g} times what is needed."]
