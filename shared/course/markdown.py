"""Just enough Markdown for the course's own texts: fences, headings, links, marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*$")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
CODE_SPAN = re.compile(r"(`+)(.+?)\1")
GENERATED = re.compile(r"^<!-- generated: (.+) -->$")
GENERATED_END = "<!-- end of generated -->"


@dataclass
class Block:
    """A fenced block: `language` and `words` of its info string, its `lines`.

    `line` is the number (from 1) of the opening fence.
    """

    language: str
    words: list[str]
    lines: list[str]
    line: int
    indent: int = 0


@dataclass
class Generated:
    """A region that the course tool writes: `name`, its `lines`, `line` as above."""

    name: str
    lines: list[str]
    line: int


@dataclass
class Text:
    """A Markdown file of the course as a row of plain lines, blocks and regions."""

    path: Path
    name: str  # relative to the course, for messages
    items: list[str | Block | Generated] = field(default_factory=list)

    @property
    def blocks(self) -> list[Block]:
        return [item for item in self.items if isinstance(item, Block)]

    @property
    def generated(self) -> list[Generated]:
        return [item for item in self.items if isinstance(item, Generated)]

    def source(self) -> str:
        """The file as it would be written."""
        lines: list[str] = []
        for item in self.items:
            if isinstance(item, str):
                lines.append(item)
            elif isinstance(item, Generated):
                mark = f"<!-- generated: {item.name} -->"
                lines += [mark, *item.lines, GENERATED_END]
            else:
                lines += fenced(item)
        return "\n".join(lines)

    def prose(self) -> Iterator[tuple[int, str]]:
        """Lines outside fenced blocks with their numbers, generated ones included."""
        number = 0
        for item in self.items:
            if isinstance(item, str):
                number += 1
                yield number, item
            elif isinstance(item, Generated):
                yield from enumerate(item.lines, start=number + 2)
                number += len(item.lines) + 2
            else:
                number += len(item.lines) + 2

    def sections(self) -> list[tuple[int, str, str]]:
        """Level, heading and text of every section, in order."""
        found: list[tuple[int, str, str]] = []
        for _, line in self.prose():
            heading = HEADING.match(line)
            if heading:
                found.append((len(heading[1]), heading[2], ""))
            elif found:
                level, title, text = found[-1]
                found[-1] = (level, title, f"{text}{line}\n")
        return found


def fenced(block: Block) -> list[str]:
    """The lines of a block; its fence is longer than any fence inside it."""
    runs = [re.match(r" {0,3}(`*)", line) for line in block.lines]
    inner = max((len(run[1]) for run in runs if run), default=0)
    fence = "`" * max(3, inner + 1)
    indent = " " * block.indent
    info = " ".join([block.language, *block.words])
    body = [f"{indent}{line}" if line else "" for line in block.lines]
    return [f"{indent}{fence}{info}", *body, f"{indent}{fence}"]


def parse(path: Path, name: str) -> Text:
    """Read a text.  ValueError (with the line) for a fence or region left open."""
    lines = path.read_text(encoding="utf-8").split("\n")
    text = Text(path, name)
    at = 0
    while at < len(lines):
        fence, region = FENCE.match(lines[at]), GENERATED.match(lines[at])
        if fence:
            end = closing_fence(lines, at, fence[2])
            info = fence[3].split() or [""]
            width = len(fence[1])
            body = [line[width:] for line in lines[at + 1 : end]]
            text.items.append(Block(info[0], info[1:], body, at + 1, width))
        elif region:
            end = closing_mark(lines, at)
            text.items.append(Generated(region[1].strip(), lines[at + 1 : end], at + 1))
        else:
            end = at
            text.items.append(lines[at])
        at = end + 1
    return text


def closing_fence(lines: list[str], start: int, fence: str) -> int:
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence)}{fence[0]}*[ \t]*$")
    for index in range(start + 1, len(lines)):
        if closing.match(lines[index]):
            return index
    raise ValueError(f"{start + 1}: this fenced block never closes")


def closing_mark(lines: list[str], start: int) -> int:
    for index in range(start + 1, len(lines)):
        if lines[index] == GENERATED_END:
            return index
        if GENERATED.match(lines[index]):
            break
    raise ValueError(f"{start + 1}: this region is not closed by {GENERATED_END}")


def links(text: Text) -> Iterator[tuple[int, str]]:
    """Line number and target of every link outside code."""
    for number, line in text.prose():
        for match in LINK.finditer(CODE_SPAN.sub("", line)):
            yield number, match[1]


def code_spans(text: Text) -> Iterator[tuple[int, str]]:
    """Line number and content of every code span."""
    for number, line in text.prose():
        for match in CODE_SPAN.finditer(line):
            yield number, match[2].strip()


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    plain = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
