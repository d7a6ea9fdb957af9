"""The snapshot: one file, one version at a time, the same ranking, whatever happens.

Publishing is tried with processes that die in the middle, files that are locked or
no snapshots at all, and libraries that grow; ranking is compared, to the last bit,
with `search.search` over the parts of the visible documents.

Changed documents are given a higher revision here, and each random library a file of
its own, so that the promises hold on lessons that keep a history, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from struct import pack

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

few = settings(max_examples=20)  # of each property, on every lesson
NUMBERS = itertools.count()

WORDS = ("fox", "owl", "elk", "bat", "yak", "7")
ROLES = ("reader", "editor")
RIGHTS = [  # role and status
    ("reader", "published"),
    ("reader", "draft"),
    ("editor", "published"),
    ("editor", "draft"),
    ("reader", "withdrawn"),
    ("", "published"),
]
APPLIES = [(), (("channel", "overseas"),), (("channel", "domestic"),), (("year", "7"),)]


def make(lesson, doc_id: str, body: str, **fields):
    """A document; what is not given is the same for all."""
    fields = {"title": "Title", "url": f"https://e.example/{doc_id}", **fields}
    fields = {"lang": "en", **fields}
    return lesson.load("library").Document(id=doc_id, body=body, **fields)


def new_file(lesson) -> Path:
    """A path where nothing is published yet."""
    return lesson.home / f"{next(NUMBERS)}.db"


def searched(lesson, path, query: str, **options) -> list[dict]:
    with lesson.load("store").open_snapshot(path) as snapshot:
        return snapshot.search(query, **options)


def texts(rows: list[dict]) -> list[str]:
    return [row["body"] for row in rows]


def shown(result) -> list[str]:
    """The texts that an app has chosen: rows, or from lesson 09 on sources."""
    answer = result.json
    if "rows" in answer:
        return texts(answer["rows"])
    return [source["quote"] for source in answer.get("sources", [])]


# ---- the exercises: one mistake at a time


CHANGES = {
    "title": "Other",
    "url": "https://e.example/other",
    "body": "fox ",
    "lang": "ru",
    "revision": 2,
    "id": "b",
    "role": "editor",
    "status": "draft",
    "applies": (("channel", "y"),),
}


@pytest.mark.lessons(6)
@pytest.mark.task("document_hash")
@pytest.mark.parametrize("field", CHANGES)
def test_a_hash_covers_every_field(lesson, field):
    """Whatever can change an answer changes the hash."""
    document_hash = lesson.load("versions").document_hash
    document = make(lesson, "a", "fox", role="reader", applies=(("channel", "x"),))
    changed = dataclasses.replace(document, **{field: CHANGES[field]})
    assert document_hash(changed) != document_hash(document), (
        f"a change of {field} can change an answer, so it must change the hash"
    )


@pytest.mark.lessons(6)
@pytest.mark.task("document_hash")
def test_a_hash_is_about_fields_and_their_borders(lesson):
    """Equal documents have one hash; where a field ends is part of it."""
    document_hash = lesson.load("versions").document_hash
    document = make(lesson, "a", "fox", title="fox owl", url="u")
    assert document_hash(make(lesson, "a", "fox", title="fox owl", url="u")) == (
        document_hash(document)
    ), "equal documents have equal hashes"
    for between in ("", " ", "\n", "\0", ",", "|", "', '", '", "'):
        titles = f"fox{between}owl", "fox"
        addresses = "u", f"owl{between}u"
        one, other = (
            document_hash(make(lesson, "a", "fox", title=title, url=url))
            for title, url in zip(titles, addresses, strict=True)
        )
        assert one != other, (
            "text that moves from one field into the next must change the hash: it is "
            f"to be seen where one field ends, also with {between!r} in a text"
        )
    for text, other in (("fox", "Fox"), ("fox owl", "fox  owl"), ("е", "ё")):
        assert document_hash(make(lesson, "a", text)) != (
            document_hash(make(lesson, "a", other))
        ), f"{text!r} and {other!r} are two texts"
    many = {document_hash(make(lesson, "a", f"fox {n}")) for n in range(2000)}
    assert len(many) == 2000, "2000 texts need 2000 hashes: this one is too short"
    given = [(("channel", "x"),), (("year", "x"),), (("chan", "nelx"),), ()]
    hashes = {document_hash(make(lesson, "a", "fox", applies=each)) for each in given}
    assert len(hashes) == len(given), (
        "a fact has a name and a value: a change of either is a change, and it is to "
        "be seen where the name ends"
    )
    facts = (("channel", "x"), ("year", "7"))
    hashes = {
        document_hash(make(lesson, "a", "fox", applies=applies))
        for applies in (facts, facts[::-1])
    }
    assert len(hashes) == 1, "the order in which the facts are named is nothing"


HASHING = """
import sys
sys.path.insert(0, sys.argv[1])
import library, versions
print(versions.document_hash(library.Document("a", "T", "u", "fox", "en")))
"""


@pytest.mark.lessons(6)
@pytest.mark.task("document_hash")
def test_a_hash_is_the_same_in_every_process(lesson):
    """Python's own hash() of a text is another one in each run."""
    done = [python(lesson, HASHING, PYTHONHASHSEED=seed) for seed in (1, 2)]
    assert [run.returncode for run in done] == [0, 0], done[0].stderr.decode()
    assert done[0].stdout == done[1].stdout, (
        "a hash must be the same in every process, or each run would publish again"
    )


@pytest.mark.lessons(6)
@pytest.mark.task("part")
def test_a_part_is_found_by_its_id_and_by_whom_it_is_for(lesson):
    """A row for the one part of that id, None for everything else."""
    path, store = new_file(lesson), lesson.load("store")
    two = "## x\n\nfox\n\n## y\n\nowl"
    documents = [make(lesson, "a", two), make(lesson, "c#part-01", "bat")]
    store.publish(path, [*documents, make(lesson, "b", "elk", role="editor")])
    with store.open_snapshot(path) as snapshot:

        def part(part_id: str, role: str = "reader"):
            try:
                return snapshot.part(part_id, role)
            except Exception as error:
                pytest.fail(f"part({part_id!r}, {role!r}) must not raise: {error!r}")

        row = part("a#part-02")
        assert row is not None, "there is a part a#part-02, and a reader may read it"
        assert isinstance(row, dict), "the part comes as a row, as the search gives it"
        wanted = {"id": "a#part-02", "part": 2, "heading": "y", "body": "owl"}
        assert {key: row.get(key) for key in wanted} == wanted, (
            "the row is that of the part that was asked for"
        )
        for missing in ("a#part-03", "z#part-01", "a", ""):
            assert part(missing) is None, f"there is no part {missing!r}: that is None"
        assert part("b#part-01") is None, "a reader must not get what is for editors"
        assert part("b#part-01", "editor") is not None, "editors may read b#part-01"
        assert part("c#part-01#part-01") is not None, (
            "the id of a document may hold #part- itself: the last one counts"
        )
        for near in ("a#part-2", "a#part-002", "a#part- 2", "a#part-02\n", "#"):
            assert part(near) is None, f"{near!r} is not the id of any part"
        for hostile in ("'", "' OR 1=1 --#part-01", "a#part-01' --", "a\x00#part-01"):
            assert part(hostile) is None, "an id is a value and never a piece of SQL"
        for half in ("\ud800#part-01", "a#part-\udc80", "\ud800"):
            assert part(half) is None, "half a character is in no id: that is None"
        for any_id in ("a#part-01", "a#part-03", ""):
            with pytest.raises(ValueError):
                snapshot.part(any_id, "root")
                pytest.fail("there is no role 'root': that is a ValueError for any id")


class Lookups(dict):
    """How many terms parts have; it counts how often that is looked up."""

    count = 0

    def __call__(self, number: int) -> int:
        self.count += 1
        return self[number]


def weighted(lesson, weight: float, numbers, lengths=(10,)) -> object:
    """A term that stands once in these parts; at average length, 10, adds `weight`."""
    postings = lesson.load("postings")
    lookups = Lookups(zip(numbers, cycle(lengths), strict=False))
    entries = b"".join(
        pack("=IQ", number, 1 << postings.LENGTH_BITS | length)
        for number, length in lookups.items()
    )
    return held(lesson, entries, weight, postings.Saturations(10.0), lookups)


