"""Quoting without a model: the sentences that say most of what was asked."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from features import strength
from rows import SourceRow
from sentences import ANNOUNCES, Sentence, sentences
from terms import terms

MOST = 3  # sentences that are chosen
# Measured on the course's questions. One sentence is to be nearer than a whole part.
ENOUGH = 0.31  # the least strength of evidence
RARE = 0.62  # of the weight of the question's rarest word
NEAR_BEST = 0.6  # of the strength of the best sentence


class Quote(TypedDict):
    """A quotation, word for word: `quote` is `body[start:end]` of its source."""

    source_id: str
    quote: str
    start: int
    end: int


def extract(
    query: str, rows: Sequence[SourceRow], weights: Mapping[str, float]
) -> list[Quote]:
    """Return the sentences that answer a question best, or none.

    The source of the best one comes first; those of one source stand as in its text.

    A sentence is judged together with what announces it, its heading and its title. It
    must be evidence (see `strength`), and one of its terms must be nearly as rare as
    the rarest of the question, by their `weights`: "the price of the year" does not
    answer what a share will cost next year. Ties keep the order of rows and text.
    """
    rarest = max(weights.values(), default=0.0)
    scored: list[tuple[float, list[Quote]]] = []
    for row in rows:
        for quotes in (with_lead(row, one) for one in sentences(row["body"])):
            words = "\n".join(quote["quote"] for quote in quotes)
            whole = f"{row['title']}\n{row['heading']}\n{words}"
            heaviest = max((weights.get(t, 0.0) for t in terms(whole)), default=0.0)
            if (
                heaviest >= RARE * rarest
                # Below a heading that has all of the question any sentence may answer.
                and (strength(query, words) or strength(query, row["heading"]) >= 1)
                and terms(quotes[-1]["quote"])  # a rule or a line of a table has none
                and not ANNOUNCES.search(words)
            ):
                scored.append((strength(query, whole), quotes))
    scored.sort(key=lambda entry: -entry[0])
    found = [
        quote
        for score, quotes in scored[:MOST]
        if score >= max(ENOUGH, NEAR_BEST * scored[0][0])
        for quote in quotes
    ]
    best = [quote["source_id"] for quote in found]
    return sorted(
        (quote for at, quote in enumerate(found) if quote not in found[:at]),
        key=lambda quote: (best.index(quote["source_id"]), quote["start"]),
    )


def with_lead(row: SourceRow, sentence: Sentence) -> list[Quote]:
    """Return a sentence as a quotation, behind those that announce it."""
    start, end, lead = sentence
    quote: Quote = {
        "source_id": row["source_id"],
        "quote": row["body"][start:end],
        "start": start,
        "end": end,
    }
    return [*(with_lead(row, lead) if lead else []), quote]
