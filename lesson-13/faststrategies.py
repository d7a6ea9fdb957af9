"""The choices of `strategies`, without asking for the whole wire every time.

Nothing here changes a result: with a coder that is not the fast one, the definitions
of `strategies` do all the work.

* `longest_cut`: one table of all prefixes up to the quote's end, one of what stands
  behind the cut, one join per cut.
* `density`: where counts add up, a candidate's growth is the head's tokens plus its
  own, so the order among candidates changes only where the head's cost does.
* `JoinMeter`: the cost of the whole wire by joins, where counts do not add up.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import wire
from cuts import cut_row, cuts
from fasttokens import FastCoder
from prefixes import Prefixes
from wire import CUT_MARK, Meter, Row, as_json, render_context

BOUNDARIES = 2  # tokens around every wire


def can_read_prefixes(tokenizer: Any) -> bool:
    """Tell the tokenisers whose table is known here."""
    return isinstance(getattr(tokenizer, "coder", None), FastCoder)


def can_cut(meter: Meter) -> bool:
    """Tell the meters with which `longest_cut` is exact."""
    adds_up = meter.adds_up and can_read_prefixes(meter.tokenizer)
    return adds_up or isinstance(meter, JoinMeter)


def open_meter(query: str, tokenizer: Any) -> Meter:
    """Return a meter for an empty wire, the fastest that is exact for the tokeniser."""
    meter = Meter(query, tokenizer)
    if meter.adds_up or not can_read_prefixes(tokenizer):
        return meter
    return JoinMeter(query, tokenizer)


class JoinMeter(Meter):
    """The wire up to the next source's number as a table, each candidate as another."""

    def __init__(self, query: str, tokenizer: Any) -> None:
        super().__init__(query, tokenizer)
        self.last_line = render_context(query, [])
        self.table = Prefixes(tokenizer.coder, wire.source_head(1).encode())
        self.tails: dict[int, tuple[Row, Prefixes]] = {}

    def with_row(self, row: Row) -> int:
        """Return the tokens of the whole wire if this row were the next source."""
        _, tail = self.tails.get(id(row), (None, None))
        if tail is None:
            data = (wire.source_tail(row) + self.last_line).encode()
            tail = Prefixes(self.tokenizer.coder, data, from_right=True)
            self.tails[id(row)] = row, tail  # the row is kept, so is its id
        return BOUNDARIES + self.table.joined(tail)

    def take(self, row: Row) -> None:
        """Make the row the next source, at the end of the table."""
        super().take(row)
        go_on = wire.source_tail(row) + wire.source_head(len(self.rows) + 1)
        self.table.extend(go_on.encode())


@cache
def escaped_size(character: str) -> int:
    """Return the bytes of a character in a JSON string, whatever its neighbours."""
    return len(as_json(character).encode()) - 2


def longest_cut(row: Row, meter: Meter, room: int) -> int:
    """Return how many characters `strategies.longest_cut` keeps, 0 for none."""
    coder = meter.tokenizer.coder
    behind = f'"{CUT_MARK}}}\n'
    before = wire.source_tail(cut_row(row, 0)).removesuffix(behind)
    if isinstance(meter, JoinMeter):
        table, others = meter.table, BOUNDARIES
        behind += meter.last_line
    else:
        table, others = Prefixes(coder), meter.used
        before = wire.source_head(len(meter.rows) + 1) + before
    start, body = len(table.last) - 1, row["body"]
    table.extend(before.encode())
    ends = list(accumulate(map(escaped_size, body), initial=len(table.last) - 1))
    table.extend(as_json(body)[1:-1].encode())
    rest = Prefixes(coder, behind.encode(), from_right=True)
    found = 0
    for length in cuts(body):
        table.shorten(ends[length])
        if others + table.joined(rest) <= room:
            found = length
            break
    table.shorten(start)
    return found


def longest_prefix(text: str, tokenizer: Any, limit: int) -> int:
    """Return how many characters `strategies.truncate_text` keeps."""
    counts = Prefixes(tokenizer.coder, text.encode()).count
    ends = [0, *accumulate(len(character.encode()) for character in text)]
    lengths = [len(text), *cuts(text), 0]
    return next(n for n in lengths if counts[ends[n]] + BOUNDARIES <= limit)


def density(candidates: Sequence[Row], meter: Meter, room: int) -> None:
    """Take what `strategies.density` takes, where counts add up.

    What does not fit now never fits again: a new source leaves less room than before
    by at least the next head. So each round goes on in a queue to the first that
    fits. There is one queue per cost of a head, which alone can change the order.
    """
    rows = sorted(candidates, key=lambda row: row["id"])
    sizes = [(row["score"], wire.tail_tokens(row, meter.tokenizer)) for row in rows]
    queues: dict[int, Iterator[int]] = {}
    decided: set[int] = set()
    found = True
    while found:
        head, found = meter.next_head(), False
        if head not in queues:
            # Sorting is stable, so ties stay in order of id.
            keys = [-score / (tail + head) for score, tail in sizes]
            queues[head] = iter(sorted(range(len(rows)), key=keys.__getitem__))
        for number in queues[head]:
            if number not in decided:
                decided.add(number)
                found = meter.used + head + sizes[number][1] <= room
                if found:
                    meter.take(rows[number])
                    break