def held(lesson, entries: bytes, weight: float, saturations, length) -> object:
    """A term with these postings, as a question finds it in the file."""
    postings = lesson.load("postings")
    first, tops, levels = postings.levels(entries)
    known = {} if levels else dict(postings.ENTRY.iter_unpack(entries))
    return postings.Weighted(
        weight, saturations, known, first, tops or (), levels or b"", length
    )


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_the_best_parts_come_first_with_their_sums(lesson):
    """Number and score, best first, each the sum over the terms of the question."""
    best = lesson.load("postings").best
    terms = [weighted(lesson, 1.0, [1, 2, 4]), weighted(lesson, 2.0, [2, 3])]
    found = best(terms, 9)
    assert dict(found) == {1: 1.0, 2: 3.0, 3: 2.0, 4: 1.0}, (
        "the score of a part is the sum of weight times saturation over all terms that "
        f"it holds; found: {found}"
    )
    assert [score for _, score in found] == [3.0, 2.0, 1.0, 1.0], "the best come first"
    assert best([], 3) == [], "no term, no part"


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_parts_that_tie_with_the_last_place_are_returned_too(lesson):
    """Which of them comes first is decided by id, and ids are not known here."""
    terms = [weighted(lesson, 2.0, [7]), weighted(lesson, 1.0, [1, 2, 3])]
    found = lesson.load("postings").best(terms, 2)
    assert {number for number, _ in found} == {7, 1, 2, 3}, (
        "the parts 1, 2 and 3 tie for the second place: all of them are returned"
    )
    found = lesson.load("postings").best([weighted(lesson, 1.0, range(300))], 2)
    assert len(found) == 300, "300 parts with one common word tie: all are returned"
    terms = [weighted(lesson, 1.0, [1, 2]), weighted(lesson, 0.5, [2])]
    found = lesson.load("postings").best(terms, 1)
    assert found == [(2, 1.5)], "only the best and those that tie are returned"


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_common_terms_together_can_still_win(lesson):
    """A part is out of the race only if all common terms together cannot help it."""
    common = weighted(lesson, 2.0, range(300)), weighted(lesson, 2.0, range(299, 600))
    rare = weighted(lesson, 3.0, [5]), weighted(lesson, 3.5, [1000, 1001])
    found = lesson.load("postings").best([*common, *rare], 2)
    assert found == [(5, 5.0), (299, 4.0)], (
        "part 5 holds the rare term with 3 and a common one with 2; part 299 holds no "
        "rare term, but two common ones: that is 4, more than 1000 and 1001 have, with "
        f"3.5 for a rare term alone; found: {found}"
    )
    found = lesson.load("postings").best([*rare, *common], 4)
    assert found == [(5, 5.0), (299, 4.0), (1000, 3.5), (1001, 3.5)], (
        "a part with a high number, behind all that hold a common term, counts as well"
    )
    found = lesson.load("postings").best([common[0]], 1000)
    assert len(found) == 300, "where fewer parts hold a term than asked for, it is all"


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_scores_are_added_in_the_order_of_the_question(lesson):
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 for a computer."""
    for numbers in ([1], range(300)):
        terms = [weighted(lesson, weight, numbers) for weight in (0.1, 0.2, 0.3)]
        score = lesson.load("postings").best(terms, 1)[0][1]
        assert score == 0.1 + 0.2 + 0.3, (
            "the score must be added in the order of the question, to the last bit: "
            f"{0.1 + 0.2 + 0.3}, not {score}"
        )


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_the_postings_of_a_common_term_are_not_walked_in_vain(lesson):
    """Where the rare term has decided, the common one only completes scores."""
    rare, common = (
        weighted(lesson, 5.0, range(1, 4)),
        weighted(lesson, 1.0, range(1, 2001)),
    )
    found = lesson.load("postings").best([common, rare], 3)
    assert dict(found) == {1: 6.0, 2: 6.0, 3: 6.0}
    assert common.length.count < 100, (
        f"{common.length.count} scores were completed with the common term: its "
        "ceiling tells that it cannot bring a new part to the top"
    )


@pytest.mark.lessons(6)
@pytest.mark.task("best")
def test_parts_that_cannot_win_any_more_are_not_looked_up(lesson):
    """A few short parts are worth most: the others cannot reach them."""
    first = weighted(lesson, 2.0, range(1, 3000), lengths=[10] + 99 * [400])
    second = weighted(lesson, 1.0, range(1, 3000))
    found = lesson.load("postings").best([first, second], 5)
    assert {number % 100 for number, _ in found} == {1} and len(found) == 30
    lookups = first.length.count + second.length.count
    assert lookups < 200, (
        f"{lookups} times a score was completed with a common term: this is needed "
        "only for parts whose ceiling is as high as the score in the last place"
    )
    weak, strong = weighted(lesson, 0.5, range(200)), weighted(lesson, 1.2, [300])
    assert lesson.load("postings").best([weak, strong], 1) == [(300, 1.2)]
    assert not weak.length.count, "0.5 is all that 200 parts can reach"


# ---- ranking


lines = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
sections = st.lists(st.tuples(lines, lines), max_size=3)
entries = st.tuples(sections, st.sampled_from(RIGHTS), st.sampled_from(APPLIES))
questions = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


def as_library(lesson, drawn) -> list:
    """Documents of drawn (sections, (role, status), applies); many of them tie."""
    documents = []
    for number, (parts, (role, status), applies) in enumerate(drawn):
        body = "".join(f"## {heading}\n\n{text}\n\n" for heading, text in parts)
        fields = {"role": role, "status": status, "applies": applies}
        documents.append(make(lesson, f"d{number}", body, **fields))
    return documents


def plain_search(lesson, documents, query, role, limit, facts) -> list[dict]:
    """What a snapshot has to return: 04's search over the parts of 05's documents."""
    access, split = lesson.load("access"), lesson.load("library").split
    parts = [part for d in access.visible(documents, role) for part in split(d)]
    return lesson.load("search").search(
        query, parts, limit, lambda part: access.applicable(part.document, facts)
    )


def agree(rows: list[dict], expected: list[dict]) -> None:
    """The same rows, order and scores to the last bit; more keys are allowed."""
    assert [(row["id"], row["score"]) for row in rows] == [
        (row["id"], row["score"]) for row in expected
    ], "ids, order and scores have to be those of search.search"
    for row, wanted in zip(rows, expected, strict=True):
        assert {key: row[key] for key in wanted} == wanted


@pytest.mark.lessons(6)
@few
@given(
    drawn=st.lists(entries, max_size=9),
    query=questions,
    limit=st.integers(0, 6),
    facts=st.sampled_from([{}, {"channel": "overseas"}, {"channel": "x", "year": "7"}]),
)
def test_ranking_is_that_of_the_plain_search(lesson, drawn, query, limit, facts):
    """For each role: the rows of `search` over the visible documents, bit for bit."""
    documents, path = as_library(lesson, drawn), new_file(lesson)
    lesson.load("store").publish(path, documents)
    with lesson.load("store").open_snapshot(path) as snapshot:
        for role in ROLES:
            expected = plain_search(lesson, documents, query, role, limit, facts)
            agree(snapshot.search(query, role, limit, facts), expected)


@pytest.mark.lessons(6)
def test_ranking_is_that_of_the_plain_search_on_a_larger_library(lesson, monkeypatch):
    """Many parts, rare and common words, ties and facts: still the same rows."""
    rng, path = random.Random(6), new_file(lesson)
    monkeypatch.setattr(lesson.load("postings"), "MANY", 2)  # so that some are common
    words = [*WORDS, *(f"w{number}" for number in range(300))]
    weights = [60, 30, 20, 10, 5, 2] + [1] * 300
    documents = []
    for number in range(80):
        body = ""
        for _ in range(rng.randint(0, 6)):
            chosen = rng.choices(words, weights, k=rng.choice((3, 8, 30)))
            body += f"## h\n\n{' '.join(chosen)}\n\n"
        role, status = rng.choice(RIGHTS)
        fields = {"role": role, "status": status, "applies": rng.choice(APPLIES)}
        documents.append(make(lesson, f"d{number}", body, **fields))
    lesson.load("store").publish(path, documents)
    with contextlib.closing(sqlite3.connect(path)) as db:
        query = "SELECT levels IS NULL, count(*) FROM postings GROUP BY 1 ORDER BY 1"
        (_, common), (_, rare) = db.execute(query)
    assert common > 9 and rare > 99
    with lesson.load("store").open_snapshot(path) as snapshot:
        for _ in range(25):
            query = " ".join(rng.choices(words, weights, k=rng.randint(1, 6)))
            limit = rng.choice((1, 2, 4, 50))
            facts = rng.choice(({}, {"channel": "overseas"}, {"year": "8"}))
            for role in ROLES:
                expected = plain_search(lesson, documents, query, role, limit, facts)
                agree(snapshot.search(query, role, limit, facts), expected)


@pytest.mark.lessons(6)
def test_ties_are_ordered_by_id_and_not_by_number(lesson):
    """`a#part-100` comes before `a#part-99`, and `a!` before `a`, as text does."""
    path = new_file(lesson)
    body = "".join(f"## h\n\nfox {number % 2}\n\n" for number in range(102))
    documents = [make(lesson, name, body) for name in ("a", "a!", "A", "é", "я")]
    lesson.load("store").publish(path, documents)
    for limit in (1, 3, 200, 1000):
        expected = plain_search(lesson, documents, "fox", "reader", limit, {})
        agree(searched(lesson, path, "fox", limit=limit), expected)


@pytest.mark.lessons(6)
def test_levels_reach_over_the_parts_of_one_audience_and_language(lesson, monkeypatch):
    """Wherever the documents of a language stand, their parts are numbered together."""
    path = new_file(lesson)
    monkeypatch.setattr(lesson.load("postings"), "MANY", 2)
    documents = [
        make(lesson, f"d{n:02}", f"fox word{lang}", lang=lang, role=role)
        for n, (lang, role) in enumerate(
            9 * [("en", "reader"), ("ru", "editor"), ("ru", "reader"), ("en", "editor")]
        )
    ]
    lesson.load("store").publish(path, documents)
    with contextlib.closing(sqlite3.connect(path)) as db:
        found = db.execute(
            """
            SELECT audience, term, first, length(levels) FROM postings
            WHERE term != 'titl' ORDER BY 1, 2
            """
        ).fetchall()
    assert found == [
        ("editor", "fox", 1, 18),
        ("editor", "worden", 1, 9),
        ("editor", "wordru", 10, 9),
        ("reader", "fox", 19, 18),
        ("reader", "worden", 19, 9),
        ("reader", "wordru", 28, 9),
    ]
    for query in ("fox worden", "wordru fox", "worden wordru"):
        for role in ROLES:
            expected = plain_search(lesson, documents, query, role, 40, {})
            agree(searched(lesson, path, query, role=role, limit=40), expected)


@pytest.mark.lessons(6)
def test_facts_act_before_the_limit(lesson):
    """However many better parts hold elsewhere only, the limit is filled."""
    path = new_file(lesson)
    abroad = {"applies": (("channel", "overseas"),)}
    documents = [make(lesson, f"a{n:02}", "fox fox", **abroad) for n in range(30)]
    documents += [make(lesson, f"b{n}", "fox owl owl elk") for n in range(3)]
    lesson.load("store").publish(path, documents)
    rows = searched(lesson, path, "fox", limit=2, facts={"channel": "domestic"})
    assert [row["doc_id"] for row in rows] == ["b0", "b1"]
    assert searched(lesson, path, "fox", limit=0) == []


@pytest.mark.lessons(6)
def test_a_negative_limit_and_an_unknown_role_are_refused(lesson):
    """Neither is a question that has an answer."""
    path = new_file(lesson)
    lesson.load("store").publish(path, [make(lesson, "a", "fox")])
    with lesson.load("store").open_snapshot(path) as snapshot:
        for mistake in (
            lambda: snapshot.search("fox", limit=-1),
            lambda: snapshot.search("fox", role="root"),
            lambda: snapshot.view_version("root"),
            lambda: snapshot.documents("root"),
            lambda: snapshot.part("a#part-01", "root"),
        ):
            with pytest.raises(ValueError):
                mistake()


@pytest.mark.lessons(6)
@pytest.mark.task("best")
@few
@given(seed=st.integers(0, 2**32), limit=st.integers(1, 12))
def test_leaving_postings_out_early_loses_no_part(lesson, seed, limit):
    """The best parts by pruned counting are those of plain counting, bit for bit."""
    postings, search = lesson.load("postings"), lesson.load("search")
    rng = random.Random(seed)
    kinds = rng.choice([(1, 3, 9, 40, 500), (1,), range(1, 2000)])
    lengths = [rng.choice(kinds) for _ in range(rng.choice((5, 300, 900)))]
    saturations = postings.Saturations(sum(lengths) / len(lengths))
    weighted, plain = [], dict.fromkeys(range(len(lengths)), 0.0)
    for _ in range(rng.randint(1, 6)):
        holders = rng.sample(range(len(lengths)), rng.randint(1, len(lengths)))
        weight, entries = search.idf(len(lengths), len(holders)), b""
        counts = rng.choice([(1, 1, 1, 2, 30), range(1, 400)])
        for number in sorted(holders):
            code = rng.choice(counts) << postings.LENGTH_BITS | lengths[number]
            entries += pack("=IQ", number, code)
            plain[number] += weight * search.saturation(
                code >> postings.LENGTH_BITS, lengths[number], saturations.average
            )
        weighted.append(held(lesson, entries, weight, saturations, lengths.__getitem__))
    found = postings.best(weighted, limit)
    ranked = sorted(((n, s) for n, s in plain.items() if s), key=lambda pair: -pair[1])
    last = ranked[limit - 1][1] if len(ranked) >= limit else 0.0
    expected = [pair for pair in ranked if pair[1] >= last]  # those that tie, too
    assert set(found) == set(expected)
    assert [score for _, score in found] == [score for _, score in expected]


# ---- any text


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.lessons(6)
@few
@given(text=any_text, query=st.text(st.characters(), max_size=30))
@example(text="fox'); DROP TABLE parts; --\x00", query="'\"; DROP TABLE parts; --")
@example(text="\x00", query="\ud800 fox\x00")
def test_any_text_can_be_published_and_asked(lesson, text, query):
    """No text breaks the file or the question, and it comes back as it was."""
    path, store = new_file(lesson), lesson.load("store")
    document = make(lesson, f"x{text}", text, title=text, url=text)
    store.publish(path, [document, make(lesson, "a", "fox")])
    with store.open_snapshot(path) as snapshot:
        assert document in snapshot.documents("reader")
        for question in (query, text):
            expected = plain_search(
                lesson, snapshot.documents("reader"), question, "reader", 4, {}
            )
            agree(snapshot.search(question), expected)


@pytest.mark.lessons(6)
@pytest.mark.parametrize(
    "query",
    ['"fox', "fox*", "fox OR owl", "NOT fox", "path:fox", "fox' --", "fox\x00", "%"],
    ids=ascii,
)
def test_a_question_never_becomes_query_syntax(lesson, query):
    """Operators of a query language are text like any other."""
    path = new_file(lesson)
    documents = [make(lesson, "a", "fox"), make(lesson, "b", "elk")]
    lesson.load("store").publish(path, documents)
    agree(
        searched(lesson, path, query),
        plain_search(lesson, documents, query, "reader", 4, {}),
    )


# ---- rights


@pytest.mark.lessons(6)
def test_what_is_listed_is_what_is_found_for_each_role(lesson):
    """List, search and single parts agree about what a role may read."""
    path, access = new_file(lesson), lesson.load("access")
    documents = [
        make(lesson, f"d{number}", "fox", role=role, status=status)
        for number, (role, status) in enumerate(RIGHTS)
    ]
    lesson.load("store").publish(path, documents)
    for role, ids in {"reader": ["d0"], "editor": ["d0", "d1", "d2", "d3"]}.items():
        assert [d.id for d in access.visible(documents, role)] == ids
        with lesson.load("store").open_snapshot(path) as snapshot:
            assert snapshot.documents(role) == access.visible(documents, role)
            assert [row["doc_id"] for row in snapshot.search("fox", role)] == ids
            for document in documents:
                row = snapshot.part(f"{document.id}#part-01", role)
                assert (row is not None) == (document.id in ids)


@pytest.mark.lessons(6)
def test_a_part_is_given_by_its_id_and_nothing_else(lesson):
    """A part comes as the row that the search gave; near misses of ids are nothing."""
    path = new_file(lesson)
    lesson.load("store").publish(
        path, [make(lesson, "a", "## x\n\nfox\n\n## y\n\nowl")]
    )
    with lesson.load("store").open_snapshot(path) as snapshot:
        (found,) = snapshot.search("owl")
        row = snapshot.part("a#part-02", "reader")
        assert row and row == {key: found[key] for key in row}
        for name in ("a#part-2", "a#part-002", "a#part-03", "b#part-01", "a", "", "#"):
            assert snapshot.part(name, "reader") is None, name
        for name in ("a#part-02\n", "a#part-x", "a#part-1e0", "a\x00#part-01", "'"):
            assert snapshot.part(name, "reader") is None, name


@pytest.mark.lessons(6)
def test_rights_are_the_same_after_a_rebuild(lesson):
    """Publishing again neither clears nor widens what was declared."""
    path, store = new_file(lesson), lesson.load("store")
    documents = [
        make(lesson, f"d{number}", "fox", role=role, status=status)
        for number, (role, status) in enumerate(RIGHTS)
    ]
    version = store.publish(path, documents)
    with store.open_snapshot(path) as snapshot:
        before = {role: snapshot.documents(role) for role in ROLES}
    assert store.publish(path, documents) == version
    with store.open_snapshot(path) as snapshot:
        assert {role: snapshot.documents(role) for role in ROLES} == before


@pytest.mark.lessons(6)
def test_a_changed_right_is_effective_at_once(lesson, library):
    """Not a word changes, only the role: the next question does not find it."""
    text = "---\nid: a\nrevision: {}\nrole: {}\n---\n# Fox\n\nThe fox sleeps.\n"
    library.write("b.md", "---\nid: b\n---\n# Fox\n\nA fox wakes.\n")
    library.write("a.md", text.format(1, "reader"))
    assert "The fox sleeps." in shown(lesson.run("--json", "fox", LIBRARY=library))
    library.write("a.md", text.format(2, "editor"))
    assert shown(lesson.run("--json", "fox", LIBRARY=library)) == ["A fox wakes."]
    as_editor = lesson.run("--json", "--role", "editor", "fox", LIBRARY=library)
    assert "The fox sleeps." in shown(as_editor)


@pytest.mark.lessons(6)
def test_a_file_without_rights_is_for_readers(lesson, library):
    """The documented default: no role and no status means published for readers."""
    library.write("a.md", "The fox sleeps.\n")
    assert shown(lesson.run("--json", "fox", LIBRARY=library)) == ["The fox sleeps."]


# ---- versions


@pytest.mark.lessons(6)
def test_a_version_covers_every_field(lesson):
    """Whatever can change an answer changes the version, rights included."""
    document = make(lesson, "a", "fox", role="reader", applies=(("channel", "x"),))
    fields = {field.name for field in dataclasses.fields(document)}
    assert fields == set(CHANGES), "a field that no change is tried of"
    publish = lesson.load("store").publish
    version = publish(new_file(lesson), [document])
    assert re.fullmatch("[0-9a-f]{12}", version)
    assert publish(new_file(lesson), [document]) == version
    for name, value in CHANGES.items():
        changed = dataclasses.replace(document, **{name: value})
        assert publish(new_file(lesson), [changed]) != version, f"{name} has no part"


@pytest.mark.lessons(6)
def test_a_version_is_about_content_and_not_about_borders(lesson):
    """The order of documents is nothing; where a field ends is something."""
    publish = lesson.load("store").publish
    a, b = make(lesson, "a", "fox"), make(lesson, "b", "owl")
    version = publish(new_file(lesson), [a, b])
    assert publish(new_file(lesson), iter([b, a])) == version
    assert publish(new_file(lesson), [a]) != version
    swapped = [make(lesson, "a", "owl"), make(lesson, "b", "fox")]
    assert publish(new_file(lesson), swapped) != version
    one = [make(lesson, "a", "x", title="fox owl", url="u")]
    two = [make(lesson, "a", "x", title="fox ", url="owlu")]
    assert publish(new_file(lesson), one) != publish(new_file(lesson), two)


@pytest.mark.lessons(6)
def test_line_ends_make_no_other_version(lesson, library):
    """CRLF, LF and lone CR give the same version."""
    text = "---\nid: a\ntitle: Fox\n---\n# One\n\nfox\n\n# Two\n\nowl\n"
    versions = set()
    for end in ("\n", "\r\n", "\r"):
        library.write("a.md", text.replace("\n", end))
        documents, faults = lesson.load("library").load(library.folder)
        assert not faults
        versions.add(lesson.load("store").publish(new_file(lesson), documents))
    assert len(versions) == 1


@pytest.mark.lessons(6)
@few
@given(
    drawn=st.lists(entries, min_size=1, max_size=6),
    hidden=st.lists(entries, max_size=4),
    query=questions,
)
def test_hidden_documents_leave_no_trace_in_a_readers_view(
    lesson, drawn, hidden, query
):
    """With or without them: the same rows, scores and version for a reader."""
    store, access = lesson.load("store"), lesson.load("access")
    everything = as_library(lesson, drawn + hidden)
    views = []
    for documents in (everything, access.visible(everything, "reader")):
        path = new_file(lesson)
        store.publish(path, documents)
        with store.open_snapshot(path) as snapshot:
            view = snapshot.view_version("reader")
            views.append((view, snapshot.search(query), snapshot.documents("reader")))
            assert re.fullmatch("[0-9a-f]{12}", view)
    assert views[0] == views[1]


@pytest.mark.lessons(6)
def test_each_role_has_a_version_of_its_own_view(lesson):
    """A change that only editors see changes the version of their view alone."""
    store, views = lesson.load("store"), []
    for secret in ("owl", "elk"):
        path = new_file(lesson)
        documents = [make(lesson, "a", "fox"), make(lesson, "b", secret, role="editor")]
        version = store.publish(path, documents)
        with store.open_snapshot(path) as snapshot:
            assert snapshot.version == version
            views.append([snapshot.view_version(role) for role in ROLES])
    (reader, editor), (reader_later, editor_later) = views
    assert reader == reader_later and editor != editor_later != reader_later


@pytest.mark.lessons(6)
def test_two_documents_with_one_id_are_refused(lesson):
    """Neither may overwrite the other in silence; what was published stays."""
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a", "fox")])
    with pytest.raises(ValueError):
        store.publish(path, [make(lesson, "b", "owl"), make(lesson, "b", "elk")])
    assert texts(searched(lesson, path, "fox")) == ["fox"]


# ---- publishing while others read, and publishers that die

PRELUDE = """
import os, sqlite3, sys
sys.path.insert(0, sys.argv[1])
import library, store

