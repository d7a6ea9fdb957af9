"""The tokens of every prefix of a text in one pass.

Nothing here changes a result; it is what `faststrategies` counts with. Two ideas:

1. Every prefix of a text has exactly one possible last token, and it is one of those
   that end there. An Aho-Corasick automaton lists them; the right one is that whose
   seam to the last token before it is open. So one pass gives the last token and the
   number of tokens of every prefix (`Prefixes`).
2. The same from the right gives the first token and the count of every rest. Where
   prefix and rest meet at an open seam, the counts add up. Where they do not, read
   on until both tables have the same token in the same place: two encodings that
   share a token are one (`joined`).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

START = -1  # the last token of an empty text: every seam to it is open


class State(dict[int, "State"]):
    """A state of the automaton: the longest end of the text that begins a token.

    Maps the next byte to the next state. `ends` are the tokens that end here, as id
    and length in bytes, the longest first; `shorter` is the state of the longest end
    below this one.
    """

    __slots__ = ("ends", "shorter")

    def __init__(self) -> None:
        self.ends: tuple[tuple[int, int], ...] = ()
        self.shorter: State = self

    def __missing__(self, byte: int) -> "State":
        state = self.shorter
        while byte not in state:
            state = state.shorter
        self[byte] = state[byte]
        return self[byte]


def automaton(spelling: Iterable[tuple[int, bytes]]) -> State:
    """Return the start of the automaton of these tokens (Aho and Corasick, 1975)."""
    root = State()
    for token, letters in spelling:
        state = root
        for byte in letters:
            state = state.setdefault(byte, State())
        state.ends = ((token, len(letters)),)
    states = [root]
    for state in states:  # the list grows meanwhile, shorter ends come first
        for byte, deeper in list(state.items()):
            deeper.shorter = root if state is root else state.shorter[byte]
            deeper.ends += deeper.shorter.ends
            states.append(deeper)
    return root


@lru_cache(maxsize=4)
def automata(coder: Any) -> tuple[State, State]:
    """Return the automata of a fast coder, for reading forwards and backwards."""
    spelling = [(token, coder.spelling[token]) for token in coder.tokens]
    return automaton(spelling), automaton((t, s[::-1]) for t, s in spelling)


class Prefixes:
    """Last token and number of tokens of every prefix of a text, by length in bytes.

    `from_right` makes the mirror image: the text is read from its end, and the table
    holds first token and number of tokens of every rest, by the length of the rest.
    """

    def __init__(self, coder: Any, data: bytes = b"", from_right: bool = False) -> None:
        self.data, self.spelling = data, coder.spelling
        seams = coder.seams.open
        self.is_open = (lambda a, b: seams(b, a)) if from_right else seams
        self.states, self.last, self.count = [automata(coder)[from_right]], [START], [0]
        self.extend(data[::-1] if from_right else data)

    def extend(self, data: bytes) -> None:
        """Let the text go on."""
        states, last, count = self.states, self.last, self.count
        is_open = self.is_open
        state = states[-1]
        for end, byte in enumerate(data, len(last)):
            state = state[byte]
            for token, length in state.ends:
                if is_open(last[end - length], token):
                    break
            states.append(state)
            last.append(token)
            count.append(count[end - length] + 1)

    def shorten(self, end: int) -> None:
        """Forget what stands behind the first `end` bytes."""
        for column in (self.states, self.last, self.count):
            del column[end + 1 :]

    def joined(self, rest: "Prefixes") -> int:
        """Return the tokens of this text and a rest, which is read from the right."""
        if self.is_open(self.last[-1], rest.last[-1]):
            return self.count[-1] + rest.count[-1]
        end, size = len(self.last) - 1, len(rest.data)
        for position in range(1, size + 1):
            self.extend(rest.data[position - 1 : position])
            # The same token in both tables: from here on they are one encoding.
            start = position - len(self.spelling[self.last[-1]])
            if start >= 0 and rest.last[size - start] == self.last[-1]:
                break
        total = self.count[-1] + rest.count[size - position]
        self.shorten(end)
        return total
