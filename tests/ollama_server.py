"""A stand-in for an Ollama server, so that tests need no model and no network.

It answers as Ollama 0.33 does (statuses, fields, error texts, what happens to long
prompts) and misbehaves when a test asks for it. It has no model inside: what a model
"says" is always scripted, and a chat without a script is answered with an error.
Real exchanges are kept in recordings/ollama.json; any of them can be replayed.

    with OllamaServer() as server:
        client = ollama.Client(host=server.url, timeout=5, trust_env=False)
        server.reply_with({"status": "answered", "text": "...", "source_ids": ["S1"]})
        client.chat(CHAT_MODEL, messages)
        assert server.chats[0]["options"]["num_ctx"] == 8192

Scripts are queues, one for each path: the first request takes the first entry, the
next one the second. `times=3` lets an entry serve three requests, `times=None` all
that follow. Requests the server itself refuses (unknown model, prompt too long) leave
the script of replies alone.

    what the model says    reply_with, replay, and the texts PROSE, FENCED, BROKEN_JSON
    a server that fails    fail, answer, redirect, hang, cut, drop; `refusing()`
    a server that is slow  hold (until the test releases it; nothing ever sleeps)
    models that change     add_model, remove_model, change_digest, after
    what was sent          requests, chats, requests_to

Numbers of tokens are not a real tokeniser's: a text has its UTF-8 bytes divided by 4,
rounded up, and a chat adds 5 tokens per message and 3 for the prompt of the reply.
On the recorded exchanges this is within 25 % of what the real server counted. A test
that needs other numbers replaces `count_text` or `count_prompt`. Vectors are hashes
of letter pairs and triples: alike for alike texts, without any knowledge of language.

Not covered: /api/generate, /api/embeddings, pulling and creating models, /v1.

For a person: python tests/ollama_server.py --port 11500 --replay "evidence first, en"
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import hashlib
import ipaddress
import json
import math
import re
import socket
import socketserver
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHAT_MODEL = "qwen2.5-coder:1.5b"  # native prompt path: an over-long prompt is a 400
SMALL_MODEL = "smollm2:135m"  # rendered prompt path: an over-long prompt is cut
EMBED_MODEL = "multilingual-e5-small"  # 384 numbers, at most 512 tokens

PROSE = "Sure! Here is the answer: a refund takes three to five working days."
FENCED = '```json\n{"status": "answered", "text": "Yes.", "source_ids": ["S1"]}\n```'
BROKEN_JSON = '{"{"status": "answered", "text": "Yes.", "source_ids": ["S1"]}'

JSON_TYPE = "application/json; charset=utf-8"
STREAM_TYPE = "application/x-ndjson"
DEFAULT_WINDOW = 4096  # tokens, where the request names no num_ctx
MAX_LOADED = 3  # models in memory at once
ERROR_TEXTS = {
    404: "model 'gone' not found",
    500: "model runner has unexpectedly stopped",
    503: "server busy, please try again.  maximum pending requests exceeded",
}
CLOUD_OFF = "ollama cloud is disabled: remote model is unavailable"
UNSCRIPTED = (
    "the stand-in server has no reply for this chat: call server.reply_with(...) or "
    "server.replay(...) before it (on the command line: --reply or --replay)"
)
RECORDINGS = Path(__file__).parent / "recordings" / "ollama.json"


@cache
def recordings() -> dict[str, dict]:
    """The recorded exchanges by name: request, status, content_type, response."""
    exchanges = json.loads(RECORDINGS.read_text(encoding="utf-8"))["exchanges"]
    return {exchange["name"]: exchange for exchange in exchanges}


def recording(name: str) -> dict:
    """One recorded exchange (a copy); KeyError with all names where it is unknown."""
    if name not in recordings():
        raise KeyError(f"no recording {name!r}; there are: {', '.join(recordings())}")
    return copy.deepcopy(recordings()[name])


def estimate_tokens(text: str) -> int:
    """Tokens of a text by the rule above: UTF-8 bytes / 4, rounded up."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4)


def hash_vector(text: str, size: int, salt: str) -> list[float]:
    """A vector of length 1 from the letter pairs and triples of a text.

    Every text has one, the empty text too: its two ends count as letters.
    """
    letters = f"\x02{text.casefold()}\x03"
    numbers = [0] * size
    for width in (2, 3):
        for start in range(len(letters) - width + 1):
            gram = salt + letters[start : start + width]
            data = gram.encode("utf-8", "surrogatepass")
            hashed = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
            numbers[hashed % size] += 1 if hashed >> 63 else -1
    return normalised(numbers)


def normalised(numbers: list[Any]) -> list[float]:
    """The same direction with length 1, in the precision the server gives."""
    if not any(numbers):
        numbers = [1, *numbers[1:]]
    length = math.hypot(*numbers)
    return [round(number / length, 9) for number in numbers]


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """The URL of a port that refuses connections as long as the block lasts."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
        yield f"http://127.0.0.1:{closed.getsockname()[1]}"


@dataclass
class Request:
    """One request as it arrived. `body` is the parsed JSON, None if there is none.

    The names in `headers` are in lower case; `raw` is the body's bytes.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any = None


