"""Lesson 11, one function at a time: a status, a place, true quotes and the others.

What finds the words of a quote for `check_evidence` is written here once more, so that
each task is judged by itself.
"""

from __future__ import annotations

import random

import pytest


def plain_position(wanted, words):
    """Where the wanted words begin, looked for at one place after another."""
    for start in range(len(words) - len(wanted) + 1):
        if wanted and list(words[start : start + len(wanted)]) == list(wanted):
            return start
    return None


# ---- verdict

TRUE = {"source_id": "S1", "quote": "A refund takes five days.", "kind": "exact"}
FALSE = {"source_id": "S1", "quote": "It is instant.", "reason": "quote_not_in_source"}


@pytest.mark.lessons(11)
@pytest.mark.task("verdict")
@pytest.mark.parametrize(
    ("verified", "rejected", "expected", "why"),
    [
        (1, 0, "generated_quoted", "all quotes stand in the sources"),
        (3, 0, "generated_quoted", "all quotes stand in the sources"),
        (1, 1, "generated_unverified", "one of two quotes is wrong: that must be told"),
        (1, 4, "generated_unverified", "one true quote is left, and it can be shown"),
        (0, 1, "insufficient", "no quote stands in a source: nothing supports it"),
        (0, 0, "insufficient", "no quotes at all are no evidence"),
    ],
)
def test_the_quotes_and_nothing_else_decide_the_status(
    lesson, verified, rejected, expected, why
):
    given = lesson.load("quotes").verdict([TRUE] * verified, [FALSE] * rejected)
    assert given == expected, (
        f"{verified} verified, {rejected} rejected: {why}: {expected!r}, not {given!r}"
    )


# ---- position


def place(lesson, wanted, words):
    """What `position` says of two texts whose words stand between spaces."""
    try:
        return lesson.load("quotes").position(wanted.split(), words.split())
    except (IndexError, ValueError, KeyError) as error:
        raise AssertionError(
            f"position({wanted.split()}, {words.split()}) must not raise: {error!r}"
        ) from error


@pytest.mark.lessons(11)
@pytest.mark.task("position")
@pytest.mark.parametrize(
    ("wanted", "words", "expected", "why"),
    [
        ("keep old", "we keep old addresses", 1, "places are counted in words, from 0"),
        ("we keep", "we keep old addresses", 0, "it may stand at the very beginning"),
        ("addresses", "we keep old addresses", 3, "it may stand at the very end"),
        ("a b", "a a b a b", 1, "where it stands twice, the first place counts"),
        ("a b a c", "a b a b a c", 2, "a false start must not hide the place behind"),
        ("cafe\u0301 is", "the cafe\u0301 is", 1, "an accent may follow its letter"),
        ("is \u0301", "it is \u0301 x", 1, "the first word is the one to look at"),
    ],
)
def test_the_place_of_words_that_follow_each_other(
    lesson, wanted, words, expected, why
):
    given = place(lesson, wanted, words)
    assert given == expected, f"{wanted!r} in {words!r}: {why}: {expected}, not {given}"


@pytest.mark.lessons(11)
@pytest.mark.task("position")
@pytest.mark.parametrize(
    ("wanted", "words", "why"),
    [
        ("old we", "we keep old addresses", "the words must follow each other"),
        ("we old", "we keep old addresses", "the words must follow each other"),
        ("arty was", "party was late", "a piece of a word is another word"),
        ("new house", "we keep old addresses", "nowhere is None"),
        ("old addresses now", "keep old addresses", "it is longer than what is left"),
        ("a a b", "b a a", "the words must follow each other"),
        ("", "we keep old addresses", "where no word is wanted, none is found"),
        ("\u0301 is", "the \u0301 is an", "it begins with an accent without a letter"),
        ("\u0308 is", "the \u0308 is an", "it begins with one of MARKS: two points"),
        ("\u20dd is", "the \u20dd is an", "it begins with one of MARKS: a circle"),
        ("\u0301b is", "the \u0301b is an", "its first word begins with one of MARKS"),
        ("Keep old", "we keep old addresses", "capitals are compared as they stand"),
    ],
)
def test_what_stands_nowhere_is_none(lesson, wanted, words, why):
    given = place(lesson, wanted, words)
    assert given is None, f"{wanted!r} in {words!r}: {why}: None, not {given!r}"


@pytest.mark.lessons(11)
@pytest.mark.task("position")
def test_every_place_of_short_texts_is_the_plain_one(lesson):
    choose = random.Random("position")
    for _ in range(300):
        words = " ".join(choose.choices("abc", k=choose.randrange(12)))
        wanted = " ".join(choose.choices("abc", k=choose.randrange(1, 5)))
        expected = plain_position(wanted.split(), words.split())
        given = place(lesson, wanted, words)
        assert given == expected, f"{wanted!r} in {words!r}: {expected}, not {given}"


