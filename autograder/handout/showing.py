"""What the check says, in lines: as text, and for `page` as HTML."""

import re
import sys
from dataclasses import dataclass, field

from ..compare.complaints import calls_forbidden, halves_the_points
from .called import in_words, to_play_with
from .hunted import hunts
from .matrices import Beside, beside
from .page import as_page, page_of_lines, page_of_summary
from .tried import NOT_DEFINED, NOT_WRITTEN, Outcome, Tried

_WHAT_TO_DO = {
    NOT_DEFINED: "run its cell first",
    NOT_WRITTEN: "its stub still raises NotImplementedError",
}
_BY_A_PERSON = "not marked yet: a person reads it"
_MOST_PRINTED = 600
_AS_ABOVE = "As above."
MOST_SHOWN = 3
"""Failed examples of which more is said than what is wrong."""


@dataclass
class Line:
    """One example, in words."""

    mark: str
    """`passed`, `FAILED` or `not tried`."""
    statement: str
    problem: str = ""
    call: str = ""
    to_play_with: str = ""
    """What gives the call's arguments and the right result."""
    printed: str = ""
    frames: list[str] = field(default_factory=list)
    beside: Beside | None = None


@dataclass
class Account:
    """All that is said of one exercise."""

    title: str
    warning: str
    lines: list[Line]
    box_title: str
    box: list[str]
    whereabouts: str
    asides: list[str]
    sum: str


def account(found: Outcome, warning: str) -> Account:
    """What is said of what was found. warning: what stands above all."""
    if found.missing:
        title = f"{found.exercise} is {found.missing}: {_WHAT_TO_DO[found.missing]}."
        return Account(title, warning, [], "", [], "", [], "")
    passes, sum_of = "passes on the public examples", "On the public examples"
    if found.hardly_tried:
        passes, sum_of = "passes the little that can be tried here", "Without what is not tried here"
    title = f"{found.exercise} {passes}." if found.whole else f"{found.exercise} is not right yet."
    first = {_kind(one): number for number, one in reversed(list(enumerate(found.tried))) if one.problem}
    more = sorted(first.values())[:MOST_SHOWN]
    lines = [_line(found.exercise, number, one, with_more=number in more) for number, one in enumerate(found.tried)]
    for number, (line, one) in enumerate(zip(lines, found.tried, strict=True)):
        if line.problem and first[_kind(one)] != number:
            line.problem = _AS_ABOVE
        if line.problem and found.halved and one.example.get("essential"):
            line.problem = halves_the_points(line.problem)
    box_title, box = "", list(found.mistakes)
    if box:
        if found.whole:
            box_title = f"But so does {'a common mistake' if len(box) == 1 else 'each of these common mistakes'}:"
        elif len(box) == 1:
            box_title = "A common mistake looks just like this:"
        else:
            box_title = "Several common mistakes look like this; yours may be one of them:"
    asides = [f"Not tried here: {statement}" for statement in found.not_tried]
    if found.calls:
        asides.insert(0, calls_forbidden(found.calls))
    if any(line.to_play_with for line in lines):
        asides.append(f"`example` comes with `from {__name__} import example`.")
    asides.append(_of_hidden_tests(found))
    return Account(
        title, warning, lines, box_title, box, found.whereabouts, asides,
        f"{sum_of} that is {found.score:g} of {found.points:g} points:",
    )  # fmt: skip


def _kind(one: Tried) -> str:
    """What is wrong; of an error without its numbers, because in each example other sizes meet."""
    return re.sub(r"\d+", "", one.problem) if one.frames else one.problem


def _of_hidden_tests(found: Outcome) -> str:
    """What the hidden tests do that this does not."""
    if hunted := [prey["of"] for one in found.tried for prey in hunts({"examples": [one.example]})]:
        return f"The hidden test asks the same, with the right `{hunted[0]}` in the place of yours."
    return "The hidden tests ask the same with other numbers."


