"""The course tool is tried on a small made-up course of three lessons: `made`."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
