"""The check's account of an exercise: its lines and messages, shown as text or as HTML."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ..core.complaints import calls_forbidden, halves_the_points, uses_wrong
from ..core.lost_aspects import OF_COUNTING, OF_DEVICE, OF_DTYPE, OF_FORM, OF_GRADIENT, OF_VALUE, OF_WRITING
from .call_description import MatrixComparison, compare_matrices, describe_call, example_call
from .run_examples import NOT_WRITTEN, ExampleResult, Outcome

_BY_A_PERSON = "not marked yet: a person reads it"
_MOST_PRINTED, _MOST_LINES = 600, 10
"""Maximum number of characters and lines of an answer's output in an example."""
_SHORT = 15
"""Maximum number of lines of the short account."""
_AS_ABOVE, _OTHER_NUMBERS = "As above.", "The hidden tests ask the same with other numbers."
MOST_SHOWN = 3
"""Maximum number of failed examples that are shown with their call and values."""


@dataclass
class Line:
    """The account of one example."""

    mark: str
    """`passed`, `FAILED` or `not tried`."""
    statement: str
    problem: str = ""
    call: str = ""
    to_play_with: str = ""
    """The code that returns the call's arguments and the right result."""
    printed: str = ""
    frames: list[str] = field(default_factory=list)
    beside: MatrixComparison | None = None


@dataclass
class Account:
    """The verdict on one exercise, the most important finding, and the details for those who ask for more."""

    title: str
    warning: str
    lines: list[Line] = field(default_factory=list)
    """One line for each example."""
    finding: Line | None = None
    """The most important failed example."""
    box_title: str = ""
    box: list[str] = field(default_factory=list)
    """The sentences on common mistakes with the same behaviour, each with what to do instead."""
    box_word: str = "Or"
    """`And` if the code has all of these mistakes."""
    line_message: str = ""
    """The message on the faulty line, if it is known."""
    asides: list[str] = field(default_factory=list)
    more: str = ""
    """The call of `check` that shows all details."""
    repair: list[str] = field(default_factory=list)
    """The result of the search for a repair, in lines."""
    offer: str = ""
    """The last line: the call that searches the faulty line, if nothing explains the failure, or `explain`."""
    line_is_aside: bool = False
    """True if the faulty line does not explain the finding, which is shown first then."""

    @property
    def is_error(self) -> bool:
        """True if the finding is an exception, which is shown before its cause."""
        return bool(self.finding and self.finding.frames)

    @property
    def short_box(self) -> str:
        """The title and the mistakes without what to do instead, because the student may find that first."""
        return f"{self.box_title} {f' {self.box_word}: '.join(map(_without_fix, self.box))}" if self.box else ""


def account(found: Outcome, warning: str, module: str) -> Account:
    """Return the account of an outcome. warning: its first line. module: the name that notebooks import."""
    if found.missing:
        why = "its stub still raises NotImplementedError" if found.missing == NOT_WRITTEN else "run its cell first"
        return Account(f"{found.exercise} is {found.missing}: {why}.", warning)
    title = f"{found.exercise} {'passes on the public examples' if found.whole else 'is not right yet'}"
    title += f": {points_in_words(found)}."
    if found.uses_wrong:
        warning = f"{warning} {uses_wrong(found.uses_wrong)}".strip()
    if found.calls:
        warning = f"{warning} {calls_forbidden(found.calls)}".strip()
    first = {_kind(one): number for number, one in reversed(list(enumerate(found.tried))) if one.problem}
    more = sorted(first.values())[:MOST_SHOWN]
    lines = [_line(found.exercise, number, one, with_more=number in more) for number, one in enumerate(found.tried)]
    for number, (line, one) in enumerate(zip(lines, found.tried, strict=True)):
        if line.problem and first[_kind(one)] != number:
            line.problem = _AS_ABOVE
        if line.problem and found.halved and one.example.get("essential"):
            line.problem = halves_the_points(line.problem)
    asides = [f"Not tried here: {test['statement']}" for test in found.not_tried]
    if any(line.to_play_with for line in lines):
        asides.append(f"`example` comes with `from {module} import example`.")
    asides.append(_of_hidden_tests(found))
    repair = found.repair_message.splitlines()
    is_explained = found.is_explained or bool(found.line_message and not found.line_is_aside)
    call, searched = f'check("{found.exercise}", ', "repair=True" if repair else ""
    offer = f"Which line? {call}repair=True)" if found.can_be_repaired and not (repair or is_explained) else ""
    if found.whole and found.has_questions:
        offer = f'Do you know your own lines? `explain("{found.exercise}")` asks about them.'
    return Account(
        title, warning, lines, _most_important(found, lines), _box_title(found),
        list(found.mistakes.sentences), "And" if found.mistakes.are_together else "Or", _message(found), asides,
        more=f"{call}{', '.join(filter(None, [searched, 'more=True']))})", repair=repair, offer=offer,
        line_is_aside=found.line_is_aside,
    )  # fmt: skip


