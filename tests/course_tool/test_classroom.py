"""`start`, `check`, `hint`, `solution`, `reset`: what a learner meets."""

import ast
import os
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
def test_no_name(lesson):
    """Without a name the world is greeted."""
    greeting = lesson.load("greet").greet("")
    assert "world" in greeting, "where nobody is named, the world is greeted"


@pytest.mark.lessons(2)
def test_of_something_else(lesson):
    raise AssertionError("not for check")
'''


@pytest.fixture
def classroom(made, course_tool, monkeypatch):
    """The made-up course with tests of its own."""
    (made.root / "tests").mkdir()
    shutil.copy(COURSE / "tests" / "conftest.py", made.root / "tests")
    shutil.copy(COURSE / "pyproject.toml", made.root)
    made.write("tests/test_greet.py", TESTS)
    testing = course_tool.load("testing")
    monkeypatch.setattr(testing, "prepare", lambda root: Path(sys.executable))
    return made


def solve(made, body: str) -> None:
    made.edit("work/lesson-02/greet.py", '    raise NotImplementedError("greet")', body)


RIGHT = "    return f\"Hello, {name or 'world'}\""


def test_start_empties_the_exercises_and_nothing_else(made):
    status, output = made.run("start", "02")
    assert status == 0
    assert "work/lesson-02 is yours" in output
    assert "2.1 greet (work/lesson-02/greet.py)" in output
    reference = made.read("lesson-02/greet.py")
    assert made.read("work/lesson-02/greet.py") == reference.replace(
        RIGHT, '    raise NotImplementedError("greet")'
    )
    assert made.read("work/lesson-02/app.py") == made.read("lesson-02/app.py")
    assert not (made.root / "work" / "lesson-02" / "README.md").exists()


def test_start_does_not_touch_work_that_is_there(made):
    made.run("start", "02")
    solve(made, RIGHT)
    before = made.snapshot()
    status, output = made.run("start", "02")
    assert status == 1 and "work/lesson-02 exists already" in output
    assert "reset 02" in output
    assert made.snapshot() == before


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            'def f(a):\n    """Doc."""\n    # Why.\n    return a\n\n\nX = 1\n',
            'def f(a):\n    """Doc."""\n    raise NotImplementedError("f")\n'
            "\n\nX = 1\n",
        ),
        (
            "@cache\ndef f(a: int) -> int:\n    # Why.\n    return a\n",
            '@cache\ndef f(a: int) -> int:\n    raise NotImplementedError("f")\n',
        ),
        (
            "def f(\n    a,\n): return a  # all\n",
            'def f(\n    a,\n):\n    raise NotImplementedError("f")\n',
        ),
        (
            'async def f():\n    """Two\n    lines."""\n    if 1:\n        return 2\n',
            'async def f():\n    """Two\n    lines."""\n'
            '    raise NotImplementedError("f")\n',
        ),
        (
            'def f():\n    """All of it."""\n',
            'def f():\n    """All of it."""\n    raise NotImplementedError("f")\n',
        ),
    ],
)
def test_emptied(course_tool, source, expected):
    assert course_tool.load("exercises").emptied(source, "f") == expected


def test_emptied_method(course_tool):
    source = "class C:\n    def f(self):\n        return 1\n\n    def g(self):\n"
    source += "        return 2\n"
    result = course_tool.load("exercises").emptied(source, "C.f")
    assert result == source.replace("return 1", 'raise NotImplementedError("f")')


def test_check_knows_what_is_not_begun(classroom):
    classroom.run("start", "02")
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "2.1 greet: not yet" in output
    assert "not begun" in output
    assert "python3 shared/course hint 02 greet" in output


def test_check_knows_what_is_solved(classroom):
    classroom.run("start", "02")
    solve(classroom, RIGHT)
    status, output = classroom.run("check", "02")
    assert status == 0, output
    assert "2.1 greet: solved (2 tests)" in output
    assert output.endswith("1 of 1 exercises solved\n")


def test_check_says_what_was_called_came_back_and_was_expected(classroom):
    classroom.run("start", "02")
    solve(classroom, '    return "Hello, Ann"')
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "not yet (0 of 2 tests pass)" in output
    assert "A name stands in the greeting as it was given." in output
    assert "called:    greet('Ben')" in output
    assert "came back: 'Hello, Ann'" in output
    assert "expected:  'Hello, Ben'" in output


def test_check_shows_the_words_of_the_test(classroom):
    classroom.run("start", "02")
    solve(classroom, '    return f"Hello, {name}"')
    output = classroom.run("check", "02")[1]
    assert "not yet (1 of 2 tests pass)" in output
    assert "where nobody is named, the world is greeted" in output


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    return (", "Python cannot read greet.py, line"),
        ("    return nam", "raised:    NameError: name 'nam' is not defined"),
        ('    print("Hello", name)', "greet prints something"),
    ],
)
def test_check_tells_in_plain_words(classroom, body, says):
    classroom.run("start", "02")
    solve(classroom, body)
    status, output = classroom.run("check", "02")
    assert status == 1
    assert says in output


def test_check_misses_a_renamed_function_and_a_missing_file(classroom):
    classroom.run("start", "02")
    classroom.edit("work/lesson-02/greet.py", "def greet", "def great")
    assert "has no function greet any more" in classroom.run("check", "02")[1]
    (classroom.root / "work" / "lesson-02" / "greet.py").unlink()
    assert "the file greet.py is missing" in classroom.run("check", "02")[1]


def test_check_is_stopped_by_a_broken_neighbour_file(classroom):
    classroom.run("start", "02")
    solve(classroom, RIGHT)
    classroom.edit("work/lesson-02/app.py", "import sys", "import sys(")
    output = classroom.run("check", "02")[1]
    assert "Python cannot read app.py, line 3" in output


def test_check_ends_an_endless_loop(classroom, course_tool, monkeypatch):
    monkeypatch.setattr(course_tool.load("check"), "TEST_SECONDS", 2)
    classroom.run("start", "02")
    solve(classroom, f"    while name:\n        pass\n{RIGHT}")
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "not yet (1 of 2 tests pass)" in output
    assert "this looks like an endless loop" in output


def test_several_answers_are_tried_in_one_process(classroom, course_tool, monkeypatch):
    """Each up to its first failure; an endless one does not hide the others."""
    check = course_tool.load("check")
    monkeypatch.setattr(check, "TEST_SECONDS", 2)
    course = course_tool.load("manifest").load_course(classroom.root)
    bodies = {
        "endless": f"    while name:\n        pass\n{RIGHT}",
        "wrong": '    return "Hello"',
        "right": RIGHT,
    }
    for name, body in bodies.items():
        classroom.run("start", "02")
        solve(classroom, body)
        (classroom.root / "work" / "lesson-02").rename(classroom.root / name)
    folders = [classroom.root / name for name in bodies]
    lesson = course.lesson(2)
    records = check.run_tests(course, lesson, folders, {}, to_first_failure=True)
    outcomes = {
        name: [r["outcome"] for r in records if Path(r["folder"]).name == name]
        for name in bodies
    }
    assert outcomes == {
        "endless": ["failed", "skipped"],
        "wrong": ["failed", "skipped"],
        "right": ["passed", "passed"],
    }
    endless = next(r for r in records if Path(r["folder"]).name == "endless")
    assert "looks like an endless loop" in endless["message"]


def test_check_works_far_from_the_course(classroom, tmp_path):
    classroom.run("start", "02")
    solve(classroom, RIGHT)
    far = tmp_path / "далеко, 远"
    shutil.move(classroom.root / "work" / "lesson-02", far)
    status, output = classroom.run("check", "02", "--folder", str(far))
    assert status == 0, output
    assert "solved" in output


def test_check_without_a_folder_says_how_to_get_one(classroom):
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "python3 shared/course start 02" in output


def test_watch_checks_again_at_every_save(classroom, course_tool, monkeypatch):
    check = course_tool.load("check")
    classroom.run("start", "02")
    saves = ['    return "Hello, " + (name or "world")', None]

    def save(folder, seen):
        body = saves.pop(0)
        if body is None:
            raise KeyboardInterrupt
        assert check.saved_at(folder) == seen
        solve(classroom, body)

    monkeypatch.setattr(check, "wait_for_save", save)
    status, output = classroom.run("check", "02", "--watch")
    assert status == 130
    assert output.count("waiting for the next save") == 2
    assert output.index("not begun") < output.index("solved (2 tests)")


def test_commands_are_spelt_as_on_this_machine(made, monkeypatch):
    monkeypatch.setenv("COURSE_PYTHON", "python")
    made.run("start", "02")
    for arguments in (["start", "02"], ["check", "--help"], ["check", "09"]):
        output = made.run(*arguments)[1]
        assert "python3" not in output
    assert "python shared/course reset 02" in made.run("start", "02")[1]


def test_hints_come_one_at_a_time(made):
    first, second = (made.run("hint", "02", "greet")[1] for _ in range(2))
    assert first == "Hint 1 of 2: Which name?\nThe one that was given.\n"
    assert second == "Hint 2 of 2: And no name?\nThen it is the world.\n"
    last = made.run("hint", "02", "greet")[1]
    assert "Which name?" in last and "And no name?" in last
    assert "python3 shared/course solution 02 greet" in last
    status, output = made.run("hint", "02", "great")
    assert status == 1
    assert output == "lesson 02 has no exercise 'great'; it has: greet\n"
    for verb in ("hint", "solution"):
        assert made.run(verb, "02")[1] == "which exercise? Lesson 02 has: greet\n"


def test_the_solution_is_the_reference_and_its_reason(made):
    output = made.run("solution", "02", "greet")[1]
    assert RIGHT in output
    assert output.endswith("The name goes in where it belongs.\n")


def test_reset_keeps_what_was_there(made):
    made.run("start", "02")
    empty = made.read("work/lesson-02/greet.py")
    solve(made, RIGHT)
    solved = made.read("work/lesson-02/greet.py")
    assert made.run("reset", "02", "greet")[0] == 0
    assert made.read("work/lesson-02/greet.py") == empty
    assert made.read("work/lesson-02-old-1/greet.py") == solved
    made.write("work/lesson-02/greet.py", "what is this(\n")
    status, output = made.run("reset", "02", "greet")
    assert status == 1 and "reset the whole lesson" in output
    assert made.run("reset", "02")[0] == 0
    assert made.read("work/lesson-02/greet.py") == empty


def test_keep_carries_own_solutions_along(made):
    made.run("start", "02")
    own = '    return shout(f"Hello, {name or random.choice([WORLD])}")'
    solve(made, own)
    made.edit(
        "work/lesson-02/greet.py",
        "\n\ndef greet",
        '\nimport random\n\nWORLD = "world"\n\n\ndef shout(text: str) -> str:\n'
        "    return text\n\n\ndef greet",
    )
    status, output = made.run("start", "03", "--keep")
    assert status == 0
    assert "kept: your own greet from lesson-02/greet.py" in output
    kept = made.read("work/lesson-03/greet.py")
    assert own in kept
    names = {node.name for node in ast.parse(kept).body if hasattr(node, "name")}
    assert names == {"shout", "greet"}
    assert "\nimport random\n" in kept and 'WORLD = "world"' in kept
    scope: dict = {}
    exec(compile(kept, "kept", "exec"), scope)
    assert scope["greet"]("") == "Hello, world"


def test_keep_leaves_out_what_is_not_solved_or_not_readable(made):
    made.run("start", "02")
    made.run("start", "03", "--keep")
    reference = made.read("lesson-03/greet.py")
    assert made.read("work/lesson-03/greet.py") == reference
    shutil.rmtree(made.root / "work" / "lesson-03")
    made.write("work/lesson-02/greet.py", "def greet(:\n")
    output = made.run("start", "03", "--keep")[1]
    assert "not kept: greet, since Python cannot read your lesson-02" in output
    assert made.read("work/lesson-03/greet.py") == reference


@pytest.mark.parametrize(
    "data",
    [
        f"{RIGHT}  # Привет\n".encode("cp1251"),
        f"{RIGHT}  # Привет\n".encode("utf-16"),
        f"{RIGHT}  # Hello\n".encode("utf-16-le"),
    ],
)
def test_check_says_which_file_is_not_saved_as_utf_8(classroom, data):
    classroom.run("start", "02")
    path = classroom.root / "work" / "lesson-02" / "greet.py"
    head = '"""How a greeting is made."""\n\n\ndef greet(name: str) -> str:\n'
    path.write_bytes(head.encode("utf-16-le" if b"\0" in data else "utf-8") + data)
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "greet.py is not saved as UTF-8" in output
    assert "line None" not in output


def test_check_accepts_what_python_accepts(classroom):
    """A file may begin with a byte-order mark, or say how it is encoded."""
    classroom.run("start", "02")
    path = classroom.root / "work" / "lesson-02" / "greet.py"
    text = f"def greet(name: str) -> str:  # Привет\n{RIGHT}\n"
    path.write_bytes(text.encode("utf-8-sig"))
    assert classroom.run("check", "02")[0] == 0
    path.write_bytes(f"# coding: cp1251\n{text}".encode("cp1251"))
    assert classroom.run("check", "02")[0] == 0


@pytest.mark.parametrize("deed", ["import os; os._exit(0)", "raise KeyboardInterrupt"])
def test_check_knows_an_end_from_an_endless_loop(classroom, deed):
    classroom.run("start", "02")
    solve(classroom, f"    if name:\n        {deed}\n{RIGHT}")
    status, output = classroom.run("check", "02")
    assert status == 1
    assert "not yet (1 of 2 tests pass)" in output
    assert "endless loop" not in output
    assert "Python itself ended in the middle of this test" in output.replace(
        "\n      ", " "
    )


LEFT_BY_EDITORS = (".greet.py.swp", "greet.py~", "#greet.py#", ".vscode/settings.json")


@pytest.mark.parametrize("name", LEFT_BY_EDITORS)
def test_files_of_editors_belong_to_no_lesson(repository, name):
    made = repository
    made.write(f"lesson-02/{name}", "b0VIM\n")
    for arguments in (["list"], ["diff", "01", "02"], ["start", "02"]):
        status, output = made.run(*arguments)
        assert status == 0 and name not in output
    assert "nothing to carry" in made.run("feed", "02", "--no-test")[1]
    assert not (made.root / "work" / "lesson-02" / name).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("name", [".#greet.py", "lock.py"])
def test_a_link_that_leads_nowhere_stops_nothing(classroom, name):
    """Emacs keeps such a one beside a file that is not saved yet."""
    (classroom.root / "lesson-02" / name).symlink_to("ann@example.4711:1700000000")
    for arguments in (["list"], ["diff", "01", "02"], ["start", "02"]):
        status, output = classroom.run(*arguments)
        assert status == 0 and name not in output
    own = classroom.root / "work" / "lesson-02"
    (own / name).symlink_to("ann@example.4711:1700000000")
    solve(classroom, RIGHT)
    assert classroom.run("check", "02")[0] == 0
    status, output = classroom.run("grade", "02", str(own))
    assert status == 0 and "1.00" in output
    assert classroom.run("reset", "02", "greet")[0] == 0


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="who may write anywhere"
)
def test_a_folder_that_may_not_be_written_is_told(made):
    made.root.chmod(0o555)
    try:
        results = [made.run("hint", "02", "greet"), made.run("start", "02")]
    finally:
        made.root.chmod(0o755)
    for status, output in results:
        assert status == 1 and "Permission denied" in output


@pytest.mark.parametrize("arguments", [["hint", "02", "greet"], ["start", "02"]])
def test_an_error_of_the_system_is_told_in_a_line(
    made, course_tool, monkeypatch, arguments
):
    def refuse(path, *rest, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(course_tool.load("exercises").Path, "mkdir", refuse)
    status, output = made.run(*arguments)
    assert status == 1
    assert output.endswith(": Permission denied\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["start", "02"],
        ["start", "03", "--keep"],
        ["hint", "02", "greet"],
        ["reset", "2"],
    ],
)
def test_a_file_in_the_place_of_the_folder_work_is_told(made, arguments):
    made.write("work", "mine\n")
    status, output = made.run(*arguments)
    assert status == 1
    assert output == "work is no folder: move it away or give it another name\n"
    assert made.read("work") == "mine\n"


@pytest.mark.parametrize(
    "text",
    ["[]", "null", "7", '{"02 greet": -5}', '{"02 greet": "x"}', '{"02 greet": true}'],
)
def test_hints_begin_anew_where_their_file_was_edited(made, text):
    made.write("work/.hints-shown.json", text)
    status, output = made.run("hint", "02", "greet")
    assert status == 0 and output.startswith("Hint 1 of 2")
    assert made.run("hint", "02", "greet")[1].startswith("Hint 2 of 2")


def test_keep_tells_of_a_file_with_null_characters(made):
    made.run("start", "02")
    made.write("work/lesson-02/greet.py", "def greet(name):\n    return '\0'\n")
    assert "not kept: greet" in made.run("start", "03", "--keep")[1]
