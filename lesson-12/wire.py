"""The wire: what is sent, character for character, and what it costs."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
# A text as a JSON string; a line end in it becomes backslash and n.
as_json = json.JSONEncoder(ensure_ascii=False).encode


def source_head(number: int) -> str:
    """Return how the line of source `number` (from 1) begins."""
    return f'{{"id":"S{number}'


def source_tail(row: Row) -> str:
    """Return the rest of a source's line; nothing but the row decides it."""
    title, heading, text = map(as_json, (row["title"], row["heading"], row["body"]))
    return f'","title":{title},"heading":{heading},"text":{text}}}\n'


def render_context(query: str, selected: Iterable[Row]) -> str:
    """Return the user message: a JSON line per source, then one with the question.

    Sources are named S1, S2, … in their order. JSON escapes whatever could end a
    string or a line: no text leaves its box.
    """
    sources = [source_head(n) + source_tail(row) for n, row in enumerate(selected, 1)]
    return "".join(sources) + f'{{"question":{as_json(query)}}}\n'


def parse_context(wire: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the question and the sources of a wire, fields named as on the wire."""
    *sources, last = [json.loads(line) for line in wire.rstrip("\n").split("\n")]
    return last["question"], sources


class Meter:
    """What the whole wire costs, in tokens, while sources are added to it.

    `rows` are the sources so far, `used` what they and the question cost. By
    definition every cost is that of the whole wire, written and counted. Where the
    tokeniser proves that counts add up between a line end and `{` and between a digit
    and `"`, the same figure is a sum: a source costs its head, which only its number
    decides, and its tail, which may have been counted long before.
    """

    def __init__(self, query: str, tokenizer: Any) -> None:
        self.query, self.tokenizer = query, tokenizer
        self.rows: list[Row] = []
        self.used = tokenizer.count(render_context(query, []))
        splits = getattr(tokenizer, "splits", lambda left, right: False)
        seams = [("\n", "{"), *((digit, '"') for digit in "0123456789")]
        self.adds_up = all(splits(left, right) for left, right in seams)

    def with_row(self, row: Row) -> int:
        """Return the tokens of the whole wire if this row were the next source."""
        if self.adds_up:
            return self.used + self.next_head() + tail_tokens(row, self.tokenizer)
        return self.tokenizer.count(render_context(self.query, [*self.rows, row]))

    def next_head(self) -> int:
        """Return the tokens of the head of the next source."""
        return self.tokenizer.count(source_head(len(self.rows) + 1), boundaries=False)

    def take(self, row: Row) -> None:
        """Make the row the next source."""
        self.used = self.with_row(row)
        self.rows.append(row)


def tail_tokens(row: Row, tokenizer: Any) -> int:
    """Return the tokens of a row's tail: as stored for this tokeniser, or counted.

    A row may carry `wire_tokens`, counts by fingerprint.
    """
    stored = row.get("wire_tokens", {}).get(tokenizer.fingerprint)
    if stored is None:
        return tokenizer.count(source_tail(row), boundaries=False)
    return stored
