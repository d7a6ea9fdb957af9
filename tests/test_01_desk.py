"""Lesson 01, the desk: a budget decides which notes go before whoever answers.

`assemble` holds until lesson 06; lesson 07 makes the choice a step of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

# The demonstration of each language: two budgets that can be met and one that cannot.
DEMONSTRATION = {
    "en": """\
budget=70, used=67
chosen: rule, refunds
left out: history, delivery
[rule] An answer names its source.
[refunds] Refunds take three to five working days.

budget=110, used=106
chosen: rule, refunds, history
left out: delivery
[rule] An answer names its source.
[refunds] Refunds take three to five working days.
[history] Yesterday we spoke about old addresses.

too small: 27 characters are required (rule), 7 more than the budget of 20

""",
    "ru": """\
бюджет=80, занято=72
выбрано: правило, возврат
не вошло: история, доставка
[правило] Ответ называет свой источник.
[возврат] Деньги возвращают за три–пять рабочих дней.

бюджет=110, занято=104
выбрано: правило, возврат, история
не вошло: доставка
[правило] Ответ называет свой источник.
[возврат] Деньги возвращают за три–пять рабочих дней.
[история] Вчера говорили о старых адресах.

малый бюджет: 29 characters are required (правило), 9 more than the budget of 20

""",
    "zh": """\
预算=20，已用=19
选入：规则、退款
暂未选入：历史、配送
[规则] 回答注明来源
[退款] 退款一般三到五个工作日到账

预算=30，已用=27
选入：规则、退款、历史
暂未选入：配送
[规则] 回答注明来源
[退款] 退款一般三到五个工作日到账
[历史] 昨天谈到了旧地址

小预算：6 characters are required (规则), 3 more than the budget of 3

