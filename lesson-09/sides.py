"""Sides: which vectors may be near to another one, told by a few bits for each number.

Each number of a vector lies on one of two sides of zero. Vectors that point in similar
directions share many sides, and above all those of their large numbers. How many they
share is counted for all parts at once, in whole numbers with as many bits as there are
parts.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import itemgetter, or_

BLOCK = 32_000  # parts whose bits are kept together: a page of the file holds them
CANDIDATES = 1500  # compared exactly: so many parts, or a third where more share a side
# For each of these, a number whose square is more times the usual one is on a further
# side, so that shared sides tell of strength, too.
STRONG = (1.2, 2.5, 5.0)
LEVELS = len(STRONG) + 1
# The binary digit in which a shared side of each level is counted: 0 for ones, 1 for
# twos. With those below it a side is worth 2, 3, 4 or 6, much as the numbers are.
DIGITS = (1, 0, 0, 1)
STEPS = 8  # sizes of parts that are told apart between one size and its double


def sides(held: Iterable[tuple[int, float]]) -> list[int]:
    """Return the sides that a vector is on, without the further ones of strong numbers.

    Of the vector those numbers are given that are not 0, with their places.
    """
    return [LEVELS * (2 * place + (number > 0)) for place, number in held]


def marks(held: Sequence[tuple[int, float]]) -> list[int]:
    """Return all sides under which a part with this vector is kept."""
    found, size = sides(held), len(held)  # all squares add up to 1
    for level, times in enumerate(STRONG, start=1):
        held = [(place, n) for place, n in held if n * n * size > times]
        found += [side + level for side in sides(held)]
    return found


def shared(sides: Iterable[tuple[int, int]]) -> list[int]:
    """Count for each part what the sides are worth that it is on.

    With a side comes a bit for each part. The counts stand in columns: bit n of the
    number in place k is digit k of the count of part n, in binary. So one addition
    counts a side for all parts at once (bit slicing: O'Neil and Quass, "Improved query
    performance with variant indexes", 1997).
    """
    digits = [0]
    for side, carry in sides:
        for place in range(DIGITS[side % LEVELS], len(digits)):
            digits[place], carry = digits[place] ^ carry, digits[place] & carry
        if carry:
            digits.append(carry)
    return digits


def likely(digits: Sequence[int], sizes: Iterable[tuple[int, int]]) -> list[int]:
    """Divide parts, a bit each, by what their cosine may be, the highest first.

    `digits` are their counts of shared sides, in columns. `sizes` has the parts of each
    size, in steps of the logarithm. A part that is on n sides has numbers of 1 / √n or
    so: the count is multiplied by that, or long parts would win, which share many sides
    with any question. Parts of no size are left out.
    """
    counts = {0: reduce(or_, digits, 0)}
    for digit in reversed(digits):
        counts = {
            2 * count + bit: some
            for count, parts in counts.items()
            for bit, some in enumerate((parts & ~digit, parts & digit))
            if some
        }
    groups = (
        (count / 2 ** (size / STEPS / 2), some)
        for count, parts in counts.items()
        for size, of_size in sizes
        if (some := parts & of_size)
    )
    return [parts for _, parts in sorted(groups, key=itemgetter(0), reverse=True)]
