"""The answer: what was found, under short ids; quotes from it; or a model's words."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from context import pack
from extract import extract
from features import telling_terms
from hybrid import search_view
from model import check_answer_model as check_answer_model
from model import generate, read_settings, share_window, tokenizer_for
from reply import AnswerError, without_addresses
from rows import CountedRow, SourceRow
from store import open_snapshot

BACKENDS = ("sources", "quotes", "ollama")


def with_ids(chosen: Iterable[CountedRow]) -> list[SourceRow]:
    """Give rows the short ids that they have on the wire: S1, S2, …

    Returns copies, whose `url` leads to the part.
    """
    return [
        {**row, "source_id": f"S{number}", "url": part_address(row["url"], row["part"])}
        for number, row in enumerate(chosen, start=1)
    ]


def part_address(url: str, part: int) -> str:
    """Return the address of a part; a place that `url` names itself is kept."""
    page, _, place = url.partition("#")
    return url if place else f"{page}#part-{part:02}"


def answer(
    query: str,
    role: str = "reader",
    facts: Mapping[str, str] | None = None,
    budget: int | None = None,
    backend: str | None = None,
    limit: int = 6,
    path: Path | str | None = None,
) -> dict[str, Any]:
    """Answer a question with the backend, by default that of ANSWER_BACKEND.

    `budget` is a window in tokens, where it is to be smaller than ANSWER_WINDOW.

    Returns `status`, `answer` (a text, or None), `sources` (what the answer rests on),
    `space`, the `view_version` that they were chosen from, and in `context` the
    `tokens` that the user message costs, the `room` for it, whose tokens they are, and
    the `unit` that was counted: tokens or, as an upper bound, bytes. The status is one
    of no_sources, sources_only, quoted (with `quotes`), generated_quoted and
    generated_unverified (with `quotes` and `rejected`) and insufficient (with
    `looked_at`: what does not answer). A `reason` tells why there are no sources or,
    with a `message`, why the answer of a model is not shown. Raises ValueError for a
    setting that cannot be used, and BudgetError where the question alone does not fit.
    """
    backend = backend or os.environ.get("ANSWER_BACKEND") or "sources"
    if backend not in BACKENDS:
        raise ValueError(f"ANSWER_BACKEND is {backend!r}: use {', '.join(BACKENDS)}")
    if backend == "ollama":
        read_settings()  # a wrong one is told whatever is found
    rows, version = search_view(query, role, limit, facts, path)
    tokenizer = tokenizer_for(backend)
    share = share_window(tokenizer, budget, len(rows))
    kept = share.output + share.fixed + share.reserve
    packed = pack(query, rows, tokenizer, share.window, kept)
    chosen = with_ids(packed["selected"])
    result = {
        "status": "sources_only" if chosen else "no_sources",
        "answer": None,
        "sources": as_sources(chosen),
        "space": rows[0]["space"] if rows else None,
        "view_version": version,
        "context": {
            "tokens": packed["context_tokens"],
            "room": share.variable,
            "tokenizer": tokenizer.fingerprint,
            "unit": tokenizer.unit,
        },
    }
    if not chosen:
        return {**result, "reason": "nothing_fits" if rows else "nothing_found"}
    if backend == "quotes":
        with open_snapshot(path) as snapshot:
            weights = {t: snapshot.weight(t, role) for t in telling_terms(query)}
        return result | quoted(query, chosen, weights)
    if backend == "ollama":
        return result | generated(query, chosen)
    return result


def quoted(
    query: str, chosen: Sequence[SourceRow], weights: Mapping[str, float]
) -> dict[str, Any]:
    """Answer with sentences of the chosen rows, word for word."""
    if not (quotes := extract(query, chosen, weights)):
        return refusal(chosen)
    return {
        "status": "quoted",
        "answer": "\n".join(quote["quote"] for quote in quotes),
        "sources": as_sources(chosen, {quote["source_id"] for quote in quotes}),
        "quotes": quotes,
    }


def generated(query: str, chosen: Sequence[SourceRow]) -> dict[str, Any]:
    """Answer with the quotes of a model that are true, and with its own words.

    No word of it is passed on where none of its quotes is true, or a rule is broken.
    """
    # Here: its patterns take 45 ms to compile, which only a model's answer needs.
    from quotes import check_evidence, verdict

    try:
        reply = generate(query, chosen)
    except AnswerError as error:
        return {"reason": error.reason, "message": str(error)}
    verified, rejected = check_evidence(reply["evidence"], chosen)
    if not verified:
        why = [
            {key: entry[key] for key in ("source_id", "reason")} for entry in rejected
        ]
        return {**refusal(chosen), "rejected": why}
    for entry in rejected:
        entry["quote"] = without_addresses(entry["quote"])
    return {
        "status": verdict(verified, rejected),
        "answer": reply["text"],
        "sources": as_sources(chosen, {quote["source_id"] for quote in verified}),
        "quotes": verified,
        "rejected": rejected,
    }


def refusal(chosen: Sequence[SourceRow]) -> dict[str, Any]:
    """Refuse to answer; what was looked at supports nothing, and is listed apart."""
    return {"status": "insufficient", "sources": [], "looked_at": as_sources(chosen)}


def as_sources(
    rows: Iterable[SourceRow], ids: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Describe rows as sources, all or those with these ids; `quote` is the part."""
    return [
        {
            "id": row["source_id"],
            "doc_id": row["doc_id"],
            "revision": row["revision"],
            "space": row["space"],
            "part": row["part"],
            "title": row["title"],
            "heading": row["heading"],
            "quote": row["body"],
            "url": row["url"],
        }
        for row in rows
        if ids is None or row["source_id"] in ids
    ]
