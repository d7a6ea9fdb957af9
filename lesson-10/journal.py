"""The journal: what happened to which document, in the order in which it happened."""

import json
import sqlite3
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from database import StoreError, connection
from library import Document
from snapshot import as_document, open_snapshot
from versions import document_hash

OUT = ("withdraw", "delete", "purge")  # what takes a document away from its readers


@dataclass
class Change:
    """One document before and after; None where there is none."""

    what: str  # put, withdraw, delete or purge
    doc_id: str
    before: Document | None
    after: Document | None
    by_hand: bool


def current(db: sqlite3.Connection, doc_id: str) -> Document | None:
    """Return the document that the library has under this id now."""
    row = db.execute("SELECT * FROM documents WHERE doc_id = ?", [doc_id]).fetchone()
    return as_document(row) if row else None


def highest_revision(db: sqlite3.Connection, doc_id: str) -> int:
    """Return the highest revision that a document ever had; 0 if it never was."""
    return db.execute(
        "SELECT ifnull(max(to_revision), 0) FROM journal WHERE doc_id = ?", [doc_id]
    ).fetchone()[0]


def taken_out_by_hand(db: sqlite3.Connection, doc_id: str) -> bool:
    """Return whether somebody withdrew or deleted the document, and nobody put it back.

    That its file vanished from the folder meanwhile changes nothing about that.
    """
    last = db.execute(
        """
        SELECT what FROM journal WHERE doc_id = ? AND (by_hand OR what = 'put')
        ORDER BY entry DESC LIMIT 1
        """,
        [doc_id],
    ).fetchone()
    return last is not None and last["what"] in OUT


def put_change(
    db: sqlite3.Connection, document: Document, by_hand: bool = True
) -> Change | None:
    """Return the change that puts a document, or None if the library has it already.

    A changed document gets the revision that it declares or the one after its highest,
    whichever is higher. Raises StoreError if a deleted document is to return by hand
    with a revision that it has had.
    """
    before, highest = current(db, document.id), highest_revision(db, document.id)
    if by_hand and highest and before is None and document.revision <= highest:
        raise StoreError(
            "old_revision",
            f"{document.id} was deleted: declare a revision above {highest}",
        )
    if before and document.revision <= before.revision:
        unchanged = replace(document, revision=before.revision)
        if document_hash(unchanged) == document_hash(before):
            return None
    after = replace(document, revision=max(document.revision, highest + 1))
    return Change("put", document.id, before, after, by_hand)


def record(db: sqlite3.Connection, changes: list[Change], version: str) -> None:
    """Write one entry for each change, all with the version after the transaction."""
    db.executemany(
        "INSERT INTO journal VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                change.what,
                change.doc_id,
                change.before.revision if change.before else None,
                change.after.revision if change.after else None,
                change.by_hand,
                version,
                json.dumps(asdict(change.after)) if change.after else None,
            )
            for change in changes
        ),
    )


def history(path: Path | str, doc_id: str | None = None) -> list[dict]:
    """Return the entries of the journal, oldest first, numbered from 1 without gaps.

    Each says what happened, to which document, from which revision to which (None for
    no document), whether by hand, and the version after its transaction.
    """
    with open_snapshot(path) as snapshot:
        return [
            {**dict(row), "by_hand": bool(row["by_hand"])}
            for row in snapshot.db.execute(
                """
                SELECT entry, what, doc_id, from_revision, to_revision, by_hand, version
                FROM journal WHERE ? IS NULL OR doc_id = ? ORDER BY entry
                """,
                [doc_id, doc_id],
            )
        ]


def last_entry(path: Path | str) -> int:
    """Return the number of the journal's last entry; 0 if there is none to go on with.

    Publishing goes on with a journal of form 410 or later, and begins another one
    where the file is older, or not there.
    """
    with suppress(StoreError), connection(path, "rw") as db:
        return db.execute(
            "SELECT coalesce(max(entry), 0) FROM journal, pragma_user_version"
            " WHERE user_version >= 410"
        ).fetchone()[0]
    return 0


def documents_at(path: Path | str, upto: int) -> tuple[list[Document], str]:
    """Return the documents as they were after entry `upto`, and the version recorded.

    Raises StoreError if there is no such entry, if it is not the last one of its
    transaction, or if a document was purged later: its text is gone.
    """
    with open_snapshot(path) as snapshot:
        journal = snapshot.db.execute("SELECT * FROM journal ORDER BY entry").fetchall()
    if not 1 <= upto <= len(journal):
        raise StoreError("no_entry", f"the journal of {path} has no entry {upto}")
    entries, later = journal[:upto], journal[upto:]
    if any(entry["what"] == "purge" for entry in later):
        raise StoreError("purged", f"a text was purged after entry {upto}: it is gone")
    version = entries[-1]["version"]
    # An entry by hand is a transaction of its own, also where it changed no text.
    if later and later[0]["version"] == version and not later[0]["by_hand"]:
        raise StoreError("no_entry", f"entry {upto} is not the end of its transaction")
    documents: dict[str, Document] = {}
    for entry in entries:
        documents.pop(entry["doc_id"], None)
        if entry["document"]:
            fields = json.loads(entry["document"])
            documents[entry["doc_id"]] = Document(
                **{**fields, "applies": tuple(map(tuple, fields["applies"]))}
            )
    return list(documents.values()), version