@dataclass
class Model:
    """An installed model. `name` has its tag; `extra` goes into the list as well."""

    name: str
    digest: str
    modified_at: str
    size: int
    details: dict
    capabilities: list[str]  # what the list says
    abilities: set[str]  # what the model can do: the list is not always complete
    rendered: bool  # the server renders the prompt itself, and cuts it silently
    extra: dict = field(default_factory=dict)
    shown: dict | None = None  # a recorded reply of /api/show

    @property
    def context_length(self) -> int:
        """Tokens the model was trained for."""
        return self.details.get("context_length", DEFAULT_WINDOW)

    def listed(self) -> dict:
        """The entry in /api/tags."""
        return {
            "name": self.name,
            "model": self.name,
            "modified_at": self.modified_at,
            "size": self.size,
            "digest": self.digest,
            "details": self.details,
            "capabilities": self.capabilities,
            **self.extra,
        }


@dataclass
class Reply:
    """One HTTP answer. `cut` ends the connection within the body.

    `lines` is a body that is streamed, one chunk for each line. With `drip`, `body` is
    the begin of the whole answer, its head included, and a byte more comes each `drip`
    seconds, without end.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[bytes] | None = None
    cut: bool = False
    drip: float | None = None


DROPPED = Reply(status=0)  # the connection ends without an answer


class Refused(Exception):
    """A request the server answers with an error: status and text."""

    def __init__(self, status: int, error: str):
        super().__init__(error)
        self.status = status


class Gate:
    """A request that waits: `arrived.wait(5)` until it is here, `release()` it."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._opened = threading.Event()

    def release(self) -> None:
        """Let the request go on."""
        self._opened.set()

    def pass_through(self) -> None:
        """Called by the server: say that the request is here and wait."""
        self.arrived.set()
        self._opened.wait()


@dataclass
class Turn:
    """An entry of a script: a fault (`act`) or what the model says (`said`)."""

    times: int | None
    act: Callable[[Request], Reply | None] | None = None
    said: Callable[[dict], dict] | None = None  # request body -> fields of the reply


def json_reply(value: object, status: int = 200) -> Reply:
    """An answer in JSON, as compact as the server's."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Reply(status, text.encode("utf-8", "surrogatepass"))


def now(seconds: float = 0) -> str:
    """The time in so many seconds, as the server writes it."""
    moment = datetime.now(UTC) + timedelta(seconds=min(seconds, 1e10))
    return moment.isoformat().replace("+00:00", "Z")


# Names of models


def full_tag(name: str) -> str:
    """The name as lists show it, letter case folded: `Library/X` is `x:latest`."""
    short = name.casefold().removesuffix(":local")
    short = short.removeprefix("registry.ollama.ai/").removeprefix("library/")
    return short if ":" in short.rpartition("/")[2] else f"{short}:latest"


def is_cloud(name: str) -> bool:
    """Whether a real server would send a request for this model to ollama.com."""
    return name.casefold().endswith((":cloud", "-cloud")) and ":" in name


def is_well_formed(name: str) -> bool:
    """Whether a name can be read as host/namespace/model:tag."""
    word = r"[A-Za-z0-9_][\w.-]*"
    return bool(re.fullmatch(rf"({word}(:\d+)?/)?({word}/)?{word}(:{word})*", name))


# What a request may look like


def decode(raw: bytes) -> Any:
    """The JSON value at the start of a body; Refused as the server says it."""
    text = raw.decode("utf-8", "replace").lstrip()
    if not text:
        raise Refused(400, "missing request body")
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError as error:
        at = error.pos
        if at >= len(text) or error.msg.startswith("Unterminated"):
            raise Refused(400, "unexpected EOF") from None
        raise Refused(
            400, f"invalid character '{text[at]}' looking for beginning of value"
        ) from None


GO_NAMES = {dict: "object", list: "array", str: "string", bool: "bool"}
CHAT_FIELDS = {
    "model": (str, "string"),
    "messages": (list, "[]api.Message"),
    "stream": (bool, "bool"),
    "options": (dict, "map[string]interface {}"),
    "tools": (list, "api.Tools"),
    "truncate": (bool, "bool"),
    "shift": (bool, "bool"),
}
MESSAGE_FIELDS = {"role": (str, "string"), "content": (str, "string")}
EMBED_FIELDS = {
    "model": (str, "string"),
    "truncate": (bool, "bool"),
    "dimensions": (int, "int"),
    "options": (dict, "map[string]interface {}"),
}
INTEGERS = ("num_ctx", "num_predict", "num_keep", "seed", "top_k", "repeat_last_n")
FLOATS = ("temperature", "top_p", "min_p", "repeat_penalty")


def check_fields(body: Any, fields: Mapping, prefix: str) -> None:
    """Refuse values of a wrong type, in the words of the server's decoder."""
    if not isinstance(body, dict):
        kind = GO_NAMES.get(type(body), "number")
        where = prefix.partition(".")[0]
        raise Refused(
            400, f"json: cannot unmarshal {kind} into Go value of type api.{where}"
        )
    for name, (kind, go_type) in fields.items():
        value = body.get(name)
        if value is None or type(value) is kind:
            continue
        found = GO_NAMES.get(type(value), "number")
        raise Refused(
            400,
            f"json: cannot unmarshal {found} into Go struct field "
            f"{prefix}.{name} of type {go_type}",
        )