def generation(number):
    body = f"# h\\n\\nfox generation{number}\\n\\n# h\\n\\nfox owl"
    names = [f"d{i:02}" for i in range(12)]
    return [library.Document(name, "T", "u", body, "en", number) for name in names]
"""

# Ends its process at the n-th call of the hook: a statement that begins, or, within
# statements, every so many steps of SQLite's machine.  Few pages in memory make an
# open transaction write to the log long before it is committed.
DYING_PUBLISHER = (
    PRELUDE
    + """
path, number, hook, last = sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
calls = 0

def count(*_):
    global calls
    calls += 1
    if calls == last:
        os._exit(9)
    return 0

connect = sqlite3.connect

def watched(*args, **kwargs):
    db = connect(*args, **kwargs)
    db.execute("PRAGMA cache_size = 4")
    if hook == "statement":
        db.set_trace_callback(count)
    else:
        db.set_progress_handler(count, 50)
    return db

sqlite3.connect = watched
store.publish(path, generation(number))
print(calls)
"""
)

PUBLISHER = (
    PRELUDE
    + """
for number in map(int, sys.argv[3:]):
    store.publish(sys.argv[2], generation(number))
"""
)


def python(
    lesson, code: str, *args: object, **env: object
) -> subprocess.CompletedProcess:
    """Run code that finds the lesson's folder as its first argument."""
    return subprocess.run(
        [sys.executable, "-c", code, str(lesson.folder), *map(str, args)],
        capture_output=True,
        cwd=lesson.home,
        env=lesson.environment(**env),
        timeout=120,
    )


