"""Embeddings: texts become points in a space, near to each other if they are alike."""

import os
import re
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from math import hypot, sqrt
from typing import NamedTuple

from features import features
from server import ServerError, check_model, embed, full_name

Vector = Sequence[float]  # of length 1, so that a product of two is their cosine
DIMENSION = 2048  # of the built-in space


class Embedder(NamedTuple):
    """A way to turn texts into vectors: `embed(texts, question=False)`.

    It returns None for a text that cannot be read whole. Some models want to know
    which texts are questions.
    `space` names all that makes vectors comparable; vectors of two spaces never are.
    """

    space: str
    embed: Callable[..., list[Vector | None]]


def get_embedder() -> Embedder:
    """Return the embedder of EMBED_BACKEND: hash, the usual one, or ollama.

    The latter needs EMBED_MODEL and EMBED_DIGEST. Raises ValueError for a setting
    that cannot be used, and ServerError for trouble with server or model.
    """
    backend = os.environ.get("EMBED_BACKEND") or "hash"
    if backend == "hash":
        return Embedder(
            f"hash:v2:{DIMENSION}",
            lambda texts, question=False: [hash_vector(text) for text in texts],
        )
    if backend != "ollama":
        raise ValueError(f"EMBED_BACKEND is {backend!r}: use hash or ollama")
    model = full_name(os.environ.get("EMBED_MODEL", ""))
    digest = os.environ.get("EMBED_DIGEST", "")
    (vector,) = model_vectors(model, digest, ["a try, to learn the dimension"])
    return Embedder(
        f"ollama:{model}:{digest}:{len(vector or ())}",
        partial(model_vectors, model, digest, size=len(vector or ())),
    )


def hash_vector(text: str) -> Vector:
    """Return a text's vector in the built-in space, which knows letters, no language.

    Each feature of a text is added to one of the numbers, or taken away from it, as
    its hash says: no synonyms, no meaning, and no statistics of the library
    (Weinberger et al., "Feature hashing for large scale multitask learning", 2009).
    Most numbers are 0; in a text without features all are.
    """
    numbers = [0.0] * DIMENSION
    for feature, count in features(text).items():
        place, sign = place_and_sign(feature)
        numbers[place] += sign * sqrt(count)
    length = hypot(*filter(None, numbers)) or 1.0
    return array("f", [number and number / length for number in numbers])


@lru_cache(maxsize=1 << 18)  # the letters of a library's words repeat
def place_and_sign(feature: str) -> tuple[int, float]:
    """Return where a feature counts, and 1 or -1, the same in every process."""
    number = blake2b(feature.encode(), digest_size=8).digest()
    return int.from_bytes(number, "big") % DIMENSION, 1.0 if number[0] >> 7 else -1.0


def model_vectors(
    model: str,
    digest: str,
    texts: Sequence[str],
    question: bool = False,
    size: int = 0,
) -> list[Vector | None]:
    """Return the vectors of a model on this machine; None for what is too long for it.

    The list of models is looked at first: another model would mix two spaces. So would
    vectors of another `size` (0 if it is still unknown), which are an error.
    """
    check_model(model, digest)
    # Models of the E5 family were trained to tell questions from texts by a first word.
    prefix = ("query: " if question else "passage: ") * ("e5" in re.split(r"\W", model))
    try:
        return embed(model, [prefix + text for text in texts], size)
    except ServerError as error:
        if "context length" not in str(error):
            raise
    # At least one is too long. Which?
    return [
        model_vectors(model, digest, [text], question, size)[0]
        if len(texts) > 1
        else None
        for text in texts
    ]
