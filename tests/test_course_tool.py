"""The course tool, tried on a small made-up course of three lessons.

Each fault that `verify` must find is planted here and found.
"""

import difflib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parent.parent

MANIFEST = """
[course]
title = "Greetings"
parts = ["The problem", "The step", "Exercises"]
large = []
api = []

[[lesson]]
number = 1
title = "Hello"
idea = "A program greets."
minutes = 5

[[lesson]]
number = 2
title = "Names"
idea = "A greeting has a name."
minutes = 10
brings = ["--name"]

[[lesson.exercise]]
name = "greet"
kind = "complete"
file = "greet.py"
function = "greet"
task = "Greet a person by name."
why = "The name goes in where it belongs."

[[lesson.exercise.hint]]
title = "Which name?"
text = "The one that was given."

[[lesson.exercise.hint]]
title = "And no name?"
text = "Then it is the world."

[[lesson.exercise.wrong]]
name = "a constant"
old = "{name or 'world'}"
new = "Ann"
says = "Ben"

[[lesson.exercise.wrong]]
name = "the name is cut"
old = "{name or 'world'}"
new = "{(name or 'world')[:2]}"
says = "Ben"

[[lesson.exercise.wrong]]
name = "no world"
old = "name or 'world'"
new = "name"
says = "world"

[[lesson]]
number = 3
title = "Many"
idea = "Everybody is greeted."
minutes = 10
"""

APP_1 = '''"""Greets."""

import sys


def leave() -> None:
    """Say goodbye."""
    print("bye", file=sys.stderr)


def main() -> None:
    """Greet the world."""
    print("Hello, world")
    leave()


if __name__ == "__main__":
    main()
'''

APP_2 = '''"""Greets."""

import sys

from greet import greet


def leave() -> None:
    """Say goodbye."""
    print("bye", file=sys.stderr)


def main() -> None:
    """Greet whoever is named."""
    name = sys.argv[-1] if "--name" in sys.argv else ""
    print(greet(name))
    leave()


if __name__ == "__main__":
    main()
'''

GREET = '''"""How a greeting is made."""


def greet(name: str) -> str:
    """A greeting for this name, for the world where it is empty."""
    return f"Hello, {name or 'world'}"
'''

APP_3 = APP_2.replace(
    "    print(greet(name))\n",
    "    for each in name.split():\n        print(greet(each))\n",
)

CHAPTER = """# Lesson {number:02}: {title}

<!-- generated: where -->
<!-- end of generated -->

## The problem

```console
$ python3 {example}
```

## The step

<!-- generated: changes -->
<!-- end of generated -->

{step}
## Exercises
{exercises}"""

README = """# Greetings

<!-- generated: lessons -->
<!-- end of generated -->

A [chapter](lesson-01/README.md) and `lesson-02/greet.py`.

```console
$ echo "Ann" | python3 lesson-02/app.py --name Ben
$ GREETING=x python3 -c "import os; print(os.environ['GREETING'])"
```

```powershell
$env:GREETING = "x"; python -c "import os; print(os.environ['GREETING'])"
```
"""

STEP_2 = """```python
def greet(name: str) -> str:
    \"\"\"A greeting for this name, for the world where it is empty.\"\"\"
```

```python greet.py greet
```

```diff app.py main imports
```

```python
>>> from greet import greet
>>> greet("Ann")
>>> greet(1 / 0)
```

"""


