"""`verify`: everything that must be true of the course, each check a function.

A check gives its faults as lines that begin with the file they are about.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import markdown
from exercises import find_function, with_wrong_answer
from manifest import MANIFEST, Change, Course, CourseError, Lesson
from parsing import parse
from step import (
    LARGE_LIMIT,
    USUAL_LIMIT,
    changed_lines,
    contents,
    declaration,
    is_leftover,
    is_of_an_editor,
    read,
    size,
    step_of,
)
from texts import check_text, texts_of

LARGE_COUNT = 5  # so many lessons may take a large step
MANIFEST_NAME = MANIFEST.as_posix()
OUR_FILES = re.compile(
    r"(?:lesson-\d\d|shared|tests|\.ci)(?:/[\w.-]+)*/?|[\w-]+\.(?:py|toml)"
)


def verify(
    course: Course,
    numbers: list[int],
    write: bool = False,
    run: bool = True,
) -> list[str]:
    """All faults of the course, or of the lessons with these numbers."""
    lessons = [
        lesson for lesson in course.lessons if not numbers or lesson.number in numbers
    ]
    faults = [] if numbers else list(folders(course))
    lessons = [lesson for lesson in lessons if lesson.folder.is_dir()]
    for lesson in lessons:
        faults += sealed(course, lesson)
        faults += plain(course, lesson)
        faults += small(course, lesson)
        faults += exercises_fit(lesson)
        faults += chapter(course, lesson)
    faults += early(course, lessons)
    for lesson in lessons:
        faults += unused(course, lesson)
    texts = [
        (path, lesson)
        for path, lesson in texts_of(course)
        if not numbers or lesson in lessons
    ]
    for path, _ in texts:
        faults += references(course, path)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            pool.submit(check_text, course, path, lesson, write, run)
            for path, lesson in texts
        ]
        for job in jobs:
            faults += job.result()
    return faults


def folders(course: Course) -> Iterator[str]:
    """Every lesson has its folder, every folder its lesson."""
    listed = {lesson.name for lesson in course.lessons}
    for lesson in course.lessons:
        if not lesson.folder.is_dir():
            yield f"{MANIFEST_NAME}: lesson {lesson.number} has no folder {lesson.name}"
    for path in sorted(course.root.glob("lesson-*")):
        if path.is_dir() and path.name not in listed:
            yield f"{path.name}: this folder is not in {MANIFEST_NAME}"


def sealed(course: Course, lesson: Lesson) -> Iterator[str]:
    """The step does what the manifest declares, no more and no less."""
    try:
        actual = {change.file: change for change in step_of(course, lesson)}
    except CourseError as error:
        yield str(error)
        return
    declared = {change.file: change for change in lesson.changes}
    faults = [
        fault
        for file in sorted({*actual, *declared})
        for fault in compared(
            f"{lesson.name}/{file}",
            declared.get(file, Change(file, "")),
            actual.get(file, Change(file, "")),
        )
    ]
    yield from faults
    if faults:
        command = f"python3 shared/course verify --seal {lesson.number:02}"
        yield f"{lesson.name}: `{command}` prints what would have to be declared"


def plain(course: Course, lesson: Lesson) -> Iterator[str]:
    """No difference that the manifest cannot declare, since no piece shows it."""
    # Where files have no modes, the manifest seems to be executable too.
    has_modes = not is_executable(course.root / MANIFEST)
    if lesson.folder.is_symlink():
        yield f"{lesson.name}: is a link, no folder of its own"
    for path in everything_in(lesson.folder):
        where = f"{lesson.name}/{path.relative_to(lesson.folder).as_posix()}"
        if path.is_symlink():
            yield f"{where}: is a link, no file of its own"
        elif is_of_an_editor(path.name):
            yield f"{where}: is hidden or a copy of an editor, no file of a lesson"
        elif has_modes and path.is_file() and is_executable(path):
            yield f"{where}: is executable; chmod -x takes that away"
    for name, source in contents(lesson.folder).items():
        lines = source.split("\n")
        for number, line in enumerate(lines, start=1):
            if line != line.rstrip():
                what = "the line ends with a carriage return or a blank"
                yield f"{lesson.name}/{name}:{number}: {what}"
                break  # they may all do so
        if source and (lines[-1] or not lines[-2]):
            yield f"{lesson.name}/{name}: the last line has no end, or is blank"


def everything_in(folder: Path) -> Iterator[Path]:
    """Files, folders and links, without what running and checking leaves behind."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_leftover(name)]
        for name in sorted([*folders, *names]):
            if not is_leftover(name):
                yield Path(place, name)
        folders[:] = [name for name in folders if not is_of_an_editor(name)]


