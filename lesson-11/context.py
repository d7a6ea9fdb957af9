"""The context: which of the ranked parts the answer may rest on."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from rows import RankedRow

OVERHEAD = 30  # characters for labels and line ends around a part that is shown
Candidate = TypeVar("Candidate", bound=RankedRow)


def cost(row: RankedRow) -> int:
    """Return the characters that a row takes: text, title, url, id and overhead."""
    return sum(len(row[key]) for key in ("text", "title", "url", "id")) + OVERHEAD


def pack(
    rows: Iterable[Candidate],
    budget: int = 2400,
    cost: Callable[[Candidate], int] = cost,
) -> list[Candidate]:
    """Choose whole rows, walking them in order, whose costs fit into `budget`.

    `rows` come permitted and ranked; a row that does not fit is passed over and
    the next is tried. `cost` tells the characters that a row takes. Returns the same
    objects in the same order. Raises ValueError if `budget` is not a whole number of
    characters from 0 on.
    """
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
        raise ValueError(f"the budget must be a whole number from 0 on, not {budget!r}")
    chosen = []
    for row in rows:
        if cost(row) <= budget:
            chosen.append(row)
            budget -= cost(row)
    return chosen
