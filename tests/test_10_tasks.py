"""Lesson 10, one function at a time: the number of a change, the state of a source.

The documents are written without `put_change`, so that each task is judged by itself.
"""

from __future__ import annotations

import dataclasses
import re

import pytest


def make(lesson, body="The fox sleeps.", **fields):
    """A document with the id `a`; what is not given is the same for all."""
    fields = {"title": "Title", "url": "https://e.example/a", "lang": "en", **fields}
    return lesson.load("library").Document(id="a", body=body, **fields)


def library_of(lesson, *past):
    """A library in which `a` was each of these documents in turn; None deletes it."""
    path, store = lesson.home / "library.db", lesson.load("store")
    before = None
    for document in past:
        what = "put" if document else "delete"
        change = lesson.load("journal").Change(what, "a", before, document, True)
        with store.writing(path) as db:
            store.carry_out(db, [change])
        before = document
    return path


def change_for(lesson, document, *past, by_hand=True):
    """What `put_change` makes of a document, or of an error."""
    with lesson.load("store").writing(library_of(lesson, *past)) as db:
        try:
            return lesson.load("journal").put_change(db, document, by_hand)
        except lesson.load("database").StoreError as error:
            return error


def revision_for(lesson, document, *past, by_hand=True):
    """The revision that a document gets, or what came instead of a change."""
    change = change_for(lesson, document, *past, by_hand=by_hand)
    after = getattr(change, "after", None)
    return after.revision if after else change


# ---- put_change


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
def test_a_new_document_is_a_change_from_nothing(lesson):
    document = make(lesson, revision=4)
    given = change_for(lesson, document)
    wanted = lesson.load("journal").Change("put", "a", None, document, True)
    assert given == wanted, "a new document has the revision that it declares"


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
@pytest.mark.parametrize(
    ("declared", "expected", "why"),
    [
        (2, 6, "a lower number must not be taken: another text may have had it"),
        (5, 6, "two texts must never share a number"),
        (9, 9, "a declared revision that is higher is taken as it is"),
    ],
)
def test_a_changed_document_gets_a_number_that_no_text_has_had(
    lesson, declared, expected, why
):
    old, new = make(lesson, revision=5), make(lesson, "The owl.", revision=declared)
    given = revision_for(lesson, new, old)
    assert given == expected, f"{why}: {expected}, not {given!r}"
    change = change_for(lesson, new)
    assert change.before == old, "the change names the document as it was before"


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
def test_what_the_library_has_already_is_no_change(lesson):
    old = make(lesson, revision=5)
    assert change_for(lesson, old, old) is None, (
        "the library has this document already: None, and no entry in the journal"
    )
    lower = dataclasses.replace(old, revision=1)
    assert change_for(lesson, lower) is None, (
        "an old number on the same content is no change: None"
    )
    higher = dataclasses.replace(old, revision=6)
    assert revision_for(lesson, higher) == 6, (
        "a higher revision is a change by itself: somebody declared it"
    )


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
@pytest.mark.parametrize(
    "change", [{"role": "editor"}, {"status": "draft"}, {"title": "Other"}]
)
def test_a_change_of_anything_but_the_text_counts(lesson, change):
    old = make(lesson, revision=5)
    given = revision_for(lesson, dataclasses.replace(old, **change), old)
    assert given == 6, f"{change} is a change, too, without a changed word: {given!r}"


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
@pytest.mark.parametrize("declared", [1, 5])
def test_a_deleted_document_returns_by_hand_with_a_new_number_only(lesson, declared):
    past = make(lesson, revision=5), None
    error = change_for(lesson, make(lesson, "The owl.", revision=declared), *past)
    assert getattr(error, "reason", None) == "old_revision", (
        "a document that was deleted must not return by hand under an old revision: "
        f"declared {declared}, its highest was 5. It takes a StoreError, not {error!r}"
    )
    assert re.search(r"\b[56]\b", str(error).replace("old_revision", "")), (
        "the error names the number to declare (above 5, or 6 at least); it says: "
        f"{error}"
    )
    given = revision_for(lesson, make(lesson, "The owl.", revision=6))
    assert given == 6, f"with a higher revision it returns: 6, not {given!r}"


@pytest.mark.lessons(10)
@pytest.mark.task("put_change")
def test_the_folder_may_bring_back_what_it_took_away(lesson):
    past = make(lesson, revision=7), make(lesson, "The elk.", revision=8), None
    document = make(lesson, "The owl.", revision=1)
    given = revision_for(lesson, document, *past, by_hand=False)
    assert given == 9, (
        "a file that returns gets the number after the highest that the document ever "
        f"had, also before it was deleted: 9, not {given!r}"
    )
    change = change_for(lesson, make(lesson, "The bat."), document, by_hand=False)
    assert change.by_hand is False, "the change says that it was not made by hand"


# ---- look_at


