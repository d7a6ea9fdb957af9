"""Two rankings, one evidence rule: the built-in space, a model's space, the fusion.

Models are spoken to through the official client, to the stand-in server.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import itertools
import json
import math
import random
import sqlite3
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .ollama_server import EMBED_MODEL, OllamaServer, refusing

COURSE = Path(__file__).resolve().parents[1]
NUMBERS = itertools.count()
few = settings(max_examples=15)
SPEAKING = (8, 10)  # lessons that change how a model is spoken to
SHEEP = "Sheep are shorn in May, before the lambs go up to the meadow."
LONG = "word " * 3000  # far beyond what the model of the stand-in reads at once


@pytest.fixture
def server():
    with OllamaServer() as running:
        yield running


@pytest.fixture
def embedding(server, monkeypatch):
    """The settings of this process name the stand-in's model; gives the server."""
    for name, value in server.embed_env().items():
        monkeypatch.setenv(name, value)
    return server


def make(lesson, doc_id: str, body: str, **fields):
    fields = {"title": "Title", "url": f"https://e.example/{doc_id}", **fields}
    return lesson.load("library").Document(id=doc_id, body=body, lang="en", **fields)


def published(lesson, *documents) -> Path:
    """Publish documents into a new file and return its path."""
    path = lesson.home / f"{next(NUMBERS)}.db"
    lesson.load("store").publish(path, documents)
    return path


def found(lesson, path, query: str, **options) -> list[dict]:
    return lesson.load("hybrid").hybrid_search(query, path=path, **options)


def ids(rows: list[dict]) -> list[str]:
    return [row["doc_id"] for row in rows]


def embedded(server) -> list[str]:
    """All texts that the server was asked to embed, but those that only try it."""
    bodies = [request.body for request in server.requests_to("/api/embed")]
    texts = [text for body in bodies for text in body["input"]]
    return [text for text in texts if "to learn the dimension" not in text]


# ---- the built-in space


@pytest.mark.lessons(8)
def test_the_built_in_space_is_deterministic_and_of_length_one(lesson):
    embedder = lesson.load("embeddings").get_embedder()
    first, again, other = embedder.embed([SHEEP, SHEEP, "A barge with bricks"])
    assert list(first) == list(again) != list(other)
    assert len(first) == len(other) and str(len(first)) in embedder.space
    assert math.isclose(sum(number * number for number in first), 1, abs_tol=1e-5)


@pytest.mark.lessons(8)
def test_the_space_is_the_same_in_every_process(lesson, library):
    """Ranks and scores do not depend on the seed of Python's own hashes."""
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    library.write("b.md", "# Shearing\n\nThe shearing shed stands by the meadow.\n")
    outputs = set()
    for seed in ("0", "1", "77"):
        env = {"LIBRARY": library, "PYTHONHASHSEED": seed, "LIBRARY_DB": None}
        db = lesson.home / f"seed{seed}.db"
        result = lesson.run("--json", "--db", db, "shearing sheep in the meadow", **env)
        assert result.status == 0, result.stderr
        outputs.add(result.stdout)
    assert len(outputs) == 1


@pytest.mark.lessons(8)
def test_forms_of_a_word_are_near_and_synonyms_are_not(lesson):
    """The space is honest about being no language model."""
    vectors = (
        lesson.load("embeddings")
        .get_embedder()
        .embed(["guaranteed", "unguaranteed", "promised", "", "the of and", "!?"])
    )
    cosines = [
        sum(a * b for a, b in zip(vectors[0], vector, strict=True))
        for vector in vectors
    ]
    assert cosines[1] > 0.5 > cosines[2]
    assert cosines[3:] == [0, 0, 0], "nothing telling: only zeros, no error"


@pytest.mark.lessons(8)
def test_an_unknown_backend_is_an_error(lesson, library):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    result = lesson.run("--json", "sheep", LIBRARY=library, EMBED_BACKEND="oracle")
    assert result.status == 1 and result.json["status"] == "error"
    assert "oracle" in result.json["message"] and "Traceback" not in result.stderr


# ---- fusion


def row(part_id: str) -> dict:
    return {"id": part_id, "doc_id": part_id, "text": part_id, "score": 1.0}


@pytest.mark.lessons(8)
@pytest.mark.task("fuse")
def test_a_rank_is_worth_the_same_in_both_rankings(lesson):
    """1 / (60 + rank), ranks counted from 1, whatever the scores were."""
    fuse = lesson.load("hybrid").fuse
    high = row("a") | {"score": 40.0}
    for rankings in (([high], []), ([], [high])):
        rows = fuse(*rankings, "s")
        assert len(rows) == 1, "a row that one ranking alone has found is not lost"
        (only,) = rows
        assert only["score"] != pytest.approx(40), (
            "the scores that the rows came with do not count, only their ranks"
        )
        assert only["score"] == pytest.approx(1 / 61), (
            "ranks are counted from 1: the first of one ranking scores 1/61, a row "
            f"that another ranking does not have gains nothing there; not "
            f"{only['score']:.5f}"
        )


