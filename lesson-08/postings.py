"""Postings: for one term, which parts hold it; and the best parts of several terms."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from operator import add, itemgetter
from struct import Struct

from search import saturation

LENGTH_BITS = 32  # a code is a count and a length, in terms, in one integer
LENGTH_MASK = (1 << LENGTH_BITS) - 1
ENTRY = Struct("=IQ")  # a posting in the file, 12 bytes: a part's number and a code
# Sums of the same numbers in another order differ by less than this, while scores of
# real questions stay far below a million.
ROUNDING = 1e-6
COMMON = 32  # a term is common if at least one part in so many holds it,
MANY = 256  # and so many parts or more: with fewer there is little to save


def levels(entries: bytes | bytearray) -> tuple[int, array | None, bytes | None]:
    """Return what bounds the scores of a common term; nothing for a rare one.

    That is the number of the first part that holds it, the code that counts most in
    each level, from level 1 on, and a byte for each part from the first to the last:
    its level, or 0 where the term is not. A byte tells 255 levels apart: where there
    are more codes, lengths are rounded down.
    """
    if len(entries) >= 12 * MANY:
        codes = sorted({code for _, code in ENTRY.iter_unpack(entries)}, reverse=True)
        (first, _), (last, _) = map(ENTRY.unpack, (entries[:12], entries[-12:]))
        for digits in (LENGTH_BITS, 5, 4, 3, 2, 1):
            # The last code of a level stays: of one count, the shortest is worth most.
            tops = {rounded(code, digits): code for code in codes}
            if len(tops) < 256 and len(entries) * COMMON >= 12 * (last - first):
                order = {top: level for level, top in enumerate(tops, start=1)}
                level = {code: order[rounded(code, digits)] for code in codes}
                column = bytearray(last - first + 1)
                for number, code in ENTRY.iter_unpack(entries):
                    column[number - first] = level[code]
                return first, array("Q", tops.values()), bytes(column)
    return 0, None, None


def rounded(code: int, digits: int) -> int:
    """Return a code with its length rounded down to so many binary digits."""
    spare = max(0, (code & LENGTH_MASK).bit_length() - digits)
    return code >> spare << spare


class Collected(defaultdict[str, list[bytes]]):
    """The postings of all terms while they are collected, each packed in 12 bytes."""

    def add(self, number: int, counts: Counter[str]) -> None:
        """Note how often each term stands in a part."""
        length = counts.total()
        # Terms with the same count share one object, which is made once.
        packed = {
            count: ENTRY.pack(number, count << LENGTH_BITS | length)
            for count in set(counts.values())
        }
        for term, count in counts.items():
            self[term].append(packed[count])


class Saturations(dict):
    """Saturation by code: there are few different codes, so each is computed once."""

    def __init__(self, average: float) -> None:
        self.average = average

    def __missing__(self, code: int) -> float:
        count, length = code >> LENGTH_BITS, code & LENGTH_MASK
        return self.setdefault(code, saturation(count, length, self.average))


@dataclass
class Weighted:
    """A term of a question, as one audience has it, and what it weighs.

    Of a rare term there are the postings, by number, and of a common one what `levels`
    says, and a way to find out how many terms a part has.
    """

    weight: float
    saturations: Saturations
    postings: Mapping[int, int]
    first: int = 0
    tops: Sequence[int] = ()
    levels: bytes = b""
    length: Callable[[int], int] = int

    def code(self, number: int) -> int | None:
        """Return the code of a part, or None if it does not hold the term."""
        place = number - self.first
        level = self.levels[place] if 0 <= place < len(self.levels) else 0
        # A level tells the count, but the lengths of its parts may be rounded.
        return (
            self.tops[level - 1] & ~LENGTH_MASK | self.length(number)
            if level
            else self.postings.get(number)
        )


class Ceilings:
    """For each part, what common terms can add to its score at the most.

    It is a byte for each part, in units of which 255 are what all these terms could add
    together. So the bytes of all parts can be added at once, as if they were one large
    integer: no sum reaches into the next byte.
    """

    def __init__(self, terms: Sequence[Weighted]) -> None:
        self.terms = terms
        self.first = min((t.first for t in terms), default=0)
        self.end = max((t.first + len(t.levels) for t in terms), default=0)
        self.steps = [
            [0.0, *(t.weight * t.saturations[code] for code in t.tops)] for t in terms
        ]
        self.unit = (sum(map(max, self.steps)) + ROUNDING) / 255
        # For each term less than one unit was rounded away.
        self.scores = [(units + len(terms)) * self.unit for units in range(256)]

    @cached_property
    def parts(self) -> bytes:
        """The ceilings of all parts from `first` on. Few questions need them."""
        total = 0
        for term, steps in zip(self.terms, self.steps, strict=True):
            table = bytes(int(step / self.unit) for step in steps).ljust(256, b"\0")
            column = int.from_bytes(term.levels.translate(table), "little")
            total += column << 8 * (term.first - self.first)
        return total.to_bytes(self.end - self.first, "little")

    def above(self, score: float) -> Iterator[int]:
        """Yield the numbers of the parts whose ceiling is at least `score`."""
        if score <= self.scores[-1]:
            flags = self.parts.translate(bytes(most >= score for most in self.scores))
            place = -1
            while (place := flags.find(1, place + 1)) >= 0:
                yield self.first + place

    def over(
        self, scores: Mapping[int, float], numbers: Collection[int]
    ) -> dict[int, float]:
        """Return what these parts can reach with their scores, and nothing rounded."""
        reach = [scores.get(number, 0.0) for number in numbers]
        size = self.end - self.first  # all that is outside is looked up behind the end
        places = [
            n - self.first if self.first <= n < self.end else size for n in numbers
        ]
        for term, steps in zip(self.terms, self.steps, strict=True):
            levels = (bytes(term.first - self.first) + term.levels).ljust(
                size + 1, b"\0"
            )
            added = map(steps.__getitem__, map(levels.__getitem__, places))
            reach = list(map(add, reach, added))
        return dict(zip(numbers, reach, strict=True))


def best(terms: Sequence[Weighted], limit: int) -> list[tuple[int, float]]:
    """Return number and score of the best `limit` parts, and of those that tie.

    `terms` come in the order of the question; the scores are those of `search`, to
    the last bit. The postings of rare terms are added up. Of common terms only the
    ceilings are added, and a score is completed where it could be among the best
    (as in MaxScore: Turtle and Flood, "Query evaluation: strategies and
    optimizations", 1995; with a ceiling for each part in place of one for all).
    """
    scores: dict[int, float] = {}
    for term in [term for term in terms if not term.levels]:
        weight, saturations = term.weight, term.saturations
        for number, code in term.postings.items():
            scores[number] = scores.get(number, 0.0) + weight * saturations[code]
    ceilings = Ceilings([term for term in terms if term.levels])
    # Who could not catch up with the best of these by all ceilings together is out.
    highest = nlargest(limit, scores.values())
    low = highest[-1] - ceilings.scores[-1] if len(highest) >= limit else 0.0
    reach = ceilings.over(scores, [n for n, score in scores.items() if score >= low])
    for score in reversed(ceilings.scores[::16]):
        if len(reach) < limit:
            reach = ceilings.over(scores, {*scores, *ceilings.above(score)})
    # The best of these say how much is needed; then all that could have as much count.
    first = exact(nlargest(limit, reach, key=reach.__getitem__), terms)
    floor = min(first.values()) - ROUNDING if len(first) >= limit else 0.0
    reach |= ceilings.over(scores, list(ceilings.above(floor)))
    return leading(
        exact([n for n, most in reach.items() if most >= floor], terms), limit
    )


def exact(numbers: Sequence[int], terms: Sequence[Weighted]) -> dict[int, float]:
    """Return the scores of those parts that hold one of the terms.

    They are added in the order of the question: in another one, the same sum can differ
    in its last bit.
    """
    scores = dict.fromkeys(numbers, 0.0)
    for term in terms:
        for number in numbers:
            if (code := term.code(number)) is not None:
                scores[number] += term.weight * term.saturations[code]
    return {number: score for number, score in scores.items() if score}


def leading(scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    """Return the `limit` highest scores and those that tie, by part, best first."""
    ranked = sorted(scores.items(), key=itemgetter(1), reverse=True)
    last = ranked[limit - 1][1] if len(ranked) >= limit else 0.0
    return [(number, score) for number, score in ranked if score >= last]