# ---- check_evidence

SOURCES = [
    {
        "source_id": f"S{number}",
        "doc_id": "terms",
        "part": number,
        "heading": heading,
        "body": body,
        "text": f"{heading}\n{body}",
    }
    for number, (heading, body) in enumerate(
        [
            ("Refunds", "A refund takes **three**\nto five working days."),
            ("Delivery", "Delivery takes two days. Saturdays do not count."),
            ("Stamps", "Delivery takes two days. Stamps are sold here."),
        ],
        start=1,
    )
]
REFUND = ("A refund takes three to five working days.", "S1")
DELIVERY = ("Delivery takes two days.", "S2")


@pytest.fixture
def check(lesson, monkeypatch):
    """`check_evidence` for pairs of quote and source id."""
    quotes = lesson.load("quotes")
    monkeypatch.setattr(quotes, "position", plain_position)

    def divide(*pairs):
        entries = [{"quote": quote, "source_id": cited} for quote, cited in pairs]
        try:
            return quotes.check_evidence(entries, SOURCES)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise AssertionError(
                f"check_evidence({entries}, …) must not raise: {error!r}"
            ) from error

    return divide


@pytest.mark.lessons(11)
@pytest.mark.task("check_evidence")
def test_a_verified_quote_is_the_sources_own(check):
    verified, rejected = check(REFUND)
    assert [entry["quote"] for entry in verified] == [SOURCES[0]["body"]], (
        "what is shown must be the characters of the source, not the model's"
    )
    assert rejected == [], "a quote that was verified is not rejected as well"
    (entry,) = verified
    assert entry["source_id"] == "S1" and entry["kind"] == "normalised"
    verified, _ = check(("Saturdays do not count.", "S2"))
    assert (verified[0]["start"], verified[0]["end"]) == (25, 48), (
        "start and end are the place in the body, without the heading: 25 and 48"
    )
    assert set(verified[0]) == {"source_id", "quote", "start", "end", "kind"}, (
        "a verified quote has source_id, quote, start, end and kind"
    )


@pytest.mark.lessons(11)
@pytest.mark.task("check_evidence")
def test_an_id_that_was_never_sent_proves_nothing(check):
    verified, rejected = check((REFUND[0], "S7"))
    assert verified == [], "S7 was never sent, whatever the quote says"
    assert [entry["reason"] for entry in rejected] == ["unknown_source"], (
        "S7 was never sent: the reason is unknown_source, "
        f"not {rejected[0]['reason'] if rejected else 'nothing'}"
    )


@pytest.mark.lessons(11)
@pytest.mark.task("check_evidence")
@pytest.mark.parametrize(
    ("quote", "cited", "reason", "why"),
    [
        (*DELIVERY[:1], "S1", "other_source", "it must stand in the source it names"),
        ("A refund takes one day.", "S1", "quote_not_in_source", "another number"),
        ("two days.", "S2", "too_short", "it has fewer characters than least() says"),
        ("days. Delivery takes two", "S1", "across_parts", "it ends in another part"),
        (" It takes  one day.\n", "S1", "quote_not_in_source", "another number"),
    ],
)
def test_a_rejected_quote_comes_back_with_its_reason(check, quote, cited, reason, why):
    verified, rejected = check((quote, cited))
    assert verified == [], f"{quote!r} is not verified in {cited}: {why}"
    assert rejected, "a rejected quote must not vanish in silence"
    expected = {"source_id": cited, "quote": quote, "reason": reason}
    assert rejected == [expected], (
        f"a rejected quote comes back as it was, with its reason: {expected}, "
        f"not {rejected}"
    )


@pytest.mark.lessons(11)
@pytest.mark.task("check_evidence")
def test_one_false_quote_spoils_no_other(check):
    false = ("A refund takes one day.", "S1")
    verified, rejected = check(false, DELIVERY, false, REFUND)
    assert [entry["source_id"] for entry in verified] == ["S2", "S1"], (
        "the true quotes are kept, in the order in which the model gave them"
    )
    assert len(rejected) == 2, "each false quote is listed"
    assert check() == ([], []), "no evidence: two empty lists"


@pytest.mark.lessons(11)
@pytest.mark.task("check_evidence")
def test_a_place_counts_once(check):
    verified, _ = check(DELIVERY, ("Delivery  takes two days.", "S2"), DELIVERY)
    assert len(verified) == 1, "a place that was quoted several times counts once"
    verified, _ = check(DELIVERY, (DELIVERY[0], "S3"))
    assert [entry["source_id"] for entry in verified] == ["S2", "S3"], (
        "the same words in two sources are two places"
    )
    verified, _ = check(DELIVERY, ("Delivery takes two days. Saturdays", "S2"))
    assert len(verified) == 2, "where one quote is longer, they are two places"
