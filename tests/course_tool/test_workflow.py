"""The workflow for a class's own repository: its script, run here as it stands."""

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[2]
WORKFLOW = COURSE / "shared" / "classroom-workflow.yml"

TESTS = """
import pytest


@pytest.mark.lessons(2)
@pytest.mark.task("greet")
def test_the_name_is_greeted(lesson):
    assert lesson.load("greet").greet("Ben") == "Hello, Ben", "greet by name"
"""


def script() -> str:
    """The commands of the workflow's last step."""
    text = WORKFLOW.read_text(encoding="utf-8")
    return textwrap.dedent(text.split("        run: |\n", 1)[1])


@pytest.fixture
def repository(made, tmp_path):
    """A class's repository with the made-up course beside its lessons."""
    root = tmp_path / "class"
    root.mkdir()
    course = shutil.move(made.root, root / "course")
    leftovers = shutil.ignore_patterns("__pycache__")
    tool = course / "shared" / "course"
    shutil.copytree(COURSE / "shared" / "course", tool, ignore=leftovers)
    shutil.copy(COURSE / "pyproject.toml", course)
    (course / "tests").mkdir()
    shutil.copy(COURSE / "tests" / "conftest.py", course / "tests")
    (course / "tests" / "test_greet.py").write_text(TESTS, encoding="utf-8")
    return root


@pytest.fixture
def environment(course_tool, tmp_path):
    """A PATH with `python`, and a .venv that has everything already."""
    folder = tmp_path / "venv"
    packages = course_tool.load("testing").pinned_packages(COURSE)
    mark = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    (folder / "bin").mkdir(parents=True)
    (folder / "installed-for-the-course").write_text(mark, encoding="utf-8")
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COURSE_VENV": str(folder)}


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for bash")
def test_every_lesson_of_the_repository_is_checked(repository, environment):
    def run() -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script()],
            cwd=repository,
            env=environment,
            capture_output=True,
            encoding="utf-8",
        )

    nothing = run()
    assert (nothing.returncode, nothing.stdout) == (0, ""), nothing.stderr
    reference = repository / "course" / "lesson-02"
    mine = Path(shutil.copytree(reference, repository / "lesson-02"))
    solved = run()
    assert solved.returncode == 0, solved.stdout + solved.stderr
    assert "2.1 greet: solved" in solved.stdout
    text = (mine / "greet.py").read_text(encoding="utf-8")
    wrong = text.replace("{name or 'world'}", "world")
    (mine / "greet.py").write_text(wrong, encoding="utf-8")
    failed = run()
    assert failed.returncode == 1
    assert "greet by name" in failed.stdout


def test_the_workflow_fetches_the_course_and_a_python_that_it_accepts():
    text = WORKFLOW.read_text(encoding="utf-8")
    assert "path: course\n" in text and "repository: OWNER/COURSE\n" in text
    assert 'python-version: "3.12"' in text and "\t" not in text
