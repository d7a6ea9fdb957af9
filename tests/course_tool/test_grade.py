"""`grade`: a class of folders as students hand them in, safely apart."""

import csv
import shutil
import sys
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[2]

TESTS = '''
import pytest


@pytest.mark.lessons(2)
@pytest.mark.task("greet")
def test_the_name_is_greeted(lesson):
    """A name stands in the greeting as it was given."""
    assert lesson.load("greet").greet("Ben") == "Hello, Ben"


@pytest.mark.lessons(2)
@pytest.mark.task("greet")
def test_the_app_greets(lesson):
    assert lesson.run("--name", "Ben").stdout == "Hello, Ben\\n"
'''

RIGHT = """def greet(name: str) -> str:
    return f"Hello, {name or 'world'}"
"""
OWN = """def greet(name: str) -> str:
    {first}
    return "Hello, " + (name or "world")
"""


@pytest.fixture
def course(made, course_tool, monkeypatch):
    """The made-up course with tests; `hand_in(name, text)` adds a submission."""
    (made.root / "tests").mkdir()
    shutil.copy(COURSE / "tests" / "conftest.py", made.root / "tests")
    shutil.copy(COURSE / "pyproject.toml", made.root)
    made.write("tests/test_greet.py", TESTS)
    testing, check = course_tool.load("testing"), course_tool.load("check")
    monkeypatch.setattr(testing, "prepare", lambda root: Path(sys.executable))
    monkeypatch.setattr(check, "TEST_SECONDS", 3)
    made.hand_in = lambda name, text: made.write(f"handed in/{name}/greet.py", text)
    return made


def graded(course, tmp_path) -> dict[str, dict[str, str]]:
    """The rows of the CSV by folder."""
    table = tmp_path / "points.csv"
    status, output = course.run(
        "grade", "02", str(course.root / "handed in"), "--csv", str(table)
    )
    assert status == 0, output
    course.printed = output
    with table.open(encoding="utf-8-sig", newline="") as file:
        return {row["folder"]: row for row in csv.DictReader(file)}


def test_a_class_is_graded_and_nobody_stops_the_others(course, tmp_path):
    course.hand_in("Ann Lee", RIGHT)
    course.hand_in("Борис/домашняя работа/lesson-02", OWN.format(first="pass"))
    course.hand_in("王芳", 'def greet(name):\n    return "Hello, Ben"\n')
    course.hand_in("broken", "def greet(:\n")
    course.hand_in("loop", "def greet(name):\n    while True:\n        pass\n")
    course.hand_in("quits", "import os\n\n\ndef greet(name):\n    os._exit(0)\n")
    course.write("handed in/empty/notes.txt", "sorry\n")
    rows = graded(course, tmp_path)
    points = {name: row["greet"] for name, row in rows.items()}
    assert points == {
        "Ann Lee": "1.00",
        "Борис": "1.00",
        "王芳": "1.00",
        "broken": "0.00",
        "loop": "0.00",
        "quits": "0.00",
        "empty": "0.00",
    }
    assert "Python cannot read greet.py, line 1" in rows["broken"]["note"]
    assert rows["empty"]["note"] == "no file of this lesson found"
    assert "7/7" in course.printed
    assert "Борис" in course.printed


def test_a_submission_can_do_little_harm(course, tmp_path):
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_text("gold", encoding="utf-8")
    deeds = {
        "network": "import socket; socket.create_connection(('192.0.2.1', 80))",
        "write": f"open({str(treasure / 'x')!r}, 'w', encoding='utf-8')",
        "delete": f"import shutil; shutil.rmtree({str(treasure)!r})",
        "remove": f"import os; os.remove({str(treasure / 'gold')!r})",
        "database": f"import sqlite3; sqlite3.connect({str(treasure / 'db')!r})",
    }
    if sys.platform != "win32":
        deeds["memory"] = "bytearray(8 * 1024**3)"
    for name, deed in deeds.items():
        course.hand_in(name, OWN.format(first=deed))
    rows = graded(course, tmp_path)
    assert {name: row["greet"] for name, row in rows.items()} == dict.fromkeys(
        deeds, "0.00"
    )
    assert [path.name for path in treasure.iterdir()] == ["gold"]


