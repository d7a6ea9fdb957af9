"""How much do the tests notice?  Mutants of the functions that exercises name.

    .venv/bin/python tests/mutation.py --lesson 07          (on Windows .venv\\Scripts)
    .venv/bin/python tests/mutation.py --lesson 01 --lesson 02 --jobs 1

A mutant differs from the reference in one token: `<=` becomes `<`, `and` becomes `or`,
0 becomes 1, a name becomes another one of the function.  It is caught if a test of its
lesson fails: first those that judge the exercise are run, then, for what is left, all
others.  A mutant that nothing catches is a gap in the tests, or no mistake at all.
Those that were looked at and found to be none stand in EQUIVALENT with the reason.

The same seed gives the same mutants.  The exit status is 1 where fewer than 90 % are
caught.  This takes minutes for each lesson, so it is no part of the tests.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(COURSE / "shared" / "course"))

import check  # noqa: E402
import exercises  # noqa: E402
import testing  # noqa: E402
from manifest import Course, Exercise, Lesson, load_course  # noqa: E402

WANTED = 0.9  # the share of mutants that must be caught
BATCH = 12  # so many mutants are tried in one process
WHOLE_LESSON_SECONDS = 900

# What one token becomes; "" takes it away.
OTHER = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "+=": "-=",
    "-=": "+=",
    "&": "|",
    "|": "&",
    "and": "or",
    "or": "and",
    "not": "",
    "in": "not in",
    "is": "is not",
    "break": "continue",
    "continue": "break",
    "True": "False",
    "False": "True",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
}

# Mutants that are no mistakes: exercise, the changed line, and why nobody can tell.
EQUIVALENT = {
    ("split", 'while after >= first and not lines[after - 1].strip(" \\t"):'): (
        "one step further down only where the whole piece is blank: it makes no part"
    ),
    ("best", "for score in reversed(ceilings.scores[::17]):"): (
        "in which steps parts are taken changes how many are looked at, not the result"
    ),
    ("best", "if len(reach) <= limit:"): (
        "some more parts are looked at, and the result is the same"
    ),
    (
        "best",
        "exact([n for n, most in reach.items() if most > floor], terms), limit",
    ): "differs only where two sums are exactly ROUNDING apart, and then nobody wins",
    (
        "position",
        "signs = {word: chr(n) for n, word in"
        " enumerate(dict.fromkeys(wanted), start=2)}",
    ): "the characters may be any but \\0",
    ("is_evidence", "asked.keys() < found.keys()"): (
        "differs only where both have the same features, and then enough is shared"
    ),
    (
        "is_evidence",
        "or shared > needed * asked.total() ** (2 / 3) * found.total() ** (1 / 3)",
    ): "differs only where two sums of roots are equal to the last bit",
    ("put_change", 'return Change("put", after.id, before, after, by_hand)'): (
        "the document under its new revision has the same id"
    ),
}


@dataclass(frozen=True)
class Mutant:
    """A lesson's file with one token of an exercise's function changed."""

    exercise: Exercise
    line: int  # in the file, from 1
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        where = f"{self.exercise.file}:{self.line}"
        return f"{where}\n    - {self.before}\n    + {self.after}"


def mutants(lesson: Lesson, exercise: Exercise, rng: random.Random) -> Iterator[Mutant]:
    """All mutants of an exercise's function that are Python and another program."""
    source = exercises.reference(lesson, exercise.file)
    node = exercises.find_function(ast.parse(source), exercise.function)
    assert node is not None
    lines = source.split("\n")
    names = local_names(node)
    original = ast.dump(ast.parse(source))
    for token in body_tokens(source, node):
        new = changed(token, names, rng)
        if new is None:
            continue
        row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
        mutated = lines[row][:start] + new + lines[row][end:]
        text = "\n".join([*lines[:row], mutated, *lines[row + 1 :]])
        try:
            if ast.dump(ast.parse(text)) == original:
                continue
            compile(text, exercise.file, "exec")
        except SyntaxError:
            continue
        yield Mutant(exercise, row + 1, lines[row].strip(), mutated.strip(), text)


