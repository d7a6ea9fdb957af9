"""The verbs of the course tool: how each is called, its help, what it does.

The help texts are written by hand, so that they read well and are the same under
every version of Python; the README shows them and `verify` compares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import check as checking
import checks
import doctor
import exercises
import feed
import grade
import page
import show
import testing
from manifest import Course, CourseError
from spelling import as_typed


@dataclass(frozen=True)
class Verb:
    """`run(course, options)` returns the exit status.

    With `passes_on`, arguments that are not the verb's own are `options.arguments`.
    """

    summary: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Course, argparse.Namespace], int]
    passes_on: bool = False


def number(text: str) -> int:
    """A lesson's number as people type it: 7, 07, lesson-07 or lesson-07/."""
    digits = text.rstrip("/\\").removeprefix("lesson-")
    if not (digits.isascii() and digits.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no lesson; type 07, for example")
    return int(digits)


def list_(course: Course, options: argparse.Namespace) -> int:
    for line in show.list_lessons(course):
        print(line)
    return 0


LIST = Verb(
    "the lessons: idea, files, size of the step",
    """
usage: python3 shared/course list

Lists the lessons: the idea, the files that change, the size of the step.

Example:
  python3 shared/course list
""",
    lambda parser: None,
    list_,
)


def diff(course: Course, options: argparse.Namespace) -> int:
    before, after = (course.lesson(each) for each in (options.before, options.after))
    if options.html:
        text = page.page(course, before, after, options.text)
        try:
            options.html.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise CourseError(f"the page cannot be written: {error}") from error
        print(f"written: {options.html}")
        return 0
    colour = show.shows_colour()
    for line in show.diff(course, before, after, options.text):
        print(show.coloured(line) if colour else line)
    return 0


def diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=number)
    parser.add_argument("after", type=number)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--html", type=Path)


DIFF = Verb(
    "the step between two lessons, in reading order",
    """
usage: python3 shared/course diff BEFORE AFTER [--text] [--html FILE]

Shows what changes from one lesson to another, file by file in the order in which
they are best read. In colour on a terminal.

  --text        the chapters too
  --html FILE   write one page that shows both sides, for a browser or a printer

Example:
  python3 shared/course diff 06 07
""",
    diff_arguments,
    diff,
)


def test(course: Course, options: argparse.Namespace) -> int:
    return testing.run_tests(course.root, options.arguments)


TEST = Verb(
    "prepares .venv and runs all tests",
    """
usage: python3 shared/course test [ARGUMENT…]

Makes .venv in the course's folder if there is none, installs the pinned test
packages of pyproject.toml into it, and runs the tests. Further arguments go to
pytest.

Examples:
  python3 shared/course test
  python3 shared/course test --lesson=07
""",
    lambda parser: None,
    test,
    passes_on=True,
)


def feed_(course: Course, options: argparse.Namespace) -> int:
    return feed.feed(
        course,
        course.lesson(options.lesson),
        since=options.since,
        dry_run=options.dry_run,
        test=not options.no_test,
    )


def feed_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("--since", default="HEAD")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--no-test", action="store_true")


FEED = Verb(
    "carries a fix into all later lessons",
    """
usage: python3 shared/course feed LESSON [--since REV] [--dry-run] [--no-test]

Carries what you changed in a lesson, and have not committed, into all later
lessons by three-way merge, and tests each of them. Stops at the first conflict and
shows both versions; the lesson with the conflict is left as it was. The chapters
(README.md) are not carried.

  --since REV   what changed since this commit, instead of since the last one
  --dry-run     only tell what would be done
  --no-test     do not run the tests

Example:
  python3 shared/course feed 03 --dry-run
""",
    feed_arguments,
    feed_,
)


def verify(course: Course, options: argparse.Namespace) -> int:
    if options.seal is not None:
        tables = checks.seal(course, course.lesson(options.seal), options.write)
        print("written to shared/course.toml" if options.write else tables, end="\n")
        return 0
    for lesson in options.lesson:
        course.lesson(lesson)
    for line in checks.sizes(course):
        print(line)
    faults = checks.verify(course, options.lesson, options.write, not options.no_run)
    for fault in faults:
        print(fault)
    if faults:
        print(f"verify: {len(faults)} {'fault' if len(faults) == 1 else 'faults'}")
        return 1
    print("verify: everything holds")
    return 0


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lesson", type=number, action="append", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seal", type=number)
    parser.add_argument("--no-run", action="store_true")


