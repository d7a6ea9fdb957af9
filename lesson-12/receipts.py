"""Receipts: what an answer rests on, kept in a file, and looked at again later."""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from access import may_read
from journal import current
from library import ROLES, Document
from snapshot import Snapshot, open_snapshot


def make_receipt(
    result: Mapping, role: str, settings: Mapping, path: Path | str | None = None
) -> dict:
    """Return the receipt of an answer that was given to `role` with `settings`.

    Its version is the one that the answer was chosen from, whatever was published
    since. Raises ValueError if one of its sources has changed already.
    """
    with open_snapshot(path) as snapshot:
        states = [look_at(snapshot, source, role) for source in result["sources"]]
        if any(state["state"] != "valid" for state in states):
            raise ValueError("the library changed while the answer was made: ask again")
        return {
            "role": role,
            "view_version": result["view_version"],
            "space": snapshot.space,
            "settings": dict(settings),
            "rests_on": rests_on(result),
            "answer_hash": hash_of(json.dumps(result, sort_keys=True)),
            "answer": dict(result),
        }


def rests_on(result: Mapping) -> list[dict]:
    """Return what ties an answer to its sources: places, and hashes of the quotes."""
    return [
        {key: source[key] for key in ("id", "doc_id", "revision", "part")}
        | {"quote_hash": hash_of(source["quote"])}
        for source in result["sources"]
    ]


def save_receipt(receipt: Mapping, file: Path | str) -> None:
    """Write a receipt to a new file, completely or not at all."""
    file = Path(file)
    if file.exists():
        raise ValueError(f"{file} exists: name a new file for the receipt")
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        half.write_text(
            json.dumps(receipt, ensure_ascii=False, indent=1) + "\n",
            encoding="utf-8",
            newline="\n",
            errors="backslashreplace",
        )
        half.replace(file)
    finally:
        half.unlink(missing_ok=True)


def recheck(
    file: Path | str, role: str = "reader", path: Path | str | None = None
) -> dict:
    """Tell for each source of a saved receipt what has become of it, as `role` sees it.

    `valid`: the same revision; `revised`: another one, and whether the quote still
    stands in it word for word; `gone`. Why it is gone is told to an editor; to a
    reader withdrawn, deleted and no longer permitted look alike. Raises ValueError
    for a file that is no receipt, or one that was changed.
    """
    bad = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
    try:
        receipt = json.loads(Path(file).read_text(encoding="utf-8-sig"))
        version, owner = receipt["view_version"], receipt["role"]
        answer, kept = receipt["answer"], (receipt["rests_on"], receipt["answer_hash"])
        tied = rests_on(answer), hash_of(json.dumps(answer, sort_keys=True))
        sources = [{**each, "shown": shown(answer, each)} for each in answer["sources"]]
        texts = [t for each in sources for t in (each["doc_id"], *each["shown"])]
        if owner not in ROLES or not all(isinstance(text, str) for text in texts):
            raise TypeError("no such role, or a doc_id or a quote that is no text")
    except bad as error:
        raise ValueError(f"{file} is no receipt: {error!r}") from error
    if tied != kept:
        raise ValueError(f"{file} was changed: its answer is not the one it rests on")
    with open_snapshot(path) as snapshot:
        states = [look_at(snapshot, source, role) for source in sources]
        # The version of a view is told to nobody who may read less than it shows.
        same = (
            snapshot.view_version(owner) == version
            if role in (owner, "editor")
            else None
        )
    return {"status": "rechecked", "same_version": same, "sources": states}


def shown(answer: Mapping, source: Mapping) -> list[str]:
    """Return the quotes that were printed from a source, or else its whole part."""
    mine = [
        quote["quote"]
        for quote in answer.get("quotes", [])
        if quote["source_id"] == source["id"]
    ]
    return mine or [source["quote"]]


def look_at(snapshot: Snapshot, source: Mapping, role: str) -> dict:
    """Return what has become of one source, as `role` may know it."""
    document = current(snapshot.db, source["doc_id"])
    state = {key: source[key] for key in ("id", "doc_id", "revision", "part")}
    if document is None or not may_read(role, document):
        why = {"why": reason_of(document)} if role == "editor" else {}
        return {**state, "state": "gone", **why}
    quotes = source.get("shown", [source["quote"]])
    stands = all(quote in document.body for quote in quotes)
    # A library that was made anew counts its revisions anew: look at the words, too.
    if stands and document.revision == source["revision"]:
        return {**state, "state": "valid"}
    return {
        **state,
        "state": "revised",
        "revision_now": document.revision,
        "quote_stands": stands,
    }


def reason_of(document: Document | None) -> str:
    """Return why an editor cannot read a document any more."""
    if document is None:
        return "deleted"
    return "withdrawn" if document.status == "withdrawn" else "not permitted"


def hash_of(quote: str) -> str:
    """Return the hash that ties a receipt to the words of a quote."""
    return sha256(quote.encode("utf-8", "backslashreplace")).hexdigest()
