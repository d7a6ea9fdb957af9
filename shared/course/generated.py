"""The regions of the texts that are made from the manifest and the lessons.

<!-- generated: lessons -->    the table of lessons (root README)
<!-- generated: where -->      time, chapter before, chapter after
<!-- generated: changes -->    what changes in this step, and its size
<!-- generated: times -->      reading times and exercises (shared/TEACHING.md)
<!-- end of generated -->      closes each of them
"""

from __future__ import annotations

from collections.abc import Callable

from manifest import Change, Course, CourseError, Lesson
from step import size, step_of


def region(course: Course, lesson: Lesson | None, name: str) -> list[str]:
    """The lines that belong into a region; CourseError for an unknown name."""
    if name in COURSE_REGIONS:
        return COURSE_REGIONS[name](course)
    if name not in CHAPTER_REGIONS:
        known = ", ".join([*COURSE_REGIONS, *CHAPTER_REGIONS])
        raise CourseError(f"there is no generated block {name!r}; there are: {known}")
    if lesson is None:
        raise CourseError(f"the generated block {name!r} belongs into a chapter")
    return CHAPTER_REGIONS[name](course, lesson)


def lessons(course: Course) -> list[str]:
    lines = ["| lesson | the idea | time | step |", "|---|---|---|---|"]
    for lesson in course.lessons:
        if not lesson.folder.is_dir():
            continue
        title = f"[{lesson.number:02} {lesson.title}]({lesson.name}/README.md)"
        lines.append(
            f"| {title} | {lesson.idea} | {lesson.minutes} min "
            f"| {size_in_words(course, lesson)} |"
        )
    return lines


def times(course: Course) -> list[str]:
    lines = ["| lesson | reading | exercises |", "|---|---|---|"]
    for lesson in course.lessons:
        if lesson.folder.is_dir():
            tasks = [f"{each.name} ({each.kind})" for each in lesson.exercises]
            lines.append(
                f"| {lesson.number:02} {lesson.title} | {lesson.minutes} min "
                f"| {', '.join(tasks) or 'none yet'} |"
            )
    return lines


def where(course: Course, lesson: Lesson) -> list[str]:
    last = max(each.number for each in course.lessons if each.folder.is_dir())
    words = [f"Lesson {lesson.number} of {last}", f"about {lesson.minutes} minutes"]
    before, after = course.before(lesson), course.after(lesson)
    if before:
        words.append(f"before this: {link(before)}")
    else:
        words.append("before this: [the course](../README.md)")
    if after and after.folder.is_dir():
        words.append(f"after this: {link(after)}")
    return [" · ".join(words)]


def link(lesson: Lesson) -> str:
    return f"[{lesson.number:02} {lesson.title}](../{lesson.name}/README.md)"


def changes(course: Course, lesson: Lesson) -> list[str]:
    lines = ["| file | what changes |", "|---|---|"]
    for change in step_of(course, lesson):
        lines.append(f"| `{change.file}` | {in_words(change)} |")
    before = course.before(lesson)
    lines += ["", f"Size of the step: {size_in_words(course, lesson)}."]
    if before:
        command = f"python3 shared/course diff {before.number:02} {lesson.number:02}"
        lines.append(f"The whole step: `{command}`.")
    return lines


def in_words(change: Change) -> str:
    words = []
    for verb, names in (
        ("new", change.added),
        ("changed", change.changed),
        ("gone", change.removed),
    ):
        if names:
            words.append(f"{verb}: {', '.join(map(in_code, names))}")
    said = "; ".join(words) or change.state
    return f"a new file; {said}" if change.state == "new" and words else said


def in_code(name: str) -> str:
    """A name of the program as code; "imports" and "main block" are plain words."""
    is_plain = name in ("imports", "statements", "comments", "order") or " " in name
    return name if is_plain or name == "docstring" else f"`{name}`"


def size_in_words(course: Course, lesson: Lesson) -> str:
    before = course.before(lesson)
    added, removed = size(before.folder if before else None, lesson.folder)
    if not removed:
        return f"{added} statements"
    return f"+{added} −{removed} statements"


COURSE_REGIONS: dict[str, Callable[[Course], list[str]]] = {
    "lessons": lessons,
    "times": times,
}
CHAPTER_REGIONS: dict[str, Callable[[Course, Lesson], list[str]]] = {
    "where": where,
    "changes": changes,
}