def publish_generation(lesson, path: Path, number: int) -> None:
    """Publish, in this process, twelve documents that all are of one generation."""
    body = f"# h\n\nfox generation{number}\n\n# h\n\nfox owl"
    documents = [make(lesson, f"d{i:02}", body, revision=number) for i in range(12)]
    lesson.load("store").publish(path, documents)


def whole_generation(lesson, path: Path) -> int:
    """Which generation answers; it is a failure if the answer is a mixture."""
    with lesson.load("store").open_snapshot(path) as snapshot:
        rows = snapshot.search("fox", limit=100)
        documents = snapshot.documents("reader")
        revisions = {d.revision for d in documents}
        assert len(rows) == 24 and len(documents) == 12 and len(revisions) == 1
        (number,) = revisions
        found = snapshot.search(f"generation{number}", limit=100)
        assert len(found) == 12
        assert {row["body"] for row in found} == {f"fox generation{number}"}
        for other in (number - 1, number + 1):
            assert snapshot.search(f"generation{other}") == []
    return number


def moments(total: int, count: int) -> list[int]:
    """The first calls, the last ones, and some between."""
    some = random.Random(total).sample(range(1, total + 1), min(count, total))
    return sorted({1, 2, total - 1, total, *some} - {0, -1})


def start_of(path: Path) -> dict[str, bytes]:
    """The bytes of all files that belong to a database."""
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


def put_back(path: Path, files: dict[str, bytes]) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    for name, content in files.items():
        (path.parent / name).write_bytes(content)


@pytest.mark.lessons(6)
@pytest.mark.parametrize("hook", ["statement", "step"])
def test_a_publisher_that_dies_leaves_the_last_version(lesson, hook):
    """Killed at many moments: the old version answers, and the next publish works."""
    path = new_file(lesson)
    publish_generation(lesson, path, 1)
    files = start_of(path)
    done = python(lesson, DYING_PUBLISHER, path, 2, hook, -1)
    assert done.returncode == 0, done.stderr.decode()
    for last in moments(int(done.stdout), count=3):
        put_back(path, files)
        killed = python(lesson, DYING_PUBLISHER, path, 2, hook, last)
        assert killed.returncode == 9, "the publisher was to die, and did not"
        # What happens after the transaction may be killed, too: then it counts.
        assert whole_generation(lesson, path) in (1, 2)
        publish_generation(lesson, path, 3)
        assert whole_generation(lesson, path) == 3


