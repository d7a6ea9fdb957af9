"""The index: all that is counted when the library is published."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping

from access import AUDIENCES, audience, visible
from library import Document, split
from postings import Collected, levels
from rows import make_row
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
            counts = Counter(terms(make_row(part)["text"]))
            postings[group].add(number, counts)
            lengths[group].append(counts.total())
            db.execute(
                "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, document.id, part.part, part.heading, part.start, part.end)
                + (counts.total(),),
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
