"""The living library: documents change, and no answer outlives its sources unnoticed.

The large test compares two hundred random histories, with crashes in them, with a
plain model of what the library should hold.  A crash is what a killed process leaves:
the bytes that are in the files at a random statement; a few processes are killed
indeed.  The index is compared with one that is made anew from the same documents.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from struct import iter_unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

COURSE = Path(__file__).resolve().parent.parent
ROLES = ("reader", "editor")
RIGHTS = [("reader", "published")] * 4 + [  # role and status
    ("reader", "draft"),
    ("editor", "published"),
    ("reader", "withdrawn"),
    ("", "published"),
]
WORDS = ("fox", "owl", "elk", "bat", "yak", "7")
NUMBERS = itertools.count()


def make(lesson, doc_id, body="The fox sleeps.", **fields):
    """A document; what is not given is the same for all."""
    fields = {"title": "Title", "url": f"https://e.example/{doc_id}", **fields}
    return lesson.load("library").Document(id=doc_id, body=body, lang="en", **fields)


def new_file(lesson) -> Path:
    """A path where nothing is published yet."""
    return lesson.home / f"{next(NUMBERS)}.db"


def files_of(path: Path) -> dict[str, bytes]:
    """The bytes of all files that belong to a database."""
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


def put_back(path: Path, files: dict[str, bytes]) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    for name, content in files.items():
        (path.parent / name).write_bytes(content)


def documents_of(lesson, path: Path) -> dict:
    """Everything that is in the library, also what nobody may read."""
    with lesson.load("store").open_snapshot(path) as snapshot:
        rows = snapshot.db.execute("SELECT * FROM documents").fetchall()
    found = [lesson.load("snapshot").as_document(row) for row in rows]
    return {document.id: document for document in found}


def entries_of(lesson, path: Path, *doc_id: str) -> list[tuple]:
    """The journal, short: what, which document, from which revision to which."""
    return [
        (entry["what"], entry["doc_id"], entry["from_revision"], entry["to_revision"])
        for entry in lesson.load("store").history(path, *doc_id)
    ]


def version_of(lesson, path: Path) -> str:
    with lesson.load("store").open_snapshot(path) as snapshot:
        return snapshot.version


def bodies(lesson, path: Path, query: str, role: str = "editor") -> list[str]:
    """The texts that a question finds by words."""
    with lesson.load("store").open_snapshot(path) as snapshot:
        return [row["body"] for row in snapshot.search(query, role, 100)]


def refused(lesson, call, *args, **options) -> str:
    """The reason of the error that a call has to end with."""
    with pytest.raises(lesson.load("database").StoreError) as caught:
        call(*args, **options)
    return caught.value.reason


# ---- the journal


@pytest.mark.lessons(10)
def test_every_change_is_an_entry_with_the_version_after_it(lesson):
    """Put, change, withdraw, delete, return, purge: each is told, in this order."""
    path, store = new_file(lesson), lesson.load("store")
    versions = [
        store.put(path, make(lesson, "a", "one")),
        store.put(path, make(lesson, "b", "two")),
        store.put(path, make(lesson, "a", "three")),
        store.withdraw(path, "a"),
        store.delete(path, "a"),
        store.put(path, make(lesson, "a", "four", revision=9)),
        store.purge(path, "a"),
    ]
    told = store.history(path)
    assert [entry["entry"] for entry in told] == [1, 2, 3, 4, 5, 6, 7]
    assert [entry["version"] for entry in told] == versions
    assert all(entry["by_hand"] is True for entry in told)
    assert entries_of(lesson, path) == [
        ("put", "a", None, 1),
        ("put", "b", None, 1),
        ("put", "a", 1, 2),
        ("withdraw", "a", 2, 2),
        ("delete", "a", 2, None),
        ("put", "a", None, 9),
        ("purge", "a", 9, None),
    ]
    assert version_of(lesson, path) == versions[-1]
    assert store.history(path, "b") == [told[1]] and store.history(path, "c") == []


@pytest.mark.lessons(10)
def test_an_operation_returns_the_version_of_what_is_left(lesson):
    """The version is about content alone: the same library, the same version."""
    store, one, two = lesson.load("store"), new_file(lesson), new_file(lesson)
    first = store.put(one, make(lesson, "a"))
    store.put(one, make(lesson, "b", "owl"))
    assert store.delete(one, "b") == first == store.publish(two, [make(lesson, "a")])
    assert store.withdraw(one, "a") != first


@pytest.mark.lessons(10)
def test_a_publish_is_one_transaction_with_an_entry_for_each_change(lesson):
    """New, changed and vanished in one publish: the same version in each entry."""
    path, store = new_file(lesson), lesson.load("store")
    first = store.publish(path, [make(lesson, name) for name in "abcd"])
    second = store.publish(
        path, [make(lesson, "e"), make(lesson, "b"), make(lesson, "a", "The owl.")]
    )
    told = store.history(path)
    assert [entry["entry"] for entry in told] == list(range(1, 9))
    assert {entry["version"] for entry in told[:4]} == {first}
    assert {entry["version"] for entry in told[4:]} == {second}
    assert not any(entry["by_hand"] for entry in told)
    assert sorted(entries_of(lesson, path)[4:]) == [
        ("delete", "c", 1, None),
        ("delete", "d", 1, None),
        ("put", "a", 1, 2),
        ("put", "e", None, 1),
    ]


@pytest.mark.lessons(10)
def test_a_publish_that_fails_changes_nothing(lesson, monkeypatch):
    """The embedder breaks in the middle: no entry, no text, the same version."""
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a")])
    before = (store.history(path), documents_of(lesson, path), index_of(path))
    embedder = store.get_embedder()

    def broken(texts, question=False):
        raise ValueError("the server is down")

    with monkeypatch.context() as patch:
        patch.setattr(store, "get_embedder", lambda: embedder._replace(embed=broken))
        with pytest.raises(ValueError, match="the server is down"):
            store.publish(path, [make(lesson, "b", "owl"), make(lesson, "a", "elk")])
        with pytest.raises(ValueError, match="the server is down"):
            store.put(path, make(lesson, "b", "owl"))
    assert (store.history(path), documents_of(lesson, path), index_of(path)) == before


@pytest.mark.lessons(10)
def test_where_nothing_changed_there_is_no_entry_and_the_same_version(lesson):
    """The same files, the same text put again, an older revision of it: nothing."""
    path, store = new_file(lesson), lesson.load("store")
    facts = (("channel", "overseas"), ("year", "7"))
    a, b = make(lesson, "a", revision=3, applies=facts), make(lesson, "b", "owl")
    version = store.publish(path, [a, b])
    told, index = store.history(path), index_of(path)
    older = dataclasses.replace(a, revision=1, applies=facts[::-1])
    for again in (
        lambda: store.publish(path, [b, a]),
        lambda: store.publish(path, [b, a], rebuild=True),
        lambda: store.put(path, a),
        lambda: store.put(path, older),
    ):
        assert again() == version
        assert store.history(path) == told and index_of(path) == index
    version = store.withdraw(path, "a")
    assert store.withdraw(path, "a") == version == store.publish(path, [a, b])
    assert len(store.history(path)) == len(told) + 1


@pytest.mark.lessons(10)
def test_what_never_was_cannot_be_taken_away(lesson):
    """Withdraw, delete and purge name the id that they do not know; no entry."""
    path, store = new_file(lesson), lesson.load("store")
    store.put(path, make(lesson, "a"))
    told = store.history(path)
    for take in (store.withdraw, store.delete, store.purge):
        with pytest.raises(ValueError, match="tea-cup"):
            take(path, "tea-cup")
    assert store.history(path) == told
    store.delete(path, "a")
    assert refused(lesson, store.delete, path, "a") == "unknown_document"
    assert refused(lesson, store.withdraw, path, "a") == "unknown_document"


# ---- revisions


@pytest.mark.lessons(10)
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_change_gets_the_declared_revision_or_the_next_one(lesson, by_hand):
    """Whichever is higher; a number that has been used never names another text."""
    path, store = new_file(lesson), lesson.load("store")
    given = [(1, 1), (1, 2), (2, 3), (7, 7), (3, 8), (8, 9), (10, 10)]
    for number, (declared, expected) in enumerate(given):
        document = make(lesson, "a", f"text {number}", revision=declared)
        store.put(path, document) if by_hand else store.publish(path, [document])
        assert documents_of(lesson, path)["a"].revision == expected
    same = dataclasses.replace(document, revision=12)  # a new number alone counts, too
    store.put(path, same) if by_hand else store.publish(path, [same])
    assert entries_of(lesson, path)[-1] == ("put", "a", 10, 12)


@pytest.mark.lessons(10)
def test_a_change_of_rights_alone_counts(lesson):
    """Role, status, facts, title or address: a new revision, effective at once."""
    path, store = new_file(lesson), lesson.load("store")
    document, versions = make(lesson, "a"), set()
    for revision, change in enumerate(
        (
            {},
            {"role": "editor"},
            {"role": ""},
            {"role": "reader", "status": "draft"},
            {"status": "published", "applies": (("channel", "overseas"),)},
            {"applies": ()},
            {"title": "Other"},
            {"url": "https://e.example/other"},
        ),
        start=1,
    ):
        document = dataclasses.replace(document, **change)
        versions.add(store.publish(path, [document]))
        assert documents_of(lesson, path)["a"].revision == revision
        seen = {role: bool(bodies(lesson, path, "fox", role)) for role in ROLES}
        assert seen == {
            "reader": document.role == "reader" and document.status == "published",
            "editor": document.role != "",
        }
    assert len(versions) == 8


@pytest.mark.lessons(10)
def test_a_deleted_id_returns_by_hand_only_with_a_higher_revision(lesson):
    """Higher than it ever had; else an error that says which, and no change."""
    path, store = new_file(lesson), lesson.load("store")
    store.put(path, make(lesson, "a", "one", revision=5))
    store.delete(path, "a")
    told = store.history(path)
    for revision in (0, 1, 4, 5):
        again = make(lesson, "a", "two", revision=revision)
        assert refused(lesson, store.put, path, again) == "old_revision"
        with pytest.raises(ValueError, match="a was deleted.* above 5"):
            store.put(path, again)
    assert store.history(path) == told and documents_of(lesson, path) == {}
    store.put(path, make(lesson, "a", "two", revision=6))
    assert entries_of(lesson, path)[-1] == ("put", "a", None, 6)
    store.purge(path, "a")
    again = make(lesson, "a", "three", revision=6)
    assert refused(lesson, store.put, path, again) == "old_revision"


@pytest.mark.lessons(10)
def test_a_file_that_vanished_is_a_delete_and_its_return_a_new_revision(lesson):
    """The folder took it away, so the folder may bring it back, under a new number."""
    path, store = new_file(lesson), lesson.load("store")
    a, b = make(lesson, "a", "fox", revision=3), make(lesson, "b", "owl")
    store.publish(path, [a, b])
    store.publish(path, [b])
    assert bodies(lesson, path, "fox") == []
    store.publish(path, [])
    assert documents_of(lesson, path) == {}
    store.publish(path, [a])
    assert entries_of(lesson, path, "a") == [
        ("put", "a", None, 3),
        ("delete", "a", 3, None),
        ("put", "a", None, 4),
    ]
    assert entries_of(lesson, path, "b")[1:] == [("delete", "b", 1, None)]


@pytest.mark.lessons(10)
@pytest.mark.parametrize("vanished", [False, True])
@pytest.mark.parametrize("verb", ["withdraw", "delete", "purge"])
def test_the_folder_does_not_undo_what_was_taken_away_by_hand(
    lesson, capsys, verb, vanished
):
    """Not the same file, an edited one or one that was gone; a higher revision does."""
    path, store = new_file(lesson), lesson.load("store")
    file, other = make(lesson, "a", revision=2), make(lesson, "b", "owl")
    store.publish(path, [file, other])
    getattr(store, verb)(path, "a")
    if vanished:
        store.publish(path, [other])
    edited = dataclasses.replace(file, body="The fox woke up.")
    for again in (file, edited, file):
        store.publish(path, [again, other])
        store.publish(path, [again, other], rebuild=True)
        assert bodies(lesson, path, "fox") == []
    assert "a until it declares a revision above 2" in capsys.readouterr().err
    returned = dataclasses.replace(edited, revision=3)
    store.publish(path, [returned, other])
    assert documents_of(lesson, path)["a"] == returned
    assert bodies(lesson, path, "fox", "reader") == ["The fox woke up."]
    store.publish(path, [file, other])  # from now on the folder decides again
    assert bodies(lesson, path, "fox") == ["The fox sleeps."]


@pytest.mark.lessons(10)
def test_what_the_file_had_withdrawn_can_be_withdrawn_by_hand(lesson):
    """Then the folder alone cannot publish it any more, and that is in the journal."""
    path, store = new_file(lesson), lesson.load("store")
    file = make(lesson, "a", status="withdrawn")
    version = store.publish(path, [file])
    assert store.withdraw(path, "a") == version
    assert store.withdraw(path, "a") == version
    assert entries_of(lesson, path)[1:] == [("withdraw", "a", 1, 1)]
    published = dataclasses.replace(file, status="published")
    store.publish(path, [published])
    assert bodies(lesson, path, "fox") == []
    assert store.replay(path, 1, new_file(lesson)) == version
    store.publish(path, [dataclasses.replace(published, revision=2)])
    assert bodies(lesson, path, "fox") == ["The fox sleeps."]


@pytest.mark.lessons(10)
def test_what_was_put_by_hand_stays_until_its_file_says_otherwise(lesson):
    """A folder without such a file, or with one that did not change, takes nothing."""
    path, store = new_file(lesson), lesson.load("store")
    file = make(lesson, "a", "one")
    store.publish(path, [file])
    store.put(path, make(lesson, "a", "by hand"))
    store.put(path, make(lesson, "only-by-hand", "by hand"))
    version = version_of(lesson, path)
    assert store.publish(path, [file]) == version
    assert store.publish(path, [file], rebuild=True) == version
    store.publish(path, [make(lesson, "a", "two")])
    assert documents_of(lesson, path)["a"].revision == 3
    store.publish(path, [])
    assert set(documents_of(lesson, path)) == {"only-by-hand"}
    store.withdraw(path, "only-by-hand")
    store.put(path, make(lesson, "only-by-hand", "by hand"))  # a hand undoes a hand
    assert bodies(lesson, path, "hand", "reader") == ["by hand"]


# ---- the index


def index_of(path: Path) -> dict:
    """All that is counted, without the inner numbers of parts, which differ."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        parts = {
            number: tuple(part)
            for number, *part in db.execute(
                "SELECT number, doc_id, part, heading, start, stop, text_hash"
                " FROM parts"
            )
        }
        postings = {}
        query = "SELECT audience, term, entries FROM postings"
        for audience, term, packed in db.execute(query):
            entries = list(iter_unpack("=IQ", packed))
            ordered = [number for number, _ in entries]
            assert ordered == sorted(set(ordered)), "numbers of postings have to rise"
            held = sorted((parts[number][:2], code) for number, code in entries)
            postings[audience, term] = held
        return {
            "views": db.execute("SELECT * FROM views ORDER BY role").fetchall(),
            "library": db.execute("SELECT * FROM library").fetchall(),
            "documents": sorted(db.execute("SELECT * FROM documents").fetchall()),
            "parts": sorted(parts.values()),
            "postings": postings,
            "vectors": sorted(db.execute("SELECT * FROM embeddings").fetchall()),
        }


