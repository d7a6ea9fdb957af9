"""Compare the plain definitions of lessons 12 and 13 with the fast ones.

    python tests/compare_tokens.py --lesson lesson-13 [--seed N] [--share 1.0]

Random merge tables (some harmless, some that bridge every seam of the wire), random
texts.  The full numbers take about twenty minutes of one processor, and nothing is
printed before the end; a share of 0.01 takes seconds.  Prints how many prefixes,
truncations and density instances were compared and how many differed; exit status 1
if any did.
"""

import argparse
import importlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FULL = {"prefixes": 2_000_000, "truncations": 40_000, "densities": 12_000}
WIRE = '{"id":"S1","title":"","heading":"h","text":"","truncated":true}\n{"question":'
SIGNS = ['"', "\\", "\n", "{", "}", ":", ",", "0", "1", "9", " ", "a", "b", "n", "t"]
SIGNS += ["é", "ё", "о", "д", "退", "款", "\u0301", "\u200d", "😀", "\t", "\x01"]

BRIDGES = [
    "\n{",
    '1"',
    '2"',
    '3"',
    "S1",
    "S2",
    '",',
    '"}',
    "}\n",
    ':"',
    '"a',
    'a"',
    '{"',
    "\\n",
    '\\"',
]


def some_text(rng: random.Random, signs: list[str], longest: int) -> str:
    return "".join(rng.choices(signs, k=rng.randint(0, longest)))


def some_merges(rng: random.Random, signs: list[str]) -> list[tuple[int, int]]:
    """A legal table: blind pairs of tokens, or pairs that stand in a sample."""
    merges: dict[tuple[int, int], int] = {}
    sample = list((WIRE * 2 + some_text(rng, signs, 200) + WIRE).encode())
    letters = sorted(set("".join(signs).encode()))
    if rng.random() < 0.3:
        letters += sorted(set(WIRE.encode()))
    blind = rng.random() < 0.5
    bridges = rng.sample(BRIDGES, rng.randint(1, 6)) if rng.random() < 0.5 else []
    for _ in range(rng.choice((0, 3, 10, 30, 60, 120)) + len(bridges)):
        tokens = letters + list(merges.values())
        if bridges:
            pair = tuple(bridges.pop().encode())
        elif blind or len(sample) < 2:
            pair = rng.choice(tokens), rng.choice(tokens)
        else:
            place = rng.randrange(len(sample) - 1)
            pair = sample[place], sample[place + 1]
        if pair in merges:
            continue
        new = merges[pair] = 258 + len(merges)
        place = 0
        while place < len(sample) - 1:
            if (sample[place], sample[place + 1]) == pair:
                sample[place : place + 2] = [new]
            place += 1
    return list(merges)


