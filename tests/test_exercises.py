"""Every exercise of the manifest is proved both ways.

The empty function fails with NotImplementedError, the reference passes, and each
typical wrong answer fails with a message that names the mistake.  That message must
be the one that `check` shows: the first failing test's.  Therefore, in the suites, the
tests about one mistake stand before those about everything.
"""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parent.parent
EMPTY, REFERENCE = "empty", "reference"


def answers() -> list:
    """Lesson, exercise and what stands in place of the function, for all of them."""
    text = (COURSE / "shared" / "course.toml").read_text(encoding="utf-8")
    return [
        pytest.param(
            lesson["number"],
            exercise["name"],
            answer,
            id=f"{lesson['number']:02}-{exercise['name']}-{answer}",
        )
        for lesson in tomllib.loads(text)["lesson"]
        for exercise in lesson.get("exercise", [])
        if exercise["kind"] != "judge"
        for answer in [
            EMPTY,
            REFERENCE,
            *(wrong["name"] for wrong in exercise.get("wrong", [])),
        ]
    ]


@pytest.mark.parametrize(("number", "name", "answer"), answers())
def test_exercise(number, name, answer, course_tool, tmp_path, monkeypatch):
    check, exercises = course_tool.load("check"), course_tool.load("exercises")
    monkeypatch.setattr(
        course_tool.load("testing"), "prepare", lambda root: Path(sys.executable)
    )
    course = course_tool.load("manifest").load_course(COURSE)
    lesson = course.lesson(number)
    exercise = lesson.exercise(name)
    wrong = {each.name: each for each in exercise.wrong}.get(answer)
    folder = tmp_path / "answer"
    shutil.copytree(lesson.folder, folder)
    source = exercises.reference(lesson, exercise.file)
    if answer == EMPTY:
        source = exercises.emptied(source, exercise.function)
    elif wrong:
        source = exercises.with_wrong_answer(source, exercise, wrong)
    (folder / exercise.file).write_text(source, encoding="utf-8", newline="\n")

    records = check.run_tests(
        course, lesson, folder, {}, task=name, to_first_failure=answer != REFERENCE
    )

    assert records, f"no test is marked with @pytest.mark.task({name!r})"
    failed = [record for record in records if record["outcome"] == "failed"]
    if answer == REFERENCE:
        assert not failed, "\n".join(record["message"] for record in failed)
        return
    assert failed, f"no test fails for the answer {answer!r}"
    message = check.plain_message(failed[0]["message"])
    wanted = wrong.says if wrong else "NotImplementedError"
    assert wanted in message, (
        f"`check` does not say {wanted!r} for the answer {answer!r}; it says: {message}"
    )


def test_no_two_exercises_have_one_name(course_tool):
    """A test is marked with a name: it must mean one exercise in the whole course."""
    course = course_tool.load("manifest").load_course(COURSE)
    names = [each.name for lesson in course.lessons for each in lesson.exercises]
    assert sorted(names) == sorted(set(names))