def check_options(options: dict) -> None:
    """Options of a wrong type are a 500; unknown names are ignored."""
    for name, value in options.items():
        number = type(value) in (int, float)
        if value is None:
            continue
        if name in INTEGERS and not number:
            raise Refused(500, f'option "{name}" must be of type integer')
        if name in FLOATS and not number:
            raise Refused(500, f'option "{name}" must be of type float32')
        if name == "stop" and not isinstance(value, list):
            raise Refused(500, 'option "stop" must be of type array')


def check_think(body: dict, model: Model) -> None:
    """`think` is a boolean or a level, and only some models can."""
    think = body.get("think")
    levels = '"high", "medium", "low", "max", true, or false'
    if isinstance(think, str) and think not in ("low", "medium", "high", "max"):
        raise Refused(400, f'invalid think value: "{think}" (must be {levels})')
    if not isinstance(think, bool | str | None):
        raise Refused(400, f"think must be a boolean or string ({levels})")
    if think and "thinking" not in model.abilities:
        raise Refused(400, f'"{body["model"]}" does not support thinking')


def check_format(value: Any) -> None:
    """`format` is nothing, "json" or a schema the engine can convert."""
    if value is None or value in ("", "json"):
        return
    if not isinstance(value, dict):
        quoted = json.dumps(json.dumps(value))
        raise Refused(
            500,
            f'invalid format: {quoted}; expected "json" or a valid JSON Schema object',
        )
    fault = schema_fault(value, value)
    if fault:
        intro = "Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n"
        raise engine_error(message=intro + fault, type="invalid_request_error")


def schema_fault(schema: Any, root: dict) -> str | None:
    """Why the engine cannot convert a schema, None if it can."""
    if not isinstance(schema, dict):
        return None
    known = {"object", "array", "string", "number", "integer", "boolean", "null"}
    kinds = schema.get("type", [])
    if not known.issuperset([kinds] if isinstance(kinds, str) else kinds):
        return f"Unrecognized schema: {json.dumps(schema, separators=(',', ':'))}"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not re.fullmatch(r"(?s)\^.*\$", pattern):
        return "Pattern must start with '^' and end with '$'"
    if isinstance(schema.get("$ref"), str):
        target: Any = root
        for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
            if not isinstance(target, dict) or step not in target:
                return f"Error resolving ref {schema['$ref']}: {step} not in schema"
            target = target[step]
    inner = [schema.get("items"), schema.get("additionalProperties")]
    for key in ("properties", "$defs", "definitions"):
        inner += dict(schema.get(key, {})).values()
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner += schema.get(key, [])
    return next(filter(None, (schema_fault(part, root) for part in inner)), None)


def engine_error(**fields: object) -> Refused:
    """An error of the engine: its JSON is the text of the server's error."""
    error = {"error": {"code": 400, **fields}}
    text = json.dumps(error, ensure_ascii=False, separators=(",", ":"))
    return Refused(400, text)


UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def seconds_to_keep(value: Any) -> float:
    """`keep_alive` in seconds: a number, or a duration with its unit."""
    if value is None:
        return 300
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Refused(400, f"Unsupported type: '{GO_NAMES.get(type(value), 'map')}'")
    if isinstance(value, str):
        if re.fullmatch(r"[-+]?[\d.]+", value) and value != "0":
            raise Refused(400, f'time: missing unit in duration "{value}"')
        if not re.fullmatch(r"0|[-+]?([\d.]+(ns|us|µs|ms|s|m|h))+", value):
            raise Refused(400, f'time: invalid duration "{value}"')
        parts = re.findall(r"([\d.]+)(ns|us|µs|ms|s|m|h)", value)
        total = sum(float(number) * UNITS[unit] for number, unit in parts)
        value = -total if value.startswith("-") else total
    return math.inf if value < 0 else value


def is_local_host(host: str) -> bool:
    """Whether a Host header is one that the server accepts on loopback."""
    name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(name)
        return address.is_loopback or address.is_private or address.is_unspecified
    return name in ("", "localhost") or name.endswith(
        (".localhost", ".local", ".internal")
    )


def is_local_origin(origin: str) -> bool:
    """Whether a page of this origin may speak to the server."""
    parts = urllib.parse.urlsplit(origin)
    schemes = ("app", "file", "tauri", "vscode-webview", "vscode-file")
    hosts = ("localhost", "127.0.0.1", "0.0.0.0")
    return parts.scheme in schemes or parts.hostname in hosts


