"""Lesson 02, the shelf: Markdown files become documents, and relevance is computed.

What is said here about files, front matter, options and consoles holds on all later
lessons, so most tests run on each of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from unicodedata import east_asian_width

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

COURSE = Path(__file__).resolve().parent.parent
WINDOWS = os.name == "nt"
EXAMPLES = 20  # of each property, on each lesson

# What must never reach a terminal raw: C0 and C1 without tab and newline, and the
# marks that reorder a line.
DANGEROUS = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]]
DANGEROUS = [character for character in DANGEROUS if character not in "\t\n"]
DANGEROUS += "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
IN_ONE_LINE = "".join(character for character in DANGEROUS if character != "\r")

FOREIGN_KEYS = [
    "tags",
    "date",
    "author",
    "description",
    "layout",
    "slug",
    "weight",
    "draft",
    "language",
    "version",
    "summary",
    "created",
    "category",
    "source",
    "reviewed",
    "uid",
    "роль",
    "язык",
    "заголовок",
    "автор",
    "标题",
    "标签",
    "*",
]

# A Python that knows nothing of UTF-8, as on a bare server.
BARE_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass
class Result:
    """What a run left; like that of `lesson.run`."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


TEA = "---\nid: tea\ntitle: Tea\nurl: https://x.example/tea.php?a=1\n---\nGreen tea.\n"


def by_id(documents):
    return {document.id: document for document in documents}


def only(lesson, library, text, name="a.md"):
    """Write one file and return the one document that it must become."""
    library.write(name, text)
    documents, faults = lesson.load("library").load(library.folder)
    assert not faults, f"no fault was expected: {[str(fault) for fault in faults]}"
    assert len(documents) == 1
    return documents[0]


def only_fault(lesson, library, text, name="a.md"):
    """Write one file and return the one fault that it must be, beside a good file."""
    library.write(name, text)
    library.write("good.md", "Good.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert [document.id for document in documents] == ["good"], (
        "the faulty file must be left out, and the others load"
    )
    assert len(faults) == 1, f"one fault was expected: {[str(f) for f in faults]}"
    assert name in str(faults[0]), f"the fault does not name the file: {faults[0]}"
    return faults[0]


