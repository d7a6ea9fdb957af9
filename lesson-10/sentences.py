"""Whole sentences: where each one begins and ends in the text of a part."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# What a line of Markdown can begin with: marks of quotations, of items, of code.
QUOTE = "[ \t>]*+"
ITEM = rf"{QUOTE}(?:[-*+]|\d{{1,9}}[.)])[ \t]++"
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
ANNOUNCES = re.compile(r"[:：][*_\s]*\Z")  # also where the words stand in bold
DEEPEST = 9  # lists inside lists that are followed: nobody reads deeper ones
GAP = re.compile(r"[\s>]*")
# Where a sentence may end: its mark, with what closes there. Chinese needs no space.
END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]*_]*+(?=\s)|[。！？]+["”’」』）)]*""")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
PAIRS = dict(zip("([“«「『（《", ")]”»」』）》", strict=True))
# Words that a point does not end: an initial, a letter of т. е., a title before a name;
# and before a number any short word, as in p. 5.
SHORT = re.compile(
    r"\b(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Prof|Rev|Hon|Capt|Col|Gen|Lt|Maj|Sgt|Jr|Sr|St|Mt|Ave"
    r"|Blvd|Rd|Fig|Vol|Inc|Ltd|Co|approx|dept|est|excl|incl|etc|vs|им|ул|пл|обл|просп"
    r"|пер|наб|бульв|корп|пос|дер|оз|св|проф|акад|доц|гос|ред|изд|др|пр|ст|гл|рис|табл"
    r"|вкл|искл|тыс|млн|млрд|руб|коп)$",
    re.IGNORECASE,
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
    parents: list[tuple[int, Sentence]] = []  # what announces in lists, and its column
    before, left = "", 0  # kind and column of the block above
    for block in BLOCK.finditer(body):
        kind = block.lastgroup or "paragraph"
        # A paragraph stands beside the items that it announces, not left of them.
        column = skip(GAP, block[0].expandtabs(4), 0) - (kind == "paragraph")
        over = kind == "paragraph" and column < left  # the list that was announced
        if before == "item" and kind != "row" and block[0][0] in " \t":
            kind = "item"  # more of it: a paragraph, or code
        if before in ("row", "item") and kind != before:
            lead = None  # the table or the list is over
        parents = [p for p in parents if p[0] < column][: -1 if over else None]
        above = parents[-1][1] if parents else lead
        here = [
            Sentence(*place, above)
            for place in spans(body, block, whole=block.lastgroup in ("code", "row"))
        ]
        if kind == "row" and before != "row":
            lead = here[-1]
        elif kind == "item" and ANNOUNCES.search(block[0]) and len(parents) < DEEPEST:
            parents.append((column, here[-1]))
        elif kind == "paragraph":
            lead = here[-1] if ANNOUNCES.search(block[0]) else None
        found += here
        before, left = kind, column
    return found


def spans(body: str, block: re.Match[str], whole: bool) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a block, or of the `whole` block."""
    start = skip(GAP, body, skip(MARKS, body, block.start()))
    stop = block.start() + len(block[0].rstrip())
    for mark in END.finditer(body, start, start if whole else stop):
        if ends_sentence(body, start, mark, stop):
            yield start, mark.end()
            start = skip(GAP, body, mark.end())
    if start < stop:
        yield start, stop


def skip(pattern: re.Pattern[str], body: str, start: int) -> int:
    """Return where what `pattern` describes is over."""
    return match.end() if (match := pattern.match(body, start)) else start


def ends_sentence(body: str, start: int, mark: re.Match[str], stop: int) -> bool:
    """Return whether the sentence that begins at `start` surely ends with a mark."""
    # A text without sentences would be read again and again: this is far enough.
    text = body[max(start, mark.end() - 5000) : mark.end()]
    if not re.search(r"[^\W\d_]", text):
        return False  # the number of an item, as in "2. Then"
    if (
        any(text.count(opens) > text.count(closes) for opens, closes in PAIRS.items())
        or text.count('"') % 2
        or text.count("`") % 2
    ):
        return False
    if mark[0][0] in "。！？":  # behind a closed quotation it may go on: “好。”他说。
        return mark[0][-1] in "。！？"
    following = LETTER_OR_DIGIT.search(body, mark.end(), stop)
    if following and following[0].islower():
        return False
    number = following and following[0].isdigit()
    return mark[0][0] != "." or not (
        SHORT.search(body, start, mark.start())
        or number
        and SHORT_BEFORE_NUMBER.search(body, start, mark.start())
    )
