"""A Python file cut into named pieces, so that two versions can be compared.

The pieces are the functions, classes, methods and constants of the file by their
names, and "docstring", "imports", "main block" and "statements" (anything else at
the top level).  Comments belong to the piece that follows them.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass

from manifest import Change
from parsing import parse

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMELESS = ("docstring", "imports", "main block", "statements", "comments", "order")


@dataclass
class Piece:
    """One piece: its source and the line it begins on (from 1, comments included).

    `blanks` are the blank lines before it, or before each part of it.
    """

    name: str
    text: str
    line: int
    blanks: list[int]


def pieces(source: str) -> dict[str, Piece]:
    """The pieces of a file in their order.  SyntaxError if it is no Python."""
    tree = parse(source)
    lines = source.split("\n")
    found: dict[str, Piece] = {}
    end = 0
    for node in tree.body:
        start, end = end, node.end_lineno or node.lineno
        if isinstance(node, ast.ClassDef):
            add_class(found, node, lines, start)
        else:
            add(found, name_of(node, tree), lines, start, end)
    add(found, "comments", lines, end, len(lines))
    return found


def add(
    found: dict[str, Piece], name: str, lines: list[str], start: int, end: int
) -> None:
    """Add the lines from `start` (from 0) up to `end`; pieces of one name join."""
    blanks = -start
    while start < end and not lines[start].strip():
        start += 1
    blanks += start
    text = "\n".join(line.rstrip() for line in lines[start:end]).rstrip()
    if not text:
        return
    if name in found:
        found[name].text += "\n" + text
        found[name].blanks.append(blanks)
    else:
        found[name] = Piece(name, text, start + 1, [blanks])


def add_class(
    found: dict[str, Piece], node: ast.ClassDef, lines: list[str], start: int
) -> None:
    """A class is one piece without its methods, and each method is one."""
    for member in node.body:
        if isinstance(member, FUNCTIONS):
            first = min([member.lineno, *(d.lineno for d in member.decorator_list)]) - 1
            while lines[first - 1].strip().startswith("#"):
                first -= 1
            add(found, node.name, lines, start, first)
            start = member.end_lineno or member.lineno
            add(found, f"{node.name}.{member.name}", lines, first, start)
    add(found, node.name, lines, start, node.end_lineno or node.lineno)


def name_of(node: ast.stmt, tree: ast.Module) -> str:
    if isinstance(node, FUNCTIONS):
        return node.name
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return "imports"
    if isinstance(node, ast.Assign):
        return ", ".join(ast.unparse(target) for target in node.targets)
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return ast.unparse(node.target)
    if node is tree.body[0] and ast.get_docstring(tree) is not None:
        return "docstring"
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return "main block"
    return "statements"


def compare(file: str, old: str | None, new: str | None) -> Change | None:
    """What the step from `old` to `new` (None: no such file) does to a file."""
    if old == new:
        return None
    state = "new" if old is None else "removed" if new is None else "changed"
    if not file.endswith(".py") or new is None:
        return Change(file, state)
    after = pieces(new)
    if old is None:
        named = {name: piece for name, piece in after.items() if name not in NAMELESS}
        return Change(file, state, added=only_outermost(named, named))
    before = pieces(old)
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    common = [name for name in after if name in before]
    changed = [
        name
        for name in common
        if after[name].text != before[name].text
        or after[name].blanks != before[name].blanks
    ]
    if common != [name for name in before if name in after]:
        changed.append("order")
    return Change(
        file,
        state,
        added=only_outermost(added, added),
        changed=tuple(changed),
        removed=only_outermost(removed, removed),
    )


def only_outermost(names: Iterable[str], among: Container[str]) -> tuple[str, ...]:
    """Without the methods of classes that are among the names themselves."""
    return tuple(
        name for name in names if name.partition(".")[0] not in among or "." not in name
    )
