"""Train the course's merges: python shared/tokens/train.py [FOLDER] [--merges N]

Byte-pair training (Sennrich, Haddow and Birch, 2016): count which two neighbours
stand side by side most often, make them one token, count again. Here:

* The text is what a request carries: every Markdown file as a JSON string, so that a
  line end is the two characters backslash and n.
* Merges stay inside pieces: letters with at most one other character in front of
  them, an escape such as a line end, or one character alone. So spaces, digits and
  ASCII punctuation stand only at the beginning of a token, and a text may be counted
  piece by piece (the fast counter proves this from the table, it does not trust it).
* Of equally frequent pairs the one with the lower ids wins. The same files give the
  same merges on every machine.

Writes one merge per line, `left right`, both token ids; line n makes token 258 + n.
"""

import argparse
import heapq
import json
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

PIECE = re.compile(r"\\.|\W?[^\W\d_]+|.", re.DOTALL)
FIRST_MERGE = 258


def pieces(folder: Path) -> Counter[str]:
    """How often each piece stands in the Markdown files below the folder."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.md"):
        text = path.read_text(encoding="utf-8-sig")
        found.update(PIECE.findall(json.dumps(text, ensure_ascii=False)))
    return found


def merged(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """The ids with every occurrence of the pair, from the left, made one token."""
    result: list[int] = []
    for token in ids:
        if result and (result[-1], token) == pair:
            result[-1] = new
        else:
            result.append(token)
    return result


def train(counted: Counter[str], size: int) -> list[tuple[int, int]]:
    """The first `size` merges; fewer where no pair occurs twice any more."""
    words = [list(piece.encode("utf-8")) for piece in counted]
    times = list(counted.values())
    frequency: Counter[tuple[int, int]] = Counter()
    places: defaultdict[tuple[int, int], set[int]] = defaultdict(set)

    def note(number: int, sign: int) -> None:
        for pair in pairwise(words[number]):
            frequency[pair] += sign * times[number]
            places[pair].add(number)

    for number in range(len(words)):
        note(number, 1)
    queue = [(-often, pair) for pair, often in frequency.items()]
    heapq.heapify(queue)
    merges: list[tuple[int, int]] = []
    while queue and len(merges) < size:
        often, best = heapq.heappop(queue)
        if frequency[best] != -often:  # became rarer while it waited
            heapq.heappush(queue, (-frequency[best], best))
            continue
        if frequency[best] < 2:
            break
        new = FIRST_MERGE + len(merges)
        merges.append(best)
        # Only the pieces that hold this pair change; the others keep their counts.
        touched = set()
        for number in places.pop(best):
            note(number, -1)
            words[number] = merged(words[number], best, new)
            note(number, 1)
            touched.update(pairwise(words[number]))
        for pair in touched:
            if new in pair:
                heapq.heappush(queue, (-frequency[pair], pair))
    return merges


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Train the course's merges.")
    parser.add_argument("folder", nargs="?", type=Path, default=here.parent / "corpus")
    parser.add_argument("--merges", type=int, default=4096)
    parser.add_argument("--output", type=Path, default=here / "merges.txt")
    options = parser.parse_args()
    merges = train(pieces(options.folder), options.merges)
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    options.output.write_text(lines, encoding="utf-8", newline="\n")
    print(f"{len(merges)} merges written to {options.output}")


if __name__ == "__main__":
    main()