class OllamaServer:
    """The stand-in server: a context manager; `url` is where it listens.

    `models` are the installed ones, in the order of the list; `requests` all requests
    that arrived. `count_text(text)` and `count_prompt(messages)` give tokens and may
    be replaced. A fault inside the stand-in itself is raised when the block ends.
    """

    def __init__(self, port: int = 0):
        self.requests: list[Request] = []
        self.models = recorded_models()
        self.count_text: Callable[[str], int] = estimate_tokens
        self.count_prompt: Callable[[list[dict]], int] = self._count_prompt
        self.errors: list[Exception] = []
        self._scripts: dict[str, list[Turn]] = {}
        self._changes: list[tuple[str, int, Callable[[], object]]] = []
        self._loaded: dict[str, tuple[Model, int, float]] = {}  # window, until
        self._gates: list[Gate] = []
        self._lock = threading.RLock()
        self._http = _Listener(port, self)
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def __enter__(self) -> OllamaServer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
        if self.errors and kind is None:
            raise self.errors[0]

    def close(self) -> None:
        """Stop listening, let go what hangs, end all connections."""
        for gate in self._gates:
            gate.release()
        self._http.shutdown()
        self._http.end_connections()
        self._http.server_close()

    # What was sent

    def requests_to(self, path: str) -> list[Request]:
        """The requests to one path, oldest first."""
        return [request for request in self.requests if request.path == path]

    @property
    def chats(self) -> list[dict]:
        """The bodies of all chat requests, oldest first."""
        return [request.body for request in self.requests_to("/api/chat")]

    # What the model says

    def reply_with(
        self,
        content: str | dict | list | Callable[[dict], Any],
        *,
        thinking: str | None = None,
        times: int | None = 1,
        **fields: Any,
    ) -> None:
        """Script the reply of the next chat.

        A dict or list is sent as JSON text. A function gets the request's body and
        returns the content. `fields` replace fields of the reply: `done_reason=
        "length"`, `prompt_eval_count=12`, `message={...}`; None leaves a field out.
        With `done=False` there are no reason and no counts, as on a real server.
        """

        def said(body: dict) -> dict:
            text = content(body) if callable(content) else content
            if not isinstance(text, str):
                text = json.dumps(text, ensure_ascii=False)
            message = {"role": "assistant", "content": text}
            if thinking is not None:
                message["thinking"] = thinking
            return {"message": message, **fields}

        self._add("/api/chat", Turn(times, said=said))

    def replay(self, name: str, *, times: int | None = 1, **fields: Any) -> None:
        """Answer the next request to the recording's path with this recording.

        A chat gets the recorded message and counts, but its own prompt count unless
        its messages are the recorded ones. `fields` as in `reply_with`. Other
        recordings (errors, lists) are given as they are, whatever is asked.
        """
        recorded = recording(name)
        body, reply = recorded["request"]["body"], recorded["response"]
        path = recorded["request"]["path"]
        if path == "/api/embed" and reply.get("embeddings"):
            raise ValueError(f"{name!r} holds no whole vectors and cannot be replayed")
        if path != "/api/chat" or recorded["status"] != 200 or not body["messages"]:
            kind = recorded["content_type"]
            self.answer(reply, recorded["status"], kind, path=path, times=times)
            return

        def said(asked: dict) -> dict:
            told = {key: value for key, value in reply.items() if key != "model"}
            if asked["messages"] != body["messages"]:
                told.pop("prompt_eval_count")
            return {**told, **fields}

        self._add(path, Turn(times, said=said))

    # A server that fails

    def fail(
        self,
        status: int = 500,
        error: str | None = None,
        *,
        path: str = "/api/chat",
        times: int | None = 1,
    ) -> None:
        """Answer with an error of this status; 404, 500, 503 have a usual text."""
        text = ERROR_TEXTS.get(status, "unknown") if error is None else error
        self.answer({"error": text}, status, path=path, times=times)

    def answer(
        self,
        body: Any,
        status: int = 200,
        content_type: str = JSON_TYPE,
        *,
        path: str = "/api/chat",
        times: int | None = 1,
    ) -> None:
        """Answer with anything: text or bytes go out as they are, the rest as JSON."""
        if isinstance(body, str):
            body = body.encode()
        reply = Reply(body=body) if isinstance(body, bytes) else json_reply(body)
        reply.status, reply.content_type = status, content_type
        self._add(path, Turn(times, act=lambda request: reply))

    def redirect(
        self,
        to: str,
        status: int = 307,
        *,
        path: str = "/api/chat",
        times: int | None = 1,
    ) -> None:
        """Send the client elsewhere: `to` is a base address, the path is added."""
        reply = Reply(status, headers={"Location": to.rstrip("/") + path})
        self._add(path, Turn(times, act=lambda request: reply))

    def cut(self, *, path: str = "/api/chat", times: int | None = 1) -> None:
        """Begin a good answer and end the connection within its body."""
        reply = Reply(body=b'{"model":"cut off","message":{"role":', cut=True)
        self._add(path, Turn(times, act=lambda request: reply))

    def drop(self, *, path: str = "/api/chat", times: int | None = 1) -> None:
        """End the connection without an answer."""
        self._add(path, Turn(times, act=lambda request: DROPPED))

    def drip(
        self,
        begun: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n",
        *,
        path: str = "/api/chat",
        times: int | None = 1,
        seconds: float = 0.05,
    ) -> None:
        """Begin an answer, go on with a byte each so many seconds, and never end it."""
        reply = Reply(body=begun, drip=seconds)
        self._add(path, Turn(times, act=lambda request: reply))

    def hang(self, *, path: str = "/api/chat") -> Gate:
        """Take the next request and never answer it.

        It ends when the server closes or the gate is released, without an answer.
        """
        gate = self.hold(path=path)
        self.drop(path=path)
        return gate

    def hold(self, *, path: str = "/api/chat") -> Gate:
        """Let the next request wait until the gate is released, then serve it.

        So a model that loads slowly looks: hold, then the scripted reply.
        """
        gate = Gate()
        self._gates.append(gate)
        self._add(path, Turn(1, act=lambda request: gate.pass_through()))
        return gate

    def _add(self, path: str, turn: Turn) -> None:
        with self._lock:
            self._scripts.setdefault(path, []).append(turn)

    def _take(self, path: str, fault: bool) -> Turn | None:
        """The first entry of a script if it is a fault, or if it is a reply."""
        with self._lock:
            script = self._scripts.get(path, [])
            if not script or (script[0].act is not None) != fault:
                return None
            turn = script[0]
            if turn.times is not None:
                turn.times -= 1
                if turn.times < 1:
                    del script[0]
            return turn

    # Models that change

    def model(self, name: str) -> Model | None:
        """The installed model of this name (tag implied, letter case ignored)."""
        wanted = full_tag(name)
        return next((m for m in self.models if m.name.casefold() == wanted), None)

    def digest(self, name: str) -> str:
        """The digest of an installed model, 64 hex digits (KeyError: none)."""
        model = self.model(name)
        if model is None:
            raise KeyError(name)
        return model.digest

    def add_model(
        self,
        name: str,
        *,
        like: str = CHAT_MODEL,
        digest: str | None = None,
        rendered: bool | None = None,
        capabilities: list[str] | None = None,
        **extra: Any,
    ) -> Model:
        """Install one more model, first in the list, otherwise like a known one.

        `extra` are further fields of its entry: `remote_host="https://ollama.com"`.
        Two models of one name are possible here; requests go to the first.
        """
        known = self.model(like)
        if known is None:
            raise KeyError(like)
        tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        model = dataclasses.replace(
            copy.deepcopy(known),
            name=tagged,
            digest=digest or hashlib.sha256(tagged.encode()).hexdigest(),
            modified_at=now(),
            extra=extra,
        )
        if rendered is not None:
            model.rendered = rendered
        if capabilities is not None:
            model.capabilities, model.abilities = capabilities, set(capabilities)
            if model.shown:
                model.shown["capabilities"] = capabilities
        self.models.insert(0, model)
        return model

    def remove_model(self, name: str) -> None:
        """Uninstall all models of this name."""
        self.models = [m for m in self.models if m.name.casefold() != full_tag(name)]

    def change_digest(
        self,
        name: str,
        digest: str | None = None,
        *,
        path: str = "/api/tags",
        count: int = 1,
    ) -> str:
        """Let a name mean another model once `path` was answered `count` more times.

        By default the second look at the list gives another digest; `path="/api/chat"`
        changes it during generation; `count=0` at once. Returns the new digest.
        """
        new = digest or hashlib.sha256(self.digest(name).encode()).hexdigest()

        def change() -> None:
            model = self.model(name)
            if model is not None:
                model.digest = new

        self.after(path, change, count)
        return new

    def after(self, path: str, change: Callable[[], object], count: int = 1) -> None:
        """Call `change` when the `count`-th answer to `path` from now is composed.

        The answer itself is still the old one: `server.after("/api/tags",
        lambda: server.remove_model(name))`.
        """
        if count < 1:
            change()
            return
        with self._lock:
            self._changes.append((path, count, change))

    def _pass_time(self, path: str) -> None:
        """One more answer to `path`: make the changes that were waiting for it."""
        due = []
        with self._lock:
            waiting = []
            for where, count, change in self._changes:
                count -= where == path
                if count:
                    waiting.append((where, count, change))
                else:
                    due.append(change)
            self._changes = waiting
        for change in due:
            change()

    # Settings for the course's app

    def answer_env(self, model: str = CHAT_MODEL) -> dict[str, str]:
        """The environment in which the app answers with this server and model."""
        return {
            "OLLAMA_HOST": self.url,
            "ANSWER_BACKEND": "ollama",
            "ANSWER_MODEL": model,
            "ANSWER_DIGEST": self.digest(model),
        }

    def embed_env(self, model: str = EMBED_MODEL) -> dict[str, str]:
        """The environment in which the app embeds with this server and model."""
        return {
            "OLLAMA_HOST": self.url,
            "EMBED_BACKEND": "ollama",
            "EMBED_MODEL": model,
            "EMBED_DIGEST": self.digest(model),
        }

    # Answering

    def respond(self, request: Request) -> Reply:
        """The answer to one request: guard, script, then what a sound server says."""
        self.requests.append(request)
        origin = request.headers.get("origin", "")
        if not is_local_host(request.headers.get("host", "")) or (
            origin and not is_local_origin(origin)
        ):
            return Reply(403, content_type="")
        reply = None
        while reply is None and (turn := self._take(request.path, fault=True)):
            assert turn.act is not None
            reply = turn.act(request)
        try:
            reply = reply or self._serve(request)
        except Refused as refused:
            reply = json_reply({"error": str(refused)}, refused.status)
        self._pass_time(request.path)
        return reply

    def _serve(self, request: Request) -> Reply:
        routes = {
            "/": ("GET", self._root),
            "/api/version": ("GET", self._version),
            "/api/status": ("GET", self._status),
            "/api/tags": ("GET", self._tags),
            "/api/ps": ("GET", self._ps),
            "/api/show": ("POST", self._show),
            "/api/chat": ("POST", self._chat),
            "/api/embed": ("POST", self._embed),
        }
        if request.path not in routes:
            return Reply(404, b"404 page not found", "text/plain")
        method, handler = routes[request.path]
        if request.method.replace("HEAD", "GET") != method:
            return Reply(405, b"405 method not allowed", "text/plain")
        return handler(request)

    def _root(self, request: Request) -> Reply:
        return Reply(200, b"Ollama is running", "text/plain; charset=utf-8")

    def _version(self, request: Request) -> Reply:
        return json_reply(recording("version")["response"])

    def _status(self, request: Request) -> Reply:
        return json_reply({"cloud": {"disabled": True, "source": "env"}})

    def _tags(self, request: Request) -> Reply:
        return json_reply({"models": [model.listed() for model in self.models]})

    def _ps(self, request: Request) -> Reply:
        hidden = ("context_length", "embedding_length")
        models = []
        for model, window, until in sorted(self._in_memory(), key=lambda m: -m[2]):
            details = {k: v for k, v in model.details.items() if k not in hidden}
            models.append(
                {
                    "name": model.name,
                    "model": model.name,
                    "size": model.size,
                    "digest": model.digest,
                    "details": details,
                    "expires_at": now(until - time.monotonic()),
                    "size_vram": 0,
                    "context_length": window,
                }
            )
        return json_reply({"models": models})

    def _show(self, request: Request) -> Reply:
        body = decode(request.raw)
        check_fields(body, {"model": (str, "string"), "name": (str, "string")}, "Show")
        name = body.get("model") or body.get("name")
        if not name:
            raise Refused(400, "model is required")
        if not is_well_formed(name):
            raise Refused(400, "invalid model name")
        model = self.model(name)
        if model is None:
            tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
            raise Refused(404, f"model '{tagged}' not found")
        return json_reply(model.shown or shown(model))

    def _chat(self, request: Request) -> Reply:
        body = decode(request.raw)
        check_fields(body, CHAT_FIELDS, "ChatRequest")
        messages = body.get("messages") or []
        for message in messages:
            check_fields(message, MESSAGE_FIELDS, "ChatRequest.messages")
        keep = seconds_to_keep(body.get("keep_alive"))
        name = body.get("model")
        if not name:
            raise Refused(400, "model is required")
        model = self._local_model(name)
        if model is None:
            raise Refused(404, f"model '{name}' not found")
        options = body.get("options") or {}
        self._check_abilities(body, model)
        check_options(options)
        if not messages:
            return self._load_only(body, model, keep)
        check_format(body.get("format"))
        window = window_of(model, options)
        load = self._load(model, window, keep)
        prompt = self._fit(model, messages, window, body)
        turn = self._take("/api/chat", fault=False)
        if turn is None or turn.said is None:
            raise Refused(500, UNSCRIPTED)
        reply = self._composed(body, turn.said(body), prompt, load)
        if body.get("stream") is False:
            return json_reply(reply)
        return Reply(content_type=STREAM_TYPE, lines=streamed(reply))

    def _local_model(self, name: str) -> Model | None:
        """The model of a request; Refused if it would have to leave the machine."""
        model = self.model(name)
        if is_cloud(name) or (model is not None and "remote_host" in model.extra):
            raise Refused(403, CLOUD_OFF)
        if not is_well_formed(name):
            raise Refused(400, "invalid model name")
        return model

    def _check_abilities(self, body: dict, model: Model) -> None:
        """Refuse chat, tools and thinking to models that cannot do it."""
        if "completion" not in model.abilities:
            raise Refused(400, f'"{body["model"]}" does not support chat')
        if body.get("tools") and "tools" not in model.abilities:
            full = f"registry.ollama.ai/library/{model.name}"
            raise Refused(400, f"{full} does not support tools")
        check_think(body, model)

    def _load_only(self, body: dict, model: Model, keep: float) -> Reply:
        """A chat without messages loads the model, or unloads it with keep_alive 0."""
        self._load(model, window_of(model, body.get("options") or {}), keep)
        return json_reply(
            {
                "model": body["model"],
                "created_at": now(),
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "load" if keep else "unload",
            }
        )

    def _in_memory(self) -> list[tuple[Model, int, float]]:
        """Loaded models whose time is not over, with window and end."""
        with self._lock:
            return [m for m in self._loaded.values() if m[2] > time.monotonic()]

    def _load(self, model: Model, window: int, keep: float) -> int:
        """Load a model with this window; the nanoseconds it is said to have taken."""
        with self._lock:
            ready = self._loaded.get(model.name, (model, 0, 0.0))
            warm = ready[1] == window and ready[2] > time.monotonic()
            self._loaded[model.name] = (model, window, time.monotonic() + keep)
            by_end = sorted(self._loaded, key=lambda name: self._loaded[name][2])
            for name in by_end[:-MAX_LOADED]:
                del self._loaded[name]
        return 1_200_000 if warm else 2_000_000_000

    def _count_prompt(self, messages: list[dict]) -> int:
        """Tokens of a chat: its texts, 5 per message, 3 for the reply's beginning."""
        texts = [message.get("content") or "" for message in messages]
        return sum(self.count_text(text) + 5 for text in texts) + 3

    def _fit(self, model: Model, messages: list, window: int, body: dict) -> int:
        """Tokens that are read of a prompt; what does not fit is lost in silence.

        The oldest messages go first, but no system message and not the last one. If
        that is not enough, the native path refuses and the rendered path cuts the
        middle out of the prompt, down to half of the window.
        """
        kept = list(messages)
        count = self.count_prompt(kept)
        while count > window and body.get("truncate") is not False:
            roles = [str(message.get("role", "")).lower() for message in kept[:-1]]
            oldest = next((i for i, role in enumerate(roles) if role != "system"), None)
            if oldest is None:
                break
            del kept[oldest]
            count = self.count_prompt(kept)
        if count <= window:
            return count
        if body.get("truncate") is False or not model.rendered:
            raise engine_error(
                message=f"request ({count} tokens) exceeds the available context size "
                f"({window} tokens), try increasing it",
                type="exceed_context_size_error",
                n_prompt_tokens=count,
                n_ctx=window,
            )
        if body.get("shift") is False:
            raise Refused(
                400,
                "the prompt is longer than the context length currently available to "
                "the model; shorten the prompt, adjust the context length in settings, "
                "or use a model with a longer context length",
            )
        return window // 2 + 2

    def _composed(self, body: dict, told: dict, prompt: int, load: int) -> dict:
        """A whole reply: what was scripted, and counts where nothing was."""
        message = told["message"] or {}
        written = self.count_text(message.get("thinking") or "")
        written += self.count_text(message.get("content") or "") + 1
        durations = {
            "load_duration": load,
            "prompt_eval_count": prompt,
            "prompt_eval_duration": prompt * 1_000_000,
            "eval_count": written,
            "eval_duration": written * 10_000_000,
        }
        total = load + durations["prompt_eval_duration"] + durations["eval_duration"]
        usual = {"done_reason": "stop", "total_duration": total, **durations}
        if told.get("done") is False:
            usual = {}
        reply = {"model": body["model"], "created_at": now(), "message": message}
        reply |= {"done": True, **usual, **told}
        return {
            key: value
            for key, value in reply.items()
            if value is not None and not (type(value) is int and value == 0)
        }

    def _embed(self, request: Request) -> Reply:
        body = decode(request.raw)
        check_fields(body, EMBED_FIELDS, "EmbedRequest")
        keep = seconds_to_keep(body.get("keep_alive"))
        name, given = body.get("model") or "", body.get("input")
        texts = given if isinstance(given, list) else [given] if given else []
        if not all(isinstance(text, str) for text in texts):
            raise Refused(400, "invalid input type")
        if not name:
            raise Refused(404, "model '' not found")
        model = self._local_model(name)
        if model is None:
            raise Refused(404, f'model "{name}" not found, try pulling it first')
        options = body.get("options") or {}
        check_options(options)
        if not texts:
            return json_reply({"model": name, "embeddings": []})
        window = window_of(model, options)
        load = self._load(model, window, keep)
        if "embedding" not in model.abilities:
            what = "This server does not support embeddings."
            raise Refused(501, f"{what} Start it with `--embeddings`")
        vectors, count = [], 0
        for text in texts:
            text, tokens = self._cut_text(text, window, body.get("truncate"))
            vectors.append(vector_of(model, text, body.get("dimensions")))
            count += tokens
        return json_reply(
            {
                "model": name,
                "embeddings": vectors,
                "total_duration": load + count * 1_000_000,
                "load_duration": load,
                "prompt_eval_count": count,
            }
        )

    def _cut_text(self, text: str, window: int, truncate: Any) -> tuple[str, int]:
        """The part of a text that is embedded and its tokens, two special ones too."""
        tokens = self.count_text(text) + 2
        if tokens <= window:
            return text, tokens
        if truncate is False:
            raise Refused(400, "the input length exceeds the context length")
        low, high = 0, len(text)
        while low < high:  # the longest beginning that fits
            middle = (low + high + 1) // 2
            if self.count_text(text[:middle]) + 2 <= window:
                low = middle
            else:
                high = middle - 1
        return text[:low], window