""",
}
LENGTHS = {"en": [27, 40, 39, 24], "ru": [29, 43, 32, 26], "zh": [6, 13, 8, 6]}


def names(notes):
    return [note.name for note in notes]


def plain_assemble(fragments, budget):
    """The definition of `assemble`, without any care for a wrong budget."""
    chosen = [note for note in fragments if note.required]
    room = budget - sum(len(note.text) for note in chosen)
    if room < 0:
        return None
    skipped = []
    waiting = [note for note in fragments if not note.required]
    while waiting:
        best = min(waiting, key=lambda n: (-n.relevance, len(n.text), n.name))
        waiting.remove(best)
        if len(best.text) <= room:
            chosen.append(best)
            room -= len(best.text)
        else:
            skipped.append(best.name)
    return names(chosen), skipped, budget - room


@st.composite
def notes(draw):
    """Notes as (name, text, relevance, required), with many ties, each name once."""
    relevances = st.sampled_from([0, 1, 2, 2.5, 7])
    lengths = st.integers(0, 8)
    count = draw(st.integers(0, 7))
    return [
        (
            f"n{number}",
            "字" * draw(lengths),
            draw(relevances),
            draw(st.sampled_from([False, False, False, True])),
        )
        for number in draw(st.permutations(range(count)))
    ]


# ---------------------------------------------------------------- assemble


@pytest.mark.lessons(1, 6)
def test_a_fragment_is_a_frozen_record_that_is_not_required_by_default(lesson):
    Fragment = lesson.load("app").Fragment
    note = Fragment("name", "text", 3)
    assert (note.name, note.text, note.relevance, note.required) == (
        "name",
        "text",
        3,
        False,
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        note.text = "other"


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_three_things_are_returned(lesson):
    app = lesson.load("app")
    note = app.Fragment("a", "x" * 10, 1)
    result = app.assemble([note], 10)
    assert isinstance(result, tuple) and len(result) == 3, (
        "assemble returns three things: the chosen notes, the names of the "
        f"skipped ones and the characters used; it returned {result!r}"
    )
    chosen, skipped, used = result
    assert chosen, "a note of 10 fits a budget of 10, and is to be chosen"
    assert all(each is note for each in chosen), (
        "the chosen notes are the fragments themselves, not their names or texts"
    )
    assert not skipped, "what was chosen is not named among the skipped ones"
    assert used == 10, "`used` is the number of characters of the chosen texts"


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_a_note_without_room_stays_whole_and_is_named(lesson):
    app = lesson.load("app")
    chosen, skipped, used = app.assemble([app.Fragment("a", "x" * 10, 1)], 9)
    assert all(len(note.text) == 10 for note in chosen), (
        "a note goes in whole or not at all: its text must not be cut to fit"
    )
    assert not chosen, "10 characters were chosen for 9: the budget is exceeded"
    assert list(skipped) == ["a"], "a note that has no room is named as skipped"
    assert used == 0


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_after_a_note_that_does_not_fit_the_next_is_tried(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("long", "x" * 900, 9),
        app.Fragment("a", "x" * 30, 5),
        app.Fragment("b", "x" * 30, 4),
    ]
    chosen, skipped, used = app.assemble(fragments, 61)
    assert names(chosen) == ["a", "b"], (
        "a note that does not fit must not end the search: the next is to be tried"
    )
    assert (list(skipped), used) == (["long"], 60)


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_equal_relevance_is_settled_by_length_and_then_by_name(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("b", "xx", 1),
        app.Fragment("a", "yy", 1),
        app.Fragment("c", "x", 1),
    ]
    for order in itertools.permutations(fragments):
        chosen, _, _ = app.assemble(list(order), 9)
        assert names(chosen) == ["c", "a", "b"], (
            "equal relevance: the shorter first, then by name, in whatever order "
            "the notes were given"
        )


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_required_notes_come_first_in_the_given_order(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("best", "x", 99),
        app.Fragment("z", "xxx", 0, True),
        app.Fragment("a", "x", 5, True),
    ]
    chosen, _, _ = app.assemble(fragments, 10)
    assert names(chosen) == ["z", "a", "best"], (
        "required notes come first, in the order in which they were given"
    )


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_an_optional_note_never_takes_the_room_of_a_required_one(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("small", "x" * 30, 100),
        app.Fragment("must", "x" * 900, 0, True),
    ]
    with pytest.raises(ValueError, match="must"):
        app.assemble(fragments, 200)
        pytest.fail("a required note of 900 does not fit 200: that is a ValueError")


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_required_notes_that_do_not_fit_are_an_error_with_names_and_figures(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("rule", "x" * 50, 0, True),
        app.Fragment("optional-1", "x" * 5, 3),
        app.Fragment("правило", "x" * 40, 0, True),
    ]
    with pytest.raises(ValueError) as error:
        app.assemble(fragments, 73)
    message = str(error.value)
    assert {"rule", "правило"} <= set(re.findall(r"\w+", message)), (
        f"the error must name all required notes; it says: {message}"
    )
    assert "17" in message, (
        f"90 characters for a budget of 73: the error must say that 17 are missing; "
        f"it says: {message}"
    )
    assert "optional-1" not in message, f"an optional note is not to blame: {message}"


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
@pytest.mark.parametrize(
    "budget", [True, False, -1, 2.0, 20.5, "20", None], ids=lambda value: repr(value)
)
def test_a_budget_that_is_no_whole_number_from_0_on_is_refused(lesson, budget):
    app = lesson.load("app")
    with pytest.raises(ValueError):
        app.assemble([app.Fragment("a", "x", 1)], budget)
        pytest.fail(f"a budget of {budget!r} must be refused with a ValueError")


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_a_budget_of_nothing_is_legal_and_leaves_out_everything_with_a_text(lesson):
    app = lesson.load("app")
    assert app.assemble([], 0) == ([], [], 0)
    fragments = [app.Fragment("a", "x", 1), app.Fragment("empty", "", 1)]
    chosen, skipped, used = app.assemble(fragments, 0)
    assert (names(chosen), list(skipped), used) == (["empty"], ["a"], 0)


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
def test_what_fits_is_chosen_by_relevance_and_the_rest_is_named(lesson):
    app = lesson.load("app")
    fragments = [
        app.Fragment("rule", "r" * 6, 0, True),
        app.Fragment("delivery", "d" * 6, 1),
        app.Fragment("history", "h" * 8, 5),
        app.Fragment("refunds", "f" * 13, 10),
    ]
    for budget, wanted, left_out, used in [
        (20, ["rule", "refunds"], ["history", "delivery"], 19),
        (30, ["rule", "refunds", "history"], ["delivery"], 27),
        (33, ["rule", "refunds", "history", "delivery"], [], 33),
        (6, ["rule"], ["refunds", "history", "delivery"], 6),
    ]:
        chosen, skipped, spent = app.assemble(fragments, budget)
        assert names(chosen) == wanted, f"wrong notes were chosen for budget {budget}"
        assert list(skipped) == left_out, f"wrong notes are left out for {budget}"
        assert spent == used, f"wrong number of characters used for budget {budget}"


@pytest.mark.lessons(1, 6)
@pytest.mark.task("assemble")
@settings(max_examples=60)
@given(given_notes=notes(), budget=st.integers(0, 40))
@example(given_notes=[("a", "xxxxx", 2, False), ("b", "xx", 1, False)], budget=4)
def test_the_choice_is_that_of_the_plain_definition(lesson, given_notes, budget):
    app = lesson.load("app")
    fragments = [app.Fragment(*note) for note in given_notes]
    before = list(fragments)
    wanted = plain_assemble(fragments, budget)
    if wanted is None:
        with pytest.raises(ValueError):
            app.assemble(fragments, budget)
    else:
        chosen, skipped, used = app.assemble(fragments, budget)
        assert (names(chosen), list(skipped), used) == wanted, (
            "required ones first, then by relevance, length and name, whatever fits"
        )
        assert used == sum(len(note.text) for note in chosen) <= budget, (
            "the texts that were chosen exceed the budget"
        )
    assert fragments == before, "the list that was given must not be changed"


# ---------------------------------------------------------------- the demonstration


@pytest.mark.lessons(1, 1)
@pytest.mark.parametrize("lang", DEMONSTRATION)
def test_the_demonstration_prints_what_the_chapter_says(lesson, lang):
    result = lesson.run("--lang", lang)
    assert (result.stdout, result.stderr) == (DEMONSTRATION[lang], "")
    assert result.status == 0


@pytest.mark.lessons(1, 1)
def test_english_is_the_default_language(lesson):
    assert lesson.run().stdout == DEMONSTRATION["en"]


@pytest.mark.lessons(1, 1)
@pytest.mark.parametrize("lang", LENGTHS)
def test_each_language_has_the_same_four_facts_in_its_own_lengths(lesson, lang):
    fragments = lesson.load("app").FRAGMENTS[lang]
    assert [len(note.text) for note in fragments] == LENGTHS[lang]
    assert [note.relevance for note in fragments[1:]] == [10, 5, 1]
    assert [note.required for note in fragments] == [True, False, False, False]


def shown(app, capsys, lang, budget):
    """What `show` returns and the lines it prints; it must not raise."""
    try:
        result = app.show(lang, budget)
    except ValueError as error:
        pytest.fail(f"show must catch the ValueError of assemble ({error}) and say it")
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert result is not None, "show returns True or False"
    return result, lines


def refused_in_words(app, lang, budget):
    """The line of a refusal: its word in this language, and what `assemble` says."""
    with pytest.raises(ValueError) as error:
        app.assemble(app.FRAGMENTS[lang], budget)
    return f"{app.WORDS[lang][-1]}{error.value}"


@pytest.mark.lessons(1, 1)
@pytest.mark.task("show")
def test_the_report_has_its_lines_in_order(lesson, capsys):
    app = lesson.load("app")
    fits, lines = shown(app, capsys, "zh", 20)
    assert fits is True, "show says True where the required notes fit"
    head, chosen, skipped, *notes = [*lines, "", "", ""]
    assert head == "预算=20，已用=19", (
        "the first line has the budget, then the characters that are used of it"
    )
    assert chosen == "选入：规则、退款", "the second line names the chosen notes"
    assert skipped == "暂未选入：历史、配送", (
        "the third line names the notes that were left out"
    )
    assert [note for note in notes if note] == [
        "[规则] 回答注明来源",
        "[退款] 退款一般三到五个工作日到账",
    ], "then come the chosen notes, a line each: the name in brackets and the text"


@pytest.mark.lessons(1, 1)
@pytest.mark.task("show")
def test_where_nothing_is_chosen_or_left_out_the_report_says_none(lesson, capsys):
    app = lesson.load("app")
    _, lines = shown(app, capsys, "zh", 33)
    assert lines[:3] == [
        "预算=33，已用=33",
        "选入：规则、退款、历史、配送",
        "暂未选入：无",
    ], "where nothing is left out, the line says so: 暂未选入：无"
    app.FRAGMENTS["en"] = []
    _, lines = shown(app, capsys, "en", 9)
    assert lines[:3] == ["budget=9, used=0", "chosen: none", "left out: none"], (
        "where nothing is chosen, the line says so: chosen: none"
    )


@pytest.mark.lessons(1, 1)
@pytest.mark.task("show")
def test_required_notes_that_do_not_fit_are_told_in_one_line(lesson, capsys):
    app = lesson.load("app")
    fits, lines = shown(app, capsys, "zh", 3)
    assert fits is False, "show says False where the required notes do not fit"
    assert lines == [refused_in_words(app, "zh", 3)], (
        "where the required notes do not fit, one line says why, in assemble's words"
    )


@pytest.mark.lessons(1, 1)
@pytest.mark.task("show")
def test_a_mistake_of_the_program_is_not_told_as_a_refusal(lesson, monkeypatch):
    app = lesson.load("app")

    def broken(fragments, budget):
        raise TypeError("a mistake of the program")

    monkeypatch.setattr(app, "assemble", broken)
    with pytest.raises(TypeError):
        app.show("en", 20)
        pytest.fail("show catches a ValueError and no other error: this is a TypeError")


@pytest.mark.lessons(1, 1)
@pytest.mark.task("show")
@pytest.mark.parametrize("lang", DEMONSTRATION)
def test_the_report_is_the_same_in_each_language(lesson, lang, capsys):
    app = lesson.load("app")
    blocks = DEMONSTRATION[lang].split("\n\n")[:2]
    blocks.append(refused_in_words(app, lang, app.BUDGETS[lang][2]))
    for budget, wanted in zip(app.BUDGETS[lang], blocks, strict=True):
        _, lines = shown(app, capsys, lang, budget)
        assert lines == wanted.split("\n"), f"in {lang}, with a budget of {budget}"


@pytest.mark.lessons(1, 1)
def test_a_budget_of_ones_own_decides_the_exit_status(lesson):
    fits = lesson.run("--lang", "zh", "--budget", "26")
    assert fits.status == 0
    assert fits.stdout.splitlines()[:3] == [
        "预算=26，已用=25",
        "选入：规则、退款、配送",
        "暂未选入：历史",
    ]
    too_small = lesson.run("--lang", "zh", "--budget", "3")
    assert too_small.status == 1
    assert too_small.stdout.startswith("小预算：") and "规则" in too_small.stdout


@pytest.mark.lessons(1, 1)
@pytest.mark.parametrize("lang", DEMONSTRATION)
def test_a_budget_that_is_none_is_not_said_to_be_small(lesson, lang):
    result = lesson.run("--lang", lang, "--budget", "-1")
    assert result.status == 1
    assert result.stdout == "the budget must be a whole number from 0 on, not -1\n"


@pytest.mark.lessons(1, 1)
@pytest.mark.skipif(os.name != "posix", reason="pipes break in another way there")
@pytest.mark.parametrize("mode", [[], ["-u"]], ids=["at the end", "at once"])
def test_a_reader_that_stops_reading_is_no_reason_to_complain(lesson, mode):
    command = [sys.executable, *mode, *lesson.command()[1:]]
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, env=lesson.environment()
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.lessons(1, 1)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_full_disk_is_an_error_with_its_own_words(lesson):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            lesson.command(),
            stdout=full,
            stderr=subprocess.PIPE,
            env=lesson.environment(),
        )
    assert result.returncode == 1 and result.stderr.startswith(b"error: ")
    assert b"Traceback" not in result.stderr


@pytest.mark.lessons(1, 1)
@pytest.mark.parametrize("words", [["--budget", "x"], ["--lang", "de"], ["--nonsense"]])
def test_wrong_usage_ends_with_status_2(lesson, words):
    result = lesson.run(*words)
    assert result.status == 2 and result.stdout == ""
    assert "usage" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.lessons(1, 1)
def test_the_notes_print_on_a_console_that_lacks_their_letters(lesson):
    result = lesson.run("--lang", "zh", PYTHONIOENCODING="ascii:strict", LC_ALL="C")
    assert (result.status, result.stdout) == (0, DEMONSTRATION["zh"])
