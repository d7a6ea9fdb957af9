"""The verbs of the course tool: how each is called, its help, what it does.

The help texts are written by hand, so that they read well and are the same under
every version of Python; the README shows them and `verify` compares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import checks
import feed
import show
import testing
from manifest import Course, CourseError


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
    colour = show.shows_colour()
    for line in show.diff(course, before, after, options.text):
        print(show.coloured(line) if colour else line)
    return 0


def diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=number)
    parser.add_argument("after", type=number)
    parser.add_argument("--text", action="store_true")


DIFF = Verb(
    "the step between two lessons, in reading order",
    """
usage: python3 shared/course diff BEFORE AFTER [--text]

Shows what changes from one lesson to another, file by file in the order in which
they are best read. In colour on a terminal.

  --text    the chapters too

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

VERBS = {
    "list": LIST,
    "diff": DIFF,
    "test": TEST,
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
        self.help_text = help_text.strip() + "\n"
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
        print(overview())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in VERBS:
        print(f"there is no verb {name!r}\n\n{overview()}", file=sys.stderr)
        return 2
    verb = VERBS[name]
    parser = Parser(verb.help)
    verb.arguments(parser)
    if verb.passes_on:
        options, options.arguments = parser.parse_known_args(rest)
    else:
        options = parser.parse_args(rest)
    try:
        return verb.run(find_course(options.root), options)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