VERIFY = Verb(
    "proves what the manifest and the texts say",
    """
usage: python3 shared/course verify [--lesson NN] [--no-run] [--write]
       python3 shared/course verify --seal NN [--write]

Checks everything that must be true of the course: the manifest, that the steps
between the lessons change what they declare and nothing else, their sizes, that
nothing arrives early, the parts of the chapters, links, exercises, and every
command, output and piece of code in the texts.

  --lesson NN   this lesson and its chapter only (may be repeated)
  --no-run      do not run the commands in the texts
  --write       put the true outputs, code and generated blocks into the texts
  --seal NN     print what the manifest must declare for the step to this lesson;
                with --write put it into shared/course.toml

Example:
  python3 shared/course verify --lesson 07 --write
""",
    verify_arguments,
    verify,
)


def say(lines: Iterable[str]) -> int:
    for line in lines:
        print(as_typed(line))
    return 0


def start(course: Course, options: argparse.Namespace) -> int:
    return say(exercises.start(course, course.lesson(options.lesson), options.keep))


def start_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("--keep", action="store_true")


START = Verb(
    "gives you a lesson with the exercises emptied",
    """
usage: python3 shared/course start LESSON [--keep]

Copies a lesson to work/lesson-NN with the functions of its exercises emptied.
Edit the files there, and only there.

  --keep    your own solutions of earlier lessons come along

Example:
  python3 shared/course start 07
""",
    start_arguments,
    start,
)


def check(course: Course, options: argparse.Namespace) -> int:
    lesson = course.lesson(options.lesson)
    folder = options.folder or exercises.work_folder(course, lesson)
    while True:
        seen = checking.saved_at(folder)
        verdicts = checking.check(course, lesson, folder)
        say(checking.told(course, lesson, folder, verdicts))
        if not options.watch:
            return 0 if all(verdict.solved for verdict in verdicts) else 1
        print("\nwaiting for the next save (Ctrl+C ends it)", flush=True)
        checking.wait_for_save(folder, seen)


def check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--watch", action="store_true")


CHECK = Verb(
    "tells what already works in your copy",
    """
usage: python3 shared/course check LESSON [--folder DIR] [--watch]

Runs the tests of a lesson's exercises against work/lesson-NN and tells for each
exercise what was called, what came back and what was expected. The exit status is 0
when all are solved.

  --folder DIR   your copy is there, inside the course or anywhere else
  --watch        check again at every save; Ctrl+C ends it

Example:
  python3 shared/course check 07
""",
    check_arguments,
    check,
)


def hint(course: Course, options: argparse.Namespace) -> int:
    lesson = course.lesson(options.lesson)
    return say(exercises.hint(course, lesson, options.exercise))


def exercise_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("exercise", nargs="?", default="")


HINT = Verb(
    "the next hint for an exercise",
    """
usage: python3 shared/course hint LESSON EXERCISE

Shows the next hint for an exercise: a question, and what leads on from it. After
the last one all are shown again.

Example:
  python3 shared/course hint 07 pack
""",
    exercise_arguments,
    hint,
)


def solution(course: Course, options: argparse.Namespace) -> int:
    lesson = course.lesson(options.lesson)
    return say(exercises.solution(lesson, options.exercise))


SOLUTION = Verb(
    "the reference for an exercise, and why it is so",
    """
usage: python3 shared/course solution LESSON EXERCISE

Shows how the lesson itself solves an exercise, and why so. Other ways can be just
as right: `check` decides.

Example:
  python3 shared/course solution 07 pack
""",
    exercise_arguments,
    solution,
)


def reset(course: Course, options: argparse.Namespace) -> int:
    lesson = course.lesson(options.lesson)
    return say(exercises.reset(course, lesson, options.exercise))


def reset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("exercise", nargs="?")


