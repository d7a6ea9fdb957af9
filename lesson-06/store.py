"""The store: the library becomes one SQLite file, replaced while it is being read.

Everything that a question needs is counted once, when the library is published, and
apart for each audience. A question then reads the postings of its own terms only.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from access import audience
from database import APPLICATION, FORMAT, SCHEMA, StoreError, connection, default_db
from index import write_index
from library import Document, Fault, default_library, load
from snapshot import Snapshot
from snapshot import open_snapshot as open_snapshot
from versions import document_hash, fingerprint, version_of


def publish(
    path: Path | str,
    documents: Iterable[Document],
    files: str = "",
    seen: str | None = None,
) -> str:
    """Make `documents` the library that the file at `path` answers from.

    Returns its version. All happens in one transaction: who reads meanwhile, or
    after a crash, finds the version before. `files` is the fingerprint of the folder
    from before it was read, `seen` the version from before that, empty if there was
    none: if somebody has published since, nothing is written, and "" returned. Raises
    ValueError for two documents with one id, and StoreError if the file cannot be
    written.
    """
    documents = sorted(documents, key=lambda document: document.id)
    hashes = {document.id: document_hash(document) for document in documents}
    if len(hashes) < len(documents):
        raise ValueError("two documents have the same id")
    version = version_of(hashes.items())
    with connection(path, "rwc") as db:
        # The write-ahead log lets readers go on with the version they opened. Where
        # several publish a new file at once, one switches it on, and the others fail.
        with suppress(sqlite3.OperationalError):
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        (made_by,) = db.execute("PRAGMA user_version").fetchone()
        if seen not in (None, Snapshot(db).version if made_by == FORMAT else ""):
            return ""
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            db.execute(f"DROP TABLE {table}")
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("INSERT INTO library VALUES (?, ?)", [version, files])
        for document in documents:
            write_document(db, document, hashes[document.id])
        write_index(db, documents, hashes)
        db.execute("COMMIT")
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
    """Publish the library folder again if its content has changed, or on `rebuild`.

    Returns the new version and the faults of the files that were left out, or None
    if the snapshot was already that of the folder. Defaults as everywhere.
    """
    path, folder = path or default_db(), folder or default_library()
    files, published = fingerprint(folder), ""
    try:
        with open_snapshot(path) as snapshot:
            published = snapshot.version
            if files and files == snapshot.files and not rebuild:
                return None
    except StoreError as error:
        if error.reason != "not_published":
            raise
    documents, faults = load(folder)
    # What was left out may become readable, and no time of a file would tell.
    files = "" if faults else files
    if not rebuild and published == version_of(
        (document.id, document_hash(document)) for document in documents
    ):
        remember(path, published, files)
        return None
    # Whoever waited for another publisher has read the folder too early.
    return (
        (version, faults)
        if (version := publish(path, documents, files, published))
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
