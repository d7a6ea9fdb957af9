"""Sides: which vectors may be near to another one, told by one bit for each number.

Each number of a vector lies on one of two sides of zero. Vectors that point in similar
directions share many sides, and how many they share is counted for all parts at once,
in whole numbers with as many bits as there are parts.
"""

from collections.abc import Iterable, Iterator, Sequence
from re import finditer

BLOCK = 2048  # parts whose bits are written together
CANDIDATES = 1500  # compared exactly: so many parts, or a quarter of it of each size
# Sides below zero are of another kind: for each digit of how many sides a part is on,
# written in binary, the parts where it is 0.
FEW = range(-1, -16, -1)


def sides(vector: Sequence[float]) -> list[int]:
    """Return the sides that a vector is on; for a number that is 0 it is on none."""
    return [2 * place + (number > 0) for place, number in enumerate(vector) if number]


def marks(vector: Sequence[float]) -> list[int]:
    """Return all sides under which a part with this vector is kept."""
    found = sides(vector)
    return found + [side for n, side in enumerate(FEW) if not len(found) >> n & 1]


def shared(sides: Iterable[int]) -> list[int]:
    """Count for each part how many of these sides it is on.

    A side is given as a bit for each part. The counts stand in columns: bit n of the
    number in place k is digit k of the count of part n, in binary. So one addition
    counts a side for all parts at once (bit slicing: O'Neil and Quass, "Improved query
    performance with variant indexes", 1997).
    """
    digits: list[int] = []
    for carry in sides:
        for place, digit in enumerate(digits):
            digits[place], carry = digit ^ carry, digit & carry
        if carry:
            digits.append(carry)
    return digits


def by_size(few: Sequence[int], parts: int) -> Iterator[int]:
    """Divide parts, a bit each, by how many sides they are on: 2 or 3, 4 to 7, …

    `few` has the parts of each of the sides in FEW. Long texts share many sides with
    any question, so parts are compared only with others of about their size.
    """
    for digit in reversed(few):
        yield parts & ~digit
        parts &= digit


def highest(digits: Sequence[int], among: int, wanted: int) -> list[int]:
    """Return the `wanted` parts with the highest counts, and those that tie with them.

    `among` has a bit for each part that takes part. The numbers of the parts rise.
    """
    ahead, tied = 0, among
    for digit in reversed(digits):
        if (ahead | tied & digit).bit_count() < wanted:
            ahead, tied = ahead | tied & digit, tied & ~digit
        else:
            tied &= digit
    return [match.start() for match in finditer("1", f"{ahead | tied:b}"[::-1])]
