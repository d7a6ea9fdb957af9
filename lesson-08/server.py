"""The Ollama server on this machine: its address, its models, its faults by name."""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from database import StoreError

CONNECT_SECONDS = 10.0  # a server lets callers in at once, even one that is busy
# What went wrong, by the name of the error's class: most of them come with the package
# ollama, which is imported only where it is needed.
REASONS = {
    "ImportError": ("client_missing", "pip install ollama"),
    "ConnectionError": ("unreachable", "is it running? ollama serve"),
    "ConnectError": ("unreachable", "is it running? ollama serve"),
    "ConnectTimeout": ("unreachable", "is it running? ollama serve"),
    "TimeoutException": ("timeout", "no reply in time"),
    "TimeoutError": ("timeout", "no reply in time"),
    "Exception": ("server_error", "not what a sound server answers"),
}


class ServerError(StoreError):
    """The server or its model cannot be used; `reason` names the kind of trouble."""


def server_address() -> str:
    """Return the address of the server, from OLLAMA_HOST or else the usual one.

    Raises ValueError if that is no address, and ServerError `not_local` if it is not
    on this machine, unless ALLOW_REMOTE_OLLAMA=1 lets texts go elsewhere.
    """
    match = re.fullmatch(
        r"(https?://)?(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{1,5})?/?",
        os.environ.get("OLLAMA_HOST", "").strip(" \"'").lower(),
    )
    if not match:
        raise ValueError(
            f"OLLAMA_HOST is {os.environ['OLLAMA_HOST']!r}, not as in 127.0.0.1:11434"
        )
    # Where a server listens to all the world, it is asked from here.
    host = re.sub(r"^(0\.0\.0\.0|\[::\]|)$", "127.0.0.1", match[2])
    if (
        not re.fullmatch(r"localhost|127(\.\d{1,3}){3}|\[::1\]", host)
        and os.environ.get("ALLOW_REMOTE_OLLAMA") != "1"
    ):
        raise ServerError("not_local", f"{host} is remote: ALLOW_REMOTE_OLLAMA=1 if so")
    # With the scheme given, no port means the usual one of the scheme: 80 or 443.
    return f"{match[1] or 'http://'}{host}{match[3] or ('' if match[1] else ':11434')}"


def speak(seconds: float, talk: Callable[[str], Any]) -> Any:
    """Have `talk` speak with the server at the address that it is given.

    Returns its result. All that goes wrong is named as ServerError, and so is a talk
    of more than `seconds`, which is left alone. The client limits each silence, and a
    server that sends a byte now and then keeps none of them long.
    """
    # Loading it takes a while, and most questions ask no server.
    from multiprocessing.pool import ThreadPool

    address = server_address()
    try:
        import ollama as ollama  # here: on a busy machine this takes seconds by itself

        with ThreadPool(1) as pool:
            return pool.apply_async(talk, [address]).get(seconds)
    except Exception as error:
        reason, mend = next(
            REASONS[kind.__name__]
            for kind in type(error).__mro__
            if kind.__name__ in REASONS
        )
        raise ServerError(
            reason,  # and one line, whatever the server says
            " ".join(f"{address}: {error} ({mend})".split())[:500],
        ) from error


def client(address: str, seconds: float, *hooks: Callable[[Any], Any]) -> Any:
    """Return the official `Client`, made so that texts reach this address only.

    Neither a proxy of the environment nor a redirect may carry them elsewhere, and
    OLLAMA_API_KEY, which the client sends to any server, is taken out of the requests.
    Each of the `hooks` is called with the reply as it came.
    """
    import ollama

    return ollama.Client(
        address,
        timeout=(min(seconds, CONNECT_SECONDS), seconds, seconds, seconds),
        trust_env=False,
        follow_redirects=False,
        headers={"Connection": "close"},
        event_hooks={
            "request": [lambda request: request.headers.pop("Authorization", None)],
            "response": hooks,
        },
    )


def full_name(model: str) -> str:
    """Return a model's name as lists have it, with its tag, in lower case."""
    return model.casefold() + ("" if ":" in model.rpartition("/")[2] else ":latest")


def check_model(model: str, digest: str) -> None:
    """Make sure that one installed model has this name, and that it has this digest.

    Raises ServerError `not_local` (the server would send texts on), `model_missing` or
    `model_changed`; ValueError if `digest` is not one, 64 lower-case hex digits.
    """
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{model!r} needs its digest, 64 hex digits, not {digest!r}")
    name = full_name(model)
    digests = speak(CONNECT_SECONDS, partial(listed, name))
    if name.endswith((":cloud", "-cloud")) or "remote" in digests:
        raise ServerError("not_local", f"{name} does not run on this machine")
    if digests != [digest]:
        raise ServerError(
            "model_missing"
            if not digests
            else "model_changed"
            if set(digests) != {digest}
            else "server_error",  # no model has changed, but the list is none
            f"{name} is to be there once, with the digest {digest}: {digests} is there",
        )


def listed(name: str, address: str) -> list[str]:
    """Return the digests of the models of this name that the server lists.

    For one that runs elsewhere it is "remote". The client leaves out which do: the
    reply itself is looked at.
    """
    replies: list[Any] = []
    client(address, CONNECT_SECONDS, replies.append).list()
    return [
        "remote" if m.get("remote_host") or m.get("remote_model") else m["digest"]
        for m in replies[0].json()["models"]
        if full_name(m["model"]) == name
    ]


def embed(
    model: str, texts: Sequence[str], size: int = 0, seconds: float = 300.0
) -> list[Sequence[float] | None]:
    """Have a model turn texts into vectors, and give up after so many seconds.

    They are many, since the model may have to be loaded from the disk first. No text
    is cut: one that is too long for the model is an error of the server. So are
    vectors that have not `size` numbers (0 if that is still unknown), and numbers that
    are none, or too large for a file with single precision.
    """
    vectors = speak(
        seconds,
        lambda address: (
            client(address, seconds).embed(model, texts, truncate=False).embeddings
        ),
    )
    if len(vectors) != len(texts) or not all(
        0 < len(vector) == (size or len(vector))
        and all(abs(number) < 1e38 for number in vector)
        for vector in vectors
    ):
        raise ServerError(
            "server_error",
            f"{model} did not give a vector of {size or 'some'} numbers for each text",
        )
    return vectors