def _line(exercise: str, number: int, one: Tried, *, with_more: bool) -> Line:
    mark = "not tried" if one.skipped else "FAILED" if one.problem else "passed"
    line = Line(mark, one.example["statement"], one.problem)
    if not with_more:
        return line
    if one.call is not None:
        line.call = in_words(one.call, one.example)
        line.to_play_with = to_play_with(one.call, exercise, number + 1, one.example)
        line.beside = beside(one.call) if "value" in one.example.get("looks_at", ["value"]) and not one.frames else None
    line.frames = [f"line {at} of the cell, in {name}: {text}" for name, at, text in one.frames]
    printed = one.printed.strip()
    line.printed = printed if len(printed) <= _MOST_PRINTED else f"{printed[:_MOST_PRINTED]}…"
    return line


def as_text(said: Account) -> str:
    """The account in plain text."""
    text = [said.warning] if said.warning else []
    if not said.lines:
        return "\n".join([*text, said.title])
    for line in said.lines:
        text.append(f"{line.mark}  {line.statement}")
        below = [line.problem] if line.problem else []
        below += [f"In the call {line.call}"] if line.call else []
        below += [f"To play with it: {line.to_play_with}"] if line.to_play_with else []
        below += line.frames
        below += ["Your code printed:", *line.printed.splitlines()] if line.printed else []
        text += [f"        {one}" for one in below]
    text.append(said.title)
    if said.box:
        text += [said.box_title, *(f"        {sentence}" for sentence in said.box)]
    if said.whereabouts:
        text += [said.whereabouts]
    return "\n".join([*text, *said.asides, said.sum])


class Shown(float):
    """A score as nbgrader wants it, which Jupyter shows as a page."""

    page: str

    def _repr_html_(self) -> str:
        return self.page


def tell(found: Outcome, warning: str) -> float:
    """Tells what was found: in Jupyter by how the score is shown, elsewhere in print."""
    said = account(found, warning)
    if not in_jupyter():
        print(as_text(said))
        return found.score
    shown = Shown(found.score)
    shown.page = as_page(said)
    return shown


def in_jupyter() -> bool:
    """Whether what a cell gives is shown as HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def say(title: str, lines: list[str]) -> None:
    """Says a few sentences below a title: in Jupyter as a small page, elsewhere in print."""
    text = (" " if title.endswith(".") else "\n").join(filter(None, [title, *lines]))
    if not in_jupyter():
        print(text)
        return
    from IPython.display import display

    display({"text/html": page_of_lines(title, lines), "text/plain": text}, raw=True)


def summed(outcomes: list[Outcome], written: dict[str, float]) -> None:
    """Tells how far the whole notebook is; written: the points of the questions that a person marks."""
    rows = [_row(found) for found in outcomes]
    rows += [(question, _BY_A_PERSON, f"– of {points:g}") for question, points in written.items()]
    total, by_hand = sum(found.score for found in outcomes), sum(written.values())
    points = sum(found.points for found in outcomes) + by_hand
    whole = sum(found.whole for found in outcomes)
    below = [f"{whole} of {len(outcomes)} exercises pass: {total:g} of {points:g} points on the public examples."]
    if written:
        below.append(f"{by_hand:g} of these points are not given here: a person reads what you write in words.")
    below.append("The hidden tests ask the same with other numbers.")
    if in_jupyter():
        from IPython.display import HTML, display

        display(HTML(page_of_summary(rows, below)))
        return
    for name, said, score in rows:
        print(f"{name:<32}{said:<44}{score:>10}")
    print("\n".join(below))


def _row(found: Outcome) -> tuple[str, str, str]:
    right = len(found.tried) - len(found.failed)
    passes = "passes the little that is tried" if found.hardly_tried else "passes"
    said = found.missing or (passes if found.whole else f"{right} of {len(found.tried)} examples pass")
    if found.calls:
        said = f"calls {' and '.join(found.calls)}"
    elif found.mistakes:
        said += ", but so does a mistake" if found.whole else ", a common mistake"
    return found.exercise, said, f"{found.score:g} of {found.points:g}"
