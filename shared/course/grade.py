"""`grade`: `check` for the folders of a whole class, safely apart.

Every submission is copied to a folder of its own and checked there by a process of
its own with a limit of time and memory and without network (guard/sitecustomize.py).
A broken one gets its points, mostly none, and never stops the others.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import os
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import check
import testing
from exercises import find_function, is_empty, reference
from manifest import Course, CourseError, Lesson
from parsing import parse
from step import files_of, is_of_a_lesson

MEMORY = 2 * 1024**3  # bytes of address space for one submission
GUARD = Path(__file__).resolve().parent / "guard"
UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
SIZE_LIMIT = 20 * 1024**2  # bytes of one file that is copied from a submission


@dataclass
class Grade:
    """What one submission got: verdicts, or a `note` why there are none."""

    name: str
    folder: Path | None
    verdicts: list[check.Verdict] = field(default_factory=list)
    note: str = ""

    @property
    def points(self) -> float:
        return sum(verdict.points for verdict in self.verdicts)


def submissions(lesson: Lesson, folders: list[Path]) -> dict[str, Path | None]:
    """Every submission's name and the folder with its files, None without any.

    A folder that has the lesson's files is a submission; otherwise each folder in it
    is one, and its files may lie deeper.
    """
    found: dict[str, Path | None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise CourseError(f"there is no folder {folder}")
        if has_files(lesson, folder):
            found[unused_name(found, folder.resolve())] = folder
            continue
        children = sorted(each for each in folder.iterdir() if is_submission(each))
        if not children:
            found[unused_name(found, folder.resolve())] = None
        for child in children:
            found[unused_name(found, child)] = shallowest(lesson, child)
    return found


def is_submission(path: Path) -> bool:
    hidden = path.name.startswith((".", "__"))
    return path.is_dir() and not hidden and not path.is_symlink()


def unused_name(found: dict[str, Path | None], folder: Path) -> str:
    """The name of a folder as it can be printed, with a number if it is taken."""
    name = printable(folder.name)
    number, unused = 1, name
    while unused in found:
        number += 1
        unused = f"{name} ({number})"
    return unused


def printable(text: str) -> str:
    """A text with line ends, escape sequences and what is no UTF-8 spelt out."""
    return "".join(
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else ascii(each)[1:-1]
        for each in text
    )


def has_files(lesson: Lesson, folder: Path) -> bool:
    files = {exercise.file for exercise in lesson.exercises if exercise.is_emptied}
    return any((folder / file).is_file() for file in files)


def shallowest(lesson: Lesson, folder: Path) -> Path | None:
    """The folder nearest to the top that has a file of an exercise."""
    level = [folder]
    while level:
        for each in level:
            if has_files(lesson, each):
                return each
        level = [
            child
            for each in level
            for child in sorted(each.iterdir())
            if is_submission(child)
        ]
    return None


def grade(course: Course, lesson: Lesson, folders: list[Path]) -> list[Grade]:
    """Check all submissions, a few at a time; progress goes to stderr."""
    found = submissions(lesson, folders)
    testing.prepare(course.root)
    grades: dict[str, Grade] = {}
    workers = max(1, (os.cpu_count() or 2) - 1)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        jobs = {
            pool.submit(graded, course, lesson, name, folder): name
            for name, folder in found.items()
        }
        for job in as_completed(jobs):
            grades[jobs[job]] = job.result()
            done = f"{len(grades)}/{len(found)}"
            print(f"{done}  {jobs[job]}", file=sys.stderr, flush=True)
    return [grades[name] for name in found]


def graded(course: Course, lesson: Lesson, name: str, folder: Path | None) -> Grade:
    """One submission; whatever happens becomes its note."""
    if folder is None:
        return Grade(name, None, note="no file of this lesson found")
    try:
        with tempfile.TemporaryDirectory(
            prefix="grade-", ignore_cleanup_errors=True
        ) as place:
            copy = Path(place).resolve() / "submission"
            copied(lesson, folder, copy)
            env = {
                "PYTHONPATH": str(GUARD),
                "COURSE_GUARD": str(Path(place).resolve()),
                "COURSE_MEMORY": str(MEMORY),
                "TMPDIR": place,
                "TEMP": place,
                "TMP": place,
            }
            return Grade(name, folder, check.check(course, lesson, copy, env))
    except (CourseError, *UNREADABLE) as error:
        return Grade(name, folder, note=f"could not be checked: {error}")


def copied(lesson: Lesson, folder: Path, copy: Path) -> None:
    """The lesson with the submission's Python files over it.

    What a student left out is there then, and nothing else of the folder counts.  A
    file with an exercise is the student's or is missing, never the lesson's own.
    """
    asked = {exercise.file for exercise in lesson.exercises if exercise.is_emptied}
    given = {name: lesson.folder / name for name in files_of(lesson.folder)}
    sources = {name: path for name, path in given.items() if name not in asked}
    for path in folder.rglob("*.py"):
        if is_ordinary(path):
            sources[path.relative_to(folder).as_posix()] = path
    copy.mkdir()
    for name, path in sources.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy / name)


def is_ordinary(path: Path) -> bool:
    """Whether a file of a submission counts: no link, not hidden, not too large."""
    is_own = path.is_file() and not path.is_symlink() and is_of_a_lesson(path.name)
    return is_own and path.stat().st_size <= SIZE_LIMIT


def fingerprint(lesson: Lesson, folder: Path) -> str:
    """The same for submissions that differ in layout and comments only.

    "" where nothing was done, or where it is the reference itself.
    """
    own, original = [], []
    for exercise in lesson.exercises:
        if not exercise.is_emptied:
            continue
        theirs = find_function(
            parse(reference(lesson, exercise.file)), exercise.function
        )
        original.append(plain(theirs))
        path, mine = folder / exercise.file, None
        if is_ordinary(path):
            with contextlib.suppress(*UNREADABLE):
                mine = find_function(check.parsed(path), exercise.function)
        own.append("" if mine is None or is_empty(mine) else plain(mine))
    if not any(own) or own == original:
        return ""
    return hashlib.sha256("\n".join(own).encode()).hexdigest()


def plain(node: ast.AST | None) -> str:
    """A function's syntax without its docstring."""
    if node is None:
        return ""
    body = getattr(node, "body", [])
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
    ):
        body = body[1:]
    return "\n".join(ast.dump(each) for each in body)


