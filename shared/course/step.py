"""The step from one lesson to the next: its files, its changes, its size."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import tokenize
from pathlib import Path

from manifest import Change, Course, CourseError, Lesson
from pieces import compare

USUAL_LIMIT = 150  # statements that a step may add or change
LARGE_LIMIT = 350  # the same where the manifest says why
QUOTES = ('"', "'", 'r"', "r'")
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
# What running and checking a lesson leaves behind; git ignores it too.
LEFTOVERS = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
LEFTOVERS |= {".hypothesis", ".DS_Store"}


def files_of(folder: Path) -> list[str]:
    """All files of a lesson but its chapter, as relative POSIX paths, sorted.

    Links and what an editor keeps beside a file are none; `verify` refuses them.
    """
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if is_of_a_lesson(name)]
        found += [Path(place, name) for name in names if is_of_a_lesson(name)]
    regular = [path for path in found if path.is_file() and not path.is_symlink()]
    relative = (path.relative_to(folder).as_posix() for path in regular)
    return sorted(name for name in relative if name != "README.md")


def is_of_a_lesson(name: str) -> bool:
    return not is_leftover(name) and not is_of_an_editor(name)


def is_leftover(name: str) -> bool:
    is_database = name == "library.db" or name.startswith("library.db-")
    return is_database or name in LEFTOVERS or name.endswith(".pyc")


def is_of_an_editor(name: str) -> bool:
    """Whether a file is hidden, as .app.py.swp, or a copy, as app.py~."""
    return name.startswith((".", "#")) or name.endswith("~")


def read(path: Path) -> str:
    """A file as text, line ends as they are, so that nothing differs unseen."""
    return path.read_bytes().decode("utf-8", errors="surrogateescape")


def contents(folder: Path | None) -> dict[str, str]:
    """Every file of a lesson with its text; nothing for no lesson."""
    if folder is None:
        return {}
    return {name: read(folder / name) for name in files_of(folder)}


def actual_changes(before: Path | None, after: Path) -> list[Change]:
    """What the step really does, file by file.  CourseError if one is no Python."""
    old, new = contents(before), contents(after)
    changes = []
    for name in sorted({*old, *new}):
        try:
            change = compare(name, old.get(name), new.get(name))
        except SyntaxError as error:
            where = f"{after.name}/{name}:{error.lineno}"
            raise CourseError(f"{where}: {error.msg}") from error
        if change:
            changes.append(change)
    return changes


def in_reading_order(lesson: Lesson, changes: list[Change]) -> list[Change]:
    """Changes in the order of the manifest; what it does not name comes last."""
    order = {change.file: index for index, change in enumerate(lesson.changes)}
    return sorted(changes, key=lambda change: (order.get(change.file, 99), change.file))


def step_of(course: Course, lesson: Lesson) -> list[Change]:
    """What the lesson really changes, in reading order."""
    before = course.before(lesson)
    changes = actual_changes(before.folder if before else None, lesson.folder)
    return in_reading_order(lesson, changes)


def statements(source: str) -> list[str]:
    """The statements of a Python file, one line each, without what only dresses them.

    A statement that is wrapped over five lines counts once. Blank lines, comments,
    docstrings and imports count nothing: they make a step no harder to follow.
    """
    found: list[str] = []
    words: list[str] = []
    with contextlib.suppress(SyntaxError, tokenize.TokenError):  # told elsewhere
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NEWLINE:
                is_text_only = all(word.startswith(QUOTES) for word in words)
                if not is_text_only and words[0] not in ("import", "from"):
                    found.append(" ".join(words))
                words = []
            elif token.type not in LAYOUT:
                words.append(token.string)
    return found


def size(before: Path | None, after: Path) -> tuple[int, int]:
    """Added and removed statements of a step; a changed one counts as both."""
    old, new = contents(before), contents(after)
    added = removed = 0
    for name in sorted({*old, *new}):
        if name.endswith(".py"):
            a, b = statements(old.get(name, "")), statements(new.get(name, ""))
            matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
            for tag, a1, a2, b1, b2 in matcher.get_opcodes():
                if tag != "equal":
                    added += b2 - b1
                    removed += a2 - a1
    return added, removed


def changed_lines(before: Path | None, after: Path) -> tuple[int, int]:
    """Added and removed lines of a step as `diff` shows them: for information."""
    old, new = contents(before), contents(after)
    added = removed = 0
    for name in sorted({*old, *new}):
        if name.endswith(".py"):
            a, b = old.get(name, "").split("\n"), new.get(name, "").split("\n")
            lines = list(difflib.unified_diff(a, b, lineterm="", n=0))[2:]
            added += sum(line[0] == "+" and bool(line[1:].strip()) for line in lines)
            removed += sum(line[0] == "-" and bool(line[1:].strip()) for line in lines)
    return added, removed


def declaration(changes: list[Change]) -> str:
    """The tables of the manifest that declare these changes."""
    lines = []
    for change in changes:
        lines += ["", f'[lesson.files."{change.file}"]', f'state = "{change.state}"']
        for key in ("added", "changed", "removed"):
            names = getattr(change, key)
            if names:
                lines += toml_list(key, names)
    return "\n".join(lines[1:]) + "\n" if lines else ""


def toml_list(key: str, names: tuple[str, ...]) -> list[str]:
    quoted = [f'"{name}"' for name in names]
    line = f"{key} = [{', '.join(quoted)}]"
    if len(line) <= 88:
        return [line]
    return [f"{key} = [", *(f"    {name}," for name in quoted), "]"]
