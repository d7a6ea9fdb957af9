"""What travels between the steps of a question: one candidate as a plain dict."""

from typing import NotRequired, TypedDict

from parts import Part


class Row(TypedDict):
    """One part of the library; it prints as JSON as it is.

    `id` is `<doc_id>#part-<NN>`, `part` counts from 1, and `text` is the heading,
    a newline and the body, or just the body where there is no heading.
    """

    id: str
    doc_id: str
    part: int
    title: str
    heading: str
    body: str
    text: str
    url: str
    lang: str
    revision: int


class RankedRow(Row):
    """A row of a search, with its score: higher is better, comparable in one search."""

    score: float


class HybridRow(RankedRow):
    """A row of two rankings: its rank in each, from 1, or None where it is absent.

    Its `score` is the fused one; `space` names what the vectors were compared in.
    """

    lexical_rank: int | None
    vector_rank: int | None
    space: str


class CountedRow(HybridRow):
    """A row that knows what it costs on the wire: tokens by tokeniser's fingerprint."""

    wire_tokens: dict[str, int]


class SourceRow(CountedRow):
    """A row that the answer may rest on; `source_id` is S1, S2, … in their order.

    Where its body was cut, `truncated` is True, and so many lines of it are whole.
    """

    source_id: str
    truncated: NotRequired[bool]
    whole_lines: NotRequired[int]


def make_row(part: Part) -> Row:
    """Describe a part as a row."""
    document = part.document
    return {
        "id": part.id,
        "doc_id": document.id,
        "part": part.part,
        "title": document.title,
        "heading": part.heading,
        "body": part.body,
        "text": f"{part.heading}\n{part.body}" if part.heading else part.body,
        "url": document.url,
        "lang": document.lang,
        "revision": document.revision,
    }