def loaded(lesson, files):
    """What `load` gives for files given as {name: bytes}, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        return lesson.load("library").load(folder)


def ask(lesson, *words, **env):
    """Run `main` of the app in this process: quick, for all but the console itself."""
    output, messages = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["app.py", *map(str, words)])
        for name, value in env.items():
            patch.setenv(name, str(value))
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
            try:
                status = lesson.load("app").main()
            except SystemExit as ended:  # argparse ends the program by itself
                status = ended.code
    return Result(status, output.getvalue(), messages.getvalue())


def told(faults):
    """Faults as plain values, so that those of two runs can be compared."""
    return [(fault.file, fault.line, fault.reason) for fault in faults]


# ---------------------------------------------------------------- what is a document


@pytest.mark.lessons(2)
def test_every_markdown_file_below_the_folder_is_loaded_and_sorted_by_id(
    lesson, library
):
    for name in ("z.md", "b/inner.MD", "b/deep/er.Md", "a.md", "Б.md", "notes.txt"):
        library.write(name, "Text.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert [d.id for d in documents] == ["a", "b/deep/er", "b/inner", "z", "Б"]
    assert faults == []
    assert lesson.load("library").load(str(library.folder))[0] == documents


@pytest.mark.lessons(2)
def test_hidden_files_and_folders_are_left_out_without_a_word(lesson, library):
    for name in (".hidden.md", ".git/a.md", "b/.cache/c.md", ".md", ".git/broken.md"):
        library.write(name, b"---\nnever closed \xff")
    library.write("seen.md", "Text.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert ([d.id for d in documents], faults) == (["seen"], [])


@pytest.mark.lessons(2)
def test_a_library_below_a_hidden_folder_is_a_library(lesson, library):
    library.write(".notes/a.md", "Text.\n")
    documents, _ = lesson.load("library").load(library.folder / ".notes")
    assert [document.id for document in documents] == ["a"]


@pytest.mark.lessons(2)
def test_a_folder_may_be_called_like_a_markdown_file(lesson, library):
    library.write("chapter.md/a.md", "Text.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert ([d.id for d in documents], faults) == (["chapter.md/a"], [])


@pytest.mark.lessons(2)
def test_front_matter_gives_the_fields_and_the_rest_is_the_body(lesson, library):
    document = only(
        lesson,
        library,
        "---\nid: one\ntitle: First\nurl: https://x.example/1.php?a=1&b=2\n"
        "lang: en\nrevision: 12\n---\n# Head\n\nText.\n",
    )
    assert (document.id, document.title, document.lang) == ("one", "First", "en")
    assert document.url == "https://x.example/1.php?a=1&b=2"
    assert document.revision == 12 and type(document.revision) is int
    assert document.body == "# Head\n\nText.\n"


@pytest.mark.lessons(2)
def test_without_front_matter_everything_comes_from_the_file(lesson, library):
    document = only(lesson, library, "Text.\n\n## Head line\n\nMore.\n", "sub/plain.md")
    assert (document.id, document.title) == ("sub/plain", "Head line")
    assert (document.url, document.lang, document.revision) == ("sub/plain.md", "", 1)
    assert document.body == "Text.\n\n## Head line\n\nMore.\n"


@pytest.mark.lessons(2)
def test_a_mark_of_places_in_a_name_is_none_in_the_address(lesson, library):
    document = only(lesson, library, "Tea.\n", "C# a b/F#.md")
    assert (document.id, document.url) == ("C# a b/F#", "C%23 a b/F%23.md")
    named = only(lesson, library, "---\nurl: /c#x\n---\nTea.\n", "C# a b/F#.md")
    assert named.url == "/c#x", "an address of its own is nobody's to change"


@pytest.mark.lessons(2)
def test_each_missing_key_has_its_default(lesson, library):
    document = only(lesson, library, "---\nlang: ru\n---\nNo heading.\n", "sub/x.y.md")
    assert (document.id, document.title) == ("sub/x.y", "x.y")
    assert (document.url, document.lang, document.revision) == ("sub/x.y.md", "ru", 1)


@pytest.mark.lessons(2)
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("#\tTabbed  \n", "Tabbed"),
        ("###### Six ##\n", "Six"),
        ("####### Seven\n\n# One\n", "One"),
        ("#hashtag\n\n# C#\n", "C#"),
        ("# #5 is a number\n", "#5 is a number"),
        ("# ##\n#\n# Real\n", "Real"),
        ("# Чай\u00a0и кофе\n", "Чай\u00a0и кофе"),
        ("    # code\n\n# Real\n", "Real"),
        ("```\n# not a heading\n```\n# Real\n", "Real"),
        ("~~~ sh\n# not a heading\n~~~\n# Real\n", "Real"),
        ("````\n```\n# not a heading\n```\n````\n# Real\n", "Real"),
        ("```\n# never closed\n", "a"),
        ("```inline``` code\n\n# Real\n", "Real"),
        ("", "a"),
    ],
)
def test_the_title_is_the_first_heading_or_the_name_of_the_file(
    lesson, library, body, title
):
    assert only(lesson, library, body).title == title


@pytest.mark.lessons(2)
def test_an_empty_title_or_url_is_a_missing_one(lesson, library):
    document = only(lesson, library, '---\ntitle: ""\nurl:\n---\n# Head\n')
    assert (document.title, document.url) == ("Head", "a.md")


@pytest.mark.lessons(2)
def test_ids_are_composed_characters(lesson, library):
    decomposed = unicodedata.normalize("NFD", "чай-é")
    document = only(lesson, library, f"---\nid: {decomposed}\n---\n")
    assert document.id == unicodedata.normalize("NFC", "чай-é")
    library.write(f"{unicodedata.normalize('NFD', 'кофей')}.md", "Text.\n")
    ids = [d.id for d in lesson.load("library").load(library.folder)[0]]
    assert "кофей" in ids, "the id from a file's name must be NFC too"


# ---------------------------------------------------------------- front matter


def front(lesson, *lines, words="nothing is wrong with these lines"):
    """What `front_matter` makes of a file with these lines, none of them faulty."""
    library = lesson.load("library")
    try:
        return library.front_matter(list(lines), "a.md")
    except library.Fault as fault:
        pytest.fail(f"{words}: {list(lines)}; it raised the Fault {fault}")


def refused(lesson, words, *lines):
    """The fault that `front_matter` must raise for a file with these lines."""
    library = lesson.load("library")
    try:
        result = library.front_matter(list(lines), "a.md")
    except library.Fault as fault:
        return fault
    pytest.fail(f"{words}: a Fault is to be raised; it returned {result!r}")


@pytest.fixture
def slips_seen(lesson, monkeypatch):
    """A `near_miss` that knows one slip: the exercise about it comes later."""
    library = lesson.load("library")
    monkeypatch.setattr(library, "near_miss", {"Title": "title"}.get)


@pytest.mark.lessons(2)
@pytest.mark.task("front_matter")
def test_front_matter_is_read_as_keys_and_the_place_where_the_body_begins(lesson):
    assert front(lesson, "# Tea", "---", "id: a", "---") == ({}, 0), (
        "where the first line is not ---, there is no front matter: no keys, body at 0"
    )
    assert front(lesson, "--- ", "id: a", "---") == ({}, 0), (
        "front matter opens with a first line of exactly ---, without a space"
    )
    values, first = front(lesson, "---", "id: a", "title: foo: bar", "---", "Text.")
    assert set(values) == {"id", "title"}, "the known keys are id and title"
    assert values["title"] == "foo: bar", "a colon inside a value belongs to the value"
    assert first == 4, "the body begins with the line behind the closing ---"
    words = "front matter closes with the next line ---, not with the last"
    _, first = front(lesson, "---", "id: a", "---", "", "---", "Two", words=words)
    assert first == 3, words


@pytest.mark.lessons(2)
@pytest.mark.task("front_matter")
def test_what_surrounds_a_value_and_what_is_not_for_us_is_passed_over(
    lesson, slips_seen
):
    values, _ = front(lesson, "---", 'title:   "Foo"  ', "lang: 'en'", "---")
    assert values == {"title": "Foo", "lang": "en"}, (
        "spaces and quotes around a value are not part of it"
    )
    values, _ = front(lesson, "---", "title: 'A' and \"B\"", "lang: en # no", "---")
    assert values == {"title": "'A' and \"B\"", "lang": "en # no"}, (
        "quotes go where they surround the whole value; a # in a value is no comment"
    )
    words = "a comment is a comment wherever it begins"
    values, _ = front(lesson, "---", "id: a", "  # note", "---", words=words)
    assert values == {"id": "a"}, words
    values, _ = front(lesson, "---", "id: 007", "lang: no", "---")
    assert values == {"id": "007", "lang": "no"}, (
        "a value stays the string that was written"
    )
    lines = ("tags:", "  id: b", "- c", "-", "", "# id: d", "  # e", "layout: f")
    values, _ = front(lesson, "---", "id: a", *lines, "---")
    assert values == {"id": "a"}, (
        "comments and keys of other programs are ignored, with what is indented or "
        "listed below them"
    )


@pytest.mark.lessons(2)
@pytest.mark.task("front_matter")
def test_front_matter_that_cannot_be_read_is_never_taken_for_none(lesson, slips_seen):
    for lines, words in [
        (["---", "id: a", "Text."], "front matter that never closes is no body"),
        (
            ["---", "id: a", "secret", "---"],
            "a line that is no key: value may be a rule",
        ),
        (
            ["---", "id: a", "id: b", "---"],
            "it is not ours to choose if a key is given twice",
        ),
        (["---", "title:", "  - x", "---"], "a list below a known key is no value"),
        (["---", "- x", "---"], "there is no key above this line of a list"),
        (["---", "revision: two", "---"], "two is no number of a revision"),
        (["---", "Title: x", "---"], "Title is a near miss of title"),
        (["---", "id: a", "--- ", "---"], "only a line of exactly --- closes it"),
    ]:
        refused(lesson, words, *lines)
    fault = refused(lesson, "prose is no key", "---", "", "prose", "---")
    assert (fault.file, fault.line) == ("a.md", 3), (
        "a fault names the file and the line, counted from 1 at the top of the file"
    )


@pytest.mark.lessons(2)
def test_a_colon_in_a_value_is_part_of_the_value(lesson, library):
    document = only(lesson, library, "---\ntitle: foo: bar: baz\n---\n")
    assert document.title == "foo: bar: baz"


@pytest.mark.lessons(2)
def test_values_stay_the_strings_that_were_written(lesson, library):
    document = only(
        lesson,
        library,
        "---\nid: 007\ntitle: 2024-05-01\nlang: no\nurl: 1e3\ndate: 2024-05-01\n---\n",
    )
    assert (document.id, document.title) == ("007", "2024-05-01")
    assert (document.lang, document.url) == ("no", "1e3")


@pytest.mark.lessons(2)
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"Foo: bar"', "Foo: bar"),
        ("'Foo'", "Foo"),
        ('"Tom\'s"', "Tom's"),
        ("Tom's", "Tom's"),
        ('"half', '"half'),
        ('"a" and "b"', '"a" and "b"'),
        ("C# # 5", "C# # 5"),
        ("[a, b]", "[a, b]"),
        ("{{x}}", "{{x}}"),
        ("~", "~"),
        ("null", "null"),
        ("  spaced  ", "spaced"),
    ],
)
def test_only_surrounding_quotes_and_spaces_are_removed(
    lesson, library, written, value
):
    assert only(lesson, library, f"---\ntitle: {written}\n---\n").title == value


@pytest.mark.lessons(2)
def test_unknown_keys_go_with_all_that_is_indented_or_listed_below_them(
    lesson, library
):
    document = only(
        lesson,
        library,
        "---\nid: a\ntags:\n  - one\n- two\n-\nmeta:\n  id: inner\n\ttitle: inner\n"
        "  deeper:\n    role: editor\ntitle: T\nдата выхода: вчера\n---\nBody.\n",
    )
    assert (document.id, document.title, document.body) == ("a", "T", "Body.\n")


@pytest.mark.lessons(2)
def test_comments_and_empty_lines_are_ignored(lesson, library):
    document = only(
        lesson, library, "---\n# title: No\n\nid: a\n   \n  # note\n#\n---\nBody.\n"
    )
    assert (document.id, document.title) == ("a", "a")


@pytest.mark.lessons(2)
def test_a_key_of_another_program_is_no_near_miss(lesson, library):
    for key in FOREIGN_KEYS:
        document = only(lesson, library, f"---\n{key}: x\n---\nBody.\n")
        assert document.body == "Body.\n"


@pytest.mark.lessons(2)
@pytest.mark.parametrize(
    "opener", ["--- ", " ---", "----", "--", "---x", "\n---", "+++", "\ufeff---"]
)
def test_only_a_first_line_of_exactly_three_hyphens_opens_front_matter(
    lesson, library, opener
):
    text = f"{opener}\ntitle: Not read\n---\nBody.\n"
    text = f"\ufeff{text}" if opener.startswith("\ufeff") else text
    document = only(lesson, library, text)
    assert document.title != "Not read"
    assert document.body.removeprefix("\ufeff") == text.lstrip("\ufeff"), (
        "no byte of the body may be lost"
    )


@pytest.mark.lessons(2)
@pytest.mark.task("front_matter")
def test_front_matter_closes_with_the_next_line_of_exactly_three_hyphens(
    lesson, library
):
    document = only(lesson, library, "---\ntitle: T\n---\n\nOne\n---\nTwo\n---\n")
    assert document.body == "\nOne\n---\nTwo\n---\n"
    empty = only(lesson, library, "---\n---\n---\n")
    assert empty.body == "---\n"


# ---------------------------------------------------------------- faults


@pytest.mark.lessons(2)
@pytest.mark.task("front_matter")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("---\nid: a\nno end\n", 1, ""),
        ("---", 1, ""),
        ("---\nid: a\n--- \n", 1, ""),
        ("---\nid: a\nprose\n---\n", 3, "prose"),
        ("---\n: x\n---\n", 2, ": x"),
        ("---\nid:a\n---\n", 2, "id:a"),
        ("---\n  indented: x\n---\n", 2, "indented"),
        ("---\n- listed\n---\n", 2, "listed"),
        ("---\nid: a\n  more: x\n---\n", 3, "more"),
        ("---\ntitle:\n  - x\n---\n", 3, "x"),
        ("---\ntitle: one\n\n# note\ntitle: two\n---\n", 5, "title"),
        ("---\nid: a\nid : a\n---\n", 3, "id"),
        ("---\nid:\n---\n", 2, "id"),
        ('---\nid: ""\n---\n', 2, "id"),
        ('---\nid: " "\n---\n', 2, "id"),
        ("---\nid: a\x07\n---\n", 2, "id"),
        ("---\nid: a\ntitle: \x1b[31mred\n---\n", 3, "title"),
        ("---\nurl: a\x9bb\n---\n", 2, "url"),
        ("---\nrevision: 0\n---\n", 2, "revision"),
        ("---\nrevision: -1\n---\n", 2, "revision"),
        ("---\nrevision: two\n---\n", 2, "revision"),
        ("---\nrevision: 1.5\n---\n", 2, "revision"),
        ("---\nrevision: ٣\n---\n", 2, "revision"),
        ("---\nrevision:\n---\n", 2, "revision"),
    ],
)
def test_front_matter_that_cannot_be_read_names_file_line_and_reason(
    lesson, library, text, line, words
):
    fault = only_fault(lesson, library, text)
    assert (fault.file, fault.line) == ("a.md", line), (
        f"a fault names the file and the line (from 1; a block that never closes is a "
        f"fault of line 1): {line}, not {fault.line}"
    )
    assert fault.reason and words in fault.reason, (
        f"the reason must name what is wrong, the key or the line ({words}): {fault}"
    )


@pytest.mark.lessons(2)
@pytest.mark.task("near_miss")
@pytest.mark.parametrize(
    ("key", "meant", "why"),
    [
        ("titel", "title", "two letters changed places"),
        ("lnag", "lang", "two letters changed places: alike to 0.75, that is enough"),
        ("revison", "revision", "a letter is missing"),
        ("titles", "title", "there is a letter too many"),
        ("Title", "title", "a capital letter makes no other key"),
        ("re-vision", "revision", "signs between the letters count for nothing"),
        ("U.R.L.", "url", "signs between the letters count for nothing"),
        ("_title", "title", "signs beside the letters count for nothing"),
        ("ｔｉｔｌｅ", "title", "wide letters are the same letters"),
        ("тitle", "title", "the first letter is Cyrillic and looks like a Latin one"),
    ],
)
def test_a_slip_in_a_known_key_is_seen_through(lesson, key, meant, why):
    found = lesson.load("library").near_miss(key)
    assert found == meant, f"{key!r} is meant to be {meant!r}: {why}"


@pytest.mark.lessons(2)
@pytest.mark.task("near_miss")
@pytest.mark.parametrize("key", FOREIGN_KEYS)
def test_an_honest_key_of_another_program_is_none_of_ours(lesson, key):
    found = lesson.load("library").near_miss(key)
    assert found is None, (
        f"{key!r} is a key of another program and not a slip for {found!r}: the first "
        "letter must agree, and most of the others"
    )


SLIPS = [
    ("Title", "title"),
    ("TITLE", "title"),
    ("titel", "title"),
    ("titles", "title"),
    ("ID", "id"),
    ("Id", "id"),
    ("Url", "url"),
    ("urls", "url"),
    ("Lang", "lang"),
    ("revison", "revision"),
    ("Revision", "revision"),
    ("re-vision", "revision"),
    ("ti\u200btle", "title"),
    ("ti\u00adtle", "title"),
    ("ｔｉｔｌｅ", "title"),
    ("\U0001d42d\U0001d422\U0001d42d\U0001d425\U0001d41e", "title"),
    ("títle", "title"),
    ("tıtle", "title"),
    ("іd", "id"),  # a Cyrillic first letter
    ("ІD", "id"),
    ("titlе", "title"),  # a Cyrillic last letter
    ("тitle", "title"),
    ("uгl", "url"),
    ("lаng", "lang"),
    ("rеvіsіоn", "revision"),
]


@pytest.mark.lessons(2)
@pytest.mark.task("near_miss")
@pytest.mark.parametrize(("key", "meant"), SLIPS)
def test_every_kind_of_slip_is_seen_through(lesson, key, meant):
    found = lesson.load("library").near_miss(key)
    assert found == meant, f"{key!r} is meant to be {meant!r}, not {found!r}"


@pytest.mark.lessons(2)
@pytest.mark.parametrize(("key", "meant"), SLIPS)
def test_a_near_miss_of_a_known_key_is_a_fault_that_names_the_key(
    lesson, library, key, meant
):
    fault = only_fault(lesson, library, f"---\nlayout: x\n{key}: value\n---\nBody.\n")
    assert (fault.line, repr(meant) in fault.reason) == (3, True), str(fault)


@pytest.mark.lessons(2)
@pytest.mark.parametrize("encoding", ["cp1251", "gbk", "utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_a_fault_not_mojibake(lesson, library, encoding):
    text = {"gbk": "退款一般三到五个工作日", "latin-1": "café"}.get(encoding, "Чай")
    fault = only_fault(lesson, library, text.encode(encoding))
    assert fault.line == 1 and "UTF-8" in fault.reason


@pytest.mark.lessons(2)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_the_line_that_is_not_utf8_is_the_one_that_is_named(lesson, library, end, mark):
    fault = only_fault(
        lesson, library, mark + end.join([b"one", b"two", b"\xfe", b"\xff"])
    )
    assert fault.line == 3


@pytest.mark.lessons(2)
def test_two_files_with_one_id_are_both_named_and_both_left_out(lesson, library):
    library.write("x/one.md", "---\nid: arrays\n---\nOne.\n")
    library.write("two.md", "---\nid: arrays\n---\nTwo.\n")
    library.write("three.md", "Three.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert [document.id for document in documents] == ["three"]
    assert sorted(fault.file for fault in faults) == ["two.md", "x/one.md"]
    assert all("arrays" in fault.reason for fault in faults)


@pytest.mark.lessons(2)
def test_ids_that_look_equal_are_one_id(lesson, library):
    for name, form in (("a.md", "NFC"), ("b.md", "NFD")):
        library.write(name, f"---\nid: {unicodedata.normalize(form, 'é')}\n---\nX.\n")
    library.write("c.md", "---\nid: d/e\n---\nX.\n")
    library.write("d/e.md", "X.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert documents == []
    assert sorted(f.file for f in faults) == ["a.md", "b.md", "c.md", "d/e.md"]


@pytest.mark.lessons(2)
def test_faults_come_in_the_same_order_every_time(lesson, library):
    for name in ("d.md", "b.md", "a.md", "c.md"):
        library.write(name, "---\nid: same\n---\n")
    _, faults = lesson.load("library").load(library.folder)
    assert [fault.file for fault in faults] == ["a.md", "b.md", "c.md", "d.md"]


@pytest.mark.lessons(2)
def test_a_library_that_is_no_folder_is_a_value_error_that_names_it(lesson, library):
    load = lesson.load("library").load
    file = library.write("file.md", "Text.\n")
    for path in (library.folder / "nowhere", file):
        with pytest.raises(ValueError, match=path.name):
            load(path)


@pytest.mark.lessons(2)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_leads_out_of_the_library_is_a_fault(
    lesson, library, tmp_path, kind
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(b"Secret.\n")
    library.write("good.md", "Good.\n")
    try:
        if kind == "file":
            (library.folder / "a.md").symlink_to(outside / "secret.md")
        else:
            (library.folder / "a").symlink_to(outside, target_is_directory=True)
    except OSError:
        pytest.skip("no links on this system")
    documents, faults = lesson.load("library").load(library.folder)
    assert [document.id for document in documents] == ["good"]
    assert [fault.file for fault in faults] == ["a.md" if kind == "file" else "a"]


@pytest.mark.lessons(2)
def test_links_in_a_circle_or_to_nothing_do_not_stop_the_others(lesson, library):
    library.write("good.md", "Good.\n")
    try:
        (library.folder / "circle.md").symlink_to("circle.md")
        (library.folder / "nothing.md").symlink_to("not-there.md")
        (library.folder / "up").symlink_to(".", target_is_directory=True)
    except OSError:
        pytest.skip("no links on this system")
    documents, faults = lesson.load("library").load(library.folder)
    assert [document.id for document in documents] == ["good"]
    assert [fault.file for fault in faults] == ["circle.md", "nothing.md"]


@pytest.mark.lessons(2)
def test_the_library_itself_may_be_a_link(lesson, library, tmp_path):
    library.write("good.md", "Good.\n")
    try:
        (tmp_path / "link").symlink_to(library.folder, target_is_directory=True)
    except OSError:
        pytest.skip("no links on this system")
    documents, faults = lesson.load("library").load(tmp_path / "link")
    assert ([document.id for document in documents], faults) == (["good"], [])


@pytest.mark.lessons(2)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_or_a_socket_with_a_markdown_name_is_a_fault_and_never_waited_for(
    lesson, library
):
    library.write("good.md", "Good tea.\n")
    os.mkfifo(library.folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(library.folder)  # the path of a socket must be short
            server.bind("socket.md")
        finally:
            os.chdir(here)
            os.close(here)
        result = lesson.run("tea", LIBRARY=library.folder, timeout=60)
    assert result.status == 0
    assert "pipe.md" in result.stderr and "socket.md" in result.stderr


@pytest.mark.lessons(2)
@pytest.mark.skipif(
    WINDOWS or os.geteuid() == 0, reason="whoever runs this may read everything"
)
def test_what_may_not_be_read_is_a_fault(lesson, library):
    library.write("good.md", "Good.\n")
    closed = [library.write("closed.md", "x"), library.write("sub/a.md", "x").parent]
    for path in closed:
        path.chmod(0)
    try:
        documents, faults = lesson.load("library").load(library.folder)
        assert [document.id for document in documents] == ["good"]
        assert [fault.file for fault in faults] == ["closed.md", "sub"]
        library.folder.chmod(0)
        with pytest.raises(ValueError, match="library"):
            lesson.load("library").load(library.folder)
    finally:
        for path in (library.folder, *closed):
            path.chmod(0o700)


@pytest.mark.lessons(2)
@pytest.mark.parametrize("name", [b"\xff.md", b"sub\xfe/a.md"], ids=["file", "folder"])
def test_a_name_that_is_no_text_is_a_fault_of_its_own(lesson, library, name):
    path = os.path.join(os.fsencode(library.folder), name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"tea\n")
    except (OSError, UnicodeError):
        pytest.skip("this system has no such names")
    library.write("good.md", TEA)
    documents, faults = lesson.load("library").load(library.folder)
    assert ([d.id for d in documents], len(faults)) == (["tea"], 1)
    result = lesson.run("tea", LIBRARY=library.folder)
    assert result.status == 0 and "Traceback" not in result.stderr
    assert re.search(r"\\udcf[ef]", result.stderr), "the name is shown with escapes"


@pytest.mark.lessons(2)
@pytest.mark.skipif(WINDOWS, reason="such names are refused by the system")
def test_a_name_cannot_forge_a_message(lesson, library):
    library.write("a\nleft out: good.md:1: forged.md", "tea\n")
    library.write("b\x1b[31m.md", "tea\n")
    library.write("good.md", TEA)
    result = lesson.run("tea", LIBRARY=library.folder)
    assert not re.search("^left out: good.md", result.stderr, re.MULTILINE)
    assert "\x1b" not in result.stderr
    documents, faults = lesson.load("library").load(library.folder)
    assert ([d.id for d in documents], len(faults)) == (["tea"], 2)


@pytest.mark.lessons(2)
def test_lines_full_of_spaces_cost_no_time_to_speak_of(lesson, library):
    spaces = " " * 100_000
    library.write("key.md", f"---\na{spaces}b\n---\n")
    library.write("quote.md", f"---\ntitle: '{spaces}\n---\n")
    library.write("head.md", f"# a{spaces}b\n# {spaces}\n" + "```\n" * 20_000)
    load = lesson.load("library").load
    before = time.process_time()
    documents, faults = load(library.folder)
    assert time.process_time() - before < 3, "the time grows with the square"
    assert ([d.id for d in documents], len(faults)) == (["head", "quote"], 1)
    assert len(str(faults[0])) < 1000, "a message is for a person to read"


@pytest.mark.lessons(2)
def test_the_course_library_loads_without_a_fault(lesson):
    documents, faults = lesson.load("library").load(COURSE / "shared" / "corpus")
    assert documents and [str(fault) for fault in faults] == []


# ---------------------------------------------------------------- any file at all

LINES = st.one_of(
    st.sampled_from(
        ["---", "", "--- ", "id: a", "title: A: b", "Title: x", "revision: 3", "- x"]
        + ["# Head", "  more: x", "tags:", "role: editor", "role:", "status: draft"]
        + ["```", "revision: x", "\ufeff---", "applies: a=b", "roles: [hr]", "key"]
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12
    ),
)
TEXTS = st.lists(LINES, max_size=8)
FRONT = st.lists(LINES, max_size=6).map(lambda lines: ["---", *lines])
FILES = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=30).map(lambda raw: b"---\n" + raw + b"\n---\n" + raw),
    st.one_of(TEXTS, FRONT).map(lambda lines: "\n".join(lines).encode()),
)


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(contents=st.lists(FILES, max_size=4))
@example(contents=[b"", b"\xef\xbb\xbf", b"---", b"\x00", b"\xff\xfe-\x00-\x00-\x00"])
def test_each_file_whatever_its_bytes_is_a_document_or_a_fault(lesson, contents):
    files = {f"f{number}.md": content for number, content in enumerate(contents)}
    documents, faults = loaded(lesson, files)
    assert len(documents) + len(faults) == len(files)
    assert [d.id for d in documents] == sorted({d.id for d in documents})
    for fault in faults:
        lines = len(re.split(rb"\r\n?|\n", files[fault.file]))
        assert 1 <= fault.line <= lines and fault.reason
        assert str(fault).startswith(f"{fault.file}:{fault.line}: ")
    for document in documents:
        assert document.id and document.title and document.url
        assert document.revision >= 1 and "\r" not in document.body


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(lines=st.one_of(TEXTS, FRONT))
@example(lines=["---", "id: a", "title: B", "---", "", "# Head", "", "Text", "---", ""])
@example(lines=["---", "id: a", "x"])
@example(lines=["one", "", "two"])
def test_all_line_ends_give_the_same_document_or_the_same_fault(lesson, lines):
    outcomes = []
    for end in ("\n", "\r\n", "\r"):
        documents, faults = loaded(lesson, {"a.md": end.join(lines).encode()})
        parts = []
        if lesson.number >= 3:
            split = lesson.load("library").split
            parts = [(part.id, part) for d in documents for part in split(d)]
        outcomes.append((documents, told(faults), parts))
    assert outcomes[0] == outcomes[1], "CRLF gives something else than LF"
    assert outcomes[0] == outcomes[2], "CR gives something else than LF"


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(lines=st.one_of(TEXTS, FRONT))
def test_a_byte_order_mark_changes_nothing(lesson, lines):
    text = "\n".join(lines).removeprefix("\ufeff").encode()
    documents, faults = loaded(lesson, {"a.md": text})
    marked, marked_faults = loaded(lesson, {"a.md": b"\xef\xbb\xbf" + text})
    assert (documents, told(faults)) == (marked, told(marked_faults))


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(lines=st.one_of(TEXTS, FRONT))
@example(lines=["---", "roles: [hr]", "---", "text"])
@example(lines=["---", "role: boss", "---", "text"])
def test_no_byte_of_the_body_is_lost_and_no_line_of_front_matter_becomes_body(
    lesson, lines
):
    lines = [line.removeprefix("\ufeff") for line in lines[:1]] + lines[1:]
    documents, faults = loaded(lesson, {"a.md": "\n".join(lines).encode()})
    if lines[:1] == ["---"] and "---" not in lines[1:]:
        assert faults, "front matter that never closes must be a fault"
    for document in documents:
        first = lines.index("---", 1) + 1 if lines[:1] == ["---"] else 0
        assert document.body == "\n".join(lines[first:])


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(
    values=st.dictionaries(
        st.sampled_from(["id", "title", "url", "lang"]),
        st.text(
            st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]),
            min_size=1,
            max_size=12,
        ).map(str.strip),
    ),
    quote=st.sampled_from(["", '"', "'"]),
)
def test_any_value_comes_back_as_the_string_that_was_written(lesson, values, quote):
    values = {k: v for k, v in values.items() if v and not set(v) & {"'", '"'}}
    front = "".join(f"{key}: {quote}{value}{quote}\n" for key, value in values.items())
    documents, faults = loaded(lesson, {"a.md": f"---\n{front}---\n".encode()})
    assert not faults, [str(fault) for fault in faults]
    for key, value in values.items():
        wanted = unicodedata.normalize("NFC", value) if key == "id" else value
        assert getattr(documents[0], key) == wanted


# ---------------------------------------------------------------- relevance


@pytest.mark.lessons(2, 3)
@pytest.mark.task("relevance")
@pytest.mark.parametrize(
    ("question", "wanted", "words"),
    [
        ("refunds", 1, "a word of the text counts once, however often it stands there"),
        ("take take take", 1, "a word that is repeated in the question counts once"),
        ("TAKE free", 2, "capital letters make no other word"),
        ("take, three!", 2, "signs beside a word are not part of it"),
        ("refund", 0, "a piece of a word is another word"),
        ("чАй?", 1, "words have letters of any language"),
        ("退货", 1, "each Chinese character is a word by itself"),
        ("three_to", 2, "an underscore is no letter"),
        ("hello world", 0, "nothing in common is 0"),
        ("", 0, "no words at all are 0"),
        ("?!", 0, "signs alone are no words"),
    ],
)
def test_relevance_counts_the_different_words_in_common(
    lesson, question, wanted, words
):
    text = "Free refunds take three to five working days: Refunds. Чай. 退款"
    found = lesson.load("library").relevance(question, text)
    assert found == wanted, words


@pytest.mark.lessons(2, 3)
@pytest.mark.task("relevance")
@settings(max_examples=EXAMPLES)
@given(question=st.text(max_size=20), text=st.text(max_size=20))
def test_any_two_texts_have_a_relevance(lesson, question, text):
    score = lesson.load("library").relevance(question, text)
    assert isinstance(score, int) and 0 <= score <= len(question)


# ---------------------------------------------------------------- asking


@pytest.mark.lessons(2, 2)
def test_whole_documents_are_chosen_by_relevance_under_the_budget(lesson, library):
    library.write("a.md", "---\ntitle: A\n---\ntea cup milk\n")
    library.write("b.md", "---\ntitle: B\n---\ntea cup\n")
    library.write("c.md", "---\ntitle: C\n---\ntea\n")
    library.write("d.md", "---\ntitle: D\n---\nother words only\n")
    library.write("e.md", "---\ntitle: tea\n---\n-\n")
    result = ask(lesson, "--json", "Tea, cup; MILK", LIBRARY=library.folder)
    answer = result.json
    assert [row["id"] for row in answer["rows"]] == ["a", "b", "e", "c"]
    assert answer["rows"][0]["body"] == "tea cup milk\n"
    assert (answer["status"], answer["skipped"]) == ("found", [])
    assert (answer["used"], answer["budget"]) == (27, 2400)
    small = ask(
        lesson, "--json", "--budget", "12", "tea cup milk", LIBRARY=library.folder
    ).json
    assert [row["id"] for row in small["rows"]] == ["b", "e"]
    assert (small["used"], small["skipped"], small["budget"]) == (10, ["a", "c"], 12)


@pytest.mark.lessons(2, 8)
def test_the_json_object_has_the_promised_keys(lesson, library):
    library.write("tea.md", TEA)
    result = ask(lesson, "--json", "green", LIBRARY=library.folder)
    assert set(result.json) == {"query", "status", "rows", "skipped", "used", "budget"}
    assert (result.json["query"], result.json["status"]) == ("green", "found")
    assert (result.json["budget"], result.status) == (2400, 0)
    (row,) = result.json["rows"]
    assert (row["title"], row["url"]) == ("Tea", "https://x.example/tea.php?a=1")


@pytest.mark.lessons(2, 8)
def test_nothing_found_and_nothing_fits_are_two_honest_answers(lesson, library):
    library.write("tea.md", TEA)
    nothing = ask(lesson, "--json", "zebra", LIBRARY=library.folder)
    assert (nothing.status, nothing.json["status"]) == (0, "nothing_found")
    assert (nothing.json["rows"], nothing.json["skipped"]) == ([], [])
    small = ask(lesson, "--json", "--budget", "3", "green", LIBRARY=library.folder)
    assert (small.status, small.json["status"]) == (0, "nothing_fits")
    assert (small.json["rows"], len(small.json["skipped"])) == ([], 1)
    assert small.json["used"] == 0
    person = ask(lesson, "--budget", "3", "green", LIBRARY=library.folder)
    assert person.stdout != ask(lesson, "zebra", LIBRARY=library.folder).stdout


@pytest.mark.lessons(2)
def test_json_is_one_object_and_nothing_else_even_with_faults(lesson, library):
    library.write("tea.md", TEA)
    library.write("bad.md", "---\nnever closed\n")
    result = ask(lesson, "--json", "green", LIBRARY=library.folder)
    assert result.status == 0 and isinstance(result.json, dict)
    assert "bad.md" in result.stderr and "bad.md" not in result.stdout


@pytest.mark.lessons(2)
def test_without_json_a_person_reads_title_address_and_text(lesson, library):
    library.write("tea.md", TEA)
    result = ask(lesson, "green", LIBRARY=library.folder)
    assert result.status == 0
    for words in ("Tea", "https://x.example/tea.php?a=1", "Green tea."):
        assert words in result.stdout
    library.write("long.md", "Blue " * 20_000)  # more than any budget has room for
    for words in (["green"], ["zebra"], ["blue"]):
        shown = ask(lesson, *words, LIBRARY=library.folder).stdout
        assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.lessons(2)
def test_long_lines_are_broken_for_80_columns_but_no_address_is(lesson, library):
    address = f"https://x.example/tea.php?{'page=1&' * 20}"
    prose = "Green tea is a drink of many words. " * 5
    library.write("a.md", f"---\ntitle: Tea\nurl: {address}\n---\n{prose}\n")
    env = {"LIBRARY": library.folder}
    shown = ask(lesson, "green tea", **env).stdout
    assert address in shown, "an address is never shortened or broken"
    assert prose.strip() in " ".join(shown.split()), "no word may get lost"
    assert all(len(line) <= 80 or address in line for line in shown.splitlines())
    assert prose.strip() in ask(lesson, "--json", "green tea", **env).stdout


@pytest.mark.lessons(2)
def test_chinese_is_broken_for_80_columns_where_a_line_may_end(lesson, library):
    prose = "退款需要三到五个工作日。“收据”（原件）一起寄回，见《章程》：第3条abc。" * 9
    library.write("a.md", f"---\ntitle: 退款\n---\n{prose}\n")
    shown = ask(lesson, "退款", LIBRARY=library.folder).stdout
    assert prose in shown.replace("\n", ""), "no character may get lost"
    lines = shown.splitlines()
    assert max(map(columns, lines)) <= 80
    assert sum(columns(line) > 70 for line in lines) >= 8, "lines are filled"
    for line in lines:
        assert line[:1] not in set("，。：”）》"), "no line begins with a closing mark"
        assert line[-1:] not in set("“（《"), "and none ends with an opening one"


@pytest.mark.lessons(2)
@given(
    words=st.lists(
        st.sampled_from(
            ["tea", "чай", "茶", "，", "（", " ", "  ", "\u00a0", "\u3000", "\u202f"]
            + ["\u2003", "\n", "“", "https://x.example/?a=1&b=2", "x" * 90, "é", "😀"]
        ),
        max_size=60,
    )
)
@example(words=["https://x.example/?", "x" * 90, "\u00a0", "tea"])
@settings(max_examples=EXAMPLES)
def test_breaking_lines_loses_nothing_but_spaces(lesson, words):
    text = "".join(words)
    shown = lesson.load("console").page(text)
    assert re.sub("[ \n]", "", shown) == re.sub("[ \n]", "", text)
    for line in shown.split("\n"):
        # What is longer has no place to break it.
        tail = re.sub(r"\w+://\S+$", "", line)
        assert columns(tail) <= 80 or " " not in tail.rstrip(" ")


def columns(line: str) -> int:
    """How many columns of a terminal a line takes."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.lessons(2)
