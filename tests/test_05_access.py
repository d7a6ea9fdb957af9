"""Lesson 05, access: who may read what is decided before anything is counted.

The rules hold on all later lessons, and so does non-interference: what a role is told
is the same whether or not documents that it may not read exist.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

ROLES = ("reader", "editor")
STATUSES = ("published", "draft", "withdrawn")
# Who may read a document of this role and status: the whole rule as a table.
READERS = {
    ("reader", "published"): {"reader", "editor"},
    ("reader", "draft"): {"editor"},
    ("reader", "withdrawn"): set(),
    ("editor", "published"): {"editor"},
    ("editor", "draft"): {"editor"},
    ("editor", "withdrawn"): set(),
    ("", "published"): set(),
    ("", "draft"): set(),
    ("", "withdrawn"): set(),
}


@dataclass(frozen=True)
class Result:
    """What a run left; like that of `lesson.run`."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


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


def found(result):
    """Ids of the documents that a result rests on, whatever the lesson calls them."""
    answer = result.json
    rows = answer["rows"] if "rows" in answer else answer["sources"]
    return sorted({row["doc_id"] for row in rows})


def file(role=None, status=None, applies=None, body="Text.\n", title="T"):
    """A Markdown file; a field that is None is not written."""
    fields = {"title": title, "role": role, "status": status, "applies": applies}
    lines = [f"{key}: {value}" for key, value in fields.items() if value is not None]
    return "\n".join(["---", *lines, "---", body])


def one(lesson, library, **fields):
    """The document that a file with these fields becomes."""
    library.write("a.md", file(**fields))
    documents, faults = lesson.load("library").load(library.folder)
    assert not faults, [str(fault) for fault in faults]
    return documents[0]


# ---------------------------------------------------------------- front matter


@pytest.mark.lessons(5)
def test_a_document_without_rights_is_published_for_readers(lesson, library):
    document = one(lesson, library)
    assert (document.role, document.status) == ("reader", "published")
    assert tuple(document.applies) == ()
    library.write("a.md", "No front matter at all.\n")
    (document,), _ = lesson.load("library").load(library.folder)
    assert (document.role, document.status) == ("reader", "published")


@pytest.mark.lessons(5)
@pytest.mark.parametrize("written", ["", '""', "''", "   "])
def test_an_empty_role_means_nobody(lesson, library, written):
    document = one(lesson, library, role=written)
    assert document.role == ""
    for role in ROLES:
        assert lesson.load("access").visible([document], role) == []


@pytest.mark.lessons(5)
def test_role_status_and_facts_are_read(lesson, library):
    document = one(
        lesson,
        library,
        role="editor",
        status='"draft"',
        applies="channel=overseas, contract = old one ,канал=склад",
    )
    assert (document.role, document.status) == ("editor", "draft")
    assert dict(document.applies) == {
        "channel": "overseas",
        "contract": "old one",
        "канал": "склад",
    }
    assert tuple(one(lesson, library, applies="").applies) == ()


@pytest.mark.lessons(5)
@pytest.mark.parametrize(
    "line",
    [
        "role: boss",
        "role: Editor",
        "role: []",
        "role: [hr]",
        "role: reader, editor",
        "role: reader # all",
        "role: еditor",  # a Cyrillic first letter
        "role:\n  - editor",
        "role: editor\nrole: reader",
        "status:",
        "status: public",
        "status: Draft",
        "status: draft, old",
        "applies: channel",
        "applies: channel=",
        "applies: =overseas",
        "applies: channel=a=b",
        "applies: channel=a,",
        "applies: channel=a, channel=b",
        "applies: channel=a; contract",
        "applies: channel==a",
    ],
)
def test_a_right_that_cannot_be_read_leaves_the_file_out(lesson, library, line):
    library.write("a.md", f"---\ntitle: T\n{line}\n---\nText.\n")
    documents, faults = lesson.load("library").load(library.folder)
    if line == "applies: channel=a; contract":  # a value may hold a semicolon
        assert len(documents) == 1 and not faults
    else:
        assert documents == [], "whoever cannot be understood must not be made public"
        assert [fault.file for fault in faults] == ["a.md"]
        assert faults[0].line in (3, 4)


