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


def answers(tool, lesson, exercise) -> Iterator[tuple[str, str, str | None]]:
    """Name, source and expected words of each answer; None where all must pass."""
    source = tool.reference(lesson, exercise.file)
    yield "the reference", source, None
    yield ALONE, source, None
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