def test_the_option_wins_over_the_environment(lesson, library, tmp_path):
    library.write("tea.md", TEA)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_bytes(b"# Other\n\nGreen zebra.\n")
    env = {"LIBRARY": library.folder}
    assert "Green tea" in ask(lesson, "green", **env).stdout
    result = ask(lesson, "--library", other, "green", **env)
    assert "Green zebra" in result.stdout and "Green tea" not in result.stdout


@pytest.mark.lessons(2)
def test_an_option_that_is_empty_is_not_one_that_is_missing(lesson, library):
    library.write("tea.md", TEA)
    result = ask(lesson, "--json", "--library", "", "green", LIBRARY=library.folder)
    assert result.status in (1, 2), "an empty --library must not mean the default"
    assert "green" not in result.stdout and "Traceback" not in result.stderr
    with pytest.raises(ValueError, match="library folder ''"):
        lesson.load("library").load("")


@pytest.mark.lessons(2)
def test_the_course_library_in_three_languages_is_the_default(lesson):
    documents, _ = lesson.load("library").load(lesson.load("library").default_library())
    assert {document.lang for document in documents} == {"en", "ru", "zh"}


@pytest.mark.lessons(2)
def test_outside_the_course_a_library_must_be_named(lesson, library, tmp_path):
    away = tmp_path / "away"
    shutil.copytree(lesson.folder, away, ignore=shutil.ignore_patterns("*.db*", "__*"))
    library.write("tea.md", TEA)

    def run(**env):
        return subprocess.run(
            [sys.executable, away / "app.py", "green"],
            capture_output=True,
            env=lesson.environment(**env),
            cwd=tmp_path,
        )

    without = run(LIBRARY=None)
    assert without.returncode == 1 and b"LIBRARY" in without.stderr
    assert b"Traceback" not in without.stderr
    named = run(LIBRARY=library.folder)
    assert named.returncode == 0 and b"Green tea" in named.stdout


