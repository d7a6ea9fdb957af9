"""Parts (lesson 03): where `split` cuts a document, and what it never does.

Headings are judged by markdown-it-py, which reads CommonMark independently of us.
"""

from __future__ import annotations

import re
import sys
from dataclasses import FrozenInstanceError

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

pytestmark = pytest.mark.lessons(3)

LONGEST = 1200  # characters in a part


def document(lesson, body, id="handbook", title="The handbook"):
    library = lesson.load("library")
    return library.Document(id=id, title=title, url="u", body=body, lang="en")


def split(lesson, body):
    """The parts of a document with this text."""
    return lesson.load("library").split(document(lesson, body))


def sections(lesson, body):
    """(heading, body) of each part."""
    return [(part.heading, part.body) for part in split(lesson, body)]


# -- the exercises: one mistake at a time ----------------------------------------------


@pytest.mark.task("heading_text")
@pytest.mark.parametrize(
    ("lines", "text", "why"),
    [
        (["# Tea"], "Tea", "the marks in front are no text"),
        (["### Tea time"], "Tea time", "there may be up to six number signs in front"),
        (["  #\tTea \t"], "Tea", "spaces and tabs around the text go"),
        (["## Tea ##  "], "Tea", "number signs may close the line, too"),
        (["# Tea#"], "Tea#", "number signs that touch a word belong to it"),
        (["# C# # 5 #"], "C# # 5", "number signs inside the text belong to it"),
        (["# # #"], "#", "one number sign between the marks is the text"),
        (["##"], "", "a heading may be empty"),
        (["## ##"], "", "a heading may be empty, also with marks at both ends"),
        (["# Tea\u00a0"], "Tea\u00a0", "only spaces and tabs go, no other white space"),
        (["# Tea\t#"], "Tea", "a tab may stand before the closing marks, too"),
        (["# Tea\u00a0#"], "Tea\u00a0#", "a mark stands behind a space or a tab"),
        (["Tea", "==="], "Tea", "the line of === or --- is no text"),
        (["  Tea", " time ", "---"], "Tea time", "all lines above the last are text"),
        (["Tea\u00a0", "==="], "Tea\u00a0", "only spaces and tabs go, also here"),
        (["# Tea", "==="], "# Tea", "an underlined heading has no marks in front"),
    ],
)
def test_the_text_of_a_heading_is_without_its_marks(lesson, lines, text, why):
    found = lesson.load("parts").heading_text(lines)
    assert found == text, f"{lines}: {why}"


@pytest.mark.task("split")
def test_a_document_is_cut_at_its_headings(lesson):
    text = "Before.\n\n# Tea\n\nGreen.\n\nBlack.\n\n# Empty\n\n# Milk\nWhite.\n"
    parts = split(lesson, text)
    assert not any("Green" in p.body and "White" in p.body for p in parts), (
        "a part never reaches across a heading"
    )
    assert not any("#" in part.body for part in parts), (
        "the heading is no piece of the body: the body begins below it"
    )
    assert all(part.body for part in parts), (
        "a section without text makes no part and takes no number"
    )
    assert len(parts) <= 3, (
        "the paragraphs of a section stay together while they fit into 1,200 characters"
    )
    assert parts[0].heading == "The handbook", (
        "text before the first heading has the title of the document as its heading"
    )
    assert [part.heading for part in parts] == ["The handbook", "Tea", "Milk"], (
        "each part has the heading that stands above it"
    )
    assert [part.part for part in parts] == [1, 2, 3], (
        "parts are numbered 1, 2, 3 in their order, wherever they stand"
    )
    assert [part.body for part in parts] == ["Before.", "Green.\n\nBlack.", "White."]
    assert [text[part.start : part.end] for part in parts] == [p.body for p in parts], (
        "document.body[start:end] must be the body: count in characters, from 0"
    )


@pytest.mark.task("split")
def test_blank_lines_go_and_everything_else_stays(lesson):
    text = "# A\n\n \n    code  \n\t\n\n# B\n\ttext\t\n"
    parts = split(lesson, text)
    assert [part.body for part in parts] == ["    code  ", "\ttext\t"], (
        "spaces at the ends of a text are text: only blank lines around it go"
    )
    assert [text[part.start : part.end] for part in parts] == [p.body for p in parts]