@pytest.mark.lessons(5)
@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("roles", "role"),
        ("Role", "role"),
        ("ROLE", "role"),
        ("rôle", "role"),
        ("rol", "role"),
        ("rule", "role"),
        ("rоle", "role"),  # Cyrillic о
        ("rolе", "role"),  # Cyrillic е
        ("ｒole", "role"),
        ("гole", "role"),  # Cyrillic г
        ("ro\u200ble", "role"),
        ("Status", "status"),
        ("ѕtatus", "status"),  # Cyrillic ѕ
        ("ѕtаtuѕ", "status"),
        ("statuts", "status"),
        ("stauts", "status"),
        ("Applies", "applies"),
        ("applys", "applies"),
        ("applies to", "applies"),
        ("аррlies", "applies"),  # Cyrillic а and р
    ],
)
def test_a_near_miss_of_a_right_leaves_the_file_out(lesson, library, key, meant):
    library.write("a.md", f"---\n{key}: editor\n---\nText.\n")
    documents, faults = lesson.load("library").load(library.folder)
    assert documents == [], f"{key!r} would have been read as no rule at all"
    assert [(f.line, repr(meant) in f.reason) for f in faults] == [(2, True)]


@pytest.mark.lessons(5)
def test_rights_survive_a_byte_order_mark_and_windows_line_ends(lesson, library):
    text = file(role="editor", status="draft").replace("\n", "\r\n")
    library.write("a.md", b"\xef\xbb\xbf" + text.encode())
    (document,), faults = lesson.load("library").load(library.folder)
    assert (document.role, document.status, faults) == ("editor", "draft", [])


# ---------------------------------------------------------------- the three decisions


def paper(lesson, id="a", **fields):
    """A document as it comes from a file; without fields, published for readers."""
    Document = lesson.load("library").Document
    return Document(id=id, title="T", url="u", body="Text.\n", lang="en", **fields)


@pytest.mark.lessons(5)
@pytest.mark.task("may_read")
@pytest.mark.parametrize(
    ("who", "role", "status", "wanted", "why"),
    [
        ("reader", "reader", "published", True, "this is what readers are for"),
        ("editor", "editor", "published", True, "editors read what is for editors"),
        ("reader", "", "published", False, "an empty role means nobody"),
        ("editor", "", "published", False, "an empty role means nobody, no editor"),
        ("editor", "", "draft", False, "an empty role means nobody, no editor"),
        ("editor", "reader", "published", True, "editors read what readers read, too"),
        ("editor", "reader", "draft", True, "editors read drafts, of any role"),
        ("editor", "editor", "draft", True, "editors read drafts, of any role"),
        ("reader", "reader", "draft", False, "readers read no drafts"),
        ("reader", "editor", "published", False, "readers read nothing for editors"),
        ("reader", "editor", "draft", False, "readers read nothing for editors"),
        ("reader", "reader", "withdrawn", False, "nobody reads what is withdrawn"),
        ("editor", "reader", "withdrawn", False, "nobody reads what is withdrawn"),
        ("editor", "editor", "withdrawn", False, "nobody reads what is withdrawn"),
        ("reader", "reader", "archived", False, "a status in no list is closed"),
        ("editor", "editor", "archived", False, "a status in no list is closed"),
        ("reader", "readers", "published", False, "a role in no list is closed"),
        ("editor", "readers", "published", False, "a role in no list is closed"),
        ("guest", "editor", "published", False, "an unknown role reads no more"),
        ("guest", "reader", "draft", False, "an unknown role reads no more"),
    ],
)
def test_role_and_status_together_decide_who_reads(
    lesson, who, role, status, wanted, why
):
    document = paper(lesson, role=role, status=status)
    found = lesson.load("access").may_read(who, document)
    assert isinstance(found, bool), "may_read says True or False"
    assert found is wanted, f"{who}, role {role!r}, status {status!r}: {why}"


