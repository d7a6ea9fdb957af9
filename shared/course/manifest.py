"""The manifest shared/course.toml, read and checked for shape.

What the keys mean is said at the top of that file.  Whether they are TRUE of the
lessons is for `verify` (checks.py).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = Path("shared", "course.toml")
STATES = ("new", "changed", "removed")
KINDS = ("complete", "change", "judge")


class CourseError(Exception):
    """Something that a person can mend; the message says how."""


@dataclass(frozen=True)
class Change:
    """What a lesson does to one file: names of functions, classes, constants."""

    file: str
    state: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hint:
    title: str
    text: str


@dataclass(frozen=True)
class Wrong:
    """A typical wrong answer: `old` in the function becomes `new`."""

    name: str
    old: str
    new: str
    says: str


@dataclass(frozen=True)
class Exercise:
    lesson: int
    name: str
    kind: str
    task: str
    file: str = ""
    function: str = ""
    why: str = ""
    hints: tuple[Hint, ...] = ()
    wrong: tuple[Wrong, ...] = ()

    @property
    def is_emptied(self) -> bool:
        """Whether `start` empties a function for it."""
        return self.kind != "judge"


@dataclass(frozen=True)
class Lesson:
    number: int
    title: str
    idea: str
    minutes: int
    visible: bool
    folder: Path
    why_large: str = ""
    brings: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    exercises: tuple[Exercise, ...] = ()

    @property
    def name(self) -> str:
        return folder_name(self.number)

    @property
    def chapter(self) -> Path:
        return self.folder / "README.md"

    def exercise(self, name: str) -> Exercise:
        """The exercise of that name; CourseError names those that exist."""
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        names = ", ".join(exercise.name for exercise in self.exercises) or "none"
        if not name:
            raise CourseError(f"which exercise? Lesson {self.number:02} has: {names}")
        raise CourseError(
            f"lesson {self.number:02} has no exercise {name!r}; it has: {names}"
        )


@dataclass(frozen=True)
class Course:
    root: Path
    title: str
    corpus: str
    parts: tuple[str, ...]
    large: tuple[int, ...]
    api: tuple[str, ...]
    lessons: tuple[Lesson, ...]

    def lesson(self, number: int) -> Lesson:
        """The lesson of that number; CourseError names the range."""
        for lesson in self.lessons:
            if lesson.number == number:
                return lesson
        numbers = [lesson.number for lesson in self.lessons]
        raise CourseError(
            f"there is no lesson {number:02}; the course has "
            f"{min(numbers):02} to {max(numbers):02}"
        )

    def before(self, lesson: Lesson) -> Lesson | None:
        """The lesson before this one, None for the first."""
        index = self.lessons.index(lesson)
        return self.lessons[index - 1] if index else None

    def after(self, lesson: Lesson) -> Lesson | None:
        """The lesson after this one, None for the last."""
        index = self.lessons.index(lesson) + 1
        return self.lessons[index] if index < len(self.lessons) else None


def folder_name(number: int) -> str:
    return f"lesson-{number:02}"


def find_root(start: Path) -> Path:
    """The course that `start` lies in: the folder with shared/course.toml."""
    for folder in (start, *start.parents):
        if (folder / MANIFEST).is_file():
            return folder
    raise CourseError(f"no {MANIFEST.as_posix()} in {start} or above it")


def load_course(root: Path) -> Course:
    """Read the manifest; CourseError lists everything that is wrong with its shape."""
    try:
        text = (root / MANIFEST).read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CourseError(f"{MANIFEST.as_posix()}: {error}") from error
    faults: list[str] = []
    table = Table(data, "", faults)
    head = table.table("course")
    course = Course(
        root=root,
        title=head.text("title"),
        corpus=head.text("corpus", "shared/corpus"),
        parts=head.names("parts"),
        large=tuple(head.numbers("large")),
        api=head.names("api"),
        lessons=tuple(read_lesson(root, each) for each in table.tables("lesson")),
    )
    head.done()
    table.done()
    for expected, lesson in enumerate(course.lessons, start=1):
        if lesson.number != expected:
            faults.append(f"lesson {lesson.number} stands where {expected} belongs")
    if not course.lessons:
        faults.append("there is no [[lesson]]")
    if faults:
        raise CourseError(
            "\n".join(f"{MANIFEST.as_posix()}: {fault}" for fault in faults)
        )
    return course


def read_lesson(root: Path, table: Table) -> Lesson:
    number = table.number("number")
    table.where = f"lesson {number}"
    lesson = Lesson(
        number=number,
        title=table.text("title"),
        idea=table.text("idea"),
        minutes=table.number("minutes"),
        visible=table.flag("visible", True),
        why_large=table.text("why_large", ""),
        folder=root / folder_name(number),
        brings=table.names("brings"),
        changes=tuple(read_changes(table.table("files", {}))),
        exercises=tuple(read_exercise(number, t) for t in table.tables("exercise")),
    )
    names = [exercise.name for exercise in lesson.exercises]
    for name in sorted({name for name in names if names.count(name) > 1}):
        table.fault(f"two exercises are called {name!r}")
    table.done()
    return lesson


def read_changes(files: Table) -> Iterator[Change]:
    for name in list(files.rest):
        table = files.table(name)
        state = table.choice("state", STATES)
        yield Change(
            name,
            state,
            table.names("added"),
            table.names("changed"),
            table.names("removed"),
        )
        table.done()


def read_exercise(number: int, table: Table) -> Exercise:
    name = table.text("name")
    table.where = f"lesson {number}, exercise {name!r}"
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        table.fault("the name must be one word, as it is typed after `hint`")
    kind = table.choice("kind", KINDS)
    where_required = None if kind != "judge" else ""
    exercise = Exercise(
        lesson=number,
        name=name,
        kind=kind,
        task=table.text("task"),
        file=table.text("file", where_required),
        function=table.text("function", where_required),
        why=table.text("why", ""),
        hints=tuple(
            Hint(hint.text("title"), hint.text("text"))
            for hint in table.finished_tables("hint", ("title", "text"))
        ),
        wrong=tuple(
            Wrong(*(wrong.text(key) for key in ("name", "old", "new", "says")))
            for wrong in table.finished_tables("wrong", ("name", "old", "new", "says"))
        ),
    )
    table.done()
    return exercise


class Table:
    """A TOML table that is read key by key and collects what is wrong with it."""

    def __init__(self, data: dict, where: str, faults: list[str]):
        self.rest = dict(data)
        self.where = where
        self.faults = faults

    def fault(self, text: str) -> None:
        self.faults.append(f"{self.where}: {text}" if self.where else text)

    def take(self, key: str, kind: type, default: Any) -> Any:
        """The value of a key; without a default the key must be there."""
        value = self.rest.pop(key, default)
        if value is None:
            self.fault(f"{key} is missing")
            return kind()
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fault(f"{key} must be of the type {kind.__name__}")
            return kind()
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return self.take(key, str, default)

    def number(self, key: str) -> int:
        return self.take(key, int, None)

    def flag(self, key: str, default: bool) -> bool:
        return self.take(key, bool, default)

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in choices:
            self.fault(f"{key} must be one of {', '.join(choices)}, not {value!r}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            self.fault(f"{key} must be a list of strings")
            return ()
        return tuple(values)

    def numbers(self, key: str) -> list[int]:
        return [value for value in self.take(key, list, []) if isinstance(value, int)]

    def table(self, key: str, default: dict | None = None) -> Table:
        return Table(self.take(key, dict, default), self.inside(key), self.faults)

    def tables(self, key: str) -> list[Table]:
        values = self.take(key, list, [])
        return [
            Table(
                value if isinstance(value, dict) else {}, self.inside(key), self.faults
            )
            for value in values
        ]

    def finished_tables(self, key: str, keys: tuple[str, ...]) -> list[Table]:
        """Like `tables`, for tables that have exactly these keys."""
        tables = self.tables(key)
        for table in tables:
            for unknown in [name for name in table.rest if name not in keys]:
                table.fault(f"unknown key {unknown!r}")
        return tables

    def inside(self, key: str) -> str:
        return f"{self.where}, {key}" if self.where else key

    def done(self) -> None:
        """Every key that nobody asked for is a fault: it may be misspelt."""
        for key in self.rest:
            self.fault(f"unknown key {key!r}")
