"""The store: the library becomes one SQLite file, replaced while it is being read.

Everything that a question needs is counted once, when the library is published, and
apart for each audience. A question then reads the postings of its own terms only.
"""

import json
import sqlite3
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from zlib import compress

from access import AUDIENCES, audience, visible
from console import safe
from database import APPLICATION, FORMAT, SCHEMA, StoreError, connection, default_db
from embeddings import Embedder, get_embedder
from library import Document, Fault, default_library, load, split
from postings import Postings
from rows import make_row
from snapshot import Snapshot
from snapshot import open_snapshot as open_snapshot
from terms import terms


def publish(path: Path | str, documents: Iterable[Document]) -> str:
    """Make `documents` the library that the file at `path` answers from.

    Returns its version. All happens in one transaction: who reads meanwhile, or
    after a crash, finds the version before. Raises ValueError for two documents
    with one id, and StoreError if the file cannot be written.
    """
    documents = sorted(documents, key=lambda document: document.id)
    hashes = {document.id: document_hash(document) for document in documents}
    if len(hashes) < len(documents):
        raise ValueError("two documents have the same id")
    version = version_of(hashes.items())
    with connection(path, "rwc") as db:
        # The write-ahead log lets readers go on with the version they opened.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        # All but the vectors: those of unchanged texts are used again.
        tables = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'vectors'"
        )
        for (table,) in tables.fetchall():
            db.execute(f"DROP TABLE {table}")
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        embedder = get_embedder()
        db.execute("INSERT INTO library VALUES (?, ?)", [version, embedder.space])
        for document in documents:
            write_document(db, document, hashes[document.id])
        write_index(db, documents, hashes)
        write_vectors(db, embedder)
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


def write_index(
    db: sqlite3.Connection, documents: list[Document], hashes: Mapping[str, str]
) -> None:
    """Store the parts, and what each audience and each role needs to search them."""
    postings: defaultdict[tuple[str, str], Postings] = defaultdict(Postings)
    sizes: defaultdict[str, Counter] = defaultdict(Counter)
    number = 0
    for document in documents:
        if not (group := audience(document)):
            continue  # what nobody may read is neither cut into parts nor counted
        for part in split(document):
            number += 1
            text = make_row(part)["text"]
            counts = Counter(terms(text))
            length = counts.total()
            sizes[group].update(parts=1, terms=length)
            for term, count in counts.items():
                postings[group, term].add(number, count, length)
            db.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, document.id, part.part, part.heading, part.start, part.end)
                + (sha256(text.encode()).hexdigest(),),
            )
    for key, entries in sorted(postings.items()):
        packed = (entries.numbers.tobytes(), entries.codes.tobytes())
        db.execute(
            "INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?)",
            (*key, *entries.bounds(), *packed),
        )
    for role, groups in AUDIENCES.items():
        total = sum((sizes[group] for group in groups), Counter())
        seen = [(d.id, hashes[d.id]) for d in visible(documents, role)]
        db.execute(
            "INSERT INTO views VALUES (?, ?, ?, ?)",
            (role, version_of(seen), total["parts"], total["terms"]),
        )


def write_vectors(db: sqlite3.Connection, embedder: Embedder, size: int = 32) -> None:
    """Store a vector for the text of each part; those of unchanged texts are there.

    They are made `size` at a time; on a terminal the progress is shown. A text that
    cannot be embedded whole gets none, which is told: only words will find it, and the
    next publishing tries again.
    """
    db.execute(
        """
        DELETE FROM vectors
        WHERE space != ? OR text_hash NOT IN (SELECT text_hash FROM parts)
        """,
        [embedder.space],
    )
    new = db.execute(
        """
        SELECT number, text_hash FROM parts LEFT JOIN vectors USING (text_hash)
        WHERE vector IS NULL ORDER BY number
        """
    ).fetchall()
    for start in range(0, len(new), size):
        batch = new[start : start + size]
        parts = [Snapshot(db).read_part(number) for number, _ in batch]
        vectors = embedder.embed([make_row(part)["text"] for part in parts])
        for (_, text_hash), part, vector in zip(batch, parts, vectors, strict=True):
            db.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                (
                    embedder.space,
                    text_hash,
                    compress(array("f", vector)) if vector else None,
                ),
            )
            if not vector:
                print(safe(f"not_embedded: {part.id}: too long"), file=sys.stderr)
        if sys.stderr.isatty():
            print(f"embedded {start + len(batch)} of {len(new)}", file=sys.stderr)


def document_hash(document: Document) -> str:
    """Return the hash of everything in a document that can change an answer."""
    fields = json.dumps([*astuple(document)[:-1], sorted(document.applies)])
    return sha256(fields.encode()).hexdigest()


def version_of(hashes: Iterable[tuple[str, str]]) -> str:
    """Return the version, 12 hex digits, of documents given as (id, hash)."""
    return sha256(json.dumps(sorted(hashes)).encode()).hexdigest()[:12]


def refresh(
    path: Path | str | None = None,
    folder: Path | str | None = None,
    rebuild: bool = False,
) -> tuple[str, list[Fault]] | None:
    """Publish the library folder again if its content has changed, or on `rebuild`.

    Returns the new version and the faults of the files that were left out, or None
    if the snapshot was already that of the folder. Defaults as everywhere.
    """
    path = path or default_db()
    documents, faults = load(folder or default_library())
    try:
        with open_snapshot(path) as snapshot:
            published = snapshot.version
            if not rebuild:
                snapshot.check_space(get_embedder().space)
    except StoreError as error:
        if error.reason != "not_published":
            raise
        published = ""
    version = version_of((d.id, document_hash(d)) for d in documents)
    if version == published and not rebuild:
        return None
    return publish(path, documents), faults
