"""Speed of lessons 12 and 13 beside their plain definitions, in one run.

    python tests/benchmarks/tokens_speed.py [--lesson lesson-13] [--corpus DIR]

Times are processor time, the least of some tries.  Every section also prints what a
million additions take at that moment: 30 to 40 ms on an idle machine.
"""

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time


def seconds(action: Callable[[], object], times: int = 5) -> float:
    """The least processor time of some tries."""
    taken = []
    for _ in range(times):
        start = process_time()
        action()
        taken.append(process_time() - start)
    return min(taken)


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of log time over log size, from the first size to the last."""
    return math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])


def section(title: str) -> None:
    loop = seconds(lambda: [n + 1 for n in range(1_000_000)], 3)
    print(f"\n{title} (a million additions: {1000 * loop:.0f} ms)")


def start_up(lesson: Path, tries: int = 11) -> float:
    """Milliseconds that the first exact count adds to a bare interpreter."""
    first = "import tokens; tokens.course_tokenizer().count('Старые адреса, 退款')"
    taken: dict[str, list[float]] = {"pass": [], first: []}
    for _ in range(tries):
        for code, times in taken.items():
            before = os.times()
            subprocess.run([sys.executable, "-c", code], cwd=lesson, check=True)
            after = os.times()
            times.append(sum(after[2:4]) - sum(before[2:4]))
    return 1000 * (statistics.median(taken[first]) - statistics.median(taken["pass"]))


def some_rows(lines: list[str], number: int, rng: random.Random) -> list[dict]:
    """Candidates of about 300 to 900 characters, of the corpus's own paragraphs."""
    rows = []
    for n in range(number):
        body = ""
        while len(body) < 300:
            body += rng.choice(lines)[:600] + "\n\n"
        row = {"id": f"doc-{n:05}#part-01", "doc_id": f"doc-{n:05}", "title": "Title"}
        row |= {"heading": f"Heading {n}", "body": body, "text": body}
        rows.append(row | {"score": rng.random()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed beside the plain definitions.")
    parser.add_argument("--lesson", type=Path, default=Path("lesson-13"))
    parser.add_argument("--corpus", type=Path, default=Path("shared/corpus"))
    options = parser.parse_args()
    sys.path.insert(0, str(options.lesson.resolve()))
    import cuts
    import strategies
    from context import pack
    from faststrategies import open_meter
    from tokens import ByteBPE, PlainCoder, course_tokenizer
    from wire import Meter, tail_tokens

    fast = course_tokenizer()
    pairs = list(fast.coder.seams.merges)
    plain = ByteBPE(pairs, PlainCoder)
    files = sorted(options.corpus.rglob("*.md"))
    texts = [path.read_text(encoding="utf-8-sig") for path in files]
    size = sum(len(text.encode()) for text in texts)
    lines = [line for text in texts for line in text.split("\n") if len(line) > 40]
    print(
        f"python {sys.version.split()[0]}, {os.cpu_count()} cores, {len(pairs)} merges"
    )

    section("start")
    print(f"import and first count: {start_up(options.lesson):.0f} ms over bare python")

    section(f"count, the corpus of {size} bytes")
    cold, warm = [], []
    for _ in range(9):
        fresh = ByteBPE(pairs)
        for kept in (cold, warm):
            taken = seconds(lambda f=fresh: [f.count(text) for text in texts], 1)
            kept.append(size / taken / 1e6)
    for name, rates in (("cold", cold), ("warm", warm)):
        middle = statistics.median(rates)
        print(f"{name}: {max(rates):.1f} MB/s (median {middle:.1f})")
    sample = texts[:: max(1, len(texts) // 6)]
    slow = seconds(lambda: [plain.count(text) for text in sample], 1)
    rate = sum(len(text.encode()) for text in sample) / slow / 1e6
    print(f"plain: {rate:.4f} MB/s; cold is {max(cold) / rate:.0f} times faster")
    sizes, times = [10_000, 100_000], []
    for n in sizes:
        fresh_ones = [ByteBPE(pairs) for _ in range(5)]
        times.append(seconds(lambda n=n, f=fresh_ones: f.pop().count("a" * n), 5))
    shown = ", ".join(f"{1000 * t:.1f} ms" for t in times)
    print(f"equal letters, {sizes}: {shown}, exponent {exponent(sizes, times):.2f}")

    section("truncate, room for half")
    rng = random.Random(1)
    endless = iter(lambda: rng.choice(lines), None)
    long_text = "\n\n".join(islice(endless, 2000))
    row = some_rows(lines, 1, rng)[0]
    sizes, times = [10_000, 20_000, 50_000, 100_000], []
    for n in sizes:
        row = row | {"body": long_text[:n]}
        room = fast.count(long_text[:n]) // 2

        def cut(row: dict = row, room: int = room) -> object:
            return strategies.longest_cut(row, open_meter("q", fast), room)

        cut()
        times.append(seconds(cut))
    shown = ", ".join(f"{1000 * t:.0f} ms" for t in times)
    print(f"fast, {sizes} characters: {shown}, exponent {exponent(sizes, times):.2f}")
    kept = len(cut()["body"])
    tried = sum(1 for length in cuts.cuts(row["body"]) if length >= kept)
    middle_cut = cuts.cut_row(row, (len(row["body"]) + kept) // 2)
    one = seconds(lambda: Meter("q", plain).with_row(middle_cut), 1)
    again = Meter("q", fast)
    again.adds_up = False
    other = seconds(lambda: again.with_row(middle_cut))
    print(
        f"plain: {tried} wires, {one:.1f} s each: {tried * one / times[-1]:.0f} times"
    )
    print(
        f"  each counted with a warm fast coder: {tried * other / times[-1]:.0f} times"
    )

    section("density")
    for number in (1_000, 10_000):
        rows = some_rows(lines, number, rng)
        fresh = ByteBPE(pairs)

        def packed(rows: list[dict], tokenizer: ByteBPE) -> dict:
            return pack("q", rows, tokenizer, 8192, 1624, "density")

        def choose(rows: list[dict]) -> None:
            strategies.density(rows, open_meter("q", fast), 8192 - 1624)

        first = seconds(partial(packed, rows, fresh), 1)
        for row in rows:
            row["wire_tokens"] = {fast.fingerprint: tail_tokens(row, fast)}
        stored = seconds(partial(choose, rows), 9)
        whole = seconds(partial(packed, rows, fast), 9)
        result = packed(rows, fast)
        chosen, used = len(result["selected"]), result["context_tokens"]
        print(f"{number} candidates, {chosen} chosen, {used} tokens:")
        print(
            f"  stored counts {1000 * stored:.1f} ms, whole pack {1000 * whole:.1f} ms"
        )
        print(f"  cold {1000 * first:.0f} ms")
        meter = Meter("q", plain)
        one = seconds(partial(meter.with_row, rows[0]), 3)
        wires = chosen * (number - chosen // 2)
        print(f"  plain: {wires} wires, over {1000 * one:.0f} ms each:", end=" ")
        print(f"{wires * one / stored:.0f} times")


if __name__ == "__main__":
    main()
