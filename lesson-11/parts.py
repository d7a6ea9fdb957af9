"""Cut documents into parts: one per section, long sections between paragraphs.

Headings are what CommonMark 0.31 calls headings. As in its appendix, "A parsing
strategy", we go line by line and remember only which blocks are still open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from library import Document

LONGEST = 1200  # characters in a part, unless a single block is longer

# How blocks begin; the numbers are sections of the specification.
QUOTE = re.compile(r" {0,3}> ?")  # 5.1
ITEM = re.compile(r" {0,3}(?:[-+*]|[0-9]{1,9}[.)])(?: {1,4}(?! )| |$)")  # 5.2
ITEM_IN_TEXT = re.compile(r" {0,3}(?:[-+*]|0{0,8}1[.)])(?: {1,4}(?! )| )")  # 5.2
BREAK = re.compile(r" {0,3}([-_*])(?: *\1){2,}$")  # 4.1
UNDERLINE = re.compile(r" {0,3}(?:=+|-+)$")  # 4.3
# The two long patterns are compiled at their first use: who asks about a library that
# was cut into parts before need not wait for that.
BLOCK = r"""(?aix)[ ]{0,3}+(?:
      (?P<break> (?P<mark>[-_*])(?:[ ]*(?P=mark)){2,}$ )  # 4.1
    | (?P<heading> \#{1,6}(?:[ ]|$) )                     # 4.2
    | (?P<code> [ ] )                                     # 4.4, the fourth space
    | (?P<fence> `{3,}+(?!.*`) | ~{3,} )                  # 4.5
    | (?P<raw> <(?:pre|script|style|textarea)(?:[ >]|$) ) # 4.6, seven kinds of HTML
    | (?P<comment> <!-- )
    | (?P<instruction> <\? )
    | (?P<declaration> <![a-z] )
    | (?P<cdata> <!\[(?-i:CDATA)\[ )
    | (?P<element> </?(?:address|article|aside|base|basefont|blockquote|body|caption
        |center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure
        |footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link
        |main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section
        |summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:[ ]|/?>|$) )
    | (?P<tag> (?: </[a-z][a-z0-9-]*+[ ]*>
        | <(?!(?:pre|script|style|textarea)/)[a-z][a-z0-9-]*+
          (?:[ ]+[a-z_:][\w.:-]*+(?:[ ]*=[ ]*(?:[^ "'=<>`]++|'[^']*'|"[^"]*"))?)*+
          [ ]*/?> )$ )
    | (?P<nothing> $ ) )"""
BLANK = "^$"
HTML_ENDS = {
    "raw": "</(?:pre|script|style|textarea)>",
    "comment": "-->",
    "instruction": r"\?>",
    "declaration": ">",
    "cdata": r"\]\]>",
    "element": BLANK,
    "tag": BLANK,
}
# 4.7: link reference definitions can open a paragraph, but are no text of it.
URL = r"(?:\\[()\\]|[^\x00-\x20\x7f()]|\(@\))*+"  # @: parentheses in parentheses
URL = URL.replace("@", URL).replace("@", URL).replace("@", URL).replace("@", "")
DEFINITIONS = rf"""(?sx)\A(?:
    \[(?![ \n]*\])(?:[^][\\]|\\.){{1,999}}+\]:  # label
    [ \n]*(?:<(?:[^<>\n\\]|\\.)*+>|(?=[^ \n<]){URL})  # destination
    (?:[ \n]+(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?  # title
    [ ]*(?:\n|\Z))+"""


@dataclass(frozen=True)
class Part:
    """A piece of a document: `document.body[start:end] == body` (characters)."""

    document: Document
    part: int  # from 1
    heading: str  # as written, without its marks; may be empty
    body: str
    start: int
    end: int

    @property
    def id(self) -> str:
        """The name of the part in the whole library, as `refunds-en#part-01`."""
        return f"{self.document.id}#part-{self.part:02}"


def split(document: Document) -> list[Part]:
    """Return the parts of a document in their order; a blank section has none.

    A part takes as many blocks of its section as fit into LONGEST characters.
    """
    lines = document.body.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    headings, cuts = scan(lines)
    parts: list[Part] = []
    heading, earlier = document.title, 0  # earlier: the parts of other sections
    for first, after in pairwise(sorted({0, *headings, *cuts, len(lines)})):
        if first in headings:
            text = lines[first : headings[first]]
            heading, earlier, first = heading_text(text), len(parts), headings[first]
        while after > first and not lines[after - 1].strip(" \t"):
            after -= 1
        if first < after:
            start, end = offsets[first], offsets[after] - 1
            if len(parts) > earlier and end - parts[-1].start <= LONGEST:
                start = parts.pop().start
            body = document.body[start:end]
            parts.append(Part(document, len(parts) + 1, heading, body, start, end))
    return parts


def first_heading(body: str) -> str:
    """Return the text of the first heading that has one, or an empty string."""
    lines = body.split("\n")
    headings, _ = scan(lines)
    texts = (heading_text(lines[first:after]) for first, after in headings.items())
    return next(filter(None, texts), "")


def heading_text(lines: list[str]) -> str:
    """Return the text of one ATX line, or of a setext heading's lines."""
    if len(lines) > 1:
        return " ".join(line.strip(" \t") for line in lines[:-1])
    text = lines[0].strip(" \t").lstrip("#")
    return re.sub(r"(?<![^ \t])#+$", "", text).strip(" \t")


def scan(lines: list[str]) -> tuple[dict[int, int], list[int]]:
    """Return the top-level headings as {first line: line after}, and the lines where
    a section may be cut: they begin a block and come after a blank line."""
    headings: dict[int, int] = {}
    cuts: list[int] = []
    containers: list[re.Pattern[str]] = []  # open quotes and items: how a line goes on
    unbroken = inf  # a blank line has ended the quotes from this depth on
    leaf = "blank"  # the kind of block that the last line belongs to
    paragraph: list[str] = []  # the lines of the last paragraph
    closing = ""  # the pattern that ends the open fence or HTML block
    text = ""
    for number, line in enumerate(lines):
        after_blank, text = not text, line.expandtabs(4).rstrip(" ")
        depth = pos = 0
        while depth < len(containers) and (mark := containers[depth].match(text, pos)):
            if containers[depth] is QUOTE and depth >= unbroken:
                break
            depth, pos = depth + 1, mark.end()
        if pos == len(text):  # blank: the next line shows which items and code go on
            if leaf == "nothing":  # an item begins with one blank line at most
                containers.pop()
            leaf = "code" if leaf == "code" else "blank"
            closing = "" if closing == BLANK else closing
            unbroken = min(unbroken, depth)
            continue
        unbroken = inf
        inside = depth == len(containers)
        if inside and closing:
            closing = "" if re.search(closing, text[pos:], re.IGNORECASE) else closing
            continue
        in_text = inside and leaf == "paragraph"
        if in_text and UNDERLINE.match(text, pos):
            own = re.sub(DEFINITIONS, "", "\n".join(paragraph))
            if own and not containers:
                headings[number - own.count("\n") - 1] = number + 1
            if own:
                leaf = "heading"
                continue
        pos, new = open_containers(text, pos, in_text)
        in_text = leaf == "paragraph" and not new  # even "lazy", with marks left out
        kind, closing = leaf_at(text[pos:], in_text)
        if in_text and kind == "paragraph":
            paragraph.append(text[pos:].lstrip(" "))
            continue
        same_code = inside and not new and kind == leaf == "code"
        if after_blank and depth == 0 and not same_code:
            cuts.append(number)
        containers[depth:] = new
        if kind == "heading" and not containers:
            headings[number] = number + 1
        leaf, paragraph = kind, [text[pos:].lstrip(" ")]
    return headings, cuts


def open_containers(
    text: str, pos: int, in_text: bool
) -> tuple[int, list[re.Pattern[str]]]:
    """Return where the line goes on behind the marks of the quotes and items it opens,
    and for each of them how the next lines go on."""
    new: list[re.Pattern[str]] = []
    if text[pos] not in " >-+*0123456789":  # most lines open none
        return pos, new
    tail = len(text.rstrip(text[-1] + " "))  # no thematic break begins before it
    while pos < tail or not BREAK.match(text, pos):
        if mark := QUOTE.match(text, pos):
            new.append(QUOTE)
        elif mark := (ITEM_IN_TEXT if in_text and not new else ITEM).match(text, pos):
            width = mark.end() - pos + (mark.end() == len(text))
            new.append(re.compile(" " * width))
        else:
            break
        pos = mark.end()
    return pos, new


def leaf_at(text: str, in_text: bool) -> tuple[str, str]:
    """Return what kind of block begins here and, if it stays open, what ends it."""
    block = re.match(BLOCK, text)
    kind = (block and block.lastgroup) or "paragraph"
    if in_text and kind in ("code", "tag"):  # these interrupt no paragraph
        kind = "paragraph"
    if block and kind == "fence":
        return kind, f"^ {{0,3}}{block[kind]}+$"
    end = HTML_ENDS.get(kind, "")
    return kind, "" if not end or re.search(end, text, re.IGNORECASE) else end
