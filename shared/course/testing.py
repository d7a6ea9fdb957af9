"""`test`: a virtual environment with the pinned packages, and pytest in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from manifest import CourseError

NO_VENV = """\
This Python cannot make a virtual environment ({reason}).
On Debian and Ubuntu install what is missing:
    sudo apt install python3-venv
and run this command again. Elsewhere install Python from https://www.python.org/."""
NO_INSTALL = """\
The test packages could not be installed into {folder}.
They come from PyPI, so the first run needs the network; pip's own words are above."""


def environment_folder(root: Path) -> Path:
    """Where the test packages are; texts run in a copy use the original's."""
    return Path(os.environ.get("COURSE_VENV") or root / ".venv")


def python_in(folder: Path) -> Path:
    """The Python of a virtual environment, on Windows and elsewhere."""
    if sys.platform == "win32":
        return folder / "Scripts" / "python.exe"
    return folder / "bin" / "python"


def pinned_packages(root: Path) -> list[str]:
    """The test packages with their versions, from pyproject.toml."""
    data = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return data["dependency-groups"]["test"]


def prepare(root: Path) -> Path:
    """Make .venv and install the pinned packages where needed; its Python.

    A file in .venv keeps what was installed, so that the next run begins at once
    and needs no network.
    """
    folder = environment_folder(root)
    python = python_in(folder)
    packages = pinned_packages(root)
    mark = folder / "installed-for-the-course"
    wanted = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    installed = mark.read_text(encoding="utf-8").strip() if mark.is_file() else ""
    if python.exists() and installed == wanted:
        return python
    if not has_pip(python):
        make_environment(folder)
    print(f"Installing the test packages into {folder} …", file=sys.stderr, flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", *packages]
    quiet = ["--disable-pip-version-check", "--no-input"]
    if subprocess.run([*install, *quiet], stdout=sys.stderr).returncode:
        raise CourseError(NO_INSTALL.format(folder=folder))
    mark.write_text(wanted + "\n", encoding="utf-8")
    return python


def has_pip(python: Path) -> bool:
    """Whether this Python starts and has pip (an attempt may have left half of one)."""
    try:
        command = [str(python), "-m", "pip", "--version"]
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def make_environment(folder: Path) -> None:
    """Make a virtual environment; CourseError says what to install for it."""
    print(f"Making {folder} …", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        lines = [line for line in done.stdout.split("\n") if line.strip()]
        reason = lines[-1].strip() if lines else "no reason given"
        if "ensurepip" in done.stdout:
            reason = "ensurepip is missing"
        if "No module named venv" in done.stdout:
            reason = "the module venv is missing"
        raise CourseError(NO_VENV.format(reason=reason))


def pytest_command(python: Path, arguments: list[str]) -> list[str]:
    return [str(python), "-m", "pytest", *arguments]


def run_tests(root: Path, arguments: list[str]) -> int:
    """Run pytest on the whole course, on two processes unless told otherwise."""
    python = prepare(root)
    own = any(each in ("-n", "--pdb", "-s") for each in arguments)
    command = pytest_command(python, [*([] if own else ["-n", "2"]), *arguments])
    return subprocess.run(command, cwd=root).returncode