@pytest.mark.lessons(8)
@pytest.mark.task("fuse")
def test_a_row_of_one_ranking_gains_nothing_from_the_other(lesson):
    rows = lesson.load("hybrid").fuse([row("a"), row("b")], [row("b"), row("c")], "s")
    names = [r["id"] for r in rows]
    assert len(names) == len(set(names)), "a row of both rankings stands there once"
    assert set(names) == {"a", "b", "c"}, "a row that one ranking found is not lost"
    by_id = {r["id"]: r for r in rows}
    for name, expected in {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62}.items():
        assert by_id[name]["score"] == pytest.approx(expected), (
            f"{name} must score {expected:.5f}, not {by_id[name]['score']:.5f}: a row "
            "that is not in a ranking gains nothing from it, and one that is in both "
            "gains from both"
        )
    assert by_id["a"]["vector_rank"] is None and by_id["c"]["lexical_rank"] is None, (
        "where a row is not in a ranking, its rank there is None"
    )
    assert names[0] == "b", "the highest score comes first"


@pytest.mark.lessons(8)
@pytest.mark.task("fuse")
def test_the_rows_that_come_in_are_left_alone(lesson):
    first, second = [row("a"), row("b")], [row("b")]
    rows = lesson.load("hybrid").fuse(first, second, "space")
    assert (first, second) == ([row("a"), row("b")], [row("b")]), (
        "the rows of the rankings must not be changed: return new ones"
    )
    assert {r.get("space") for r in rows} == {"space"}, "each row names its space"


@pytest.mark.lessons(8)
@pytest.mark.task("fuse")
def test_fusion_adds_reciprocal_ranks(lesson):
    """1 / (60 + rank), ranks from 1; where a row is absent, it gains nothing."""
    rows = lesson.load("hybrid").fuse(
        [row("a"), row("b"), row("c")], [row("c"), row("d")], "space"
    )
    assert [
        (r["id"], r["lexical_rank"], r["vector_rank"], r["score"]) for r in rows
    ] == [
        ("c", 3, 1, 1 / 63 + 1 / 61),
        ("a", 1, None, 1 / 61),
        ("b", 2, None, 1 / 62),
        ("d", None, 2, 1 / 62),
    ]
    assert {r["space"] for r in rows} == {"space"}


@pytest.mark.lessons(8)
@pytest.mark.task("fuse")
def test_ties_of_the_fusion_are_settled_by_id(lesson):
    """Two rankings that contradict each other tie by construction."""
    fuse = lesson.load("hybrid").fuse
    for first, second in (("ab", "ba"), ("ba", "ab")):
        rows = fuse([row(i) for i in first], [row(i) for i in second], "s")
        assert rows[0]["score"] == rows[1]["score"]
        assert [r["id"] for r in rows] == ["a", "b"], (
            "equal scores are ordered by id, not by what came first"
        )


@pytest.mark.lessons(8)
def test_fused_rows_do_not_depend_on_the_order_of_publishing(lesson):
    documents = [
        make(lesson, f"d{number}", f"## Sheep\n\n{SHEEP} {word}\n")
        for number, word in enumerate(("hay", "hay", "oats", "", "oats", "hay"))
    ]
    expected = found(lesson, published(lesson, *documents), "sheep and hay in May")
    assert len(expected) == 6
    for seed in range(3):
        random.Random(seed).shuffle(documents)
        path = published(lesson, *documents)
        assert found(lesson, path, "sheep and hay in May") == expected


@pytest.mark.lessons(8)
def test_hybrid_rows_say_where_they_come_from(lesson):
    path = published(
        lesson,
        make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n", revision=3),
        make(lesson, "barge", "## Bricks\n\nA barge with bricks.\n"),
    )
    rows = found(lesson, path, "when are sheep shorn")
    space = lesson.load("embeddings").get_embedder().space
    assert rows[0]["doc_id"] == "sheep" and rows[0]["revision"] == 3
    for r in rows:
        ranks = [r["lexical_rank"], r["vector_rank"]]
        assert r["score"] == sum(1 / (60 + rank) for rank in ranks if rank)
        assert r["space"] == space
    assert json.loads(json.dumps(rows)) == rows


@pytest.mark.lessons(8)
def test_a_form_that_shares_no_term_is_found_by_its_letters(lesson):
    path = published(
        lesson,
        make(lesson, "sitemap", "## Limits\n\nIndexing is not guaranteed.\n"),
        make(lesson, "barge", "## Bricks\n\nA barge with bricks.\n"),
    )
    (first, *_) = found(lesson, path, "unguaranteed reindexing")
    assert first["doc_id"] == "sitemap"
    assert (first["lexical_rank"], first["vector_rank"]) == (None, 1)


@pytest.mark.lessons(8)
def test_rankings_are_fifty_deep_and_the_limit_is_kept(lesson):
    path = published(
        lesson, *(make(lesson, f"d{n:02}", f"## S\n\nsheep {n}\n") for n in range(70))
    )
    rows = found(lesson, path, "sheep", limit=100)
    ranks = {r[key] for r in rows for key in ("lexical_rank", "vector_rank")}
    assert max(rank for rank in ranks if rank) == 50
    assert [len(found(lesson, path, "sheep", limit=n)) for n in (0, 1, 6)] == [0, 1, 6]
    assert len(found(lesson, path, "sheep")) == 6
    with pytest.raises(ValueError, match="limit"):
        found(lesson, path, "sheep", limit=-1)


