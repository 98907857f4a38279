"""The check as students get it: one file, of the modules that it consists of."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
FIRST = _PACKAGE / "handout" / "check.py"
ONLY_FOR = {"cost": {_PACKAGE / "sandbox" / "inside" / "cost.py", _PACKAGE / "compare" / "costs.py"}}
"""By what an example looks at, the modules that no other example needs."""


def released_check(aspects: Collection[str] = ONLY_FOR) -> str:
    """The modules one below the other, under the imports of all of them; what they import of each other is there.

    aspects: what the unit's examples look at.
    """
    return _joined(FIRST, frozenset(path for aspect in ONLY_FOR.keys() - set(aspects) for path in ONLY_FOR[aspect]))


_parsed = cache(ast.parse)
"""Each module is looked at several times; nobody changes what comes of it."""


@cache  # most units have the same
def _joined(last: Path, idle: frozenset[Path]) -> str:
    *others, first = [path for path in _in_order(last, []) if path not in idle]
    paths = [first, *others]  # it needs nothing of theirs until it is called
    modules = [_Module(path, path.read_text()) for path in paths]
    docstring = ast.get_docstring(_parsed(modules[0].text), clean=False)
    imports = _together({line for module in modules for line in module.imports()})
    bodies = _apart(modules)
    code = "\n".join(imports) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"
    return f'"""{docstring}"""\n\n{_narrow(_without_names_of_types(_uncommented(_untyped(code))))}'


def _untyped(code: str) -> str:
    """Without the types of arguments, results and variables, where these fit a line; a field has the shortest one."""
    lines = [line.encode() for line in code.splitlines()]
    tree = ast.parse(code)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    cuts, fields = set[tuple[int, int, int]](), set[tuple[int, int, int]]()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as kind) if kind.end_lineno == node.lineno:
                cuts.add((node.lineno, node.col_offset + len(name.encode()), kind.end_col_offset or 0))
            case ast.FunctionDef(returns=ast.expr() as kind) if kind.end_lineno == kind.lineno:
                start = lines[kind.lineno - 1].rfind(b" ->", 0, kind.col_offset)
                cuts.add((kind.lineno, start, kind.end_col_offset or 0))
            case ast.Call(func=ast.Subscript(value=ast.Name("list" | "dict" | "set") as kind) as made):
                cuts.add((made.lineno, kind.end_col_offset or 0, made.end_col_offset or 0))
    for part in (part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body):
        match part:  # that it has a type says that it is a field; which one it is says nothing
            case ast.AnnAssign(annotation=kind) if kind.end_lineno == part.lineno:
                fields.add((part.lineno, kind.col_offset, kind.end_col_offset or 0))
    for node in chain(tree.body, *map(ast.walk, functions)):
        match node:
            case ast.AnnAssign(target=ast.Name() as target, annotation=kind, value=ast.expr()):
                if kind.end_lineno == target.lineno:
                    cuts.add((target.lineno, target.end_col_offset or 0, kind.end_col_offset or 0))
    for line, start, end in sorted(cuts | fields, reverse=True):
        put = b"any" if (line, start, end) in fields else b""
        lines[line - 1] = lines[line - 1][:start] + put + lines[line - 1][end:]
    return "\n".join(line.decode() for line in lines) + "\n"


def _without_names_of_types(code: str) -> str:
    """Without the names, and what is imported, that only types needed."""
    tree = ast.parse(code)
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    lines = code.splitlines()
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=module, names=names):
                used = [ast.unparse(one) for one in names if (one.asname or one.name) in loaded]
                lines[node.lineno - 1] = f"from {module} import {', '.join(used)}" if used else ""
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.Call()) if name not in loaded:
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return "\n".join(lines) + "\n"


def _uncommented(code: str) -> str:
    """Without what stands behind a `#`; the lines stay as many."""
    lines = code.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            line, start = token.start
            lines[line - 1] = lines[line - 1][:start].rstrip()
    return "\n".join(lines) + "\n"


def _narrow(code: str) -> str:
    """Indented by one space for each four, without empty lines: a unit's folder is to stay small."""
    texts = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant | ast.JoinedStr))
    in_texts = {line for node in texts for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}
    kept = list[str]()
    for at, line in enumerate(code.splitlines(), start=1):
        text = line.lstrip(" ")
        if at in in_texts:
            kept.append(line)
        elif text:
            begins = [""] if line.startswith(("def ", "class ", "@")) and not kept[-1].startswith("@") else []
            kept += [*begins, " " * ((len(line) - len(text)) // 4) + text]
    return "\n".join(kept) + "\n"


def _in_order(path: Path, found: list[Path]) -> list[Path]:
    """What a module imports of this package, and that of, each after what it imports itself."""
    for node in _parsed(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            whole = [place / f"{one.name}.py" for one in node.names if place.is_dir()]
            for other in whole or [place.with_suffix(".py")]:
                if other not in found:
                    _in_order(other, found)
    found.append(path)
    return found


@dataclass(frozen=True)
class _Module:
    path: Path
    text: str

    def imports(self) -> list[str]:
        """Those from outside."""
        nodes = [node for node in _parsed(self.text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        whole = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import)]
        each = [
            f"from {node.module} import {ast.unparse(name)}"
            for node in nodes
            if isinstance(node, ast.ImportFrom) and not node.level
            for name in node.names
        ]
        return whole + each + ["import types"] * bool(self.whole())

    def body(self) -> str:
        """What stands below the docstring and the imports."""
        docstring, *others = _parsed(self.text).body
        imports = [node for node in others if isinstance(node, ast.Import | ast.ImportFrom)]
        last = max(node.end_lineno or 0 for node in [docstring, *imports])
        lines = self.text.splitlines()
        left_out = set() if self.path == FIRST else _of_docstrings(self.text)
        return "\n".join(line for at, line in enumerate(lines, start=1) if at > last and at not in left_out).strip("\n")

    def whole(self) -> set[str]:
        """The modules that it imports whole."""
        nodes = [node for node in _parsed(self.text).body if isinstance(node, ast.ImportFrom) and node.level]
        return {name.name for node in nodes for name in node.names if not node.module}


def _of_docstrings(text: str) -> set[int]:
    """The lines of docstrings: students read those of what they call, and a unit's folder is to stay small."""
    return {
        line
        for node in ast.walk(_parsed(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and len(node.body) > 1
        for one in node.body
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
        for line in range(one.lineno, (one.end_lineno or 0) + 1)
    }


def _together(imports: Iterable[str]) -> list[str]:
    """Import statements, of which those from one module are one."""
    whole = sorted(line for line in imports if line.startswith("import"))
    names = dict[str, list[str]]()
    for line in sorted(line for line in imports if line.startswith("from")):
        module, _, name = line.partition(" import ")
        names.setdefault(module, []).append(name)
    return whole + [f"{module} import {', '.join(its)}" for module, its in names.items()]


def _apart(modules: list[_Module]) -> list[str]:
    """The bodies. A name that a module keeps to itself gets the module's own beside it where another has it too.

    A module that another imports whole is followed by what stands for it.
    """
    seen, bodies = set[str](), list[str]()
    whole = {name for module in modules for name in module.whole()}
    for module in modules:
        body = module.body()
        own = _defined(body)
        for name in sorted(own & seen):
            if not name.startswith("_"):
                raise AssertionError(f"Two modules of the released check define {name}.")
            body = re.sub(rf"(?<![\w.]){name}\b", f"{name}_in_{module.path.stem}", body)
        if module.path.stem in whole:
            names = ", ".join(f"{name}={name}" for name in sorted(own) if not name.startswith("_"))
            body += f"\n\n\n{module.path.stem} = types.SimpleNamespace({names})"
        seen |= own
        bodies.append(body)
    return bodies


def _defined(body: str) -> set[str]:
    own = set[str]()
    for node in ast.parse(body).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Assign(targets=targets):
                own |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                own.add(name)
    return own
