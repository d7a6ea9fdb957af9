"""The Ollama server on this machine: its address, its models, its faults by name."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from database import StoreError

CONNECT_SECONDS = 10.0  # a server lets callers in at once, even one that is busy
# What went wrong, by the name of the error's class: most of them come with the package
# ollama, which is imported only where it is needed.
REASONS = {
    "ImportError": ("client_missing", "pip install ollama"),
    "RemoteDisconnected": ("server_error", "the connection broke"),
    "ConnectionError": ("unreachable", "is it running? ollama serve"),
    "ConnectError": ("unreachable", "is it running? ollama serve"),
    "ConnectTimeout": ("unreachable", "is it running? ollama serve"),
    "gaierror": ("unreachable", "there is no such host"),
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
    value = os.environ.get("OLLAMA_HOST", "").strip(" \"'").lower()
    match = re.fullmatch(r"(https?://)?(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{1,5})?/?", value)
    if not match:
        raise ValueError(f"OLLAMA_HOST is {value!r}, not as in 127.0.0.1:11434")
    # Where a server listens to all the world, it is asked from here.
    host = re.sub(r"^(0\.0\.0\.0|\[::\]|)$", "127.0.0.1", match[2])
    if (
        not re.fullmatch(r"localhost|127(\.\d{1,3}){3}|\[::1\]", host)
        and os.environ.get("ALLOW_REMOTE_OLLAMA") != "1"
    ):
        raise ServerError("not_local", f"{host} is remote: ALLOW_REMOTE_OLLAMA=1 if so")
    return f"{match[1] or 'http://'}{host}{match[3] or ':11434'}"


@contextmanager
def speaking() -> Iterator[str]:
    """Give the address to speak to, and name all that goes wrong as ServerError."""
    address = server_address()
    try:
        yield address
    except Exception as error:
        reason, mend = next(
            REASONS[kind.__name__]
            for kind in type(error).__mro__
            if kind.__name__ in REASONS
        )
        if getattr(error, "status_code", None) == 404:
            reason, mend = "model_missing", "ollama pull gets it"
        # What a server says of its error is told; but nothing of a reply that is not
        # as it should be, for it might be taken for an answer.
        said = getattr(error, "error", type(error).__name__)
        raise ServerError(reason, f"{address}: {said} ({mend})"[:500]) from error


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
    # Loading it takes a while, and most questions ask no server.
    from http.client import HTTPConnection, HTTPSConnection

    with speaking() as address:
        # The raw list: the client would leave out which models are remote ones.
        connection = (
            HTTPSConnection if address.startswith("https") else HTTPConnection
        )(address.partition("://")[2], timeout=CONNECT_SECONDS)
        connection.request("GET", "/api/tags", headers={"Connection": "close"})
        found = [
            model
            for model in json.load(connection.getresponse())["models"]
            if full_name(model["model"]) == name
        ]
        digests = [model["digest"] for model in found]
    if name.endswith((":cloud", "-cloud")) or any(
        model.get("remote_host") or model.get("remote_model") for model in found
    ):
        raise ServerError("not_local", f"{name} does not run on this machine")
    if digests != [digest]:
        raise ServerError(
            "model_changed" if digests else "model_missing",
            f"{name} is to be there once, with the digest {digest}: {digests} is there",
        )


def embed(
    model: str, texts: Sequence[str], seconds: float = 300.0
) -> list[Sequence[float] | None]:
    """Have a model turn texts into vectors, and give up after `seconds` of silence.

    That is long, since the model may have to be loaded from the disk first. No text is
    cut: one that is too long for the model is an error of the server.
    """
    with speaking() as address, client(address, seconds) as ollama:
        vectors = ollama.embed(model, texts, truncate=False).embeddings
        return [vector for vector, _ in zip(vectors, texts, strict=True)]


def chat(request: Mapping[str, Any], seconds: float) -> Any:
    """Send a request for a chat, and give up after `seconds` of silence.

    Returns a `ChatResponse` of the client.
    """
    with speaking() as address, client(address, seconds) as ollama:
        return ollama.chat(**request)


def client(address: str, seconds: float) -> Any:
    """Return the official `Client`, made so that texts reach this address only.

    Neither a proxy of the environment nor a redirect may carry them elsewhere, and
    OLLAMA_API_KEY, which the client sends to any server, is taken out of the requests.
    """
    import ollama

    def without_key(request: Any) -> Any:
        request.headers.pop("Authorization", None)
        return request

    return ollama.Client(
        address,
        timeout=(min(seconds, CONNECT_SECONDS), seconds, seconds, seconds),
        trust_env=False,
        follow_redirects=False,
        auth=without_key,
    )
