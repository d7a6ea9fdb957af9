"""Checked quotes: do these words stand in the source, and where?"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extract import Quote
from rows import SourceRow
from wording import CHINESE, MARKS, words

SHORTEST = 12  # characters: fewer could stand anywhere
SHORTEST_CHINESE = 6
ADDRESS = re.compile(r"\]\(([^()\s]*)\)")  # of a link in Markdown


@dataclass(frozen=True)
class Match:
    """Where a quote stands, `body[start:end]`; `kind` is exact or normalised."""

    start: int
    end: int
    kind: str


class Verified(Quote):
    """A quote in the source's own characters, and how the model's differ from them."""

    kind: str


def find_quote(quote: str, body: str) -> Match | None:
    """Find the place of a quote in a text; None where it does not stand there.

    Only presentation may differ (kind normalised): white space, the marks of Markdown,
    the shape of quotation marks and dashes, ё for е, the encoding of a character. All
    words, numbers, other signs and capitals must be the same, and no match begins or
    ends inside a word or a number. Nor is a quote of fewer than 12 characters found, 6
    where it has Chinese ones, nor one of more than `position` has signs for. Takes time
    in proportion to both lengths.
    """
    quote = quote.strip()
    shortest = least(quote)
    invented = set(ADDRESS.findall(quote)) - set(ADDRESS.findall(body))
    if not shortest <= len(quote) <= 0x10FFFF or invented:
        return None
    for folded in (False, True):
        wanted = [word.text for word in words(quote, folded)]
        wanted = wanted[wanted[:1] == [" "] : len(wanted) - (wanted[-1:] == [" "])]
        found = words(body, folded)
        first = position(wanted, [word.text for word in found])
        if first is not None:
            start, end = found[first].start, found[first + len(wanted) - 1].end
            kind = "exact" if body[start:end] == quote else "normalised"
            return Match(start, end, kind) if end - start >= shortest else None
    return None


def least(quote: str) -> int:
    """Return how many characters a quote must have at least."""
    return SHORTEST_CHINESE if re.search(f"[{CHINESE}]", quote) else SHORTEST


def position(wanted: Sequence[str], words: Sequence[str]) -> int | None:
    """Return the first index from which all the wanted words follow each other.

    None if they do nowhere, if no word is wanted (the quote was marks of Markdown
    alone), or if the first begins with one of MARKS (an accent without its letter).
    """
    if not wanted or re.match(f"[{MARKS}]", wanted[0]):
        return None
    # Each different word becomes one character: then `find` compares whole words.
    signs = {word: chr(n) for n, word in enumerate(dict.fromkeys(wanted), start=1)}
    text = "".join(signs.get(word, "\0") for word in words)
    index = text.find("".join(signs[word] for word in wanted))
    return None if index < 0 else index


def check_evidence(
    evidence: Iterable[Mapping[str, str]], sources: Sequence[SourceRow]
) -> tuple[list[Verified], list[dict[str, str]]]:
    """Divide quotes into those that stand in the source they name, and the others.

    An entry of `evidence` has a `quote` and a `source_id`. A verified quote has the
    source's characters, not the model's, with their place in the body; a place that is
    quoted twice counts once. The others come back as they were, each with a `reason`:
    `unknown_source` for an id that was never sent, else that of `why_not`.
    """
    bodies = {source["source_id"]: source["body"] for source in sources}
    verified: dict[tuple[str, int, int], Verified] = {}
    rejected: list[dict[str, str]] = []
    for entry in evidence:
        quote, cited = entry["quote"], entry["source_id"]
        if match := find_quote(quote, bodies.get(cited, "")):
            verified[cited, match.start, match.end] = {
                "source_id": cited,
                "quote": bodies[cited][match.start : match.end],
                "start": match.start,
                "end": match.end,
                "kind": match.kind,
            }
        else:
            reason = why_not(quote, sources) if cited in bodies else "unknown_source"
            rejected.append({"source_id": cited, "quote": quote, "reason": reason})
    return list(verified.values()), rejected


def why_not(quote: str, sources: Sequence[SourceRow]) -> str:
    """Return why a quote that is not in its source proves nothing.

    The reason is `too_short`, `other_source` (it stands in another part),
    `across_parts` (it begins in one part and ends in another, so that no place can be
    named) or `quote_not_in_source`.
    """
    if len(quote.strip()) < least(quote):
        return "too_short"
    if any(find_quote(quote, source["body"]) for source in sources):
        return "other_source"
    in_order = sorted(sources, key=lambda source: (source["doc_id"], source["part"]))
    for rows in (sources, in_order):  # as they were sent, and as they were written
        bodies, texts = ([row[key] for row in rows] for key in ("body", "text"))
        if find_quote(quote, "\n\n".join(bodies)):
            return "across_parts"
        if any(find_quote(quote, text) for text in texts):
            continue  # it has words of a heading, but those of one part alone
        if find_quote(quote, "\n\n".join(texts)):
            return "across_parts"
    return "quote_not_in_source"


def verdict(verified: Sequence[Verified], rejected: Sequence[Mapping]) -> str:
    """Return the status of an answer. Its quotes decide, not what the model says.

    All verified: `generated_quoted`; some: `generated_unverified`; none, also where
    there was no quote at all: `insufficient`.
    """
    if not verified:
        return "insufficient"
    return "generated_unverified" if rejected else "generated_quoted"
