"""Choosing what the answer may rest on, within what the model can read."""

from collections.abc import Sequence
from typing import Any

from budget import BudgetError, ContextBudget, check_whole
from wire import Meter, Row, render_context

__all__ = ["BudgetError", "ContextBudget", "pack", "render_context"]


def pack(
    query: str,
    ranked: Sequence[Row],
    tokenizer: Any,
    limit: int,
    reserve: int,
) -> dict[str, Any]:
    """Choose rows so that their whole wire costs at most limit - reserve tokens.

    Rows come permitted and ranked. Walk them in order, take one if the wire with it
    fits, else go on to the next. Whole rows only, the same objects.
    Returns `selected`, `rendered` (the wire) and `context_tokens` (its cost); the
    input is not changed. Raises BudgetError where limit or reserve are no positive
    ints, or where the question alone does not fit.
    """
    check_whole(1, limit=limit, reserve=reserve)
    meter = Meter(query, tokenizer)
    if meter.used + reserve > limit:
        raise BudgetError(
            f"the question ({meter.used} tokens) and the reserve ({reserve}) need"
            f" {meter.used + reserve} tokens, the limit is {limit}"
        )
    for row in ranked:
        if meter.with_row(row) + reserve <= limit:
            meter.take(row)
    rendered = render_context(query, meter.rows)
    cost = tokenizer.count(rendered)
    if cost != meter.used:
        raise BudgetError("stored counts do not belong to these texts: use --rebuild")
    return {"selected": meter.rows, "rendered": rendered, "context_tokens": cost}