@pytest.mark.lessons(5)
@pytest.mark.task("visible")
def test_the_visible_documents_are_those_that_were_given(lesson):
    visible = lesson.load("access").visible
    fields = {
        "b": {},
        "d": {"role": "editor"},
        "a": {"status": "draft"},
        "e": {"role": ""},
        "c": {},
    }
    documents = [paper(lesson, id, **each) for id, each in fields.items()]
    for role, wanted in {"reader": "bc", "editor": "bdac"}.items():
        seen = visible(iter(documents), role)
        assert isinstance(seen, list), "visible returns a list"
        assert all(any(one is each for each in documents) for one in seen), (
            "visible returns the documents themselves"
        )
        ids = {document.id for document in seen}
        assert ids <= set(wanted), f"{role} must not see {ids - set(wanted)}"
        assert ids >= set(wanted), f"{role} may see {set(wanted) - ids}, too"
        assert [document.id for document in seen] == list(wanted), (
            "the documents stay in the order in which they were given"
        )
    assert visible(documents) == visible(documents, "reader"), (
        "without a role, it is a reader who asks"
    )


@pytest.mark.lessons(5)
@pytest.mark.task("visible")
@pytest.mark.parametrize("role", ["root", "", "Reader", "readers", None])
def test_an_unknown_role_is_refused_even_where_there_is_nothing_to_read(lesson, role):
    with pytest.raises(ValueError):
        list(lesson.load("access").visible([], role=role))
        pytest.fail(
            f"there is no role {role!r}: that is a ValueError, not an empty list"
        )


@pytest.mark.lessons(5)
@pytest.mark.task("visible")
def test_the_table_of_who_reads_what(lesson, library):
    for number, (role, status) in enumerate(READERS):
        library.write(f"{number}.md", file(role=role, status=status))
    documents, _ = lesson.load("library").load(library.folder)
    visible = lesson.load("access").visible
    for role in ROLES:
        seen = {(d.role, d.status) for d in visible(documents, role=role)}
        wanted = {key for key, readers in READERS.items() if role in readers}
        assert seen - wanted == set(), f"{role} must not read these (role, status)"
        assert wanted - seen == set(), f"{role} may read these (role, status)"


@pytest.mark.lessons(5)
@pytest.mark.task("visible")
def test_visible_keeps_the_order_and_the_documents(lesson, library):
    for name in "cab":
        library.write(f"{name}.md", file())
    documents, _ = lesson.load("library").load(library.folder)
    for order in itertools.permutations(documents):
        assert list(lesson.load("access").visible(list(order))) == list(order)


@pytest.mark.lessons(5)
@pytest.mark.task("applicable")
@pytest.mark.parametrize(
    ("facts", "wanted", "why"),
    [
        ({"channel": "overseas", "contract": "old"}, True, "both facts agree"),
        ({"channel": "home", "contract": "new"}, False, "both have other values"),
        ({}, True, "a fact that is not given excludes nothing"),
        ({"contract": "old"}, True, "a fact that is not given excludes nothing"),
        (
            {"weather": "rain"},
            True,
            "a fact that the document does not name is nothing",
        ),
        (
            {"channel": "overseas", "contract": "new"},
            False,
            "one fact with another value is enough to exclude",
        ),
        ({"channel": "home"}, False, "the fact that is given has another value"),
        ({"channel": "Overseas"}, False, "values are compared as they are written"),
        ({"channel": ""}, False, "an empty value is another value"),
        ({"channel": "over"}, False, "a piece of a value is another value"),
        ({"channel": "overseas air"}, False, "a longer value is another value"),
    ],
)
def test_only_another_value_for_a_given_fact_excludes(lesson, facts, wanted, why):
    applies = (("channel", "overseas"), ("contract", "old"))
    found = lesson.load("access").applicable(paper(lesson, applies=applies), facts)
    assert isinstance(found, bool), "applicable says True or False"
    assert found is wanted, f"applies {applies}, facts {facts}: {why}"


@pytest.mark.lessons(5)
@pytest.mark.task("applicable")
def test_a_document_that_names_no_fact_holds_everywhere(lesson):
    applicable = lesson.load("access").applicable
    assert applicable(paper(lesson), {"channel": "domestic"}) is True, (
        "a document that names no fact holds in every case"
    )
    assert applicable(paper(lesson), {}) is True