@pytest.mark.lessons(8)
def test_a_role_that_does_not_exist_is_an_error(lesson):
    path = published(lesson, make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n"))
    with pytest.raises(ValueError, match="root"):
        found(lesson, path, "sheep", role="root")


# ---- rights and facts


@pytest.mark.lessons(8)
@pytest.mark.parametrize(
    "hidden",
    [{"role": "editor"}, {"status": "draft"}, {"applies": (("channel", "shop"),)}],
)
def test_rights_and_facts_act_before_the_limits_of_both_rankings(lesson, hidden):
    """Sixty better parts that this question may not see leave room for the one."""
    better = [
        make(lesson, f"a{n:02}", f"## Sheep\n\n{SHEEP}\n", **hidden) for n in range(60)
    ]
    weaker = make(lesson, "open", f"## Farm\n\nCows. {SHEEP} {'Other words. ' * 9}\n")
    path = published(lesson, *better, weaker)
    rows = found(lesson, path, "sheep are shorn in May", facts={"channel": "overseas"})
    assert [(r["doc_id"], r["lexical_rank"], r["vector_rank"]) for r in rows] == [
        ("open", 1, 1)
    ]
    if "applies" not in hidden:
        assert "a00" in ids(
            found(lesson, path, "sheep are shorn in May", role="editor")
        )


WORDS = st.sampled_from(["fox", "foxes", "owl", "owlish", "elk", "7", "退款到账"])
texts = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
HIDDEN = [
    ("editor", "published"),
    ("reader", "draft"),
    ("reader", "withdrawn"),
    ("", "published"),
]


@pytest.mark.lessons(8)
@few
@given(
    seen=st.lists(texts, max_size=4),
    unseen=st.lists(st.tuples(texts, st.sampled_from(HIDDEN)), max_size=5),
    query=texts,
)
def test_what_a_reader_finds_does_not_depend_on_hidden_documents(
    lesson, seen, unseen, query
):
    """Rows, order, ranks and scores to the last bit, and whether there are any."""
    visible = [
        make(lesson, f"v{n}", f"## A\n\n{text}\n") for n, text in enumerate(seen)
    ]
    hidden = [
        make(lesson, f"h{n}", f"## A\n\n{text}\n", role=role, status=status)
        for n, (text, (role, status)) in enumerate(unseen)
    ]
    alone = found(lesson, published(lesson, *visible), query)
    assert found(lesson, published(lesson, *hidden, *visible), query) == alone


# ---- evidence


FERRY = "Which ferry carries visitors from the harbour to the sheep market?"
VILLAGE = "The village has a school, a mill and a bridge over the river. " * 2
LAKES = "Other words about lakes stand here. "
SHEARING = (
    f"{SHEEP} The shearer comes from the village with two helpers. The wool is sorted "
    "by colour, packed into sacks and sold at the market in town. Rain stops the work, "
    "since wet wool rots in the sack."
)


@pytest.mark.lessons(8)
@pytest.mark.task("is_evidence")
@pytest.mark.parametrize(
    ("question", "text", "expected", "why"),
    [
        ("", SHEEP, False, "a question without a telling word has no evidence"),
        (
            *("Who are you and what is this?", "Who are you and what is this?", False),
            "common words are left out: this question has no telling word",
        ),
        (FERRY, SHEEP, False, "one shared word of many is not enough"),
        (
            *("Which is the one about the river?", "Which is the one about it?", False),
            "common words are left out: nothing telling is shared",
        ),
        (
            *("zanzibar", f"{'Other words stand here. ' * 200} zanzibar", True),
            "a text that has all of the question is evidence, however long it is",
        ),
        (
            *("When are sheep shorn by machine?", SHEARING, True),
            "the cosine alone is unfair to long texts",
        ),
        (
            *("Do sheep need salt in winter?", SHEARING, False),
            "a long text has a bit of everything: its length counts, too",
        ),
        (
            *("Do sheep like to hear music on the radio?", "Sheep.", True),
            "the share of the question alone is unfair to short texts",
        ),
        (
            *(FERRY, f"{'sheep ' * 4}{VILLAGE}", False),
            "the square roots of the counts are compared: one repeated word is not "
            "enough",
        ),
        (
            *("Do sheep need salt in winter?", f"{'sheep ' * 4}{VILLAGE}", True),
            "a word that stands four times in the text counts √4",
        ),
        (
            *("Do sheep need salt in winter?", f"Sheep. {LAKES * 2}", False),
            "the question counts with the exponent 2/3, the text with 1/3",
        ),
        (
            *(f"{FERRY} Does its captain take children and bicycles?", "Sheep.", False),
            "the text must have all of the question; the other way round is nothing",
        ),
        (
            *(FERRY, "Sheep. 羊", False),
            "half of the limit is for a Chinese question, not for a Chinese text",
        ),
        (
            *("取消订单后多久收到退款通知？", "退款一般在三到五个工作日内到账。", True),
            "half of the limit is enough for a Chinese question",
        ),
        (
            *("会员多少钱？", "会员每月八欧元，会员家属半价。", True),
            "where nothing else is asked, pairs with one common character count",
        ),
        (
            *("你是谁？", "你是谁？我是谁？", False),
            "pairs of two common characters are left out in any case",
        ),
        (
            *("会员可以取消订单吗？", "会员可以来信。我们每月给会员寄海图。", False),
            "where something else is asked, pairs with a common character are left out",
        ),
        (
            "出国旅行怎样办理护照？",
            "渡轮公司每周二上午九点在港口办公室给乘客办理月票，儿童半价。",
            False,
            "less than half of the limit is not enough for a Chinese question",
        ),
    ],
)
def test_evidence_is_fair_to_long_and_to_short_texts(
    lesson, question, text, expected, why
):
    given = lesson.load("features").is_evidence(question, text)
    assert given == expected, (
        f"{why}. The question {question!r} must get {expected}, not {given!r}, "
        f"for the text {text[:60]!r}…"
    )


@pytest.mark.lessons(8)
@pytest.mark.task("is_evidence")
@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("When are sheep shorn?", SHEEP, True),
        ("zanzibar", f"{'Other words stand here. ' * 200} zanzibar", True),
        ("What is the capital of Australia?", SHEEP, False),
        ("Who are you and what is this?", "Who are you and what is this?", False),
        ("", SHEEP, False),
        ("sheep", "", False),
        ("退款要多久才到账？", "退款一般在三到五个工作日内到账。", True),
        ("澳大利亚的首都是哪里？", "退款一般在三到五个工作日内到账。", False),
        ("Когда стригут овец?", "Овец стригут в мае, до выгона на луг.", True),
        ("Какая столица у Австралии?", "Овец стригут в мае, до выгона на луг.", False),
    ],
)
def test_evidence_is_what_a_row_has_of_the_question(lesson, question, text, expected):
    given = lesson.load("features").is_evidence(question, text)
    assert given is expected, f"must be {expected}, a bool, and not {given!r}"


