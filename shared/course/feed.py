"""`feed`: a fix made in one lesson is carried into all later ones.

Fixes are made where the fault first appears.  The change of the lesson (between a
commit and the working tree) is merged into each later lesson's files: the old file
is the common ancestor, the new one our side, the later lesson's file the other side.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import testing
from manifest import Course, CourseError, Lesson
from step import files_of, is_of_a_lesson

OURS, THEIRS = "the fix", "this lesson"


@dataclass
class Plan:
    """What is to be written into one lesson: None means the file goes away."""

    writes: dict[str, bytes | None] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)


def feed(course: Course, source: Lesson, since: str, dry_run: bool, test: bool) -> int:
    """Carry the change on, lesson by lesson; 1 where it stopped early."""
    old = committed(course.root, source, since)
    for name in old:
        if (source.folder / name).is_symlink():  # or it would count as removed
            raise CourseError(f"{source.name}/{name} is a link; feed carries files")
    new = {
        name: (source.folder / name).read_bytes() for name in files_of(source.folder)
    }
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if not changed:
        print(f"{source.name} has not changed since {since}: nothing to carry")
        return 0
    print(f"{source.name} changed since {since}: {', '.join(changed)}")
    if test and not dry_run and not passes(course, source):
        return stopped(source, "its own tests fail; nothing was carried")
    later = [each for each in course.lessons if each.number > source.number]
    for lesson in [each for each in later if each.folder.is_dir()]:
        plan = planned(lesson, changed, old, new)
        if plan.conflicts:
            print("\n".join(plan.conflicts))
            return stopped(lesson, "both sides changed the same lines; it is untouched")
        if not dry_run:
            apply(lesson, plan)
        print(f"{lesson.name}: {told(plan, dry_run)}")
        if plan.writes and test and not dry_run and not passes(course, lesson):
            return stopped(lesson, "the fix is in, but its tests fail")
    print("dry run: nothing was written" if dry_run else "carried into every lesson")
    return 0


def told(plan: Plan, dry_run: bool) -> str:
    if not plan.writes:
        return "nothing to do"
    would = "would change" if dry_run else "changed"
    return f"{would} {', '.join(sorted(plan.writes))}"


def stopped(lesson: Lesson, why: str) -> int:
    print(f"stopped at {lesson.name}: {why}")
    return 1


def passes(course: Course, lesson: Lesson) -> bool:
    arguments = ["-q", f"--lesson={lesson.number:02}"]
    return testing.run_tests(course.root, arguments) in (0, 5)  # 5: no tests for it


def committed(root: Path, lesson: Lesson, since: str) -> dict[str, bytes]:
    """The lesson's files as they are in a commit; CourseError for an unknown one."""
    listing = git(root, "ls-tree", "-r", "-z", "--name-only", since, f"{lesson.name}/")
    names = [name for name in os.fsdecode(listing).split("\0") if name]
    found = {}
    for name in names:
        short = name.removeprefix(f"{lesson.name}/")
        if short != "README.md" and all(map(is_of_a_lesson, short.split("/"))):
            found[short] = git(root, "show", f"{since}:./{name}")
    return found


def git(root: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, check=True
        )
    except FileNotFoundError as error:
        raise CourseError("feed needs git to know what you changed") from error
    except subprocess.CalledProcessError as error:
        raise CourseError(error.stderr.decode("utf-8", "replace").strip()) from error
    return done.stdout


def planned(
    lesson: Lesson, changed: list[str], old: dict[str, bytes], new: dict[str, bytes]
) -> Plan:
    """Merge every changed file with the lesson's own, in memory only."""
    plan = Plan()
    for name in changed:
        path = lesson.folder / name
        base, ours = old.get(name), new.get(name)
        theirs = path.read_bytes() if path.is_file() else None
        if theirs == ours:
            continue  # the fix is there already
        if theirs == base:
            plan.writes[name] = ours
        elif theirs is None:
            continue  # the later lesson has no such file any more
        elif base is None or ours is None:
            what = "a new file here and there" if base is None else "removed by the fix"
            plan.conflicts.append(f"{lesson.name}/{name}: {what}, with other content")
        else:
            merged, conflicts = merge(base, ours, theirs)
            if conflicts:
                plan.conflicts.append(f"{lesson.name}/{name}:\n{conflicts}")
            elif merged != theirs:
                plan.writes[name] = merged
    return plan


def apply(lesson: Lesson, plan: Plan) -> None:
    for name, data in plan.writes.items():
        path = lesson.folder / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def merge(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, str]:
    """Three-way merge by lines: the merged file, and the conflicts as text.

    Both sides' changes to the base are put side by side; where they touch the same
    lines (or meet without a line between them) and differ, that is a conflict.
    """
    a, b, c = (
        data.decode("utf-8", "surrogateescape").split("\n")
        for data in (base, ours, theirs)
    )
    merged: list[str] = []
    conflicts: list[str] = []
    done = 0
    for start, end, mine, yours in joined(a, b, c):
        merged += a[done:start]
        done = end
        if mine == yours or yours == a[start:end]:
            merged += mine
        elif mine == a[start:end]:
            merged += yours
        else:
            conflicts += [f"<<<<<<< {OURS} (line {start + 1} before it)", *mine]
            conflicts += ["=======", *yours, f">>>>>>> {THEIRS}"]
    merged += a[done:]
    text = "\n".join(merged)
    return text.encode("utf-8", "surrogateescape"), "\n".join(conflicts)


def joined(
    a: list[str], b: list[str], c: list[str]
) -> list[tuple[int, int, list[str], list[str]]]:
    """Regions of `a` that one side or both change, with both sides' lines for them."""
    sides = [changes(a, b), changes(a, c)]
    spans = sorted((start, end) for side in sides for start, end, _ in side)
    regions: list[list[int]] = []
    for start, end in spans:
        if regions and start <= regions[-1][1]:
            regions[-1][1] = max(regions[-1][1], end)
        else:
            regions.append([start, end])
    ours, theirs = sides
    return [
        (start, end, rewritten(a, ours, start, end), rewritten(a, theirs, start, end))
        for start, end in regions
    ]


def changes(a: list[str], b: list[str]) -> list[tuple[int, int, list[str]]]:
    """What `b` puts in place of which lines of `a`."""
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [
        (a1, a2, b[b1:b2])
        for tag, a1, a2, b1, b2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def rewritten(
    a: list[str], side: list[tuple[int, int, list[str]]], start: int, end: int
) -> list[str]:
    """Lines start..end of `a` as one side has them."""
    lines: list[str] = []
    at = start
    for first, last, new in side:
        if start <= first and last <= end:
            lines += a[at:first] + new
            at = last
    return lines + a[at:end]
