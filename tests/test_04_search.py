"""Ranking: the search formula, computed once more by hand, and any text as question.

The words of these libraries are short and unlike each other, so that no rule about
word forms touches them; that rule has tests of its own.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

WORDS = ("fox", "owl", "elk", "bat", "yak", "7")

# Questions that break a search which hands them on to a query language.
HOSTILE = (
    "state-of-the-art",
    "20.04",
    "user's",
    "C++",
    "path:fox",
    '"unclosed fox',
    "fox (owl",
    "fox AND",
    "NOT fox",
    "NEAR(fox owl, 5)",
    "*",
    "fox*",
    "''",
    "fox' OR '1'='1",
    "fox\x00owl",
    "%_fox",
    "\ud800 fox \udfff",
    "\ufeff fox",
    "{fox} {0} %s",
    "fox\u202eowl",
    "",
    " \n\t ",
)

texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
libraries = st.lists(st.tuples(texts, texts), max_size=10)
few = settings(max_examples=20)  # of each property, on every lesson
any_text = st.text(st.characters(), max_size=40)  # halves of characters included


def make_parts(lesson, sections) -> list:
    """Parts of (heading, body), each a document of its own: d0, d1, …"""
    library, parts = lesson.load("library"), lesson.load("parts")
    made = []
    for number, (heading, body) in enumerate(sections):
        document = library.Document(f"d{number}", "Title", "u", body, "en")
        made.append(parts.Part(document, 1, heading, body, 0, len(body)))
    return made


def bodies(lesson, *texts: str) -> list:
    """Parts without headings."""
    return make_parts(lesson, [("", text) for text in texts])


def ranking(rows) -> list[tuple[str, float]]:
    return [(row["id"], row["score"]) for row in rows]


# ---- the exercises: one mistake at a time


@pytest.mark.lessons(4)
@pytest.mark.task("idf")
def test_a_rare_term_weighs_more(lesson):
    """The weight of a term falls with the parts that hold it, and never below 0."""
    idf = lesson.load("search").idf
    weights = [idf(10, holders) for holders in range(11)]
    assert weights == sorted(weights, reverse=True) and len(set(weights)) == 11, (
        f"a rare term weighs more than a common one: 0 to 10 of 10 hold it: {weights}"
    )
    assert min(weights) > 0, (
        f"no term weighs 0 or less, not even one that all 10 parts hold: {weights[-1]}"
    )
    assert idf(1000, 3) > idf(10, 3), "3 of 1000 is rarer than 3 of 10"
    assert math.isclose(idf(3, 1), 0.9808292530117263), (
        "ln(1 + (N - n + 0.5) / (n + 0.5)) with the natural logarithm: for 1 of 3 it "
        f"is 0.98083, not {idf(3, 1):.5f}"
    )
    assert math.isclose(idf(60, 7), 2.0959708436310462)


@pytest.mark.lessons(4)
@pytest.mark.task("saturation")
def test_repeating_a_term_counts_ever_less(lesson):
    """Saturation rises with the count towards 2.2, and falls with the length."""
    saturation = lesson.load("search").saturation
    one, two, four = (saturation(count, 20, 20.0) for count in (1, 2, 4))
    assert one < two < four, "a term that stands there more often counts more"
    assert two < 2 * one and four < 2 * two, (
        "twice as often counts less than twice as much"
    )
    assert saturation(1, 40, 20.0) < one < saturation(1, 10, 20.0), (
        "the same count in a longer part counts less"
    )
    assert saturation(10**9, 20, 20.0) <= 2.2 + 1e-6, "it never rises above k1 + 1"
    assert math.isclose(one, 1.0), (
        f"once in a part of average length counts 1, not {one}: times k1 + 1"
    )
    assert math.isclose(saturation(3, 50, 20.0), 1.1891891891891893), (
        "count * (k1 + 1) / (count + k1 * (1 - b + b * length / average)): 3 times in "
        f"50 terms, average 20, is 1.18919, not {saturation(3, 50, 20.0):.5f}"
    )


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_a_part_without_a_word_of_the_question_is_not_returned(lesson):
    """Nothing in common is no candidate, not one with score 0."""
    search = lesson.load("search").search
    parts = bodies(lesson, "fox", "owl", "")
    assert [row["id"] for row in search("fox", parts)] == ["d0#part-01"], (
        "a part that shares no term with the question is no candidate"
    )
    assert search("wolverine", parts) == []
    assert search("fox", []) == []


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_the_heading_counts_like_the_body(lesson):
    """A word in the heading is found, and heading and body make one length."""
    search = lesson.load("search").search
    parts = make_parts(lesson, [("fox", "owl"), ("", "fox owl"), ("elk", "elk")])
    rows = search("fox", parts)
    assert [row["id"] for row in rows] == ["d0#part-01", "d1#part-01"], (
        "a word of the heading counts like one of the body"
    )
    assert rows[0]["score"] == rows[1]["score"]


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_a_repeated_word_of_the_question_counts_once(lesson):
    """Asking «fox fox owl» is asking «fox owl»."""
    search = lesson.load("search").search
    parts = bodies(lesson, "fox owl", "owl owl elk", "fox")
    once = search("fox owl", parts)
    assert search("fox fox owl FOX fox", parts) == once, (
        "a word that is repeated in the question must not weigh more"
    )


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_equal_scores_are_ordered_by_id(lesson):
    """Ties end on the id, whatever the order of the parts was."""
    search, rng = lesson.load("search").search, random.Random(0)
    parts = bodies(lesson, *["fox owl"] * 12)
    in_order = sorted(part.id for part in parts)
    for _ in range(5):
        rng.shuffle(parts)
        assert [row["id"] for row in search("fox", parts, limit=12)] == in_order, (
            "parts with equal scores must come in the order of their ids"
        )
    assert [row["id"] for row in search("fox", parts, limit=3)] == in_order[:3]


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_a_limit_below_zero_is_refused(lesson):
    """A negative limit would cut rows off the end in silence."""
    with pytest.raises(ValueError):
        lesson.load("search").search("fox", bodies(lesson, "fox"), limit=-1)
        pytest.fail("a limit of -1 is to be refused with a ValueError")


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_a_part_that_where_excludes_takes_no_place_and_still_counts(lesson):
    """`where` acts before the limit and after the counting."""
    search = lesson.load("search").search
    parts = bodies(lesson, "fox fox fox", "fox owl elk", "owl")
    everything = search("fox", parts)
    assert [row["id"] for row in everything] == ["d0#part-01", "d1#part-01"]
    rows = search("fox", parts, 1, where=lambda part: part.id == "d1#part-01")
    assert [row["id"] for row in rows] == ["d1#part-01"], (
        "the filter has to act before the limit: what it excludes takes no place"
    )
    assert rows[0]["score"] == everything[1]["score"], (
        "the filter must not change the statistics, so no score"
    )


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_the_order_of_the_question_can_show_in_the_last_bit(lesson):
    """The same words in another order may give another sum: it is not sorted away."""
    search, rng = lesson.load("search"), random.Random(4)
    parts = bodies(
        lesson, *(" ".join(rng.choices(WORDS, k=rng.randint(3, 20))) for _ in range(60))
    )
    forward = search.search(" ".join(WORDS), parts, limit=60)
    backward = search.search(" ".join(reversed(WORDS)), parts, limit=60)
    assert dict(ranking(forward)) != dict(ranking(backward)), (
        "the contributions are to be added in the order of the question"
    )
    for (_, a), (_, b) in zip(ranking(forward), ranking(backward), strict=True):
        assert math.isclose(a, b, rel_tol=1e-12)


# ---- the formula


@pytest.mark.lessons(4)
@pytest.mark.task("search")
def test_scores_are_those_of_bm25_by_hand(lesson):
    """Scores are BM25 with k1 1.2 and b 0.75, computed by hand."""
    parts = bodies(lesson, "fox fox owl", "owl elk", "elk elk elk elk")
    rows = lesson.load("search").search("fox owl", parts)

    # Three parts of 3, 2 and 4 terms: the average is 3. One has fox, two have owl.
    fox = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    owl = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = fox * (2 * 2.2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / 3)))
    first += owl * (1 * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * 3 / 3)))
    second = owl * (1 * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * 2 / 3)))
    assert ranking(rows) == [("d0#part-01", first), ("d1#part-01", second)], (
        "the scores differ from idf * f * (k1 + 1) / (f + k1 * (1 - b + b * L / avg))"
    )
    (row,) = lesson.load("search").search("fox", bodies(lesson, "fox owl"))
    assert row["score"] == math.log(1 + (1 - 1 + 0.5) / (1 + 0.5)), (
        "a single part has the average length, so its saturation is 1"
    )


def bm25_exactly(terms, query: str, texts: list[str]) -> list[Decimal]:
    """The formula of the contract with fifty digits, term by term."""
    counts = [Counter(terms(text)) for text in texts]
    lengths = [Decimal(count.total()) for count in counts]
    with localcontext() as context:
        context.prec = 50
        k1, b, half = Decimal("1.2"), Decimal("0.75"), Decimal("0.5")
        scores = [Decimal(0)] * len(texts)
        for term in dict.fromkeys(terms(query)):
            n = sum(term in count for count in counts)
            idf = (1 + (len(texts) - n + half) / (n + half)).ln()
            for place, count in enumerate(counts):
                if f := count[term]:
                    relative = lengths[place] * len(texts) / sum(lengths)
                    scores[place] += (
                        idf * f * (k1 + 1) / (f + k1 * (1 - b + b * relative))
                    )
    return scores


@pytest.mark.lessons(4)
@pytest.mark.task("search")
@few
@given(sections=libraries, query=texts)
def test_scores_are_bm25_over_heading_and_body(lesson, sections, query):
    """Every score is the formula's, over heading and body together."""
    search, terms = lesson.load("search"), lesson.load("terms").terms
    parts = make_parts(lesson, sections)
    exact = bm25_exactly(terms, query, [f"{h}\n{b}" for h, b in sections])
    expected = {part.id: score for part, score in zip(parts, exact, strict=True)}
    rows = search.search(query, parts, limit=len(parts))
    assert {row["id"] for row in rows} == {i for i, s in expected.items() if s > 0}, (
        "exactly the parts that share a term with the question are to be returned"
    )
    for row in rows:
        assert math.isclose(row["score"], expected[row["id"]], rel_tol=1e-13), (
            f"{row['text']!r} scores {row['score']} instead of {expected[row['id']]}"
        )


