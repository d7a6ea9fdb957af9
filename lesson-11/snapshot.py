"""The snapshot: one version of the library, asked by one role at a time."""

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, groupby
from operator import itemgetter, mul, or_
from pathlib import Path
from re import finditer

from access import AUDIENCES, applicable, visible
from database import FORMAT, StoreError, connection, default_db
from embeddings import Vector
from library import Document
from parts import Part
from postings import ENTRY, Saturations, Weighted, best, leading
from rows import RankedRow, Row, make_row
from search import idf
from sides import BLOCK, CANDIDATES, LEVELS, STEPS, likely, shared, sides
from terms import terms


@contextmanager
def open_snapshot(path: Path | str | None = None) -> Iterator["Snapshot"]:
    """Open the published library at `path` for one question: one version throughout.

    Raises StoreError if nothing is published there or the file cannot be read.
    """
    path = path or default_db()
    if not Path(path).exists():
        raise StoreError("not_published", f"nothing is published at {path}: --rebuild")
    with connection(path, "rw") as db:
        db.execute("PRAGMA query_only = 1")
        db.execute("BEGIN")  # from the first read on, later publishing is not seen
        (made_by,) = db.execute("PRAGMA user_version").fetchone()
        if made_by != FORMAT:
            raise StoreError("not_published", f"{path} is to be made anew: --rebuild")
        yield Snapshot(db)