@pytest.mark.lessons(2)
@pytest.mark.parametrize(
    ("mark", "end"), [(b"", b"\n"), (b"\xef\xbb\xbf", b"\r\n")], ids=["LF", "BOM"]
)
def test_the_question_may_come_from_standard_input(lesson, library, mark, end):
    library.write("tea.md", "# Чай\n\nЧай «зелёный».\n")
    asked = '"зелёный" чай'
    piped = lesson.run(
        "--json", "-", stdin=mark + asked.encode() + end, LIBRARY=library.folder
    )
    assert piped.status == 0 and piped.json["query"] == asked
    assert piped.json == ask(lesson, "--json", asked, LIBRARY=library.folder).json


@pytest.mark.lessons(2)
def test_standard_input_that_is_no_text_or_closed_is_a_fault_of_input(lesson, library):
    library.write("tea.md", TEA)
    result = lesson.run("--json", "-", stdin=b"\xff\xfe", LIBRARY=library.folder)
    assert (result.status, result.json["status"]) == (1, "error")
    assert "Traceback" not in result.stderr
    if not WINDOWS:
        closed = shell(lesson, "<&-", "--json", "-", LIBRARY=library.folder)
        assert json.loads(closed.stdout)["status"] == "error", (
            "without standard input there is no question, not even an empty one"
        )
        assert closed.returncode == 1 and b"Traceback" not in closed.stderr