@pytest.mark.lessons(6)
def test_a_first_publisher_that_dies_leaves_nothing_or_all(lesson):
    """Nothing answers from a file that was never finished, and it is no obstacle."""
    store, path = lesson.load("store"), new_file(lesson)
    done = python(lesson, DYING_PUBLISHER, path, 1, "statement", -1)
    assert done.returncode == 0, done.stderr.decode()
    for last in moments(int(done.stdout), count=1):
        put_back(path, {})
        killed = python(lesson, DYING_PUBLISHER, path, 1, "statement", last)
        assert killed.returncode == 9, "the publisher was to die, and did not"
        error = lesson.load("database").StoreError
        with contextlib.suppress(error), store.open_snapshot(path) as snapshot:
            assert len(snapshot.documents("reader")) == 12
        publish_generation(lesson, path, 2)
        assert whole_generation(lesson, path) == 2


@pytest.mark.lessons(6)
def test_a_log_that_was_cut_anywhere_gives_one_version(lesson):
    """Killed while the log was written: however much of it is there, one version."""
    path, copy = new_file(lesson), new_file(lesson)
    publish_generation(lesson, path, 1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")  # who still reads keeps the log from being folded in
        reader.execute("SELECT * FROM sqlite_master").fetchone()
        assert python(lesson, PUBLISHER, path, 2).returncode == 0
        main = path.read_bytes()
        log = path.with_name(f"{path.name}-wal").read_bytes()
    assert len(log) > 10_000
    lengths = [0, 31, 32, len(log) - 1, *random.Random(1).sample(range(len(log)), 20)]
    for length in lengths:
        put_back(copy, {copy.name: main, f"{copy.name}-wal": log[:length]})
        assert whole_generation(lesson, copy) == 1
    put_back(copy, {copy.name: main, f"{copy.name}-wal": log})
    assert whole_generation(lesson, copy) == 2


@pytest.mark.lessons(6)
def test_a_reader_keeps_its_version_while_another_process_publishes(lesson):
    """From opening to closing one version, also where its first question comes late."""
    path, store = new_file(lesson), lesson.load("store")
    publish_generation(lesson, path, 1)
    with store.open_snapshot(path) as early, store.open_snapshot(path) as late:
        before = early.search("fox", limit=100)
        assert python(lesson, PUBLISHER, path, 2, 3).returncode == 0
        for snapshot in (early, late):
            assert snapshot.search("fox", limit=100) == before
            assert snapshot.version == early.version
            assert {d.revision for d in snapshot.documents("reader")} == {1}
            assert snapshot.view_version("reader") == early.view_version("reader")
        assert whole_generation(lesson, path) == 3  # who opens now sees the new one


@pytest.mark.lessons(6)
def test_readers_beside_a_busy_publisher_see_whole_versions(lesson):
    """While a process publishes again and again, every reader sees one version."""
    path, generations = new_file(lesson), range(2, 17)
    publish_generation(lesson, path, 1)
    command = [sys.executable, "-c", PUBLISHER, lesson.folder, path, *generations]
    publisher = subprocess.Popen(
        [str(word) for word in command], cwd=lesson.home, env=lesson.environment()
    )
    seen = [1]
    while publisher.poll() is None:
        seen.append(whole_generation(lesson, path))
    assert publisher.returncode == 0
    assert seen == sorted(seen), "a reader went back to an older version"
    assert whole_generation(lesson, path) == generations[-1]


@pytest.mark.lessons(6)
def test_publishers_at_the_same_time_wait_for_each_other(lesson):
    """Several first publishers of one file: all succeed, and the file is whole."""
    path = new_file(lesson)
    command = [sys.executable, "-c", PUBLISHER, str(lesson.folder), str(path), "1"]
    publishers = [
        subprocess.Popen(
            command,
            cwd=lesson.home,
            env=lesson.environment(),
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    errors = [publisher.communicate(timeout=120)[1] for publisher in publishers]
    assert [p.returncode for p in publishers] == [0, 0, 0], errors
    assert whole_generation(lesson, path) == 1


@pytest.mark.lessons(6)
def test_a_file_that_is_published_while_it_is_looked_at_is_not_foreign(lesson):
    """It is looked at by several queries, and may be another file between two."""
    path, store = new_file(lesson), lesson.load("store")

    class Overtaken(sqlite3.Connection):
        def execute(self, *words):
            found = super().execute(*words)
            if path.exists() and path.stat().st_size:
                return found
            answer = found.fetchone()
            store.publish(path, [make(lesson, "a", "fox")])
            return super().execute("SELECT ?", answer)

    with contextlib.closing(sqlite3.connect(path, factory=Overtaken)) as db:
        lesson.load("database").check_file(db, path)
    assert path.stat().st_size, "it was published meanwhile"


# ---- locks


@pytest.fixture
def impatient(lesson, monkeypatch):
    """Waiting for a lock takes no time in this test."""
    monkeypatch.setattr(lesson.load("database"), "BUSY_SECONDS", 0.01)


@contextlib.contextmanager
def locked(path: Path, everybody: bool):
    """Another connection that writes, or that lets not even readers in."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        if everybody:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE unfinished (x)")
        yield


@pytest.mark.lessons(6)
def test_a_lock_that_lasts_is_an_error_of_its_own(lesson, impatient):
    """Neither reading nor publishing takes a locked file for an empty one."""
    path, store = new_file(lesson), lesson.load("store")
    error = lesson.load("database").StoreError
    store.publish(path, [make(lesson, "a", "fox")])
    with locked(path, everybody=True):
        with pytest.raises(error) as reading:
            searched(lesson, path, "fox")
        with pytest.raises(error) as writing:
            store.publish(path, [make(lesson, "a", "fox")])
    for caught in (reading, writing):
        assert caught.value.reason == "locked"
        assert path.name in str(caught.value)
    assert texts(searched(lesson, path, "fox")) == ["fox"]


@pytest.mark.lessons(6)
def test_readers_do_not_wait_for_a_publisher(lesson, impatient):
    """While another process writes, questions are answered from the last version."""
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a", "fox")])
    with locked(path, everybody=False):
        assert texts(searched(lesson, path, "fox")) == ["fox"]
        with pytest.raises(lesson.load("database").StoreError) as caught:
            store.publish(path, [make(lesson, "a", "owl", revision=2)])
        assert caught.value.reason == "locked"
    store.publish(path, [make(lesson, "a", "owl", revision=2)])
    assert texts(searched(lesson, path, "owl")) == ["owl"]


@pytest.mark.lessons(6)
def test_every_kind_of_busy_file_is_a_locked_one(lesson):
    """SQLite tells several kinds of busy apart; to a person all are a lock."""
    database, path = lesson.load("database"), new_file(lesson)
    for name in ("SQLITE_BUSY", "SQLITE_BUSY_RECOVERY", "SQLITE_BUSY_SNAPSHOT"):
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = getattr(sqlite3, name)
        with (
            pytest.raises(database.StoreError) as caught,
            database.connection(path, "rwc"),
        ):
            raise busy
        assert caught.value.reason == "locked", name


@pytest.mark.lessons(6)
def test_every_connection_waits_before_it_gives_up(lesson, monkeypatch):
    """A lock that is soon gone is not noticed: there is a time to wait everywhere."""
    path, store, opened = new_file(lesson), lesson.load("store"), []
    connect = sqlite3.connect

    def watched(*args, **kwargs):
        db = connect(*args, **kwargs)
        opened.append(db.execute("PRAGMA busy_timeout").fetchone()[0])
        return db

    monkeypatch.setattr(sqlite3, "connect", watched)
    store.publish(path, [make(lesson, "a", "fox")])
    searched(lesson, path, "fox")
    assert len(opened) >= 2
    assert all(1_000 <= milliseconds <= 60_000 for milliseconds in opened), opened


IMPATIENT_APP = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import database
database.BUSY_SECONDS = 0.01
import app, console
console.run(app.main)
"""


@pytest.mark.lessons(6)
def test_the_app_says_that_the_file_is_locked(lesson, library):
    """Status 1 and a message of its own, never "nothing found"."""
    path = lesson.home / "library.db"
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    assert lesson.run("--json", "fox", LIBRARY=library).status == 0
    settings = {**lesson.settings, "LIBRARY": str(library)}
    lesson.settings.update(settings)
    with locked(path, everybody=True):
        done = python(lesson, IMPATIENT_APP, "--json", "fox")
        plain = python(lesson, IMPATIENT_APP, "fox")
    library.write("a.md", "---\nid: a\nrevision: 2\n---\nThe fox wakes up.\n")
    with locked(path, everybody=False):  # the question would have to publish first
        writing = python(lesson, IMPATIENT_APP, "--json", "fox")
    for failed in (done, writing):
        answer = json.loads(failed.stdout)
        assert failed.returncode == 1
        assert (answer["status"], answer["reason"]) == ("error", "locked")
        assert b"lock" in failed.stderr and b"Traceback" not in failed.stderr
    assert plain.returncode == 1 and b"nothing" not in plain.stdout + plain.stderr


# ---- files that are no snapshot


def foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE addresses (name)")
        db.execute("INSERT INTO addresses VALUES ('Anna')")
        db.commit()


def newer(lesson, path: Path) -> None:
    lesson.load("store").publish(path, [make(lesson, "a", "fox")])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")


@pytest.mark.lessons(6)
@pytest.mark.parametrize("number", [6, 8, 9, 10, 12, 200])
def test_a_file_with_tables_of_an_older_form_is_made_anew(lesson, library, number):
    """Its number is lower, so nobody looks into tables that have other columns."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "old", "fox")])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE library")
        db.execute("CREATE TABLE library (version TEXT)")
        db.execute("INSERT INTO library VALUES ('0123456789ab')")
        db.execute("DROP TABLE parts")
        db.execute(f"PRAGMA user_version = {number}")
        db.commit()
    with pytest.raises(lesson.load("database").StoreError, match="--rebuild") as caught:
        searched(lesson, path, "fox")
    assert caught.value.reason == "not_published"
    result = lesson.run("--db", path, "fox", LIBRARY=library)
    assert result.status == 0 and "published version" in result.stderr
    with store.open_snapshot(path) as snapshot:
        assert [document.id for document in snapshot.documents("reader")] == ["a"]


@pytest.mark.lessons(6)
@pytest.mark.parametrize("kind", ["foreign", "text", "newer", "folder"])
def test_a_file_of_something_else_is_refused_and_not_touched(lesson, kind):
    """Another program's database, a text, a newer format, a folder: left as it is."""
    path, store = new_file(lesson), lesson.load("store")
    match kind:
        case "foreign":
            foreign(path)
        case "text":
            path.write_text("Dear diary,\n" * 400, encoding="utf-8")
        case "newer":
            newer(lesson, path)
        case "folder":
            path.mkdir()
    before = None if path.is_dir() else path.read_bytes()
    for use in (
        lambda: store.publish(path, [make(lesson, "a", "fox")]),
        lambda: searched(lesson, path, "fox"),
    ):
        with pytest.raises(lesson.load("database").StoreError) as caught:
            use()
        assert caught.value.reason not in ("locked", "not_published")
        assert path.name in str(caught.value)
    assert before is None or path.read_bytes() == before


@pytest.mark.lessons(6)
def test_a_snapshot_that_is_not_there_is_an_error(lesson):
    """Opening does not create a file, and says how to make one."""
    path, store = new_file(lesson), lesson.load("store")
    with pytest.raises(lesson.load("database").StoreError, match="--rebuild"):
        searched(lesson, path, "fox")
    assert not path.exists()
    path.write_bytes(b"")  # what a publisher leaves that dies in its first moment
    with pytest.raises(lesson.load("database").StoreError, match="--rebuild"):
        searched(lesson, path, "fox")
    store.publish(path, [make(lesson, "a", "fox")])
    assert texts(searched(lesson, path, "fox")) == ["fox"]


@pytest.mark.lessons(6)
@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_file_is_an_error_and_no_empty_library(lesson, damage):
    """Half a file, or one with foreign bytes in it: no other kind of exception."""
    path, store = new_file(lesson), lesson.load("store")
    documents = [make(lesson, f"d{n:03}", f"fox w{n}") for n in range(200)]
    store.publish(path, documents)
    whole = path.read_bytes()
    for place in range(100, len(whole), len(whole) // 12):
        junk = b"" if damage == "cut" else b"\xff" * 4096 + whole[place + 4096 :]
        put_back(path, {path.name: whole[:place] + junk})
        try:
            assert searched(lesson, path, "fox") != []
        except lesson.load("database").StoreError as error:
            assert error.reason in ("bad_file", "foreign_file", "not_published")


@pytest.mark.lessons(6)
def test_a_part_that_is_missing_in_the_file_is_an_error(lesson):
    """Postings that lead nowhere: the file is named, and no row is invented."""
    path = new_file(lesson)
    lesson.load("store").publish(path, [make(lesson, "a", "fox")])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM parts")
    with pytest.raises(lesson.load("database").StoreError, match=path.name) as caught:
        searched(lesson, path, "fox")
    assert caught.value.reason == "bad_file"


@pytest.mark.lessons(6)
def test_a_level_that_does_not_exist_is_an_error(lesson, monkeypatch):
    """A damaged byte names a level of which nothing is known."""
    path = new_file(lesson)
    monkeypatch.setattr(lesson.load("postings"), "MANY", 2)
    lesson.load("store").publish(
        path, [make(lesson, f"d{n}", "fox owl") for n in range(9)]
    )
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE postings SET levels = X'FFFFFFFFFFFFFFFFFFFF'")
    with pytest.raises(lesson.load("database").StoreError, match=path.name) as caught:
        searched(lesson, path, "fox owl")
    assert caught.value.reason == "bad_file"


@pytest.mark.lessons(6)
@pytest.mark.parametrize(
    "damage", ["first = -1", "first = 1 << 40", "levels = NULL, entries = X'0102'"]
)
def test_damaged_numbers_are_an_error(lesson, monkeypatch, damage):
    """They are not trusted: one of them would take all memory."""
    path = new_file(lesson)
    monkeypatch.setattr(lesson.load("postings"), "MANY", 2)
    lesson.load("store").publish(
        path, [make(lesson, f"d{n}", "fox owl") for n in range(9)]
    )
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE postings SET {damage} WHERE term = 'fox'")
    with pytest.raises(lesson.load("database").StoreError, match=path.name) as caught:
        searched(lesson, path, "fox owl")
    assert caught.value.reason == "bad_file"


@pytest.mark.lessons(6)
def test_the_app_explains_what_is_wrong_with_the_file(lesson, library):
    """No traceback: the reason, the file's name and status 1."""
    library.write("a.md", "The fox sleeps.\n")
    path = lesson.home / "mine.db"
    foreign(path)
    before = path.read_bytes()
    for wrong in (path, lesson.home, lesson.home / "no" / "such" / "folder.db"):
        result = lesson.run("--json", "--db", wrong, "fox", LIBRARY=library)
        assert result.status == 1 and result.json["status"] == "error"
        assert wrong.name in result.json["message"]
        assert "Traceback" not in result.stderr and result.stderr
    assert path.read_bytes() == before


@pytest.mark.lessons(6)
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_folder_that_cannot_be_written_is_an_error(lesson):
    """The file cannot be made there, and the message says which one it was."""
    folder = lesson.home / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    with pytest.raises(lesson.load("database").StoreError, match="library.db"):
        lesson.load("store").publish(folder / "library.db", [])


@pytest.mark.lessons(6)
def test_odd_file_names_are_only_names(lesson):
    """Characters that mean something in an address mean nothing in a path."""
    for name in ("a?mode=memory", "50%25", "a b#c", "база", "'; --"):
        path = lesson.home / f"{name}.db"
        lesson.load("store").publish(path, [make(lesson, "a", "fox")])
        assert path.is_file(), name
        assert texts(searched(lesson, str(path), "fox")) == ["fox"]


# ---- the cost of reading


class Meter:
    """Counts what SQLite does and hands over: machine steps, rows and bytes."""

    def __init__(self, monkeypatch):
        self.steps = self.rows = self.bytes = 0
        connect, meter = sqlite3.connect, self

        class Cursor(sqlite3.Cursor):
            def __next__(self):
                return meter.count(super().__next__())

            def fetchone(self):
                return meter.count(super().fetchone())

            def fetchall(self):
                return [meter.count(row) for row in super().fetchall()]

            def fetchmany(self, *size):
                return [meter.count(row) for row in super().fetchmany(*size)]

        class Connection(sqlite3.Connection):
            def cursor(self, factory=Cursor):
                return super().cursor(factory)

            def execute(self, *args):
                return self.cursor().execute(*args)

        def watched(*args, **kwargs):
            db = connect(*args, **{"factory": Connection, **kwargs})
            db.set_progress_handler(self.step, 1)
            return db

        monkeypatch.setattr(sqlite3, "connect", watched)

    def step(self) -> int:
        self.steps += 1
        return 0

    def count(self, row):
        if row is not None:
            self.rows += 1
            for value in tuple(row):
                self.bytes += len(value) if isinstance(value, (str, bytes)) else 8
        return row


@pytest.mark.lessons(6)
def test_the_cost_of_a_question_is_that_of_its_terms(lesson, monkeypatch):
    """100 or 10,000 parts: with the same postings, the same steps, rows and bytes."""
    costs, many = {}, 10_000 if lesson.is_end(6) else 2_000
    body = "## h\n\nfox owl\n\n## h\n\nfox"
    asked = [make(lesson, f"a{number:02}", body) for number in range(9)]
    for size in (100, many):
        filler = []
        for number in range(size // 50):  # most terms are those of one part alone
            lines = (f"## h\n\nelk w{number}w{n}\n\n" for n in range(50))
            filler.append(make(lesson, f"b{number:03}", "".join(lines)))
        path = new_file(lesson)
        lesson.load("store").publish(path, asked + filler)
        for role in ROLES:
            with monkeypatch.context() as patch:
                meter = Meter(patch)
                rows = searched(lesson, path, "fox owl wolverine", role=role, limit=3)
            assert len(rows) == 3
            costs[size, role] = (meter.steps, meter.rows, meter.bytes)
    for role in ROLES:
        small, large = costs[100, role], costs[many, role]
        assert all(a <= b * 1.1 + 20 for a, b in zip(large, small, strict=True)), (
            f"steps, rows and bytes: {small} for 100 parts, {large} for {many}"
        )


@pytest.mark.lessons(6)
def test_texts_are_read_for_what_is_returned(lesson, monkeypatch):
    """A term of many parts costs its postings, not the texts of all these parts."""
    path = new_file(lesson)
    rng = random.Random(3)
    documents = [
        make(lesson, f"d{n:03}", f"fox {'elk ' * rng.randint(1, 900)}")
        for n in range(300)
    ]
    lesson.load("store").publish(path, documents)
    with monkeypatch.context() as patch:
        meter = Meter(patch)
        (row,) = searched(lesson, path, "fox", limit=1)
    everything = sum(len(document.body) for document in documents)
    assert meter.bytes < everything / 10
    assert meter.rows < 60


@pytest.mark.lessons(6)
@few
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["fox", "owl", "elk", "ёж", "海图"]), max_size=9),
        max_size=9,
    )
)
def test_postings_are_collected_as_counted(lesson, texts):
    """What is packed while it is collected is what counting each term alone gives."""
    postings = lesson.load("postings")
    counts = [Counter(words) for words in texts]
    collected = postings.Collected(list)
    for number, count in enumerate(counts, start=1):
        collected.add(number, count)
    assert collected.keys() == set().union(*texts)
    for term, packed in collected.items():
        entries = list(postings.ENTRY.iter_unpack(b"".join(packed)))
        held = [n for n, count in enumerate(counts, start=1) if term in count]
        assert [number for number, _ in entries] == held
        assert [divmod(code, 1 << postings.LENGTH_BITS) for _, code in entries] == [
            (counts[n - 1][term], counts[n - 1].total()) for n in held
        ]


@pytest.mark.lessons(6)
@few
@given(
    codes=st.lists(
        st.tuples(
            st.one_of(st.integers(1, 4), st.integers(1, 2**31)),
            st.one_of(st.integers(1, 300), st.integers(1, 2**32 - 1)),
        ),
        min_size=1,
        max_size=400,
    ),
    often=st.sampled_from([1, 300]),
    gap=st.sampled_from([1, 31, 40]),
)
def test_no_level_is_below_what_it_stands_for(lesson, codes, often, gap):
    """In each level the count is the same and the length of its code the shortest."""
    postings = lesson.load("postings")
    codes = codes * often
    entries = b"".join(
        pack("=IQ", 7 + place * gap, count << postings.LENGTH_BITS | length)
        for place, (count, length) in enumerate(codes)
    )
    first, tops, levels = postings.levels(entries)
    if tops is None:
        few_parts = len(codes) < postings.MANY
        far_apart = len(codes) * postings.COMMON < (len(codes) - 1) * gap
        many_counts = len({count for count, _ in codes}) > 25
        assert few_parts or far_apart or many_counts
        return
    assert first == 7 and len(tops) < 256 and len(levels) == 1 + (len(codes) - 1) * gap
    for place, (count, length) in enumerate(codes):
        best = divmod(tops[levels[place * gap] - 1], 1 << postings.LENGTH_BITS)
        assert best[0] == count and best[1] <= length
        assert len(set(codes)) > 255 or best[1] == length, "no need to round"
    assert sum(map(bool, levels)) == len(codes), "0 where the term is not"


# ---- the app publishes by itself


def age(*paths, seconds: int = 60) -> None:
    """Let files look as if they had last been changed a minute ago."""
    for path in paths:
        stamp = path.stat()
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns - seconds * 10**9))


