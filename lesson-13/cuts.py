"""Where a text may be cut, and what a cut leaves of a row."""

import unicodedata
from functools import cache
from typing import Any

from sentences import sentences
from wire import Row

JOINER = "\u200d"


@cache
def belongs_to_the_left(character: str) -> bool:
    """Tell combining marks, variation selectors and the joiner."""
    return unicodedata.category(character)[0] == "M" or character == JOINER


def cuts(text: str) -> list[int]:
    """Return the lengths, in characters, of the prefixes that may be kept.

    The longest comes first. Neither nothing nor everything is a cut.
    """
    lengths = range(len(text) - 1, 0, -1)
    return [length for length in lengths if not belongs_to_the_left(text[length])]


def whole_lines(row: Row) -> list[str]:
    """Return the lines of a row's body that are whole: all, unless it was cut.

    Where a cut went through a line, the words cut off may be those that turn it round.
    """
    lines = row["body"].split("\n")
    if row.get("truncated"):
        return lines[: row.get("whole_lines", len(lines) - 1)]
    return lines


def finished(row: Row) -> str:
    """Return the body up to the last sentence that ends in whole lines, before a cut.

    A sentence over several lines is left out if the cut went through one of them or
    came after one that does not end it. A body that was not cut is returned as it is.
    """
    if not row.get("truncated"):
        return row["body"]
    whole = "\n".join(whole_lines(row))
    # Nobody knows what stood behind the cut, so a word is put there. A sentence that
    # takes it in was open; a mark, a blank line, the next item or row closes one.
    further = f"{whole}\n{row['body'][len(whole) + 1 :]}X"
    ends = [sentence.end for sentence in sentences(further)]
    return whole[: max((end for end in ends if end <= len(whole)), default=0)]


def cut_row(row: Row, length: int) -> dict[str, Any]:
    """Return a marked copy of the row with the first `length` characters of its body.

    `whole_lines` counts the lines of the body that the cut left whole.
    """
    body = row["body"][:length]
    shorter = dict(row, body=body, truncated=True)
    shorter["text"] = f"{row['heading']}\n{body}" if row["heading"] else body
    shorter["whole_lines"] = f"{row['body']}\n".count("\n", 0, length + 1)
    shorter.pop("wire_tokens", None)  # counted for the whole text
    return shorter