@pytest.mark.lessons(5)
def test_facts_on_the_command_line_choose_between_rules(lesson, library):
    library.write("home.md", file(applies="channel=home", body="refund five days\n"))
    library.write("far.md", file(applies="channel=море 1", body="refund nine days\n"))
    library.write("all.md", file(body="refund in money\n"))
    env = {"LIBRARY": library.folder}

    def asked(*words):
        return found(ask(lesson, "--json", "refund", *words, **env))

    assert asked() == ["all", "far", "home"]
    assert asked("--where", "channel=home") == ["all", "home"]
    assert asked("--where", "channel=море 1") == ["all", "far"]
    assert asked("--where", "channel=x", "--where", "other=home") == ["all"]
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", **env}
    result = lesson.run("--json", "refund", "--where", "channel=море 1", **bare)
    assert found(result) == ["all", "far"]


@pytest.mark.lessons(5, 7)
def test_facts_exclude_but_do_not_touch_the_score(lesson, library):
    library.write("home.md", file(applies="channel=home", body="refund five days\n"))
    library.write("far.md", file(applies="channel=far", body="refund refund days\n"))
    library.write("all.md", file(body="refund in money\n"))
    env = {"LIBRARY": library.folder}
    every = ask(lesson, "--json", "refund days", **env).json["rows"]
    some = ask(lesson, "--json", "refund days", "--where", "channel=home", **env)
    assert some.json["rows"] == [row for row in every if row["doc_id"] != "far"]


@pytest.mark.lessons(5)
def test_facts_act_before_the_limit(lesson, library):
    for number in range(9):
        body = "refund refund refund\n"
        library.write(f"far{number}.md", file(applies="channel=far", body=body))
    library.write("home.md", file(applies="channel=home", body="refund in days\n"))
    words = ("--json", "refund", "--where", "channel=home", "--limit", "1")
    assert found(ask(lesson, *words, LIBRARY=library.folder)) == ["home"]


@pytest.mark.lessons(5)
def test_rights_act_before_the_limit(lesson, library):
    for number in range(9):
        body = "refund refund refund\n"
        library.write(f"secret{number}.md", file(role="editor", body=body))
    library.write("home.md", file(body="refund in days\n"))
    words = ("--json", "refund", "--limit", "1")
    assert found(ask(lesson, *words, LIBRARY=library.folder)) == ["home"]


@pytest.mark.lessons(5)
@pytest.mark.parametrize(
    "words",
    [
        ["--role", "root"],
        ["--role", ""],
        ["--where", "channel"],
        ["--where", "=x"],
        ["--where", "channel="],
        ["--where", " = x"],
        ["--where", "channel=a=b"],
        ["--where", "channel=a,contract=b"],
        ["--where", "a channel=b"],
        ["--where", "channel=a", "--where", "channel = b"],
    ],
)
def test_an_unknown_role_or_half_a_fact_is_wrong_usage(lesson, library, words):
    library.write("a.md", file())
    result = ask(lesson, *words, "text", LIBRARY=library.folder)
    assert (result.status, result.stdout) == (2, "")


@pytest.mark.lessons(5)
@pytest.mark.parametrize("fact", ["channel=far", " channel = far ", "channel= far"])
def test_blanks_around_a_fact_let_nothing_through(lesson, library, fact):
    for name in ("far", "home"):
        text = file(applies=f"channel = {name}", body="refund in days\n")
        library.write(f"{name}.md", text)
    words = ("--json", "refund", "--where", fact)
    result = ask(lesson, *words, LIBRARY=library.folder)
    assert found(result) == ["far"], "a document of another channel must be left out"
    twice = ask(lesson, *words, "--where", "channel=far", LIBRARY=library.folder)
    assert found(twice) == ["far"], "to say the same twice is no contradiction"


@pytest.mark.lessons(5)
@pytest.mark.parametrize("text", ["a", "a=b ", "a b", "=", " ", "a,", "a=b,"])
def test_a_long_line_of_facts_costs_no_time_to_speak_of(lesson, library, text):
    library.write("a.md", file(applies="x=y," + text * 20_000))
    before = time.process_time()
    documents, faults = lesson.load("library").load(library.folder)
    assert time.process_time() - before < 3, "the time grows with the square"
    assert len(documents) + len(faults) == 1