@pytest.mark.lessons(2)
def test_a_failure_is_an_object_with_reason_and_message(lesson, tmp_path):
    missing = tmp_path / "нигде"
    result = ask(lesson, "--json", "--library", missing, "tea")
    assert result.status == 1
    assert {"status", "reason", "message"} <= set(result.json)
    assert result.json["status"] == "error" and result.json["reason"]
    assert "нигде" in result.json["message"] and "нигде" in result.stderr
    person = ask(lesson, "--library", missing, "tea")
    assert (person.status, person.stdout) == (1, "")
    assert "нигде" in person.stderr and "Traceback" not in person.stderr


@pytest.mark.lessons(2)
def test_a_negative_budget_is_a_fault_of_input_and_no_number_is_wrong_usage(
    lesson, library
):
    library.write("tea.md", TEA)
    result = ask(lesson, "--json", "--budget", "-1", "green", LIBRARY=library.folder)
    assert (result.status, result.json["status"]) == (1, "error")
    assert "budget" in result.json["message"] and "-1" in result.json["message"]
    result = ask(lesson, "--budget", "much", "green", LIBRARY=library.folder)
    assert (result.status, result.stdout) == (2, "")


@pytest.mark.lessons(2)
def test_wrong_usage_is_told_with_status_2(lesson):
    for words in ([], ["--nonsense"], ["a", "b"]):
        result = ask(lesson, *words)
        assert (result.status, result.stdout) == (2, "")
        assert "usage" in result.stderr
    process = lesson.run("--nonsense")
    assert (process.status, process.stdout) == (2, "")
    assert "usage" in process.stderr and "Traceback" not in process.stderr


