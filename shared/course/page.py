"""`diff --html`: a step as one self-contained page, side by side.

Changed words are marked; on a narrow screen the new lines of a block stand below all
its old ones; the page prints without its colours getting lost.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from manifest import Course, Lesson
from show import changed_files
from step import read

CONTEXT = 3  # unchanged lines shown around a change

STYLE = """
:root { --add: #d7f5dd; --add-word: #8fdca0; --del: #ffe1de; --del-word: #ffb0a8;
  --line: #8886; --quiet: #667; --back: #fff; --ink: #1c1c22; }
@media (prefers-color-scheme: dark) { :root { --add: #12361c; --add-word: #1f6a34;
  --del: #43191a; --del-word: #84302f; --quiet: #99a; --back: #16161a;
  --ink: #e6e6ea; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 100rem; padding: 1rem; background: var(--back);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
nav { display: flex; flex-wrap: wrap; gap: 0 1rem; }
nav a { color: inherit; }
h2 { margin: 2rem 0 .5rem; font-size: 1.05rem; }
table { width: 100%; border-collapse: collapse; table-layout: fixed;
  border: 1px solid var(--line); font: 13px/1.45 ui-monospace, Consolas, monospace; }
td { padding: 0 .5rem; vertical-align: top; white-space: pre-wrap;
  overflow-wrap: anywhere; }
col.n { width: 3.2rem; }
td.n { padding: 0 .4rem; color: var(--quiet); text-align: right;
  user-select: none; }
td.del { background: var(--del); } td.add { background: var(--add); }
td.del mark { background: var(--del-word); }
td.add mark { background: var(--add-word); }
mark { color: inherit; border-radius: 2px; }
table.one td.none { display: none; }
tr.gap td { color: var(--quiet); text-align: center;
  border-block: 1px solid var(--line); }
@media (max-width: 720px) {
  col { display: none; }
  table { display: block; }
  tbody { display: grid; grid-template-columns: 3.2rem minmax(0, 1fr); }
  tr { display: contents; }
  tr.changed td.new { order: 1; }
  tr.same td.old, td.none, tr.gap td.n { display: none; }
  tr.gap td { grid-column: 1 / -1; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 11px; }
  table { font-size: 8.5px; }
  td { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, td { break-inside: avoid; }
  nav { display: none; }
}
"""


@dataclass
class Line:
    """One row: the line on either side (None where there is none), as HTML.

    `kind` is "same", "changed" or "gap".
    """

    kind: str
    old_number: int | None = None
    old: str | None = None
    new_number: int | None = None
    new: str | None = None


def page(course: Course, before: Lesson, after: Lesson, with_text: bool) -> str:
    """The whole page."""
    names = changed_files(course, before, after, with_text)
    title = f"{before.number:02} {before.title} → {after.number:02} {after.title}"
    links = "".join(
        f'<a href="#f{index}">{html.escape(name)}</a>'
        for index, name in enumerate(names)
    )
    files = "\n".join(
        file_table(before, after, name, index) for index, name in enumerate(names)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{html.escape(title)}</h1>\n<p>{html.escape(after.idea)}</p>\n"
        f"<nav>{links}</nav>\n{files}\n</body>\n</html>\n"
    )


def file_table(before: Lesson, after: Lesson, name: str, index: int) -> str:
    old, new = (
        read(lesson.folder / name).rstrip("\n").split("\n")
        if (lesson.folder / name).is_file()
        else []
        for lesson in (before, after)
    )
    # A block of changed lines is a body: a narrow screen puts its new lines last.
    bodies = "\n".join(
        "<tbody>\n" + "\n".join(map(row, block)) + "\n</tbody>"
        for _, block in groupby(rows_of(old, new), key=lambda line: line.kind)
    )
    state = "" if old and new else " (new)" if new else " (gone)"
    one_sided = ' class="one"' if state else ""
    columns = '<col class="n"><col>' * (1 if state else 2)
    return (
        f'<h2 id="f{index}">{html.escape(name)}{state}</h2>\n'
        f"<table{one_sided}>{columns}\n{bodies}\n</table>"
    )


def rows_of(old: list[str], new: list[str]) -> Iterator[Line]:
    """The rows of a file: changes with a little around them, gaps between."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for index, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if index or group[0][1] > 0:
            yield Line("gap")
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                for a, b in zip(range(a1, a2), range(b1, b2), strict=True):
                    text = html.escape(new[b])
                    yield Line("same", a + 1, text, b + 1, text)
            else:
                yield from changed(old, new, range(a1, a2), range(b1, b2))


def changed(
    old: list[str], new: list[str], lines: range, others: range
) -> Iterator[Line]:
    """Lines put side by side in their order; those left over stand alone."""
    for offset in range(max(len(lines), len(others))):
        a = lines[offset] if offset < len(lines) else None
        b = others[offset] if offset < len(others) else None
        left, right = marked("" if a is None else old[a], "" if b is None else new[b])
        yield Line(
            "changed",
            None if a is None else a + 1,
            None if a is None else left,
            None if b is None else b + 1,
            None if b is None else right,
        )


def marked(old: str, new: str) -> tuple[str, str]:
    """Both lines as HTML, with the words that differ marked.

    Lines that have little in common are not marked: everything would be.
    """
    a, b = (re.findall(r"\s+|\w+|[^\w\s]", line) for line in (old, new))
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if not old.strip() or not new.strip() or matcher.ratio() < 0.4:
        return html.escape(old), html.escape(new)
    left, right = "", ""
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        words = [html.escape("".join(each)) for each in (a[a1:a2], b[b1:b2])]
        if tag != "equal":
            words = [f"<mark>{word}</mark>" if word else "" for word in words]
        left, right = left + words[0], right + words[1]
    return left, right


def row(line: Line) -> str:
    if line.kind == "gap":
        return '<tr class="gap"><td class="n"></td><td colspan="3">⋯</td></tr>'
    cells = []
    for side, number, text, colour in (
        ("old", line.old_number, line.old, "del"),
        ("new", line.new_number, line.new, "add"),
    ):
        if text is None:
            cells.append('<td class="n none"></td><td class="none"></td>')
            continue
        tint = f" {colour}" if line.kind == "changed" else ""
        cells.append(
            f'<td class="n {side}">{number}</td><td class="{side}{tint}">{text}</td>'
        )
    return f'<tr class="{line.kind}">{"".join(cells)}</tr>'
