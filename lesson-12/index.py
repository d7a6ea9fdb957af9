"""The index: all that is counted when the library is published."""

import json
import sqlite3
import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from itertools import compress, count
from math import log2

from access import AUDIENCES, audience
from console import safe
from embeddings import Embedder
from library import Document, split
from parts import Part
from postings import Collected, levels
from rows import make_row
from sides import BLOCK, STEPS, marks
from snapshot import Snapshot
from terms import terms
from tokens import chosen_tokenizer
from wire import tail_tokens


def write_index(
    db: sqlite3.Connection, before: list[Document], after: list[Document]
) -> set[int]:
    """Take documents out of the parts and postings, and put others in.

    Only the postings of terms that stand in one of them are read and written. Returns
    the numbers of the parts that went and came.
    """
    gone, changed = defaultdict[tuple[str, str], list[int]](list), set[int]()
    postings = {group: Collected(list) for group in AUDIENCES}
    sizes: defaultdict[str, Counter] = defaultdict(Counter)
    for document in before:
        for number, part, owner in numbered(db, document):
            counts = Counter(terms(make_row(part)["text"]))
            sizes[owner].subtract({"parts": 1, "terms": counts.total()})
            changed.add(number)
            for term in counts:
                gone[owner, term].append(number)
                postings[owner].setdefault(term, [])
            db.execute("DELETE FROM parts WHERE number = ?", [number])
    (number,) = db.execute("SELECT ifnull(max(number), 0) FROM parts").fetchone()
    was_empty = not (number or before)  # then no postings have to be looked for
    tokenizer = chosen_tokenizer()
    # Parts with the same words get numbers near each other: levels are short then.
    for document in sorted(after, key=lambda d: (audience(d) or "", d.lang)):
        if not (group := audience(document)):
            continue  # what nobody may read is neither cut into parts nor counted
        for part in split(document):
            number += 1
            row = make_row(part)
            counts = Counter(terms(row["text"]))
            postings[group].add(number, counts)
            sizes[group].update(parts=1, terms=counts.total())
            changed.add(number)
            db.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number, document.id, part.part, part.heading, part.start, part.end)
                + (counts.total(), sha256(row["text"].encode()).hexdigest())
                + (tokenizer.fingerprint, tail_tokens(row, tokenizer)),
            )
    for group, collected in postings.items():
        for term in sorted(collected):
            write_postings(
                db, group, term, gone.get((group, term), []), collected[term], was_empty
            )
    for role, groups in AUDIENCES.items():
        for group in groups:
            db.execute(
                "UPDATE views SET parts = parts + ?, terms = terms + ? WHERE role = ?",
                [sizes[group]["parts"], sizes[group]["terms"], role],
            )
    return changed


def numbered(
    db: sqlite3.Connection, document: Document
) -> Iterator[tuple[int, Part, str]]:
    """Yield number, part and audience of what the library has of a document."""
    found = db.execute(
        "SELECT number FROM parts WHERE doc_id = ? ORDER BY part", [document.id]
    )
    if group := audience(document):
        for (number,), part in zip(found.fetchall(), split(document), strict=True):
            yield number, part, group


def write_postings(
    db: sqlite3.Connection,
    group: str,
    term: str,
    gone: list[int],
    added: list[bytes],
    is_new: bool = False,
) -> None:
    """Take parts out of the postings of a term, and put those behind that are new.

    A term that `is_new` has no postings yet.
    """
    key = (group, term)
    found = (
        []
        if is_new
        else db.execute(
            "SELECT entries FROM postings WHERE audience = ? AND term = ?", key
        )
    )
    entries = bytearray().join(row["entries"] for row in found)
    if gone:
        numbers = array("I", entries)[::3]
        for number in gone:
            place = bisect_left(numbers, number)
            if numbers[place : place + 1] == array("I", [number]):
                del numbers[place], entries[12 * place : 12 * place + 12]
    entries += b"".join(added)
    if entries:
        db.execute(
            "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?, ?, ?)",
            (*key, *levels(entries), entries),
        )
    else:
        db.execute("DELETE FROM postings WHERE audience = ? AND term = ?", key)


def write_vectors(
    db: sqlite3.Connection, embedder: Embedder, size: int = 32
) -> set[int]:
    """Store a vector for the text of each part; those of unchanged texts are there.

    They are made `size` at a time; on a terminal the progress is shown. A text that
    cannot be embedded whole gets none, which is told: only words will find it, and the
    next publishing of a new text tries again. The file keeps those numbers of a vector
    that are not 0, and their places; where none is 0 the places need not be told.
    Returns the numbers of the parts without a vector so far.
    """
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
    return {number for number, _ in new}


def write_sides(db: sqlite3.Connection, numbers: set[int]) -> None:
    """Store which sides these parts are on, a bit for each part, in blocks of parts.

    Which parts are how large is kept for each audience apart: only parts that have a
    size are looked at later. What these parts were on before is forgotten, and of
    blocks with other parts only those sides are written that change.
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
        others = ~sum(
            1 << number % BLOCK for number in numbers if number // BLOCK == block
        )
        for group, side, packed in db.execute(
            "SELECT audience, side, bits FROM sides WHERE block = ?", [block]
        ):
            bits[group][side][:] = (int.from_bytes(packed, "little") & others).to_bytes(
                BLOCK // 8, "little"
            )
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
            """
            INSERT INTO sides VALUES (?, ?, ?, ?) ON CONFLICT (audience, side, block)
            DO UPDATE SET bits = excluded.bits WHERE bits != excluded.bits
            """,
            (
                (group, side, block, parts.rstrip(b"\0"))
                for group, by_side in bits.items()
                for side, parts in sorted(by_side.items())
            ),
        )
        db.execute("DELETE FROM sides WHERE block = ? AND bits = x''", [block])