def check_index(lesson, path: Path, queries=()) -> None:
    """The index is that of the same documents published anew, and ranks like 04."""
    documents = list(documents_of(lesson, path).values())
    anew = new_file(lesson)
    lesson.load("store").publish(anew, documents)
    found, expected = index_of(path), index_of(anew)
    for name, value in expected.items():
        assert found[name] == value, f"the {name} differ from those made anew"
    split, search = lesson.load("library").split, lesson.load("search").search
    with lesson.load("store").open_snapshot(path) as snapshot:
        for role in ROLES:
            visible = lesson.load("access").visible(documents, role)
            parts = [part for document in visible for part in split(document)]
            for query in queries:
                assert snapshot.search(query, role, 5) == search(query, parts, 5), (
                    "ids, order and scores have to be those of search.search"
                )
    for name in files_of(anew):
        (anew.parent / name).unlink()


@pytest.mark.lessons(10)
def test_a_shorter_text_leaves_no_old_part_findable(lesson):
    """Three parts become one: the others are in no row, posting or vector."""
    path, store = new_file(lesson), lesson.load("store")
    long = "# One\n\nfox\n\n# Two\n\nowl\n\n# Three\n\nelk\n"
    store.publish(path, [make(lesson, "a", long), make(lesson, "b", "yak")])
    assert bodies(lesson, path, "owl elk") == ["elk", "owl"][::-1]
    store.publish(path, [make(lesson, "a", "# One\n\nfox\n"), make(lesson, "b", "yak")])
    assert bodies(lesson, path, "owl elk two three") == []
    with store.open_snapshot(path) as snapshot:
        assert snapshot.part("a#part-02", "editor") is None
        (vector,) = store.get_embedder().embed(["Two\nowl"])
        near = [row["id"] for row in snapshot.nearest(vector, "editor", 50)]
        assert "a#part-02" not in near and len(near) <= 2
    check_index(lesson, path, ["fox owl elk yak"])


@pytest.mark.lessons(10)
def test_terms_become_common_and_rare_again_as_documents_change(lesson, monkeypatch):
    """The levels of common terms follow every change, and the ranking stays right."""
    path, store = new_file(lesson), lesson.load("store")
    monkeypatch.setattr(lesson.load("postings"), "MANY", 4)
    rng, bodies_now = random.Random(10), {}
    for step in range(40):
        name = f"d{rng.randint(0, 12)}"
        words = rng.choices(["fox", "owl", "elk", f"w{step}"], [9, 3, 1, 1], k=9)
        if rng.random() < 0.4 and name in bodies_now:
            store.delete(path, name)
            del bodies_now[name]
        else:
            bodies_now[name] = " ".join(words)
            role = rng.choice(("reader", "editor"))
            document = make(lesson, name, bodies_now[name], role=role)
            store.put(path, dataclasses.replace(document, revision=step + 1))
        if step % 4 == 3:
            check_index(lesson, path, ["fox elk", "owl fox w3", "elk owl"])
            with contextlib.closing(sqlite3.connect(path)) as db:
                query = "SELECT first, tops, levels, entries FROM postings"
                for *found, entries in db.execute(query):
                    first, tops, levels = lesson.load("postings").levels(entries)
                    assert found == [first, tops and bytes(tops), levels]


@pytest.mark.lessons(10)
def test_a_document_moves_between_audiences_with_all_that_is_counted(lesson):
    """From readers to editors, to nobody and back: no posting stays behind."""
    path, store = new_file(lesson), lesson.load("store")
    others = [make(lesson, f"b{n}", f"fox owl {n}") for n in range(4)]
    for role, status in [*RIGHTS, ("editor", "draft"), ("reader", "published")]:
        document = make(lesson, "a", "fox fox elk", role=role, status=status)
        store.publish(path, [document, *others])
        check_index(lesson, path, ["fox", "elk owl"])


