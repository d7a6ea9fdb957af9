"""`list`, `diff`, `test`, and how the tool is called."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[2]


def test_list_names_every_lesson(made):
    status, output = made.run("list")
    assert status == 0
    assert (
        "02  Names\n    A greeting has a name.\n    app.py, greet.py (+4 −1" in output
    )


def test_diff_shows_files_in_reading_order_and_text_on_demand(made):
    status, output = made.run("diff", "01", "lesson-02")
    assert status == 0
    assert "README.md" not in output and "\x1b[" not in output
    files = [line for line in output.split("\n") if line.startswith("+++")]
    assert files == ["+++ lesson-02/app.py", "+++ lesson-02/greet.py"]
    made.edit(
        "shared/course.toml",
        '[lesson.files."app.py"]\nstate = "changed"\n'
        'changed = ["imports", "main"]\n\n[lesson.files."greet.py"]',
        '[lesson.files."greet.py"]',
    )
    files = [
        line for line in made.run("diff", "1", "2")[1].split("\n") if "+++" in line
    ]
    assert files == ["+++ lesson-02/greet.py", "+++ lesson-02/app.py"]
    assert "+# Lesson 02: Names" in made.run("diff", "01", "02", "--text")[1]


def test_the_diff_is_a_real_one(made):
    output = made.run("diff", "02", "03")[1]
    expected = difflib.unified_diff(
        made.read("lesson-02/app.py").splitlines(keepends=True),
        made.read("lesson-03/app.py").splitlines(keepends=True),
        "lesson-02/app.py",
        "lesson-03/app.py",
    )
    assert output.rstrip() == "".join(expected).rstrip()


def test_unknown_lessons_and_verbs_are_told(made):
    assert made.run("diff", "01", "09") == (
        1,
        "there is no lesson 09; the course has 01 to 03\n",
    )
    status, output = made.run("dance")
    assert status == 2 and "there is no verb 'dance'" in output
    status, output = made.run("diff", "one", "02")
    assert status == 2 and "type 07, for example" in output


def test_every_verb_has_help_with_an_example(course_tool, capsys):
    verbs = course_tool.load("verbs")
    for name in verbs.VERBS:
        with pytest.raises(SystemExit) as stop:
            verbs.main([name, "--help"], lambda root: pytest.fail("not needed"))
        assert stop.value.code == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: python3 shared/course {name}")
        assert "\nExample" in text
        assert max(map(len, text.split("\n"))) <= 88


def test_the_tool_runs_as_a_folder_from_anywhere(tmp_path):
    done = subprocess.run(
        [sys.executable, COURSE / "shared" / "course", "--help"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0 and "verify" in done.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ensurepip is not available. On Debian/Ubuntu", "ensurepip is missing"),
        ("/usr/bin/python3: No module named venv", "the module venv is missing"),
        ("Permission denied: 'x'", "Permission denied: 'x'"),
    ],
)
def test_a_missing_venv_is_told_with_its_mend(
    course_tool, tmp_path, monkeypatch, words, reason
):
    testing = course_tool.load("testing")
    broken = tmp_path / "broken.py"
    broken.write_text(f"print({words!r})\nraise SystemExit(1)\n", encoding="utf-8")
    run = subprocess.run

    def refuse(command, **options):
        if "venv" in command:
            command = [sys.executable, str(broken)]
        return run(command, **options)

    monkeypatch.setattr(testing.subprocess, "run", refuse)
    with pytest.raises(course_tool.load("manifest").CourseError) as error:
        testing.make_environment(tmp_path / ".venv")
    assert reason in str(error.value)
    assert "sudo apt install python3-venv" in str(error.value)


def test_the_packages_are_pinned(course_tool):
    packages = course_tool.load("testing").pinned_packages(COURSE)
    assert packages
    assert all("==" in package for package in packages)


def test_list_fits_into_80_columns(course_tool):
    """Every line of the real course, which has long lists of files."""
    show = course_tool.load("show")
    course = course_tool.load("manifest").load_course(COURSE)
    lines = "\n".join(show.list_lessons(course)).split("\n")
    assert max(map(len, lines)) <= 80
    for lesson in course.lessons:
        assert all(change.file in " ".join(lines) for change in lesson.changes)