# ---------------------------------------------------------------- one rule everywhere


@pytest.mark.lessons(5)
def test_each_step_shows_a_role_the_same_documents(lesson, library):
    for number, (role, status) in enumerate(READERS):
        library.write(f"{number}.md", file(role, status, body="Zanzibar harbour.\n"))
    documents, _ = lesson.load("library").load(library.folder)
    for role in ROLES:
        listed = sorted(d.id for d in lesson.load("access").visible(documents, role))
        words = ("--json", "--role", role, "--limit", "20", "zanzibar harbour")
        result = ask(lesson, *words, LIBRARY=library.folder)
        assert found(result) == listed, f"{role}: what is listed is not what is found"
        if lesson.has("store"):
            with lesson.load("store").open_snapshot(os.environ["LIBRARY_DB"]) as held:
                assert [d.id for d in held.documents(role)] == listed


@pytest.mark.lessons(5)
@pytest.mark.parametrize(
    "taken_away", [{"role": ""}, {"role": "editor"}, {"status": "withdrawn"}]
)
def test_taking_the_last_reader_away_is_visible_at_once(lesson, library, taken_away):
    library.write("a.md", file(body="Zanzibar harbour.\n"))
    library.write("b.md", file(body="Another text.\n"))
    words, env = ("--json", "zanzibar harbour"), {"LIBRARY": library.folder}
    assert found(ask(lesson, *words, **env)) == ["a"]
    library.write("a.md", file(**taken_away, body="Zanzibar harbour.\n"))
    for _ in range(2):
        after = ask(lesson, *words, **env)
        assert found(after) == [] and "Zanzibar" not in after.stdout
        assert after.status == 0


@pytest.mark.lessons(6)
def test_rebuilding_does_not_change_who_reads_what(lesson, library):
    for number, (role, status) in enumerate(READERS):
        library.write(f"{number}.md", file(role, status, body="Zanzibar harbour.\n"))
    env = {"LIBRARY": library.folder}

    def asked(role, *words):
        words = (*words, "--json", "--limit", "20", "--role", role, "zanzibar harbour")
        return ask(lesson, *words, **env).stdout

    before = [asked(role) for role in ROLES]
    assert [asked(role, "--rebuild") for role in ROLES] == before
    assert [asked(role) for role in ROLES] == before


# ---------------------------------------------------------------- non-interference