class Clock:
    """The module `time`, some seconds later."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def time_ns(self) -> int:
        return time.time_ns() + int(self.seconds * 10**9)


@pytest.mark.lessons(6)
def test_files_that_did_not_change_are_not_read(lesson, library, monkeypatch):
    """Where names, sizes, times and numbers agree, no file is opened."""
    for name in ("a.md", "deep/b.md"):
        library.write(name, f"---\nid: {name}\n---\nThe fox sleeps.\n")
    store, path = lesson.load("store"), new_file(lesson)
    monkeypatch.setattr(lesson.load("versions"), "time", Clock(3))
    assert store.refresh(path, library.folder)
    monkeypatch.setattr(store, "load", lambda folder: pytest.fail("it was read"))
    assert store.refresh(path, library.folder) is None


@pytest.mark.lessons(6)
def test_files_that_changed_just_now_are_read_again(lesson, library, monkeypatch):
    """Within one tick of the clock a file can change twice and look the same."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    store, path = lesson.load("store"), new_file(lesson)
    store.refresh(path, library.folder)
    reads, load = [], store.load
    monkeypatch.setattr(store, "load", lambda folder: reads.append(1) or load(folder))
    monkeypatch.setattr(lesson.load("versions"), "time", Clock(3))
    # When it was published, its time was no proof.
    assert store.refresh(path, library.folder) is None and reads == [1]
    # Now it was found as published, at a time that is one.
    assert store.refresh(path, library.folder) is None and reads == [1]