def points_in_words(found: Outcome) -> str:
    """Return the points of the examples, and how many of the exercise's points have an example."""
    if found.tried_points == found.points or found.missing:
        return f"{found.earned:g} of {found.points:g} points"
    return f"{found.earned:g} of the {found.tried_points:g} points that are tried here, of {found.points:g}"


def _box_title(found: Outcome) -> str:
    """Return the title of the sentences on common mistakes; empty if there are none."""
    mistakes = found.mistakes
    part = "" if found.is_explained else f" in {mistakes.explained} of the {len(found.failed)} failed examples"
    if mistakes.are_together:
        return f"Two common mistakes at once look just like this{part}:"
    if len(mistakes.sentences) > 1:
        return f"Several common mistakes look like this{part}; yours may be one of them:"
    return f"A common mistake looks just like this{part}:" if mistakes.sentences else ""


def _message(found: Outcome) -> str:
    text = found.line_message
    return f"Another matter: {text[0].lower()}{text[1:]}" if found.line_is_aside else text


IMPORTANCE = (OF_VALUE, OF_FORM, OF_COUNTING, OF_DTYPE, OF_WRITING, OF_GRADIENT, OF_DEVICE)
"""Aspects by importance: a wrong value explains more than a wrong dtype or device."""


def _most_important(found: Outcome, lines: list[Line]) -> Line | None:
    """Return the finding to read first: an error, then a wrong value, then other aspects."""
    failed = [number for number, one in enumerate(found.tried) if one.problem]
    if not failed:
        return None

    def importance(number: int) -> tuple[bool, bool, int]:
        one = found.tried[number]
        return not one.frames, bool(one.example.get("property")), IMPORTANCE.index(one.aspect)

    return lines[min(failed, key=importance)]


def _without_fix(sentence: str) -> str:
    """Return the part of a mistake's sentence that describes the code, without what to do instead."""
    text = sentence.partition("; ")[0]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _kind(one: ExampleResult) -> str:
    """Return the problem; for an exception without numbers, so that examples of other sizes have the same."""
    return re.sub(r"\d+", "", one.problem) if one.frames else one.problem


def _of_hidden_tests(found: Outcome) -> str:
    """Return the sentence on how hidden tests differ from the examples."""
    if found.hunts:
        return f"The hidden test asks the same, with the right `{found.hunts[0]['of']}` in the place of yours."
    return _OTHER_NUMBERS


def _line(exercise: str, number: int, one: ExampleResult, *, with_more: bool) -> Line:
    mark = "not tried" if one.skipped else "FAILED" if one.problem else "passed"
    line = Line(mark, one.example["statement"], one.problem)
    if not with_more:
        return line
    if one.call is not None:
        line.call = describe_call(one.call, one.example)
        line.to_play_with = example_call(one.call, exercise, number + 1, one.example)
        if "value" in one.example.get("looks_at", ["value"]) and not one.frames:
            line.beside = compare_matrices(one.call)
    line.frames = [f"line {at} of the cell, in {name}: {text}" for name, at, text in one.frames]
    line.printed = _shortened(one.printed.strip())
    return line


