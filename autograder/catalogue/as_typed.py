"""The text of an answer as a student would type it: without docstrings, annotations, decorators and comments."""

import ast
import io
import tokenize
from textwrap import dedent


def as_typed(source: str) -> str:
    """The text of one function or class; what is left of each line stays as it is written."""
    text = dedent(source)
    encoded = text.encode()
    line_starts = [0]
    for line in encoded.splitlines(keepends=True):
        line_starts.append(line_starts[-1] + len(line))

    def start(node: ast.stmt | ast.expr | ast.arg) -> int:
        return line_starts[node.lineno - 1] + node.col_offset

    def end(node: ast.stmt | ast.expr | ast.arg) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return line_starts[node.end_lineno - 1] + node.end_col_offset

    cuts: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                if node.decorator_list:
                    cuts.append((start(node.decorator_list[0]) - len("@"), start(node)))
                if ast.get_docstring(node) is not None:
                    cuts.append((start(node.body[0]), end(node.body[0])))
                if isinstance(node, ast.FunctionDef) and node.returns is not None:
                    arrow = encoded.rindex(b"->", 0, start(node.returns))
                    cuts.append((arrow, end(node.returns)))
            case ast.arg(annotation=ast.expr() as annotation):
                cuts.append((start(node) + len(node.arg.encode()), end(annotation)))
            case ast.AnnAssign(value=None):
                cuts.append((start(node), end(node)))
            case ast.AnnAssign():
                cuts.append((end(node.target), end(node.annotation)))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begin = line_starts[token.start[0] - 1] + len(token.line[: token.start[1]].encode())
            cuts.append((begin, begin + len(token.string.encode())))
    for begin, stop in sorted(cuts, reverse=True):
        encoded = encoded[:begin] + encoded[stop:]
    lines = [line.rstrip() for line in encoded.decode().splitlines()]
    return "\n".join(filter(None, lines)).replace(" :\n", ":\n") + "\n"
