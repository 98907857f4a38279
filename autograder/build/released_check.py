"""The check as students get it: one file, of the modules that it consists of."""

import ast
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_HANDOUT, _INSIDE = _PACKAGE / "handout", _PACKAGE / "sandbox" / "inside"

MODULES = (
    _HANDOUT / "check.py",  # which the others are for; it needs nothing of theirs until it is called
    _HANDOUT / "names.py",
    _PACKAGE / "compare" / "values.py",
    _HANDOUT / "written_values.py",
    _INSIDE / "nesting.py",
    _INSIDE / "arguments.py",
    _INSIDE / "operators.py",
    _INSIDE / "library_calls.py",
    _INSIDE / "device_probe.py",
    _PACKAGE / "compare" / "complaints.py",
    _PACKAGE / "compare" / "of_dropout.py",
    _HANDOUT / "trial.py",
    _HANDOUT / "dropped.py",
    _HANDOUT / "judgement.py",
    _HANDOUT / "forbidden.py",
    _HANDOUT / "known.py",
    _HANDOUT / "tried.py",
    _HANDOUT / "freshness.py",
    _HANDOUT / "called.py",
    _HANDOUT / "matrices.py",
    _HANDOUT / "page.py",
    _HANDOUT / "showing.py",
)


def released_check() -> str:
    """The modules one below the other, under the imports of all of them; what they import of each other is there."""
    texts = [path.read_text() for path in MODULES]
    docstring = ast.get_docstring(ast.parse(texts[0]), clean=False)
    imports = sorted({line for text in texts for line in _imports(text)}, key=_order)
    bodies = [_body(text) for text in texts]
    _refuse_shared_names(bodies)
    return f'"""{docstring}"""\n\n' + "\n".join(imports) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _imports(text: str) -> list[str]:
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    whole = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import)]
    each = [
        f"from {node.module} import {ast.unparse(name)}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not node.level
        for name in node.names
    ]
    return whole + each


def _order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _body(text: str) -> str:
    """What stands below the docstring and the imports."""
    docstring, *others = ast.parse(text).body
    imports = [node for node in others if isinstance(node, ast.Import | ast.ImportFrom)]
    last = max(node.end_lineno or 0 for node in [docstring, *imports])
    return "\n".join(text.splitlines()[last:]).strip("\n")


def _refuse_shared_names(bodies: list[str]) -> None:
    seen = set[str]()
    for body in bodies:
        own = set[str]()
        for node in ast.parse(body).body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    own.add(name)
                case ast.Assign(targets=targets):
                    own |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
                case ast.AnnAssign(target=ast.Name(id=name)):
                    own.add(name)
        if shared := own & seen:
            raise AssertionError(f"Two modules of the released check define {', '.join(sorted(shared))}.")
        seen |= own