@pytest.mark.lessons(4)
@pytest.mark.task("search")
@few
@given(sections=libraries, query=texts)
def test_contributions_are_added_in_the_order_of_the_question(lesson, sections, query):
    """The score is, to the last bit, the sum over the terms in the question's order."""
    search = lesson.load("search")
    parts = make_parts(lesson, sections)
    expected: dict[str, float] = {}
    for word in dict.fromkeys(query.split()):
        for row in search.search(word, parts, limit=len(parts)):
            expected[row["id"]] = expected.get(row["id"], 0.0) + row["score"]
    found = dict(ranking(search.search(query, parts, limit=len(parts))))
    assert found == expected, "the contributions are not added term by term, in order"


@pytest.mark.lessons(4)
def test_a_term_of_every_part_still_counts_a_little(lesson):
    """This idf is never negative: a word that stands everywhere finds everything."""
    rows = lesson.load("search").search("fox", bodies(lesson, "fox", "fox", "fox"))
    assert len(rows) == 3 and all(row["score"] > 0 for row in rows)


# ---- order, limit, filter


@pytest.mark.lessons(4)
@pytest.mark.task("search")
@few
@given(sections=libraries, query=texts, seed=st.randoms(use_true_random=False))
def test_the_order_of_the_parts_does_not_matter(lesson, sections, query, seed):
    """Shuffled parts give the same rows, order and scores."""
    search = lesson.load("search").search
    parts = make_parts(lesson, sections)
    rows = search(query, parts, limit=5)
    seed.shuffle(parts)
    assert search(query, parts, limit=5) == rows


