"""Each fault that `verify` must find is planted in the made-up course and found."""

import shutil
import sys

import pytest

GREET = '"""How a greeting is made."""\n'


def test_a_finished_course_holds(made):
    status, output = made.run("verify")
    assert status == 0, output
    assert output.endswith("verify: everything holds\n")
    assert "lesson-02  statements +4   −1 " in output


def test_write_changes_nothing_in_a_finished_course(made):
    before = made.snapshot()
    assert made.run("verify", "--write")[0] == 0
    assert made.snapshot() == before


def test_write_fills_in_what_is_true(made):
    chapter = made.read("lesson-02/README.md")
    assert "$ python3 lesson-02/app.py --name Zoë\nHello, Zoë\nbye\n" in chapter
    assert "'Hello, Ann'\n>>> greet(1 / 0)\nTraceback" in chapter
    assert "    ...\nZeroDivisionError: division by zero\n```" in chapter
    assert '-    print("Hello, world")\n' in chapter
    assert "| `greet.py` | a new file; new: `greet` |" in chapter
    assert "before this: [01 Hello](../lesson-01/README.md)" in chapter
    readme = made.read("README.md")
    assert "--name Ben\nHello, Ben\nbye\n$ GREETING=x" in readme
    assert "| [03 Many](lesson-03/README.md) |" in readme