def is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)


def compared(where: str, declared: Change, actual: Change) -> Iterator[str]:
    """How the declared change of a file differs from the actual one."""
    if declared.state != actual.state:
        is_, said = (change.state or "unchanged" for change in (actual, declared))
        yield f"{where}: is {is_}, declared {said}"
        return
    for kind in ("added", "changed", "removed"):
        have, names = set(getattr(actual, kind)), set(getattr(declared, kind))
        for name in sorted(have - names):
            yield f"{where}: {name} is {kind}, which is not declared"
        for name in sorted(names - have):
            yield f"{where}: {name} is declared {kind}, but is not"


def small(course: Course, lesson: Lesson) -> Iterator[str]:
    """A step adds at most 150 statements, or 350 where the manifest says why."""
    before = course.before(lesson)
    added, _ = size(before.folder if before else None, lesson.folder)
    if lesson.why_large and lesson.number not in course.large:
        yield f"{MANIFEST_NAME}: lesson {lesson.number} has why_large, but may not"
    if len(course.large) > LARGE_COUNT:
        yield f"{MANIFEST_NAME}: more than {LARGE_COUNT} lessons in `large`"
    is_large = lesson.number in course.large and bool(lesson.why_large)
    limit = LARGE_LIMIT if is_large else USUAL_LIMIT
    if added > limit:
        yield f"{lesson.name}: the step adds {added} statements, the limit is {limit}"


def exercises_fit(lesson: Lesson) -> Iterator[str]:
    """Exercises name functions that exist; their patches fit."""
    for exercise in lesson.exercises:
        where = f"{MANIFEST_NAME}: lesson {lesson.number}, exercise {exercise.name!r}"
        if not exercise.hints:
            yield f"{where}: has no hint"
        if not exercise.is_emptied:
            continue
        path = lesson.folder / exercise.file
        if not path.is_file():
            yield f"{where}: there is no {lesson.name}/{exercise.file}"
            continue
        source = read(path)
        if not has_function(source, exercise.function):
            yield f"{where}: {exercise.file} has no function {exercise.function!r}"
            continue
        if len(exercise.wrong) < 3:
            yield f"{where}: fewer than three typical wrong answers"
        for wrong in exercise.wrong:
            try:
                with_wrong_answer(source, exercise, wrong)
            except CourseError as error:
                yield f"{where}: {error}"


def has_function(source: str, name: str) -> bool:
    try:
        return find_function(parse(source), name) is not None
    except SyntaxError:
        return False


def chapter(course: Course, lesson: Lesson) -> Iterator[str]:
    """A chapter has its title, its parts in order, and its generated blocks."""
    name = f"{lesson.name}/README.md"
    if not lesson.chapter.is_file():
        yield f"{name}: the chapter is missing"
        return
    try:
        text = markdown.parse(lesson.chapter, name)
    except ValueError:
        return  # texts.py reports it
    sections = text.sections()
    title = f"Lesson {lesson.number:02}: {lesson.title}"
    if not sections or sections[0][:2] != (1, title):
        yield f"{name}: the first line must be `# {title}`"
    headings = [heading for level, heading, _ in sections if level == 2]
    for part in course.parts:
        if part not in headings:
            yield f"{name}: the part `## {part}` is missing"
    present = [heading for heading in headings if heading in course.parts]
    if present != [part for part in course.parts if part in present]:
        yield f"{name}: the parts must come in this order: {', '.join(course.parts)}"
    tasks = [heading for level, heading, _ in sections if level == 3]
    tasks = [task for task in tasks if re.match(rf"{lesson.number}\.\d", task)]
    wanted = [
        f"{lesson.number}.{index} {exercise.name}"
        for index, exercise in enumerate(lesson.exercises, start=1)
    ]
    if tasks != wanted:
        yield (
            f"{name}: the exercises are headed {', '.join(tasks) or 'nothing'}; "
            f"the manifest has {', '.join(wanted) or 'none'}"
        )
    regions = [region.name for region in text.generated]
    for needed in ("where", "changes"):
        if needed not in regions:
            yield f"{name}: the block `<!-- generated: {needed} -->` is missing"


