"""Checked quotes: do these words stand in the source, and where?"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extract import Quote
from rows import SourceRow
from wording import CHINESE, DASHES, MARKS, TARGET, words

SHORTEST = 12  # characters: fewer could stand anywhere
SHORTEST_CHINESE = 6


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
    ends inside a word or a number. Nor is a quote found that is `too_short`, nor one of
    more characters than `position` has signs for. Takes time in proportion to both
    lengths.
    """
    quote = quote.strip()
    invented = set(re.findall(TARGET, quote)) - set(re.findall(TARGET, body))
    if len(quote) > 0x10FFFF or too_short(quote) or invented:
        return None
    # As it is written; without presentation; and with long dashes read as hyphens.
    for dash in (None, "–", "-") if re.search(f"[{DASHES}]", quote) else (None, "–"):
        wanted = [word.text for word in words(quote, dash)]
        wanted = wanted[wanted[:1] == ["\n"] : len(wanted) - (wanted[-1:] == ["\n"])]
        found = words(body, dash)
        first = position(wanted, [word.text for word in found])
        if first is not None:
            start, end = found[first].start, found[first + len(wanted) - 1].end
            kind = "exact" if body[start:end] == quote else "normalised"
            return Match(start, end, kind)
    return None


def too_short(quote: str) -> bool:
    """Return whether a quote proves nothing: it has no word or number, or could stand
    anywhere, with fewer than 12 characters, 6 where some are Chinese.

    They are counted without presentation: white space, however long, is one.
    """
    read = "".join(word.text for word in words(quote, "–")).strip()
    least = SHORTEST_CHINESE if re.search(f"[{CHINESE}]", read) else SHORTEST
    return len(read) < least or not re.search(r"[^\W_]", read)


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
    if too_short(quote):
        return "too_short"
    if any(find_quote(quote, source["body"]) for source in sources):
        return "other_source"
    in_order = sorted(sources, key=lambda source: (source["doc_id"], source["part"]))
    for rows in (sources, in_order):  # as they were sent, and as they were written
        bodies, texts = ([row[key] for row in rows] for key in ("body", "text"))
        if find_quote(quote, "\n\n".join(bodies)):
            return "across_parts"
        # It may have words of a heading, but not those of one part alone.
        alone = any(find_quote(quote, text) for text in texts)
        if not alone and find_quote(quote, "\n\n".join(texts)):
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