@pytest.mark.task("split")
def test_a_long_section_is_cut_between_paragraphs_only(lesson):
    long = "word " * 300 + "end"
    parts = split(lesson, f"# A\n\nfirst\n\n{long}\n\nlast\n")
    assert [part.body for part in parts] == ["first", long, "last"], (
        "a paragraph is never cut, even if it alone is longer than 1,200 characters"
    )
    assert {part.heading for part in parts} == {"A"}, (
        "all parts of a section have its heading"
    )
    text = "a" * 700 + "\n\n" + "b" * 498
    assert len(split(lesson, text)) == 1, "a section of exactly 1,200 is one part"
    assert len(split(lesson, text + "b")) == 2, "a section of 1,201 is cut in two"


# -- the shape of a part ---------------------------------------------------------------


@pytest.mark.task("split")
def test_a_part_knows_its_document_its_number_and_its_place(lesson):
    text = "Before.\n\n# Tea\n\nGreen tea.\n\n# Coffee\nBlack.\n"
    handbook = document(lesson, text)
    parts = lesson.load("library").split(handbook)
    assert [part.id for part in parts] == [
        "handbook#part-01",
        "handbook#part-02",
        "handbook#part-03",
    ]
    assert [part.part for part in parts] == [1, 2, 3]
    assert [part.heading for part in parts] == ["The handbook", "Tea", "Coffee"]
    assert [part.body for part in parts] == ["Before.", "Green tea.", "Black."]
    assert [text[part.start : part.end] for part in parts] == [p.body for p in parts]
    assert all(part.document is handbook for part in parts)


def test_a_part_cannot_be_changed(lesson):
    (part,) = split(lesson, "text")
    with pytest.raises(FrozenInstanceError):
        part.body = "other"


def test_the_hundredth_part_has_three_digits(lesson):
    parts = split(lesson, "".join(f"# {n}\ntext\n" for n in range(1, 101)))
    assert [parts[i].id for i in (8, 9, 98, 99)] == [
        "handbook#part-09",
        "handbook#part-10",
        "handbook#part-99",
        "handbook#part-100",
    ]


def test_a_section_without_text_takes_no_number(lesson):
    text = "# Part one\n\n## Tea\n \t\n\n## Coffee\nBlack.\n# The end\n"
    (part,) = split(lesson, text)
    assert (part.id, part.heading, part.body) == (
        "handbook#part-01",
        "Coffee",
        "Black.",
    )


@pytest.mark.task("split")
@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "# Only a heading", "a\n===\n"])
def test_a_document_without_text_has_no_parts(lesson, text):
    assert split(lesson, text) == []


@pytest.mark.task("split")
def test_spaces_at_both_ends_of_a_body_stay_and_blank_lines_go(lesson):
    text = "# A\n\n \n    code  \ntext  \n\t\n\n# B\n\tcode\t\n"
    assert sections(lesson, text) == [("A", "    code  \ntext  "), ("B", "\tcode\t")]


