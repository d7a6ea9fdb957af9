"""`list` and `diff`: the lessons and the steps between them, for people."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from generated import size_in_words
from manifest import Course, Lesson
from pieces import compare
from spelling import prose
from step import contents, in_reading_order, read, step_of

COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m", "=": "\x1b[1m"}
END = "\x1b[0m"


def list_lessons(course: Course) -> Iterator[str]:
    """Number, title, idea, files and size of every lesson."""
    for lesson in course.lessons:
        if not lesson.folder.is_dir():
            continue
        files = ", ".join(change.file for change in step_of(course, lesson))
        yield f"{lesson.number:02}  {lesson.title}"
        yield prose(lesson.idea, indent=4)
        yield prose(f"{files} ({size_in_words(course, lesson)})", indent=4)


def changed_files(
    course: Course, before: Lesson, after: Lesson, with_text: bool
) -> list[str]:
    """Names of the files that differ between two lessons, in reading order."""
    old, new = contents(before.folder), contents(after.folder)
    changes = [compare(name, old.get(name), new.get(name)) for name in {*old, *new}]
    differing = [change for change in changes if change]
    names = [change.file for change in in_reading_order(after, differing)]
    return [*names, "README.md"] if with_text else names


def file_diff(before: Path, after: Path, name: str) -> list[str]:
    """A unified diff of one file in two folders; a missing file is empty."""
    old, new = (
        read(folder / name).split("\n") if (folder / name).is_file() else []
        for folder in (before, after)
    )
    return list(
        difflib.unified_diff(
            old,
            new,
            f"{before.name}/{name}",
            f"{after.name}/{name}",
            lineterm="",
        )
    )


def diff(
    course: Course, before: Lesson, after: Lesson, with_text: bool
) -> Iterator[str]:
    """The step as a diff, the files in reading order, the chapter only on demand."""
    for name in changed_files(course, before, after, with_text):
        yield from file_diff(before.folder, after.folder, name)


def coloured(line: str) -> str:
    """A line of a diff in the colours of its kind."""
    kind = "=" if line.startswith(("+++ ", "--- ")) else line[:1]
    return f"{COLOURS[kind]}{line}{END}" if kind in COLOURS else line


def shows_colour() -> bool:
    """Colour is for a person at a terminal that understands it, never for a file."""
    if not sys.stdout.isatty():
        return False
    if sys.platform == "win32":
        os.system("")  # switches a Windows console to understanding colours
    return True
