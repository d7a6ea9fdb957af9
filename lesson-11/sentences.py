"""Whole sentences: where each one begins and ends in the text of a part."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# What a line of Markdown can begin with: marks of quotations, of items, of code.
QUOTE = "[ \t>]*"
ITEM = rf"{QUOTE}(?:[-*+]|\d{{1,9}}[.)])[ \t]+"
FENCE = "`{3,}|~{3,}"
# The pieces of Markdown that no sentence leaves: fenced code up to its end, a row of a
# table, an item of a list or another paragraph with all its lines.
BLOCK = re.compile(
    rf"^(?P<code>{QUOTE}({FENCE}).*(?:\n.*)*?(?:\n{QUOTE}\2.*|\Z))"
    rf"|^(?P<row>{QUOTE}\|.*)"
    rf"|^(?P<item>{ITEM})?{QUOTE}[^\s>].*"
    rf"(?:\n(?!{ITEM}|{QUOTE}(?:{FENCE}|\|)){QUOTE}[^\s>].*)*",
    re.MULTILINE,
)
MARKS = re.compile(f"(?:{ITEM})*{QUOTE}")
GAP = re.compile(r"[\s>]*")
# Where a sentence may end: its mark, with what closes there. Chinese needs no space.
END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]*_]*+(?=\s)|[。！？]+["”’」』）)]*""")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
PAIRS = dict(zip("([“«「『（《", ")]”»」』）》", strict=True))
# Words that a point does not end: an initial, a letter of т. е., a title before a name;
# and before a number any short word, as in p. 5.
SHORT = re.compile(
    r"\b(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|Inc|Ltd|Co"
    r"|им|ул|пл|обл|проф|акад|др|пр|тыс|руб|коп)$"
)
SHORT_BEFORE_NUMBER = re.compile(r"\b[^\W\d_]{1,4}$")


class Sentence(NamedTuple):
    """A sentence, `body[start:end]` of its part, and the one that announces it.

    "There are two exceptions:" is the `lead` of every item of the list below it, the
    first row of a table that of the others: without it they may say the contrary.
    """

    start: int
    end: int
    lead: "Sentence | None" = None


def sentences(body: str) -> list[Sentence]:
    """Return the sentences of a part in their order.

    Where it is uncertain whether one ends, it does not: two may be taken for one, but
    none is cut. Rows of tables and fenced code stay whole.
    """
    found: list[Sentence] = []
    lead: Sentence | None = None
    before = ""
    for block in BLOCK.finditer(body):
        kind = block.lastgroup or "paragraph"
        if before == "item" and kind == "paragraph" and block[0][0] in " \t":
            kind = "item"  # one more paragraph of it
        if before in ("row", "item") and kind != before:
            lead = None  # the table or the list is over
        here = [
            Sentence(start, end, lead)
            for start, end in spans(body, block, whole=kind in ("code", "row"))
        ]
        if kind == "row" and before != "row":
            lead = here[-1]
        elif kind == "paragraph":
            lead = here[-1] if block[0].rstrip().endswith((":", "：")) else None
        found += here
        before = kind
    return found


def spans(body: str, block: re.Match[str], whole: bool) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a block, or of the `whole` block."""
    start = skip(MARKS, body, block.start())
    stop = block.start() + len(block[0].rstrip())
    for mark in END.finditer(body, start, start if whole else stop):
        if ends_sentence(body, start, mark, stop):
            yield start, mark.end()
            start = skip(GAP, body, mark.end())
    if start < stop:
        yield start, stop


def skip(pattern: re.Pattern[str], body: str, start: int) -> int:
    """Return where what `pattern` describes is over."""
    match = pattern.match(body, start)
    return match.end() if match else start


def ends_sentence(body: str, start: int, mark: re.Match[str], stop: int) -> bool:
    """Return whether the sentence that begins at `start` surely ends with a mark."""
    text = body[start : mark.end()]
    if not re.search(r"[^\W\d_]", text):
        return False  # the number of an item, as in "2. Then"
    if (
        any(text.count(opens) > text.count(closes) for opens, closes in PAIRS.items())
        or text.count('"') % 2
        or text.count("`") % 2
    ):
        return False  # a bracket, a quotation or code is still open
    if mark[0][0] in "。！？":  # behind a closed quotation it may go on: “好。”他说。
        return mark[0][-1] in "。！？"
    following = LETTER_OR_DIGIT.search(body, mark.end(), stop)
    if following and following[0].islower():
        return False
    number = following and following[0].isdigit()
    short = SHORT_BEFORE_NUMBER if number else SHORT
    return mark[0][0] != "." or not short.search(body, start, mark.start())