RESET = Verb(
    "begins a lesson or an exercise anew",
    """
usage: python3 shared/course reset LESSON [EXERCISE]

Empties your copy of a lesson again, or one exercise in it. What you had is kept
beside it, as work/lesson-NN-old-1.

Example:
  python3 shared/course reset 07 pack
""",
    reset_arguments,
    reset,
)


def grade_(course: Course, options: argparse.Namespace) -> int:
    lesson = course.lesson(options.lesson)
    grades = grade.grade(course, lesson, options.folders)
    say(grade.table(lesson, grades))
    if options.csv:
        try:
            grade.write_csv(options.csv, lesson, grades)
        except OSError as error:
            raise CourseError(f"the table cannot be written: {error}") from error
    return 0


def grade_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", type=number)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--csv", type=Path)


GRADE = Verb(
    "check for many folders, as a table",
    """
usage: python3 shared/course grade LESSON DIR… [--csv FILE]

Checks the work of a whole class. A DIR with the lesson's files is one submission;
of another DIR each folder in it is one, and the files may lie deeper. Every
submission runs apart from the others, with limits of time and memory and without
network, and gets from 0 to 1 point per exercise, the share of tests that pass.
Submissions with the same solutions are named. A link or a file of more than 20 MB
counts as missing.

  --csv FILE   write the table for a spreadsheet too

Example:
  python3 shared/course grade 07 "handed in" --csv points.csv
""",
    grade_arguments,
    grade_,
)


def doctor_(course: Course, options: argparse.Namespace) -> int:
    missing = False
    for finding in doctor.examine(course):
        print(as_typed(str(finding)))
        missing = missing or finding.state == "missing"
    return int(missing)


DOCTOR = Verb(
    "what this machine has and lacks for the course",
    """
usage: python3 shared/course doctor

Tells in a line each whether Python, SQLite, the encoding, the library, the test
packages, git and Ollama are as the course needs them, and how to mend what is not.
"optional" means that most of the course works without it.

Example:
  python3 shared/course doctor
""",
    lambda parser: None,
    doctor_,
)

VERBS = {
    "list": LIST,
    "diff": DIFF,
    "test": TEST,
    "start": START,
    "check": CHECK,
    "hint": HINT,
    "solution": SOLUTION,
    "reset": RESET,
    "grade": GRADE,
    "doctor": DOCTOR,
    "feed": FEED,
    "verify": VERIFY,
}

USAGE = """
usage: python3 shared/course VERB …

{verbs}

python3 shared/course VERB --help tells more, with an example.
On Windows type python in place of python3.
"""


class Parser(argparse.ArgumentParser):
    """A parser that prints the help text it was given."""

    def __init__(self, help_text: str):
        super().__init__(add_help=False, allow_abbrev=False)
        self.help_text = as_typed(help_text.strip() + "\n")
        self.add_argument("-h", "--help", action="help")
        self.add_argument("--root", type=Path)

    def format_help(self) -> str:
        return self.help_text

    def format_usage(self) -> str:
        return self.help_text.split("\n\n")[0] + "\n"

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{message}\n")


def overview() -> str:
    width = max(map(len, VERBS)) + 2
    verbs = [f"  {name:<{width}}{verb.summary}" for name, verb in VERBS.items()]
    return USAGE.format(verbs="\n".join(verbs)).strip()


def main(arguments: list[str], find_course: Callable[[Path | None], Course]) -> int:
    """Run a verb; the exit status is 0, 1 for a fault, 2 for wrong usage."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(as_typed(overview()))
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in VERBS:
        known = as_typed(overview())
        print(f"there is no verb {name!r}\n\n{known}", file=sys.stderr)
        return 2
    verb = VERBS[name]
    parser = Parser(verb.help)
    verb.arguments(parser)
    options, others = parser.parse_known_args(rest)
    if others and not verb.passes_on:
        parser.error(f"what is {' '.join(others)}?")
    options.arguments = others
    try:
        return verb.run(find_course(options.root), options)
    except CourseError as error:
        print(as_typed(str(error)), file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise  # for __main__.py: nobody reads on
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error
        print(reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
