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
from model import generate, read_settings
from reply import AnswerError
from rows import HybridRow, SourceRow
from store import open_snapshot

BACKENDS = ("sources", "quotes", "ollama")


def build_context(rows: Iterable[HybridRow], budget: int = 2400) -> list[SourceRow]:
    """Pack rows into `budget` characters, and give them short ids: S1, S2, …

    A row costs its heading, a newline and its body: addresses are not sent, the app
    keeps them. Returns copies, whose `url` leads to the part.
    """
    chosen = pack(rows, budget, lambda row: len(row["heading"]) + 1 + len(row["body"]))
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
    budget: int = 2400,
    backend: str | None = None,
    limit: int = 6,
    path: Path | str | None = None,
) -> dict[str, Any]:
    """Answer a question with the backend, by default that of ANSWER_BACKEND.

    Returns `status`, `answer` (a text, or None), `sources` (what the answer rests on),
    `space`, and the `view_version` that they were chosen from. The status is one of
    no_sources, sources_only, quoted (with `quotes`), generated_unverified and
    insufficient (with `looked_at`: what does not answer). A `reason` tells why there
    are no sources or, with a `message`, why the answer of a model is not shown. Raises
    ValueError for a setting that cannot be used.
    """
    backend = backend or os.environ.get("ANSWER_BACKEND") or "sources"
    if backend not in BACKENDS:
        raise ValueError(f"ANSWER_BACKEND is {backend!r}: use {', '.join(BACKENDS)}")
    if backend == "ollama":
        read_settings()  # a wrong one is told whatever is found
    rows, version = search_view(query, role, limit, facts, path)
    chosen = build_context(rows, budget)
    result = {
        "status": "sources_only" if chosen else "no_sources",
        "answer": None,
        "sources": as_sources(chosen),
        "space": rows[0]["space"] if rows else None,
        "view_version": version,
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
    """Answer with the words of a model, or tell why they are not shown."""
    try:
        reply = generate(query, chosen)
    except AnswerError as error:
        return {"reason": error.reason, "message": str(error)}
    if reply["status"] == "insufficient":
        return refusal(chosen)  # what it says without a source is not passed on
    return {
        "status": "generated_unverified",
        "answer": reply["text"],
        "sources": as_sources(chosen, reply["source_ids"]),
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