def recorded_models() -> list[Model]:
    """The models of the recorded list, with the recorded replies of /api/show."""
    known = {
        CHAT_MODEL: recording("show chat model")["response"],
        f"{EMBED_MODEL}:latest": recording("show embedder")["response"],
    }
    models = []
    for entry in recording("tags")["response"]["models"]:
        entry.pop("model")
        show = known.get(entry["name"])
        abilities = set(show["capabilities"] if show else entry["capabilities"])
        rendered = entry["name"] == SMALL_MODEL
        models.append(
            Model(**entry, abilities=abilities, rendered=rendered, shown=show)
        )
    return models


def shown(model: Model) -> dict:
    """A reply of /api/show for a model of which none was recorded."""
    details = dict(model.details)
    arch = details["family"]
    info = {"general.architecture": arch}
    for key in ("context_length", "embedding_length"):
        if key in details:
            info[f"{arch}.{key}"] = details.pop(key)
    if "embedding" in model.abilities:
        info[f"{arch}.pooling_type"] = 1
    return {
        "modelfile": f'# Modelfile generated by "ollama show"\n# FROM {model.name}\n',
        "template": "{{ .Prompt }}",
        "details": details,
        "model_info": info,
        "capabilities": sorted(model.abilities),
        "modified_at": model.modified_at,
    }