@pytest.mark.lessons(10)
def test_unchanged_parts_are_not_embedded_again(lesson, monkeypatch):
    """Only new texts are handed to the embedder, whichever document they are in."""
    path, store = new_file(lesson), lesson.load("store")
    embedder, asked = store.get_embedder(), []

    def watched(texts, question=False):
        asked.extend(texts)
        return embedder.embed(texts, question)

    monkeypatch.setattr(store, "get_embedder", lambda: embedder._replace(embed=watched))

    def embedded(call, *args, **options):
        asked.clear()
        call(*args, **options)
        return sorted(asked)

    body = "# One\n\nfox\n\n# Two\n\nowl\n"
    a, b = make(lesson, "a", body), make(lesson, "b", "yak")
    assert len(embedded(store.publish, path, [a, b])) == 3
    assert embedded(store.publish, path, [a, b]) == []
    longer = dataclasses.replace(a, body=f"# New\n\nelk\n\n{body}")
    assert embedded(store.publish, path, [longer, b]) == ["New\nelk"]
    right = dataclasses.replace(longer, role="editor", applies=(("year", "7"),))
    assert embedded(store.put, path, right) == []
    assert embedded(store.put, path, make(lesson, "c", "# Two\n\nowl\n")) == []
    assert embedded(store.delete, path, "a") == []  # and c still has its vector:
    assert embedded(store.put, path, make(lesson, "d", "# Two\n\nowl\n")) == []
    assert len(embedded(store.publish, path, [b], rebuild=True)) >= 2
    check_index(lesson, path, ["owl"])


@pytest.mark.lessons(10)
def test_another_space_is_refused_and_a_rebuild_keeps_the_journal(lesson, monkeypatch):
    """Vectors of two spaces are never mixed; the message names the way out."""
    path, store = new_file(lesson), lesson.load("store")
    a, b = make(lesson, "a"), make(lesson, "b", "owl")
    store.publish(path, [a, b])
    store.put(path, make(lesson, "a", "The fox wakes."))
    store.delete(path, "b")
    version, told, index = version_of(lesson, path), store.history(path), index_of(path)
    embedder = store.get_embedder()._replace(space="another:space")
    monkeypatch.setattr(store, "get_embedder", lambda: embedder)
    for change in (
        lambda: store.put(path, make(lesson, "c", "elk")),
        lambda: store.put(path, make(lesson, "a", "The fox runs.")),
        lambda: store.publish(path, [a, b, make(lesson, "c", "elk")]),
    ):
        assert refused(lesson, change) == "other_space"
        with pytest.raises(ValueError, match="--rebuild"):
            change()
        assert store.history(path) == told and index_of(path) == index
    assert store.publish(path, [a, b], rebuild=True) == version
    assert store.history(path) == told
    with store.open_snapshot(path) as snapshot:
        assert snapshot.space == "another:space"
        (vector,) = embedder.embed(["The fox wakes."])
        assert [row["doc_id"] for row in snapshot.nearest(vector)] == ["a"]
    check_index(lesson, path, ["fox wakes owl"])
    first = store.publish(new_file(lesson), [a, b])
    assert store.replay(path, 2, new_file(lesson)) == first


@pytest.mark.lessons(10)
@pytest.mark.parametrize("what", ["withdraw", "delete", "purge", "put", "publish"])
def test_taking_away_needs_no_embedder(lesson, monkeypatch, what):
    """Where its server does not run, a document is taken away all the same.

    Only a text that has no vector yet asks for it; one that is too long has none, and
    is no reason to ask when another document goes.
    """
    path, store = new_file(lesson), lesson.load("store")
    embedder = store.get_embedder()

    def short(texts, question=False):
        vectors = embedder.embed(texts, question)
        pairs = zip(texts, vectors, strict=True)
        return [None if "long" in text else vector for text, vector in pairs]

    def unreachable():
        raise lesson.load("database").StoreError("unreachable", "no server")

    monkeypatch.setattr(store, "get_embedder", lambda: embedder._replace(embed=short))
    a, b = make(lesson, "a"), make(lesson, "b", "A long owl.")
    store.publish(path, [a, b])
    monkeypatch.setattr(store, "get_embedder", unreachable)
    hidden = dataclasses.replace(a, role="editor")
    if what == "put":
        store.put(path, hidden)
    elif what == "publish":
        store.publish(path, [hidden, b])
    else:
        getattr(store, what)(path, "a")
    assert bodies(lesson, path, "fox", "reader") == []
    done = "put" if what == "publish" else what
    assert entries_of(lesson, path)[-1][0] == done
    before = index_of(path)
    assert len(before["vectors"]) == (1 if what in ("put", "publish") else 0)
    for change in (
        lambda: store.put(path, make(lesson, "c", "An elk.")),
        lambda: store.publish(path, [b, make(lesson, "d", "A yak.")]),
        lambda: store.publish(path, [b], rebuild=True),
    ):
        assert refused(lesson, change) == "unreachable" and index_of(path) == before


OLDER = """
import sys
sys.path.insert(0, sys.argv[1])
import library, store
store.publish(sys.argv[2], [library.Document("old", "T", "u", "ancient", "en")])
"""


def python(lesson, code: str, *args: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        cwd=lesson.home,
        env=lesson.environment(),
        timeout=120,
    )


@pytest.mark.lessons(10, 16)
@pytest.mark.parametrize("older", ["lesson-06", "lesson-09"])
def test_a_file_of_an_earlier_lesson_is_published_again(lesson, library, older):
    """Its tables hold nothing that must be kept; the journal begins with it."""
    path, store = lesson.home / "library.db", lesson.load("store")
    done = python(lesson, OLDER, COURSE / older, path)
    assert done.returncode == 0, done.stderr.decode()
    assert refused(lesson, store.history, path) == "not_published"
    library.write("a.md", "The fox sleeps.\n")
    assert app(lesson, "--json", "fox", LIBRARY=library).json["sources"]
    assert bodies(lesson, path, "ancient") == []
    assert entries_of(lesson, path) == [("put", "a", None, 1)]
    check_index(lesson, path, ["fox ancient"])


# ---- replay


@pytest.mark.lessons(10)
def test_each_version_can_be_written_again(lesson):
    """The documents of that day, their rights and revisions, under that version."""
    path, store = new_file(lesson), lesson.load("store")
    first = [
        make(lesson, "a", "one", applies=(("year", "7"), ("channel", "far"))),
        make(lesson, "b", "two\x00\u202e退款", role="editor", title="«Ж»"),
        make(lesson, "c", "three", status="withdrawn"),
    ]
    store.publish(path, first)
    states = {3: documents_of(lesson, path)}
    for change in (
        lambda: store.put(path, make(lesson, "a", "four", revision=8)),
        lambda: store.withdraw(path, "b"),
        lambda: store.delete(path, "a"),
        lambda: store.put(path, make(lesson, "a", "five", revision=9)),
        lambda: store.publish(path, []),
    ):
        change()
        states[len(store.history(path))] = documents_of(lesson, path)
    before = index_of(path)
    versions = {entry["entry"]: entry["version"] for entry in store.history(path)}
    for upto, documents in states.items():
        target = new_file(lesson)
        assert store.replay(path, upto, target) == versions[upto]
        assert version_of(lesson, target) == versions[upto]
        assert documents_of(lesson, target) == documents
        check_index(lesson, target, ["one two three four five"])
    assert index_of(path) == before and len(store.history(path)) == max(states)


@pytest.mark.lessons(10)
def test_what_cannot_be_replayed_is_refused_and_makes_no_file(lesson, monkeypatch):
    """No such entry, inside a transaction, before a purge, onto a file, or a fault."""
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a", "one"), make(lesson, "b", "two")])
    store.put(path, make(lesson, "c", "three"))
    target = new_file(lesson)
    for upto in (0, -1, 4, 99):
        assert refused(lesson, store.replay, path, upto, target) == "no_entry"
    assert refused(lesson, store.replay, path, 1, target) == "no_entry"
    with pytest.raises(ValueError, match="end of its transaction"):
        store.replay(path, 1, target)
    target.write_bytes(b"mine")
    assert refused(lesson, store.replay, path, 2, target) == "target_exists"
    assert target.read_bytes() == b"mine"
    before = files_of(path)
    assert refused(lesson, store.replay, path, 2, path) == "target_exists"
    assert files_of(path) == before

    target = new_file(lesson)
    with monkeypatch.context() as patch:
        embedder = store.get_embedder()._replace(embed=None)  # it cannot be called
        patch.setattr(store, "get_embedder", lambda: embedder)
        with pytest.raises(TypeError):
            store.replay(path, 2, target)
    assert files_of(target) == {}, "a replay that failed left a file"

    store.purge(path, "a")
    last = len(store.history(path))
    for upto in (1, 2, 3):  # whatever else is wrong with it
        assert refused(lesson, store.replay, path, upto, target) == "purged"
    assert files_of(target) == {}
    assert store.replay(path, last, target) == version_of(lesson, path)
    missing = lesson.home / "missing.db"
    assert refused(lesson, store.replay, missing, 1, new_file(lesson))
    assert refused(lesson, store.history, missing) == "not_published"
    assert not missing.exists()


# ---- purge


@pytest.fixture
def plain_sqlite(monkeypatch):
    """SQLite as it is built on most systems: it does not wipe what it frees.

    It does not wait for the disk either: what a killed process leaves is the same.
    """
    connect = sqlite3.connect

    def plain(*args, **kwargs):
        db = connect(*args, **kwargs)
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("PRAGMA synchronous = OFF")
        return db

    monkeypatch.setattr(sqlite3, "connect", plain)


def traces(path: Path, text: str) -> list[str]:
    """Names of the files of a database in which a text stands, however written."""
    forms = {text, text.casefold(), json.dumps(text)[1:-1]}
    wanted = {form.encode(code) for form in forms for code in ("utf-8", "utf-16-le")}
    return [
        name
        for name, content in files_of(path).items()
        if any(form in content for form in wanted)
    ]


@pytest.mark.lessons(10)
@pytest.mark.usefixtures("plain_sqlite")
@pytest.mark.parametrize("taken", ["there", "withdrawn", "deleted", "vanished"])
def test_a_purged_text_is_nowhere_in_the_file(lesson, taken):
    """Neither text nor title nor address of any revision; the id is left."""
    path, store = new_file(lesson), lesson.load("store")
    others = [make(lesson, f"b{n}", f"fox {n} " * 90) for n in range(30)]
    secrets = ["xq7zword", "Кумквата", "砗磲贝", "xq8title", "xq9page", "xq6fact"]
    old = make(lesson, "a", f"# Им\n\n{secrets[0]} {secrets[1]}\n\n" * 40)
    new = make(
        lesson,
        "a",
        f"# {secrets[2]}\n\nfox\n",
        title=secrets[3],
        url=f"https://e.example/{secrets[4]}",
        applies=((secrets[5], "1"),),
    )
    store.publish(path, [old, *others])
    store.publish(path, [new, *others])
    if taken == "vanished":
        store.publish(path, others)
    elif taken != "there":
        {"withdrawn": store.withdraw, "deleted": store.delete}[taken](path, "a")
    assert all(traces(path, secret) for secret in secrets), "the journal keeps it"
    version = store.purge(path, "a")
    assert version_of(lesson, path) == version
    for secret in secrets:
        assert traces(path, secret) == [], f"{secret} is still in the file"
    assert [what for what, *_ in entries_of(lesson, path, "a")][-1] == "purge"
    assert store.purge(path, "a") == version  # once more does no harm
    check_index(lesson, path, ["fox", *secrets])


