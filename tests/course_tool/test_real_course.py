"""`feed` on the real course, in a copy under git."""

import difflib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[2]

TEST = """
import pytest


@pytest.mark.lessons(2)
def test_the_app_starts(lesson):
    assert lesson.run("--help").status == 0
"""


@pytest.fixture
def copy(tmp_path, course_tool, monkeypatch):
    """The lessons and the manifest, committed, with one quick test for each."""
    testing = course_tool.load("testing")
    monkeypatch.setattr(testing, "prepare", lambda root: Path(sys.executable))
    root = tmp_path / "course"
    leftovers = shutil.ignore_patterns("__pycache__", ".*", "library.db*")
    for folder in sorted(COURSE.glob("lesson-[0-9][0-9]")):
        shutil.copytree(folder, root / folder.name, ignore=leftovers)
    for file in ("shared/course.toml", "pyproject.toml", "tests/conftest.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(COURSE / file, root / file)
    (root / "tests" / "test_start.py").write_text(TEST, encoding="utf-8")
    for arguments in (
        ["init", "-q"],
        ["config", "user.email", "a@example.org"],
        ["config", "user.name", "A"],
        ["config", "core.autocrlf", "false"],
        ["add", "."],
        ["commit", "-q", "-m", "all"],
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


def feed(course_tool, root, *arguments) -> int:
    manifest = course_tool.load("manifest")
    main = course_tool.load("verbs").main
    return main(["feed", "03", "--root", str(root), *arguments], manifest.load_course)


def text(root: Path, number: int, file: str) -> str:
    return (root / f"lesson-{number:02}" / file).read_bytes().decode("utf-8")


def later_lessons(root: Path) -> list[int]:
    folders = sorted(root.glob("lesson-[0-9][0-9]"))
    return [number for f in folders if (number := int(f.name[-2:])) > 3]


def changed_files(root: Path) -> set[str]:
    done = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return {line[3:] for line in done.stdout.split("\n") if line}


def test_a_fix_arrives_in_all_later_lessons(copy, course_tool, capfd):
    path = copy / "lesson-03" / "console.py"
    before = text(copy, 3, "console.py")
    path.write_bytes(before.replace('"""', '"""Fixed: ', 1).encode("utf-8"))
    same = [n for n in later_lessons(copy) if text(copy, n, "console.py") == before]

    assert feed(course_tool, copy, "--dry-run") == 0
    assert changed_files(copy) == {"lesson-03/console.py"}

    assert feed(course_tool, copy) == 0
    assert same
    for number in same:
        assert text(copy, number, "console.py") == text(copy, 3, "console.py")
    output = capfd.readouterr().out
    assert output.count("1 passed") == 1 + len(later_lessons(copy))
    assert "carried into every lesson" in output


def test_a_conflict_stops_with_both_versions_shown(copy, course_tool, capsys):
    """A line that lesson 04 replaces is changed in lesson 03."""
    old, new = text(copy, 3, "app.py"), text(copy, 4, "app.py")
    steps = difflib.ndiff(old.split("\n"), new.split("\n"))
    line = next(
        each[2:] for each in steps if each.startswith("- ") and each[2:].strip()
    )
    fixed = old.replace(line, line + "  # fixed", 1)
    (copy / "lesson-03" / "app.py").write_bytes(fixed.encode("utf-8"))
    assert feed(course_tool, copy, "--no-test") == 1
    output = capsys.readouterr().out
    assert "stopped at lesson-04" in output
    assert line + "  # fixed" in output and "=======" in output
    assert changed_files(copy) == {"lesson-03/app.py"}