@pytest.mark.task("split")
@pytest.mark.parametrize("sign", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_a_newline_ends_a_line(lesson, sign):
    text = f"one{sign}# two\n\n# Tea{sign}time\nthree"
    assert sections(lesson, text) == [
        ("The handbook", f"one{sign}# two"),
        (f"Tea{sign}time", "three"),
    ]


@pytest.mark.task("split")
@pytest.mark.parametrize("sign", ["\u00a0", "\u3000", "\f", "\x1f"])
def test_only_spaces_and_tabs_make_a_line_blank(lesson, sign):
    assert sections(lesson, f"# A\n\n{sign}\n\n# B\nb") == [("A", sign), ("B", "b")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_every_kind_of_line_end_gives_the_same_parts(lesson, library, end):
    text = "---\ntitle: X\n---\nBefore.\n\nTea\n===\n\n```\n# no\n```\n\n# Milk #\nB.\n"
    library.write("x.md", text.replace("\n", end))
    module = lesson.load("library")
    documents, faults = module.load(library.folder)
    assert not faults
    parts = [part for item in documents for part in module.split(item)]
    assert [(part.id, part.heading, part.body) for part in parts] == [
        ("x#part-01", "X", "Before."),
        ("x#part-02", "Tea", "```\n# no\n```"),
        ("x#part-03", "Milk", "B."),
    ]
    for part in parts:
        assert part.document.body[part.start : part.end] == part.body


# -- what is a heading -----------------------------------------------------------------

ATX = {
    "# Tea": "Tea",
    "###### Tea": "Tea",
    "   ## Tea": "Tea",
    "#\tTea\ttime\t": "Tea\ttime",
    "## Tea ##": "Tea",
    "# Tea ##########  ": "Tea",
    "# Tea#": "Tea#",
    "# Tea \\#": "Tea \\#",
    "# Tea # time": "Tea # time",
    "# C# #": "C#",
    "#": "",
    "## ##": "",
    "#  #": "",
    "# # #": "#",
    "# *Tea* `time` [x](y)": "*Tea* `time` [x](y)",
    "# Чай и 茶": "Чай и 茶",
}


@pytest.mark.task("heading_text")
@pytest.mark.parametrize("line", ATX)
def test_the_text_of_a_line_with_number_signs(lesson, line):
    found = lesson.load("parts").heading_text([line])
    assert found == ATX[line], f"{line!r}: {ATX[line]!r}, not {found!r}"


@pytest.mark.parametrize("line", ATX)
def test_a_line_with_number_signs_is_a_heading(lesson, line):
    assert sections(lesson, f"before\n{line}\nafter") == [
        ("The handbook", "before"),
        (ATX[line], "after"),
    ]


SETEXT = {
    "Tea\n===": "Tea",
    "Tea\n=": "Tea",
    "Tea\n---": "Tea",
    "Tea\n-": "Tea",
    "  Tea  \n   ----  \t": "Tea",
    "Tea\ntime\n===": "Tea time",
    "Tea  \n\t time \n===": "Tea time",
    "Tea\n    time\n---": "Tea time",
    "`Tea\n----": "`Tea",
    "[tea]: /t\nTea\n===": "Tea",
    "[tea]:\n  /t\n  'a\n  title'\nTea\n===": "Tea",
    "[tea]: /t\n===\n===": "===",
    "[tea]: a(b\n===": "[tea]: a(b",
    "[tea]: /t 'title' more\n===": "[tea]: /t 'title' more",
    "[tea]: /t\n'title' more\n===": "'title' more",
    "[]: /t\n===": "[]: /t",
    "[ ]: /t\n===": "[ ]: /t",
    f"[{'a' * 1000}]: /t\n===": f"[{'a' * 1000}]: /t",
    f"[{'a' * 999}]: /t\n===": None,
    "14. Tea\n===": None,
    "> Tea\n---": None,
    "> Tea\n===": None,
    "- Tea\n---": None,
    "Tea\n= =": None,
    "Tea\n--- -": None,
    "Tea\n\n---": None,
    "Tea\n    ---": None,
    "[tea]: /t\n===": None,
    "[tea]: /t\n---": None,
    "[tea]: <a b> (title)\n[too]: a(b(c(d)))\\)\n---": None,
    "# Tea\n---": "Tea",
    "    code\n---": None,
    "***\n---": None,
    "- - -\n  Tea\n  ===": "Tea",
    "- * * *\n  Tea\n  ===": None,
    "-\n\n  Tea\n  ===": "Tea",
    "- a\n\n  Tea\n  ===": None,
    "-\n  Tea\n  ===": None,
    "-\n Tea\n ===": "Tea",
    "-     code\n\n  Tea\n  ===": None,
    "-    text\n\n  Tea\n  ===": "Tea",
    "===": None,
}


@pytest.mark.parametrize("lines", SETEXT)
def test_a_line_of_equal_signs_or_dashes_may_underline_a_heading(lesson, lines):
    found = [heading for heading, _ in sections(lesson, f"{lines}\n\nafter")]
    expected = SETEXT[lines]
    assert found[-1] == ("The handbook" if expected is None else expected)


def test_definitions_above_an_underlined_heading_stay_text(lesson):
    assert sections(lesson, "[tea]: /t\nTea\n===\ngreen") == [
        ("The handbook", "[tea]: /t"),
        ("Tea", "green"),
    ]


INSIDE = {
    "fence": "```\n{}\n```",
    "fence with a language": "``` python\n{}\n```",
    "tildes": "~~~\n{}\n~~~",
    "tildes with ticks in the language": "~~~ a`b\n{}\n~~~",
    "a shorter fence ends none": "````\n```\n{}\n````",
    "a longer fence ends it": "```\n{}\n`````",
    "other fence": "```\n~~~\n{}\n~~~\n```",
    "a fence with a word ends none": "```\n``` x\n{}\n```",
    "blank lines in a fence": "```\n\n{}\n\n```",
    "an indented fence ends none": "```\n    ```\n{}\n```",
    "a fence that is never closed": "```\n{}",
    "quote": "> text\n>\n> {}",
    "list": "- text\n\n  {}",
    "ordered list": "10. text\n\n    {}",
    "a list that begins with nothing": "-\n  {}",
    "quote in a list": "- > text\n  >\n  > {}",
    "fence in a list": "- ```\n\n  {}\n  ```",
    "fence in a quote": "> ```\n> {}\n> ```",
    "script": "<script>\n\n{}\n</script>",
    "pre": "<PRE class='x'>\n\n{}\n</pre>",
    "style that ends as textarea": "<style>\n\n{}\n</textarea>",
    "comment": "<!-- x\n\n{}\n-->",
    "instruction": "<?php\n\n{}\n?>",
    "declaration": "<!DOCTYPE x\n\n{}\n>",
    "character data": "<![CDATA[\n\n{}\n]]>",
    "element": "<div>\n{}\n</div>",
    "closing element": "</td x\n{}",
    "element that ends itself": "text\n<hr/>\n{}",
    "any tag": "<x-tea a b='c' d=e />\n{}",
    "any closing tag": "</tea >\n{}",
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize(
    "line", ["# no heading", "no heading\n---", "no\nheading\n==="]
)
def test_what_stands_inside_another_block_is_no_heading(lesson, name, line):
    before, after = INSIDE[name].split("{}")
    indent = re.search(r"[> ]*$", before)[0]
    text = before + line.replace("\n", f"\n{indent}") + after
    assert sections(lesson, text) == [("The handbook", text.strip("\n"))]


def test_indented_code_is_no_heading(lesson):
    for text in ("    # no", "\t# no", "text\n\n    no\n    ---", "text\n    # no"):
        assert sections(lesson, text) == [("The handbook", text)]


CLOSED = {
    "fence": "```\ncode\n```",
    "backticks in the line of a fence": "``` a`b",
    "fence in a quote that ends": "> ```\n> code",
    "fence in a list that ends": "- ```\n  code",
    "quote": "> text",
    "list": "- text",
    "comment in one line": "<!-- x -->",
    "the shortest comment": "<!-->",
    "script in one line": "<script>x</script>",
    "a blank line after an element": "<div>\n\ntext",
    "a blank line after a tag": "<tea>\n\ntext",
    "a tag interrupts no paragraph": "text\n<tea>",
    "a tag with text behind it": "<tea> x",
    "number signs without a space": "#tea",
    "seven number signs": "####### tea",
    "escaped": "\\# tea",
    "character data in small letters": "<![cdata[",
    "table": "| a | b |\n|---|---|\n| c | d |",
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_heading_follows_a_block_that_has_ended(lesson, name):
    text = CLOSED[name]
    assert sections(lesson, f"{text}\n# Tea\ngreen") == [
        ("The handbook", text),
        ("Tea", "green"),
    ]


LAZY = {
    "> a\nb\n===": ["> a\nb\n==="],
    "- a\nb\n===": ["- a\nb\n==="],
    "> - > a\nb\n===": ["> - > a\nb\n==="],
    "> a\n    b\n===": ["> a\n    b\n==="],
    "> ```\nb\n===": ["> ```", "Heading: b"],
    "> # a\nb\n===": ["> # a", "Heading: b"],
    ">     a\nb\n===": [">     a", "Heading: b"],
    ">\nb\n===": [">", "Heading: b"],
    "a\n\n> ```\n> a\nb\n===": ["a\n\n> ```\n> a", "Heading: b"],
    "- > a\n\n  > ```\nb\n===": ["- > a\n\n  > ```", "Heading: b"],
    "> a\n>\nb\n===": ["> a\n>", "Heading: b"],
    "> a\n> ---\nb\n===": ["> a\n> ---", "Heading: b"],
    "-\nb\n===": ["-", "Heading: b"],
    "a\n2. b\n---": ["Heading: a 2. b"],
    "a\n1. b\n---": ["a\n1. b\n---"],
    "a\n01. b\n---": ["a\n01. b\n---"],
    "a\n*\n---": ["Heading: a *"],
    "> a\n<tea>\n===": ["> a\n<tea>\n==="],
    "> a\n===\nb\n===": ["> a\n===\nb\n==="],
    "> a\n2. ```\nb\n===": ["> a\n2. ```", "Heading: b"],
    "a\n> 2. ```\nb\n===": ["a\n> 2. ```", "Heading: b"],
}


@pytest.mark.parametrize("text", LAZY)
def test_a_paragraph_may_go_on_without_its_marks(lesson, text):
    found = []
    for part in split(lesson, f"{text}\n\nend"):
        if part.heading != "The handbook":
            found.append(f"Heading: {part.heading}")
        found += [part.body] if part.body != "end" else []
    assert [piece.removesuffix("\n\nend") for piece in found] == LAZY[text]


# -- judged by another reader of CommonMark --------------------------------------------


def oracle(body, title="The handbook"):
    """(heading, body) of each section with text, and the lines that are headings."""
    try:
        tokens = MarkdownIt("commonmark").parse(body)
    except IndexError:  # markdown-it-py 4.3.0 stumbles over some unclosed HTML in lists
        hypothesis.reject()
    lines = body.split("\n")
    found, taken, start = [], set(), 0
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            first, after = token.map
            found.append((title, lines[start:first]))
            title = " ".join(
                line.strip(" \t") for line in tokens[index + 1].content.split("\n")
            )
            taken |= set(range(first, after))
            start = after
    found.append((title, lines[start:]))
    texts = [(heading, "\n".join(without_blank_ends(text))) for heading, text in found]
    return [(heading, text) for heading, text in texts if text], taken


def without_blank_ends(lines):
    full = [index for index, line in enumerate(lines) if line.strip(" \t")]
    return lines[full[0] : full[-1] + 1] if full else []


MARKS = ["> ", ">", " > ", ">\t", "- ", "* ", "-\t", "+   ", "1. ", "2) ", "07. "]
INDENTS = ["", "", "", "", " ", "  ", "   ", "    ", "     ", "\t", " \t", "        "]
TEXTS = (
    """
a|b c|# h|#|## x ##|#\tt|####### s|===|=|---|--|-|- - -|***|* *|_ _ _|= =|```|````
``` py|```a`b|~~~|~~~~|~~~ x ~~~|``|<div>|</div>|<p|<pre>|</pre>|<!-- c|<!-- c -->|-->
<!-->|<?php|?>|<!X|>|<![CDATA[|<![cdata[|]]>|<script|</style> z|<a b='c' d=e/>|</a >
<a>t|<del>|[f]|*|+|1.|2.|1) z|2. z|-     z|123456789. z|1234567890. z|a\\|&amp;|\\# a
""".strip()
    .replace("\n", "|")
    .split("|")
)
ENDS = ["", "", "", " ", "  ", "\t"]

lines = st.builds(
    lambda marks, indent, text, end: "".join(marks) + indent + text + end,
    st.lists(st.sampled_from([*MARKS, "  ", "   "]), max_size=3),
    st.sampled_from(INDENTS),
    st.sampled_from(["", "", *TEXTS]),
    st.sampled_from(ENDS),
)
# Definitions are tried apart, without lists, quotes and indents. What may follow them
# there is disputed: after "> [f]: /u" a line "text" belongs to the quote according to
# the reference implementations of CommonMark, but not according to markdown-it-py.
definitions = st.lists(
    st.sampled_from(
        ["[f]: /u", "[f]: <a b>", "[f]:\n/u", "[f]: /u 't'", '[f]: /u\n"t\nt"']
        + ["  [g]:\t/u\n  (t)", "[f]: /u x", "[]: /u", "[f]: a(b)c", "[f]: (", "a"]
        + ["[f\ng]: /u", "[f\\]: /u", "===", "---", "", "# h", "'t", "t'", "***"]
    ),
    max_size=7,
).map("\n".join)


@given(body=st.lists(lines, max_size=8).map("\n".join))
@hypothesis.settings(max_examples=300)
def test_sections_are_those_of_commonmark(lesson, body):
    # markdown-it-py 4.3.0 looks for marks in the indented lines of a lazy paragraph,
    # where by CommonMark there are none: those lines are not compared.
    indented_mark = re.search(r"^(?: {4}| *\t)\s*[^a-z\s]", body, re.MULTILINE)
    inner_mark = re.search(r"^[^a-z]*(?: {4}|\t) *>", body, re.MULTILINE)
    hypothesis.assume(not inner_mark and not (indented_mark and ">" in body))
    compare(lesson, body)


@given(body=definitions)
@hypothesis.settings(max_examples=200)
def test_definitions_are_those_of_commonmark(lesson, body):
    compare(lesson, body)


def compare(lesson, body):
    """Nothing is lost: bodies, heading lines and blank lines are the document."""
    expected, heading_lines = oracle(body)
    parts = split(lesson, body)
    assert [(part.heading, part.body) for part in parts] == expected
    rest = set()
    position = 0
    for part in [*parts, None]:
        end = part.start if part else len(body)
        number = body.count("\n", 0, position)
        for line in body[position:end].split("\n"):
            rest |= {number} if line.strip(" \t") else set()
            number += 1
        position = part.end if part else end
    full = {i for i in heading_lines if body.split("\n")[i].strip(" \t")}
    assert rest == full


@pytest.mark.task("split")
@given(body=st.text(st.sampled_from("ab#=-`~<>!/*+1.[]:() \t\n\n\n")))
@hypothesis.settings(max_examples=200)
def test_parts_are_slices_in_order_without_overlap(lesson, body):
    position = 0
    for number, part in enumerate(split(lesson, body), start=1):
        assert part.part == number
        assert part.id == f"handbook#part-{number:02}"
        assert position <= part.start < part.end <= len(body)
        assert body[part.start : part.end] == part.body
        assert body[position : part.start].endswith("\n") or part.start == 0
        assert body[part.end :].startswith("\n") or part.end == len(body)
        first, last = part.body.split("\n")[0], part.body.split("\n")[-1]
        assert first.strip(" \t") and last.strip(" \t")
        position = part.end


# -- long sections ---------------------------------------------------------------------


def test_a_section_of_exactly_the_limit_is_one_part(lesson):
    first = "a" * (LONGEST - 102) + "\n\n"
    assert len(split(lesson, "# A\n" + first + "b" * 100)) == 1
    assert len(split(lesson, "# A\n" + first + "b" * 101)) == 2


@pytest.mark.task("split")
def test_all_parts_of_a_long_section_have_its_heading(lesson):
    text = "# A\n\n" + "\n\n".join(letter * 700 for letter in "abc") + "\n\n# B\n\nb"
    assert [(part.heading, len(part.body)) for part in split(lesson, text)] == [
        ("A", 700),
        ("A", 700),
        ("A", 700),
        ("B", 1),
    ]


@pytest.mark.task("split")
def test_characters_are_counted_not_bytes(lesson):
    assert len(split(lesson, "茶" * 700 + "\n\n" + "茶" * 498)) == 1
    assert len(split(lesson, "茶" * 700 + "\n\n" + "茶" * 499)) == 2


WHOLE = {
    "paragraph": "word " * 300,
    "paragraph of many lines": "line of text\n" * 200,
    "fence": "```\n" + "code\n\n" * 300 + "```",
    "tildes": "~~~~ text\n" + "~~~\n\n" * 300 + "~~~~",
    "table": "| a | b |\n|---|---|\n" + "| c | d |\n" * 200,
    "comment": "<!--\n" + "text\n\n" * 300 + "-->",
    "script": "<script>\n" + "text\n\n" * 300 + "</script>",
    "list item": "- text\n" + "\n  more text\n" * 200,
    "list below a paragraph": "text\n" * 200 + "- item\n" * 100,
    "fence in an item": "1. text\n\n   ```\n" + "   code\n\n" * 300 + "   ```",
    "indented code": "    code\n\n" * 300,
}


@pytest.mark.task("split")
@pytest.mark.parametrize("name", WHOLE)
def test_a_long_block_stays_whole(lesson, name):
    block = WHOLE[name].rstrip("\n")
    text = f"before\n\n{block}\n\nafter"
    assert [part.body for part in split(lesson, text)] == ["before", block, "after"]


def filled(pattern):
    """A block of the given pattern, filled with words to some length."""
    return st.integers(1, 900).map(lambda size: pattern.format("x" * size))


blocks = st.one_of(
    filled("{0}"),
    filled("{0}\nmore"),
    filled("```\n{0}\n\n# no\n```"),
    filled("| a |\n|---|\n| {0} |"),
    filled("- {0}\n\n  more\n- item"),
    filled("> {0}\n>\n> more"),
    filled("<!-- {0}\n\nb -->"),
    filled("***"),
)


@pytest.mark.task("split")
@given(blocks=st.lists(blocks, min_size=1, max_size=12), gaps=st.data())
def test_as_much_as_fits_goes_into_a_part(lesson, blocks, gaps):
    text, expected = "", []
    for block in blocks:
        gap = gaps.draw(st.sampled_from(["\n\n", "\n \n\t\n"])) if text else ""
        if expected and len(expected[-1] + gap + block) <= LONGEST:
            expected[-1] += gap + block
        else:
            expected.append(block)
        text += gap + block
    assert [part.body for part in split(lesson, text)] == expected


# -- the effort ------------------------------------------------------------------------


def work(function, *arguments):
    """How many lines of Python and calls into C a call takes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    def profile(frame, event, argument):
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        function(*arguments)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


LARGE = {
    "quotes": lambda n: "> \n" * n,
    "brackets": lambda n: "[\n" * n,
    "stars": lambda n: "*\n" * n,
    "stars in a line": lambda n: "* " * n + "x",
    "dashes, then a thematic break": lambda n: "- " * n + "* " * n,
    "deep quotes": lambda n: ">" * n + " a\n" + "b\n" * n,
    "blank lines in a deep list": lambda n: "- " * n + "a\n" + "\n" * n,
    "blank lines in a quoted list": lambda n: "> " + "- " * n + "a\n" + ">\n >\n" * n,
    "one paragraph": lambda n: "text\n" * n + "===\n",
    "definitions": lambda n: "[a]: /b\n" * n + "===\n===\n",
    "a title without an end": lambda n: "[a]: /b 'c\n" * n + "===\n",
    "headings": lambda n: "a\n---\n" * n,
    "small blocks": lambda n: "a\n\n" * n,
    "open fences": lambda n: "> ```\n" * n,
    "blank lines": lambda n: "\n" * n,
}


@pytest.mark.parametrize("name", LARGE)
def test_the_work_grows_with_the_text_and_no_faster(lesson, name):
    module = lesson.load("library")
    small, large = (document(lesson, LARGE[name](n)) for n in (250, 1000))
    module.split(small)  # what is done once, such as compiling a pattern, is done now
    assert work(module.split, large) < 5 * work(module.split, small) + 1000


@pytest.mark.parametrize("mark", [">", "> ", "- ", "* ", "1. ", "[", "<a ", "` ", "_"])
def test_a_hundred_thousand_marks_in_a_line_are_split(lesson, mark):
    text = mark * 100_000 + "x"
    assert [part.body for part in split(lesson, f"{text}\n\n# A\n\nb")] == [text, "b"]
