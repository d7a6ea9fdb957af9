"""Packing of lesson 13 beside its plain definition and beside other tools, in one run.

    python tests/benchmarks/packing.py [--room 2000] [--candidates 100] [--seed 1]

The other tools are langchain-core (`trim_messages`), llama-index-core (`repack` of its
prompt helper) and semchunk. They are no part of the tests; install them apart:

    python3 -m venv /tmp/packers
    /tmp/packers/bin/pip install langchain-core llama-index-core semchunk
    /tmp/packers/bin/python tests/benchmarks/packing.py

One that is not installed is left out, and the output says so. Candidates are parts of
the course's corpus in three languages, drawn with the seed. Everybody counts with the
course's tokeniser (but `approximate`, which is that tool's own estimate), and has the
same room for the whole message; the cost of the question is taken off before. A tool
is asked twice: with the bodies of the parts, as is usual, and with the lines of the
wire. What it keeps is written as a message, and the message is counted: "against" is
what it costs above (+) or below (-) the room. Times are processor time.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

COURSE = Path(__file__).resolve().parents[2]
QUERY = "How do old addresses keep working?"
Encode = Callable[[str], list[int]]
# From pieces of text, a room in tokens and an encoder to the text that is kept.
Keep = Callable[[Sequence[str], int, Encode], str]


def trim_messages(partial: bool = False, approximate: bool = False) -> Keep:
    """langchain-core: each piece is a message, the first ones are kept."""
    from langchain_core.messages import HumanMessage
    from langchain_core.messages import trim_messages as trim

    def keep(pieces: Sequence[str], room: int, encode: Encode) -> str:
        def count(messages: Sequence[Any]) -> int:
            return sum(len(encode(message.content)) for message in messages)

        kept = trim(
            [HumanMessage(piece) for piece in pieces],
            max_tokens=room,
            token_counter="approximate" if approximate else count,
            strategy="first",
            allow_partial=partial,
        )
        return "\n".join(str(message.content) for message in kept)

    return keep


def repack() -> Keep:
    """llama-index-core: all is joined and split anew; the first split is used."""
    from llama_index.core.indices.prompt_helper import PromptHelper
    from llama_index.core.prompts import PromptTemplate

    def keep(pieces: Sequence[str], room: int, encode: Encode) -> str:
        helper = PromptHelper(room, 0, chunk_overlap_ratio=0, tokenizer=encode)
        return helper.repack(PromptTemplate("{context_str}"), pieces)[0]

    return keep


def semchunk() -> Keep:
    """semchunk: all is joined and cut into chunks; the first one is used."""
    from semchunk import chunk

    def keep(pieces: Sequence[str], room: int, encode: Encode) -> str:
        def count(text: str) -> int:
            return len(encode(text))

        return str(chunk("\n".join(pieces), room, count, memoize=False)[0])

    return keep


TOOLS: list[tuple[str, str, Callable[[], Keep]]] = [
    ("langchain-core", "trim_messages", trim_messages),
    ("langchain-core", "trim_messages, partial", lambda: trim_messages(partial=True)),
    (
        "langchain-core",
        "trim_messages, approximate",
        lambda: trim_messages(approximate=True),
    ),
    ("llama-index-core", "repack", repack),
    ("semchunk", "chunk", semchunk),
]


def kept_of(pieces: Sequence[str], text: str) -> list[str]:
    """What a text, joined of pieces from the first one on, has of each of them."""
    kept = []
    for piece in pieces:
        text = text.strip()
        if not text:
            break
        kept.append(piece if text.startswith(piece) else text)
        assert piece.startswith(kept[-1]), "a tool has changed the text"
        text = text[len(kept[-1]) :]
    return kept


def timed(action: Callable[[], Any], tries: int) -> tuple[Any, float]:
    """The result of an action, and the least processor time of some tries in ms."""
    taken = []
    for _ in range(tries):
        start = process_time()
        result = action()
        taken.append(1000 * (process_time() - start))
    return result, min(taken)


def line(name: str, given: str, whole: int, cut: int, over: int, time: float) -> None:
    print(f"| {name} | {given} | {whole} | {cut} | {over:+} | {time:,.1f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Packing beside other tools.")
    parser.add_argument("--lesson", type=Path, default=COURSE / "lesson-13")
    parser.add_argument("--room", type=int, default=2000, help="tokens of a message")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tools = []
    for package, name, make in TOOLS:
        try:
            tools.append((f"{package} {version(package)}, {name}", make()))
        except (PackageNotFoundError, ImportError):
            print(f"NOT INSTALLED, left out: {package} ({name})")
    sys.path.insert(0, str(options.lesson.resolve()))  # behind the imports above
    from context import pack
    from cuts import cut_row
    from library import load
    from parts import split
    from rows import make_row
    from tokens import ByteBPE, PlainCoder, course_tokenizer
    from wire import Meter, render_context, source_head, source_tail

    fast, room, rng = course_tokenizer(), options.room, random.Random(options.seed)
    plain = ByteBPE(fast.coder.seams.merges, PlainCoder)
    documents = load(COURSE / "shared" / "corpus")[0]
    rows = [dict(make_row(part)) for one in documents for part in split(one)]
    rows = [row | {"body": row["body"].strip()} for row in rows]
    rng.shuffle(rows)
    drawn = enumerate(rows[: options.candidates], 1)
    rows = [row | {"score": 1 / rank} for rank, row in drawn]
    everything = fast.count(render_context(QUERY, rows))
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores")
    print(f"{len(rows)} candidates, {everything} tokens; room for {room}\n")
    print("| who chooses | given | whole sources | cut | against | time |")
    print("|---|---|---|---|---|---|")

    def definition() -> list[Any]:
        meter = Meter(QUERY, plain)
        for row in rows:
            if meter.with_row(row) <= room:
                meter.take(row)
        return meter.rows

    chosen, time = timed(definition, 1)
    over = plain.count(render_context(QUERY, chosen)) - room
    line("plain definition, rank", "rows", len(chosen), 0, over, time)
    for strategy in ("rank", "density", "truncate"):

        def choose(strategy: str = strategy) -> Any:
            return pack(QUERY, rows, fast, room + 1, 1, strategy)

        packed, time = timed(choose, 9)
        cut = sum("truncated" in row for row in packed["selected"])
        whole = len(packed["selected"]) - cut
        over = plain.count(packed["rendered"]) - room
        line(f"lesson 13, {strategy}", "rows", whole, cut, over, time)
        assert strategy != "rank" or packed["selected"] == chosen

    last = render_context(QUERY, [])
    bodies = [row["body"] for row in rows]
    lines = [source_head(n) + source_tail(row)[:-1] for n, row in enumerate(rows, 1)]
    left = room - fast.count(last)

    def encode(text: str) -> list[int]:
        return fast.encode(text, boundaries=False)

    for name, keep in tools:
        for given, pieces in (("bodies", bodies), ("lines", lines)):

            def ask(keep: Keep = keep, pieces: list[str] = pieces) -> str:
                return keep(pieces, left, encode)

            text, time = timed(ask, 3)
            kept = kept_of(pieces, text)
            whole = sum(map(str.__eq__, kept, pieces))
            message = "".join(f"{one}\n" for one in kept) + last
            if given == "bodies":
                sources = [
                    row if row["body"] == body else cut_row(row, len(body))
                    for row, body in zip(rows, kept, strict=False)
                ]
                message = render_context(QUERY, sources)
            over = fast.count(message) - room
            line(name, given, whole, len(kept) - whole, over, time)


if __name__ == "__main__":
    main()
