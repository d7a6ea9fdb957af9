"""Packing: whole rows, in order, never above the budget, and what the app says of it.

The formula of the cost is written down here once more: characters of text, title,
url and id, plus 30.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

CORPUS = Path(__file__).resolve().parent.parent / "shared" / "corpus"
SITEMAP = "sitemap опубликованных страниц"
DRAFTS = "Что происходит с черновиками?"
ADDRESS = re.compile(r"https?://[^\s<>()`|«»]*\.php[^\s<>()`|«»]*")


def cost(row: dict) -> int:
    """What a row takes, in characters, as the contract says it."""
    return len(row["text"]) + len(row["title"]) + len(row["url"]) + len(row["id"]) + 30


def make_row(number: int, text: str, title: str = "t", url: str = "u") -> dict:
    """A row as the search gives it, as far as packing may look at it."""
    return {
        "id": f"d{number}#part-01",
        "doc_id": f"d{number}",
        "part": 1,
        "title": title,
        "heading": "",
        "body": text,
        "text": text,
        "url": url,
        "lang": "en",
        "revision": 1,
        "score": 1 / (number + 1),
    }


def of_costs(*costs: int) -> list[dict]:
    """Rows that cost exactly so much (at least 41)."""
    rows = [make_row(number, "") for number in range(len(costs))]
    return [
        make_row(number, "x" * (wanted - cost(row)))
        for number, (wanted, row) in enumerate(zip(costs, rows, strict=True))
    ]


def ids(rows) -> list[str]:
    return [row["id"] for row in rows]


words = st.text(max_size=60)
row_lists = st.lists(st.tuples(words, words, words), max_size=8).map(
    lambda drawn: [make_row(number, *fields) for number, fields in enumerate(drawn)]
)
budgets = st.integers(0, 900)


# ---- cost


@pytest.mark.lessons(7, 11)
@pytest.mark.task("cost")
def test_a_row_is_paid_with_all_that_is_shown_of_it(lesson):
    """Text, title, address and id, in characters, and 30 for what stands around."""
    price = lesson.load("context").cost
    row = make_row(1, "text")
    for key, word in {
        "text": "text",
        "title": "title",
        "url": "address",
        "id": "id",
    }.items():
        longer = row | {key: row[key] + "x" * 500}
        assert price(longer) - price(row) == 500, (
            f"the {word} is put before the reader, so it has to be paid for"
        )
    for key in ("heading", "body", "doc_id", "lang"):
        assert price(row | {key: row[key] + "xx"}) == price(row), (
            f"`{key}` costs nothing of its own: the heading is part of the text already"
        )
    wide = row | {"title": "编辑部"}
    assert price(wide) - price(row) == 2, "characters are counted, not bytes"
    assert price(row) == cost(row), (
        f"text 4, title 1, url 1, id 10 and 30 for labels and line ends make "
        f"{cost(row)}, not {price(row)}"
    )


# ---- pack


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_a_row_that_fits_is_taken_as_it_is(lesson):
    """What is returned is a list of the rows themselves."""
    (row,) = rows = of_costs(100)
    chosen = lesson.load("context").pack(rows, 100)
    assert isinstance(chosen, list), "pack returns a list of rows"
    assert chosen, "a row of 100 fits into a budget of 100"
    assert chosen[0] is row, "the rows that come out are the same objects, not copies"


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_a_row_is_never_cut_to_fill_the_budget(lesson):
    """When the second row fits by half, it is left out as a whole."""
    rows = of_costs(100, 100)
    chosen = lesson.load("context").pack(rows, 150)
    assert all(cost(row) == 100 for row in chosen), (
        "a row goes in whole or not at all: its text must not be cut to fit"
    )
    assert len(chosen) < 2, "two rows of 100 into 150: the budget is exceeded"
    assert ids(chosen) == ids(rows[:1])


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_the_first_row_gets_no_special_treatment(lesson):
    """A first row that is larger than the whole budget is left out like any other."""
    pack = lesson.load("context").pack
    assert pack(of_costs(500), 100) == [], (
        "a row of 500 does not fit into 100, also if it is the first: no row is taken "
        "only because there is none yet"
    )
    rows = of_costs(500, 80)
    assert ids(pack(rows, 100)) == [rows[1]["id"]], (
        "a row that does not fit is passed over; the next ones are still tried"
    )


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_the_order_of_the_search_stays(lesson):
    """Rows are not sorted again, neither by cost nor by score."""
    rows = of_costs(100, 60, 90)
    for row, score in zip(rows, (1.0, 3.0, 2.0), strict=True):
        row["score"] = score
    chosen = lesson.load("context").pack(rows, 250)
    assert ids(chosen) == ids(rows), "rows must stay in the order of the search"


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_order_wins_over_a_fuller_budget(lesson):
    """Packing is greedy: what ranks first is taken, though others would fill more."""
    rows = of_costs(60, 100, 100)
    assert ids(lesson.load("context").pack(rows, 200)) == ids(rows[:2]), (
        "rows must stay in the order of the search: what ranks first is taken first"
    )


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_a_large_row_does_not_keep_small_ones_out(lesson):
    """Costs 70, 900, 60, 60 and a budget of 200: all but the large one."""
    rows = of_costs(70, 900, 60, 60)
    chosen = lesson.load("context").pack(rows, 200)
    assert ids(chosen) == [rows[0]["id"], rows[2]["id"], rows[3]["id"]], (
        "a row that does not fit is passed over; the next ones are still tried"
    )


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_a_row_costs_text_title_url_id_and_thirty(lesson):
    """The exact cost fits, one character less does not."""
    pack = lesson.load("context").pack
    for row in (
        make_row(1, "x" * 40),
        make_row(1, "", "title" * 9, ""),
        make_row(1, "", "", "https://e.example/" + "y" * 500),
        make_row(123456789, ""),
        make_row(1, "编辑部", "Карта", "👩‍👧"),  # characters, not bytes
    ):
        assert pack([row], cost(row)) == [row], "a row that fits exactly is taken"
        assert pack([row], cost(row) - 1) == [], (
            "a row must not cost too little: text, title, url, id and 30 are to be paid"
        )
    headed = make_row(1, "body") | {"heading": "heading", "text": "heading\nbody"}
    assert pack([headed], cost(headed)) == [headed]
    assert pack([headed], cost(headed) - 1) == [], "the heading is part of the text"


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_the_budget_is_2400_unless_told(lesson):
    """The default budget, to the character."""
    pack = lesson.load("context").pack
    fits, (too_large,) = of_costs(1200, 1200), of_costs(2401)
    assert pack(fits) == fits and pack([too_large]) == []
    assert pack(of_costs(1200, 1201)) == of_costs(1200)


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
@pytest.mark.parametrize("budget", [True, False, -1, "2400", 2400.0, None, [2400]])
def test_a_budget_that_is_no_number_of_characters_is_refused(lesson, budget):
    """A bool, a negative number, a text or a fraction is a mistake, not a budget."""
    for rows in ([], of_costs(50)):
        with pytest.raises(ValueError):
            lesson.load("context").pack(rows, budget)
            pytest.fail(f"{budget!r} is no number of characters: that is a ValueError")


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
def test_packing_nothing_or_into_nothing_gives_nothing(lesson):
    """No rows, or no room: an empty list and no error."""
    pack = lesson.load("context").pack
    assert pack([], 2400) == pack([]) == pack(of_costs(50), 0) == []


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
@given(rows=row_lists, budget=budgets)
def test_packing_goes_on_after_a_row_that_does_not_fit(lesson, rows, budget):
    """Each row is taken exactly if it fits into what the rows before it have left."""
    chosen = lesson.load("context").pack(rows, budget)
    taken, left = {id(row) for row in chosen}, budget
    for row in rows:
        fits = cost(row) <= left
        assert (id(row) in taken) == fits, (
            f"{row['id']} costs {cost(row)}, {left} are left: it must "
            + ("be taken" if fits else "be passed over")
        )
        left -= cost(row) if fits else 0


@pytest.mark.lessons(7, 11)
@pytest.mark.task("pack")
@given(rows=row_lists, budget=budgets)
def test_what_is_packed_are_the_same_rows_in_the_same_order(lesson, rows, budget):
    """No row is copied, cut, changed or moved, and the sum is within the budget."""
    before, order = copy.deepcopy(rows), [id(row) for row in rows]
    chosen = lesson.load("context").pack(rows, budget)
    assert chosen is not rows, "a new list is to be returned"
    assert rows == before and [id(row) for row in rows] == order, (
        "the rows that came in must not be changed"
    )
    places = [order.index(id(row)) for row in chosen if id(row) in order]
    assert len(places) == len(chosen), "rows must be the same objects, not copies"
    assert places == sorted(set(places)), "rows must stay in the order of the search"
    assert sum(map(cost, chosen)) <= budget, "the budget is exceeded"


@pytest.mark.lessons(7)
def test_packing_is_apart_from_searching_and_permission(lesson):
    """The module knows no role or database, touches no file, and searches nothing.

    It knows no question either, until the question is part of what is paid for.
    """
    lesson.load("context")
    loaded = set(lesson.namespace.modules)
    assert not loaded & {"access", "app", "database", "search", "snapshot", "store"}
    source = (lesson.folder / "context.py").read_text(encoding="utf-8")
    unknown = r"\b(open|read_text|sqlite3|role)\b"
    if lesson.number < 12:
        unknown = r"\b(open|read_text|sqlite3|role|query)\b"
    assert not re.search(unknown, source)


# ---- the course's corpus, packed


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory) -> Path:
    """A folder for one snapshot of the corpus per lesson: publishing takes a while."""
    return tmp_path_factory.mktemp("snapshots")


@pytest.fixture
def search_corpus(lesson, snapshots):
    """The rows of the snapshot's own ranking for a question to the course's corpus."""
    store, path = lesson.load("store"), snapshots / f"{lesson.number}.db"
    if not path.exists():
        store.publish(path, lesson.load("library").load(CORPUS)[0])

    def search(query: str) -> list[dict]:
        with store.open_snapshot(path) as snapshot:
            return snapshot.search(query)

    return search


def chosen_for(lesson, query, rows, sized_for=None):
    """What is packed by default, or with just the room for these rows.

    Until lesson 11 the budget is a number of characters, then a window in tokens.
    """
    context = lesson.load("context")
    if lesson.number < 12:
        budget = () if sized_for is None else (sum(map(cost, sized_for)),)
        return context.pack(rows, *budget)
    tokenizer, limit = lesson.load("tokens").course_tokenizer(), 8192
    if sized_for is not None:
        limit = tokenizer.count(context.render_context(query, sized_for)) + 1024
    return context.pack(query, rows, tokenizer, limit, 1024)["selected"]


@pytest.mark.lessons(7)
def test_the_sitemap_question_is_answered_from_the_sitemap(lesson, search_corpus):
    """A part of `sitemap-ru` comes first, and the default budget has room for it."""
    rows = search_corpus(SITEMAP)
    assert rows[0]["doc_id"] == "sitemap-ru"
    assert chosen_for(lesson, SITEMAP, rows)[0] is rows[0]


@pytest.mark.lessons(7)
def test_the_drafts_question_needs_both_documents(lesson, search_corpus):
    """Both documents speak of drafts; a budget for the first takes only that one."""
    rows = search_corpus(DRAFTS)
    chosen = chosen_for(lesson, DRAFTS, rows)
    assert {"sitemap-ru", "editorial-policy-ru"} <= {row["doc_id"] for row in chosen}
    assert chosen_for(lesson, DRAFTS, rows, rows[:1]) == rows[:1]


@pytest.mark.lessons(7)
def test_the_sitemap_question_may_find_parts_and_have_no_room(lesson, search_corpus):
    """Found and yet not packed: the search gave rows, none of which fits."""
    rows = search_corpus(SITEMAP)
    assert len(rows) == 4 and chosen_for(lesson, SITEMAP, rows, []) == []
    if lesson.number < 12:  # 300 characters; the parts are longer than that
        assert lesson.load("context").pack(rows, 300) == []


# ---- the app


def run(lesson, *args: object, **env: object):
    """The app with JSON; it must answer."""
    result = lesson.run("--json", *args, **env)
    assert result.status == 0, result.stderr
    return result.json


@pytest.mark.lessons(7, 7)
def test_the_app_packs_what_the_search_has_found(lesson, search_corpus):
    """The corpus questions, asked in a process: rows, skipped ids and the sum."""
    sitemap = run(lesson, SITEMAP)
    assert sitemap["status"] == "found"
    assert sitemap["rows"][0]["doc_id"] == "sitemap-ru"
    drafts = run(lesson, DRAFTS)
    found = {row["doc_id"] for row in drafts["rows"]}
    assert {"sitemap-ru", "editorial-policy-ru"} <= found
    first = drafts["rows"][0]
    small = run(lesson, "--budget", cost(first), DRAFTS)
    assert small["rows"] == [first] and small["used"] == small["budget"] == cost(first)
    ranked = search_corpus(DRAFTS)
    assert small["skipped"] == ids(ranked[1:])


@pytest.mark.lessons(7, 8)
def test_json_has_the_keys_of_the_contract_and_no_others(lesson, library):
    """One object with query, status, rows, skipped, used and budget."""
    library.write("a.md", "The fox sleeps.\n")
    for question, budget in (("fox", 900), ("fox", 20), ("wolverine", 900)):
        answer = run(lesson, "--budget", budget, question, LIBRARY=library)
        assert set(answer) == {"query", "status", "rows", "skipped", "used", "budget"}
        assert answer["query"] == question and answer["budget"] == budget
        assert answer["used"] == sum(map(cost, answer["rows"])) <= budget
        assert not set(ids(answer["rows"])) & set(answer["skipped"])
        assert isinstance(answer["rows"], list) and isinstance(answer["skipped"], list)


@pytest.mark.lessons(7, 8)
def test_nothing_found_and_nothing_fits_are_told_apart(lesson, library):
    """Both are honest answers with status 0; which of the two it was is said."""
    library.write("a.md", "---\nid: a\n---\nThe fox sleeps.\n")
    missing = run(lesson, "wolverine", LIBRARY=library)
    assert (missing["status"], missing["skipped"]) == ("nothing_found", [])
    tight = run(lesson, "--budget", "20", "fox", LIBRARY=library)
    assert (tight["status"], tight["skipped"]) == ("nothing_fits", ["a#part-01"])
    assert missing["rows"] == tight["rows"] == []
    for args, status in ((["wolverine"], "nothing_found"), (["fox"], "nothing_fits")):
        shown = lesson.run("--budget", "20", *args, LIBRARY=library)
        assert shown.status == 0 and status in shown.stdout
        other = {"nothing_found", "nothing_fits"} - {status}
        assert not any(word in shown.stdout for word in other)


@pytest.mark.lessons(7, 7)
def test_a_budget_of_300_fits_no_part_of_the_sitemap(lesson):
    """The search found parts, the budget has no room for any of them."""
    answer = run(lesson, "--budget", "300", SITEMAP)
    assert (answer["status"], answer["rows"]) == ("nothing_fits", [])
    assert answer["used"] == 0 and len(answer["skipped"]) == 4
    shown = lesson.run("--budget", "300", SITEMAP)
    assert shown.status == 0 and "nothing_fits" in shown.stdout


@pytest.mark.lessons(7, 8)
def test_the_cost_of_each_part_and_the_sum_are_printed(lesson, library):
    """A person sees what each part took, and how much of the budget all did."""
    library.write("a.md", "# One\n\nThe fox sleeps.\n\n# Two\n\nThe fox wakes up.\n")
    answer = run(lesson, "--budget", "1234", "fox", LIBRARY=library)
    shown = lesson.run("--budget", "1234", "fox", LIBRARY=library).stdout
    assert len(answer["rows"]) == 2
    for number in (*map(cost, answer["rows"]), answer["used"], 1234):
        assert re.search(rf"\b{number}\b", shown), f"{number} is not printed"


@pytest.mark.lessons(7, 8)
def test_a_long_address_is_kept_whole_or_left_out(lesson, library):
    """No budget shortens a historic address, in the front matter or in a text."""
    query = "&".join(f"field{number}=value{number}" for number in range(60))
    address = f"https://old.example/2003/show.php?{query}"
    library.write(
        "a.md",
        f"---\nid: a\ntitle: Old\nurl: {address}\n---\nThe fox: {address}&text=1\n",
    )
    whole = run(lesson, "fox", LIBRARY=library)
    (row,) = whole["rows"]
    assert row["url"] == address and f"{address}&text=1" in row["body"]
    shown = lesson.run("fox", LIBRARY=library).stdout
    assert shown.count(address) == 2 and f"{address}&text=1" in shown
    tight = run(lesson, "--budget", cost(row) - 1, "fox", LIBRARY=library)
    assert tight["status"] == "nothing_fits"
    plain = lesson.run("--budget", cost(row) - 1, "fox", LIBRARY=library).stdout
    assert "old.example" not in plain


@pytest.mark.lessons(7, 8)
@pytest.mark.parametrize(
    "question",
    [
        "How do old addresses keep working?",
        "Как продолжают работать старые адреса?",
        "旧网址怎么继续使用？",
    ],
)
def test_historic_addresses_of_the_corpus_are_shown_whole(lesson, question):
    """Every .php address of a packed part stands in the output as it was written."""
    answer = run(lesson, "--budget", "9000", question)
    shown = lesson.run("--budget", "9000", question).stdout
    found = [a for row in answer["rows"] for a in ADDRESS.findall(row["text"])]
    found += [row["url"] for row in answer["rows"]]
    assert any(".php" in address for address in found), answer["rows"]
    assert all(address in shown for address in found)
    for row in answer["rows"]:  # lines are broken for the terminal, words are not
        assert "".join(row["body"].split()) in "".join(shown.split())


@pytest.mark.lessons(7, 8)
def test_a_wrong_budget_is_refused(lesson, library):
    """A number below 0 is a fault of input; what is no number is wrong usage."""
    library.write("a.md", "The fox sleeps.\n")
    below = lesson.run("--json", "--budget", "-1", "fox", LIBRARY=library)
    assert below.status == 1 and below.json["status"] == "error"
    for wrong in ("x", "1.5", ""):
        refused = lesson.run("--json", "--budget", wrong, "fox", LIBRARY=library)
        assert refused.status == 2 and "Traceback" not in refused.stderr