@pytest.mark.lessons(10)
@pytest.mark.usefixtures("plain_sqlite")
def test_a_purge_beside_a_reader_says_that_it_is_not_done(lesson, monkeypatch):
    """Who still reads keeps old pages alive; when they have gone, purge again."""
    monkeypatch.setattr(lesson.load("database"), "BUSY_SECONDS", 0.01)
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a", "xq7zword"), make(lesson, "b")])
    with store.open_snapshot(path) as snapshot:
        assert snapshot.search("xq7zword")
        assert refused(lesson, store.purge, path, "a") == "locked"
        assert snapshot.search("xq7zword"), "the reader keeps its version"
    assert bodies(lesson, path, "xq7zword") == []
    store.purge(path, "a")
    assert traces(path, "xq7zword") == []


# ---- two hundred histories


@dataclasses.dataclass
class Model:
    """What a library should hold, by the rules of the lesson in plain words."""

    documents: dict = dataclasses.field(default_factory=dict)
    highest: dict = dataclasses.field(default_factory=dict)
    by_hand: set = dataclasses.field(default_factory=set)  # taken away by a hand
    seen: dict = dataclasses.field(default_factory=dict)  # files of the last publish
    journal: list = dataclasses.field(default_factory=list)
    states: dict = dataclasses.field(default_factory=dict)  # documents after an entry

    def copy(self) -> Model:
        return Model(*(field.copy() for field in vars(self).values()))

    def note(self, what, doc_id, after, by_hand) -> None:
        before = self.documents.pop(doc_id, None)
        if after:
            self.documents[doc_id] = after
            self.highest[doc_id] = max(self.highest.get(doc_id, 0), after.revision)
        if by_hand and what != "put":
            self.by_hand.add(doc_id)
        elif what == "put":
            self.by_hand.discard(doc_id)
        old, new = (each.revision if each else None for each in (before, after))
        self.journal.append((what, doc_id, old, new, by_hand))

    def put(self, document, by_hand=True) -> None:
        before, highest = self.documents.get(document.id), self.highest.get(document.id)
        if not highest:
            self.note("put", document.id, document, by_hand)
            return
        if by_hand and not before and document.revision <= highest:
            raise ValueError("a deleted id returns only with a higher revision")
        same = before and dataclasses.replace(before, revision=1) == (
            dataclasses.replace(document, revision=1)
        )
        if not same or document.revision > before.revision:
            revision = max(document.revision, highest + 1)
            after = dataclasses.replace(document, revision=revision)
            self.note("put", document.id, after, by_hand)

    def withdraw(self, doc_id) -> None:
        document = self.documents[doc_id]
        if document.status != "withdrawn" or doc_id not in self.by_hand:
            after = dataclasses.replace(document, status="withdrawn")
            self.note("withdraw", doc_id, after, True)

    def delete(self, doc_id) -> None:
        if doc_id not in self.documents:
            raise KeyError(doc_id)
        self.note("delete", doc_id, None, True)

    def purge(self, doc_id) -> None:
        if doc_id not in self.highest:
            raise KeyError(doc_id)
        self.note("purge", doc_id, None, True)
        self.states.clear()  # no library of before can be written again

    def publish(self, files) -> None:
        for doc_id, document in sorted(files.items()):
            higher = document.revision > self.highest.get(doc_id, 0)
            if self.seen.get(doc_id) != document and (
                higher or doc_id not in self.by_hand
            ):
                self.put(document, by_hand=False)
        for doc_id in sorted(self.seen.keys() - files.keys()):
            if doc_id in self.documents:
                self.note("delete", doc_id, None, False)
        self.seen = dict(files)


class History:
    """One random history of a library, and of the model beside it."""

    def __init__(self, lesson, seed: int) -> None:
        self.lesson, self.rng = lesson, random.Random(seed)
        self.store, self.path = lesson.load("store"), new_file(lesson)
        self.model, self.files, self.purged = Model(), {}, set()
        self.words: dict[str, set[str]] = {}  # of each id, one for each text it had
        self.versions: dict[int, str] = {}
        self.receipts: list[tuple[dict, str]] = []
        self.store.publish(self.path, [])

    def document(self):
        """A document with a word that no other text has."""
        rng, doc_id = self.rng, self.rng.choice("abcde")
        word = f"x{rng.randrange(10**8, 10**9)}q"
        self.words.setdefault(doc_id, set()).add(word)
        sections = [
            f"# {rng.choice(WORDS)}\n\n{' '.join(rng.choices(WORDS, k=3))}\n\n"
            for _ in range(rng.randint(0, 2))
        ]
        role, status = rng.choice(RIGHTS)
        revision = rng.randint(1, self.model.highest.get(doc_id, 0) + 2)
        sections.insert(rng.randint(0, len(sections)), f"# h\n\n{word} fox\n\n")
        return make(
            self.lesson,
            doc_id,
            "".join(sections),
            role=role,
            status=status,
            revision=revision,
            title=word,
        )

    def operation(self) -> tuple:
        """A random operation, as its name and its argument."""
        rng = self.rng
        what = rng.choice(
            ["put", "publish"] * 4 + ["withdraw", "delete"] * 2 + ["purge"]
        )
        if what == "put":
            return what, self.document()
        if what != "publish":
            known = self.model.highest if what == "purge" else self.model.documents
            return what, rng.choice([*"abcde", *sorted(known) * 3])
        for _ in range(rng.randint(0, 3)):
            if self.files and rng.random() < 0.4:  # a file vanishes
                del self.files[rng.choice(sorted(self.files))]
            else:
                document = self.document()
                self.files[document.id] = document
        if self.model.seen and rng.random() < 0.2:  # or comes back as it was
            doc_id = rng.choice(sorted(self.model.seen))
            self.files[doc_id] = self.model.seen[doc_id]
        return what, dict(self.files)

    def carry_out(self, what, argument) -> None:
        call = getattr(self.store, what)
        call(self.path, argument.values() if what == "publish" else argument)

    def step(self) -> None:
        """Change library and model alike; now and then the process dies."""
        what, argument = self.operation()
        before, after = self.model, self.model.copy()
        try:
            getattr(after, what)(argument)
        except (KeyError, ValueError):
            after = None
        if self.rng.random() < 0.2:
            self.crash(what, argument)
        elif after is None:
            refused(self.lesson, self.carry_out, what, argument)
        else:
            self.carry_out(what, argument)
            self.model = after
        told, seen, version = self.told()
        if after and told == after.journal and seen == set(after.seen):
            self.model = after
        assert told == self.model.journal, f"after {what} the journal is another one"
        if what == "purge" and self.model is not before:
            if self.traces(argument):  # killed before the old pages were gone
                self.store.purge(self.path, argument)
                self.model.purge(argument)
            assert not self.traces(argument), "a purged text is still in the file"
            self.purged |= self.words.pop(argument, set())
        last = len(self.model.journal)
        self.model.states[last] = dict(self.model.documents)
        self.versions[last] = version

    def crash(self, what, argument) -> None:
        """Leave the files as they are when a process is killed at a statement."""
        last, calls, left = self.rng.randint(1, 45), itertools.count(1), {}
        connect = sqlite3.connect

        def copy(_):
            if next(calls) == last:
                left.update(files_of(self.path))

        def watched(*args, **kwargs):
            db = connect(*args, **kwargs)
            db.execute("PRAGMA cache_size = 4")  # so that much is written early
            db.set_trace_callback(copy)
            return db

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", watched)
            with contextlib.suppress(ValueError):
                self.carry_out(what, argument)
        if left:
            left.pop(f"{self.path.name}-shm", None)  # it dies with its process
            put_back(self.path, left)

    def told(self) -> tuple[list[tuple], set[str], str]:
        """The journal, the files that were seen last, and the version."""
        with self.store.open_snapshot(self.path) as snapshot:
            entries = snapshot.db.execute("SELECT * FROM journal").fetchall()
            seen = snapshot.db.execute("SELECT doc_id FROM sources").fetchall()
        numbers = [entry["entry"] for entry in entries]
        assert numbers == list(range(1, len(entries) + 1)), "there are gaps"
        keys = ("what", "doc_id", "from_revision", "to_revision", "by_hand")
        told = [tuple(entry[key] for key in keys) for entry in entries]
        return told, {doc_id for (doc_id,) in seen}, snapshot.version

    def traces(self, doc_id) -> list[str]:
        content = b"".join(files_of(self.path).values())
        return [word for word in self.words.get(doc_id, ()) if word.encode() in content]

    def keep_receipt(self) -> None:
        """Answer with some part of the library, and keep a receipt of that."""
        role = self.rng.choice(ROLES)
        with self.store.open_snapshot(self.path) as snapshot:
            rows = snapshot.search("fox", role, 2)
            version = snapshot.view_version(role)
        answer = self.lesson.load("answer")
        rows = [dict(row, space="", lexical_rank=1, vector_rank=None) for row in rows]
        as_chosen = getattr(answer, "with_ids", None) or answer.build_context
        sources = answer.as_sources(as_chosen(rows))
        result = {"status": "sources_only", "answer": None, "sources": sources}
        result["view_version"] = version
        make_receipt = self.lesson.load("receipts").make_receipt
        self.receipts.append((make_receipt(result, role, {}, self.path), role))

    def check(self) -> None:
        """All that the lesson promises about where the library has come to."""
        assert documents_of(self.lesson, self.path) == self.model.documents
        queries = [" ".join(self.rng.choices(WORDS, k=k)) for k in (1, 3)]
        check_index(self.lesson, self.path, queries)
        self.check_words()
        self.check_replay()
        self.check_receipts()

    def check_words(self) -> None:
        """Old texts are in the journal only, purged ones nowhere at all."""
        content = b"".join(files_of(self.path).values())
        assert not [word for word in self.purged if word.encode() in content]
        current = {document.title for document in self.model.documents.values()}
        old = {word for words in self.words.values() for word in words} - current
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                if table != "journal":
                    text = str(db.execute(f"SELECT * FROM {table}").fetchall())
                    assert not [word for word in old if word in text], table
        for word in self.rng.sample(sorted(old), min(2, len(old))):
            assert bodies(self.lesson, self.path, word) == []

    def check_replay(self) -> None:
        """Two versions since the last purge are written again, one before is not."""
        states = self.model.states
        for upto in self.rng.sample(sorted(states), min(2, len(states))):
            if upto:
                target = new_file(self.lesson)
                assert self.store.replay(self.path, upto, target) == self.versions[upto]
                assert documents_of(self.lesson, target) == states[upto]
        purges = [n for n, e in enumerate(self.model.journal, 1) if e[0] == "purge"]
        if purges and purges[-1] > 1:
            upto, target = self.rng.randint(1, purges[-1] - 1), new_file(self.lesson)
            reason = refused(self.lesson, self.store.replay, self.path, upto, target)
            assert reason == "purged"

    def check_receipts(self) -> None:
        """Each receipt, seen by each role, tells what the model knows."""
        may_read = self.lesson.load("access").may_read
        for (receipt, owner), role in itertools.product(self.receipts, ROLES):
            file = self.lesson.home / "receipt.json"
            file.write_text(json.dumps(receipt), encoding="utf-8")
            told = self.lesson.load("receipts").recheck(file, role, self.path)
            for source, state in zip(
                receipt["answer"]["sources"], told["sources"], strict=True
            ):
                document = self.model.documents.get(source["doc_id"])
                keys = ("id", "doc_id", "revision", "part")
                expected = {key: source[key] for key in keys}
                if document is None or not may_read(role, document):
                    expected["state"] = "gone"
                    if role == "editor":
                        expected["why"] = (
                            "deleted"
                            if document is None
                            else "withdrawn"
                            if document.status == "withdrawn"
                            else "not permitted"
                        )
                elif document.revision == source["revision"]:
                    expected["state"] = "valid"
                else:
                    expected["state"] = "revised"
                    expected["revision_now"] = document.revision
                    expected["quote_stands"] = source["quote"] in document.body
                assert state == expected
            with self.store.open_snapshot(self.path) as snapshot:
                same = snapshot.view_version(owner) == receipt["view_version"]
            assert told["same_version"] == (same if role in (owner, "editor") else None)


