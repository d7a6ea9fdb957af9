"""The store: the library becomes one SQLite file, replaced while it is being read.

Everything that a question needs is counted once, when the library is published, and
apart for each audience. A question then reads the postings of its own terms only.
"""

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from access import AUDIENCES, audience
from console import safe
from database import APPLICATION, FORMAT, SCHEMA, StoreError, connection, default_db
from embeddings import get_embedder
from index import write_index, write_sides, write_vectors
from journal import (
    Change,
    current,
    documents_at,
    highest_revision,
    put_change,
    record,
    taken_out_by_hand,
)
from journal import history as history
from library import Document, Fault, default_library, load
from snapshot import Snapshot
from snapshot import open_snapshot as open_snapshot
from versions import document_hash, fingerprint, version_of


def publish(
    path: Path | str,
    documents: Iterable[Document],
    rebuild: bool = False,
    files: str = "",
    before: Mapping[str, str] | None = None,
) -> str:
    """Make the documents of a folder the library at `path`; only changes are written.

    A document that is not there any more is deleted. One that somebody withdrew or
    deleted by hand stays out until it declares a higher revision. With `rebuild`
    everything that is counted, and every vector, is made anew. Returns the version.

    `files` is the fingerprint of the folder from before it was read, `before` the
    hashes of the files published before that: if somebody has published others since,
    nothing is written, and "" returned. Raises ValueError for two documents with one
    id, and StoreError if the file cannot be written.
    """
    documents = sorted(documents, key=lambda document: document.id)
    given = {document.id: document for document in documents}
    if len(given) < len(documents):
        raise ValueError("two documents have the same id")
    hashes = {doc_id: document_hash(document) for doc_id, document in given.items()}
    with writing(path) as db:
        seen = dict(db.execute("SELECT doc_id, hash FROM sources").fetchall())
        if before not in (None, seen):
            return ""
        changes = [
            folder_change(db, document)
            for doc_id, document in given.items()
            if seen.get(doc_id) != hashes[doc_id]
        ] + [
            Change("delete", doc_id, current(db, doc_id), None, by_hand=False)
            for doc_id in sorted(seen.keys() - given.keys())
        ]
        db.execute("DELETE FROM sources")
        db.executemany("INSERT INTO sources VALUES (?, ?)", hashes.items())
        db.execute("UPDATE library SET files = ?", [files])
        return carry_out(db, changes, rebuild)


def folder_change(db: sqlite3.Connection, document: Document) -> Change | None:
    """Return the change that a file brings; None, and a message, if it is kept out."""
    highest = highest_revision(db, document.id)
    if taken_out_by_hand(db, document.id) and document.revision <= highest:
        note = f"kept out: {document.id} until it declares a revision above {highest}"
        print(safe(note), file=sys.stderr)
        return None
    return put_change(db, document, by_hand=False)


def put(path: Path | str, document: Document) -> str:
    """Put one document into the library, or change it; return the new version.

    Raises StoreError if it was deleted and declares no higher revision than it had.
    """
    with writing(path) as db:
        return carry_out(db, [put_change(db, document)])


def withdraw(path: Path | str, doc_id: str) -> str:
    """Take a document away from all readers, and keep it; return the new version.

    Raises StoreError if the library has no such document.
    """
    with writing(path) as db:
        before = known(db, doc_id)
        after = replace(before, status="withdrawn")
        # Where only the file withdrew it, the folder would be free to undo that.
        done = after == before and taken_out_by_hand(db, doc_id)
        return carry_out(
            db, [None if done else Change("withdraw", doc_id, before, after, True)]
        )


def delete(path: Path | str, doc_id: str) -> str:
    """Take a document out of the library; return the new version.

    The journal keeps its text. Raises StoreError if the library has none of this id.
    """
    with writing(path) as db:
        return carry_out(db, [Change("delete", doc_id, known(db, doc_id), None, True)])


def purge(path: Path | str, doc_id: str) -> str:
    """Erase a document, all that was counted of it and its past; return the version.

    What is left is its id, and that it was erased. Raises StoreError if there never
    was such a document, or if others keep the file open: then purge again.
    """
    with writing(path) as db:
        if not highest_revision(db, doc_id):
            raise StoreError("unknown_document", f"there never was a document {doc_id}")
        version = carry_out(
            db, [Change("purge", doc_id, current(db, doc_id), None, by_hand=True)]
        )
        db.execute("UPDATE journal SET document = NULL WHERE doc_id = ?", [doc_id])
        db.execute("UPDATE sources SET hash = '' WHERE doc_id = ?", [doc_id])
        db.execute("UPDATE library SET files = ''")  # it is still in the folder
    with connection(path, "rw") as db:
        # What was deleted is still in free pages, and in the log beside the file.
        db.execute("VACUUM")
        (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreError("locked", f"{path} is in use: its old pages are not gone")
    return version


def known(db: sqlite3.Connection, doc_id: str) -> Document:
    """Return a document of the library. Raises StoreError if there is none."""
    if document := current(db, doc_id):
        return document
    raise StoreError("unknown_document", f"the library has no document {doc_id}")


def replay(path: Path | str, upto: int, target: Path | str) -> str:
    """Write the library as it was after journal entry `upto` to a new file `target`.

    Returns its version, which is the one recorded then. Raises StoreError if that is
    not to be had, or if there is a file `target` already.
    """
    documents, version = documents_at(path, upto)
    if Path(target).exists():
        raise StoreError("target_exists", f"{target} exists: name a new file")
    try:
        if publish(target, documents) != version:
            raise StoreError("bad_file", f"{path} is damaged: not version {version}")
    except BaseException:
        Path(target).unlink(missing_ok=True)  # a failure leaves no half library
        raise
    return version


@contextmanager
def writing(path: Path | str) -> Iterator[sqlite3.Connection]:
    """Open the file for one transaction: all that is written in it, or nothing."""
    with connection(path, "rwc") as db:
        # The write-ahead log lets readers go on with the version they opened. Where
        # several publish a new file at once, one switches it on, and the others fail.
        with suppress(sqlite3.OperationalError):
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            make_tables(db)
        yield db
        db.execute("COMMIT")


def make_tables(db: sqlite3.Connection) -> None:
    """Make empty tables; those of earlier lessons hold nothing that must be kept."""
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
    ).fetchall():
        db.execute(f"DROP TABLE {table}")
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("INSERT INTO library VALUES ('', '', ?)", [get_embedder().space])
    db.executemany(
        "INSERT INTO views VALUES (?, '', 0, 0)", ([role] for role in AUDIENCES)
    )