@pytest.mark.lessons(8)
@pytest.mark.task("is_evidence")
@given(st.text(), st.text())
def test_any_text_is_a_legal_question_and_a_legal_row(lesson, question, text):
    assert lesson.load("features").is_evidence(question, text) in (True, False)


@pytest.mark.lessons(8)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("счёт", "счет"),
        ("Есть ли приём в конце июля?", "Есть ли прием в конце июля?"),
        ("Where is the refund?", "Ｗｈｅｒｅ　ｉｓ　ｔｈｅ　ｒｅｆｕｎｄ？"),
        ("Où est le café ?", unicodedata.normalize("NFD", "Où est le café ?")),
        ("Где замок?", "Где за\u0301мок?"),
        ("the woollen cap", "the wool\u00adlen cap"),
        ("STRASSE", "straße"),
    ],
)
def test_the_form_of_a_letter_makes_no_difference_to_evidence(lesson, one, other):
    features = lesson.load("features").features
    assert features(one) == features(other) != {}


@pytest.mark.lessons(8)
def test_candidates_without_evidence_are_nothing_found(lesson):
    """A part that shares a common word is a candidate, and yet no find."""
    path = published(lesson, make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n"))
    query = "In which year will the price of shares before taxes go up?"
    with lesson.load("store").open_snapshot(path) as snapshot:
        assert snapshot.search(query), "BM25 has a candidate"
    assert found(lesson, path, query) == []


@pytest.mark.lessons(8, 8)
def test_the_app_tells_nothing_found_from_nothing_fits(lesson, library):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    nothing = lesson.run("--json", "capital of Australia", LIBRARY=library)
    assert (nothing.status, nothing.json["status"]) == (0, "nothing_found")
    small = lesson.run("--json", "--budget", 5, "shorn sheep", LIBRARY=library)
    assert (small.status, small.json["status"]) == (0, "nothing_fits")
    assert small.json["skipped"] == ["a#part-01"]
    shown = lesson.run("shorn sheep", LIBRARY=library).stdout
    assert "by words 1, by vectors 1" in shown


@pytest.fixture(scope="module")
def measured():
    """The benchmark's questions, asked once, in the library of all languages."""
    path = COURSE / "tests" / "benchmarks" / "evidence.py"
    spec = importlib.util.spec_from_file_location("benchmark_evidence", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.lessons(8, 8)
def test_the_rules_hold_on_the_courses_questions(lesson, measured):
    """Refused: at most 5 % of the answerable, at least 80 % of the unanswerable.

    And both rankings together are not worse than the better of the two (by more than
    one question).
    """
    path = lesson.home / "course.db"
    lesson.load("store").refresh(path, COURSE / "shared" / "corpus")
    for language in measured.LANGUAGES:
        asked = [
            measured.Asked(question, path, lesson.load)
            for question in measured.questions(language, None)
        ]
        answerable = [one for one in asked if one.is_answerable]
        others = [o for o in asked if o.question["kind"] == "unanswerable"]
        assert sum(one.is_refused() for one in answerable) <= 0.05 * len(answerable)
        assert sum(one.is_refused() for one in others) >= 0.8 * len(others)
        words, vectors, fused = (
            sum(one.finds(ranking, "part") for one in answerable)
            for ranking in ("words", "vectors", "fused")
        )
        assert fused >= max(words, vectors) - 1, language


# ---- vectors in the snapshot


@pytest.mark.lessons(*SPEAKING)
def test_vectors_of_unchanged_parts_are_used_again(lesson, embedding):
    store = lesson.load("store")
    path = lesson.home / "again.db"
    sheep = make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n\n## Hay\n\nDry hay.\n")
    barge = make(lesson, "barge", "## Bricks\n\nA barge with bricks.\n")
    store.publish(path, [sheep, barge])
    assert len(embedded(embedding)) == 3
    embedding.requests.clear()
    changed = make(
        lesson, "barge", "## Bricks\n\nA barge with coal.\n", revision=2, role="editor"
    )
    store.publish(path, [sheep, changed])
    assert embedded(embedding) == ["passage: Bricks\nA barge with coal."]
    embedding.requests.clear()
    store.publish(path, [sheep])
    assert embedded(embedding) == []
    assert "barge" not in ids(found(lesson, path, "barge with coal", role="editor"))


@pytest.mark.lessons(*SPEAKING)
def test_texts_are_embedded_in_batches_and_never_cut(lesson, embedding):
    path = published(
        lesson, *(make(lesson, f"d{n:02}", f"## S\n\nsheep {n}\n") for n in range(70))
    )
    found(lesson, path, "sheep 7")
    bodies = [request.body for request in embedding.requests_to("/api/embed")]
    assert max(len(body["input"]) for body in bodies) < 70
    assert all(body["truncate"] is False for body in bodies)
    texts = embedded(embedding)
    assert len(texts) == 71 and texts[-1] == "query: sheep 7"
    assert all(text.startswith("passage: S\nsheep ") for text in texts[:-1])


@pytest.mark.lessons(*SPEAKING)
def test_only_models_of_the_e5_family_get_prefixes(lesson, server, monkeypatch):
    server.add_model("mice5", like=EMBED_MODEL)
    for name, value in server.embed_env("mice5").items():
        monkeypatch.setenv(name, value)
    path = published(lesson, make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n"))
    assert ids(found(lesson, path, "shorn sheep")) == ["sheep"]
    assert embedded(server) == [f"Wool\n{SHEEP}", "shorn sheep"]


@pytest.mark.lessons(8)
def test_progress_is_shown_on_a_terminal_only(lesson, monkeypatch):
    documents = [make(lesson, f"d{n}", f"## S\n\nsheep {n}\n") for n in range(40)]
    for is_terminal in (False, True):
        stream = io.StringIO()
        stream.isatty = lambda answer=is_terminal: answer
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            published(lesson, *documents)
        assert ("40 of 40" in stream.getvalue()) is is_terminal


# ---- one space per snapshot


@pytest.mark.lessons(*SPEAKING)
def test_a_question_in_another_space_is_refused_with_the_command(
    lesson, library, server
):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    assert lesson.run("--json", "shorn sheep", LIBRARY=library).status == 0
    env = {"LIBRARY": library, **server.embed_env()}
    for changed in (False, True):  # also where the files have changed meanwhile
        if changed:
            library.write("b.md", "# Barge\n\nA barge with bricks.\n")
        refused = lesson.run("--json", "shorn sheep", **env)
        assert refused.status == 1 and refused.json["reason"] == "other_space"
        assert "--rebuild" in refused.json["message"]
    again = lesson.run("--json", "--rebuild", "shorn sheep", **env)
    assert (
        again.status == 0 and "ollama" in again.stdout and EMBED_MODEL in again.stdout
    )
    back = lesson.run("--json", "shorn sheep", LIBRARY=library)
    assert back.status == 1 and back.json["reason"] == "other_space"


@pytest.mark.lessons(*SPEAKING)
def test_another_model_of_the_same_dimension_is_another_space(
    lesson, server, monkeypatch
):
    server.add_model("twin", like=EMBED_MODEL)
    spaces = []
    for model in (EMBED_MODEL, "twin"):
        for name, value in server.embed_env(model).items():
            monkeypatch.setenv(name, value)
        spaces.append(lesson.load("embeddings").get_embedder().space)
        if model == EMBED_MODEL:
            path = published(lesson, make(lesson, "sheep", f"## W\n\n{SHEEP}\n"))
    assert len(set(spaces)) == 2 and all(space.endswith(":384") for space in spaces)
    assert server.digest("twin") in spaces[1]
    with pytest.raises(ValueError, match="--rebuild"):
        found(lesson, path, "shorn sheep")


# ---- what goes wrong


@pytest.mark.lessons(*SPEAKING)
def test_a_part_too_long_for_the_model_is_still_found_by_words(lesson, library, server):
    """It is marked when the library is published, and never cut."""
    library.write("a.md", f"# Wool\n\n{LONG} zanzibar\n")
    library.write("b.md", f"# Sheep\n\n{SHEEP}\n")
    env = {"LIBRARY": library, **server.embed_env()}
    first = lesson.run("--json", "zanzibar word", **env)
    assert first.status == 0, first.stderr
    assert "not_embedded: a#part-01" in first.stderr
    assert "b#part-01" not in first.stderr
    second = lesson.run("--json", "--budget", 99999, "zanzibar word", **env)
    assert second.status == 0 and second.stderr == "" and "zanzibar" in second.stdout


@pytest.mark.lessons(*SPEAKING)
def test_a_part_too_long_has_no_rank_among_the_vectors(lesson, embedding, capsys):
    path = published(
        lesson,
        make(lesson, "long", f"## Wool\n\n{LONG} zanzibar\n"),
        make(lesson, "sheep", f"## Sheep\n\n{SHEEP}\n"),
    )
    assert "long#part-01" in capsys.readouterr().err
    rows = {r["doc_id"]: r for r in found(lesson, path, "zanzibar")}
    assert rows["long"]["lexical_rank"] == 1 and rows["long"]["vector_rank"] is None


@pytest.mark.lessons(*SPEAKING)
def test_a_question_too_long_for_the_model_is_searched_by_words(lesson, embedding):
    path = published(lesson, make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n"))
    rows = found(lesson, path, f"{SHEEP} {SHEEP} " * 400)
    assert [(r["doc_id"], r["vector_rank"]) for r in rows] == [("sheep", None)]


@pytest.mark.lessons(*SPEAKING)
def test_a_server_that_fails_in_the_middle_leaves_the_last_version(lesson, embedding):
    """One transaction: no rows without their vectors, no half of a library."""
    store = lesson.load("store")
    path = published(lesson, make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n"))
    before = found(lesson, path, "shorn sheep")
    many = [make(lesson, f"d{n:02}", f"## S\n\nhay {n}\n") for n in range(70)]
    # The try and the first batch are served, the second batch is not.
    embedding.after("/api/embed", lambda: embedding.fail(500, path="/api/embed"), 2)
    with pytest.raises(ValueError) as raised:
        store.publish(path, many)
    assert raised.value.reason == "server_error"
    assert found(lesson, path, "shorn sheep") == before
    store.publish(path, many)
    assert ids(found(lesson, path, "hay 7"))[0] == "d07"


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("x:120b-cloud", {}),
        ("x:cloud", {}),
        ("far", {"remote_host": "https://ollama.com"}),
        ("far", {"remote_model": "far:latest"}),
    ],
)
def test_models_of_the_cloud_are_no_local_models(
    lesson, server, monkeypatch, name, extra
):
    server.add_model(name, like=EMBED_MODEL, **extra)
    env = {**server.embed_env(), "EMBED_MODEL": name}
    env["EMBED_DIGEST"] = server.models[0].digest
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "not_local"
    assert server.requests_to("/api/embed") == [], "no text may leave"


@pytest.mark.lessons(*SPEAKING)
def test_a_model_of_the_cloud_is_refused_even_unlisted(lesson, embedding, monkeypatch):
    monkeypatch.setenv("EMBED_MODEL", "nobody-has-it:cloud")
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "not_local"


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("name", ["MULTILINGUAL-E5-small", f"{EMBED_MODEL}:latest"])
def test_names_are_compared_with_their_tag_and_without_case(
    lesson, embedding, monkeypatch, name
):
    usual = lesson.load("embeddings").get_embedder().space
    monkeypatch.setenv("EMBED_MODEL", name)
    assert lesson.load("embeddings").get_embedder().space == usual


@pytest.mark.lessons(*SPEAKING)
def test_a_tag_that_moved_to_another_model_is_noticed_first(lesson, embedding):
    embedding.change_digest(EMBED_MODEL, count=0)
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "model_changed"
    assert embedding.requests_to("/api/embed") == []


@pytest.mark.lessons(*SPEAKING)
def test_a_model_that_changes_during_the_run_is_noticed(lesson, embedding):
    embedding.change_digest(EMBED_MODEL, count=2)
    with pytest.raises(ValueError) as raised:
        published(
            lesson, *(make(lesson, f"d{n}", f"## S\n\nhay {n}\n") for n in range(70))
        )
    assert raised.value.reason == "model_changed"


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("digest", ["", "abc", "A" * 64, f"sha256:{'a' * 64}"])
def test_a_digest_is_64_lower_case_hex_digits(lesson, library, server, digest):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    env = {**server.embed_env(), "EMBED_DIGEST": digest, "LIBRARY": library}
    result = lesson.run("--json", "shorn sheep", **env)
    assert result.status == 1 and "digest" in result.json["message"]
    assert server.requests == []


@pytest.mark.lessons(*SPEAKING)
def test_a_model_that_is_not_installed_is_missing(lesson, embedding, monkeypatch):
    monkeypatch.setenv("EMBED_MODEL", "nope")
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "model_missing"


@pytest.mark.lessons(*SPEAKING)
def test_two_models_of_one_name_are_not_one_model(lesson, embedding):
    embedding.add_model(EMBED_MODEL, like=EMBED_MODEL)
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "model_changed"


@pytest.mark.lessons(*SPEAKING)
def test_a_model_that_is_listed_twice_has_not_changed(lesson, embedding):
    digest = embedding.digest(EMBED_MODEL)
    embedding.add_model(EMBED_MODEL, like=EMBED_MODEL, digest=digest)
    with pytest.raises(ValueError, match="once") as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "server_error"


def misbehave(server, how: str) -> None:
    """Let the server fail at the next text to embed, or at the list of models."""
    path = "/api/embed"
    if how == "list":
        server.answer([], path="/api/tags", times=None)
    elif how == "list of nothing":
        server.answer({"models": [{}]}, path="/api/tags", times=None)
    elif how == "list fails":
        server.fail(500, path="/api/tags", times=None)
    elif how == "prose":
        server.answer("no JSON", path=path, times=None)
    elif how == "error in 200":
        server.answer({"error": "no"}, path=path, times=None)
    elif how == "too few":
        server.answer({"model": "m", "embeddings": []}, path=path, times=None)
    elif how == "words":
        body = {"model": "m", "embeddings": [["a"]]}
        server.answer(body, path=path, times=None)
    elif how in ("cut", "drop"):
        getattr(server, how)(path=path, times=None)
    else:
        server.fail(int(how), path=path, times=None)


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize(
    "how",
    ["list", "list of nothing", "list fails", "prose", "error in 200", "too few"]
    + ["words", "cut", "drop", "400", "404", "500", "503"],
)
def test_whatever_the_server_does_there_is_a_reason_and_no_traceback(
    lesson, library, server, how
):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    misbehave(server, how)
    env = {"LIBRARY": library, **server.embed_env()}
    result = lesson.run("--json", "shorn sheep", **env)
    assert result.status == 1 and result.json["status"] == "error", result.stderr
    assert result.json["reason"] in ("server_error", "model_missing")
    assert "Traceback" not in result.stderr and result.stderr.startswith("error: ")


@pytest.mark.lessons(*SPEAKING)
def test_a_model_that_cannot_embed_is_an_error_of_the_server(
    lesson, server, monkeypatch
):
    for name, value in server.embed_env("smollm2:135m").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="does not support embeddings") as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "server_error"


@pytest.mark.lessons(*SPEAKING)
def test_a_server_that_is_not_there_is_unreachable(lesson, library, server):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    with refusing() as address:
        env = {**server.embed_env(), "OLLAMA_HOST": address, "LIBRARY": library}
        result = lesson.run("--json", "shorn sheep", **env)
    assert result.status == 1 and result.json["reason"] == "unreachable"


@pytest.mark.lessons(*SPEAKING)
def test_a_server_that_never_answers_is_given_up(lesson, embedding, monkeypatch):
    embeddings = lesson.load("embeddings")
    hurried = functools.partial(embeddings.embed, seconds=0.2)
    monkeypatch.setattr(embeddings, "embed", hurried)
    embedding.hang(path="/api/embed")
    with pytest.raises(ValueError) as raised:
        embeddings.get_embedder()
    assert raised.value.reason == "timeout"


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("path", ["/api/embed", "/api/tags"])
@pytest.mark.parametrize(
    "begun", [HEAD + b"Content-Length: 9000\r\n\r\n", HEAD + b"X: "]
)
def test_a_server_that_drips_is_given_up(lesson, embedding, monkeypatch, path, begun):
    """Each silence is short, and the answer never ends."""
    embeddings = lesson.load("embeddings")
    hurried = functools.partial(embeddings.embed, seconds=0.5)
    monkeypatch.setattr(embeddings, "embed", hurried)
    monkeypatch.setattr(lesson.load("server"), "CONNECT_SECONDS", 0.5)
    embedding.drip(begun, path=path)
    started = time.monotonic()
    with pytest.raises(ValueError) as raised:
        embeddings.get_embedder()
    assert raised.value.reason == "timeout" and time.monotonic() - started < 5


@pytest.mark.lessons(*SPEAKING)
def test_the_key_of_the_environment_stays_here(lesson, embedding, monkeypatch):
    """The client sends it to any server, and this one may be another machine."""
    monkeypatch.setenv("OLLAMA_API_KEY", "secret-key")
    lesson.load("embeddings").get_embedder()
    assert {r.path for r in embedding.requests} == {"/api/tags", "/api/embed"}
    assert not any("secret" in str(request.headers) for request in embedding.requests)


@pytest.mark.lessons(*SPEAKING)
def test_what_the_server_says_of_its_list_is_told(lesson, library, server):
    """In one line, and no list counts that came with an error."""
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    models = [model.listed() for model in server.models]
    for body in ({"error": "boom\n\nfound: all\r\nis well"}, {"models": models}):
        server.answer(body, 500, path="/api/tags")
        result = lesson.run("shorn sheep", LIBRARY=library, **server.embed_env())
        assert result.status == 1 and result.stderr.count("\n") == 1
        assert "server_error" in result.stderr or lesson.number == 8
        assert ("boom found: all is well" in result.stderr) == ("error" in body)


@pytest.mark.lessons(*SPEAKING)
def test_no_list_of_models_is_no_missing_model(lesson, embedding):
    embedding.answer("404 page not found", 404, "text/plain", path="/api/tags")
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "server_error"


VECTORS = {
    "longer": [0.5] * 385,
    "shorter": [1.0],
    "empty": [],
    "not a number": [math.nan, *[0.0] * 383],
    "without end": [*[0.0] * 383, -math.inf],
    "too large to be kept": [1e300, *[0.0] * 383],
}


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("place", [0, 1])
def test_a_vector_of_another_kind_is_an_error_of_the_server(
    lesson, embedding, name, place
):
    """One vector that is not as the others, and nothing of the library is published."""
    document = make(lesson, "sheep", f"## Wool\n\n{SHEEP}\n\n## Hay\n\nDry hay.\n")
    vectors = [[1.0, *[0.0] * 383] for _ in range(2)]
    vectors[place] = VECTORS[name]
    reply = {"model": EMBED_MODEL, "embeddings": vectors}
    embedding.after("/api/embed", lambda: embedding.answer(reply, path="/api/embed"))
    path = lesson.home / "odd.db"
    with pytest.raises(ValueError) as raised:
        lesson.load("store").publish(path, [document])
    assert raised.value.reason == "server_error"
    assert not ids_of_file(path)


def ids_of_file(path: Path) -> list:
    """What is published in a file, which may be none."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT name FROM sqlite_master").fetchall()


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("name", ["empty", "not a number", "without end"])
def test_a_try_that_gives_no_vector_is_an_error_of_the_server(lesson, embedding, name):
    reply = {"model": EMBED_MODEL, "embeddings": [VECTORS[name]]}
    embedding.answer(reply, path="/api/embed")
    with pytest.raises(ValueError) as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "server_error"


@pytest.mark.lessons(*SPEAKING)
def test_a_proxy_in_the_environment_is_not_used(lesson, library, server):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    with refusing() as proxy:
        names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
        env = {**server.embed_env(), **dict.fromkeys(names, proxy), "NO_PROXY": ""}
        result = lesson.run("--json", "shorn sheep", LIBRARY=library, **env)
    assert result.status == 0, result.stderr


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize("path", ["/api/embed", "/api/tags"])
def test_a_redirect_carries_no_text_elsewhere(lesson, embedding, path):
    with OllamaServer() as other:
        embedding.redirect(other.url, path=path)
        with pytest.raises(ValueError) as raised:
            lesson.load("embeddings").get_embedder()
        assert raised.value.reason == "server_error" and other.requests == []


@pytest.mark.lessons(*SPEAKING)
def test_where_a_server_listens_to_all_it_is_asked_from_here(
    lesson, embedding, monkeypatch
):
    port = embedding.port
    for host in (f"0.0.0.0:{port}", f":{port}", f'"127.0.0.1:{port}"', embedding.url):
        monkeypatch.setenv("OLLAMA_HOST", host)
        assert lesson.load("embeddings").get_embedder().space.endswith(":384")


@pytest.mark.lessons(8)
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("localhost:5", "http://localhost:5"),
        ("[::1]", "http://[::1]:11434"),
        ("http://127.8.9.1:80/", "http://127.8.9.1:80"),
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        # With the scheme a port may be left out, and is the usual one of the scheme.
        ("http://localhost", "http://localhost"),
        ("HTTPS://localhost/", "https://localhost"),
        ("https://[::1]", "https://[::1]"),
        ("http://:5", "http://127.0.0.1:5"),
        ("https://0.0.0.0", "https://127.0.0.1"),
    ],
)
def test_addresses_of_this_machine(lesson, monkeypatch, host, address):
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert lesson.load("server").server_address() == address


@pytest.mark.lessons(8)
@pytest.mark.parametrize(
    "host",
    ["192.0.2.1:11434", "http://192.0.2.1", "ollama.example", "127.0.0.1.example"]
    + ["localhost.example:11434", "[2001:db8::1]:11434", "https://ollama.com"],
)
def test_another_machine_is_asked_only_if_that_is_allowed(lesson, monkeypatch, host):
    server = lesson.load("server")
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(server.ServerError) as raised:
        server.server_address()
    assert raised.value.reason == "not_local"
    monkeypatch.setenv("ALLOW_REMOTE_OLLAMA", "1")
    assert host.removeprefix("http://").split("/")[0] in server.server_address()


@pytest.mark.lessons(*SPEAKING)
@pytest.mark.parametrize(
    "host", ["a b", "127.0.0.1:x", "ftp://127.0.0.1", "127.0.0.1/v1"]
)
def test_what_is_no_address_is_told(lesson, library, server, host):
    library.write("a.md", f"# Sheep\n\n{SHEEP}\n")
    env = {**server.embed_env(), "OLLAMA_HOST": host, "LIBRARY": library}
    result = lesson.run("--json", "shorn sheep", **env)
    assert result.status == 1 and "OLLAMA_HOST" in result.json["message"]


@pytest.mark.lessons(*SPEAKING)
def test_without_the_client_the_app_says_what_to_install(
    lesson, monkeypatch, embedding
):
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(ValueError, match="pip install ollama") as raised:
        lesson.load("embeddings").get_embedder()
    assert raised.value.reason == "client_missing"


@pytest.mark.lessons(*SPEAKING)
def test_the_time_to_load_the_client_is_not_the_servers(lesson, server):
    """On a busy machine the first import takes longer than a server may."""
    slow = lesson.home / "slow"
    slow.mkdir()
    (slow / "ollama.py").write_text(
        "import sys, time\ntime.sleep(1.5)\nsys.path.remove(sys.path[0])\n"
        "del sys.modules['ollama']\nimport ollama\n",
        encoding="utf-8",
    )
    code = (
        f"import sys; sys.path[:0] = [{str(slow)!r}, {str(lesson.folder)!r}]\n"
        "import server; server.CONNECT_SECONDS = 1.0\n"
        f"print(server.check_model({EMBED_MODEL!r}, {server.digest(EMBED_MODEL)!r}))\n"
    )
    env = lesson.environment(**server.embed_env())
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.stdout == "None\n", done.stderr