@pytest.mark.lessons(4)
@pytest.mark.task("search")
@few
@given(sections=libraries, query=texts, limit=st.integers(0, 12))
def test_rows_are_ordered_and_limited(lesson, sections, query, limit):
    """Scores fall, ties are by id, and a limit cuts the end off and nothing else."""
    search = lesson.load("search").search
    parts = make_parts(lesson, sections)
    everything = search(query, parts, limit=len(parts))
    keys = [(-row["score"], row["id"]) for row in everything]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert search(query, parts, limit=limit) == everything[:limit]
    assert search(query, parts) == everything[:4], "the limit is 4 unless told"


@pytest.mark.lessons(4)
@pytest.mark.task("search")
@few
@given(
    sections=libraries,
    query=texts,
    limit=st.integers(0, 5),
    kept=st.sets(st.integers(0, 9)),
)
def test_where_filters_before_the_limit_and_after_counting(
    lesson, sections, query, limit, kept
):
    """`where` says what may be returned; scores stay those of the whole library."""
    search = lesson.load("search").search
    parts = make_parts(lesson, sections)
    allowed = {f"d{number}#part-01" for number in kept}
    rows = search(query, parts, limit, where=lambda part: part.id in allowed)
    everything = search(query, parts, limit=len(parts))
    expected = [row for row in everything if row["id"] in allowed][:limit]
    assert [row["id"] for row in rows] == [row["id"] for row in expected], (
        "the filter has to act before the limit"
    )
    assert ranking(rows) == ranking(expected), (
        "the filter must not change the statistics, so no score"
    )


