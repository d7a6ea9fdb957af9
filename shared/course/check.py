"""`check`: what already works in a learner's folder, in words.

The tests of the lesson run in a process of their own.  They write what happened as
JSON lines (see tests/conftest.py); here it is told task by task.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import testing
from exercises import find_function, is_empty, reference
from manifest import Course, CourseError, Exercise, Lesson
from parsing import parse
from spelling import prose
from step import is_of_a_lesson

NOT_UTF_8 = """\
Python cannot read {name}: {name} is not saved as UTF-8.
    Save it again as UTF-8; many editors ask for the encoding under "Save as"."""
ENDLESS = """\
no end after {seconds} seconds: this looks like an endless loop. \
Does every loop come nearer to its end each time round?"""
ENDED = """\
Python itself ended in the middle of this test (exit status {status}). \
Does something end the whole program, as os._exit() and KeyboardInterrupt do?"""
OUT_OF_TIME = "all tests together took more than {seconds} seconds"
TEST_SECONDS = 20  # one test may take so long; then it counts as an endless loop
ALL_SECONDS = 300  # all tests of a lesson together
WATCH_SECONDS = 0.5  # between two looks at the files with --watch


@dataclass
class Verdict:
    """What is known about one exercise of a learner.

    `problem` is what keeps the tests from being run at all, in plain words.
    """

    exercise: Exercise
    problem: str = ""
    passed: int = 0
    failures: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.passed + len(self.failures)

    @property
    def solved(self) -> bool:
        return not self.problem and not self.failures and self.passed > 0

    @property
    def points(self) -> float:
        """From 0 to 1: the share of the tests that pass."""
        return self.passed / self.total if self.total and not self.problem else 0.0


def check(
    course: Course, lesson: Lesson, folder: Path, env: dict[str, str] | None = None
) -> list[Verdict]:
    """A verdict on every exercise that has a function."""
    if not folder.is_dir():
        raise CourseError(
            f"there is no folder {folder}; make one with: "
            f"python3 shared/course start {lesson.number:02}"
        )
    verdicts = [looked_at(lesson, e, folder) for e in lesson.exercises if e.is_emptied]
    broken = unreadable(folder)
    if broken:
        for verdict in verdicts:
            verdict.problem = verdict.problem or broken
        return verdicts
    tried = [verdict for verdict in verdicts if not verdict.problem]
    if tried:
        lines = run_tests(course, lesson, [folder], env or {})
        for verdict in tried:
            judge(verdict, lines)
    return verdicts


def looked_at(lesson: Lesson, exercise: Exercise, folder: Path) -> Verdict:
    """What can be said without running anything."""
    verdict = Verdict(exercise)
    path = folder / exercise.file
    if not path.is_file():
        verdict.problem = f"the file {exercise.file} is missing"
        return verdict
    verdict.problem = syntax_problem(path)
    if verdict.problem:
        return verdict
    node = find_function(parsed(path), exercise.function)
    if node is None:
        verdict.problem = (
            f"{exercise.file} has no function {exercise.function} any more. "
            "Was it renamed, or indented into another one?"
        )
    elif is_empty(node):
        verdict.problem = "not begun: the function still raises NotImplementedError"
    else:
        original = find_function(
            parse(reference(lesson, exercise.file)), exercise.function
        )
        if calls(node, "print") and not (original and calls(original, "print")):
            verdict.notes.append(
                f"{exercise.function} prints something. It should only return its "
                "result: what it prints stands in the way of the app's own output."
            )
    return verdict


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, decoded as Python does before it runs it."""
    with tokenize.open(path) as file:
        return parse(file.read())


def calls(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id == name
        for each in ast.walk(node)
    )