WORDS = ["refund", "days", "harbour", "Чай", "退款", "zanzibar", "five", "7"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
BODY = st.lists(st.one_of(TEXT, TEXT.map("## {}".format)), min_size=1, max_size=4).map(
    lambda blocks: "\n\n".join(blocks) + "\n"
)
DOCUMENT = st.fixed_dictionaries(
    {"body": BODY, "title": TEXT},
    optional={
        "role": st.sampled_from(["reader", "editor", ""]),
        "status": st.sampled_from(STATUSES),
        "applies": st.sampled_from(["channel=home", "channel=far"]),
    },
)
SHELF = st.lists(DOCUMENT, min_size=1, max_size=6)
ASKED = st.tuples(
    TEXT,
    st.lists(
        st.sampled_from(
            ["--json"]
            + ["--where=channel=home", "--where=channel=far"]
            + ["--limit=1", "--limit=3", "--budget=60", "--budget=-1"]
        ),
        unique_by=lambda word: word.partition("=")[0],
    ),
)


def may_read(role, fields):
    key = (fields.get("role", "reader"), fields.get("status", "published"))
    return role in READERS[key]


def told(lesson, words, env):
    """What a question on an up-to-date library gives (the first run publishes)."""
    ask(lesson, *words, **env)
    return ask(lesson, *words, **env)


def with_and_without(lesson, shelf, role, words, same_database):
    """The results of a question with all documents, and with the visible ones only."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "library")
        folder.mkdir()
        database = Path(scratch, "library.db")
        env = {"LIBRARY": folder, "LIBRARY_DB": database}
        paths = [folder / f"d{number}.md" for number in range(len(shelf))]
        for path, fields in zip(paths, shelf, strict=True):
            path.write_bytes(file(**fields).encode())
        full = told(lesson, words, env)
        for path, fields in zip(paths, shelf, strict=True):
            if not may_read(role, fields):
                path.unlink()
        if not same_database:
            for path in Path(scratch).glob("library.db*"):
                path.unlink()
        return full, told(lesson, words, env)


@pytest.mark.lessons(5)
@settings(max_examples=12)
@given(
    shelf=SHELF,
    role=st.sampled_from(ROLES),
    asked=ASKED,
    same_database=st.booleans(),
)
@example(  # a hidden document holds the only hit, and all the weight of a word
    shelf=[
        {"body": "refund five days\n", "title": "T"},
        {"body": "zanzibar zanzibar refund\n", "title": "T", "role": "editor"},
        {"body": "refund refund\n", "title": "T", "status": "draft"},
    ],
    role="reader",
    asked=("zanzibar refund", ["--json", "--limit=1"]),
    same_database=False,
)
@example(  # and here it holds it alone
    shelf=[
        {"body": "refund five days\n", "title": "T"},
        {"body": "zanzibar\n", "title": "T", "status": "withdrawn"},
        {"body": "zanzibar\n", "title": "T", "role": ""},
    ],
    role="editor",
    asked=("zanzibar", []),
    same_database=True,
)
def test_what_a_role_is_told_does_not_depend_on_what_it_may_not_read(
    lesson, shelf, role, asked, same_database
):
    question, options = asked
    words = ["--role", role, *options, question]
    full, cut = with_and_without(lesson, shelf, role, words, same_database)
    assert full.stdout == cut.stdout, "rows, order, scores or status differ"
    assert full.stderr == cut.stderr, "the messages differ"
    assert full.status == cut.status, "the exit status differs"


@pytest.mark.lessons(5)
@settings(max_examples=10)
@given(shelf=SHELF, question=TEXT, role=st.sampled_from(ROLES))
def test_no_word_of_a_hidden_document_is_ever_shown(lesson, shelf, question, role):
    with tempfile.TemporaryDirectory() as scratch:
        for number, fields in enumerate(shelf):
            body = f"{fields['body']}\nmarker{number}mark {question}\n"
            text = file(**{**fields, "body": body})
            Path(scratch, f"d{number}.md").write_bytes(text.encode())
        words = ["--json", "--role", role, "--limit=20", question]
        env = {"LIBRARY": scratch, "LIBRARY_DB": Path(scratch, "library.db")}
        result = ask(lesson, *words, **env)
    for number, fields in enumerate(shelf):
        if not may_read(role, fields):
            assert f"marker{number}mark" not in result.stdout + result.stderr
            assert f'"d{number}' not in result.stdout


@pytest.mark.lessons(5)
@pytest.mark.parametrize("role", ROLES)
def test_the_real_program_does_not_let_hidden_documents_through(
    lesson, library, tmp_path, role
):
    shown = {
        "a.md": file(body="Refund within five days.\n"),
        "b.md": file(body="## Days\n\nFive days, refund by card.\n", title="Days"),
    }
    hidden = {
        "c.md": file(role="", body="Refund refund zanzibar.\n"),
        "d.md": file(status="withdrawn", body="Five zanzibar days.\n", title="Refund"),
        "sub/e.md": file("", "draft", "channel=far", body="Zanzibar refund days.\n"),
    }
    if role == "reader":
        hidden |= {
            "f.md": file(role="editor", body="Zanzibar refund refund.\n"),
            "g.md": file(status="draft", body="Zanzibar five days refund.\n"),
        }

    def told_by_processes(database):
        env = {"LIBRARY": library.folder, "LIBRARY_DB": tmp_path / database}
        words = ("--role", role, "refund zanzibar five days")
        lesson.run("--json", *words, **env)  # this one may publish, and say so
        return [lesson.run(*json, *words, **env) for json in (["--json"], [])]

    for name, text in (shown | hidden).items():
        library.write(name, text)
    full = told_by_processes("full.db")
    for name in hidden:
        (library.folder / name).unlink()
    assert told_by_processes("cut.db") == full
    assert full[0].status == 0 and found(full[0]) == ["a", "b"]
    assert "anzibar" not in full[1].stdout.replace("zanzibar five", "")
