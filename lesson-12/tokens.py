"""Byte-pair tokens: what a text costs in the unit that a model counts in."""

import os
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from fasttokens import FastCoder

BOS, EOS = 256, 257  # the boundaries of a text; no merge may use them
LONGEST = 4096  # bytes in one token; twelve doublings, far above any real table


class ByteBPE:
    """A tokeniser: bytes 0-255, BOS 256, EOS 257, merge n (from 0) makes 258 + n.

    Any text can be encoded; what looks like a special token is just text. `merges`
    are pairs of ids; `coder` is what encodes with them, by default the fast one.
    Raises ValueError for a merge that uses anything but bytes and results of earlier
    merges, stands twice, or makes a token over LONGEST bytes.
    """

    def __init__(
        self, merges: Iterable[tuple[int, int]], coder: type | None = None
    ) -> None:
        made: dict[tuple[int, int], int] = {}
        self.spelling = [bytes([byte]) for byte in range(256)] + [b"", b""]
        usable = set(range(256))
        for number, (left, right) in enumerate(merges):
            for part in (left, right):
                if type(part) is not int or part not in usable:
                    raise ValueError(
                        f"merge {number} uses {part}: neither a byte nor made before"
                    )
            if (left, right) in made:
                raise ValueError(f"merge {number} stands there already: {left} {right}")
            made[left, right] = len(self.spelling)
            usable.add(len(self.spelling))
            self.spelling.append(self.spelling[left] + self.spelling[right])
            if len(self.spelling[-1]) > LONGEST:
                raise ValueError(f"merge {number} makes a token over {LONGEST} bytes")
        # Stored counts are worth something only beside the table that made them.
        self.fingerprint = sha256(repr([*made]).encode()).hexdigest()[:12]
        self.unit = "tokens" if made else "bytes"  # without merges bytes stay bytes
        self.coder = (coder or FastCoder)(made, self.spelling)

    def encode(self, text: str, boundaries: bool = True) -> list[int]:
        """Return the tokens of a text; ValueError for a lone surrogate."""
        ids = self.coder.encode(text.encode("utf-8"))
        return [BOS, *ids, EOS] if boundaries else ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens; ValueError for unknown ids, broken characters."""
        ids = list(ids)
        if unknown := [token for token in ids if not 0 <= token < len(self.spelling)]:
            raise ValueError(f"no such token: {unknown[0]}")
        return b"".join(self.spelling[token] for token in ids).decode("utf-8")

    def count(self, text: str, boundaries: bool = True) -> int:
        """Return how many tokens `encode` gives; ValueError for a lone surrogate."""
        return self.coder.count(text.encode("utf-8")) + 2 * boundaries

    def splits(self, left: str, right: str) -> bool:
        """Tell if it is proved that counts add up where `left` meets `right`."""
        return self.coder.splits(left.encode("utf-8"), right.encode("utf-8"))


class PlainCoder:
    """The definition: apply the merges, the earliest first, until none applies.

    `ByteBPE(merges, PlainCoder)` gives the same results as the fast coder, slowly.
    """

    def __init__(self, merges: dict[tuple[int, int], int], spelling: list[bytes]):
        self.merges = merges

    def encode(self, data: bytes) -> list[int]:
        """Return the tokens of the bytes, without boundaries."""
        ids = list(data)
        while found := [pair for pair in pairwise(ids) if pair in self.merges]:
            earliest = min(found, key=self.merges.__getitem__)
            merged: list[int] = []
            for token in ids:
                if merged and (merged[-1], token) == earliest:
                    merged[-1] = self.merges[earliest]
                else:
                    merged.append(token)
            ids = merged
        return ids

    def count(self, data: bytes) -> int:
        """Return how many tokens the bytes make, without boundaries."""
        return len(self.encode(data))

    def splits(self, left: bytes, right: bytes) -> bool:
        """Return False: the definition proves nothing."""
        return False


def merges_file() -> Path | None:
    """Return where the merges are: TOKENS, or the course's frozen file, if any."""
    if path := os.environ.get("TOKENS"):
        return Path(path)
    for parent in Path(__file__).resolve().parents:
        if (parent / "shared" / "course.toml").is_file():
            return parent / "shared" / "tokens" / "merges.txt"
    return None


@cache
def read_tokenizer(path: Path) -> ByteBPE:
    """Return the tokeniser of a file in which each line is one merge, as two ids.

    Raises ValueError for a file that is missing or holds something else.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return ByteBPE(read_merge(n, line) for n, line in enumerate(lines, start=1))
    except (OSError, ValueError) as error:
        told = f"no merges of a tokeniser can be read from {path} (settings TOKENS and"
        raise ValueError(f"{told} ANSWER_TOKENS): {error}") from error


def read_merge(number: int, line: str) -> tuple[int, int]:
    """Return the two ids of a line; ValueError with its number, from 1, for others."""
    try:
        left, right = map(int, line.split())
    except ValueError:
        raise ValueError(f"line {number} is not two ids") from None
    return left, right


def course_tokenizer() -> ByteBPE:
    """Return the course's tokeniser; where its files are not, one that counts bytes."""
    path = merges_file()
    return read_tokenizer(path) if path else ByteBPE([])


def chosen_tokenizer() -> ByteBPE:
    """Return the answer model's own tokeniser, if ANSWER_TOKENS, or the course's."""
    own = os.environ.get("ANSWER_TOKENS")
    return read_tokenizer(Path(own)) if own else course_tokenizer()
