"""Reference pages made from the code: commands, settings, JSON, statuses and exit codes, contracts, misconceptions."""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec
import typer.cli

from autograder.catalogue import KINDS, known_answers
from autograder.cli import app, console
from autograder.course.settings import ClassSettings, Settings
from autograder.graders.collection import MARKERS
from autograder.report import ExerciseStatus, SubmissionStatus

REPOSITORY = Path(__file__).resolve().parents[2]
TEST_AUTHORS = [
    "graders.contracts", "graders.statements", "graders.proxy",
    "core.comparison", "core.complaints", "catalogue.bug_hunts",
]  # fmt: skip
"""Modules with the names that hidden tests use, apart from those that only one unit needs."""


def one_line(text: str) -> str:
    """Return a text as the content of a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(*rows: tuple[str, ...]) -> str:
    """Return a table; the first row is its head."""
    lines = ["| " + " | ".join(map(one_line, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def docstrings(body: list[ast.stmt]) -> dict[str, str]:
    """Return the docstrings below the assignments in the body of a module or class, by the assigned name."""
    found = {}
    for statement, below in pairwise(body):
        match statement, below:
            case (
                (ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])),
                ast.Expr(value=ast.Constant(value=str(docstring))),
            ):
                found[name] = inspect.cleandoc(docstring)
    return found


def parsed(module: str) -> ast.Module:
    """Return the syntax tree of one of the engine's modules."""
    return ast.parse(inspect.getsource(import_module(f"autograder.{module}")))


# ---- commands


def commands() -> str:
    """Return the page of all commands and options."""
    group = typer.main.get_command(app())
    text = typer.cli.get_docs_for_click(obj=group, ctx=typer.Context(group), name="autograder")
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+\n", "", text)  # shortened in the middle of sentences
    return text.replace("# `autograder`", "# Commands and options", 1)


# ---- settings, JSON and YAML: from JSON Schema


def nested(kind: type[msgspec.Struct], path: str = "") -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield a struct and all that its fields refer to, each with the keys that lead to it."""
    yield path, kind
    for field in msgspec.structs.fields(kind):
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from nested(inner, f"{path}.{field.name}".lstrip("."))


def described_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a struct, with the docstrings below its fields, inherited ones too."""
    schema = msgspec.json.schema(kind)
    for _, struct in nested(kind):
        for base in struct.__mro__[: struct.__mro__.index(msgspec.Struct)]:
            (definition,) = ast.parse(inspect.getsource(base)).body
            assert isinstance(definition, ast.ClassDef)
            for field, text in docstrings(definition.body).items():
                schema["$defs"][struct.__name__]["properties"][field].setdefault("description", text)
    return schema


def sections(schema: dict[str, Any], headings: dict[str, str]) -> str:
    """Return a section for each struct of a JSON Schema. headings: those that are not the struct's name."""

    def heading(struct: str) -> str:
        return headings.get(struct, struct)

    def type_text(field: dict[str, Any]) -> str:
        match field:
            case {"$ref": ref}:
                title = heading(ref.rpartition("/")[2])
                return f"[{title.strip('[]')}](#{re.sub(r'[^a-z0-9_]', '', title.lower())})"
            case {"enum": values}:
                return ", ".join(f"`{json.dumps(value)}`" for value in values)
            case {"anyOf": alternatives}:
                return " or ".join(map(type_text, alternatives))
            case {"type": "array", "items": dict(item)}:
                return f"list of {type_text(item)}"
            case {"type": "object", "additionalProperties": dict(item)}:
                return f"table of {type_text(item)}"
        return str(field.get("type", "anything"))

    text = ""
    for struct, definition in schema["$defs"].items():
        rows: list[tuple[str, ...]] = [("key", "type", "default", "meaning")]
        for name, field in definition["properties"].items():
            default = field.get("default")
            is_shown = isinstance(default, str | int | float | list) and "\n" not in str(default)
            shown = f"`{json.dumps(default)}`" if is_shown else ""
            rows.append((f"`{name}`", type_text(field), shown, field.get("description", "")))
        if not any(default for _, _, default, _ in rows[1:]):
            rows = [(name, kind, meaning) for name, kind, _, meaning in rows]
        text += f"\n## {heading(struct)}\n\n{definition.get('description', '')}\n\n{table(*rows)}"
    return text


def settings() -> str:
    """Return the page of all keys of autograder.toml."""
    headings = {struct.__name__: f"[{path}]" for path, struct in nested(Settings)} | {"Settings": "Above all tables"}
    of_class = " and ".join(f"`[{field.name}]`" for field in msgspec.structs.fields(ClassSettings))
    return (
        f"# Settings: autograder.toml\n\nThe file of a class's folder may have {of_class} only.\n"
        f"{sections(described_schema(Settings), headings)}\n## This course's file\n\n"
        f"```toml\n{(REPOSITORY / 'autograder.toml').read_text()}```\n"
    )


