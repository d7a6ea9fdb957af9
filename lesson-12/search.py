"""The search formula: which parts are about the question, and how much."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import log

from parts import Part
from rows import RankedRow, make_row
from terms import terms

K1 = 1.2  # how soon a term that is repeated in a part stops counting
B = 0.75  # how much a long part is held against itself: 0 not at all, 1 fully


def search(
    query: str,
    parts: Sequence[Part],
    limit: int = 4,
    where: Callable[[Part], bool] | None = None,
) -> list[RankedRow]:
    """Return the best `limit` parts for any text `query`, best first, as rows.

    Each row gains its `score`, BM25 over heading and body (Robertson and Zaragoza,
    "The Probabilistic Relevance Framework", 2009, with the idf that cannot be
    negative). Equal scores are ordered by id; a part without any term of the query
    is not returned. `where` says which parts may be returned; the statistics are
    those of all parts. Raises ValueError if `limit` is negative.
    """
    if limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    rows = [make_row(part) for part in parts]
    counts = [Counter(terms(row["text"])) for row in rows]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / max(1, len(parts))
    scores = [0.0] * len(parts)
    # The order of the question decides the order of the additions: with another
    # order the same sum could differ in its last bit.
    for term in dict.fromkeys(terms(query)):
        holders = [i for i, count in enumerate(counts) if term in count]
        weight = idf(len(parts), len(holders))
        for i in holders:
            scores[i] += weight * saturation(counts[i][term], lengths[i], average)
    found = [i for i, score in enumerate(scores) if score > 0]
    if where:
        found = [i for i in found if where(parts[i])]
    found.sort(key=lambda i: (-scores[i], rows[i]["id"]))
    return [{**rows[i], "score": scores[i]} for i in found[:limit]]


def idf(total: int, holders: int) -> float:
    """Return the weight of a term that `holders` of `total` parts contain.

    ln(1 + (N − n + 0.5) / (n + 0.5)): rare terms weigh more, none less than 0.
    """
    return log(1 + (total - holders + 0.5) / (holders + 0.5))


def saturation(count: int, length: int, average: float) -> float:
    """Return how much a term that stands `count` times in a part counts there.

    `length` is the part's number of terms and `average` that of all parts. The
    value rises with `count`, ever more slowly, towards k1 + 1.
    """
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