def test_identical_submissions_are_found_through_layout_and_comments(
    course, course_tool
):
    grade = course_tool.load("grade")
    lesson = course_tool.load("manifest").load_course(course.root).lesson(2)
    mine = OWN.format(first="# Mine!\n    name = name.strip()")
    handed_in = {
        "one": OWN.format(first="name = name.strip()"),
        "two": mine,
        "a space more": mine.replace(", ", ",  "),
        "three": OWN.format(first="name = str(name)"),
        "reference": RIGHT,
        "reference too": RIGHT,
        "nothing": "def greet(name):\n    raise NotImplementedError\n",
        "nothing either": "def greet(name):\n    raise NotImplementedError\n",
        "broken": "def greet(:\n",
        "broken too": "def greet(:\n",
    }
    for name, text in handed_in.items():
        course.hand_in(name, text)
    folder = course.root / "handed in"
    grades = [grade.Grade(name, folder / name) for name in handed_in]
    assert grade.identical(lesson, grades) == [["one", "two"]]
    assert "the same solutions: one, two" in list(grade.table(lesson, grades))
    grade.write_csv(folder / "points.csv", lesson, grades)
    with (folder / "points.csv").open(encoding="utf-8-sig", newline="") as file:
        same = {row["folder"]: row["same as"] for row in csv.DictReader(file)}
    assert (same["one"], same["two"], same["three"]) == ("two", "one", "")


def test_single_folders_and_equal_names(course, tmp_path):
    for place in ("a", "b"):
        course.write(f"{place}/work/greet.py", RIGHT)
    status, output = course.run(
        "grade", "02", str(course.root / "a" / "work"), str(course.root / "b" / "work")
    )
    assert status == 0
    assert "work       1.00" in output and "work (2)   1.00" in output
    status, output = course.run("grade", "02", str(tmp_path / "nowhere"))
    assert status == 1 and "there is no folder" in output


def test_a_table_holds_no_formulas(course_tool):
    harmless = course_tool.load("grade").harmless
    assert harmless("=1+1") == "'=1+1"
    assert harmless("Ann") == "Ann"


def test_wide_names_do_not_push_the_columns(course_tool):
    columns = course_tool.load("grade").columns
    assert [columns(name) for name in ("Bo", "李雷", "Аня Ли")] == [2, 4, 6]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_what_is_not_copied_is_not_graded_as_the_reference(course, tmp_path):
    """A link and a file of more than 20 MB count nothing, and nothing hangs."""
    for name in ("link", "endless"):
        (course.root / "handed in" / name).mkdir(parents=True)
    reference = course.root / "lesson-02" / "greet.py"
    (course.root / "handed in" / "link" / "greet.py").symlink_to(reference)
    (course.root / "handed in" / "endless" / "greet.py").symlink_to("/dev/zero")
    course.hand_in("big", RIGHT + "#" * (20 * 1024**2))
    rows = graded(course, tmp_path)
    assert {name: row["greet"] for name, row in rows.items()} == {
        "link": "0.00",
        "endless": "0.00",
        "big": "0.00",
    }
    assert rows["big"]["note"] == "the file greet.py is missing"


def test_identical_submissions_are_sought_in_ordinary_files_only(course, course_tool):
    grade = course_tool.load("grade")
    lesson = course_tool.load("manifest").load_course(course.root).lesson(2)
    course.hand_in("big", OWN.format(first="pass") + "#" * (20 * 1024**2))
    assert grade.fingerprint(lesson, course.root / "handed in" / "big") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_strange_names_of_folders_and_files_lose_no_results(course, tmp_path):
    """Bytes that are no UTF-8, line ends and escape sequences come out harmless."""
    for name in ("Аня　Ли", "b\udcff", "two\nrows", "red\x1b[31m"):
        course.hand_in(name, RIGHT)
    course.hand_in("note", RIGHT)
    course.write("handed in/note/\x1b[2J\n.py", "def broken(:\n")
    rows = graded(course, tmp_path)
    assert set(rows) == {
        "Аня　Ли",
        "b\\udcff",
        "two\\nrows",
        "red\\x1b[31m",
        "note",
    }
    assert "\\x1b[2J\\n.py" in rows["note"]["note"]
    assert "\x1b" not in course.printed and "two\n" not in course.printed


def test_the_table_is_printed_even_if_the_file_cannot_be_written(course, tmp_path):
    course.hand_in("Ann", RIGHT)
    place = tmp_path / "nowhere" / "points.csv"
    folder = str(course.root / "handed in")
    status, output = course.run("grade", "02", folder, "--csv", str(place))
    assert status == 1 and "the table cannot be written" in output
    assert "Ann     " in output
