"""Choosing what the answer may rest on, within what the model can read."""

from collections.abc import Sequence
from typing import Any

from budget import BudgetError, ContextBudget, check_whole
from faststrategies import open_meter
from strategies import STRATEGIES, truncate_text
from wire import Row, render_context

__all__ = ["BudgetError", "ContextBudget", "pack", "render_context", "truncate_text"]


def pack(
    query: str,
    ranked: Sequence[Row],
    tokenizer: Any,
    limit: int,
    reserve: int,
    strategy: str = "rank",
) -> dict[str, Any]:
    """Choose rows so that their whole wire costs at most limit - reserve tokens.

    Rows come permitted and ranked; `strategy` is a name in STRATEGIES (else a
    ValueError). Whole rows only; `truncate` adds cut copies, marked as such.
    Returns `selected`, `rendered` (the wire) and `context_tokens` (its cost); the
    input is not changed. Raises BudgetError where limit or reserve are no positive
    ints, or where the question alone does not fit.
    """
    check_whole(1, limit=limit, reserve=reserve)
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is none of {', '.join(STRATEGIES)}")
    meter = open_meter(query, tokenizer)
    if meter.used + reserve > limit:
        raise BudgetError(
            f"the question ({meter.used} tokens) and the reserve ({reserve}) need"
            f" {meter.used + reserve} tokens, the limit is {limit}"
        )
    STRATEGIES[strategy](ranked, meter, limit - reserve)
    rendered = render_context(query, meter.rows)
    cost = tokenizer.count(rendered)
    if cost != meter.used:
        raise BudgetError("stored counts do not belong to these texts: use --rebuild")
    return {"selected": meter.rows, "rendered": rendered, "context_tokens": cost}