# ---- rows


@pytest.mark.lessons(4)
def test_a_row_is_a_plain_dict_that_describes_its_part(lesson):
    """A row prints as JSON and holds what the contract of rows names."""
    parts = make_parts(lesson, [("fox", "owl"), ("", "fox")])
    rows = lesson.load("search").search("owl", parts)
    assert json.loads(json.dumps(rows)) == rows and type(rows[0]) is dict
    (row,) = rows
    described = {
        "id": "d0#part-01",
        "doc_id": "d0",
        "part": 1,
        "title": "Title",
        "heading": "fox",
        "body": "owl",
        "text": "fox\nowl",
        "url": "u",
        "lang": "en",
        "revision": 1,
    }
    assert {key: row[key] for key in described} == described
    assert isinstance(row["score"], float)
    (row,) = lesson.load("search").search("fox", parts[1:])
    assert row["text"] == "fox", "without a heading the text is just the body"


@pytest.mark.lessons(4)
def test_searching_changes_nothing(lesson):
    """Neither the parts nor an earlier answer are touched by a search."""
    search = lesson.load("search").search
    parts = bodies(lesson, "fox owl", "owl")
    before, rows = list(parts), search("fox owl", parts)
    kept = json.dumps(rows)
    rows[0]["score"] = -1.0
    assert json.dumps(search("fox owl", parts)) == kept and parts == before


# ---- what makes terms fast changes none of them


@pytest.mark.lessons(4)
@few
@given(text=any_text)
@example(text="Ann’s ann's中 中's １２ ｶﾞ か\u3099 _a_ a\u0301")
@example(text="a\x1cb\x85c\u2028d\u3000е\u00a0ё")
def test_pieces_of_a_text_have_the_terms_of_the_whole(lesson, text):
    """A text may be cut at white space and its pieces remembered."""
    module = lesson.load("terms")
    whole = module.cut(text)
    assert module.terms(text) == module.terms(text) == whole
    assert [term for piece in text.split() for term in module.cut(piece)] == whole


@pytest.mark.lessons(4)
def test_what_is_remembered_is_bounded(lesson, monkeypatch):
    """When the memory is full it begins anew; long sentences never come into it."""
    module = lesson.load("terms")
    full = module.Remembered({str(number): "x" for number in range(1 << 18)})
    monkeypatch.setattr(module, "REMEMBERED", full)
    assert module.terms("foxes “owl's—nests”") == ["fox", "owl", "nest"]
    assert full == {"foxes": "fox", "“owl's—nests”": ["owl", "nest"]}
    assert module.terms("狐狸 foxes elks") == ["狐狸", "fox", "elk"]
    assert len(full) == 2


ENGLISH_ENDS = (
    "s es sses shes ies ied ie bly bility ly ful ness ed ing eed y e ll nn al ance ence"
    " anci ency ant enti or er ic able ibli ement ism ate ator at iti ous iv ive is ize"
    " iz ise sion tion ri"
)
RUSSIAN_ENDS = (
    "ся сь ывшими ующего енной аемый анная иями ами ах ям ов ев ие ья ью ей ой ый ом ем"
    " ул ил ала нно ете ейте ует ют ят ть ешь ишь ены ен ена ить ыть ость ост енность"
    " нн н и ь ок ек ец ц к а о у ы"
)


