"""Postings: for one term, which parts hold it; and the best parts of several terms."""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from struct import pack

from search import saturation

LENGTH_BITS = 32  # a code is a count and a length, in terms, in one integer
LENGTH_MASK = (1 << LENGTH_BITS) - 1
# Sums of the same numbers in another order differ by less than this, while scores of
# real questions stay far below a million.
ROUNDING = 1e-6


@dataclass
class Postings:
    """The parts that hold one term: their numbers, rising, and a code for each.

    Packed arrays take 12 bytes a posting, in the file as in memory.
    """

    numbers: array = field(default_factory=lambda: array("I"))
    codes: array = field(default_factory=lambda: array("Q"))

    def bounds(self) -> tuple[int, int]:
        """Return the highest count and the lowest length of all postings."""
        return (
            max(self.codes) >> LENGTH_BITS,
            min(map(LENGTH_MASK.__and__, self.codes)),
        )

    def code(self, number: int) -> int | None:
        """Return the code of a part, or None if it does not hold the term."""
        place = bisect_left(self.numbers, number)
        found = place < len(self.numbers) and self.numbers[place] == number
        return self.codes[place] if found else None


class Collected(defaultdict[str, bytearray]):
    """The postings of all terms while they are collected: for each term some bytes.

    Each posting is 12 bytes in a row, its number and its code. With objects of its own
    for each term, Python would spend its time on looking after millions of them.
    """

    def add(self, number: int, counts: Counter[str]) -> None:
        """Note how often each term stands in a part."""
        length = counts.total()
        packed = {
            count: pack("=IQ", number, count << LENGTH_BITS | length)
            for count in set(counts.values())
        }
        for term, count in counts.items():
            self[term] += packed[count]

    def by_term(self) -> Iterator[tuple[str, Postings]]:
        """Yield the postings of each term, in the order of the terms."""
        for term in sorted(self):
            packed = array("I", self[term])  # every third one is a number
            numbers = packed[::3]
            del packed[::3]
            yield term, Postings(numbers, array("Q", packed.tobytes()))


@dataclass
class Weighted:
    """The postings of a question's term, what it weighs and can add at the most."""

    postings: Postings
    weight: float
    most: float


class Saturations(dict):
    """Saturation by code: there are few different codes, so each is computed once."""

    def __init__(self, average: float) -> None:
        super().__init__()
        self.average = average

    def __missing__(self, code: int) -> float:
        count, length = code >> LENGTH_BITS, code & LENGTH_MASK
        value = self[code] = saturation(count, length, self.average)
        return value


def best(
    terms: Sequence[Weighted], average: float, limit: int
) -> list[tuple[int, float]]:
    """Return number and score of the best `limit` parts, and of those that tie.

    `terms` come in the order of the question; the scores are those of `search`, to
    the last bit. The terms that can add most are counted first. Once `limit` parts
    are ahead of all that the other terms could give a new part, no new part is looked
    at: common words then only complete the scores of those that can still win
    (MaxScore: Turtle and Flood, "Query evaluation: strategies and optimizations",
    1995).
    """
    saturations = Saturations(average)
    scores: dict[int, float] = {}
    rest = sum(term.most for term in terms)
    for term in sorted(terms, key=lambda term: term.most, reverse=True):
        floor = lowest_of_best(scores, limit)
        weight, postings = term.weight, term.postings
        if floor <= rest + ROUNDING:
            for number, code in zip(postings.numbers, postings.codes, strict=True):
                scores[number] = scores.get(number, 0.0) + weight * saturations[code]
        else:
            scores = {n: s for n, s in scores.items() if s + rest + ROUNDING >= floor}
            for number in scores:
                if (code := postings.code(number)) is not None:
                    scores[number] += weight * saturations[code]
        rest -= term.most
    floor = lowest_of_best(scores, limit) - ROUNDING
    winners = [number for number, score in scores.items() if score >= floor]
    # What was added above came in another order: add once more, in the question's.
    exact = dict.fromkeys(winners, 0.0)
    for term in terms:
        for number in winners:
            if (code := term.postings.code(number)) is not None:
                exact[number] += term.weight * saturations[code]
    return sorted(exact.items(), key=lambda item: item[1], reverse=True)


def lowest_of_best(scores: dict[int, float], limit: int) -> float:
    """Return the score of the part in place `limit`, or 0 if there are fewer."""
    return nlargest(limit, scores.values())[-1] if len(scores) >= limit else 0.0