@pytest.mark.lessons(2)
@settings(max_examples=EXAMPLES)
@given(question=st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
@example(question="")
@example(question="a (b")
@example(question='"unclosed')
@example(question="AND")
@example(question="*")
@example(question="''")
@example(question="user's C++ path:x state-of-the-art 20.04")
@example(question="\x00 𝒳 \u202e")
@example(question="\ud800")
def test_any_text_is_a_legal_question(lesson, library, question):
    library.write("tea.md", TEA)
    with pytest.MonkeyPatch.context() as patch:
        # Arguments cannot hold everything that standard input can.
        patch.setattr(
            lesson.load("app"),
            "open",
            lambda *_: io.BytesIO(question.encode("utf-8", "replace")),
            raising=False,
        )
        result = ask(lesson, "--json", "-", LIBRARY=library.folder)
    assert (result.status, result.stderr.count("Traceback")) == (0, 0)
    wanted = question.encode("utf-8", "replace").decode("utf-8-sig").strip()
    assert result.json["query"] == wanted


@pytest.mark.lessons(2)
@pytest.mark.skipif(WINDOWS, reason="arguments are text there")
def test_a_question_that_is_no_utf8_is_read_as_far_as_it_goes(lesson, library):
    library.write("tea.md", TEA)
    question = os.fsdecode(b"green \xff\xfe")
    result = lesson.run("--json", question, LIBRARY=library.folder)
    assert result.status == 0 and result.json["query"] == "green \ufffd\ufffd"


# ---------------------------------------------------------------- consoles


@pytest.mark.lessons(2)
@pytest.mark.parametrize("encoding", ["ascii:strict", "cp1251:strict"])
def test_output_is_utf8_whatever_the_console_says(lesson, library, encoding):
    text = "Чай → готов ✓, цена 5 ₽, ударе́ние — да. 退款一般 🫖"
    library.write("tea.md", f"# Чай ✓\n\n{text}\n")
    library.write("плохо ✗.md", "---\n")
    env = {"LIBRARY": library.folder, "PYTHONIOENCODING": encoding}
    json = ["--json"] if encoding.startswith("cp") else []
    result = lesson.run(*json, "чай", **env)
    assert result.status == 0 and text in result.stdout
    assert "плохо ✗.md" in result.stderr


@pytest.mark.lessons(2)
def test_a_bare_locale_gives_the_same_answer_from_the_same_files(
    lesson, library, tmp_path
):
    shelf = tmp_path / "полка 书架"
    (shelf / "раздел").mkdir(parents=True)
    (shelf / "раздел" / "чай.md").write_bytes("Зелёный чай.\n".encode())
    (shelf / "退款.md").write_bytes("Зелёный чай и 退款.\n".encode())
    question = ["--json", "--library", shelf, "зелёный чай"]
    usual = lesson.run(*question)
    bare = lesson.run(*question, LIBRARY_DB=tmp_path / "bare.db", **BARE_LOCALE)
    assert usual.status == bare.status == 0
    assert "раздел/чай" in usual.stdout
    assert bare.stdout == usual.stdout, "the locale changes the answer"
    assert "left out" not in bare.stderr
    named = lesson.run("--json", "退款", LIBRARY=shelf, **BARE_LOCALE)
    assert named.json["query"] == "退款" and "退款.md" in named.stdout


@pytest.mark.lessons(2)
def test_an_error_can_be_told_on_every_console(lesson, tmp_path):
    env = {"PYTHONIOENCODING": "cp1252:strict", **BARE_LOCALE}
    result = lesson.run("--library", tmp_path / "нигде ✗", "чай", **env)
    assert result.status == 1 and "error" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.lessons(2)
@pytest.mark.skipif(WINDOWS, reason="arguments are text there")
@pytest.mark.parametrize(
    "words",
    [
        ["--library", "нигде", "чай"],
        ["--budget", "нигде", "чай"],
        ["--нигде", "чай"],
    ],
)
def test_what_was_typed_is_told_in_its_own_letters(lesson, words):
    for json_too in [], ["--json"]:
        result = lesson.run(*json_too, *words, **BARE_LOCALE)
        assert result.status in (1, 2) and "нигде" in result.stderr
        assert "\\udc" not in result.stdout + result.stderr
        assert not result.stdout or "нигде" in result.stdout


@pytest.mark.lessons(2)
def test_control_characters_of_a_document_never_reach_the_terminal(lesson, library):
    heading = "".join(c for c in DANGEROUS if c not in "\r\x0b\x0c\x85\x1c\x1d\x1e")
    library.write("a.md", f"# Tea {heading}\n\nGreen tea {IN_ONE_LINE} \x1b]0;x\x07.\n")
    bidi = "".join(character for character in DANGEROUS if character >= "\u0600")
    library.write(
        "b.md",
        f"---\nid: b{bidi}\ntitle: Tea {bidi}\nurl: https://x.example/{bidi}\n---\n"
        "Green tea.\n",
    )
    library.write("c.md", "---\ntitle: Tea \x1b[31m\x9b\n---\nGreen tea.\n")
    library.write("d.md", f"---\n\x1b[31m{bidi}\n---\nGreen tea.\n")
    library.write("e.md", f"---\ntitle: x\n{bidi}\x07Title: x\n---\nGreen tea.\n")
    if not WINDOWS:
        library.write(f"f{bidi}.md", "---\n")
        wrong = lesson.run("--library", library.folder / "\x1b[31m\u202e", "tea")
        assert wrong.status == 1 and not set(wrong.stderr) & set(DANGEROUS)
    question = "green tea \x1b[31m\u202e\x9b"
    for words in ([question], ["--json", question]):
        result = lesson.run(*words, LIBRARY=library.folder)
        assert result.status == 0
        for output in (result.stdout, result.stderr):
            raw = sorted({hex(ord(c)) for c in output if c in DANGEROUS})
            assert not raw, f"raw on the terminal: {raw}"
    assert result.json["query"] == question
    assert "\\u202e" in result.stdout.lower(), "the mark is shown as an escape"


@pytest.mark.lessons(2)
@settings(max_examples=100)
@given(text=st.text())
@example(text="".join(DANGEROUS) + "\t\n\u2028\u2029")
def test_a_safe_text_has_no_controls_and_json_survives_it(lesson, text):
    safe = lesson.load("console").safe
    assert not set(safe(text)) & set(DANGEROUS)
    plain = "".join(character for character in text if character not in DANGEROUS)
    if plain == text and not set(text) & {"\u2028", "\u2029"}:
        assert safe(text) == text, "what is harmless stays as it is"
    assert json.loads(safe(json.dumps(text, ensure_ascii=False))) == text


def shell(lesson, redirection, *words, **env):
    """Run app.py by a POSIX shell with a redirection."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *lesson.command(*words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=lesson.environment(**env),
        timeout=60,
    )


@pytest.mark.lessons(2)
@pytest.mark.skipif(WINDOWS, reason="pipes break in another way there")
def test_a_reader_that_stops_reading_is_no_reason_to_complain(lesson, library):
    library.write("tea.md", TEA + "Green tea.\n" * 20_000)
    lesson.run("green", LIBRARY=library.folder)
    for words in (["green", "--budget", "999999"], ["--json", "zebra"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            lesson.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            env=lesson.environment(LIBRARY=library.folder),
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.lessons(2)
@pytest.mark.skipif(WINDOWS, reason="there is no such shell")
def test_a_closed_output_does_not_stop_the_program(lesson, library):
    library.write("tea.md", TEA)
    lesson.run("green", LIBRARY=library.folder)
    closed = shell(lesson, ">&-", "green", LIBRARY=library.folder)
    assert (closed.returncode, closed.stderr) == (0, b"")
    silent = shell(lesson, "2>&-", "green", LIBRARY=library.folder)
    assert silent.returncode == 0 and b"Green tea" in silent.stdout


@pytest.mark.lessons(2)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk is ever full here")
def test_a_full_disk_is_an_error_with_its_own_words(lesson, library):
    library.write("tea.md", TEA)
    full = shell(lesson, ">/dev/full", "green", LIBRARY=library.folder)
    assert full.returncode == 1 and b"error" in full.stderr
    assert b"Traceback" not in full.stderr and b"ignored" not in full.stderr


@pytest.mark.lessons(2)
def test_ctrl_c_ends_the_program_without_a_traceback(lesson, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), "ascii"))
    with pytest.raises(SystemExit) as ended:
        lesson.load("console").run(interrupted)
    assert ended.value.code == 130


@pytest.mark.lessons(2)
def test_redirected_output_is_the_same_text(lesson, library, tmp_path):
    library.write("tea.md", "# Чай\n\nЗелёный чай → ✓\n")
    shown = lesson.run("чай", LIBRARY=library.folder)
    with open(tmp_path / "out.txt", "wb") as file:
        done = subprocess.run(
            lesson.command("чай"),
            stdin=subprocess.DEVNULL,
            stdout=file,
            env=lesson.environment(LIBRARY=library.folder),
        )
    assert done.returncode == 0
    written = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert written == shown.stdout
