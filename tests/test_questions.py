"""The question sets agree with the library: documents, parts, phrases, rights, counts.

The library is read here without the lessons, so that a lesson that splits or hides
wrongly does not bend the questions; the last test then holds the lessons to them.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

SHARED = Path(__file__).resolve().parent.parent / "shared"
LANGUAGES = ("en", "ru", "zh")
AT_LEAST = {  # per language
    "answerable": 60,
    "facts": 4,
    "editor": 4,
    "hidden": 4,
    "withdrawn": 2,
    "injection": 2,
    "unanswerable": 15,
    "near_miss": 5,
}
NO_ANSWER = ("hidden", "unanswerable", "near_miss")
ALWAYS = [
    "id",
    "set",
    "kind",
    "question",
    "role",
    "facts",
    "expected",
    "part",
    "answer",
]
AT_TIMES = ("not_from", "never", "note")

each_language = pytest.mark.parametrize("lang", LANGUAGES)


@functools.cache
def questions(lang: str) -> list[dict]:
    """All questions of a language, in the order of the file."""
    text = (SHARED / "questions" / f"{lang}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def kinds(lang: str, *names: str) -> list[dict]:
    """The questions of these kinds."""
    return [question for question in questions(lang) if question["kind"] in names]


@functools.cache
def library() -> dict[str, dict]:
    """All documents by id: the keys of front matter, and `parts` (id to body)."""
    found = {}
    for path in (SHARED / "corpus").rglob("*.md"):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        end = lines.index("---", 1)
        document = dict(line.split(": ", 1) for line in lines[1:end])
        document["parts"] = sections(document, "\n".join(lines[end + 1 :]))
        found[document["id"]] = document
    return found


def sections(document: dict, body: str) -> dict[str, str]:
    """The bodies of the sections by part id, as CommonMark sees its headings.

    No section of the course's library has to be cut: the only one that is longer than
    a part should be is a single table.
    """
    lines = body.split("\n")
    headings = [(0, 0)]
    for token in MarkdownIt().parse(body):
        if token.type == "heading_open" and token.level == 0:
            headings.append(tuple(token.map))
    headings.append((len(lines), len(lines)))
    parts: dict[str, str] = {}
    for (_, start), (end, _) in zip(headings, headings[1:], strict=False):
        text = "\n".join(lines[start:end]).strip("\n")
        if text:
            number = len(parts) + 1
            parts[f"{document['id']}#part-{number:02}"] = text
    return parts


def may_read(role: str, document: dict) -> bool:
    """Whether the role may read the document, by the two keys that decide it."""
    state = document.get("role", "reader"), document.get("status", "published")
    more = role == "editor" and state in (
        ("editor", "published"),
        ("reader", "draft"),
        ("editor", "draft"),
    )
    return state == ("reader", "published") or more


def holds(document: dict, facts: dict) -> bool:
    """Whether the document holds in a case with these facts."""
    named = [
        pair.split("=") for pair in document.get("applies", "").split(", ") if pair
    ]
    return all(facts.get(key, value) == value for key, value in named)


def case(question: dict) -> tuple:
    """What makes a question another one: the words, who asks, and in which case."""
    words = " ".join(question["question"].casefold().split()).rstrip("?.？。")
    return words, question["role"], json.dumps(question["facts"], sort_keys=True)


@each_language
def test_every_question_has_the_keys_the_readme_names(lang):
    for question in questions(lang):
        name = question["id"]
        assert list(question)[: len(ALWAYS)] == ALWAYS, name
        assert set(question) <= {*ALWAYS, *AT_TIMES}, name
        assert question["set"] in ("tune", "test"), name
        assert question["role"] in ("reader", "editor"), name
        assert question["kind"] in AT_LEAST, name
        assert question["question"].strip() == question["question"] != "", name


@each_language
def test_ids_count_up_and_no_question_stands_twice(lang):
    ids = [question["id"] for question in questions(lang)]
    assert ids == [f"{lang}-{number:03}" for number in range(1, len(ids) + 1)]
    times = Counter(map(case, questions(lang)))
    assert [words for words, count in times.items() if count > 1] == []


@each_language
def test_there_are_enough_of_each_kind_in_both_halves(lang):
    counts = Counter(question["kind"] for question in questions(lang))
    few = {kind: counts[kind] for kind, n in AT_LEAST.items() if counts[kind] < n}
    assert few == {}
    for kind in counts:
        halves = Counter(question["set"] for question in kinds(lang, kind))
        pairs = 2 if kind == "facts" else 1  # both cases of a question stay together
        assert abs(halves["tune"] - halves["test"]) <= pairs, kind
        assert min(halves["tune"], halves["test"]) > 0, kind


@each_language
def test_the_readme_counts_them(lang):
    readme = (SHARED / "questions" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", readme, re.MULTILINE)
    counts = Counter(question["kind"] for question in questions(lang))
    assert counts == {kind: int(number) for kind, number in rows}


@each_language
def test_the_same_words_stand_in_one_half(lang):
    halves = defaultdict(set)
    for question in questions(lang):
        halves[question["question"]].add(question["set"])
    assert [words for words, found in halves.items() if len(found) > 1] == []


@each_language
def test_expected_documents_exist_and_may_be_read_and_hold(lang):
    for question in questions(lang):
        name = question["id"]
        assert bool(question["expected"]) != (question["kind"] in NO_ANSWER), name
        for doc_id in question["expected"]:
            document = library()[doc_id]
            assert document["lang"] == lang, name
            assert may_read(question["role"], document), name
            assert holds(document, question["facts"]), name


@each_language
def test_every_answer_stands_word_for_word_in_one_of_its_parts(lang):
    for question in questions(lang):
        name = question["id"]
        if question["kind"] in NO_ANSWER:
            assert question["part"] == [] and question["answer"] == "", name
            continue
        homes = [part.partition("#")[0] for part in question["part"]]
        assert set(homes) == set(question["expected"]), name
        texts = [
            library()[home]["parts"][part]
            for home, part in zip(homes, question["part"], strict=True)
        ]
        assert any(question["answer"] in text for text in texts), name
        assert question["answer"], name


@each_language
def test_the_questions_reach_every_document_that_somebody_may_read(lang):
    reached = {
        doc_id for question in questions(lang) for doc_id in question["expected"]
    }
    readable = {
        doc_id
        for doc_id, document in library().items()
        if document["lang"] == lang and may_read("editor", document)
    }
    assert reached == readable


@each_language
def test_what_must_never_be_shown_is_hidden_and_exists(lang):
    for question in questions(lang):
        for phrase in question.get("never", []):
            holders = [
                document
                for document in library().values()
                if any(phrase in text for text in document["parts"].values())
            ]
            assert holders, question["id"]
            assert not any(may_read(question["role"], d) for d in holders), question[
                "id"
            ]
        for doc_id in question.get("not_from", []):
            assert doc_id in library(), question["id"]
            assert doc_id not in question["expected"], question["id"]


@each_language
def test_what_a_reader_must_not_find_an_editor_finds(lang):
    asked = {question["question"]: question for question in kinds(lang, "editor")}
    assert set(asked) == {q["question"] for q in kinds(lang, "hidden")}
    for question in kinds(lang, "hidden"):
        assert question["role"] == "reader", question["id"]
        assert asked[question["question"]]["role"] == "editor", question["id"]
        for doc_id in asked[question["question"]]["expected"]:
            assert not may_read("reader", library()[doc_id]), question["id"]


@each_language
def test_a_question_with_facts_is_asked_in_both_cases(lang):
    cases = defaultdict(list)
    for question in kinds(lang, "facts"):
        cases[question["question"]].append(question)
    names = set()
    for one, other in cases.values():
        assert one["facts"] != other["facts"] and one["expected"] != other["expected"]
        names |= set(one["facts"])
    assert names == {"channel", "contract"}


@each_language
def test_the_questions_of_known_kind_are_there(lang):
    old_term = {
        "en": "fourteen calendar days",
        "ru": "четырнадцати календарных дней",
        "zh": "十四个日历日",
    }[lang]
    answered_by = defaultdict(list)
    for question in questions(lang):
        for doc_id in question["expected"]:
            answered_by[doc_id].append(question)
    assert any(
        f"etag-{lang}" in question.get("not_from", [])
        for question in answered_by[f"old-addresses-{lang}"]
    )
    withdrawn = kinds(lang, "withdrawn")
    assert {q["role"] for q in withdrawn if old_term in q["never"]} == {
        "reader",
        "editor",
    }
    assert all(f"refunds-2019-{lang}" in q["not_from"] for q in withdrawn)
    orders = kinds(lang, "injection")
    assert all(q["expected"] == [f"migration-log-{lang}"] for q in orders)
    channels = {q["facts"].get("channel") for q in kinds(lang, "facts")}
    assert {"domestic", "overseas"} <= channels
    shares = {"en": "share price", "ru": "акций", "zh": "股价"}[lang]
    assert any(shares in q["question"] for q in kinds(lang, "unanswerable"))


@pytest.mark.lessons(5)
def test_the_lesson_has_the_same_parts_and_rights(lesson):
    documents, faults = lesson.load("library").load(SHARED / "corpus")
    assert faults == []
    access, split = lesson.load("access"), lesson.load("parts").split
    parts = {part.id: part for document in documents for part in split(document)}
    for lang in LANGUAGES:
        for question in questions(lang):
            allowed = {
                document.id
                for document in access.visible(documents, question["role"])
                if access.applicable(document, question["facts"])
            }
            assert set(question["expected"]) <= allowed, question["id"]
            assert set(question["part"]) <= set(parts), question["id"]
            if question["part"]:
                bodies = [parts[part].body for part in question["part"]]
                assert any(question["answer"] in body for body in bodies), question[
                    "id"
                ]