class Made:
    """The made-up course: `root`, `run(verb, …)`, `edit(file, old, new)`."""

    def __init__(self, root: Path, course_tool, capsys):
        self.root = root
        self.tool = course_tool
        self.capsys = capsys

    def run(self, verb: str, *args: str) -> tuple[int, str]:
        """Exit status and everything printed (the tool runs in this process)."""
        manifest = self.tool.load("manifest")
        main = self.tool.load("verbs").main
        self.capsys.readouterr()
        try:
            status = main(
                [verb, *args, "--root", str(self.root)],
                lambda root: manifest.load_course(root),
            )
        except SystemExit as error:
            status = error.code
        captured = self.capsys.readouterr()
        return status, captured.out + captured.err

    def read(self, file: str) -> str:
        return (self.root / file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

    def edit(self, file: str, old: str, new: str) -> None:
        text = self.read(file)
        assert old in text
        self.write(file, text.replace(old, new, 1))

    def snapshot(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git/" not in path.as_posix()
        }


def build(root: Path) -> None:
    lessons = {
        1: ("Hello", {"app.py": APP_1}, "", ""),
        2: (
            "Names",
            {"app.py": APP_2, "greet.py": GREET},
            STEP_2,
            "\n### 2.1 greet\n\nGreet.\n",
        ),
        3: ("Many", {"app.py": APP_3, "greet.py": GREET}, "", ""),
    }
    (root / "shared").mkdir(parents=True)
    (root / "shared" / "course.toml").write_text(MANIFEST, encoding="utf-8")
    (root / "README.md").write_text(README, encoding="utf-8")
    for number, (title, files, step, exercises) in lessons.items():
        folder = root / f"lesson-{number:02}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        chapter = CHAPTER.format(
            number=number,
            title=title,
            example=f"lesson-{number:02}/app.py --name Zoë",
            step=step,
            exercises=exercises,
        )
        (folder / "README.md").write_text(chapter, encoding="utf-8", newline="\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, course_tool):
    """The made-up course with everything sealed and written; do not change it."""
    root = tmp_path_factory.mktemp("made") / "a course"
    build(root)
    manifest, checks = course_tool.load("manifest"), course_tool.load("checks")
    for number in (1, 2, 3):
        course = manifest.load_course(root)
        checks.seal(course, course.lesson(number), write=True)
    faults = checks.verify(manifest.load_course(root), [], write=True)
    assert faults == []
    return root


@pytest.fixture
def made(finished, tmp_path, course_tool, capsys):
    """A copy of the finished made-up course for this test."""
    root = tmp_path / "course with spaces и кириллицей"
    shutil.copytree(finished, root)
    return Made(root, course_tool, capsys)


def test_a_finished_course_holds(made):
    status, output = made.run("verify")
    assert status == 0, output
    assert output.endswith("verify: everything holds\n")
    assert "lesson-02  +8   −2   =  10 lines" in output


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
    made.edit(file, old, new)
    status, output = made.run("verify")
    assert status == 1
    assert says in output


def test_verify_finds_an_unlisted_file(made):
    made.write("lesson-03/notes.txt", "psst\n")
    status, output = made.run("verify", "--no-run")
    assert status == 1
    assert "lesson-03/notes.txt: is new, declared unchanged" in output


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
    assert "the step has 154 changed lines, the limit is 150" in output
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


# list and diff


def test_list_names_every_lesson(made):
    status, output = made.run("list")
    assert status == 0
    assert (
        "02  Names\n    A greeting has a name.\n    app.py, greet.py (+8 −2" in output
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
    """Applied to the old file it gives the new one."""
    output = made.run("diff", "02", "03")[1]
    expected = difflib.unified_diff(
        APP_2.splitlines(keepends=True),
        APP_3.splitlines(keepends=True),
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


# test


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


# feed


@pytest.fixture
def repository(made):
    """The made-up course under git, everything committed."""
    for arguments in (
        ["init", "-q"],
        ["config", "user.email", "a@example.org"],
        ["config", "user.name", "A"],
        ["config", "core.autocrlf", "false"],
        ["add", "."],
        ["commit", "-q", "-m", "all"],
    ):
        subprocess.run(["git", *arguments], cwd=made.root, check=True)
    return made


def test_feed_carries_a_fix_on(repository):
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    made.edit("lesson-03/app.py", '"""Greets."""', '"""Greets everybody."""')
    status, output = made.run("feed", "01", "--no-test")
    assert status == 0, output
    assert made.read("lesson-02/app.py") == APP_2.replace('"bye"', '"goodbye"')
    expected = APP_3.replace('"bye"', '"goodbye"').replace(
        "Greets.", "Greets everybody."
    )
    assert made.read("lesson-03/app.py") == expected
    assert made.run("feed", "01", "--no-test")[1].count("nothing to do") == 2


def test_feed_keeps_identical_files_identical(repository):
    made = repository
    made.edit("lesson-02/greet.py", "'world'", "'everybody'")
    made.run("feed", "02", "--no-test")
    assert made.read("lesson-03/greet.py") == made.read("lesson-02/greet.py")


def test_feed_carries_new_and_removed_files(repository):
    made = repository
    made.write("lesson-02/polite.py", "WORD = 1\n")
    (made.root / "lesson-02" / "greet.py").unlink()
    assert made.run("feed", "02", "--no-test")[0] == 0
    assert made.read("lesson-03/polite.py") == "WORD = 1\n"
    assert not (made.root / "lesson-03" / "greet.py").exists()


def test_feed_stops_at_a_conflict_with_nothing_half_merged(repository):
    made = repository
    made.edit("lesson-02/app.py", "    print(greet(name))", "    print(greet(name), 1)")
    made.edit("lesson-02/greet.py", "Hello", "Hi")
    before = made.snapshot()
    status, output = made.run("feed", "02", "--no-test")
    assert status == 1
    assert "stopped at lesson-03" in output
    assert "    print(greet(name), 1)\n=======\n    for each in name.split():" in output
    assert made.snapshot() == before


def test_feed_dry_run_changes_nothing(repository):
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    before = made.snapshot()
    status, output = made.run("feed", "01", "--dry-run")
    assert status == 0
    assert "lesson-02: would change app.py" in output
    assert made.snapshot() == before


def test_feed_takes_an_older_commit_as_its_start(repository):
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    subprocess.run(["git", "commit", "-qam", "fix"], cwd=made.root, check=True)
    assert "nothing to carry" in made.run("feed", "01", "--no-test")[1]
    assert made.run("feed", "01", "--no-test", "--since", "HEAD~1")[0] == 0
    assert "goodbye" in made.read("lesson-03/app.py")
    status, output = made.run("feed", "01", "--since", "nowhere", "--no-test")
    assert status == 1 and "nowhere" in output


def test_merge_agrees_with_git(course_tool, tmp_path):
    """Where both merge, the results are the same; conflicts are the same too."""
    merge = course_tool.load("feed").merge
    base = "".join(f"line {n}\n" for n in range(30))
    ours = base.replace("line 3\n", "LINE 3\nnew\n").replace("line 20\n", "")
    theirs = base.replace("line 9\n", "nine\n").replace("line 29\n", "line 29\nend\n")
    cases = [(ours, theirs), (ours, ours), (base, theirs), (ours, base)]
    cases.append((ours, base.replace("line 3\n", "three\n")))
    for one, other in cases:
        for name, text in (("base", base), ("ours", one), ("theirs", other)):
            (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
        done = subprocess.run(
            ["git", "merge-file", "-p", "ours", "base", "theirs"],
            cwd=tmp_path,
            capture_output=True,
        )
        merged, conflicts = merge(base.encode(), one.encode(), other.encode())
        assert bool(conflicts) == bool(done.returncode)
        if not conflicts:
            assert merged == done.stdout
