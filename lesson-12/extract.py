"""Quoting without a model: the sentences that say most of what was asked."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from features import strength
from rows import SourceRow
from sentences import Sentence, sentences
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
    """Return the sentences that answer a question best, the best first; or none.

    A sentence is judged together with what announces it, its heading and its title. It
    must be evidence (see `strength`), and one of its terms must be nearly as rare as
    the rarest of the question, by their `weights`: "the price of the year" does not
    answer what a share will cost next year. Ties keep the order of rows and text.
    """
    rarest = max(weights.values(), default=0.0)
    scored: list[tuple[float, list[Quote]]] = []
    for row in rows:
        for sentence in sentences(row["body"]):
            quotes = with_lead(row, sentence)
            words = "\n".join(quote["quote"] for quote in quotes)
            whole = f"{row['title']}\n{row['heading']}\n{words}"
            heaviest = max((weights.get(t, 0.0) for t in terms(whole)), default=0.0)
            announces = words.endswith((":", "："))
            if heaviest >= RARE * rarest and strength(query, words) and not announces:
                scored.append((strength(query, whole), quotes))
    scored.sort(key=lambda entry: -entry[0])
    found: list[Quote] = []
    for score, quotes in scored[:MOST]:
        if score >= max(ENOUGH, NEAR_BEST * scored[0][0]):
            found += [quote for quote in quotes if quote not in found]
    return found


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