def window_of(model: Model, options: dict) -> int:
    """The context a model gets, in tokens: as asked, at least 4, at most its own."""
    asked = int(options.get("num_ctx") or DEFAULT_WINDOW)
    return min(max(asked, 4), model.context_length)


def vector_of(model: Model, text: str, dimensions: int | None) -> list[float]:
    """The model's vector; another digest gives other vectors, as other weights do."""
    size = model.details.get("embedding_length", 384)
    vector = hash_vector(text, size, salt=model.digest)
    if dimensions and 0 < dimensions < size:
        return normalised(vector[:dimensions])
    return vector


def streamed(reply: dict) -> list[bytes]:
    """The lines of a streamed reply: pieces of the text, then the counts."""
    message = reply["message"]
    head = {key: reply[key] for key in ("model", "created_at") if key in reply}
    pieces: list[dict] = []
    for key in ("thinking", "content"):
        for piece in re.findall(r"(?s)\s*\S+\s*$|\s*\S+|\s+", message.get(key) or ""):
            pieces.append({"role": "assistant", "content": "", key: piece})
    values = [{**head, "message": piece, "done": False} for piece in pieces]
    values.append({**reply, "message": {"role": "assistant", "content": ""}})
    return [json_reply(value).body + b"\n" for value in values]


class _Listener(ThreadingHTTPServer):
    """Accepts connections on loopback and can end them all."""

    daemon_threads = True

    def __init__(self, port: int, owner: OllamaServer):
        self.owner = owner
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's: that one asks the network for the name of this machine.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # A client that goes away in the middle is no fault of the stand-in.
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.owner.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    """Reads a request, hands it to the stand-in, writes the reply."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    disable_nagle_algorithm = True
    server: _Listener

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path.partition("?")[0], headers, raw)
        with contextlib.suppress(Refused):
            request.body = decode(raw)
        try:
            reply = self.server.owner.respond(request)
        except Exception as error:  # shown to the client now and to the test at the end
            self.server.owner.errors.append(error)
            reply = json_reply({"error": f"fault in the stand-in: {error!r}"}, 500)
        self.write(reply)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = handle_any

    def write(self, reply: Reply) -> None:
        if reply.status == 0:
            self.close_connection = True
            return
        if reply.drip is not None:
            self.close_connection = True
            self.wfile.write(reply.body)
            with contextlib.suppress(OSError):  # the caller has gone
                while True:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    time.sleep(reply.drip)
            return
        self.send_response(reply.status)
        if reply.content_type:
            self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.lines is not None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in [*reply.lines, b""]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            return
        missing = 1000 if reply.cut else 0
        self.send_header("Content-Length", str(len(reply.body) + missing))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
        self.close_connection = self.close_connection or reply.cut

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: tests look at `requests`."""


def main() -> None:
    """Serve for a person until Ctrl+C."""
    parser = argparse.ArgumentParser(description="A stand-in for an Ollama server.")
    parser.add_argument("--port", type=int, default=11500)
    parser.add_argument("--reply", help="answer every chat with this text")
    parser.add_argument("--replay", help="answer every chat with this recording")
    parser.add_argument("--list", action="store_true", help="name the recordings")
    options = parser.parse_args()
    if options.list:
        print("\n".join(recordings()))
        return
    try:
        server = OllamaServer(options.port)
    except OSError as error:
        parser.error(f"port {options.port} is not free: {error}")
    with server:
        if options.reply is not None:
            server.reply_with(options.reply, times=None)
        elif options.replay is not None:
            server.replay(options.replay, times=None)
        print(f"Stand-in server at {server.url}; Ctrl+C ends it. Its models:")
        for model in server.models:
            print(f"  {model.digest}  {model.name}")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
