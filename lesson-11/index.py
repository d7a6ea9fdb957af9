"""The index: all that is counted when the library is published."""

import sqlite3
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from zlib import compress

from access import AUDIENCES, audience
from console import safe
from embeddings import Embedder
from library import Document, split
from parts import Part
from postings import Postings
from rows import make_row
from snapshot import Snapshot
from terms import terms


def write_index(
    db: sqlite3.Connection, before: list[Document], after: list[Document]
) -> None:
    """Take documents out of the parts and postings, and put others in.

    Only the postings of terms that stand in one of them are read and written.
    """
    postings: dict[tuple[str, str], Postings] = {}
    sizes: defaultdict[str, Counter] = defaultdict(Counter)
    for document in before:
        for number, part, owner in numbered(db, document):
            counts = Counter(terms(make_row(part)["text"]))
            sizes[owner].subtract({"parts": 1, "terms": counts.total()})
            for term in counts:
                stored(db, postings, (owner, term)).remove(number)
            db.execute("DELETE FROM parts WHERE number = ?", [number])
    (number,) = db.execute("SELECT max(number) FROM parts").fetchone()
    number = number or 0
    for document in after:
        if not (group := audience(document)):
            continue  # what nobody may read is neither cut into parts nor counted
        for part in split(document):
            number += 1
            text = make_row(part)["text"]
            counts = Counter(terms(text))
            length = counts.total()
            sizes[group].update(parts=1, terms=length)
            for term, count in counts.items():
                stored(db, postings, (group, term)).add(number, count, length)
            db.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, document.id, part.part, part.heading, part.start, part.end)
                + (sha256(text.encode()).hexdigest(),),
            )
    for key, entries in sorted(postings.items()):
        if entries.numbers:
            packed = (entries.numbers.tobytes(), entries.codes.tobytes())
            db.execute(
                "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?, ?, ?)",
                (*key, *entries.bounds(), *packed),
            )
        else:
            db.execute("DELETE FROM postings WHERE audience = ? AND term = ?", key)
    for role, groups in AUDIENCES.items():
        for group in groups:
            db.execute(
                "UPDATE views SET parts = parts + ?, terms = terms + ? WHERE role = ?",
                [sizes[group]["parts"], sizes[group]["terms"], role],
            )


def numbered(
    db: sqlite3.Connection, document: Document
) -> Iterator[tuple[int, Part, str]]:
    """Yield number, part and audience of what the library has of a document."""
    query = "SELECT number FROM parts WHERE doc_id = ? ORDER BY part"
    numbers = [number for (number,) in db.execute(query, [document.id])]
    if group := audience(document):
        for number, part in zip(numbers, split(document), strict=True):
            yield number, part, group


def stored(
    db: sqlite3.Connection,
    postings: dict[tuple[str, str], Postings],
    key: tuple[str, str],
) -> Postings:
    """Return the postings of an audience's term, read from the file the first time."""
    if key not in postings:
        postings[key] = Postings()
        query = "SELECT * FROM postings WHERE audience = ? AND term = ?"
        for row in db.execute(query, key):
            postings[key].numbers.frombytes(row["numbers"])
            postings[key].codes.frombytes(row["codes"])
    return postings[key]


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
    read_part = Snapshot(db).read_part
    for start in range(0, len(new), size):
        batch = [
            (read_part(number), text_hash)
            for number, text_hash in new[start : start + size]
        ]
        texts = [make_row(part)["text"] for part, _ in batch]
        for (part, text_hash), vector in zip(batch, embedder.embed(texts), strict=True):
            db.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                (
                    text_hash,
                    embedder.space,
                    compress(array("f", vector)) if vector else None,
                ),
            )
            if not vector:
                print(safe(f"not_embedded: {part.id}: too long"), file=sys.stderr)
        if sys.stderr.isatty():
            print(f"embedded {start + len(batch)} of {len(new)}", file=sys.stderr)