def references(course: Course, path: Path) -> Iterator[str]:
    """Links lead somewhere, and files that are named exist."""
    name = path.relative_to(course.root).as_posix()
    try:
        text = markdown.parse(path, name)
    except ValueError:
        return
    for line, target in markdown.links(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        file, _, anchor = target.partition("#")
        goal = (path.parent / file).resolve() if file else path
        if not goal.exists() or not goal.is_relative_to(course.root):
            yield f"{name}:{line}: the link {target} leads nowhere"
        elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
            yield f"{name}:{line}: {file or name} has no heading #{anchor}"
    for line, code in markdown.code_spans(text):
        if OUR_FILES.fullmatch(code) and not exists(course, path.parent, code):
            yield f"{name}:{line}: there is no file `{code}`"


def anchors(path: Path) -> set[str]:
    text = markdown.parse(path, path.name)
    return {markdown.slug(heading) for _, heading, _ in text.sections()}


def exists(course: Course, folder: Path, name: str) -> bool:
    """Whether a file named in a text exists: here, in the course, in any lesson."""
    places = [folder, course.root, course.root / "tests", course.root / "shared"]
    places += [course.root / "shared" / "course"]
    places += [lesson.folder for lesson in course.lessons]
    return any((place / name).exists() for place in places)


def early(course: Course, lessons: list[Lesson]) -> Iterator[str]:
    """No lesson has words, functions or files that a later one brings."""
    for later in course.lessons:
        names = {
            name
            for change in later.changes
            for name in change.added
            if is_distinctive(name)
        }
        files = {change.file for change in later.changes if change.state == "new"}
        for lesson in lessons:
            if lesson.number >= later.number:
                continue
            by = f"comes with lesson {later.number:02}"
            for file, source in contents(lesson.folder).items():
                if file in files and not was_removed(course, lesson, later, file):
                    yield f"{lesson.name}/{file}: this file {by}"
                if not file.endswith(".py"):
                    continue
                found = places_of(later.brings, source) | names_in(source, names)
                for word, line in found.items():
                    if not had_name(course, lesson, word):
                        yield f"{lesson.name}/{file}:{line}: {word} {by}"


def places_of(words: tuple[str, ...], source: str) -> dict[str, int]:
    """The first line of every word that stands anywhere in a file, comments too."""
    found = {}
    for word in words:
        place = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", source)
        if place:
            found[word] = source.count("\n", 0, place.start()) + 1
    return found


def names_in(source: str, names: set[str]) -> dict[str, int]:
    """The first line of every name that the code uses.

    Comments and docstrings do not count: a Part may be called a part before that. Nor
    does a name of Python's own library: `re.Match` is no Match of the course.
    """
    found: dict[str, int] = {}
    before = ["", ""]
    with contextlib.suppress(SyntaxError, tokenize.TokenError):  # told elsewhere
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            python_s = before[1] == "." and before[0] in sys.stdlib_module_names
            if token.type == tokenize.NAME and token.string in names and not python_s:
                found.setdefault(token.string, token.start[0])
            before = [before[1], token.string]
    return found


def is_distinctive(name: str) -> bool:
    """Whether a name cannot also be an everyday word of code (`split`, `read`)."""
    plain = name.strip("_")
    return "." not in name and ("_" in plain or not plain.islower())


def had_name(course: Course, lesson: Lesson, name: str) -> bool:
    """Whether the name was declared added up to this lesson already."""
    earlier = [each for each in course.lessons if each.number <= lesson.number]
    return any(
        name in each.brings or any(name in change.added for change in each.changes)
        for each in earlier
    )


def was_removed(course: Course, lesson: Lesson, later: Lesson, file: str) -> bool:
    """Whether the file is new again: a lesson in between removes it."""
    return any(
        change.file == file and change.state == "removed"
        for each in course.lessons
        if lesson.number < each.number <= later.number
        for change in each.changes
    )


def unused(course: Course, lesson: Lesson) -> Iterator[str]:
    """Functions, classes and constants that nothing in the lesson uses."""
    sources = {
        file: source
        for file, source in contents(lesson.folder).items()
        if file.endswith(".py")
    }
    defined: list[tuple[str, str, int]] = []
    used: set[str] = set()
    for file, source in sources.items():
        try:
            tree = parse(source)
        except SyntaxError:
            return  # `sealed` reports it
        defined += [(file, name, line) for name, line in top_level_names(tree)]
        used |= used_names(tree)
    for file, name, line in defined:
        promised = f"{file.removesuffix('.py')}.{name}" in course.api
        if name not in used and not promised and not name.startswith("__"):
            yield f"{lesson.name}/{file}:{line}: nothing in this lesson uses {name}"


def top_level_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.lineno


def used_names(tree: ast.Module) -> set[str]:
    """Every name that is read, also as an attribute of a module; imports do not count.

    A function's mention of itself does not count either.
    """
    used: set[str] = set()
    for top in tree.body:
        inside = set()
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                inside.add(node.id)
            elif isinstance(node, ast.Attribute):
                inside.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # Annotations may be written as text.
                inside |= set(re.findall(r"^\w+$", node.value))
        used |= inside - {getattr(top, "name", None)}
    return used


def sizes(course: Course) -> Iterator[str]:
    """The size of every step, for people and CI."""
    for lesson in course.lessons:
        if lesson.folder.is_dir():
            before = course.before(lesson)
            folders = (before.folder if before else None, lesson.folder)
            added, removed = size(*folders)
            lines, gone = changed_lines(*folders)
            yield (
                f"{lesson.name}  statements +{added:<3} −{removed:<3}"
                f"   lines +{lines:<3} −{gone:<3}"
                f"   prose {prose_lines(lesson):>3}   {lesson.title}"
            )


def prose_lines(lesson: Lesson) -> int:
    """Lines of prose in a chapter: no blank lines, blocks or generated lines."""
    if not lesson.chapter.is_file():
        return 0
    try:
        text = markdown.parse(lesson.chapter, "")
    except ValueError:
        return 0
    return sum(isinstance(item, str) and bool(item.strip()) for item in text.items)


def seal(course: Course, lesson: Lesson, write: bool) -> str:
    """What the manifest must declare for this step; may put it there."""
    tables = declaration(step_of(course, lesson))
    if write:
        path = course.root / MANIFEST
        text = path.read_text(encoding="utf-8")
        path.write_text(
            replaced(text, lesson.number, tables), encoding="utf-8", newline="\n"
        )
    return tables


def replaced(manifest: str, number: int, tables: str) -> str:
    """The manifest with the [lesson.files…] tables of one lesson replaced.

    They stand after the lesson's own keys, before its exercises.
    """
    lessons = re.split(r"(?m)^(?=\[\[lesson\]\]$)", manifest)
    for index, text in enumerate(lessons):
        if re.search(rf"(?m)^number = {number}$", text):
            parts = re.split(r"(?m)^(?=\[|# -{9,})", text)
            others = [part for part in parts if not part.startswith("[lesson.files")]
            at = next(i for i, part in enumerate(others) if "[[lesson]]" in part) + 1
            others[at - 1] = others[at - 1].rstrip("\n") + "\n\n"
            lessons[index] = "".join([*others[:at], tables + "\n", *others[at:]])
    return "".join(lessons).rstrip("\n") + "\n"