# Each of these faults is planted: file, text to replace, new text, what verify says.
FAULTS = {
    "an undeclared change of a function": (
        "lesson-03/greet.py",
        "Hello,",
        "Hallo,",
        "lesson-03/greet.py: is changed, declared unchanged",
    ),
    "an undeclared function": (
        "lesson-03/app.py",
        "\n\ndef main",
        "\n\ndef more(): ...\n\n\ndef main",
        "lesson-03/app.py: more is added, which is not declared",
    ),
    "a comment that only one lesson has": (
        "lesson-03/greet.py",
        "    return",
        "    # Politely.\n    return",
        "lesson-03/greet.py: is changed, declared unchanged",
    ),
    "a declared change that did not happen": (
        "lesson-03/app.py",
        "    for each in name.split():\n        print(greet(each))\n",
        "    print(greet(name))\n",
        "lesson-03/app.py: is unchanged, declared changed",
    ),
    "a line end that differs": (
        "lesson-03/greet.py",
        "is made.",
        "is made. ",
        "lesson-03/greet.py: is changed, declared unchanged",
    ),
    "a new main block": (
        "lesson-03/app.py",
        "    main()\n",
        "    sys.exit(main())\n",
        "lesson-03/app.py: main block is changed, which is not declared",
    ),
    "a stale output": (
        "lesson-03/README.md",
        "Hello, Zoë",
        "Hello, Zoe",
        "lesson-03/README.md:9: the output is another one",
    ),
    "an output that is left out": (
        "lesson-01/README.md",
        "bye\n",
        "",
        "lesson-01/README.md:9: the output is another one",
    ),
    "a session that gives something else": (
        "lesson-02/README.md",
        "'Hello, Ann'",
        "'Hello, Bob'",
        "the session gives something else",
    ),
    "code that does not stand in the lesson": (
        "lesson-02/README.md",
        "```python\ndef greet(name: str)",
        "```python\ndef greet(name: bytes)",
        "this code does not stand in any file of the lesson",
    ),
    "a written listing that is stale": (
        "lesson-02/README.md",
        "    return f",
        "    return  f",
        "this is not what the file says",
    ),
    "a diff that is not the step": (
        "lesson-02/README.md",
        '-    print("Hello, world")',
        '-    print("Hello world")',
        "this is not the step",
    ),
    "a traceback in an output": (
        "lesson-01/app.py",
        '    print("Hello, world")',
        "    print(missing)",
        "a traceback",
    ),
    "a broken link": (
        "README.md",
        "(lesson-01/README.md) and",
        "(lesson-01/READYOU.md) and",
        "README.md:11: the link lesson-01/READYOU.md leads nowhere",
    ),
    "a broken anchor": (
        "README.md",
        "(lesson-01/README.md) and",
        "(lesson-01/README.md#nothing) and",
        "lesson-01/README.md has no heading #nothing",
    ),
    "a file that is not there": (
        "README.md",
        "`lesson-02/greet.py`",
        "`lesson-02/great.py`",
        "README.md:11: there is no file `lesson-02/great.py`",
    ),
    "a chapter without a part": (
        "lesson-02/README.md",
        "## The step",
        "## Other things",
        "lesson-02/README.md: the part `## The step` is missing",
    ),
    "parts in another order": (
        "lesson-03/README.md",
        "## The problem",
        "## Exercises\n\n## The problem",
        "lesson-03/README.md: the parts must come in this order",
    ),
    "another title": (
        "lesson-02/README.md",
        "# Lesson 02: Names",
        "# Lesson 02: Name",
        "the first line must be `# Lesson 02: Names`",
    ),
    "a stale generated block": (
        "README.md",
        "A greeting has a name.",
        "A greeting has no name.",
        "the generated block 'lessons' is stale",
    ),
    "a generated block that is missing": (
        "lesson-02/README.md",
        "<!-- generated: where -->",
        "<!-- generate: where -->",
        "the block `<!-- generated: where -->` is missing",
    ),
    "a block that is never closed": (
        "lesson-02/README.md",
        "<!-- end of generated -->",
        "",
        "is not closed by",
    ),
    "a block that nothing checks": (
        "README.md",
        "```console",
        "```bash",
        "a block with bash is not checked by anyone",
    ),
    "a Windows command that differs": (
        "README.md",
        '"x"; python',
        '"y"; python',
        "no console block has this command",
    ),
    "an exercise of another name in the chapter": (
        "lesson-02/README.md",
        "### 2.1 greet",
        "### 2.1 great",
        "the exercises are headed 2.1 great; the manifest has 2.1 greet",
    ),
    "an exercise without its function": (
        "shared/course.toml",
        'function = "greet"',
        'function = "great"',
        "greet.py has no function 'great'",
    ),
    "a wrong answer that does not fit": (
        "shared/course.toml",
        "old = \"name or 'world'\"",
        "old = \"name or 'moon'\"",
        "the text to replace for 'no world' stands 0 times",
    ),
    "a hint that belongs to no exercise": (
        "shared/course.toml",
        "[[lesson]]\nnumber = 3",
        '[[lesson.exercise.hints]]\ntitle = "?"\ntext = "!"\n\n[[lesson]]\nnumber = 3',
        "lesson 2, exercise 'greet': unknown key 'hints'",
    ),
    "a word of a later lesson": (
        "lesson-01/app.py",
        '"Hello, world"',
        '"Hello, --name"',
        "lesson-01/app.py:13: --name comes with lesson 02",
    ),
    "a function that a later lesson brings": (
        "lesson-01/app.py",
        "def main",
        "def greet_them(): ...\n\n\ngreet_them()\n\n\ndef main",
        "lesson-01/app.py:11: greet_them comes with lesson 03",
    ),
    "a function that nothing uses": (
        "lesson-03/greet.py",
        "\n\ndef greet",
        "\n\ndef later(): ...\n\n\ndef greet",
        "lesson-03/greet.py:4: nothing in this lesson uses later",
    ),
    "a lesson that does not parse": (
        "lesson-02/app.py",
        "def main() -> None:",
        "def main( -> None:",
        "lesson-02/app.py:13: ",
    ),
    "a misspelt key": (
        "shared/course.toml",
        "minutes = 5",
        "minuets = 5",
        "lesson 1: minutes is missing",
    ),
    "a lesson out of order": (
        "shared/course.toml",
        "number = 3",
        "number = 4",
        "lesson 4 stands where 3 belongs",
    ),
    "a large step that may not be": (
        "shared/course.toml",
        "minutes = 5",
        'minutes = 5\nwhy_large = "I like it"',
        "lesson 1 has why_large, but may not",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_verify_finds(made, fault):
    file, old, new, says = FAULTS[fault]
    if "greet_them" in says:
        made.edit("shared/course.toml", 'changed = ["main"]', 'added = ["greet_them"]')
    made.edit(file, old, new)
    status, output = made.run("verify")
    assert status == 1
    assert says in output


@pytest.mark.parametrize("name", ["notes.txt", "data/more.json"])
def test_verify_finds_an_unlisted_file(made, name):
    made.write(f"lesson-03/{name}", "psst\n")
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert f"lesson-03/{name}: is new, declared unchanged" in output


def test_verify_finds_a_file_that_went_away(made):
    (made.root / "lesson-03" / "greet.py").unlink()
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert "lesson-03/greet.py: is removed, declared unchanged" in output


def test_verify_finds_a_file_of_a_later_lesson(made):
    made.write("lesson-01/greet.py", GREET)
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert "lesson-01/greet.py: this file comes with lesson 02" in output


def test_a_name_of_pythons_library_comes_with_no_lesson(course_tool):
    names_in = course_tool.load("checks").names_in
    assert names_in("def f(block: re.Match) -> None: ...\n", {"Match"}) == {}
    assert names_in("import re\nprint(quotes.Match, Match)\n", {"Match"}) == {
        "Match": 2
    }


def test_verify_finds_folders_that_are_not_listed(made):
    shutil.copytree(made.root / "lesson-03", made.root / "lesson-04")
    shutil.rmtree(made.root / "lesson-02")
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert "lesson-04: this folder is not in shared/course.toml" in output
    assert "lesson 2 has no folder lesson-02" in output


def test_verify_finds_a_step_that_is_too_large(made):
    lines = "".join(f"    print({n})\n" for n in range(151))
    made.edit("lesson-03/app.py", '    print("bye"', lines + '    print("bye"')
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert "the step adds 153 statements, the limit is 150" in output
    made.edit("shared/course.toml", "large = []", "large = [3]")
    reason = 'number = 3\nwhy_large = "Numbers are many."'
    made.edit("shared/course.toml", "number = 3", reason)
    assert "the limit is" not in made.run("verify", "--no-run")[1]


def test_a_long_output_may_be_cut_but_not_changed(made):
    made.write("lesson-03/app.py", 'for n in range(9):\n    print("line", n)\n')
    chapter = made.read("lesson-03/README.md")
    start = chapter.index("$ python3")
    end = chapter.index("```", start)
    command = chapter[start : chapter.index("\n", start) + 1]

    def with_output(lines: str) -> str:
        made.write(
            "lesson-03/README.md", chapter[:start] + command + lines + chapter[end:]
        )
        return made.run("verify", "--lesson", "03")[1]

    another = "the output is another one"
    assert another not in with_output("line 0\n[…]\nline 7\nline 8\n")
    assert another not in with_output("line 0\n[…]\nline 4\n[…]\nline 8\n")
    assert another in with_output("line 0\n[…]\nline 7\n")
    assert another in with_output("line 0\n[…]\nline 8\nline 7\n")
    assert another in with_output("line 0\n...\nline 8\n")
    with_output("x\nx\n[…]\nx\n")
    made.run("verify", "--lesson", "03", "--write")
    assert command + "line 0\nline 1\n[…]\nline 8\n```" in made.read(
        "lesson-03/README.md"
    )


def test_an_output_with_fences_gets_a_longer_fence(made):
    made.write("lesson-03/app.py", 'print("```\\ncode\\n```")\n')
    made.run("verify", "--lesson", "03", "--write")
    assert "````console\n$ python3" in made.read("lesson-03/README.md")
    assert "another one" not in made.run("verify", "--lesson", "03")[1]


def test_seal_prints_what_must_be_declared(made):
    made.edit("lesson-03/greet.py", "Hello,", "Hallo,")
    status, output = made.run("verify", "--seal", "03")
    assert status == 0
    assert '[lesson.files."greet.py"]\nstate = "changed"\nchanged = ["greet"]' in output
    made.run("verify", "--seal", "03", "--write")
    assert "lesson-03/greet.py" not in made.run("verify", "--no-run")[1]


def test_commands_leave_nothing_behind(made):
    made.edit(
        "lesson-01/app.py",
        '    print("Hello, world")',
        '    open("left.txt", "w", encoding="utf-8").close()',
    )
    before = made.snapshot()
    made.run("verify", "--lesson", "01")
    assert made.snapshot() == before


def test_pieces_name_what_changed(course_tool):
    compare = course_tool.load("pieces").compare
    old = '"""Doc."""\n\nimport a\n\nX = 1\n\n\n'
    old += "class C:\n    n: int\n\n    def f(self): ...\n"
    new = old.replace("X = 1", "X = 2\nY: int = 3").replace("import a", "import b")
    new = (
        new.replace("    def f", "    # Why.\n    @property\n    def f") + "\n# End.\n"
    )
    change = compare("c.py", old, new)
    assert change.added == ("Y", "comments")
    assert change.changed == ("imports", "X", "C.f")
    swapped = '"""Doc."""\n\n\ndef a(): ...\n\n\ndef b(): ...\n'
    other = '"""Doc."""\n\n\ndef b(): ...\n\n\ndef a(): ...\n'
    assert compare("c.py", swapped, other).changed == ("order",)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("\n", "\r\n", "app.py:1: the line ends with a carriage return or a blank"),
        ("import sys\n", "import sys \n", "app.py:3: the line ends with"),
        ("import sys\n", "import sys\f\n", "app.py:3: the line ends with"),
        ("main()\n", "main()", "app.py: the last line has no end"),
        ("main()\n", "main()\n\n", "app.py: the last line has no end, or is blank"),
        ("import sys\n\n", "import sys\n", "app.py: imports is changed"),
        ("\n\nif", "\n\n\nif", "app.py: main block is changed"),
    ],
)
def test_verify_finds_what_no_piece_shows_in_a_changed_file(made, old, new, says):
    path = made.root / "lesson-03" / "app.py"
    text = path.read_bytes().decode("utf-8")
    before, _, behind = text.rpartition(old) if "main" in old else ("", "", text)
    changed = before + new + behind if before else text.replace(old, new)
    path.write_bytes(changed.encode("utf-8"))
    status, output = made.run("verify", "--lesson", "03", "--no-run")
    assert status == 1
    assert f"lesson-03/{says}" in output


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of Unix")
def test_verify_finds_links_and_other_modes(made):
    path = made.root / "lesson-03" / "greet.py"
    path.unlink()
    path.symlink_to("../lesson-02/greet.py")
    (made.root / "lesson-03" / "more").symlink_to("../lesson-02")
    (made.root / "lesson-03" / ".#app.py").symlink_to("nowhere")
    (made.root / "lesson-02" / "app.py").chmod(0o755)
    status, output = made.run("verify")
    assert status == 1
    for name in ("greet.py", "more", ".#app.py"):
        assert f"lesson-03/{name}: is a link, no file of its own" in output
    assert "lesson-02/app.py: is executable" in output


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_verify_finds_a_lesson_that_is_a_link(made):
    shutil.rmtree(made.root / "lesson-03")
    (made.root / "lesson-03").symlink_to("lesson-02")
    assert "lesson-03: is a link" in made.run("verify", "--no-run")[1]


@pytest.mark.parametrize(
    "name", ["library.db_extra.py", "library.dbs", "app.py.pyc.txt"]
)
def test_only_a_database_is_left_over_from_running(made, name):
    made.write(f"lesson-03/{name}", "X = 1\n")
    for left in ("library.db", "library.db-wal", "library.db-journal", "app.pyc"):
        made.write(f"lesson-03/{left}", "")
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert f"lesson-03/{name}: is new, declared unchanged" in output
    assert "library.db-" not in output and "app.pyc:" not in output


@pytest.mark.parametrize(
    "name", [".env", ".app.py.swp", "app.py~", "#app.py#", ".x/y.py"]
)
def test_verify_finds_files_that_belong_to_no_lesson(made, name):
    made.write(f"lesson-03/{name}", "X = 1\n")
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert (
        f"lesson-03/{name.partition('/')[0]}: is hidden or a copy of an editor"
        in output
    )