@pytest.mark.lessons(4)
def test_no_rule_is_passed_over_that_would_change_a_word(lesson):
    """The endings of each rule are all those that its pattern can match."""
    module, rng = lesson.load("terms"), random.Random(4)
    for rules, letters, ends in (
        (module.ENGLISH, "abcdefghijklmnopqrstuvwxyz", ENGLISH_ENDS.split()),
        (module.RUSSIAN, "абвгдежзийклмнопрстуфхцчшщъыьэюя", RUSSIAN_ENDS.split()),
    ):
        for _ in range(4000):
            word = "".join(rng.choices(letters, k=rng.randint(1, 6)))
            word += "".join(rng.choices(ends, k=rng.randint(0, 2)))
            for endings, old, new in rules:
                if not word.endswith(endings) and old != "(?<=...).$":
                    assert re.sub(old, new, word) == word, (word, old)


# ---- any text is a legal question


@pytest.mark.lessons(4)
@pytest.mark.parametrize("query", HOSTILE, ids=ascii)
def test_a_question_is_never_query_syntax(lesson, query):
    """Quotes, operators and brackets are text: the words between them are found."""
    parts = bodies(lesson, "fox", "owl", "elk")
    rows = lesson.load("search").search(query, parts)
    assert ("d0#part-01" in [row["id"] for row in rows]) == ("fox" in query)


@pytest.mark.lessons(4)
@few
@given(query=any_text, body=any_text)
@example(query="\ud800", body="\udfff")
@example(query="\x00", body="\x00fox")
def test_any_text_is_a_legal_question(lesson, query, body):
    """No text raises, in the question or in a part."""
    parts = bodies(lesson, body, "fox owl")
    rows = lesson.load("search").search(query, parts)
    assert all(row["score"] > 0 for row in rows)
    if lesson.load("terms").terms(body):
        found = lesson.load("search").search(body, parts)
        assert "d0#part-01" in [row["id"] for row in found], (
            "a part is not found by its own text"
        )


@pytest.mark.lessons(4)
def test_hostile_questions_reach_the_app_as_text(lesson, library):
    """The app answers them too: no traceback, and the question comes back unchanged."""
    library.write("fox.md", "# Animals\n\nThe fox sleeps.\n")
    for query in ('"the fox (sleeps*', "fox' \x00;-- 'sleeps"):
        result = lesson.run("--json", "-", stdin=query, LIBRARY=library)
        assert result.status == 0, result.stderr
        assert "The fox sleeps." in result.stdout and "Traceback" not in result.stderr
        if "query" in result.json:
            assert result.json["query"] == query


@pytest.mark.lessons(4)
def test_the_answer_does_not_depend_on_the_hash_seed(lesson, library):
    """Three hash seeds, one output: no order comes out of a set."""
    for number in range(6):
        library.write(f"{number}.md", "# Animals\n\nfox owl elk\n\n# More\n\nfox\n")
    outputs = {
        lesson.run(
            "--json",
            "fox owl elk bat",
            LIBRARY=library,
            LIBRARY_DB=lesson.home / f"{seed}.db",
            PYTHONHASHSEED=seed,
        ).stdout
        for seed in (0, 1, 2)
    }
    assert len(outputs) == 1


# ---- the app, until hybrid search replaces its ranking


@pytest.mark.lessons(4, 7)
def test_the_app_asks_the_search_formula(lesson, library):
    """The app's rows, order and scores are those of `search` over the library."""
    library.write("a.md", "# Animals\n\nfox owl owl\n\n# Birds\n\nowl\n")
    library.write("b.md", "# Trees\n\nfox fox elk\n")
    documents, _ = lesson.load("library").load(library.folder)
    parts = [part for d in documents for part in lesson.load("library").split(d)]
    rows = lesson.load("search").search("owl fox", parts, limit=2)
    result = lesson.run("--json", "--limit", "2", "owl fox", LIBRARY=library)
    assert result.status == 0 and result.json["status"] == "found"
    assert result.json["rows"] == rows


@pytest.mark.lessons(4)
@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_be_looked_at_is_no_answer(lesson, limit):
    result = lesson.run("--json", f"--limit={limit}", "owl fox")
    assert (result.status, result.json["status"]) == (1, "error")
    assert result.json["message"] == f"--limit must be 1 or more, not {limit}"


@pytest.mark.lessons(4, 7)
def test_nothing_in_common_is_nothing_found(lesson, library):
    """An honest "nothing" ends with status 0 and no rows."""
    library.write("a.md", "# Animals\n\nfox owl\n")
    result = lesson.run("--json", "wolverine", LIBRARY=library)
    assert result.status == 0
    assert (result.json["status"], result.json["rows"]) == ("nothing_found", [])