def syntax_problem(path: Path) -> str:
    """What Python cannot read in a file, in plain words; "" if it can."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except (SyntaxError, UnicodeDecodeError):
        return NOT_UTF_8.format(name=path.name)
    if "\0" in source:  # UTF-16 of plain ASCII
        return NOT_UTF_8.format(name=path.name)
    try:
        parse(source)
    except SyntaxError as error:
        line = (error.text or "").strip()
        shown = f"\n    {line}" if line else ""
        return (
            f"Python cannot read {path.name}, line {error.lineno}: {error.msg}{shown}\n"
            "    Often the mistake is one line above: a bracket, a quote or a colon."
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return f"Python cannot read {path.name}: {error or 'it is nested too deeply'}"
    return ""


def unreadable(folder: Path) -> str:
    """The first file of the folder that is no Python, since nothing runs then."""
    paths = [path for path in sorted(folder.glob("*.py")) if is_of_a_lesson(path.name)]
    problems = (syntax_problem(path) for path in paths if path.is_file())
    return next((problem for problem in problems if problem), "")


def run_tests(
    course: Course,
    lesson: Lesson,
    folders: list[Path],
    env: dict[str, str],
    task: str | None = None,
    to_first_failure: bool = False,
) -> list[dict]:
    """The records of all tests that judge an exercise of the lesson, or this one.

    Several folders are several answers, tried in one process; `folder` of a record
    says which it was.  With `to_first_failure` no more is tried on a folder then.
    """
    python = testing.prepare(course.root)
    emptied = [exercise.name for exercise in lesson.exercises if exercise.is_emptied]
    names = [task] if task else emptied
    watched = [
        f"{Path(exercise.file).stem}.{exercise.function}"
        for exercise in lesson.exercises
        if exercise.is_emptied and "." not in exercise.function
    ]
    with tempfile.TemporaryDirectory(prefix="check-", dir=env.get("TMPDIR")) as place:
        record = Path(place, "record.jsonl")
        arguments = [
            *judging_files(course.root, names),
            "-m",
            "task",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--lesson={lesson.number:02}",
            *(f"--folder={folder.resolve()}" for folder in folders),
            f"--record={record}",
            f"--basetemp={Path(place, 'tests')}",
            *(f"--task={name}" for name in names),
            *(["--first-failure"] if to_first_failure else []),
        ]
        command = testing.pytest_command(python, arguments)
        settings = {
            "COURSE_TASKS": ",".join(watched),
            "COURSE_TEST_SECONDS": str(TEST_SECONDS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(place, "hypothesis")),
        }
        deadline = time.monotonic() + ALL_SECONDS * len(folders)
        output = ""
        ended: dict[str, str] = {}  # why the tests that began did not end
        # A test that hangs ends the process; the next one goes on behind it.
        while time.monotonic() < deadline:
            before = len(read_record(record))
            status, output = run_apart(
                command, course.root, os.environ | settings | env, deadline
            )
            stopped = [
                line["test"]
                for line in unfinished(read_record(record))
                if line["test"] not in ended
            ]
            if status in (0, 1, 5) and not stopped:
                break
            if len(read_record(record)) == before:
                break
            ended |= dict.fromkeys(stopped, why_it_ended(record, status, deadline))
        lines = read_record(record)
        if not lines and status != 5:
            raise CourseError(f"the tests cannot be run:\n{output[-2000:]}")
        return finished(lines, ended)


def why_it_ended(record: Path, status: int, deadline: float) -> str:
    """Why the last test did not end; the record was written when it began."""
    if time.time() - record.stat().st_mtime >= TEST_SECONDS:
        return ENDLESS.format(seconds=TEST_SECONDS)
    if time.monotonic() >= deadline:
        return OUT_OF_TIME.format(seconds=ALL_SECONDS)
    return ENDED.format(status=status)


def judging_files(root: Path, names: list[str]) -> list[str]:
    """The test files that judge one of these exercises; reading all takes longer."""
    quoted = "|".join(re.escape(f'"{name}"') for name in names)
    mark = re.compile(rf"\bmark\.task\([^)]*(?:{quoted})")
    return [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").glob("test_*.py"))
        if mark.search(path.read_text(encoding="utf-8"))
    ] or ["tests"]


def run_apart(
    command: list[str], root: Path, env: dict[str, str], deadline: float
) -> tuple[int, str]:
    """Run a command with everything it starts; all of it ends with it."""
    process = subprocess.Popen(
        command,
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=sys.platform != "win32",
    )
    try:
        output, _ = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end_with_children(process)
        output, _ = process.communicate()
    finally:
        end_with_children(process)
    return process.returncode, output.decode("utf-8", errors="replace")


def end_with_children(process: subprocess.Popen) -> None:
    if sys.platform == "win32":
        if process.poll() is None:
            kill = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(kill, capture_output=True)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def read_record(path: Path) -> list[dict]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return []
    found = []
    for line in text.split("\n"):
        with contextlib.suppress(ValueError):  # a process may end in mid-line
            found.append(json.loads(line))
    return found


def unfinished(lines: list[dict]) -> list[dict]:
    """Tests that began and did not end."""
    ended = {line["test"] for line in lines if line["outcome"] != "began"}
    began = [line for line in lines if line["outcome"] == "began"]
    return [line for line in began if line["test"] not in ended]


def finished(lines: list[dict], ended: dict[str, str]) -> list[dict]:
    """One record per test, in their order; one that never ended has failed."""
    return [
        line | {"outcome": "failed", "message": ended[line["test"]]}
        if line["outcome"] == "began"
        else line
        for line in lines
        if line["outcome"] != "began" or line["test"] in ended
    ]


def judge(verdict: Verdict, lines: list[dict]) -> None:
    for line in lines:
        if verdict.exercise.name in line["tasks"]:
            if line["outcome"] == "passed":
                verdict.passed += 1
            elif line["outcome"] == "failed":
                verdict.failures.append(line)
    if not verdict.total:
        verdict.problem = "no test judges this exercise"


def told(
    course: Course, lesson: Lesson, folder: Path, verdicts: list[Verdict]
) -> Iterator[str]:
    """The verdicts in words."""
    yield f"Lesson {lesson.number:02}, {shown_folder(course, folder)}"
    for verdict in verdicts:
        exercise = verdict.exercise
        number = lesson.exercises.index(exercise) + 1
        yield ""
        yield f"{lesson.number}.{number} {exercise.name}: {in_short(verdict)}"
        if verdict.problem:
            yield f"    {verdict.problem}"
        for note in verdict.notes:
            yield f"    {note}"
        if verdict.failures:
            yield from failure(verdict.failures[0], exercise)
        if not verdict.solved:
            yield (
                f"    A hint: python3 shared/course hint {lesson.number:02} "
                f"{exercise.name}"
            )
    solved = sum(verdict.solved for verdict in verdicts)
    yield ""
    yield f"{solved} of {len(verdicts)} exercises solved"
    words = [exercise.name for exercise in lesson.exercises if not exercise.is_emptied]
    if words:
        yield (
            f"To be answered in words, then compared with `solution`: "
            f"{', '.join(words)}"
        )


def shown_folder(course: Course, folder: Path) -> str:
    resolved = folder.resolve()
    if resolved.is_relative_to(course.root):
        return resolved.relative_to(course.root).as_posix()
    return str(folder)


def in_short(verdict: Verdict) -> str:
    if verdict.solved:
        return f"solved ({verdict.passed} {'test' if verdict.passed == 1 else 'tests'})"
    if verdict.problem:
        return "not yet"
    return f"not yet ({verdict.passed} of {verdict.total} tests pass)"


def failure(line: dict, exercise: Exercise) -> Iterator[str]:
    """One failing test: what was called, what came back, what was expected."""
    yield prose(first_sentence(line["says"]), indent=4)
    call = line.get("calls", {}).get(exercise.function)
    if call:
        yield f"      called:    {call['called']}"
        if "raised" in call:
            yield f"      raised:    {call['raised']}"
        elif "returned" in call:
            yield f"      came back: {call['returned']}"
    if "expected" in line:
        yield f"      expected:  {line['expected']}"
    message = plain_message(line.get("message", ""))
    if message and not (call and call.get("raised") == message):
        yield from (prose(each, indent=6) for each in message.split("\n"))


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring, or the name of a test as words."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    if paragraph.startswith("test_"):
        return paragraph.removeprefix("test_").replace("_", " ")
    return paragraph


def plain_message(message: str) -> str:
    """An assertion's own words, without pytest's account of the expression."""
    lines = re.sub("^(AssertionError|Failed): ", "", message).split("\n")
    kept = []
    for line in lines:
        if line.startswith(("assert ", " + ", "  +")):
            break
        kept.append(line)
    return "\n".join(kept).strip()


def saved_at(folder: Path) -> dict[Path, int]:
    """When each Python file of the folder was last written (nanoseconds)."""
    found = {}
    for path in folder.rglob("*.py"):
        with contextlib.suppress(OSError):  # an editor may be replacing it just now
            found[path] = path.stat().st_mtime_ns
    return found


def wait_for_save(folder: Path, seen: dict[Path, int]) -> None:
    """Return as soon as a file is not as it was `seen`."""
    while saved_at(folder) == seen:
        time.sleep(WATCH_SECONDS)
