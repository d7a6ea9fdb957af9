"""Every exercise of the manifest is proved both ways.

The empty function fails with NotImplementedError, the reference passes, also while
the exercises behind it are still empty, and each typical wrong answer fails with a
message that names the mistake.  That message must
be the one that `check` shows: the first failing test's.  Therefore, in the suites, the
tests about one mistake stand before those about everything.
"""

import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parent.parent


def exercises() -> list:
    """Lesson and name of every exercise that is emptied."""
    text = (COURSE / "shared" / "course.toml").read_text(encoding="utf-8")
    return [
        pytest.param(
            lesson["number"],
            exercise["name"],
            id=f"{lesson['number']:02}-{exercise['name']}",
        )
        for lesson in tomllib.loads(text)["lesson"]
        for exercise in lesson.get("exercise", [])
        if exercise["kind"] != "judge"
    ]


ALONE = "the reference, with the later exercises empty"
# Answers that are as right, in other words and by another way: what only the reference
# says must not be asked of anybody.
OTHERS = {
    "assemble": """
def assemble(fragments, budget):
    if type(budget) is not int or budget < 0:
        raise ValueError("this is no budget")
    chosen = [each for each in fragments if each.required]
    left = budget - sum(len(each.text) for each in chosen)
    if left < 0:
        names = " and ".join(each.name for each in chosen)
        raise ValueError(f"These notes do not fit: {names}. Missing: {-left}.")
    skipped = []
    for each in sorted(fragments, key=lambda f: (-f.relevance, len(f.text), f.name)):
        if each.required:
            continue
        if len(each.text) > left:
            skipped.append(each.name)
        else:
            chosen.append(each)
            left -= len(each.text)
    return chosen, skipped, budget - left
""",
    "front_matter": """
def front_matter(lines, name):
    if lines[0] != "---":
        return {}, 0
    if "---" not in lines[1:]:
        raise Fault(name, 1, "where is the end?")
    values, above = {}, ""
    for number, line in enumerate(lines, start=1):
        if number == 1 or not line.strip() or line.strip()[0] == "#":
            continue
        if line == "---":
            return values, number
        if line[0] in " \\t" or line == "-" or line[:2] == "- ":
            if above in ("", *KEYS):
                raise Fault(name, number, "this hangs in the air: " + line)
            continue
        match = KEY_LINE.fullmatch(line)
        if match is None:
            raise Fault(name, number, "what is this? " + line)
        above, value = match["key"].strip(), (match["value"] or "").strip()
        if above in values:
            raise Fault(name, number, above + " again")
        if above in KEYS:
            if len(value) > 1 and value[0] in "'\\"" and value.find(value[0], 1) == (
                len(value) - 1
            ):
                value = value[1:-1]
            values[above] = value
            check(above, value, name, number)
        elif near_miss(above):
            raise Fault(name, number, above + " is a slip")
""",
    "part": """
    def part(self, part_id, role):
        visible([], role)
        for row in self.db.execute("SELECT number, doc_id, part FROM parts"):
            if part_id == f"{row['doc_id']}#part-{row['part']:02}":
                part = self.read_part(row["number"])
                return make_row(part) if visible([part.document], role) else None
        return None
""",
    "put_change": """
def put_change(db, document, by_hand=True):
    now, top = current(db, document.id), highest_revision(db, document.id)
    if now is None and top and by_hand and document.revision <= top:
        raise StoreError("old_revision", f"use {top + 1} or more")
    if now and document.revision <= now.revision:
        if replace(document, revision=now.revision) == now:
            return None
    number = document.revision if document.revision > top else top + 1
    return Change("put", document.id, now, replace(document, revision=number), by_hand)
""",
}


def answers(tool, lesson, exercise) -> Iterator[tuple[str, str, str | None]]:
    """Name, source and expected words of each answer; None where all must pass."""
    source = tool.reference(lesson, exercise.file)
    yield "the reference", source, None
    yield ALONE, source, None
    if exercise.name in OTHERS:
        node = tool.find_function(tool.parse(source), exercise.function)
        first, end = tool.lines_of(node)
        lines = source.split("\n")
        lines[first:end] = OTHERS[exercise.name].strip("\n").split("\n")
        yield "another right answer", "\n".join(lines), None
    empty = tool.emptied(source, exercise.function)
    yield "the empty function", empty, "NotImplementedError"
    for wrong in exercise.wrong:
        yield wrong.name, tool.with_wrong_answer(source, exercise, wrong), wrong.says


def empty_later(tool, lesson, exercise, folder: Path) -> None:
    """Empty what a learner who goes in order has not written yet."""
    for later in lesson.exercises[lesson.exercises.index(exercise) + 1 :]:
        if later.is_emptied:
            path = folder / later.file
            text = tool.emptied(path.read_text(encoding="utf-8"), later.function)
            path.write_text(text, encoding="utf-8", newline="\n")


@pytest.mark.parametrize(("number", "name"), exercises())
def test_exercise(number, name, course_tool, tmp_path, monkeypatch):
    check, tool = course_tool.load("check"), course_tool.load("exercises")
    monkeypatch.setattr(
        course_tool.load("testing"), "prepare", lambda root: Path(sys.executable)
    )
    course = course_tool.load("manifest").load_course(COURSE)
    lesson = course.lesson(number)
    exercise = lesson.exercise(name)
    tried = {}
    leftovers = shutil.ignore_patterns("__pycache__", "library.db*")
    for index, (answer, source, wanted) in enumerate(answers(tool, lesson, exercise)):
        folder = tmp_path / f"answer-{index}"
        shutil.copytree(lesson.folder, folder, ignore=leftovers)
        path = folder / exercise.file
        path.write_text(source, encoding="utf-8", newline="\n")
        if answer == ALONE:
            empty_later(tool, lesson, exercise, folder)
        tried[folder.resolve()] = (answer, wanted)

    records = check.run_tests(
        course, lesson, list(tried), {}, task=name, to_first_failure=True
    )

    assert records, f"no test is marked with @pytest.mark.task({name!r})"
    faults = []
    for folder, (answer, wanted) in tried.items():
        mine = [record for record in records if Path(record["folder"]) == folder]
        failed = [record for record in mine if record["outcome"] == "failed"]
        said = check.plain_message(failed[0]["message"]) if failed else "all tests pass"
        if wanted is None and (failed or not mine):
            faults.append(f"{answer} fails: {said}")
        if wanted is not None and wanted not in said:
            faults.append(f"{answer}: `check` does not say {wanted!r} but {said!r}")
    assert not faults, "\n".join(faults)


def test_no_two_exercises_have_one_name(course_tool):
    """A test is marked with a name: it must mean one exercise in the whole course."""
    course = course_tool.load("manifest").load_course(COURSE)
    names = [each.name for lesson in course.lessons for each in lesson.exercises]
    assert sorted(names) == sorted(set(names))