def carry_out(
    db: sqlite3.Connection, changes: Iterable[Change | None], rebuild: bool = False
) -> str:
    """Write changes to the tables, the index and the journal; return the version."""
    done = [c for c in changes if c and (c.before or c.after or c.what == "purge")]
    for change in done:
        if change.before:
            db.execute("DELETE FROM documents WHERE doc_id = ?", [change.doc_id])
        if change.after:
            write_document(db, change.after, document_hash(change.after))
    if rebuild:
        for table in ("parts", "postings", "embeddings", "sides"):
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE views SET parts = 0, terms = 0")
        db.execute("UPDATE library SET space = ?", [get_embedder().space])
        changed = write_index(db, [], Snapshot(db).documents("editor"))
    else:
        changed = write_index(
            db, [c.before for c in done if c.before], [c.after for c in done if c.after]
        )
    db.execute(
        "DELETE FROM embeddings WHERE text_hash NOT IN (SELECT text_hash FROM parts)"
    )
    # Taking away must work where the server of the vectors does not.
    if db.execute(
        """
        SELECT 1 FROM parts WHERE number IN (SELECT value FROM json_each(?))
        AND text_hash NOT IN (SELECT text_hash FROM embeddings)
        """,
        [json.dumps([*changed])],
    ).fetchone():
        embedder = get_embedder()
        Snapshot(db).check_space(embedder.space)
        changed |= write_vectors(db, embedder)
    write_sides(db, changed)
    record(db, done, version := write_versions(db))
    return version


def write_versions(db: sqlite3.Connection) -> str:
    """Store the versions of the whole library and of each view; return the first."""
    rows = db.execute("SELECT doc_id, hash, audience FROM documents").fetchall()
    version = version_of((row["doc_id"], row["hash"]) for row in rows)
    db.execute("UPDATE library SET version = ?", [version])
    db.executemany(
        "UPDATE views SET version = ? WHERE role = ?",
        (
            (version_of((r["doc_id"], r["hash"]) for r in seen), role)
            for role, groups in AUDIENCES.items()
            for seen in [[row for row in rows if row["audience"] in groups]]
        ),
    )
    return version


def write_document(db: sqlite3.Connection, document: Document, digest: str) -> None:
    """Store a document itself."""
    db.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (document.id, digest, audience(document), document.title, document.url)
        + (document.body, document.lang, document.revision, document.role)
        + (document.status, json.dumps(document.applies)),
    )


def refresh(
    path: Path | str | None = None,
    folder: Path | str | None = None,
    rebuild: bool = False,
) -> tuple[str, list[Fault]] | None:
    """Publish what has changed in the library folder, or everything on `rebuild`.

    Returns the new version and the faults of the files that were left out, or None
    if the folder is as it was. Defaults as everywhere.
    """
    path, folder = path or default_db(), folder or default_library()
    files, seen = fingerprint(folder), None
    try:
        with open_snapshot(path) as snapshot:
            if files and files == snapshot.files and not rebuild:
                return None
            seen = dict(
                snapshot.db.execute("SELECT doc_id, hash FROM sources").fetchall()
            )
    except StoreError as error:
        if error.reason != "not_published":
            raise
    documents, faults = load(folder)
    # What was left out may become readable, and no time of a file would tell.
    files = "" if faults else files
    if not rebuild and seen == {d.id: document_hash(d) for d in documents}:
        remember(path, snapshot.version, files)
        return None
    # Whoever waited for another publisher has read the folder too early.
    return (
        (version, faults)
        if (version := publish(path, documents, rebuild, files, seen or {}))
        else refresh(path, folder, rebuild)
    )


def remember(path: Path | str, version: str, files: str) -> None:
    """Note the fingerprint of a folder that was read and found as published.

    It only saves reading it again: where somebody else is writing, nobody waits, and
    what somebody else has published meanwhile is not marked.
    """
    if files:
        with suppress(StoreError), connection(path, "rw") as db:
            db.execute("PRAGMA busy_timeout = 0")
            db.execute(
                "UPDATE library SET files = ? WHERE version = ?", [files, version]
            )
