"""Four ways to choose sources for one wire, as plainly as they can be said.

Each takes candidates, a meter with an empty wire and the room (tokens that the whole
wire may cost), and takes rows into the meter. Every admission is decided by the cost
of the whole wire, every candidate is decided at most once, and ties end on the id.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import faststrategies as fast
from budget import BudgetError, check_whole
from cuts import cut_row, cuts, whole_lines
from wire import Meter, Row


def by_score(candidates: Sequence[Row]) -> list[Row]:
    """Return the candidates by score falling, then by id."""
    return sorted(candidates, key=lambda row: (-row["score"], row["id"]))


def head(candidates: Sequence[Row], meter: Meter, room: int) -> None:
    """Take in order of id; stop at the first that does not fit."""
    for row in sorted(candidates, key=lambda row: row["id"]):
        if meter.with_row(row) > room:
            break
        meter.take(row)


def rank(candidates: Sequence[Row], meter: Meter, room: int) -> None:
    """Take by score; skip what does not fit."""
    for row in by_score(candidates):
        if meter.with_row(row) <= room:
            meter.take(row)


def density(candidates: Sequence[Row], meter: Meter, room: int) -> None:
    """Take in each round the best score per token that the whole wire would grow by.

    A growth below 1 counts as 1. M candidates need at most M(M+1)/2 wires.
    """
    if meter.adds_up:  # the same choice without asking everybody in every round
        fast.density(candidates, meter, room)
        return
    waiting = list(candidates)
    while waiting:
        offers = [
            (-row["score"] / max(1, cost - meter.used), row["id"], number)
            for number, row in enumerate(waiting)
            if (cost := meter.with_row(row)) <= room
        ]
        if not offers:
            break
        meter.take(waiting.pop(min(offers)[-1]))


def truncate(candidates: Sequence[Row], meter: Meter, room: int) -> None:
    """Take by score; cut what does not fit to its longest prefix that does."""
    for row in by_score(candidates):
        fits = meter.with_row(row) <= room
        if chosen := row if fits else longest_cut(row, meter, room):
            meter.take(chosen)


def longest_cut(row: Row, meter: Meter, room: int) -> Row | None:
    """Return the row with the longest prefix whose whole wire fits, or None.

    A longer prefix may cost less than a shorter one, so every one is tried, from the
    longest down: neither halving nor stopping at the first overflow is right.
    """
    if fast.can_cut(meter):
        length = fast.longest_cut(row, meter, room)
        return cut_row(row, length) if length else None
    shorter = (cut_row(row, length) for length in cuts(row["body"]))
    return next((cut for cut in shorter if meter.with_row(cut) <= room), None)


def truncate_text(text: str, tokenizer: Any, limit: int) -> dict[str, Any]:
    """Return the longest prefix that costs at most `limit` tokens, boundaries too.

    Returns `text`, its `tokens` and whether it was `truncated`. The cut falls between
    whole characters. Raises BudgetError where not even an empty text fits.
    """
    check_whole(1, limit=limit)
    if tokenizer.count("") > limit:
        raise BudgetError(f"an empty text costs {tokenizer.count('')} tokens: {limit}")
    if fast.can_read_prefixes(tokenizer):
        length = fast.longest_prefix(text, tokenizer, limit)
    else:
        lengths = [len(text), *cuts(text), 0]
        length = next(n for n in lengths if tokenizer.count(text[:n]) <= limit)
    kept = text[:length]
    return {
        "text": kept,
        "tokens": tokenizer.count(kept),
        "truncated": length < len(text),
    }


def source_claims(selected: Iterable[Row]) -> list[dict[str, Any]]:
    """Return what may be stated as a fact: the whole lines of the packed texts.

    One claim per line that is not blank: `id`, `doc_id`, `line` (from 1, in the body)
    and `text`. Nothing is looked up again, and a line that the cut went through is
    no fact. Equal lines of different parts stay apart.
    """
    claims = []
    for row in selected:
        for number, line in enumerate(whole_lines(row), 1):
            if line.strip():
                claim = {"id": row["id"], "doc_id": row["doc_id"], "line": number}
                claims.append(claim | {"text": line})
    return claims


STRATEGIES: dict[str, Callable[[Sequence[Row], Meter, int], None]] = {
    "head": head,
    "rank": rank,
    "density": density,
    "truncate": truncate,
}
