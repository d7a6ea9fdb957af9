"""Every command, output and piece of code in the texts is so.

What is checked, and how a block is written, is said in shared/course/texts.py.
`python3 shared/course verify --write` puts the true outputs into the texts.
"""

from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parent.parent
TEXTS = [
    COURSE / "README.md",
    *sorted(COURSE.glob("lesson-[0-9][0-9]/README.md")),
    *sorted(COURSE.glob("shared/*.md")),
]


@pytest.mark.parametrize(
    "path", TEXTS, ids=[path.relative_to(COURSE).as_posix() for path in TEXTS]
)
def test_the_text_shows_what_really_happens(path, course_tool):
    texts = course_tool.load("texts")
    course = course_tool.load("manifest").load_course(COURSE)
    lesson = dict(texts.texts_of(course))[path]
    faults = texts.check_text(course, path, lesson)
    assert not faults, "\n".join(faults)


def test_manifest_and_lessons_agree(course_tool):
    checks = course_tool.load("checks")
    course = course_tool.load("manifest").load_course(COURSE)
    faults = checks.verify(course, [], run=False)
    assert not faults, "\n".join(faults)


def test_the_help_of_every_verb_stands_in_the_readme(course_tool):
    text = (COURSE / "README.md").read_text(encoding="utf-8")
    for name, verb in course_tool.load("verbs").VERBS.items():
        shown = f"$ python3 shared/course {name} --help\n{verb.help.strip()}\n"
        assert shown in text, f"the help of {name} is another one, or missing"