SOURCE = {
    "id": "S1",
    "doc_id": "a",
    "revision": 5,
    "part": 2,
    "title": "Title",
    "quote": "The fox sleeps.",
}
PLACE = {"id": "S1", "doc_id": "a", "revision": 5, "part": 2}


def state_of(lesson, role, *past, source=SOURCE):
    """What `look_at` tells of a source in a library with this past."""
    path = library_of(lesson, *past)
    with lesson.load("store").open_snapshot(path) as snapshot:
        try:
            return lesson.load("receipts").look_at(snapshot, source, role)
        except (AttributeError, LookupError, TypeError) as error:
            return pytest.fail(f"look_at must not raise: {type(error).__name__}")


@pytest.mark.lessons(10)
@pytest.mark.task("look_at")
def test_a_source_that_is_as_it_was_is_valid(lesson):
    told = state_of(lesson, "reader", make(lesson, revision=5))
    assert told.get("state") == "valid", "the same revision with the quote: valid"
    assert told == {**PLACE, "state": "valid"}, (
        "the place (id, doc_id, revision, part) and the state are told, nothing else"
    )


@pytest.mark.lessons(10)
@pytest.mark.task("look_at")
@pytest.mark.parametrize(
    ("body", "revision", "stands", "why"),
    [
        (
            *("The fox sleeps. The owl does not.", 6, True),
            "another revision is revised, also where the quote still stands",
        ),
        (
            *("The fox sleeps.", 4, True),
            "a lower revision is another one, too: the library may be anew",
        ),
        (
            *("the fox sleeps.", 6, False),
            "quote_stands tells whether the quote is in the text word for word",
        ),
        (
            *("The fox\nsleeps.", 6, False),
            "quote_stands tells whether the quote is in the text word for word",
        ),
        (
            *("The fox is awake.", 6, False),
            "quote_stands tells whether the quote is in the text word for word",
        ),
        (
            *("The fox is awake.", 5, False),
            "the same number with other words is not valid: the library may be anew",
        ),
    ],
)
def test_a_source_that_changed_is_revised(lesson, body, revision, stands, why):
    document = make(lesson, body, title=SOURCE["quote"], revision=revision)
    told = state_of(lesson, "reader", document)
    now = {"revision_now": revision, "quote_stands": stands}
    assert told.get("state") == "revised", f"{why}; not {told}"
    assert told.get("quote_stands") is stands, f"{why}; not {told}"
    assert told == {**PLACE, "state": "revised", **now}, (
        f"revision_now is the revision of the library, {revision}; not {told}"
    )


GONE = {
    "withdrawn": {"status": "withdrawn"},
    "not permitted": {"role": ""},
    "deleted": None,
}


@pytest.mark.lessons(10)
@pytest.mark.task("look_at")
@pytest.mark.parametrize(
    ("body", "stands"),
    [
        ("The fox sleeps. The owl does not.", False),
        ("The fox sleeps. The elk is awake.", True),
    ],
)
def test_all_quotes_that_were_shown_have_to_stand(lesson, body, stands):
    shown = ["The fox sleeps.", "The elk is awake."]
    source = SOURCE | {"quote": "The fox sleeps. The bat, too.", "shown": shown}
    told = state_of(lesson, "reader", make(lesson, body, revision=6), source=source)
    assert told.get("quote_stands") is stands, (
        f"what was `shown` counts in place of `quote`, and all of it: {shown} in "
        f"{body!r} must be {stands}; told: {told}"
    )


@pytest.mark.lessons(10)
@pytest.mark.task("look_at")
@pytest.mark.parametrize("why", GONE)
def test_a_reader_learns_that_a_source_is_gone_and_an_editor_learns_why(lesson, why):
    old, change = make(lesson, revision=5), GONE[why]
    now = dataclasses.replace(old, **change) if change else None
    told = state_of(lesson, "reader", old, now)
    assert told.get("state") == "gone", (
        f"what a reader may not read any more ({why}) is gone, not {told.get('state')}"
    )
    assert told == {**PLACE, "state": "gone"}, (
        f"a reader must not learn why a source is gone; told: {told}"
    )
    library = lesson.home / "library.db"
    with lesson.load("store").open_snapshot(library) as snapshot:
        told = lesson.load("receipts").look_at(snapshot, SOURCE, "editor")
    assert told == {**PLACE, "state": "gone", "why": why}, (
        f"an editor is told why a source is gone: {why}; told: {told}"
    )


@pytest.mark.lessons(10)
@pytest.mark.task("look_at")
def test_what_is_for_editors_now_is_gone_for_readers_only(lesson):
    document = make(lesson, revision=5, role="editor")
    assert state_of(lesson, "editor", document)["state"] == "valid"
    with lesson.load("store").open_snapshot(lesson.home / "library.db") as snapshot:
        told = lesson.load("receipts").look_at(snapshot, SOURCE, "reader")
    assert told == {**PLACE, "state": "gone"}, (
        "what a reader may not read any more is gone, and nobody says why"
    )