def identical(lesson: Lesson, grades: list[Grade]) -> list[list[str]]:
    """Names of submissions that have the same solutions."""
    groups: dict[str, list[str]] = {}
    for each in grades:
        if each.folder is not None:
            mark = fingerprint(lesson, each.folder)
            if mark:
                groups.setdefault(mark, []).append(each.name)
    return [names for names in groups.values() if len(names) > 1]


def table(lesson: Lesson, grades: list[Grade]) -> Iterator[str]:
    """A table for a person: points per exercise, from 0 to 1."""
    tasks = [exercise.name for exercise in lesson.exercises if exercise.is_emptied]
    width = max([columns(each.name) for each in grades] + [len("folder")])
    heads = [f"{task:>{max(5, len(task))}}" for task in tasks]
    yield f"{'folder':<{width}}  {'  '.join(heads)}  total"
    for each in grades:
        points = points_of(tasks, each)
        cells = [f"{p:>{len(head)}.2f}" for p, head in zip(points, heads, strict=True)]
        note = f"  {note_of(each)}" if note_of(each) else ""
        name = each.name + " " * (width - columns(each.name))
        yield f"{name}  {'  '.join(cells)}  {each.points:>5.2f}{note}"
    for names in identical(lesson, grades):
        yield f"the same solutions: {', '.join(names)}"


def columns(text: str) -> int:
    """How wide a text is on a terminal: a Chinese character takes two columns."""
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def points_of(tasks: list[str], each: Grade) -> list[float]:
    points = {verdict.exercise.name: verdict.points for verdict in each.verdicts}
    return [points.get(task, 0.0) for task in tasks]


def note_of(each: Grade) -> str:
    """The first thing that kept a submission from being tested."""
    problems = [verdict.problem for verdict in each.verdicts if verdict.problem]
    return printable(each.note or (problems[0].split("\n    ")[0] if problems else ""))


def write_csv(path: Path, lesson: Lesson, grades: list[Grade]) -> None:
    """One row per submission; with a byte-order mark, so that Excel reads UTF-8."""
    tasks = [exercise.name for exercise in lesson.exercises if exercise.is_emptied]
    same = {
        name: ", ".join(other for other in names if other != name)
        for names in identical(lesson, grades)
        for name in names
    }
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["folder", *tasks, "total", "note", "same as"])
        for each in grades:
            points = [f"{p:.2f}" for p in points_of(tasks, each)]
            writer.writerow(
                [
                    harmless(each.name),
                    *points,
                    f"{each.points:.2f}",
                    harmless(note_of(each)),
                    harmless(same.get(each.name, "")),
                ]
            )


def harmless(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
