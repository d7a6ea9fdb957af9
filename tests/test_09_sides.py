"""Vectors are compared cheaply first: the same ranking, and little that is looked at.

The cheap comparison is held against counting side by side, the ranking against a plain
comparison of the question with every part, to the last bit.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import sqlite3
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = itertools.count()
few = settings(max_examples=12)
WORDS = (
    "harbour",
    "lantern",
    "lanterns",
    "sheep",
    "meadow",
    "гавань",
    "гавани",
    "海图",
)
ROLES = ("reader", "editor")

numbers = st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.25])
vectors = st.lists(numbers, min_size=6, max_size=6)


def make(lesson, doc_id: str, body: str, **fields):
    fields = {"title": "T", "url": f"https://e.example/{doc_id}", "lang": "", **fields}
    return lesson.load("library").Document(id=doc_id, body=body, **fields)


def drawn(lesson, rng: random.Random, count: int) -> list:
    """Documents of a few words, some for editors, some for one case only."""
    return [
        make(
            lesson,
            f"d{number:03}",
            " ".join(rng.choices(WORDS, k=rng.randint(1, 9))),
            role=rng.choice(("reader", "reader", "editor")),
            applies=rng.choice(((), (("case", "a"),), (("case", "b"),))),
        )
        for number in range(count)
    ]


def published(lesson, documents) -> Path:
    path = lesson.home / f"{next(NUMBERS)}.db"
    lesson.load("store").publish(path, documents)
    return path


def nearest(lesson, path: Path, query: str, *args, **options) -> list[tuple]:
    (vector,) = lesson.load("embeddings").get_embedder().embed([query], question=True)
    with lesson.load("store").open_snapshot(path) as snapshot:
        rows = snapshot.nearest(vector, *args, **options)
    return [(row["id"], row["score"]) for row in rows]


def plain(lesson, documents, query: str, role: str, limit: int, facts) -> list[tuple]:
    """The question compared with every part that the role may read."""
    access, rows = lesson.load("access"), lesson.load("rows")
    embed = lesson.load("embeddings").get_embedder().embed
    (vector,) = embed([query], question=True)
    scored = []
    for document in access.visible(documents, role):
        for part in lesson.load("library").split(document):
            (other,) = embed([rows.make_row(part)["text"]])
            score = sum(a * b for a, b in zip(vector, other, strict=True))
            if score > 0 and access.applicable(document, facts):
                scored.append((part.id, score))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:limit]


def held(vector) -> list[tuple[int, float]]:
    return [(place, number) for place, number in enumerate(vector) if number]


@pytest.mark.lessons(9)
@given(vector=vectors)
def test_strong_numbers_are_on_further_sides(lesson, vector):
    """Those whose square is well above the mean one, and the strongest once more."""
    sides, kept = lesson.load("sides"), held(vector)
    assert len(set(sides.marks(kept))) == len(sides.marks(kept))
    assert set(sides.marks(kept)) == {
        side + level
        for side, (_, number) in zip(sides.sides(kept), kept, strict=True)
        for level, times in enumerate((0, *sides.STRONG))
        if number * number * len(kept) > times
    }
    other = [(place, -number) for place, number in kept]
    assert not {*sides.marks(kept)} & {*sides.marks(other)}


@pytest.mark.lessons(9)
@given(asked=vectors, others=st.lists(vectors, max_size=20))
def test_all_parts_at_once_are_counted_as_one_by_one(lesson, asked, others):
    """The parts by what they share for their size, the likely ones first."""
    sides = lesson.load("sides")
    wanted = [s + n for s in sides.sides(held(asked)) for n in range(sides.LEVELS)]
    bits: dict[int, int] = {}
    sizes: dict[int, int] = {}
    estimates: dict[float, set[int]] = {}
    for number, vector in enumerate(others):
        for side in sides.marks(held(vector)):
            bits[side] = bits.get(side, 0) | 1 << number
        size = len(held(vector))
        sizes[size] = sizes.get(size, 0) | 1 << number
        both = {*wanted} & {*sides.marks(held(vector))}
        if count := sum(2 ** sides.DIGITS[side % sides.LEVELS] for side in both):
            estimate = count / 2 ** (size / sides.STEPS / 2)
            estimates.setdefault(estimate, set()).add(number)
    digits = sides.shared((side, bits.get(side, 0)) for side in wanted)
    found = [
        {number for number in range(len(others)) if parts >> number & 1}
        for parts in sides.likely(digits, sizes.items())
    ]
    assert all(found), "no group is empty"
    assert sum(map(len, found)) == len(set().union(*found))
    for estimate in sorted(estimates, reverse=True):
        expected = estimates[estimate]
        while expected:
            assert found[0] <= expected
            expected = expected - found.pop(0)
    assert not found


@pytest.mark.lessons(9)
def test_a_side_is_worth_what_its_numbers_are(lesson):
    """Sides of a level, with those below it, come near to the usual number there."""
    sides = lesson.load("sides")
    assert len(sides.DIGITS) == sides.LEVELS
    worth = list(itertools.accumulate(2**digit for digit in sides.DIGITS))
    for value, low, high in zip(
        worth, (0.5, *sides.STRONG), (*sides.STRONG, 10.0), strict=True
    ):
        assert math.sqrt(low) <= value / worth[0] <= 1.1 * math.sqrt(high)


@pytest.mark.lessons(9)
@given(asked=vectors, other=vectors)
def test_a_cosine_is_that_of_all_numbers_to_the_last_bit(lesson, asked, other):
    """Whether the file names the places or, where none is 0, leaves them out."""
    cosine, kept = lesson.load("snapshot").cosine, held(other)
    places = array("H", [place for place, _ in kept] if len(kept) < len(other) else [])
    found = cosine(
        asked,
        [(chr(place), number) for place, number in held(asked)],
        places.tobytes(),
        array("f", [number for _, number in kept]).tobytes(),
    )
    assert found == sum(a * b for a, b in zip(asked, other, strict=True))


@pytest.mark.lessons(9)
@few
@given(seed=st.integers(0, 2**32), limit=st.integers(0, 9))
def test_the_nearest_parts_are_those_of_a_plain_comparison(lesson, seed, limit):
    """Ids, order and scores, to the last bit, where all parts are candidates."""
    rng = random.Random(seed)
    documents = drawn(lesson, rng, 20)
    path = published(lesson, documents)
    query = " ".join(rng.choices(WORDS, k=3))
    for role in ROLES:
        for facts in ({}, {"case": "a"}):
            found = nearest(lesson, path, query, role, limit, facts)
            assert found == plain(lesson, documents, query, role, limit, facts)


@pytest.mark.lessons(9)
def test_only_candidates_are_compared_exactly(lesson, monkeypatch):
    """Of three hundred parts the vectors of a few are read."""
    monkeypatch.setattr(lesson.load("snapshot"), "CANDIDATES", 20)
    rng = random.Random(4)
    documents = [
        make(lesson, f"d{n:03}", " ".join(rng.choices("abcdefghij", k=60)) + f" w{n} x")
        for n in range(300)
    ]
    documents.append(make(lesson, "lantern", "The lantern by the harbour wall."))
    path = published(lesson, documents)
    snapshot = lesson.load("snapshot").Snapshot
    compared, cosines = [], snapshot.cosines

    def watched(self, vector, parts):
        compared.append(parts.bit_count())
        return cosines(self, vector, parts)

    monkeypatch.setattr(snapshot, "cosines", watched)
    ((first, _),) = nearest(lesson, path, "a lantern at the harbour", limit=1)
    assert first == "lantern#part-01" and sum(compared) < 60


@pytest.mark.lessons(9)
def test_long_parts_do_not_crowd_out_a_short_one(lesson, monkeypatch):
    """A long part shares many sides with any question, and is not near to it."""
    monkeypatch.setattr(lesson.load("snapshot"), "CANDIDATES", 40)
    rng = random.Random(8)
    words = [f"{a}{b}{c}" for a in "bdfg" for b in "aeio" for c in "klmn"]
    documents = [
        make(lesson, f"d{number:03}", " ".join(rng.choices(words, k=60)))
        for number in range(300)
    ]
    documents.append(make(lesson, "short", " ".join(words[:4])))
    path = published(lesson, documents)
    query = " ".join(words[:5])
    assert nearest(lesson, path, query, limit=1) == plain(
        lesson, documents, query, "reader", 1, {}
    )


@pytest.mark.lessons(9)
def test_rights_and_facts_act_before_the_candidates_are_chosen(lesson, monkeypatch):
    """However near the hidden ones are, they take no place from the others."""
    monkeypatch.setattr(lesson.load("snapshot"), "CANDIDATES", 2)
    hidden = [
        make(lesson, f"a{n}", "The lantern by the harbour wall.", role="editor")
        for n in range(9)
    ]
    elsewhere = [
        make(lesson, f"b{n}", "The lantern by the harbour.", applies=(("case", "b"),))
        for n in range(9)
    ]
    last = make(lesson, "z", "Sheep, a meadow and, far away, one lantern.")
    with_hidden = published(lesson, [*hidden, *elsewhere, last])
    without = published(lesson, [*elsewhere, last])
    query = "the lantern by the harbour wall"
    found = nearest(lesson, with_hidden, query, "reader", 1, {"case": "a"})
    assert [part for part, _ in found] == ["z#part-01"]
    for limit in (1, 5, 30):
        assert nearest(lesson, with_hidden, query, "reader", limit) == nearest(
            lesson, without, query, "reader", limit
        )


def unpacked(places: bytes, numbers: bytes) -> list[tuple[int, float]]:
    """A vector as the file keeps it: its numbers but zeros, with their places."""
    values = array("f", numbers)
    return list(zip(array("H", places) or range(len(values)), values, strict=True))


def check_sides(lesson, path: Path) -> None:
    """Each part is on the sides of its vector and has its size, and on no other."""
    sides = lesson.load("sides")
    db = sqlite3.connect(path)
    expected, kept = set(), set()
    query = """SELECT number, audience, places, numbers FROM parts
        JOIN documents USING (doc_id) JOIN embeddings USING (text_hash)"""
    for number, group, places, numbers in db.execute(query):
        pairs = unpacked(places, numbers)
        size = int(sides.STEPS * math.log2(len(pairs) or 1))
        expected |= {("", side, number) for side in sides.marks(pairs)}
        expected.add((group, size, number))
    for group, side, block, packed in db.execute("SELECT * FROM sides"):
        assert packed.rstrip(b"\0"), "what no part is on is not kept"
        bits = int.from_bytes(packed, "little")
        kept |= {
            (group, side, block * sides.BLOCK + place)
            for place in range(bits.bit_length())
            if bits >> place & 1
        }
    db.close()
    assert kept == expected


@pytest.mark.lessons(9)
def test_sides_are_those_of_the_vectors(lesson):
    check_sides(lesson, published(lesson, drawn(lesson, random.Random(1), 12)))


@pytest.mark.lessons(10)
def test_sides_follow_every_change(lesson):
    """After any operation no side knows a part that is gone, or misses one."""
    rng, store = random.Random(2), lesson.load("store")
    path = published(lesson, documents := drawn(lesson, rng, 9))
    changed = make(lesson, "d003", "Other sheep.\n\n## More\n\nA meadow.", revision=2)
    for change in (
        lambda: store.put(path, changed),
        lambda: store.put(path, make(lesson, "new", "A lantern.")),
        lambda: store.withdraw(path, "new"),
        lambda: store.delete(path, "d008"),
        lambda: store.purge(path, "d001"),
        lambda: store.publish(path, documents[:5]),
        lambda: store.publish(path, documents[:5], rebuild=True),
    ):
        change()
        check_sides(lesson, path)


@pytest.mark.lessons(10)
def test_one_changed_document_writes_its_own_postings_and_block_only(
    lesson, monkeypatch
):
    """What is counted of all others is neither made anew nor written."""
    monkeypatch.setattr(lesson.load("index"), "BLOCK", 8)
    monkeypatch.setattr(lesson.load("snapshot"), "BLOCK", 8)
    documents = [make(lesson, f"d{n:02}", f"the w{n} harbour") for n in range(40)]
    path = published(lesson, documents)
    written, index = [], lesson.load("index")
    write = index.write_postings
    monkeypatch.setattr(
        index,
        "write_postings",
        lambda db, group, term, *rest: (
            written.append(term),
            write(db, group, term, *rest),
        ),
    )
    terms = lesson.load("terms").terms

    def blocks() -> dict:
        db = sqlite3.connect(path)
        rows = db.execute("SELECT block, audience, side, bits FROM sides").fetchall()
        db.close()
        found: dict[int, set] = {}
        for block, *rest in rows:
            found.setdefault(block, set()).add(tuple(rest))
        return found

    before = blocks()
    text = "the w3 harbour and sheep"
    lesson.load("store").put(path, make(lesson, "d03", text, revision=2))
    assert sorted(written) == sorted({*terms("T"), *terms(text)})
    after = blocks()
    assert {block for block in after if after[block] != before.get(block)} <= {0, 5}


@pytest.mark.lessons(9)
def test_a_number_that_does_not_exist_is_an_error(lesson):
    """A damaged vector has a place and no number that stands there."""
    path = published(lesson, [make(lesson, "a", "the harbour and sheep")])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE embeddings SET numbers = X'00000000'")
    (vector,) = lesson.load("embeddings").get_embedder().embed(["harbour sheep"])
    with (
        pytest.raises(lesson.load("database").StoreError, match=path.name) as caught,
        lesson.load("store").open_snapshot(path) as snapshot,
    ):
        snapshot.nearest(vector, "reader", 3)
    assert caught.value.reason == "bad_file"


@pytest.mark.lessons(9)
@pytest.mark.parametrize("places", ["FFFFFFFF", "00D8", "FFFEFF"])
def test_a_place_that_does_not_exist_is_near_to_nothing(lesson, places):
    """Damaged places, also such as no text has, end no question with an error."""
    path = published(lesson, [make(lesson, "a", "the harbour and sheep")])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE embeddings SET places = X'{places}'")
    assert nearest(lesson, path, "harbour sheep") == []
