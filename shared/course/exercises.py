"""`start`, `reset`, `hint`, `solution`: exercises made from the reference.

The empty version of a lesson is made from the lesson itself by its syntax tree, so
it cannot go stale.  Learners edit work/lesson-NN and nothing else.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from manifest import Course, CourseError, Exercise, Lesson, Wrong
from parsing import parse
from pieces import pieces
from spelling import prose
from step import files_of

WORK = "work"
PROGRESS = ".hints-shown.json"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def work_folder(course: Course, lesson: Lesson) -> Path:
    return work_place(course) / lesson.name


def work_place(course: Course) -> Path:
    """The folder of all learner's copies; CourseError where a file has its name."""
    place = course.root / WORK
    if place.exists() and not place.is_dir():
        raise CourseError(f"{WORK} is no folder: move it away or give it another name")
    return place


def find_function(tree: ast.Module, name: str) -> Function | None:
    """A function, or a method by its class ("Snapshot.search"), None if missing."""
    body: list[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for part in name.split("."):
        matching = [node for node in body if getattr(node, "name", None) == part]
        if not matching:
            return None
        found = matching[-1]
        body = getattr(found, "body", [])
    return found if isinstance(found, Function) else None


def lines_of(node: Function) -> tuple[int, int]:
    """First line (from 0, decorators included) and the line after the last."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
    return first, node.end_lineno or node.lineno


def emptied(source: str, name: str) -> str:
    """The source with one function emptied: signature and docstring stay."""
    tree = parse(source)
    node = find_function(tree, name)
    if node is None:
        raise CourseError(f"there is no function {name!r}")
    lines = source.split("\n")
    _, end = lines_of(node)
    has_docstring = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if has_docstring else node.body
    indent = " " * (node.col_offset + 4)
    if has_docstring:
        start = node.body[0].end_lineno or node.body[0].lineno
    elif head := lines[body[0].lineno - 1][: body[0].col_offset].rstrip():
        start = body[0].lineno  # the body stands behind the colon
        lines[start - 1] = head
    else:
        start = body[0].lineno - 1
        while lines[start - 1].strip().startswith("#"):
            start -= 1
    last_name = name.rpartition(".")[2]
    lines[start:end] = [f'{indent}raise NotImplementedError("{last_name}")']
    return "\n".join(lines)


def with_wrong_answer(source: str, exercise: Exercise, wrong: Wrong) -> str:
    """The source with a typical wrong answer in place of the right one."""
    node = find_function(parse(source), exercise.function)
    if node is None:
        raise CourseError(f"there is no function {exercise.function!r}")
    lines = source.split("\n")
    first, end = lines_of(node)
    function = "\n".join(lines[first:end])
    if function.count(wrong.old) != 1:
        raise CourseError(
            f"the text to replace for {wrong.name!r} stands "
            f"{function.count(wrong.old)} times in {exercise.function}"
        )
    changed = function.replace(wrong.old, wrong.new)
    return "\n".join([*lines[:first], changed, *lines[end:]])


def is_empty(node: Function) -> bool:
    """Whether a function is as `start` leaves it."""
    last = node.body[-1]
    return (
        len(node.body) <= 2
        and isinstance(last, ast.Raise)
        and last.exc is not None
        and "NotImplementedError" in ast.unparse(last.exc)
    )


def emptied_files(lesson: Lesson) -> dict[str, str]:
    """The files of a lesson that have exercises, with these emptied."""
    found: dict[str, str] = {}
    for exercise in lesson.exercises:
        if exercise.is_emptied:
            file = exercise.file
            source = found.get(file) or reference(lesson, file)
            found[file] = emptied(source, exercise.function)
    return found


def reference(lesson: Lesson, file: str) -> str:
    return (lesson.folder / file).read_text(encoding="utf-8")


def start(course: Course, lesson: Lesson, keep: bool) -> Iterator[str]:
    """Make the learner's folder; yields what to tell."""
    target = work_folder(course, lesson)
    shown = f"{WORK}/{lesson.name}"
    if target.exists():
        raise CourseError(
            f"{shown} exists already, with your work in it. Go on there, or begin anew "
            f"with: python3 shared/course reset {lesson.number:02}"
        )
    kept = kept_solutions(course, lesson) if keep else {}
    empty = emptied_files(lesson)
    target.mkdir(parents=True)
    for name in files_of(lesson.folder):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name in empty:
            place.write_text(empty[name], encoding="utf-8", newline="\n")
        else:
            shutil.copyfile(lesson.folder / name, place)
    yield f"{shown} is yours: edit the files there, and only there."
    yield ""
    yield from tasks(lesson, shown)
    yield from carry(kept, target)
    yield ""
    yield f"See what works already:  python3 shared/course check {lesson.number:02}"


def tasks(lesson: Lesson, shown: str) -> Iterator[str]:
    for index, exercise in enumerate(lesson.exercises, start=1):
        where = f"{shown}/{exercise.file}" if exercise.file else "in words"
        yield f"{lesson.number}.{index} {exercise.name} ({where})"
        yield prose(exercise.task, indent=4)


def kept_solutions(course: Course, lesson: Lesson) -> dict[tuple[str, str], Path]:
    """File and function of earlier exercises, with the learner's file that solves it.

    Only functions that the later lesson has unchanged and does not ask for itself.
    """
    own = {(exercise.file, exercise.function) for exercise in lesson.exercises}
    found: dict[tuple[str, str], Path] = {}
    for earlier in course.lessons:
        if earlier.number >= lesson.number:
            break
        for exercise in earlier.exercises:
            key = (exercise.file, exercise.function)
            path = work_folder(course, earlier) / exercise.file
            wanted = exercise.is_emptied and key not in own and path.is_file()
            if wanted and same_reference(earlier, lesson, exercise):
                found[key] = path
    return found


def same_reference(one: Lesson, other: Lesson, exercise: Exercise) -> bool:
    if not (other.folder / exercise.file).is_file():
        return False
    sources = (reference(lesson, exercise.file) for lesson in (one, other))
    texts = [pieces(source).get(exercise.function) for source in sources]
    return bool(texts[0] and texts[1] and texts[0].text == texts[1].text)


def carry(kept: dict[tuple[str, str], Path], target: Path) -> Iterator[str]:
    """Put the learner's own functions into the new folder; yields what happened."""
    for (file, function), path in kept.items():
        where = f"{path.parent.name}/{file}"
        try:
            mine = path.read_text(encoding="utf-8")
            node = find_function(parse(mine), function)
        except (SyntaxError, ValueError):
            yield f"not kept: {function}, since Python cannot read your {where}"
            continue
        if node is None or is_empty(node):
            continue
        place = target / file
        theirs = place.read_text(encoding="utf-8")
        place.write_text(
            transplanted(mine, theirs, function), encoding="utf-8", newline="\n"
        )
        yield f"kept: your own {function} from {where}"


def transplanted(mine: str, theirs: str, function: str) -> str:
    """Their file with my function, and with the helpers and imports I added to mine."""
    their_tree, my_tree = parse(theirs), parse(mine)
    target, source = (find_function(tree, function) for tree in (their_tree, my_tree))
    assert target and source
    my_lines, lines = mine.split("\n"), theirs.split("\n")
    first, end = lines_of(source)
    start, stop = lines_of(target)
    known, own = pieces(theirs), pieces(mine)
    helpers = [
        piece.text
        for name, piece in own.items()
        if name not in known and name.partition(".")[0] not in known
    ]
    new = my_lines[first:end]
    if "." in function or not helpers:
        lines[start:stop] = new
    else:
        lines[start:stop] = "\n\n\n".join([*helpers, "\n".join(new)]).split("\n")
    had = {ast.unparse(node) for node in their_tree.body}
    imports = [
        ast.unparse(node)
        for node in my_tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and ast.unparse(node) not in had
    ]
    at = next(
        (n.lineno - 1 for n in their_tree.body if isinstance(n, ast.Import)),
        next(
            (n.lineno - 1 for n in their_tree.body if isinstance(n, ast.ImportFrom)), 0
        ),
    )
    lines[at:at] = imports
    return "\n".join(lines)


def reset(course: Course, lesson: Lesson, task: str | None) -> Iterator[str]:
    """Begin a lesson or one exercise anew; what was there is kept beside it."""
    target = work_folder(course, lesson)
    if not target.exists():
        raise CourseError(
            f"there is no {WORK}/{lesson.name}; make it with: "
            f"python3 shared/course start {lesson.number:02}"
        )
    number = 1
    while (old := target.with_name(f"{target.name}-old-{number}")).exists():
        number += 1
    if task is None:
        target.rename(old)
        yield f"your work so far is in {WORK}/{old.name}"
        yield from start(course, lesson, keep=False)
        return
    exercise = lesson.exercise(task)
    if not exercise.is_emptied:
        raise CourseError(f"{task} is answered in words; there is nothing to reset")
    shutil.copytree(target, old, symlinks=True)
    path = target / exercise.file
    try:
        source = path.read_text(encoding="utf-8")
        text = emptied(source, exercise.function)
    except (OSError, SyntaxError, ValueError, CourseError) as error:
        raise CourseError(
            f"{path.name} cannot be read any more ({error}); reset the whole lesson: "
            f"python3 shared/course reset {lesson.number:02}"
        ) from error
    path.write_text(text, encoding="utf-8", newline="\n")
    yield f"your work so far is in {WORK}/{old.name}"
    yield f"{exercise.function} in {WORK}/{target.name}/{exercise.file} is empty again"


def hint(course: Course, lesson: Lesson, task: str) -> Iterator[str]:
    """The next hint of an exercise.  Which were shown is kept in the work folder."""
    exercise = lesson.exercise(task)
    path = work_place(course) / PROGRESS
    shown = read_progress(path)
    key = f"{lesson.number:02} {task}"
    number = shown.get(key, 0)
    total = len(exercise.hints)
    if number >= total:
        yield f"That was the last of {total} hints. Here they are again:"
        for each in exercise.hints:
            yield f"\n{prose(each.title)}\n{prose(each.text)}"
        yield f"\nThe solution: python3 shared/course solution {key}"
        return
    yield prose(f"Hint {number + 1} of {total}: {exercise.hints[number].title}")
    yield prose(exercise.hints[number].text)
    shown[key] = number + 1
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(shown), encoding="utf-8")


def read_progress(path: Path) -> dict[str, int]:
    """How many hints were shown; what someone edited in the file counts as none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    items = data.items() if isinstance(data, dict) else ()
    return {key: n for key, n in items if type(n) is int and n >= 0}


def solution(lesson: Lesson, task: str) -> Iterator[str]:
    """The reference of an exercise, and why it is so."""
    exercise = lesson.exercise(task)
    if exercise.is_emptied:
        source = reference(lesson, exercise.file)
        node = find_function(parse(source), exercise.function)
        if node is None:
            raise CourseError(f"{exercise.file} has no {exercise.function}")
        first, end = lines_of(node)
        yield f"{lesson.name}/{exercise.file}"
        yield ""
        yield from source.split("\n")[first:end]
        yield ""
    yield prose(exercise.why)
