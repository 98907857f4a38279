"""Check the style of docstrings, help texts, settings' comments, documentation pages and commit subjects.

`python -m tests.prose` prints the findings in the repository, `python -m tests.prose FILE` those in a commit message.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("autograder", "benchmarks", "demo", "docs", "exercises", "solutions", "tests")
CODE = [f"{folder}/**/*.py" for folder in FOLDERS]
PAGES = ["*.md", "changelog.d/**/*.md", "docs/**/*.md", "deploy/*.md"]
SETTINGS = ["autograder.toml", "nbgrader_config.py", "Makefile", "pyproject.toml", ".pre-commit-config.yaml"]
# Answers in the style of students, and generated pages.
EXCEPT = re.compile(
    r"autograder/(right_answers|misconceptions)/|tests/(answers|hostile|misbehaving)/|CHANGELOG|docs/matrix.md"
)

CLAUSE_WORD = re.compile(r"(What|Whatever|Whether|Where|Who|Whose|Which|That|How|When|Of|As)\b")
# Words that are hardly ever right in plain technical English.
PRIVATE_WORD = re.compile(
    r"\b(told|anew|whereabouts|(?<!by )hand(s|ed|ing)?[ -]in|telling cases?|warm parents?|mend(s|ed|ing)?"
    r"|look(s|ed) at|a look|of whom|what comes of|so many|in so far|prey|handouts?|beside"
    r"|(?<!there )(is|are|was|were) (?-i:none))\b",
    re.I,
)
MOST_WORDS = 30
MOST_CHARACTERS = 72
AREA = re.compile(r"[A-Z][\w./-]*( [\w./,-]+){0,5}: ")
NO_VERB = re.compile(
    r"(an?|the|i|we|you|he|she|it|they|this|that|these|those|what|which|who|whose|one|each|every|all|some|any|no"
    r"|none|nothing|everything|about|above|across|after|against|along|among|at|before|behind|below|besides?|between"
    r"|beyond|by|despite|during|for|from|in|inside|into|of|off|on|onto|out|outside|over|since|through|to|towards?"
    r"|under|until|upon|via|with|within|without)\b",
    re.I,
)

Finding = tuple[str, int, str]
"""A file, a line in it, and the rule that is broken there."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring with its line, also the strings below assignments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for before, statement in zip([None, *node.body], node.body, strict=False):
                is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if is_text and isinstance(before, None | ast.Assign | ast.AnnAssign):
                    yield statement.lineno, str(statement.value.value)


def help_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of options' help, and the comments in templates of settings files."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "help":
            parts = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            yield from ((part.lineno, part.value) for part in parts if isinstance(part.value, str))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search("^# ", node.value, re.M):
            yield from ((node.lineno + line - 1, text) for line, text in comments(node.value))


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment of a settings file with its line."""
    for number, line in enumerate(source.splitlines(), 1):
        if match := re.search(r"(?:^|\s)#(.*)", line):
            yield number, match[1]


def without_code(page: str) -> str:
    """Return a Markdown page with inline code as one word, links as their texts, and blank lines for other code."""
    page = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), page, flags=re.M | re.S)
    page = re.sub(r"(?<=\n\n) {4}\S.*(\n+ {4}.*)*", lambda code: "\n" * code[0].count("\n"), page)
    page = re.sub(r"`[^`]*`", lambda code: "`X`" + "\n" * code[0].count("\n"), page)
    return re.sub(r"\]\([^)]*\)", "]", page)


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a page without code, each with its line; tables are left out."""
    page, start = re.sub(r"^ *\|.*", "", page, flags=re.M), 0
    for end in re.finditer(r"\n\s*\n|\n(?=\s*([-*>#]|\d+\.) )|[.!?:][\"')*_]*\s+(?=[\"'(*_`\[]*[A-Z\d])|\Z", page):
        yield page[:start].count("\n") + 1, page[start : end.end()]
        start = end.end()


def private_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield each private word with the number of lines above it; names in inline code are left out."""
    text = re.sub(r"`[^`]*`", lambda code: "`" + "\n" * code[0].count("\n") + "`", text)
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    for match in PRIVATE_WORD.finditer(text.replace("\n", " ")):
        yield text[: match.start()].count("\n"), match[0]


def in_module(name: str, source: str) -> Iterator[Finding]:
    """Find docstrings that open with a clause word, and private words in docstrings and help texts."""
    tree = ast.parse(source)
    for line, text in docstrings(tree):
        if match := CLAUSE_WORD.match(text):
            yield name, line, f"a docstring opens with {match[0]!r}"
    for line, text in (*docstrings(tree), *help_texts(tree)):
        yield from ((name, line + lines, f"private word {word!r}") for lines, word in private_words(text))


def in_page(name: str, page: str) -> Iterator[Finding]:
    """Find private words and long sentences in a Markdown page."""
    page = without_code(page)
    yield from ((name, lines + 1, f"private word {word!r}") for lines, word in private_words(page))
    for line, sentence in sentences(page):
        if (words := len(sentence.split())) > MOST_WORDS:
            yield name, line, f"a sentence of {words} words"


def in_settings(name: str, source: str) -> Iterator[Finding]:
    """Find private words in the comments of a settings file."""
    for line, text in comments(source):
        yield from ((name, line, f"private word {word!r}") for _, word in private_words(text))


def in_repository() -> Iterator[Finding]:
    """Find what breaks a rule in the repository."""
    for patterns, find in ((CODE, in_module), (PAGES, in_page), (SETTINGS, in_settings)):
        for path in sorted(path for pattern in patterns for path in REPOSITORY.glob(pattern)):
            name = path.relative_to(REPOSITORY).as_posix()
            if not EXCEPT.match(name):
                yield from find(name, path.read_text())


def in_subject(message: str) -> list[str]:
    """Return the rules that a commit message's subject breaks."""
    lines = [line for line in message.splitlines() if line.strip() and not line.startswith("#")]
    subject = re.sub(r"^((fixup|squash|amend)! )*", "", lines[0]) if lines else ""
    broken = []
    if len(subject) > MOST_CHARACTERS:
        broken.append(f"The subject has {len(subject)} characters; use at most {MOST_CHARACTERS}.")
    if opening := NO_VERB.match(AREA.sub("", subject, count=1)):
        broken.append(f"The subject opens with {opening[0]!r}; open with a verb in the imperative.")
    return broken


def main(*messages: str) -> int:
    """Print the findings in commit messages, or in the repository if no message is named."""
    broken = [line for file in messages for line in in_subject(Path(file).read_text())]
    if not messages:
        broken = [f"{name}:{line}: {rule}" for name, line, rule in in_repository()]
    print(*broken, sep="\n", end="\n" if broken else "")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