def json_page(command: str) -> str:
    """Return the page of the JSON that a command prints."""
    schema = json.loads((REPOSITORY / "docs" / f"{command}.schema.json").read_text())
    hint = f"`autograder {command} --schema` prints the JSON Schema."
    return f"# JSON of `autograder {command}`\n\n{hint}\n{sections(schema, {})}"


def misconceptions() -> str:
    """Return the page of the fields of files of misconceptions."""
    intro = inspect.getdoc(known_answers) or ""
    kinds = ", ".join(f"`{kind}`" for kind in KINDS)
    return (
        f"# Files of misconceptions\n\n{intro}\n\nA sentence has at most {known_answers.LONGEST} characters. The "
        f"kinds are {kinds}. {docstrings(parsed('catalogue.candidate').body)['Kind']}\n"
        f"{sections(described_schema(known_answers.Misconception), {})}"
    )


# ---- statuses and exit codes


def statuses() -> str:
    """Return the page of statuses, with their meanings from the page on troubleshooting, and of exit codes."""
    trouble = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
    text = "# Statuses and exit codes\n\n[Troubleshooting](../docs/troubleshooting.md) says what to do.\n"
    for subject, kind in [("a submission", SubmissionStatus), ("an exercise", ExerciseStatus)]:
        section = trouble.partition(f"## The status of {subject}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.*?) \| (.*?) \|", section, re.M)
        meanings = {
            status: next(meaning for statuses, meaning in rows if f"`{status}`" in statuses)
            for status in get_args(kind)
        }
        listed = [(f"`{status}`", meaning) for status, meaning in meanings.items()]
        text += f"\n## The status of {subject}\n\n{table(('status', 'meaning'), *listed)}"
    codes = [
        (str(code), meaning)
        for name, meaning in docstrings(parsed("cli.console").body).items()
        if isinstance(code := getattr(console, name, None), int)
    ]
    return f"{text}\n## Exit codes of commands\n\n{table(('code', 'meaning'), ('0', 'Everything is done.'), *codes)}"


# ---- contracts


def definitions(module: str) -> Iterator[ast.stmt]:
    """Yield the statements of a module, and the definitions that it imports for others, as in `import x as x`."""
    for node in parsed(module).body:
        yield node
        if isinstance(node, ast.ImportFrom) and (names := {alias.asname for alias in node.names} - {None}):
            origin = resolve_name("." * node.level + str(node.module), f"autograder.{module.rpartition('.')[0]}")
            for definition in parsed(origin.removeprefix("autograder.")).body:
                if getattr(definition, "name", None) in names:
                    yield definition


def members(module: str) -> Iterator[str]:
    """Yield the public functions and classes of a module as directives, those of a class inside its own."""
    for node in definitions(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef):
                yield function(node)
            else:
                methods = [
                    one for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")
                ]
                inside = "\n".join(function(method, "method") for method in methods)
                yield directive("class", node.name, f"{ast.get_docstring(node) or ''}\n\n{inside}", fence="````")


def function(node: ast.FunctionDef, kind: str = "function") -> str:
    """Return the directive of a function or method; for a contract, with the arguments of its declaration."""
    text, arguments = ast.get_docstring(node) or "", ast.unparse(node.args)
    arguments = re.sub(r"^self(: \w+)?(, )?", "", arguments)
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "contract":
            arguments = re.sub(r"^given: Given", "statement: str", arguments)
            weight, *kinds = [ast.unparse(decorator.args[0]), *(str(keyword.arg) for keyword in decorator.keywords)]
            text += f"\n\nWeight {weight}{''.join(f', {kind}' for kind in kinds)}."
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return directive(kind, f"{node.name}({arguments}){returns}", text)


def directive(kind: str, signature: str, text: str, fence: str = "```") -> str:
    """Return a directive of Sphinx's domain for Python."""
    return f"{fence}{{py:{kind}}} {signature}\n\n{text}\n{fence}\n"


def contracts() -> str:
    """Return the page of the modules that hidden tests import."""
    text = (
        "# Contracts and assertions\n\nHidden tests import these names; [an example](../docs/design/hidden_tests.md).\n"
    )
    for module in TEST_AUTHORS:
        intro = ast.get_docstring(parsed(module)) or ""
        text += f"\n## autograder.{module}\n\n```{{py:module}} autograder.{module}\n```\n\n{intro}\n\n"
        text += "\n".join(members(module))
    markers = [(f"`{marker}`", meaning) for marker, meaning in MARKERS.items()]
    return f"{text}\n## Markers of pytest\n\n{table(('marker', 'meaning'), *markers)}"


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "mark_json": partial(json_page, "mark"),
    "grade_json": partial(json_page, "grade"),
    "serve_json": partial(json_page, "serve"),
    "statuses": statuses,
    "contracts": contracts,
    "misconceptions": misconceptions,
}
"""The functions that make the pages, by the page's name."""
