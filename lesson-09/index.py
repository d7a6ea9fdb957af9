"""The index: all that is counted when the library is published."""

import json
import sqlite3
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from hashlib import sha256
from itertools import compress, count
from math import log2

from access import AUDIENCES, audience, visible
from console import safe
from embeddings import Embedder
from library import Document, split
from postings import Collected, levels
from rows import make_row
from sides import BLOCK, STEPS, marks
from snapshot import Snapshot
from terms import terms
from versions import version_of


def write_index(
    db: sqlite3.Connection, documents: list[Document], hashes: Mapping[str, str]
) -> None:
    """Store the parts, and what each audience and each role needs to search them."""
    postings = {group: Collected(list) for group in AUDIENCES}
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    number = 0
    # Parts with the same words get numbers near each other: levels are short then.
    for document in sorted(documents, key=lambda d: (audience(d) or "", d.lang)):
        if not (group := audience(document)):
            continue  # what nobody may read is neither cut into parts nor counted
        for part in split(document):
            number += 1
            text = make_row(part)["text"]
            counts = Counter(terms(text))
            postings[group].add(number, counts)
            lengths[group].append(counts.total())
            db.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (number, document.id, part.part, part.heading, part.start, part.end)
                + (counts.total(), sha256(text.encode()).hexdigest()),
            )
    for group, collected in postings.items():
        db.executemany(
            "INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?)",
            (
                (group, term, *levels(entries := b"".join(collected[term])), entries)
                for term in sorted(collected)
            ),
        )
    for role, groups in AUDIENCES.items():
        counted = [length for group in groups for length in lengths[group]]
        seen = [(d.id, hashes[d.id]) for d in visible(documents, role)]
        db.execute(
            "INSERT INTO views VALUES (?, ?, ?, ?)",
            (role, version_of(seen), len(counted), sum(counted)),
        )


def write_vectors(db: sqlite3.Connection, embedder: Embedder, size: int = 32) -> None:
    """Store a vector for the text of each part; those of unchanged texts are there.

    They are made `size` at a time; on a terminal the progress is shown. A text that
    cannot be embedded whole gets none, which is told: only words will find it, and the
    next publishing tries again. The file keeps those numbers of a vector that are not
    0, and their places; where none is 0 the places need not be told.
    """
    db.execute(
        """
        DELETE FROM embeddings
        WHERE space != ? OR text_hash NOT IN (SELECT text_hash FROM parts)
        """,
        [embedder.space],
    )
    new = db.execute(
        """
        SELECT number, text_hash FROM parts
        WHERE text_hash NOT IN (SELECT text_hash FROM embeddings) ORDER BY number
        """
    ).fetchall()
    read_part = Snapshot(db).read_part
    for start in range(0, len(new), size):
        batch = [
            (read_part(number), text_hash)
            for number, text_hash in new[start : start + size]
        ]
        for (part, text_hash), vector in zip(
            batch,
            embedder.embed([make_row(part)["text"] for part, _ in batch]),
            strict=True,
        ):
            if vector:
                db.execute(
                    "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?)",
                    (
                        text_hash,
                        embedder.space,
                        b"" if all(vector) else array("H", compress(count(), vector)),
                        array("f", filter(None, vector)),
                    ),
                )
            else:
                print(safe(f"not_embedded: {part.id}: too long"), file=sys.stderr)
        if sys.stderr.isatty():
            print(f"embedded {start + len(batch)} of {len(new)}", file=sys.stderr)


def write_sides(db: sqlite3.Connection, numbers: set[int]) -> None:
    """Store which sides these parts are on, a bit for each part, in blocks of parts.

    Which parts are how large is kept for each audience apart: only parts that have a
    size are looked at later.
    """
    query = """
        SELECT number, audience, places, numbers FROM parts
        JOIN documents USING (doc_id) JOIN embeddings USING (text_hash)
        WHERE number IN (SELECT value FROM json_each(?))"""
    for block in {number // BLOCK for number in numbers}:
        bits = {
            group: defaultdict[int, bytearray](lambda: bytearray(BLOCK // 8))
            for group in ("", *AUDIENCES)
        }
        for number, group, places, kept in db.execute(
            query, [json.dumps([n for n in numbers if n // BLOCK == block])]
        ):
            byte, bit = number % BLOCK // 8, 1 << number % 8
            held = list(
                zip(array("H", places) or count(), array("f", kept), strict=False)
            )
            bits[group][int(STEPS * log2(len(held) or 1))][byte] |= bit
            for side in marks(held):
                bits[""][side][byte] |= bit
        db.executemany(
            "INSERT INTO sides VALUES (?, ?, ?, ?)",
            (
                (group, side, block, parts.rstrip(b"\0"))
                for group, by_side in bits.items()
                for side, parts in sorted(by_side.items())
            ),
        )