def _shortened(printed: str) -> str:
    lines = printed.splitlines()
    text = "\n".join(lines[:_MOST_LINES])[:_MOST_PRINTED]
    return text if text == printed else f"{text}…"


def as_text(account: Account, *, more: bool) -> str:
    """Return the account in plain text: the verdict and one finding, or everything."""
    return _full_text(account) if more else _short_text(account)


def _short_text(account: Account) -> str:
    text = [account.warning] if account.warning else []
    text.append(account.title)
    box = [account.short_box] if account.short_box else []
    example = _of_line(account.finding) if account.finding else []
    last = [*account.repair, f"All examples, and what to do: {account.more}"] if account.lines else []
    last += [account.offer] * bool(account.offer)
    where = account.line_message.splitlines()
    room = _SHORT - len(text) - len(box) - len(example) - len(last)
    if len(where) > room:  # the code, at the top, is the most useful part
        where = [*where[: max(room - 1, 0)], "…"]
    if account.line_is_aside:
        body = [*(example + box if account.is_error else box + example), *where]
    else:
        cause = [*box, *where]
        body = example + cause if account.is_error else cause + example
    return "\n".join([*text, *body, *last])


def _full_text(account: Account) -> str:
    text = [account.warning] if account.warning else []
    if not account.lines:
        return "\n".join([*text, account.title])
    for line in account.lines:
        text += _of_line(line)
    text.append(account.title)
    if account.box:
        text += [account.box_title, *(f"        {sentence}" for sentence in account.box)]
    if account.line_message:
        text += [account.line_message]
    text += account.repair
    return "\n".join([*text, *account.asides])


def _of_line(line: Line) -> list[str]:
    below = [line.problem] if line.problem else []
    below += [f"In the call {line.call}"] if line.call else []
    below += [f"To play with it: {line.to_play_with}"] if line.to_play_with else []
    below += line.frames
    below += ["Your code printed:", *line.printed.splitlines()] if line.printed else []
    return [f"{line.mark}  {line.statement}", *(f"        {one}" for one in below)]


class Score(float):
    """A score that nbgrader's Validate reads as the result of a cell, and that a notebook does not display."""

    def _repr_html_(self) -> str:
        return ""


def show_account(found: Outcome, warning: str, module: str, *, more: bool) -> float:
    """Show the account of an outcome; return the score that nbgrader reads."""
    shown = account(found, warning, module)
    text = as_text(shown, more=more)
    _show(text, lambda: account_page(shown, more=more))
    return Score(found.score) if _shell() else found.score