@pytest.mark.lessons(6)
def test_a_note_that_files_did_not_change_is_not_worth_a_failure(
    lesson, library, monkeypatch
):
    """While somebody else is writing, a question is answered without the note."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    store, path = lesson.load("store"), new_file(lesson)
    store.refresh(path, library.folder)
    monkeypatch.setattr(lesson.load("versions"), "time", Clock(3))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert store.refresh(path, library.folder) is None
        writer.execute("ROLLBACK")
    with store.open_snapshot(path) as snapshot:
        assert snapshot.files == "", "noted although somebody else was writing"


@pytest.mark.lessons(6)
def test_what_was_published_meanwhile_is_not_marked(lesson, library, monkeypatch):
    """A fingerprint belongs to the version whose files were read."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    store, path = lesson.load("store"), new_file(lesson)
    store.refresh(path, library.folder)
    load = store.load

    def overtaken(folder):
        found = load(folder)
        store.publish(path, [make(lesson, "b", "An owl.")])
        return found

    monkeypatch.setattr(lesson.load("versions"), "time", Clock(3))
    monkeypatch.setattr(store, "load", overtaken)
    assert store.refresh(path, library.folder) is None
    with store.open_snapshot(path) as snapshot:
        assert snapshot.files == ""


@pytest.mark.lessons(6)
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("rebuild", [True, False])
def test_a_slow_publisher_does_not_undo_a_newer_one(
    lesson, library, monkeypatch, published, rebuild
):
    """What was read before somebody else published is read anew: rights count."""
    store, path = lesson.load("store"), new_file(lesson)
    load, reads = store.load, []
    if published:
        library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
        store.refresh(path, library.folder)

    def overtaken(folder):
        found = load(folder)
        reads.append(1)
        if len(reads) == 1:
            library.write("a.md", "---\nid: a\nrole: editor\n---\nThe fox hides.\n")
            assert store.refresh(path, folder)
        return found

    library.write("a.md", "---\nid: a\n---\nThe fox wakes.\n")
    monkeypatch.setattr(store, "load", overtaken)
    assert bool(store.refresh(path, library.folder, rebuild)) is rebuild
    with store.open_snapshot(path) as snapshot:
        bodies = [document.body for document in snapshot.documents("editor")]
        assert bodies == ["The fox hides.\n"] and not snapshot.documents("reader")
    assert len(reads) == 3, "read early, by the other one, and anew"
    if hasattr(store, "history"):
        told = [entry["what"] for entry in store.history(path)]
        assert told == ["put"] * (1 + published), "no entry for what was read early"