@pytest.mark.lessons(10)
@pytest.mark.parametrize("block", range(8))
@pytest.mark.usefixtures("plain_sqlite")
def test_random_histories_leave_what_they_should(lesson, capsys, block):
    """Put, withdraw, delete, return, purge and crash, 25 histories in each block."""
    for seed in range(block * 25, block * 25 + (25 if lesson.is_end(10) else 3)):
        history = History(lesson, seed)
        try:
            for number in range(9):
                history.step()
                if number in (2, 5):
                    history.keep_receipt()
            history.check()
        except BaseException as error:
            error.add_note(f"in the history with seed {seed}")
            raise
        for file in lesson.home.glob("*.db*"):
            file.unlink()


# Ends its process at the n-th statement of an operation.
DYING = """
import os, sqlite3, sys
sys.path.insert(0, sys.argv[1])
import library, store

path, what, last = sys.argv[2], sys.argv[3], int(sys.argv[4])
calls, connect = 0, sqlite3.connect

def count(_):
    global calls
    calls += 1
    if calls == last:
        os._exit(9)

def watched(*args, **kwargs):
    db = connect(*args, **kwargs)
    db.execute("PRAGMA cache_size = 4")
    db.execute("PRAGMA secure_delete = OFF")
    db.set_trace_callback(count)
    return db

def document(name, body, revision=1):
    return library.Document(name, "T", "u", body, "en", revision)

sqlite3.connect = watched
if what == "put":
    store.put(path, document("a", "xq8zword " * 40))
elif what == "publish":
    names = [f"b{n}" for n in range(1, 9)]
    store.publish(path, [document(name, "xq8zword owl", 2) for name in names])
else:
    getattr(store, what)(path, "a")
"""


