"""Runs the commands of the texts as a reader would, on Linux, macOS and Windows.

No shell is used: shells differ.  What a text may use is `python3 …` (the Python that
runs the course tool), `cd DIR`, `echo TEXT`, `cat FILE…`, settings in front
(`LIBRARY=notes python3 …`), a pipe, `< FILE` and `> FILE`, and double quotes.
Programs write to one stream, as on a terminal, in the order in which they wrote.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manifest import CourseError

SHOWN_ROOT = "/home/you/course"  # where the course seems to lie in printed paths
TIME_LIMIT = 120  # seconds
SETTING = re.compile(r"^[A-Z][A-Z0-9_]*=")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "work", "__pycache__", ".*_cache", ".hypothesis", "library.db*"
)
PASSED_ON = (
    *("PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC"),
    *("TEMP", "TMP", "TMPDIR", "LD_LIBRARY_PATH"),
)


@contextmanager
def copy_of(root: Path) -> Iterator[Path]:
    """A copy of the course that commands may change; it is removed afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="course-", ignore_cleanup_errors=True
    ) as name:
        copy = Path(name).resolve() / "course"
        shutil.copytree(root, copy, ignore=NOT_COPIED, ignore_dangling_symlinks=True)
        yield copy


class Terminal:
    """A terminal in `root`, a copy of the course (`original` is where it came from)."""

    def __init__(self, root: Path, original: Path):
        self.root = root
        self.folder = root
        home = root.parent / "home"
        home.mkdir(exist_ok=True)
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env |= {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "COLUMNS": "80",
            "COURSE_PYTHON": "python3",  # texts are the same on every system
            "PYTHONUNBUFFERED": "1",  # errors and output in the order of writing
            "PYTHONDONTWRITEBYTECODE": "1",
            "COURSE_VENV": str(original / ".venv"),
        }

    def run(self, line: str) -> list[str]:
        """Run a command line; the lines that a terminal would show."""
        *sources, last = self.pipeline(line)
        data = b""
        for words in sources:
            data = self.program(words, data, to_terminal=False)
        words, target = redirected(last)
        data = self.program(words, data, to_terminal=target is None)
        if target is not None:
            (self.folder / target).write_bytes(data)
            data = b""
        return self.shown(data)

    def pipeline(self, line: str) -> list[list[str]]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
        lexer.whitespace_split = True
        commands: list[list[str]] = [[]]
        for word in lexer:
            if word == "|":
                commands.append([])
            elif set(word) <= set(";&|<>") and word not in ("<", ">"):
                raise CourseError(f"{word!r} is not understood by every shell: {line}")
            else:
                commands[-1].append(word)
        if not all(commands):
            raise CourseError(f"a command is missing: {line}")
        return commands

    def program(self, words: list[str], data: bytes, to_terminal: bool) -> bytes:
        env = dict(self.env)
        while words and SETTING.match(words[0]):
            name, _, value = words[0].partition("=")
            env[name] = value
            words = words[1:]
        if "<" in words:
            at = words.index("<")
            data = (self.folder / words[at + 1]).read_bytes()
            words = words[:at] + words[at + 2 :]
        name, *arguments = words or [""]
        if name == "cd":
            self.folder = self.place(arguments)
            return b""
        if name == "echo":
            return (" ".join(arguments) + "\n").encode()
        if name == "cat":
            return b"".join((self.folder / file).read_bytes() for file in arguments)
        if name not in ("python3", "python"):
            raise CourseError(
                f"{name!r} is not a command that runs everywhere (see terminal.py)"
            )
        done = subprocess.run(
            [sys.executable, *arguments],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if to_terminal else subprocess.PIPE,
            cwd=self.folder,
            env=env,
            timeout=TIME_LIMIT,
        )
        return done.stdout

    def place(self, arguments: list[str]) -> Path:
        folder = (self.folder / " ".join(arguments)).resolve()
        if not folder.is_dir() or not folder.is_relative_to(self.root):
            raise CourseError(f"cd {' '.join(arguments)}: no such folder in the course")
        return folder

    def shown(self, data: bytes) -> list[str]:
        """Output as lines; the place of the course is that of no one's machine."""
        text = data.decode("utf-8", errors="backslashreplace").replace("\r\n", "\n")
        root = re.escape(str(self.root))
        text = re.sub(
            rf"{root}((?:[\\/][^\\/\s\"':,]+)*)",
            lambda match: SHOWN_ROOT + match[1].replace("\\", "/"),
            text,
        )
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def redirected(words: list[str]) -> tuple[list[str], str | None]:
    """The words of a command without `> FILE`, and the file."""
    if ">" not in words:
        return words, None
    at = words.index(">")
    return words[:at] + words[at + 2 :], words[at + 1]