class Snapshot:
    """One version of the library. All it returns is cut to what `role` may read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.last: Document | None = None  # the document that was read last
        self.version, self.files, self.space = db.execute(
            "SELECT * FROM library"
        ).fetchone()

    def check_space(self, space: str) -> None:
        """Raise StoreError unless the vectors are those of this space."""
        if space != self.space:
            raise StoreError("other_space", f"not the space {space}: use --rebuild")

    def view_version(self, role: str) -> str:
        """Return the version of what `role` may read, 12 hex digits."""
        return self.view(role)[0]

    def view(self, role: str) -> tuple[str, int, int]:
        """Return version, number of parts and number of terms of a role's view."""
        if role not in AUDIENCES:
            raise ValueError(
                f"unknown role {role!r}: use one of {', '.join(AUDIENCES)}"
            )
        query = "SELECT version, parts, terms FROM views WHERE role = ?"
        return self.db.execute(query, [role]).fetchone()

    def documents(self, role: str) -> list[Document]:
        """Return the documents that `role` may read, sorted by id."""
        found = self.db.execute("SELECT * FROM documents ORDER BY doc_id").fetchall()
        return visible([as_document(row) for row in found], role)

    def part(self, part_id: str, role: str) -> Row | None:
        """Return one part as a row, or None if `role` can read no such part.

        Any text may be asked for. Raises ValueError for a role that does not exist.
        """
        self.view(role)  # it raises: a wrong role is an error whatever the id
        # Half a character is in no id, and nothing that SQLite could look up.
        doc_id, _, number = (
            part_id.encode(errors="replace").decode().rpartition("#part-")
        )
        query = "SELECT number FROM parts WHERE doc_id = ? AND part = ?"
        found = self.db.execute(query, [doc_id, number]).fetchone()
        if found is None:
            return None
        part = self.read_part(found[0])
        known = part.id == part_id and visible([part.document], role)
        return make_row(part) if known else None

    def read_part(self, number: int) -> Part:
        """Return the part that the postings know by its number."""
        query = "SELECT * FROM parts WHERE number = ?"
        row = self.db.execute(query, [number]).fetchone()
        # Parts of one document are often read in a row: a long one is read once then.
        if row and (self.last is None or self.last.id != row["doc_id"]):
            query = "SELECT * FROM documents WHERE doc_id = ?"
            found = self.db.execute(query, [row["doc_id"]]).fetchone()
            self.last = as_document(found) if found else None
        if row is None or self.last is None:
            raise sqlite3.DatabaseError(f"it is damaged, part {number} is missing")
        start, stop = row["start"], row["stop"]
        body = self.last.body[start:stop]
        return Part(self.last, row["part"], row["heading"], body, start, stop)

    def search(
        self,
        query: str,
        role: str = "reader",
        limit: int = 4,
        facts: Mapping[str, str] | None = None,
    ) -> list[RankedRow]:
        """Return the best `limit` parts for `query` that `role` may read, as rows.

        Ids, order and scores are those of `search.search` over the parts of the
        visible documents, applicable to `facts`; but only the postings of the
        query's terms are read, and of the parts no more than are returned.
        """
        if limit < 0:
            raise ValueError(f"limit must be 0 or more, not {limit}")
        _, total, length_of_all = self.view(role)
        saturations = Saturations(length_of_all / max(1, total))
        length = cache(self.length)
        held: dict[str, list[Weighted]] = {group: [] for group in AUDIENCES[role]}
        for term in dict.fromkeys(terms(query)):
            holders = self.holders(term, role)
            weight = idf(total, sum(row["parts"] for row in holders))
            for row in holders:
                if not 0 <= row["first"] < 1 << 28:  # this decides what memory is taken
                    raise sqlite3.DatabaseError(f"it is damaged, see {term}")
                held[row["audience"]].append(
                    Weighted(
                        weight,
                        saturations,
                        dict(ENTRY.iter_unpack(row["entries"] or b"")),
                        row["first"],
                        array("Q", row["tops"] or b""),
                        row["levels"] or b"",
                        length,
                    )
                )
        wanted = limit
        while wanted:
            found = [pair for one in held.values() for pair in best(one, wanted)]
            ranked = leading(dict(found), wanted)
            rows = self.applicable_rows(ranked, facts or {}, limit)
            if len(rows) >= limit or len(ranked) < wanted:
                return rows
            wanted *= 4  # too many of them hold elsewhere only: look further down
        return []

    def nearest(
        self,
        vector: Vector,
        role: str = "reader",
        limit: int = 4,
        facts: Mapping[str, str] | None = None,
    ) -> list[RankedRow]:
        """Return the `limit` parts nearest to a vector of this space, as rows.

        The score is the cosine. It is computed for those parts that `role` may read
        and that may be the nearest, as the sides they share with the vector tell. Where
        up to CANDIDATES parts share a side, these are all. Parts with nothing in common
        are not returned.
        """
        asked = [
            side + level
            for side in sides((place, n) for place, n in enumerate(vector) if n)
            for level in range(LEVELS)
        ]
        groups = likely(
            shared(self.bits("", asked).items()),
            [
                pair
                for group in AUDIENCES[role]
                for pair in self.bits(group, range(16 * STEPS)).items()
            ],
        )
        sharing, wanted = sum(map(int.bit_count, groups)), max(CANDIDATES, limit)
        while True:
            enough = sharing if sharing <= wanted else wanted // 3
            near = next(
                (
                    some
                    for some in accumulate(groups, or_, initial=0)
                    if some.bit_count() >= enough
                ),
                0,
            )
            rows = self.applicable_rows(
                [pair for pair in self.cosines(vector, near) if pair[1] > 0],
                facts or {},
                limit,
            )
            if len(rows) >= limit or sharing <= wanted:
                return rows
            wanted *= 4  # too many of them hold elsewhere only: look further down

    def bits(self, audience: str, sides: Iterable[int]) -> dict[int, int]:
        """Return a bit for each part that is on a side, by side."""
        packed = defaultdict[int, bytearray](bytearray)
        for side, block, bits in self.db.execute(
            """
            SELECT side, block, bits FROM sides
            WHERE audience = ? AND side IN (SELECT value FROM json_each(?))
            ORDER BY side, block
            """,
            [audience, json.dumps(list(sides))],
        ):
            packed[side] += bytes(block * BLOCK // 8 - len(packed[side])) + bits
        return {side: int.from_bytes(some, "little") for side, some in packed.items()}

    def cosines(self, vector: Vector, parts: int) -> list[tuple[int, float]]:
        """Return number and cosine with a vector for parts given as bits, best first.

        All their vectors are read by one query: hundreds of them would take longer.
        """
        numbers = [match.start() for match in finditer("1", f"{parts:b}"[::-1])]
        asked = [(chr(place), number) for place, number in enumerate(vector) if number]
        found = [
            (number, cosine(vector, asked, places, kept))
            for number, places, kept in self.db.execute(
                """
                SELECT number, places, numbers FROM parts
                JOIN embeddings USING (text_hash)
                WHERE number IN (SELECT value FROM json_each(?))
                """,
                [json.dumps(numbers)],
            )
        ]
        return sorted(found, key=itemgetter(1), reverse=True)

    def holders(self, term: str, role: str) -> list[sqlite3.Row]:
        """Return what each audience has of a term: its levels, or else its postings."""
        query = """
            SELECT audience, length(entries) / 12 AS parts, first, tops, levels,
                CASE WHEN levels IS NULL THEN entries END AS entries
            FROM postings WHERE audience = ? AND term = ?"""
        return [
            row
            for group in AUDIENCES[role]
            for row in self.db.execute(query, [group, term])
        ]

    def length(self, number: int) -> int:
        """Return how many terms a part has; 0 if it is missing in a damaged file."""
        query = "SELECT ifnull(sum(terms), 0) FROM parts WHERE number = ?"
        return self.db.execute(query, [number]).fetchone()[0]

    def weight(self, term: str, role: str) -> float:
        """Return the weight of a term, its idf, in what `role` may read.

        In a library of a few parts no word could be called rare: it is counted as one
        of a hundred.
        """
        total = max(100, self.view(role)[1])
        return idf(total, sum(row["parts"] for row in self.holders(term, role)))

    def applicable_rows(
        self, ranked: list[tuple[int, float]], facts: Mapping[str, str], limit: int
    ) -> list[RankedRow]:
        """Return the first `limit` of the ranked parts that hold for `facts` as rows.

        Parts with equal scores are read together, since their ids decide; those behind
        the limit are not read at all.
        """
        rows: list[RankedRow] = []
        for score, same in groupby(ranked, key=itemgetter(1)):
            if len(rows) >= limit:
                break
            parts = [self.read_part(number) for number, _ in same]
            fitting = [part for part in parts if applicable(part.document, facts)]
            fitting.sort(key=lambda part: part.id)
            rows += [{**make_row(part), "score": score} for part in fitting]
        return rows[:limit]


def cosine(
    vector: Vector, asked: Iterable[tuple[str, float]], places: bytes, numbers: bytes
) -> float:
    """Return the cosine of a vector with one that the file keeps.

    `asked` has the numbers of the first that are not 0, each with its place as a
    character. Only places that both have are added up. To find them, `places` is read
    as a text, too, of a character for each number: a text is searched the fastest.
    """
    kept, held = array("f", numbers), places.decode("utf-16", "replace")
    return (
        sum(n * kept[at] for place, n in asked if (at := held.find(place)) >= 0)
        if held
        else sum(map(mul, vector, kept))  # none of its numbers is 0
    )


def as_document(row: sqlite3.Row) -> Document:
    """Make a document of its row in the table."""
    return Document(
        id=row["doc_id"],
        title=row["title"],
        url=row["url"],
        body=row["body"],
        lang=row["lang"],
        revision=row["revision"],
        role=row["role"],
        status=row["status"],
        applies=tuple((key, value) for key, value in json.loads(row["applies"])),
    )