@pytest.mark.lessons(10)
@pytest.mark.usefixtures("plain_sqlite")
@pytest.mark.parametrize("what", ["put", "publish", "withdraw", "delete", "purge"])
def test_a_process_that_is_killed_leaves_all_or_nothing(lesson, what):
    """Documents, index and journal agree, and the next operation works."""
    path, store, calls = new_file(lesson), lesson.load("store"), []
    documents = [make(lesson, f"b{n}", "fox owl " * 20) for n in range(8)]
    store.publish(path, documents)
    store.put(path, make(lesson, "a", "xq7zword " * 400))
    files, told = files_of(path), store.history(path)
    connect = sqlite3.connect

    def watched(*args, **kwargs):
        db = connect(*args, **kwargs)
        db.set_trace_callback(calls.append)
        return db

    with pytest.MonkeyPatch.context() as patch:  # how many statements are there?
        patch.setattr(sqlite3, "connect", watched)
        if what == "put":
            store.put(path, make(lesson, "a", "xq8zword " * 40))
        elif what == "publish":
            store.publish(
                path, [make(lesson, f"b{n}", "xq8zword") for n in range(1, 9)]
            )
        else:
            getattr(store, what)(path, "a")
    rng = random.Random(what)
    for last in (rng.randint(2, len(calls) // 2), rng.randint(2, len(calls) - 2)):
        put_back(path, files)
        killed = python(lesson, DYING, lesson.folder, path, what, last)
        assert killed.returncode == 9, killed.stderr.decode()
        done = len(store.history(path)) > len(told)
        assert done or store.history(path) == told
        check_index(lesson, path, ["fox owl", "xq7zword", "xq8zword"])
        assert bool(bodies(lesson, path, "xq8zword")) == (
            done and what in ("put", "publish")
        )
        store.purge(path, "a")
        assert traces(path, "xq7zword") == []
        assert what == "publish" or traces(path, "xq8zword") == []


# ---- receipts


def answered(lesson, path: Path, query: str, role: str = "reader") -> dict:
    """An answer with quotes from the library at `path`."""
    return lesson.load("answer").answer(query, role, backend="quotes", path=path)


def receipt_for(lesson, path: Path, query="fox sleeps", role="reader") -> Path:
    """A receipt, saved to a file of its own."""
    receipts, file = lesson.load("receipts"), lesson.home / f"{next(NUMBERS)}.json"
    result = answered(lesson, path, query, role)
    assert result["sources"], "the test needs an answer with sources"
    receipts.save_receipt(receipts.make_receipt(result, role, {}, path), file)
    return file


def rechecked(lesson, file: Path, path: Path, role: str = "reader") -> dict:
    """What a receipt of one source tells."""
    (source,) = lesson.load("receipts").recheck(file, role, path)["sources"]
    return source


@pytest.mark.lessons(10)
def test_a_receipt_holds_what_the_answer_rests_on(lesson, library):
    """Role, version of its view, backend, model, options, space, and each source."""
    library.write("a.md", "---\nrevision: 4\n---\n# Night\n\nThe fox sleeps well.\n")
    library.write("b.md", "---\nrole: editor\n---\nThe owl is awake.\n")
    file = lesson.home / "receipt.json"
    words = ("--receipt", file, "--where", "channel=far", "--backend", "quotes")
    result = app(
        *(lesson, "--json", *words, "the fox sleeps"),
        LIBRARY=library,
        ANSWER_MODEL="some:model",
        ANSWER_DIGEST="0" * 64,
    )
    assert result.status == 0, result.stderr
    text = file.read_bytes().decode("utf-8")
    receipt = json.loads(text)
    path = lesson.home / "library.db"
    with lesson.load("store").open_snapshot(path) as snapshot:
        assert receipt["view_version"] == snapshot.view_version("reader")
        assert receipt["view_version"] != snapshot.version
        assert receipt["space"] == snapshot.space
    assert receipt["role"] == "reader"
    (source,) = receipt["rests_on"]
    assert (source["doc_id"], source["revision"], source["part"]) == ("a", 4, 1)
    assert len(source["quote_hash"]) == 64
    for setting in ("quotes", "some:model", "0" * 64, "channel", "far"):
        assert f'"{setting}"' in text, setting
    assert result.json["sources"] == receipt["answer"]["sources"]
    assert text.endswith("\n") and "\r" not in text
    assert os.listdir(file.parent).count("receipt.json") == 1


@pytest.mark.lessons(10)
def test_a_receipt_of_a_refusal_rests_on_nothing(lesson):
    """It can be saved and looked at again like any other."""
    path, receipts = new_file(lesson), lesson.load("receipts")
    lesson.load("store").publish(path, [make(lesson, "a")])
    result = answered(lesson, path, "zanzibar")
    receipts.save_receipt(receipts.make_receipt(result, "reader", {}, path), "r.json")
    told = receipts.recheck("r.json", "reader", path)
    assert told == {"status": "rechecked", "same_version": True, "sources": []}
    lesson.load("store").put(path, make(lesson, "b", "zanzibar"))
    assert receipts.recheck("r.json", "reader", path)["same_version"] is False


@pytest.fixture(autouse=True)
def in_a_scratch_folder(tmp_path, monkeypatch):
    """Files with a bare name go to the folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.lessons(10)
def test_valid_revised_and_gone(lesson):
    """Whether the quote still stands word for word is told of a revised source."""
    path, store = new_file(lesson), lesson.load("store")
    body = "# Night\n\nThe fox sleeps.\n\n# Day\n\nThe owl does.\n"
    document = make(lesson, "a", body)
    store.publish(path, [document])
    file = receipt_for(lesson, path)
    place = {"id": "S1", "doc_id": "a", "revision": 1, "part": 1}
    assert rechecked(lesson, file, path) == {**place, "state": "valid"}
    store.put(path, make(lesson, "b", "The elk."))  # another document: no matter
    assert rechecked(lesson, file, path) == {**place, "state": "valid"}
    revised = {**place, "state": "revised"}
    for number, (new, stands) in enumerate(
        (
            (body.replace("owl", "bat"), True),
            (f"# New\n\nThe yak.\n\n{body}", True),  # it is part 2 now
            (body.replace("sleeps", "slept"), False),
            ("# Night\n\nThe fox  sleeps.\n", False),
            (body, True),
        ),
        start=2,
    ):
        store.publish(path, [dataclasses.replace(document, body=new)])
        told = {**revised, "revision_now": number, "quote_stands": stands}
        for role in ROLES:
            assert rechecked(lesson, file, path, role) == told
    store.publish(path, [dataclasses.replace(document, title="Other")])
    assert rechecked(lesson, file, path)["quote_stands"] is True
    store.publish(path, [])
    assert rechecked(lesson, file, path) == {**place, "state": "gone"}


@pytest.mark.lessons(10)
def test_a_quote_that_is_cut_in_two_parts_now_still_stands(lesson):
    """Paragraphs that came after it made the section too long for one part."""
    path, store = new_file(lesson), lesson.load("store")
    paragraphs = [f"The fox sleeps {word}. " * 24 for word in ("well", "long")]
    body = "\n\n".join(text.strip() for text in paragraphs)
    store.publish(path, [make(lesson, "a", body)])
    file = receipt_for(lesson, path)
    quote = json.loads(file.read_text(encoding="utf-8"))["answer"]["sources"][0][
        "quote"
    ]
    store.publish(path, [make(lesson, "a", f"{'The owl. ' * 60}\n\n{body}")])
    with store.open_snapshot(path) as snapshot:
        (now,) = snapshot.documents("reader")
    parts = lesson.load("library").split(now)
    assert not any(quote in part.body for part in parts), "the test needs a cut quote"
    assert rechecked(lesson, file, path)["quote_stands"] is True


@pytest.mark.lessons(10)
def test_a_library_that_was_made_anew_proves_nothing_by_its_numbers(lesson):
    """Revisions begin at 1 again: the same number with another text is not valid."""
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a")])
    file = receipt_for(lesson, path)
    other = new_file(lesson)
    store.publish(other, [make(lesson, "a", "The fox is awake.")])
    told = rechecked(lesson, file, other)
    assert (told["state"], told["quote_stands"]) == ("revised", False)


AWAY = {
    "withdrawn": lambda store, path, document: store.withdraw(path, "a"),
    "deleted": lambda store, path, document: store.delete(path, "a"),
    "not permitted": lambda store, path, document: store.put(
        path, dataclasses.replace(document, role="")
    ),
}


@pytest.mark.lessons(10)
def test_a_reader_cannot_tell_why_a_source_is_gone_and_an_editor_can(lesson, library):
    """To a reader the whole output is the same, whatever has happened."""
    seen = {role: set() for role in ROLES}
    reasons = []
    ways = {**AWAY, "for editors": None, "draft": None, "vanished": None}
    for why, take in ways.items():
        path, store = new_file(lesson), lesson.load("store")
        document = make(lesson, "a")
        store.publish(path, [document, make(lesson, "b", "The owl.")])
        file = lesson.home / "receipt.json"
        file.unlink(missing_ok=True)
        receipt_for(lesson, path).rename(file)
        change = {"for editors": {"role": "editor"}, "draft": {"status": "draft"}}
        if take:
            take(store, path, document)
        elif why == "vanished":
            store.publish(path, [make(lesson, "b", "The owl.")])
        else:
            store.put(path, dataclasses.replace(document, **change[why]))
        version_now = version_of(lesson, path)
        for role in ROLES:
            words = ("--db", path, "--role", role, "--recheck", file)
            for json_or_not in ([], ["--json"]):
                result = app(lesson, *json_or_not, *words, operations_only=True)
                assert result.status == 0
                assert version_now not in result.stdout
                seen[role].add(result)
        reasons.append(rechecked(lesson, file, path, "editor").get("why"))
        assert rechecked(lesson, file, path)["state"] == "gone"
    assert len(seen["reader"]) == 2, "a reader can tell what has happened"
    assert reasons == ["withdrawn", "deleted", "not permitted", None, None, "deleted"]
    assert len(seen["editor"]) == 8


@pytest.mark.lessons(10)
@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["answer"]["sources"][0].update(quote="The fox flies."),
        lambda r: r["answer"]["sources"][0].update(revision=2),
        lambda r: r["answer"]["sources"][0].update(doc_id="b"),
        lambda r: r["rests_on"][0].update(quote_hash="0" * 64),
        lambda r: r["rests_on"][0].update(part=2),
        lambda r: r["rests_on"][0].update(doc_id="b"),
        lambda r: r["rests_on"].clear(),
        lambda r: r["answer"]["sources"].clear(),
        lambda r: r["rests_on"].append(r["rests_on"][0]),
    ],
)
def test_a_changed_receipt_is_refused(lesson, change):
    """What the answer rests on has to fit the quotes that it shows."""
    path = new_file(lesson)
    lesson.load("store").publish(path, [make(lesson, "a"), make(lesson, "b")])
    file = receipt_for(lesson, path)
    receipt = json.loads(file.read_text(encoding="utf-8"))
    change(receipt)
    file.write_text(json.dumps(receipt), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file.name} was changed"):
        lesson.load("receipts").recheck(file, "reader", path)


SOURCE = {"id": "S1", "doc_id": "a", "revision": 1, "part": 1, "quote": "x"}
NO_RECEIPTS = {
    "empty": b"",
    "text": b"Dear diary,",
    "bytes": b"\xff\xfe\x00",
    "number": b"7",
    "digits": b"7" * 5000,
    "null": b"null",
    "list": b"[]",
    "object": b"{}",
    "deep": b"[" * 100_000,
    "half": b'{"role": "reader", "answer": {"sources": [',
    "no sources": b'{"role": "r", "view_version": "v", "rests_on": [], "answer": {}}',
    **{
        f"source {value!r:.12}": json.dumps(
            {
                "role": "reader",
                "view_version": "v",
                "rests_on": [],
                "answer": {"sources": value},
            }
        ).encode()
        for value in (
            *(None, 7, "text", [7], ["text"], [None], [[]], [{}]),
            *(
                [{**SOURCE, key: value}]
                for key in SOURCE
                for value in (None, [], 9**99)
            ),
        )
    },
}


@pytest.mark.lessons(10)
def test_what_is_no_receipt_is_an_error_and_no_traceback(lesson, library):
    """Whatever is in the file, its name and the reason are told; exit status 1."""
    library.write("a.md", "The fox sleeps.\n")
    env = {"LIBRARY": library}
    app(lesson, "--rebuild", **env)
    file = lesson.home / "no-receipt.json"
    for name, content in NO_RECEIPTS.items():
        file.write_bytes(content)
        result = app(lesson, "--json", "--recheck", file, **env)
        assert (result.status, result.json["status"]) == (1, "error"), name
        assert "no-receipt.json" in result.json["message"], name
        assert "\n" not in result.stderr.strip("\n"), name
    for missing in (lesson.home / "missing.json", lesson.home):
        result = app(lesson, "--json", "--recheck", missing, **env)
        assert result.status == 1 and missing.name in result.json["message"]


@pytest.mark.lessons(10)
@pytest.mark.parametrize("doc_id", [None, [], 7, 9**99])
def test_an_id_that_is_no_text_is_no_id(lesson, doc_id):
    """A receipt that fits together, but names a document as nothing is named."""
    path, receipts = new_file(lesson), lesson.load("receipts")
    lesson.load("store").publish(path, [make(lesson, "a")])
    file = receipt_for(lesson, path)
    receipt = json.loads(file.read_text(encoding="utf-8"))
    receipt["answer"]["sources"][0]["doc_id"] = doc_id
    receipt["rests_on"][0]["doc_id"] = doc_id
    file.write_text(json.dumps(receipt), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file.name} is no receipt"):
        receipts.recheck(file, "reader", path)


@pytest.mark.lessons(10)
@pytest.mark.parametrize("asked_by", ROLES)
@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(role=["reader"]),
        lambda r: r.update(role={}),
        lambda r: r.update(role=None),
        lambda r: r.update(role=7),
        lambda r: r.update(role="nobody"),
        lambda r: r["answer"].update(quotes=[{"source_id": "S1", "quote": 7}]),
        lambda r: r["answer"].update(quotes=[{"source_id": "S1", "quote": None}]),
        lambda r: r["answer"].update(quotes=[{"source_id": "S1", "quote": ["fox"]}]),
        lambda r: r["answer"].update(quotes=[{"source_id": "S1"}]),
        lambda r: r["answer"].update(quotes=[None]),
        lambda r: r["answer"].update(quotes=7),
        lambda r: r["answer"]["sources"][0].update(quote=["fox"]),
    ],
)
def test_a_role_or_a_quote_of_another_kind_is_no_receipt(lesson, change, asked_by):
    """Also where somebody computed the hash of the answer again."""
    path, receipts = new_file(lesson), lesson.load("receipts")
    lesson.load("store").publish(path, [make(lesson, "a")])
    file = receipt_for(lesson, path)
    receipt = json.loads(file.read_text(encoding="utf-8"))
    change(receipt)
    text = json.dumps(receipt["answer"], sort_keys=True)
    receipt["answer_hash"] = receipts.hash_of(text)
    file.write_text(json.dumps(receipt), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file.name} is no receipt"):
        receipts.recheck(file, asked_by, path)


@pytest.mark.lessons(10)
def test_a_receipt_overwrites_no_file_and_is_never_half_there(lesson, monkeypatch):
    """An existing file stays, and a disk that is full leaves no half receipt."""
    path, receipts = new_file(lesson), lesson.load("receipts")
    lesson.load("store").publish(path, [make(lesson, "a")])
    file = receipt_for(lesson, path)
    before, folder = file.read_bytes(), sorted(os.listdir(file.parent))
    receipt = json.loads(before)
    with pytest.raises(ValueError, match=file.name):
        receipts.save_receipt(receipt, file)
    assert file.read_bytes() == before

    def full(self, text, *args, **kwargs):
        self.write_bytes(text.encode()[:100])
        raise OSError(28, "No space left on device", str(self))

    new = lesson.home / "new.json"
    with monkeypatch.context() as patch:
        patch.setattr(type(new), "write_text", full)
        with pytest.raises(OSError, match="No space"):
            receipts.save_receipt(receipt, new)
    with pytest.raises(TypeError):
        receipts.save_receipt({**receipt, "role": object()}, new)
    assert sorted(os.listdir(file.parent)) == folder
    receipts.save_receipt(receipt, new)
    assert new.read_bytes() == before, "a receipt that was read is the same again"


@pytest.mark.lessons(10)
def test_no_receipt_for_what_has_changed_meanwhile(lesson):
    """While the answer was made its source was revised or taken away: ask again."""
    path, store = new_file(lesson), lesson.load("store")
    for change in (
        lambda: store.put(path, make(lesson, "a", "The fox sleeps. Really.")),
        lambda: store.withdraw(path, "a"),
        lambda: store.delete(path, "a"),
    ):
        result = None
        with contextlib.suppress(lesson.load("database").StoreError):
            store.put(path, make(lesson, "a", "The fox sleeps. Now."))
        result = answered(lesson, path, "fox sleeps")
        change()
        with pytest.raises(ValueError, match="changed"):
            lesson.load("receipts").make_receipt(result, "reader", {}, path)


@pytest.mark.lessons(10)
@pytest.mark.parametrize("query", ["fox sleeps", "zanzibar"])
def test_a_receipt_has_the_version_that_the_answer_was_chosen_from(lesson, query):
    """Not the one of the moment when it is written: a model takes its time."""
    path, store, receipts = (
        new_file(lesson),
        lesson.load("store"),
        lesson.load("receipts"),
    )
    store.publish(path, [make(lesson, "a")])
    with store.open_snapshot(path) as snapshot:
        version = snapshot.view_version("reader")
    result = answered(lesson, path, query)
    store.put(path, make(lesson, "b", "The fox sleeps in zanzibar."))
    receipt = receipts.make_receipt(result, "reader", {}, path)
    assert receipt["view_version"] == version
    file = lesson.home / "receipt.json"
    receipts.save_receipt(receipt, file)
    assert receipts.recheck(file, "reader", path)["same_version"] is False


SHELF = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        st.sampled_from(RIGHTS),
        st.sampled_from(RIGHTS),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.lessons(10)
@settings(max_examples=20)
@given(shelf=SHELF, query=st.sampled_from(WORDS))
def test_receipts_tell_a_reader_nothing_of_hidden_documents(lesson, shelf, query):
    """A receipt, and what becomes of it, are the same with and without them.

    Where a document is hidden from readers later, the other library deletes it.
    """
    receipts, store = lesson.load("receipts"), lesson.load("store")
    open_to = ("reader", "published")
    told = []
    for hidden_exist in (True, False):
        path = new_file(lesson)
        for moment in (1, 2):
            documents = [
                make(lesson, f"d{n}", f"{text} {moment}", role=role, status=status)
                for n, (text, *rights) in enumerate(shelf)
                for role, status in [rights[moment - 1]]
                if hidden_exist or (role, status) == open_to
            ]
            # A document that readers come to see has the same number in both.
            documents = [dataclasses.replace(d, revision=moment) for d in documents]
            store.publish(path, documents)
            if moment == 1:
                result = answered(lesson, path, query)
                receipt = receipts.make_receipt(result, "reader", {}, path)
                told.append(receipt)
        file = lesson.home / "receipt.json"
        file.write_text(json.dumps(receipt), encoding="utf-8")
        told.append(receipts.recheck(file, "reader", path))
    assert told[:2] == told[2:]


# ---- the app


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run left; like that of `lesson.run`."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


def app(lesson, *words, operations_only=False, **env) -> Result:
    """Run `main` of the app in this process: quick, for all but the console itself.

    With `operations_only` no folder is published first.
    """
    output, messages = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["app.py", *map(str, words)])
        for name, value in env.items():
            patch.setenv(name, str(value))
        if operations_only:
            patch.setattr(lesson.load("app"), "refresh", lambda *_: None)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
            try:
                status = lesson.load("app").main()
            except SystemExit as ended:  # argparse ends the program by itself
                status = ended.code
    return Result(status, output.getvalue(), messages.getvalue())


@pytest.mark.lessons(10)
def test_the_app_puts_withdraws_deletes_purges_and_tells(lesson, library):
    """Each verb prints one JSON object and has the exit status 0."""
    library.write("a.md", "The fox sleeps.\n")
    other = lesson.home / "elsewhere" / "b.md"
    other.parent.mkdir()
    other.write_text("---\nid: b\n---\nxq7zword owl.\n", encoding="utf-8")
    path, env = lesson.home / "library.db", {"LIBRARY": library}
    app(lesson, "--rebuild", **env)
    for words in (
        ("--put", other),
        ("--withdraw", "b"),
        ("--put", other),
        ("--delete", "b"),
        ("--purge", "b"),
        ("--withdraw", "a"),
    ):
        result = app(lesson, "--json", *words, **env)
        assert result.status == 0, result.stderr
        told = result.json
        assert told["status"] == words[0].strip("-")
        assert told["version"] == version_of(lesson, path)
    assert traces(path, "xq7zword") == []
    told = app(lesson, "--json", "--history", **env).json
    assert told["entries"] == lesson.load("store").history(path)
    assert [entry["what"] for entry in told["entries"]] == [
        *("put", "put", "withdraw", "put", "delete", "purge", "withdraw")
    ]
    question = app(lesson, "--json", "fox", **env)  # its file is still there
    assert question.json["reason"] == "nothing_found" and question.stderr == ""


@pytest.mark.lessons(10)
def test_the_app_counts_what_this_run_published(lesson, library):
    """A version is a hash of the content, so it returns; what led to it then stays."""
    env = {"LIBRARY": library}

    def told(*words) -> str:
        lines = app(lesson, "--json", *words, **env).stderr.splitlines()
        summaries = [line for line in lines if line.startswith("published version")]
        return summaries[0].partition(": ")[2] if summaries else "nothing"

    for name in "abc":
        library.write(f"{name}.md", f"The fox {name} sleeps.\n")
    assert told("fox") == "3 put"
    extra = library.write("x.md", "The owl hunts.\n")
    assert told("fox") == "1 put"
    extra.unlink()
    assert told("fox") == "1 delete", "the version is the first one again"
    assert told("fox") == "nothing"
    assert told("--rebuild") == "no change"
    assert told("--purge", "b") == "nothing"
    assert told("fox") == "no change", "that b was purged was told before"


@pytest.mark.lessons(10)
def test_the_app_counts_a_journal_of_another_form_of_the_tables(lesson, library):
    """A journal that is gone on with is not told again; another begins at 1."""
    library.write("a.md", "The fox sleeps.\n")
    env, path = {"LIBRARY": library}, lesson.home / "library.db"
    app(lesson, "--json", "fox", **env)
    for older in (10, 310):
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {older}")
            db.commit()
        assert ": 1 put" in app(lesson, "--json", "fox", **env).stderr
    if lesson.load("database").FORMAT == 410:
        return
    app(lesson, "--withdraw", "a", **env)
    with contextlib.closing(sqlite3.connect(path)) as db:  # as lesson 10 leaves it
        db.execute("ALTER TABLE parts DROP COLUMN tokenizer")
        db.execute("ALTER TABLE parts DROP COLUMN tokens")
        db.execute("PRAGMA user_version = 410")
        db.commit()
    assert "put" not in app(lesson, "--json", "fox", **env).stderr
    history = lesson.load("store").history(path)
    assert [entry["what"] for entry in history] == ["put", "withdraw"]


@pytest.mark.lessons(10)
def test_the_app_shows_operations_to_a_person(lesson, library):
    """One line for each entry and each source, within 80 columns, in a process."""
    library.write("tea.md", "# Tea\n\nGreen tea is drawn for two minutes.\n")
    env = {"LIBRARY": library}
    question = "How long is green tea drawn?"
    words = ("--receipt", lesson.home / "tea.json", question)
    assert "two minutes" in lesson.run(*words, **env).stdout
    valid = lesson.run("--recheck", lesson.home / "tea.json", **env)
    assert (valid.status, valid.stderr) == (0, "") and "valid" in valid.stdout
    library.write("tea.md", "# Tea\n\nGreen tea is drawn for three minutes.\n")
    revised = lesson.run("--recheck", lesson.home / "tea.json", **env)
    assert "revised, the quote is gone" in revised.stdout
    withdrawn = lesson.run("--withdraw", "tea", **env)
    path = lesson.home / "library.db"
    assert version_of(lesson, path) in withdrawn.stdout and withdrawn.status == 0
    told = lesson.run("--history", **env).stdout.splitlines()
    assert [line.split()[0] for line in told] == ["1", "2", "3"]
    assert "withdraw" in told[2] and "tea" in told[2]
    assert all(len(line) <= 80 for line in told)


@pytest.mark.lessons(10)
def test_faults_of_an_operation_end_with_1_and_wrong_usage_with_2(lesson, library):
    """One JSON object that says what was wrong; never a traceback."""
    library.write("a.md", "The fox sleeps.\n")
    env = {"LIBRARY": library}
    app(lesson, "--json", "--delete", "a", **env)
    text = library.write("sub/text.txt", "The owl.\n")
    bad = lesson.home / "bad.md"
    bad.write_text("---\nid: a\nThe owl.\n", encoding="utf-8")
    folder = lesson.home / "folder.md"
    folder.mkdir()
    for words, word in (
        (("--delete", "a"), "a"),
        (("--withdraw", "nothing"), "nothing"),
        (("--purge", "nothing"), "nothing"),
        (("--put", library.folder / "a.md"), "above 1"),
        (("--put", library.folder / "missing.md"), "missing.md"),
        (("--put", text), "text.txt"),
        (("--put", bad), "bad.md"),
        (("--put", folder), "folder.md"),
    ):
        result = app(lesson, "--json", *words, **env)
        assert (result.status, result.json["status"]) == (1, "error"), words
        assert word in result.json["message"] and word in result.stderr, words
        assert result.json["reason"], words
    for words in (
        ("--delete", "a", "--withdraw", "a"),
        ("--history", "fox"),
        ("--put",),
        (),
    ):
        assert app(lesson, *words, **env).status == 2, words
    assert len(lesson.load("store").history(lesson.home / "library.db")) == 2


@pytest.mark.lessons(10)
def test_a_file_of_the_library_is_put_under_the_id_it_is_published_under(
    lesson, library
):
    """The folder is part of the id; in any other place the name alone is."""
    inside = library.write("sub/Чай.md", "The fox sleeps.\n")
    path, env = lesson.home / "library.db", {"LIBRARY": library}
    app(lesson, "--rebuild", **env)
    app(lesson, "--withdraw", "sub/Чай", **env)
    result = app(lesson, "--json", "--put", inside, **env)
    assert result.status == 0, result.stderr
    assert list(documents_of(lesson, path)) == ["sub/Чай"]
    outside = lesson.home / "owl.md"
    outside.write_text("The owl.\n", encoding="utf-8")
    app(lesson, "--put", outside, **env)
    assert set(documents_of(lesson, path)) == {"owl", "sub/Чай"}
    assert documents_of(lesson, path)["owl"].body == "The owl.\n"


@pytest.mark.lessons(10)
@pytest.mark.parametrize("from_folder", [False, True])
@pytest.mark.parametrize("by_link", [False, True])
def test_put_takes_a_path_as_it_is_typed(
    lesson, library, monkeypatch, from_folder, by_link
):
    """Relative to where one stands, which may be inside the library, or by a link."""
    library.write("sub/tea.md", "Green tea.\n")
    outside, way = lesson.home / "owl.md", library.folder
    outside.write_text("The owl.\n", encoding="utf-8")
    if by_link:
        way = lesson.home / "linked"
        try:
            way.symlink_to(library.folder, target_is_directory=True)
        except OSError:
            pytest.skip("no links can be made here")
    monkeypatch.chdir(library.folder if from_folder else lesson.home)
    env = {"LIBRARY": os.path.relpath(way)}
    for file, doc_id in ((way / "sub" / "tea.md", "sub/tea"), (outside, "owl")):
        result = app(lesson, "--json", "--put", os.path.relpath(file), **env)
        assert result.status == 0, result.stderr
        assert doc_id in documents_of(lesson, lesson.home / "library.db")


ODD = "od\x1b[31md\u202e\x9b\nS2"


@pytest.mark.lessons(10)
def test_no_control_character_of_an_id_reaches_the_terminal(lesson, library):
    """In history, recheck and errors it is shown as an escape, a line end too."""
    path, env = lesson.home / "library.db", {"LIBRARY": library}
    store = lesson.load("store")
    store.put(path, make(lesson, ODD))
    file = receipt_for(lesson, path)
    store.withdraw(path, ODD)
    for words in (
        ("--history",),
        ("--recheck", file),
        ("--put", lesson.home / f"{ODD}.md"),
        ("--delete", f"{ODD}?"),
        ("--delete", ODD),
    ):
        for more in ([], ["--json"]):
            result = app(lesson, *more, *words, **env)
            shown = result.stdout + result.stderr
            assert not set("\x1b\x9b\u202e") & set(shown), words
            if words[0] in ("--history", "--recheck"):
                assert "\\u001b[31md" in shown and "\nS2" not in shown, words
            if more:
                assert isinstance(result.json, dict)


@pytest.mark.lessons(10)
def test_a_locked_file_is_an_error_of_its_own(lesson, monkeypatch):
    """No operation takes a file that another process writes to for an empty one."""
    monkeypatch.setattr(lesson.load("database"), "BUSY_SECONDS", 0.01)
    path, store = new_file(lesson), lesson.load("store")
    store.publish(path, [make(lesson, "a")])
    file, told = receipt_for(lesson, path), store.history(path)
    put_me = lesson.home / "b.md"
    put_me.write_text("The owl.\n", encoding="utf-8")
    writing = [("--put", put_me), ("--withdraw", "a"), ("--delete", "a")]
    writing.append(("--purge", "a"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for words in writing:
            env = {"LIBRARY_DB": path, "LIBRARY": lesson.home}
            result = app(lesson, "--json", *words, operations_only=True, **env)
            assert (result.status, result.json["reason"]) == (1, "locked"), words
            assert path.name in result.json["message"]
        assert store.history(path) == told  # readers do not wait
        assert rechecked(lesson, file, path)["state"] == "valid"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE unfinished (x)")
        for reading in (
            lambda: store.history(path),
            lambda: store.replay(path, 1, new_file(lesson)),
            lambda: rechecked(lesson, file, path),
        ):
            assert refused(lesson, reading) == "locked"
    store.delete(path, "a")


@pytest.mark.lessons(10)
def test_a_receipt_is_not_overwritten_by_the_app(lesson, library):
    """The file that is there stays as it is; exit status 1 and its name."""
    library.write("a.md", "The fox sleeps.\n")
    file = lesson.home / "mine.json"
    file.write_bytes(b"mine")
    result = app(lesson, "--json", "--receipt", file, "fox", LIBRARY=library)
    assert (result.status, result.json["status"]) == (1, "error")
    assert "mine.json" in result.json["message"] and file.read_bytes() == b"mine"


@pytest.mark.lessons(10)
def test_a_receipt_that_cannot_be_written_is_told_before_anything_is_asked(
    lesson, library, monkeypatch
):
    """An answer takes time, and is worth more than the look at a folder."""
    library.write("a.md", "The fox sleeps.\n")
    asked = lambda *_, **__: pytest.fail("it was asked")  # noqa: E731
    monkeypatch.setattr(lesson.load("app"), "answer", asked)
    file = lesson.home / "missing" / "r.json"
    result = app(lesson, "--json", "--receipt", file, "fox", LIBRARY=library)
    assert (result.status, result.json["status"]) == (1, "error")
    assert "r.json" in result.json["message"]


@pytest.mark.lessons(10)
@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("fox sleeps", "quoted", "no_receipt"),
        ("zanzibar", "no_sources", "nothing_found"),
    ],
)
def test_a_receipt_that_is_not_saved_does_not_cost_the_answer(
    lesson, library, monkeypatch, query, status, reason
):
    """The answer is shown, the failure told, and the exit status is 1."""

    def full(receipt, file):
        raise OSError(28, "No space left on device", str(file))

    library.write("a.md", "The fox sleeps.\n")
    monkeypatch.setattr(lesson.load("app"), "save_receipt", full)
    words = ("--backend", "quotes", "--receipt", lesson.home / "r.json", query)
    result = app(lesson, "--json", *words, LIBRARY=library)
    assert result.status == 1 and "No space" in result.stderr
    assert (result.json["status"], result.json["reason"]) == (status, reason)
    assert "No space" in result.json["message"]
    assert len(result.json["sources"]) == (status == "quoted")
    text = app(lesson, *words, LIBRARY=library)
    assert text.status == 1 and ("The fox sleeps." in text.stdout) == (
        status == "quoted"
    )


@pytest.mark.lessons(10)
def test_a_source_that_changes_meanwhile_does_not_cost_the_answer(
    lesson, library, monkeypatch
):
    """There is no receipt for it; the answer is shown and the reason told."""
    library.write("a.md", "The fox sleeps.\n")
    module = lesson.load("app")

    def answer(*words, **options):
        result = asked(*words, **options)
        library.write("a.md", "---\nrevision: 2\n---\nThe fox wakes.\n")
        lesson.load("store").refresh(options["path"], library.folder)
        return result

    asked = module.answer
    monkeypatch.setattr(module, "answer", answer)
    file = lesson.home / "r.json"
    result = app(lesson, "--json", "--receipt", file, "fox sleeps", LIBRARY=library)
    assert result.status == 1 and result.json["reason"] == "no_receipt"
    assert result.json["sources"][0]["quote"].strip() == "The fox sleeps."
    assert "changed while" in result.json["message"] and not file.exists()


@pytest.mark.lessons(10)
def test_a_receipt_names_the_backend_and_limits_that_were_used(lesson, library):
    """Also where nobody named a backend: the usual one was it."""
    library.write("a.md", "The fox sleeps.\n")
    for number, env in enumerate([{}, {"ANSWER_BACKEND": "quotes"}]):
        file = lesson.home / f"{number}.json"
        result = app(
            *(lesson, "--json", "--receipt", file, "fox"),
            **{"LIBRARY": library, "ANSWER_WINDOW": "5000", **env},
        )
        assert result.status == 0, result.stderr
        kept = json.loads(file.read_bytes())["settings"]
        assert kept["backend"] == ("quotes" if env else "sources")
        assert kept["ANSWER_WINDOW"] == "5000" and kept["limit"] == 6


@pytest.mark.lessons(10)
def test_a_purged_file_that_still_lies_there_stays_out(lesson, library):
    """The next run says so once; then questions are quiet again."""
    library.write("a.md", "The fox sleeps.\n")
    env = {"LIBRARY": library}
    app(lesson, "--purge", "a", **env)
    first = app(lesson, "--json", "fox", **env)
    again = app(lesson, "--json", "fox", **env)
    assert "kept out: a" in first.stderr and again.stderr == ""
    assert first.json == again.json and again.json["reason"] == "nothing_found"
    library.write("a.md", "---\nrevision: 2\n---\nThe fox sleeps.\n")
    assert app(lesson, "--json", "fox", **env).json["sources"]