class Comparison:
    """Counts what was compared and what differed; keeps the first differences."""

    def __init__(self, load: Callable[[str], Any], seed: int) -> None:
        self.load = load  # gives a module of the lesson by its name
        self.rng = random.Random(seed)
        self.done = dict.fromkeys(FULL, 0)
        self.differ = dict.fromkeys(FULL, 0)
        self.joins = self.sums = 0
        self.first: list[str] = []

    def note(self, kind: str, plain: object, fast: object, what: object) -> None:
        self.done[kind] += 1
        if plain != fast:
            self.differ[kind] += 1
            if len(self.first) < 5:
                self.first.append(f"{kind}: {plain!r} != {fast!r} for {what!r}")

    def tokenizers(self):
        tokens = self.load("tokens")
        self.signs = self.rng.sample(SIGNS, self.rng.choice((1, 2, 2, 3, 4, 6, 15)))
        self.merges = some_merges(self.rng, self.signs)
        plain = tokens.ByteBPE(self.merges, tokens.PlainCoder)
        return plain, tokens.ByteBPE(self.merges)

    def prefixes(self, goal: int) -> None:
        """Every prefix of a text, by table, by join and by the piecewise count."""
        Prefixes = self.load("prefixes").Prefixes
        while self.done["prefixes"] < goal:
            plain, fast = self.tokenizers()
            for _ in range(10):
                data = some_text(self.rng, self.signs, 60).encode()
                table = Prefixes(fast.coder, data)
                whole = plain.coder.count(data)
                for end in range(len(data), -1, -1):
                    table.shorten(end)
                    rest = Prefixes(fast.coder, data[end:], from_right=True)
                    ids = fast.coder.encode(data[:end])
                    got = table.last[-1], table.count[-1], table.joined(rest), ids
                    ids = plain.coder.encode(data[:end])
                    want = ids[-1] if ids else -1, len(ids), whole, ids
                    self.note("prefixes", want, got, (self.merges, data))

    def row(self, number: int, longest: int) -> dict:
        body = some_text(self.rng, self.signs, longest)
        title, heading = (some_text(self.rng, self.signs, 5) for _ in range(2))
        score = self.rng.choice((0.25, 0.5, 1.0, self.rng.random()))
        row = {"id": f"d{number}#part-01", "doc_id": f"d{number}", "score": score}
        text = f"{heading}\n{body}" if heading else body
        return row | {"title": title, "heading": heading, "body": body, "text": text}

    def chosen(self, rows: list[dict], strategy: str, tokenizer, limit: int):
        context = self.load("context")
        try:
            return context.pack("q", rows, tokenizer, limit, 1, strategy)
        except context.BudgetError as error:
            return str(error)

    def packs(self, kind: str, strategy: str, most: int, goal: int) -> None:
        """Whole packs with a strategy; room for a part of the candidates."""
        wire = self.load("wire")
        while self.done[kind] < goal:
            plain, fast = self.tokenizers()
            adds_up = wire.Meter("", fast).adds_up
            for _ in range(5):
                many = self.rng.randint(1, most)
                if self.rng.random() < 0.1:
                    many = 14  # so that S9 is followed by S10
                rows = [self.row(n, 120 // many) for n in range(many)]
                self.rng.shuffle(rows)
                if self.rng.random() < 0.7:  # scores near the costs: a close race
                    for row in rows:
                        size = wire.tail_tokens(row, fast)
                        row["score"] = float(size + self.rng.randint(0, 12))
                if self.rng.random() < 0.5:
                    for row in rows:
                        stored = wire.tail_tokens(row, fast)
                        row["wire_tokens"] = {fast.fingerprint: stored}
                least, most_ = (
                    fast.count(wire.render_context("q", r)) for r in ([], rows)
                )
                limit = self.rng.randint(least, max(least, most_) + 2)
                want = self.chosen(rows, strategy, plain, limit)
                got = self.chosen(rows, strategy, fast, limit)
                self.note(kind, want, got, (self.merges, rows, limit))
                self.sums += adds_up
                self.joins += not adds_up

    def texts(self, goal: int) -> None:
        truncate_text = self.load("strategies").truncate_text
        while self.done["truncations"] < goal:
            plain, fast = self.tokenizers()
            for _ in range(10):
                text = some_text(self.rng, self.signs, 60)
                limit = self.rng.randint(2, max(3, fast.count(text)))
                want, got = (truncate_text(text, t, limit) for t in (plain, fast))
                self.note("truncations", want, got, (self.merges, text, limit))


def compare(load: Callable[[str], Any], seed: int, share: float) -> Comparison:
    """Run this share of the full numbers on the lesson whose modules `load` gives."""
    goals = {kind: max(1, int(number * share)) for kind, number in FULL.items()}
    run = Comparison(load, seed)
    run.prefixes(goals["prefixes"])
    run.packs("truncations", "truncate", 3, goals["truncations"] // 2)
    run.texts(goals["truncations"])
    run.packs("densities", "density", 7, goals["densities"])
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description="Plain against fast, at random.")
    parser.add_argument("--lesson", type=Path, default=Path("lesson-13"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    sys.path.insert(0, str(options.lesson.resolve()))
    run = compare(importlib.import_module, options.seed, options.share)
    for kind, number in run.done.items():
        print(f"{kind}: {number} compared, {run.differ[kind]} differ")
    print(f"packs where counts add up: {run.sums}, by joins: {run.joins}")
    print(*run.first, sep="\n")
    return 1 if any(run.differ.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