def _shell() -> Any:
    """Return IPython's shell, in notebooks of every kind and in a terminal; None without IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _show(text: str, page: Callable[[], str]) -> None:
    """Show a text. In IPython it is sent as HTML and as text, and the front end chooses; elsewhere it is printed."""
    if _shell() is None:
        print(text)
        return
    from IPython.display import display

    display({"text/html": page(), "text/plain": text}, raw=True)


def show_lines(title: str, lines: list[str]) -> None:
    """Show a few sentences below a title."""
    text = (" " if title.endswith(".") else "\n").join(filter(None, [title, *lines]))
    _show(text, lambda: lines_page(title, lines))


def show_summary(outcomes: list[Outcome], written: dict[str, float]) -> None:
    """Show the points of a whole notebook. written: the points of the questions that a person grades."""
    rows = [_row(found) for found in outcomes]
    rows += [(question, _BY_A_PERSON, f"– of {points:g}") for question, points in written.items()]
    earned, tried, by_hand = (
        sum(found.earned for found in outcomes), sum(found.tried_points for found in outcomes), sum(written.values())
    )  # fmt: skip
    points = sum(found.points for found in outcomes)
    whole = sum(found.whole for found in outcomes)
    below = [f"{whole} of {len(outcomes)} exercises pass: {earned:g} of the {tried:g} points that are tried here."]
    if not_tried := round(points - tried, 2):
        below.append(f"The hidden tests give {not_tried:g} more for what cannot be tried here.")
    if written:
        below.append(f"{by_hand:g} more are not given here: a person reads what you write in words.")
    below.append(_OTHER_NUMBERS)
    text = [f"{name:<32}{said:<44}{score:>10}" for name, said, score in rows]
    _show("\n".join([*text, *below]), lambda: summary_page(rows, below))


def _row(found: Outcome) -> tuple[str, str, str]:
    right = len(found.tried) - len(found.failed)
    said = found.missing or ("passes" if found.whole else f"{right} of {len(found.tried)} examples pass")
    if found.calls:
        said = f"calls {' and '.join(found.calls)}"
    elif found.mistakes.sentences:
        said += ", a common mistake"
    score = f"{found.earned:g} of {found.tried_points:g}"
    return found.exercise, said, score if found.tried_points == found.points else f"{score} tried ({found.points:g})"


# A doubled class has precedence over JupyterLab's own rules for outputs.
_STYLE = """<style>
.acheck{max-width:60em;line-height:1.45;overflow-wrap:anywhere;font-size:.95em}
.acheck .t{font-weight:600;margin:.2em 0 .5em}
.acheck.acheck ul{list-style:none;margin:0;padding:0}
.acheck.acheck p{margin:.4em 0}
.acheck li{margin:.25em 0;padding-left:6.2em;text-indent:-6.2em}
.acheck li>*{text-indent:0}
.acheck .m{display:inline-block;width:5.7em;margin-right:.5em;font-weight:600;text-indent:0}
.acheck .ok .m{color:#1a7f37}.acheck .no .m{color:#cf222e}
.acheck .p{border-left:3px solid #cf222e;padding-left:.6em;margin:.15em 0}
.acheck .b{border:2px solid #bf8700;border-radius:4px;background:rgba(191,135,0,.12);padding:.4em .7em;margin:.6em 0}
.acheck .w{border:2px dashed #bf8700;border-radius:4px;padding:.4em .7em;margin:.3em 0}
.acheck.acheck pre,.acheck code{white-space:pre-wrap;overflow-wrap:anywhere;color:inherit}
.acheck.acheck pre,.acheck code{background:rgba(127,127,127,.12)}
.acheck.acheck pre{margin:.15em 0;padding:.3em .6em;max-height:12em;overflow:auto;word-break:normal}
.acheck.acheck pre.b{max-height:none;margin:.6em 0;padding:.4em .7em;border:2px solid #bf8700}
.acheck.acheck pre.b{background:rgba(191,135,0,.12);font-family:var(--jp-code-font-family,monospace)}
.acheck .two{display:flex;flex-wrap:wrap;gap:.4em 1.6em;margin:.3em 0}
.acheck .two>div{max-width:100%;overflow-x:auto}
.acheck .two table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em;color:inherit}
.acheck .two td{padding:.1em .5em;text-align:right;border:1px solid rgba(127,127,127,.35);background:none;color:inherit}
.acheck .two td{white-space:nowrap}
.acheck .two td.x{background:rgba(207,34,46,.2);font-weight:700;text-decoration:underline}
.acheck summary{cursor:pointer;margin:.4em 0}
.acheck .s td,.acheck .s th{text-align:left;padding:.15em .8em .15em 0}
.acheck .s{border-collapse:collapse;color:inherit}
@media (prefers-color-scheme:dark){.acheck .ok .m{color:#3fb950}.acheck .no .m{color:#ff7b72}}
[data-jp-theme-light="true"] .acheck .ok .m{color:#1a7f37}[data-jp-theme-light="true"] .acheck .no .m{color:#cf222e}
[data-jp-theme-light="false"] .acheck .ok .m{color:#3fb950}[data-jp-theme-light="false"] .acheck .no .m{color:#ff7b72}
</style>"""
_MARKS = {"passed": ("ok", "✓ passed"), "FAILED": ("no", "✗ failed"), "not tried": ("", "– not tried")}


def account_page(account: Any, *, more: bool) -> str:
    """Return an `Account` as HTML: the verdict and one finding. All else is in a fold, which is open if `more`."""
    parts = [f'<p class="w">{escape(account.warning)}</p>'] if account.warning else []
    parts.append(f'<p class="t">{escape(account.title)}</p>')
    example = [f"<ul>{_item(account.finding)}</ul>"] if account.finding else []
    cause = [f'<div class="b">{_prose(account.short_box)}</div>'] if account.short_box else []
    line = [f'<pre class="b">{escape(account.line_message)}</pre>'] if account.line_message else []
    cause, aside = (cause, line) if account.line_is_aside else (cause + line, [])
    parts += [*example, *cause, *aside] if account.is_error else [*cause, *example, *aside]
    if account.repair:
        parts.append(f'<div class="b">{"".join(f"<div>{_prose(line)}</div>" for line in account.repair)}</div>')
    if account.offer:
        parts.append(f"<p>{_prose(account.offer)}</p>")
    if account.lines:
        fold = [f"<ul>{''.join(map(_item, account.lines))}</ul>"]
        if account.box:
            sentences = "".join(f"<div>{_prose(sentence)}</div>" for sentence in account.box)
            fold.insert(0, f'<div class="b"><b>{escape(account.box_title)}</b>{sentences}</div>')
        fold += [f"<p>{_prose(one)}</p>" for one in account.asides if one]
        summary = "<summary>All examples, and what to do</summary>"
        parts.append(f"<details{' open' if more else ''}>{summary}{''.join(fold)}</details>")
    return f'{_STYLE}<div class="acheck">{"".join(parts)}</div>'


def summary_page(rows: list[tuple[str, str, str]], below: list[str]) -> str:
    """Return the exercises of a whole notebook as a table. rows: name, verdict and score."""
    lines = "".join(f"<tr><th scope='row'><code>{escape(name)}</code></th><td>{escape(_mark(said) + said)}</td>"
                    f"<td>{escape(score)}</td></tr>" for name, said, score in rows)  # fmt: skip
    text = "".join(f"<p>{escape(one)}</p>" for one in below)
    return f'{_STYLE}<div class="acheck"><table class="s">{lines}</table>{text}</div>'


def lines_page(title: str, lines: list[str]) -> str:
    """Return sentences as HTML, below a title unless it is empty."""
    parts = [f'<p class="t">{_prose(title)}</p>'] if title else []
    return f'{_STYLE}<div class="acheck">{"".join([*parts, *(f"<p>{_prose(line)}</p>" for line in lines)])}</div>'


def _mark(said: str) -> str:
    if said == "passes":
        return "✓ "
    return "– " if said.startswith("not ") else "✗ "


def _item(line: Any) -> str:
    kind, mark = _MARKS[line.mark]
    inside = f'<span class="m">{mark}</span> {_prose(line.statement)}'
    if line.problem:
        below = _prose(line.problem)
        below += f"<div>In the call <code>{escape(line.call)}</code></div>" if line.call else ""
        below += f"<div>To play with it: <code>{escape(line.to_play_with)}</code></div>" if line.to_play_with else ""
        below += "".join(f"<div><code>{escape(frame)}</code></div>" for frame in line.frames)
        inside += f'<div class="p">{below}</div>'
    if line.beside:
        inside += _two(line.beside)
    if line.printed:
        inside += f"<div>Your code printed:</div><pre>{escape(line.printed)}</pre>"
    return f'<li class="{kind}">{inside}</li>'


def _prose(text: str) -> str:
    """Return plain text as HTML, with text in backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _two(beside: Any) -> str:
    where = f" {escape(beside.where)}" if beside.where else ""
    own = [[_cell(*one) for one in zip(*row, strict=True)] for row in zip(beside.own, beside.wrong, strict=True)]
    right = [[_cell(number) for number in row] for row in beside.right]
    return f'<div class="two">{_table(f"yours{where}", own)}{_table(f"expected{where}", right)}</div>'


def _table(title: str, cells: list[list[str]]) -> str:
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<div>{title}<table>{rows}</table></div>"


def _cell(number: str, wrong: bool = False) -> str:
    return f'<td class="x">{escape(number)} ≠</td>' if wrong else f"<td>{escape(number)}</td>"
