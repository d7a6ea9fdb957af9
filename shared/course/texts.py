"""Texts that are run: every block of a chapter is compared with what is so.

What the language of a fenced block means:

    console     Lines "$ command" are run in the course's folder (terminal.py), each
                followed by exactly what it prints.  A whole line `[…]` stands for
                any number of lines; the others must come in their order.
    python      Stands word for word in a file of the lesson, or is a session (>>>)
                that is run with the lesson's folder as import path; the sessions of a
                text share their names.  ```python context.py pack``` is written by
                `verify --write`: that piece of that file; so is a whole file
                without a name.  Outside a chapter: ```python lesson-07/context.py```
    diff        A contiguous piece of the step.  ```diff app.py main``` is written by
                `verify --write`: how that function (or "imports", "docstring",
                "main block" with _ for the blank) changes.
    powershell  The commands of a console block of this text as typed on Windows.
    sh          Commands that only a person runs (git clone, ollama pull).  Scripts
                of the course that they name must exist.
    text, json, toml, yaml, html, css, sql, markdown, mermaid     are shown only.

`write=True` puts what was found into the blocks instead of reporting it.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import generated
from manifest import Course, CourseError, Lesson
from markdown import Block, Generated, Text, parse
from pieces import pieces
from step import contents
from terminal import TIME_LIMIT, Terminal, copy_of

ELISION = "[…]"
SHOWN_ONLY = {"text", "json", "toml", "yaml", "html", "css", "sql", "markdown"}
SHOWN_ONLY |= {"mermaid"}
PROMPT = "$ "


def texts_of(course: Course) -> list[tuple[Path, Lesson | None]]:
    """All texts that are run: README.md, the chapters, shared/*.md."""
    found: list[tuple[Path, Lesson | None]] = [(course.root / "README.md", None)]
    found += [(lesson.chapter, lesson) for lesson in course.lessons]
    found += [(path, None) for path in sorted((course.root / "shared").glob("*.md"))]
    return [(path, lesson) for path, lesson in found if path.is_file()]


def check_text(
    course: Course,
    path: Path,
    lesson: Lesson | None,
    write: bool = False,
    run: bool = True,
) -> list[str]:
    """Faults of a text, each beginning with file and line.  May rewrite the text."""
    name = path.relative_to(course.root).as_posix()
    try:
        text = parse(path, name)
    except ValueError as error:
        return [f"{name}:{error}"]
    before = text.source()
    checker = Checker(course, text, lesson, write)
    faults = checker.regions() + checker.quoted_code()
    if run and any(block.language in ("console", "python") for block in text.blocks):
        with copy_of(course.root) as copy:
            faults += checker.executed(Terminal(copy, course.root))
    if write and text.source() != before:
        path.write_text(text.source(), encoding="utf-8", newline="\n")
    return sorted(faults, key=line_of_fault)


def line_of_fault(fault: str) -> int:
    match = re.match(r"[^:]*:(\d+)", fault)
    return int(match[1]) if match else 0


class Checker:
    """The checks of one text."""

    def __init__(
        self, course: Course, text: Text, lesson: Lesson | None, write: bool
    ) -> None:
        self.course = course
        self.text = text
        self.lesson = lesson
        self.write = write

    def fault(
        self, block: Block | Generated, message: str, detail: Iterable[str] = ()
    ) -> str:
        lines = [f"{self.text.name}:{block.line}: {message}"]
        return "\n".join(lines + [f"    {line}" for line in detail])

    def expect(
        self, block: Block | Generated, wanted: list[str], what: str
    ) -> list[str]:
        """Compare a block's lines with what they should be, or write them."""
        if block.lines == wanted:
            return []
        if self.write:
            block.lines = wanted
            return []
        difference = difflib.unified_diff(block.lines, wanted, lineterm="", n=1)
        detail = [line for line in difference if not line.startswith(("---", "+++"))]
        return [self.fault(block, what, detail[:40])]

    # Regions between <!-- generated: … --> marks

    def regions(self) -> list[str]:
        faults = []
        for region in self.text.generated:
            try:
                wanted = generated.region(self.course, self.lesson, region.name)
            except CourseError as error:
                faults.append(self.fault(region, str(error)))
                continue
            stale = f"the generated block {region.name!r} is stale: run verify --write"
            faults += self.expect(region, wanted, stale)
        return faults

    # Blocks that are compared with files

    def quoted_code(self) -> list[str]:
        faults = []
        for block in self.text.blocks:
            try:
                faults += self.quoted(block)
            except (CourseError, SyntaxError) as error:
                faults.append(self.fault(block, str(error)))
        return faults

    def quoted(self, block: Block) -> list[str]:
        if block.language == "python" and not is_session(block):
            return self.listing(block)
        if block.language == "diff":
            return self.difference(block)
        if block.language == "powershell":
            return self.powershell(block)
        if block.language == "sh":
            return self.typed(block)
        if block.language not in ("console", "python", *SHOWN_ONLY):
            named = block.language or "no language"
            return [self.fault(block, f"a block with {named} is not checked by anyone")]
        return []

    def listing(self, block: Block) -> list[str]:
        files = self.python_files(block)
        if block.words and (len(block.words) > 1 or not any(block.lines)):
            (source,) = files.values()
            wanted = cut_out(source, block.words)
            what = "this is not what the file says: run verify --write"
            return self.expect(block, wanted, what)
        if any(stands_in(block.lines, source) for source in files.values()):
            return []
        where = block.words[0] if block.words else "any file of the lesson"
        return [self.fault(block, f"this code does not stand in {where}")]

    def python_files(self, block: Block) -> dict[str, str]:
        """The files that a listing may come from: the named one, or the lesson's."""
        if block.words:
            name = block.words[0]
            path = self.course.root / name
            if self.lesson and not path.is_file():
                path = self.lesson.folder / name
            if not path.is_file():
                raise CourseError(f"there is no file {name}")
            return {name: path.read_text(encoding="utf-8")}
        if not self.lesson:
            raise CourseError("say which file this is: ```python lesson-07/context.py")
        return contents(self.lesson.folder)

    def difference(self, block: Block) -> list[str]:
        if not self.lesson:
            raise CourseError("only a chapter has a step to show as a diff")
        before = self.course.before(self.lesson)
        old = contents(before.folder if before else None)
        new = contents(self.lesson.folder)
        if block.words:
            file = block.words[0]
            if file not in old and file not in new:
                raise CourseError(f"there is no file {file} in this step")
            if len(block.words) > 1 or not any(block.lines):
                names = [name.replace("_block", " block") for name in block.words[1:]]
                wanted = diff_of(old.get(file, ""), new.get(file, ""), names)
                what = "this is not the step: run verify --write"
                return self.expect(block, wanted, what)
            old = {file: old.get(file, "")}
            new = {file: new.get(file, "")}
        steps = [
            whole_diff(old.get(file, ""), new.get(file, ""))
            for file in sorted({*old, *new})
            if old.get(file) != new.get(file)
        ]
        for piece in hunks(block.lines):
            if not any(contains(step, piece) for step in steps):
                what = "these lines are no contiguous piece of the step"
                return [self.fault(block, what, piece[:12])]
        return []

    def powershell(self, block: Block) -> list[str]:
        known = {
            line.removeprefix(PROMPT)
            for other in self.text.blocks
            if other.language in ("console", "sh")
            for line in other.lines
        }
        return [
            self.fault(block, f"no console block has this command: {line}")
            for line in block.lines
            if line.strip() and as_in_bash(line) not in known
        ]

    def typed(self, block: Block) -> list[str]:
        faults = []
        for line in block.lines:
            for script in re.findall(r"\bpython3? (\S+)", line):
                relative = not script.startswith(("-", "/", "~", "."))
                if relative and not (self.course.root / script).exists():
                    faults.append(self.fault(block, f"there is no {script}"))
        return faults

    # Blocks that are run

    def executed(self, terminal: Terminal) -> list[str]:
        faults = []
        for block in self.text.blocks:
            try:
                if block.language == "console":
                    terminal.folder = terminal.root
                    faults += self.console(block, terminal)
            except (CourseError, OSError, subprocess.TimeoutExpired) as error:
                faults.append(self.fault(block, str(error)))
        return faults + self.sessions(terminal)

    def console(self, block: Block, terminal: Terminal) -> list[str]:
        faults = []
        wanted: list[str] = []
        commands = list(commands_of(block.lines))
        if not commands or not block.lines[0].startswith(PROMPT):
            raise CourseError(f"a console block begins with a line {PROMPT!r}command")
        for command, expected in commands:
            output = terminal.run(command)
            if any(line.startswith(PROMPT) for line in output):
                raise CourseError(f"the output of {command!r} looks like a command")
            if any(line.startswith("Traceback (most recent") for line in output):
                faults.append(self.fault(block, f"{command}: a traceback", output))
            shown = output if not matches(expected, output) else expected
            if shown != expected and ELISION in expected:
                shown = elided(expected, output)
            wanted += [PROMPT + command, *shown]
        what = "the output is another one"
        return faults + self.expect(block, wanted, what)

    def sessions(self, terminal: Terminal) -> list[str]:
        """The doctest sessions of the text, run in one process of their own."""
        blocks = [b for b in self.text.blocks if b.language == "python"]
        blocks = [block for block in blocks if is_session(block)]
        if not blocks:
            return []
        folder = terminal.root
        if self.lesson:
            folder = terminal.root / self.lesson.name
        done = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("session.py"))],
            input=json.dumps(["\n".join(block.lines) for block in blocks]).encode(),
            capture_output=True,
            cwd=terminal.root,
            env=terminal.env | {"PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"},
            timeout=TIME_LIMIT,
        )
        if done.returncode:
            problem = done.stderr.decode("utf-8", errors="replace").split("\n")
            return [self.fault(blocks[0], "the session cannot be run", problem[-12:])]
        faults = []
        results = json.loads(done.stdout.decode("utf-8"))
        for block, wanted in zip(blocks, results, strict=True):
            shown = terminal.shown(wanted.encode())
            faults += self.expect(block, shown, "the session gives something else")
        return faults


def is_session(block: Block) -> bool:
    return any(line.lstrip().startswith(">>> ") for line in block.lines)


def commands_of(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Every command of a console block with the output written below it."""
    command: str | None = None
    output: list[str] = []
    for line in lines:
        if line.startswith(PROMPT):
            if command is not None:
                yield command, output
            command, output = line.removeprefix(PROMPT), []
        else:
            output.append(line)
    if command is not None:
        yield command, output


def matches(expected: list[str], output: list[str]) -> bool:
    """Whether output is as expected, where `[…]` stands for any lines."""
    if ELISION not in expected:
        return expected == output
    at = expected.index(ELISION)
    head, rest = expected[:at], expected[at + 1 :]
    if output[:at] != head:
        return False
    return any(matches(rest, output[i:]) for i in range(at, len(output) + 1))


def elided(expected: list[str], output: list[str]) -> list[str]:
    """New output cut like the old: as many lines before and after the one `[…]`.

    With more than one, or where nothing would be left out, all lines are given.
    """
    before = expected.index(ELISION)
    after = len(expected) - before - 1
    if expected.count(ELISION) > 1 or before + after >= len(output):
        return output
    return [*output[:before], ELISION, *output[len(output) - after :]]


def as_in_bash(line: str) -> str:
    """A PowerShell command as bash has it."""
    line = re.sub(r'\$env:(\w+) ?= ?"([^" ]*)"; ?', r"\1=\2 ", line.strip())
    line = re.sub(r'\$env:(\w+) ?= ?("[^"]*"); ?', r"\1=\2 ", line)
    line = re.sub(r"(^| )(python|py)(?= )", r"\1python3", line)
    return re.sub(r"[\w.-]*\\[\w.\\-]*", lambda path: path[0].replace("\\", "/"), line)


def cut_out(source: str, words: list[str]) -> list[str]:
    """The named pieces of a file, or all of it."""
    file, *names = words
    if not names:
        return source.rstrip("\n").split("\n")
    found = pieces(source)
    lines: list[str] = []
    for name in (name.replace("_block", " block") for name in names):
        chosen = [found[name]] if name in found else []
        chosen += [p for each, p in found.items() if each.startswith(f"{name}.")]
        if not chosen:
            raise CourseError(f"{file} has no {name!r}")
        blank = [""] if name in ("imports",) or name.isupper() else ["", ""]
        for index, piece in enumerate(chosen):
            separator = [""] if index else blank
            lines += (separator if lines else []) + piece.text.split("\n")
    return lines


def stands_in(block: list[str], source: str) -> bool:
    """Whether the lines stand in a file, maybe indented deeper there."""
    wanted = [line.rstrip() for line in block]
    lines = [line.rstrip() for line in source.split("\n")]
    size = len(wanted)
    for start in range(len(lines) - size + 1):
        part = lines[start : start + size]
        margin = min(
            (len(line) - len(line.lstrip()) for line in part if line), default=0
        )
        if part == wanted or [line[margin:] for line in part] == wanted:
            return True
    return False


def diff_of(old: str, new: str, names: list[str]) -> list[str]:
    """The difference of two files, or of their named pieces, as hunks."""
    if not names:
        return changed_hunks(old, new)
    before, after = (pieces(source) for source in (old, new))
    lines: list[str] = []
    for name in names:
        found = [piece for piece in (before.get(name), after.get(name)) if piece]
        if not found:
            raise CourseError(f"neither lesson has {name!r} in this file")
        texts = (
            before[name].text if name in before else "",
            after[name].text if name in after else "",
        )
        if texts[0] == texts[1]:
            raise CourseError(f"{name!r} does not change in this step")
        if lines:
            lines.append("@@")
        lines += changed_hunks(*texts)
    return lines


def changed_hunks(old: str, new: str) -> list[str]:
    """A unified diff without its head, hunks parted by "@@"."""
    a, b = (text.split("\n") if text else [] for text in (old, new))
    lines = list(difflib.unified_diff(a, b, lineterm=""))[3:]
    return ["@@" if line.startswith("@@") else line.rstrip() for line in lines]


def whole_diff(old: str, new: str) -> list[str]:
    """A unified diff with everything around the changes."""
    a, b = (text.split("\n") if text else [] for text in (old, new))
    lines = difflib.unified_diff(a, b, lineterm="", n=max(len(a), len(b)))
    return [line.rstrip() for line in lines][3:]


def hunks(lines: list[str]) -> list[list[str]]:
    """A diff block as runs of lines that belong together."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.startswith(("@@", "--- ", "+++ ", "diff ")):
            found.append([])
        else:
            found[-1].append(line.rstrip())
    return [hunk for hunk in found if any(hunk)]


def contains(lines: list[str], run: list[str]) -> bool:
    return any(lines[i : i + len(run)] == run for i in range(len(lines) - len(run) + 1))