@pytest.mark.lessons(6)
def test_while_files_are_left_out_no_fingerprint_is_kept(lesson, library, monkeypatch):
    """What cannot be read may become readable without any change of its times."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    library.write("b.md", "---\nid: b\n---\nThe owl hunts.\n")
    store, path = lesson.load("store"), new_file(lesson)
    read, reads, blocked = store.load, [], ["b"]

    def load(folder):
        reads.append(1)
        documents, faults = read(folder)
        left = [document for document in documents if document.id not in blocked]
        return left, faults + [f"{name}.md: cannot be read" for name in blocked]

    monkeypatch.setattr(store, "load", load)
    monkeypatch.setattr(lesson.load("versions"), "time", Clock(3))
    assert store.refresh(path, library.folder), "it is published"
    for _ in range(2):
        with store.open_snapshot(path) as snapshot:
            assert snapshot.files == ""
        assert store.refresh(path, library.folder) is None, "it is found as published"
    blocked.clear()
    assert store.refresh(path, library.folder), "b.md was not missed"
    assert store.refresh(path, library.folder) is None and len(reads) == 4
    assert searched(lesson, path, "owl")


@pytest.mark.lessons(6)
def test_a_fingerprint_is_another_one_after_any_change(lesson, library, monkeypatch):
    """Size, time, name, number: each alone makes another fingerprint."""
    versions = lesson.load("versions")
    monkeypatch.setattr(versions, "time", Clock(3))
    folder, path = library.folder, library.write("a.md", "The fox sleeps.\n")
    age(path)
    seen = [versions.fingerprint(folder)]

    def is_new() -> bool:
        seen.append(versions.fingerprint(folder))
        return seen[-1] not in ("", *seen[:-1])

    assert versions.fingerprint(folder) == seen[0] != ""
    stamp = path.stat()
    library.write("a.md", "The fox sleeps!!\n")  # another size
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert is_new()
    age(path)  # another time
    assert is_new()
    path.rename(folder / "b.md")
    assert is_new()
    library.write("deep/c.MD", "An owl.\n")
    assert is_new()
    copy = library.write("copy", "An owl.\n")  # another file in its place
    copy.replace(folder / "deep" / "c.MD")
    assert is_new()
    (folder / "b.md").unlink()
    assert is_new()


@pytest.mark.lessons(6)
def test_what_is_not_published_makes_no_other_fingerprint(lesson, library, monkeypatch):
    """Hidden files and other kinds of files say nothing about the library."""
    versions = lesson.load("versions")
    monkeypatch.setattr(versions, "time", Clock(3))
    library.write("a.md", "The fox sleeps.\n")
    first = versions.fingerprint(library.folder)
    for name in (".b.md", ".git/c.md", "d.txt"):
        library.write(name, "An owl.\n")
    assert versions.fingerprint(library.folder) == first != ""


def refuse(path: object) -> None:
    """Act like a file system that does not let us look."""
    raise PermissionError(13, "not for you", path)


@pytest.mark.lessons(6)
def test_a_fingerprint_is_empty_where_it_is_no_proof(lesson, library, monkeypatch):
    """Files of the last two seconds, what cannot be seen, links, no files at all."""
    versions = lesson.load("versions")
    assert versions.fingerprint(library.folder) == ""
    assert versions.fingerprint(library.folder / "nowhere") == ""
    path = library.write("a.md", "The fox sleeps.\n")
    os.utime(path, (1, 1))  # the time of the change itself cannot be set
    monkeypatch.setattr(versions, "time", Clock(0))
    if os.name == "posix":
        assert versions.fingerprint(library.folder) == ""
    monkeypatch.setattr(versions, "time", Clock(3))
    assert versions.fingerprint(library.folder) != ""
    for name in ("lstat", "scandir"):
        with monkeypatch.context() as patch:
            patch.setattr(versions.os, name, refuse)
            assert versions.fingerprint(library.folder) == ""
    try:
        (library.folder / "b.md").symlink_to(path)
    except OSError:
        pytest.skip("no right to make links here")
    assert versions.fingerprint(library.folder) == ""


@pytest.mark.lessons(6)
def test_the_app_publishes_what_has_changed(lesson, library):
    """New content is found at once, also with the same size and time stamp."""
    path = library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    first = lesson.run("--json", "fox", LIBRARY=library)
    assert shown(first) == ["The fox sleeps."] and first.stderr
    stamp = path.stat()
    library.write("a.md", "---\nid: a\n---\nThe fox gallop.\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert path.stat().st_size == stamp.st_size
    second = lesson.run("--json", "fox", LIBRARY=library)
    assert shown(second) == ["The fox gallop."] and second.stderr
    library.write("b.md", "---\nid: b\n---\nAn owl.\n")
    assert shown(lesson.run("--json", "owl", LIBRARY=library)) == ["An owl."]
    (library.folder / "b.md").unlink()
    assert shown(lesson.run("--json", "owl", LIBRARY=library)) == []


@pytest.mark.lessons(6)
def test_a_question_that_changes_nothing_leaves_the_file_alone(lesson, library):
    """A newer time stamp is no change: nothing is published, said or written."""
    path = library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    lesson.run("--json", "fox", LIBRARY=library)
    before = start_of(lesson.home / "library.db")
    assert list(before) == ["library.db"], "only one file is left behind"
    os.utime(path, (1, 1))
    result = lesson.run("--json", "fox", LIBRARY=library)
    assert shown(result) == ["The fox sleeps."] and result.stderr == ""
    assert start_of(lesson.home / "library.db") == before


@pytest.mark.lessons(6)
def test_faults_are_told_to_whoever_publishes(lesson, library):
    """The first run and --rebuild name the files left out; a question does not."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    library.write("bad.md", "---\nid: bad\nThe fox\n")
    first = lesson.run("--json", "fox", LIBRARY=library)
    later = lesson.run("--json", "fox", LIBRARY=library)
    rebuilt = lesson.run("--json", "--rebuild", LIBRARY=library)
    assert "bad.md" in first.stderr and "bad.md" in rebuilt.stderr
    assert later.stderr == "" and shown(later) == shown(first) == ["The fox sleeps."]
    assert [run.status for run in (first, later, rebuilt)] == [0, 0, 0]


@pytest.mark.lessons(6)
def test_rebuild_publishes_with_and_without_a_question(lesson, library):
    """`--rebuild` alone needs no question; with one, it is answered afterwards."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    alone = lesson.run("--rebuild", LIBRARY=library)
    assert alone.status == 0 and alone.stderr
    assert (lesson.home / "library.db").is_file()
    both = lesson.run("--json", "--rebuild", "fox", LIBRARY=library)
    assert both.status == 0 and both.stderr and shown(both) == ["The fox sleeps."]
    assert isinstance(lesson.run("--json", "--rebuild", LIBRARY=library).json, dict)
    assert lesson.run(LIBRARY=library).status == 2  # neither of them: wrong usage


@pytest.mark.lessons(6)
def test_the_file_is_where_the_settings_say(lesson, library):
    """LIBRARY_DB names the file; `--db` and `--library` win over the environment."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    named, optional = lesson.home / "named.db", lesson.home / "optional.db"
    lesson.run("--json", "fox", LIBRARY=library, LIBRARY_DB=named)
    assert named.is_file() and not (lesson.home / "library.db").exists()
    before = named.read_bytes()
    result = lesson.run(
        *("--json", "--db", optional, "--library", library, "fox"),
        LIBRARY=lesson.home / "nowhere",
        LIBRARY_DB=named,
    )
    assert result.status == 0 and shown(result) == ["The fox sleeps."]
    assert optional.is_file() and named.read_bytes() == before


@pytest.mark.lessons(6)
@pytest.mark.parametrize("option", ["--db", "--library"])
def test_an_empty_option_is_wrong_usage_and_never_the_default(lesson, library, option):
    """`--db "$UNSET"` must not work on the default library."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    result = lesson.run("--json", option, "", "fox", LIBRARY=library)
    assert (result.status, result.stdout) == (2, "") and "empty" in result.stderr
    assert not (lesson.home / "library.db").exists()
    assert lesson.run("--json", "", LIBRARY=library).status == 0


@pytest.mark.lessons(10)
@pytest.mark.parametrize("words", [["--receipt", "", "fox"], ["--delete", ""]])
def test_an_empty_option_is_wrong_usage_for_every_option(lesson, library, words):
    """`--receipt "$UNSET"` must not answer as if no receipt were wanted."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    result = lesson.run("--json", *words, LIBRARY=library)
    assert (result.status, result.stdout) == (2, "") and "empty" in result.stderr


@pytest.mark.lessons(6)
@pytest.mark.parametrize("trouble", ["no home", "a file in its place"])
def test_without_a_folder_for_the_file_the_error_says_what_to_name(
    lesson, trouble, monkeypatch
):
    database = lesson.load("database")
    for name in ("LIBRARY_DB", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(database.os, "access", lambda *_: False)

    def home(*_):
        raise RuntimeError("no home")

    if trouble == "no home":
        monkeypatch.setattr(database.Path, "home", home)
    else:
        taken = lesson.home / "taken"
        taken.write_text("", encoding="utf-8")
        monkeypatch.setenv("XDG_CACHE_HOME", str(taken))
    with pytest.raises(database.StoreError, match="--db.*LIBRARY_DB"):
        database.default_db()


@pytest.mark.lessons(6)
def test_without_settings_the_file_is_beside_the_app(lesson, library):
    """The default is `library.db` in the lesson's folder, tried in a copy of it."""
    folder = lesson.home / "copy"
    shutil.copytree(
        lesson.folder,
        folder,
        ignore=shutil.ignore_patterns("library.db*", "__pycache__"),
    )
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    there = dataclasses.replace(lesson, folder=folder)
    result = there.run("--json", "fox", LIBRARY=library, LIBRARY_DB=None)
    assert result.status == 0 and (folder / "library.db").is_file()


@pytest.mark.lessons(6)
def test_a_library_that_is_gone_is_no_empty_library(lesson, library):
    """A wrong folder is an error, and what was published stays."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    lesson.run("--json", "fox", LIBRARY=library)
    before = start_of(lesson.home / "library.db")
    result = lesson.run("--json", "fox", LIBRARY=lesson.home / "nowhere")
    assert result.status == 1 and "nowhere" in result.json["message"]
    assert start_of(lesson.home / "library.db") == before
