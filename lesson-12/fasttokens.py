"""The same tokens as the definition, in a time that grows with the text only.

Nothing here changes a result: put `tokens.PlainCoder` in the place of `FastCoder`, and
everything works as before, slowly. Three ideas:

1. The encoder leaves a seam between two tokens open or it does not; `Seams` tells by
   undoing merges. A row of tokens is what the encoder makes of its text if and only
   if every seam in it is open.
2. So the tokens can be found from left to right: take the longest token that fits
   behind the last one, and go back where none does (`FastCoder.encode_piece`).
3. Where two bytes that meet stand side by side inside no token, a text may be cut and
   the counts added. The table shows which; the count of each piece is remembered.

The facts behind 1 and 2 are those of the `bpe` crate (github/rust-gems).
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

REMEMBERED = 100_000  # counts of pieces,
SHORT = 200  # each of at most so many bytes


class Seams:
    """Which tokens may stand side by side in an encoded text."""

    def __init__(self, merges: dict[tuple[int, int], int]) -> None:
        self.merges = merges
        self.parts = {new: pair for pair, new in merges.items()}
        self.open = cache(self.is_open)

    def is_open(self, left: int, right: int) -> bool:
        """Tell if the encoder leaves these two neighbours as they are."""
        return (left, right) not in self.merges and self.both_arise(left, right)

    def both_arise(self, left: int, right: int) -> bool:
        """Tell if both tokens come about although they are neighbours.

        Takes the two apart again, the later merge first. If a pair then meets at the
        seam that merges before the merge just undone, the encoder would have made
        that one. Of two equal merges the left is made first, so undone last.
        """
        while left > 255 or right > 255:
            if left > right:
                limit, left = left, self.parts[left][1]
            else:
                limit, right = right + 1, self.parts[right][0]
            if self.merges.get((left, right), limit) < limit:
                return False
        return True

    def canonical(self) -> list[int]:
        """Return the tokens that can appear in an encoded text, in order of id."""
        found = set(range(256))
        for token, (left, right) in self.parts.items():
            if left in found and right in found and self.both_arise(left, right):
                found.add(token)
        return sorted(found)


class FastCoder:
    """Encodes and counts like `tokens.PlainCoder`.

    `merges` is the token each pair makes, `spelling` the bytes of each token by id.
    """

    def __init__(self, merges: dict[tuple[int, int], int], spelling: list[bytes]):
        self.spelling, self.seams = spelling, Seams(merges)
        self.tokens = sorted(self.seams.canonical(), key=lambda t: len(spelling[t]))
        # The tokens as a tree of bytes; under -1 those on the way, the longest first.
        self.tree: dict = {-1: ()}
        self.inside: set[tuple[int, int]] = set()
        for token in self.tokens:
            branch = self.tree
            for byte in spelling[token]:
                branch = branch.setdefault(byte, {-1: branch[-1]})
            branch[-1] = (token, *branch[-1])
            self.inside.update(pairwise(spelling[token]))
        # A byte that stands nowhere but at the beginning of tokens begins a piece.
        later = {second for _, second in self.inside}
        opening = bytes(byte for byte in range(256) if byte not in later)
        pattern = b".[^%b]*" % re.escape(opening) if opening else b".+"
        self.pieces = re.compile(pattern, re.DOTALL).findall
        # A token that can appear is its own encoding.
        self.counts = {spelling[token]: 1 for token in self.tokens}

    def splits(self, left: bytes, right: bytes) -> bool:
        """Tell that no token holds the two bytes where left and right meet."""
        return (*left[-1:], *right[:1]) not in self.inside

    def encode(self, data: bytes) -> list[int]:
        """Return the tokens of the bytes, without boundaries."""
        return [token for p in self.pieces(data) for token in self.encode_piece(p)]

    def count(self, data: bytes) -> int:
        """Return how many tokens the bytes make, without boundaries."""
        counts, total = self.counts, 0
        for piece in self.pieces(data):
            count = counts.get(piece)
            if count is None:
                count = len(self.encode_piece(piece))
                if len(piece) <= SHORT and len(counts) < REMEMBERED:
                    counts[piece] = count
            total += count
        return total

    def encode_piece(self, piece: bytes) -> list[int]:
        """Return the tokens of a piece, found from left to right.

        A position that led nowhere is never tried again: whichever way leads to it,
        the tokens up to it are the same.
        """
        spelling, is_open = self.spelling, self.seams.open
        tokens: list[int] = []
        waiting = []  # for each token, the shorter ones not yet tried in its place
        hopeless = set()
        end, candidates = 0, self.beginning(piece, 0)
        while end < len(piece):
            for token in candidates:
                after = end + len(spelling[token])
                if after in hopeless or (tokens and not is_open(tokens[-1], token)):
                    continue
                tokens.append(token)
                waiting.append(candidates)
                end, candidates = after, self.beginning(piece, after)
                break
            else:
                hopeless.add(end)
                end -= len(spelling[tokens.pop()])
                candidates = waiting.pop()
        return tokens

    def beginning(self, piece: bytes, start: int) -> Iterator[int]:
        """Return the tokens that begin at `start`, the longest first."""
        branch = self.tree
        for position in range(start, len(piece)):
            if (deeper := branch.get(piece[position])) is None:
                break
            branch = deeper
        return iter(branch[-1])
