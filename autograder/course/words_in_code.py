"""Tell words from code: students write answers into cells of code, as they are, in comments or in strings."""

import ast
import re
import warnings

_LONGEST = 20_000
"""Characters of a cell of code that is read for words."""
# No \s: it matches line ends too, and searching a cell of empty lines would take hours.
_MARKDOWN_MAGIC = re.compile(r"[ \t]*%%(?:markdown|html|latex)\b[^\n]*\n")
_OF_IPYTHON = re.compile(r"^[ \t]*(?:[!%?].*|[\w.]+\?+[ \t]*)$", re.M)
_UNFINISHED = re.compile(r"^[ \t]*(?:(?:def|class) \w+[ \t]*[(:]|import \w|from \w+ import |for \w+ in |@\w)", re.M)
"""Lines of code, in a cell that is no Python all the same."""


def is_prose(code: str) -> bool:
    """Return whether the text of a code cell is words, which are no Python."""
    return _body(code) is None and not _UNFINISHED.search(code)


def words_of(code: str) -> str:
    """Return the words in a code cell as markdown: prose, comments and texts; empty for code that computes.

    >>> words_of("# Because the variance grows.")
    '```python\\n# Because the variance grows.\\n```'
    """
    if magic := _MARKDOWN_MAGIC.match(code):
        return code[magic.end() :]
    if is_prose(code):
        return code
    body = _body(code)
    only_says = body is not None and _OF_IPYTHON.sub("", code).strip() and all(map(_only_says, body))
    return fenced(code) if only_says else ""


def fenced(code: str) -> str:
    """Return code as a block of markdown."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def _body(code: str) -> list[ast.stmt] | None:
    """The statements of a cell; None if it is no Python. A cell that is too long to be read counts as code."""
    if len(code) > _LONGEST:
        return [ast.Pass()]
    code = _OF_IPYTHON.sub("", code)
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in strings
            return ast.parse(code).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _only_says(statement: ast.stmt) -> bool:
    """Return whether a statement consists of a string, or only assigns or prints one."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
        return all(isinstance(argument, ast.Constant | ast.JoinedStr) for argument in value.args)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
