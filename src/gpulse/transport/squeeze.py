"""Leaves comments and docstrings out of a source: a third of what would travel to every node."""

import ast
import io
import tokenize


def squeeze(source: str) -> str:
    """The same program on the same lines, so that a traceback from a node points into the real file."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for text in _docstrings(ast.parse(source)):
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        lines[first] = lines[first][: text.col_offset] + '""'
        lines[first + 1 : last + 1] = [""] * (last - first)
    return "".join(line.rstrip() + "\n" for line in lines)


def without_meanings(schema: str) -> str:
    """The table of fields without units and meanings, which are for people, on the same lines."""
    lines = schema.splitlines()
    calls = [node for node in ast.walk(ast.parse(schema)) if isinstance(node, ast.Call)]
    texts = [text for call in calls if _makes_field(call) for text in (call.args[2], call.args[4])]
    # From the end, so that what stands before keeps its place; columns count bytes.
    for text in sorted(texts, key=lambda text: (text.lineno, text.col_offset), reverse=True):
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        head = lines[first].encode()[: text.col_offset].decode()
        tail = lines[last].encode()[text.end_col_offset :].decode()
        lines[first : last + 1] = [head + '""' + tail, *[""] * (last - first)]
    return "".join(line + "\n" for line in lines)


def _makes_field(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Field" and len(call.args) == 5


def _docstrings(module: ast.Module) -> list[ast.Expr]:
    owners = [module, *(node for node in ast.walk(module) if isinstance(node, ast.ClassDef | ast.FunctionDef))]
    firsts = [owner.body[0] for owner in owners if owner.body]
    return [
        first
        for first in firsts
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ]