def body_tokens(source: str, node: exercises.Function) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a function's body, without docstring and without error messages.

    What a `raise` says is for people: its words may be others.
    """
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    spoken = [each for each in ast.walk(node) if isinstance(each, ast.Raise)]
    left_out = {
        line
        for each in spoken
        for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)
    }
    first, last = body[0].lineno, node.end_lineno or 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row = token.start[0]
        if first <= row <= last and row == token.end[0] and row not in left_out:
            yield token


def local_names(node: exercises.Function) -> list[str]:
    """Parameters and variables of a function, in their order."""
    found = {each.arg: None for each in ast.walk(node) if isinstance(each, ast.arg)}
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found[each.id] = None
    return [name for name in found if name not in ("_", "self")]


def changed(
    token: tokenize.TokenInfo, names: list[str], rng: random.Random
) -> str | None:
    """What stands in place of a token in its mutant; None for no mutant."""
    text = token.string
    if text in OTHER:
        return OTHER[text]
    if token.type == tokenize.NUMBER:
        number = ast.literal_eval(text)
        return str(number + 1)
    if token.type == tokenize.STRING and not text.lower().startswith(("f", "rf")):
        return '""' if ast.literal_eval(text) else '"x"'
    if token.type == tokenize.NAME and text in names and len(names) > 1:
        return rng.choice([name for name in names if name != text])
    return None


def verdicts(course: Course, lesson: Lesson, some: list[Mutant]) -> list[str]:
    """ "exercise" or "lesson" for each mutant, whose tests catch it; "" if none do."""
    leftovers = shutil.ignore_patterns("__pycache__", "library.db*")
    env = {"CI": "1"}  # hypothesis then tries the same examples every time
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folders = [Path(place, f"mutant-{n}").resolve() for n in range(len(some))]
        for folder, mutant in zip(folders, some, strict=True):
            shutil.copytree(lesson.folder, folder, ignore=leftovers)
            path = folder / mutant.exercise.file
            path.write_text(mutant.source, encoding="utf-8", newline="\n")
        records = check.run_tests(
            course, lesson, folders, env, some[0].exercise.name, to_first_failure=True
        )
        tried = {Path(record["folder"]) for record in records}
        assert tried == set(folders), "a mutant was not tried at all"
        failed = {Path(r["folder"]) for r in records if r["outcome"] == "failed"}
        said = []
        for folder in folders:
            if folder in failed:
                said.append("exercise")
            # Twice, since a test can also fail because the machine is slow.
            elif all(fails_in_whole(lesson, folder, place, env) for _ in range(2)):
                said.append("lesson")
            else:
                said.append("")
        return said


def fails_in_whole(
    lesson: Lesson, folder: Path, place: str, env: dict[str, str]
) -> bool:
    """Whether any test of the lesson fails on this folder."""
    arguments = ["tests", "-x", "-q", "-p", "no:cacheprovider"]
    arguments += [f"--lesson={lesson.number:02}", f"--folder={folder}"]
    arguments += [f"--basetemp={Path(place, 'tests')}"]
    settings = {
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(place, "hypothesis")),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            testing.pytest_command(Path(sys.executable), arguments),
            cwd=COURSE,
            env=os.environ | env | settings,
            capture_output=True,
            timeout=WHOLE_LESSON_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True  # a program that never ends is noticed
    return done.returncode != 0


def examine(
    course: Course, lesson: Lesson, exercise: Exercise, options: argparse.Namespace
) -> tuple[int, int, list[Mutant]]:
    """How many mutants there are, how many are caught, and the survivors."""
    rng = random.Random(f"{options.seed} {lesson.number} {exercise.name}")
    found = list(mutants(lesson, exercise, rng))
    if options.most and len(found) > options.most:
        found = sorted(rng.sample(found, options.most), key=lambda each: each.line)
    batches = [found[at : at + BATCH] for at in range(0, len(found), BATCH)]
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        said = pool.map(lambda batch: verdicts(course, lesson, batch), batches)
        caught = [verdict for batch in said for verdict in batch]
    survivors = [
        mutant for mutant, verdict in zip(found, caught, strict=True) if not verdict
    ]
    print(
        f"{lesson.number:02}  {exercise.name:<15} {len(found):>7}"
        f" {caught.count('exercise'):>8} {caught.count('lesson'):>8}"
        f" {len(survivors):>9}",
        flush=True,
    )
    return len(found), len(found) - len(survivors), survivors


def told(survivors: list[Mutant]) -> Iterator[str]:
    """The survivors, with the reason where one is known."""
    for mutant in survivors:
        yield ""
        yield f"{mutant.exercise.name}: {mutant}"
        reason = EQUIVALENT.get((mutant.exercise.name, mutant.after))
        yield f"    {reason or 'NOT EXPLAINED'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--lesson", type=int, action="append", default=[])
    parser.add_argument("--exercise", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, help="so many mutants of each function")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    testing.prepare = lambda root: Path(sys.executable)
    course = load_course(COURSE)
    total = caught = 0
    survivors: list[Mutant] = []
    print("    exercise        mutants  by its    by the  survivors")
    print("                              tests    lesson")
    for lesson in course.lessons:
        if options.lesson and lesson.number not in options.lesson:
            continue
        for exercise in lesson.exercises:
            wanted = not options.exercise or exercise.name in options.exercise
            if exercise.is_emptied and wanted:
                counts = examine(course, lesson, exercise, options)
                total, caught = total + counts[0], caught + counts[1]
                survivors += counts[2]
    for line in told(survivors):
        print(line)
    share = caught / total if total else 1.0
    print(
        f"\n{caught} of {total} mutants are caught: {share:.1%} (seed {options.seed})"
    )
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
