"""The stand-in server answers as the recorded one did, and fails as it is told."""

from __future__ import annotations

import http.client
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import ollama
import pydantic
import pytest

from .ollama_server import (
    BROKEN_JSON,
    CHAT_MODEL,
    EMBED_MODEL,
    FENCED,
    PROSE,
    SMALL_MODEL,
    OllamaServer,
    recording,
    recordings,
    refusing,
)

HELLO = [{"role": "user", "content": "hi"}]
SOON = 10  # seconds: a limit for what happens at once, never reached in a sound run
ANSWERED = {"status": "answered", "text": "Three days.", "source_ids": ["S1"]}


@pytest.fixture
def server():
    with OllamaServer() as running:
        yield running


@pytest.fixture
def client(server):
    with ollama.Client(host=server.url, timeout=SOON, trust_env=False) as speaking:
        yield speaking


def send(server, method, path, body=None, headers=None):
    """One raw request -> status, content type, body (parsed if it is JSON)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
    try:
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        data = None if body is None else body.encode()
        connection.request(method, path, data, headers or {})
        reply = connection.getresponse()
        text, kind = reply.read().decode(), reply.getheader("Content-Type")
    finally:
        connection.close()
    return reply.status, kind, json.loads(text) if kind and "json" in kind else text


def chat(server, model=CHAT_MODEL, messages=HELLO, **fields):
    """A raw chat, not streaming -> status and body."""
    body = {"model": model, "messages": messages, "stream": False, **fields}
    status, _, reply = send(server, "POST", "/api/chat", body)
    return status, reply


def embed(server, model=EMBED_MODEL, **fields):
    """A raw embed request -> status and body."""
    status, _, reply = send(server, "POST", "/api/embed", {"model": model, **fields})
    return status, reply


def fields_of(value):
    """The names of all fields in a reply, values left out."""
    if isinstance(value, dict):
        return {key: fields_of(inner) for key, inner in value.items()}
    return [fields_of(inner) for inner in value] if isinstance(value, list) else None


def in_background(function):
    """Run a function in a thread -> the thread and the list its result goes into."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    return thread, results


# What was recorded


@pytest.mark.parametrize("name", recordings())
def test_a_recorded_request_gets_the_recorded_answer(server, name):
    recorded = recording(name)
    request, expected = recorded["request"], recorded["response"]
    is_answer = request["path"] == "/api/chat" and recorded["status"] == 200
    if is_answer and request["body"]["messages"]:
        server.replay(name)
    if name == "ps":
        for model in reversed(expected["models"]):
            chat(server, model["name"], [])
    if "exceed_context_size_error" in json.dumps(expected):
        server.count_prompt = lambda messages: (
            2186
        )  # what the model's tokeniser counted

    status, kind, reply = send(
        server, request["method"], request["path"], request["body"]
    )

    assert (status, kind) == (recorded["status"], recorded["content_type"])
    if request["path"] == "/api/embed" and status == 200:
        assert fields_of(reply | {"embeddings": 0}) == fields_of(
            expected | {"embeddings": 0}
        )
        lengths = [vector["length"] for vector in expected["embeddings"]]
        assert [len(vector) for vector in reply["embeddings"]] == lengths
    elif name == "ps":
        assert fields_of(reply) == fields_of(expected)
        for key in ("name", "digest", "details", "size_vram", "context_length"):
            assert [m[key] for m in reply["models"]] == [
                m[key] for m in expected["models"]
            ]
    elif name == "load only":
        assert reply | {"created_at": 0} == expected | {"created_at": 0}
    else:
        assert reply == expected


def test_a_replayed_reply_counts_the_prompt_it_gets(server):
    server.replay("evidence first, zh")
    _, reply = chat(server, messages=[{"role": "user", "content": "x" * 4000}])
    assert reply["prompt_eval_count"] == 1000 + 5 + 3
    assert "退款一般在三到五个工作日内到账" in reply["message"]["content"]
    assert reply["eval_count"] == 38


def test_counts_are_near_the_recorded_ones(server):
    for exchange in recordings().values():
        request = exchange["request"]
        if (
            not exchange["name"].startswith("too long")
            and "prompt_eval_count" in (exchange["response"])
        ):
            if request["path"] != "/api/chat":
                continue
            real = exchange["response"]["prompt_eval_count"]
            counted = server.count_prompt(request["body"]["messages"])
            assert abs(counted - real) <= 0.25 * real, exchange["name"]


def test_recorded_vectors_are_not_whole_and_not_replayed(server):
    with pytest.raises(ValueError, match="whole vectors"):
        server.replay("embed two")
    with pytest.raises(KeyError, match="there are: root"):
        server.replay("no such name")


# The list of models and their names


def test_the_client_reads_the_list_and_the_models(server, client):
    digests = {model.model: model.digest for model in client.list().models}
    assert digests["multilingual-e5-small:latest"] == server.digest(EMBED_MODEL)
    shown = client.show(CHAT_MODEL)
    assert shown.modelinfo["qwen2.context_length"] == 32768
    assert client.show("all-minilm").capabilities == ["embedding"]
    assert client.show(SMALL_MODEL).modelinfo["llama.context_length"] == 8192


@pytest.mark.parametrize(
    "name",
    [
        "ALL-MiniLM",
        "all-minilm:latest",
        "library/all-minilm",
        "registry.ollama.ai/library/all-minilm:LATEST",
        "all-minilm:local",
    ],
)
def test_names_fold_case_and_imply_latest_and_are_echoed(server, name):
    status, reply = embed(server, name, input="tea")
    assert (status, reply["model"]) == (200, name)


def test_no_other_tag_is_ever_chosen(server):
    assert chat(server, "smollm2") == (404, {"error": "model 'smollm2' not found"})


@pytest.mark.parametrize("name", ["gpt-oss:120b-cloud", "some:cloud", "Some:CLOUD"])
def test_cloud_names_are_refused(server, name):
    error = {"error": "ollama cloud is disabled: remote model is unavailable"}
    assert chat(server, name) == (403, error)
    assert embed(server, name, input="tea") == (403, error)


def test_a_remote_model_shows_only_in_the_raw_list(server, client):
    server.add_model(
        "assistant", remote_model="gpt-oss:120b", remote_host="https://ollama.com:443"
    )
    _, _, raw = send(server, "GET", "/api/tags")
    assert raw["models"][0]["name"] == "assistant:latest"
    assert raw["models"][0]["remote_host"] == "https://ollama.com:443"
    assert not hasattr(client.list().models[0], "remote_host")
    assert chat(server, "assistant")[0] == 403


def test_two_models_may_share_a_name(server, client):
    server.add_model(CHAT_MODEL.upper(), digest="a" * 64)
    names = [model.model.casefold() for model in client.list().models]
    assert names.count(CHAT_MODEL) == 2
    server.remove_model(CHAT_MODEL)
    assert server.model(CHAT_MODEL) is None


def test_show_refuses_in_words_of_its_own(server):
    for body, status, error in [
        ({}, 400, "model is required"),
        ({"model": "a//b"}, 400, "invalid model name"),
        ({"name": "nope"}, 404, "model 'nope:latest' not found"),
    ]:
        reply = send(server, "POST", "/api/show", body)
        assert (reply[0], reply[2]) == (status, {"error": error})


# Chat


def test_an_unscripted_chat_says_what_to_do(server):
    status, reply = chat(server)
    assert status == 500
    assert "server.reply_with" in reply["error"]
    assert "server.replay" in reply["error"]


def test_scripted_replies_come_in_order(server, client):
    server.reply_with("one")
    server.reply_with(ANSWERED)
    server.reply_with(lambda body: body["messages"][-1]["content"] + "!", times=2)
    texts = [client.chat(CHAT_MODEL, HELLO).message.content for _ in range(4)]
    assert texts == ["one", json.dumps(ANSWERED), "hi!", "hi!"]
    assert chat(server)[0] == 500


def test_a_whole_reply_has_all_fields(server, client):
    server.reply_with(ANSWERED)
    reply = client.chat(CHAT_MODEL.upper(), HELLO, options={"num_ctx": 8192})
    assert reply.model == CHAT_MODEL.upper()
    assert (reply.done, reply.done_reason) == (True, "stop")
    assert reply.prompt_eval_count == 1 + 5 + 3
    assert reply.total_duration > reply.load_duration > 0
    assert server.chats[0]["options"] == {"num_ctx": 8192}
    assert server.requests[0].headers["content-type"] == "application/json"


def test_fields_can_be_replaced_or_left_out(server, client):
    server.reply_with("", thinking="Hm.", done_reason="length", prompt_eval_count=3)
    server.reply_with("half", done=False)
    server.reply_with("x", prompt_eval_count=None, eval_count=0)
    first, second, third = (client.chat(CHAT_MODEL, HELLO) for _ in range(3))
    assert (first.message.content, first.message.thinking) == ("", "Hm.")
    assert (first.done_reason, first.prompt_eval_count) == ("length", 3)
    assert (second.done, second.done_reason, second.eval_count) == (False, None, None)
    assert (third.prompt_eval_count, third.eval_count) == (None, None)


def test_streaming_is_the_default(server, client):
    server.reply_with("two words", thinking="Hm.", times=2)
    body = {"model": CHAT_MODEL, "messages": HELLO}
    assert send(server, "POST", "/api/chat", {**body, "stream": False})[0] == 200
    parts = list(client.chat(CHAT_MODEL, HELLO, stream=True))
    assert "".join(part.message.content for part in parts) == "two words"
    assert [part.done for part in parts] == [False, False, False, True]
    assert parts[-1].prompt_eval_count and parts[-1].done_reason == "stop"
    server.reply_with("raw")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
    connection.request("POST", "/api/chat", json.dumps(body))
    reply = connection.getresponse()
    assert reply.getheader("Content-Type") == "application/x-ndjson"
    assert [json.loads(line)["done"] for line in reply.read().splitlines()] == [
        False,
        True,
    ]
    connection.close()


def test_an_error_within_a_stream(server, client):
    piece = {"message": {"role": "assistant", "content": "So"}, "done": False}
    lines = f"{json.dumps(piece)}\n{json.dumps({'error': 'out of memory'})}\n"
    server.answer(lines, content_type="application/x-ndjson")
    stream = client.chat(CHAT_MODEL, HELLO, stream=True)
    assert next(stream).message.content == "So"
    with pytest.raises(ollama.ResponseError, match="out of memory") as caught:
        next(stream)
    assert caught.value.status_code == -1


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"options": []}, 400, "json: cannot unmarshal array"),
        (
            {"options": {"temperature": "0"}},
            500,
            'option "temperature" must be of type',
        ),
        ({"options": {"stop": "x"}}, 500, 'option "stop" must be of type array'),
        ({"messages": "hi"}, 400, "json: cannot unmarshal string"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, 400, "cannot unmarshal"),
        ({"messages": ["hi"]}, 400, "json: cannot unmarshal string into Go value"),
        ({"model": "a b"}, 400, "invalid model name"),
        ({"model": ""}, 400, "model is required"),
        ({"format": True}, 500, 'invalid format: "true"; expected "json"'),
        ({"format": {"properties": {"a": {"type": "x"}}}}, 400, "Unrecognized schema"),
        ({"format": {"type": "string", "pattern": "a+"}}, 400, "Pattern must start"),
        ({"format": {"$ref": "#/$defs/no"}}, 400, "Error resolving ref"),
        ({"think": "much"}, 400, 'invalid think value: "much"'),
        ({"think": "high"}, 400, f'"{CHAT_MODEL}" does not support thinking'),
        ({"keep_alive": "abc"}, 400, 'time: invalid duration "abc"'),
        ({"keep_alive": "5"}, 400, 'time: missing unit in duration "5"'),
        ({"keep_alive": True}, 400, "Unsupported type: 'bool'"),
    ],
)
def test_a_wrong_request_is_refused_and_uses_up_no_reply(server, fields, status, error):
    server.reply_with("still here")
    got, reply = chat(server, **fields)
    assert got == status
    assert error in reply["error"]
    assert chat(server)[1]["message"]["content"] == "still here"


@pytest.mark.parametrize(
    "fields",
    [
        {"think": False},
        {"format": ""},
        {"format": "json"},
        {"format": {"$ref": "#/$defs/a", "$defs": {"a": {"type": ["string", "null"]}}}},
        {"keep_alive": "1h30m"},
        {"keep_alive": -1},
        {"options": {"no_such_option": "x", "num_ctx": None}},
        {"messages": [{"role": "user", "content": None}]},
        {"no_such_field": 1},
    ],
)
def test_what_the_server_lets_pass(server, fields):
    server.reply_with("yes")
    assert chat(server, **fields)[0] == 200


def test_an_empty_body_and_what_stands_after_the_object(server):
    reply = send(server, "POST", "/api/chat", "")
    assert (reply[0], reply[2]) == (400, {"error": "missing request body"})
    reply = send(server, "POST", "/api/chat", "{x")
    assert reply[2]["error"].startswith("invalid character 'x'")
    assert send(server, "POST", "/api/show", '{"model":"all-minilm"} etc')[0] == 200


def test_tools_and_thinking_depend_on_the_model(server):
    tools = [{"type": "function", "function": {"name": "clock"}}]
    full = "registry.ollama.ai/library/smollm2:135m does not support tools"
    assert chat(server, SMALL_MODEL, tools=tools) == (400, {"error": full})
    server.add_model("thinker", capabilities=["completion", "thinking"])
    server.reply_with("", thinking="Hm.")
    status, reply = chat(server, "thinker", think=True)
    assert (status, reply["message"]["thinking"]) == (200, "Hm.")


def test_a_chat_without_messages_loads_and_unloads(server, client):
    assert client.chat(SMALL_MODEL, options={"num_ctx": 100_000}).done_reason == "load"
    (loaded,) = client.ps().models
    assert (loaded.name, loaded.context_length) == (SMALL_MODEL, 8192)
    assert client.chat(SMALL_MODEL, keep_alive=0).done_reason == "unload"
    assert client.ps().models == []


def test_another_window_loads_the_model_again(server, client):
    server.reply_with("x", times=None)
    windows = (4096, 4096, 8192)
    took = [
        client.chat(CHAT_MODEL, HELLO, options={"num_ctx": window}).load_duration
        for window in windows
    ]
    assert took[1] < took[0] == took[2]


# Prompts that are too long

LONG = [
    {"role": "system", "content": "Answer."},
    {"role": "user", "content": "word " * 1000},
]


def test_a_long_prompt_on_the_native_path_is_a_nested_error(server, client):
    server.reply_with("not used")
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(CHAT_MODEL, LONG, options={"num_ctx": 512})
    inner = json.loads(caught.value.error)["error"]
    assert inner["type"] == "exceed_context_size_error"
    assert (inner["n_prompt_tokens"], inner["n_ctx"]) == (1265, 512)


def test_a_long_prompt_on_the_rendered_path_is_cut_in_silence(server, client):
    server.reply_with(ANSWERED)
    reply = client.chat(SMALL_MODEL, LONG, options={"num_ctx": 512})
    assert (reply.done_reason, reply.prompt_eval_count) == ("stop", 258)


def test_a_long_prompt_is_refused_where_truncating_or_shifting_is_off(server):
    status, reply = chat(server, SMALL_MODEL, LONG * 9, truncate=False)
    assert (status, json.loads(reply["error"])["error"]["code"]) == (400, 400)
    options = {"num_ctx": 512}
    status, reply = chat(server, SMALL_MODEL, LONG, shift=False, options=options)
    assert (status, reply["error"][:25]) == (400, "the prompt is longer than")


@pytest.mark.parametrize("model", [CHAT_MODEL, SMALL_MODEL])
def test_the_oldest_messages_are_dropped_in_silence(server, client, model):
    turns = [{"role": "user", "content": "word " * 100} for _ in range(10)]
    messages = [LONG[0], *turns, {"role": "user", "content": "What did I say first?"}]
    server.reply_with("x", times=2)
    whole = client.chat(model, messages, options={"num_ctx": 4096})
    short = client.chat(model, messages, options={"num_ctx": 512})
    assert whole.prompt_eval_count == (2 + 5) + 10 * (125 + 5) + (6 + 5) + 3
    assert short.prompt_eval_count == (2 + 5) + 3 * (125 + 5) + (6 + 5) + 3


def test_without_num_ctx_the_window_is_4096(server, client):
    server.reply_with("x")
    reply = client.chat(SMALL_MODEL, [{"role": "user", "content": "x" * 20_000}])
    assert reply.prompt_eval_count == 2050


def test_another_tokeniser_can_do_the_counting(server, client):
    server.count_prompt = lambda messages: 77
    server.reply_with("x")
    assert client.chat(CHAT_MODEL, HELLO).prompt_eval_count == 77


# Vectors


def test_vectors_have_length_one_and_keep_their_order(server, client):
    texts = ["query: old addresses", "passage: 旧地址", "query: old addresses", ""]
    reply = client.embed(EMBED_MODEL, texts)
    assert [len(vector) for vector in reply.embeddings] == [384] * 4
    assert all(math.isclose(math.hypot(*v), 1, abs_tol=1e-6) for v in reply.embeddings)
    assert reply.embeddings[0] == reply.embeddings[2] != reply.embeddings[1]
    assert reply.embeddings[1] == client.embed(EMBED_MODEL, texts[1]).embeddings[0]
    assert reply.prompt_eval_count == 5 + 5 + 5 + 4 * 2


def test_alike_texts_have_alike_vectors(server, client):
    texts = ["old addresses are kept", "an old address is kept", "drafts and roles"]
    one, near, far = client.embed(EMBED_MODEL, texts).embeddings

    def likeness(other):
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert likeness(near) > likeness(far)


def test_another_model_and_another_digest_give_other_vectors(server, client):
    before = client.embed(EMBED_MODEL, "tea").embeddings
    assert client.embed("all-minilm", "tea").embeddings != before
    server.change_digest(EMBED_MODEL, count=0)
    assert client.embed(EMBED_MODEL, "tea").embeddings != before


def test_nothing_to_embed_and_the_empty_text(server):
    for given in ({"input": ""}, {"input": []}, {}):
        assert embed(server, **given) == (200, {"model": EMBED_MODEL, "embeddings": []})
    assert len(embed(server, input=[""])[1]["embeddings"]) == 1


def test_long_texts_are_cut_in_silence_or_refused(server, client):
    long = "旧地址要永久重定向。" * 200
    cut = client.embed(EMBED_MODEL, long)
    assert cut.prompt_eval_count == 512
    assert cut.embeddings == client.embed(EMBED_MODEL, long + "more").embeddings
    shorter = client.embed(EMBED_MODEL, long, options={"num_ctx": 100})
    assert shorter.prompt_eval_count == 100
    with pytest.raises(ollama.ResponseError, match="input length exceeds") as caught:
        client.embed(EMBED_MODEL, ["short", long], truncate=False)
    assert caught.value.status_code == 400


def test_fewer_dimensions_are_cut_and_normalised(server, client):
    for asked, length in [(8, 8), (1000, 384), (0, 384), (-1, 384)]:
        (vector,) = client.embed(EMBED_MODEL, "tea", dimensions=asked).embeddings
        assert len(vector) == length
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"input": ["tea", 1]}, 400, "invalid input type"),
        ({"input": {"a": 1}}, 400, "invalid input type"),
        ({"model": "", "input": "tea"}, 404, "model '' not found"),
        ({"model": "a b", "input": "tea"}, 400, "invalid model name"),
    ],
)
def test_what_cannot_be_embedded(server, fields, status, error):
    assert embed(server, **fields) == (status, {"error": error})


# Guards and small paths


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "8.8.8.8:11434"}, 403),
        ({"Host": "box.local:11434"}, 200),
        ({"Host": "[::1]:11434"}, 200),
        ({"Host": "192.168.1.5"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
def test_foreign_hosts_and_origins_are_kept_out(server, headers, status):
    reply = send(server, "GET", "/api/version", headers=headers)
    assert reply[0] == status
    if status == 403:
        assert reply[1:] == (None, "")


def test_head_and_status(server):
    status, kind, text = send(server, "HEAD", "/")
    assert (status, kind, text) == (200, "text/plain; charset=utf-8", "")
    assert send(server, "GET", "/api/status")[2]["cloud"]["disabled"] is True


# Faults


@pytest.mark.parametrize("status", [404, 500, 503])
def test_errors_on_request(server, client, status):
    server.fail(status)
    server.reply_with("back again")
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(CHAT_MODEL, HELLO)
    assert caught.value.status_code == status
    assert client.chat(CHAT_MODEL, HELLO).message.content == "back again"


def test_entries_of_a_script_keep_their_order(server, client):
    server.reply_with("first")
    server.fail(error="then this")
    assert client.chat(CHAT_MODEL, HELLO).message.content == "first"
    with pytest.raises(ollama.ResponseError, match="then this"):
        client.chat(CHAT_MODEL, HELLO)


def test_a_fault_can_last_and_concern_one_path(server, client):
    server.fail(503, path="/api/tags", times=None)
    server.reply_with("x")
    for _ in range(3):
        with pytest.raises(ollama.ResponseError, match="please try again.  maximum"):
            client.list()
    assert client.chat(CHAT_MODEL, HELLO).message.content == "x"


@pytest.mark.parametrize("text", [PROSE, FENCED, BROKEN_JSON])
def test_texts_that_are_no_json(server, client, text):
    server.reply_with(text)
    content = client.chat(CHAT_MODEL, HELLO).message.content
    with pytest.raises(json.JSONDecodeError):
        json.loads(content)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("<html>busy</html>", json.JSONDecodeError),
        (b'{"model": "\xff"}', UnicodeDecodeError),
        ([1, 2], TypeError),
        ({"error": "in a good answer"}, pydantic.ValidationError),
        ({"message": {"role": "assistant", "content": {}}}, pydantic.ValidationError),
    ],
)
def test_wrong_shapes_break_the_client_in_their_own_ways(server, client, body, error):
    server.answer(body)
    with pytest.raises(error):
        client.chat(CHAT_MODEL, HELLO)


def test_an_error_that_is_no_object(server, client):
    server.answer(["no object"], 500)
    with pytest.raises(AttributeError):
        client.chat(CHAT_MODEL, HELLO)


def test_a_refused_connection():
    with refusing() as url, ollama.Client(host=url, trust_env=False) as client:
        with pytest.raises(ConnectionError):
            client.list()
        with pytest.raises(httpx.ConnectError):
            list(client.chat(CHAT_MODEL, HELLO, stream=True))


@pytest.mark.parametrize("fault", ["cut", "drop"])
def test_a_lost_connection(server, client, fault):
    getattr(server, fault)()
    with pytest.raises(httpx.RemoteProtocolError):
        client.chat(CHAT_MODEL, HELLO)
    assert client.list().models


def test_a_server_that_hangs_until_it_closes():
    with OllamaServer() as server:
        gate = server.hang()
        client = ollama.Client(host=server.url, timeout=SOON, trust_env=False)

        def ask():
            with pytest.raises(httpx.RemoteProtocolError) as caught:
                client.chat(CHAT_MODEL, HELLO)
            return caught.type

        thread, results = in_background(ask)
        assert gate.arrived.wait(SOON)
        assert len(server.chats) == 1
    thread.join(SOON)
    assert results == [httpx.RemoteProtocolError]
    client.close()


def test_a_server_that_drips_keeps_no_silence_and_comes_to_no_end(server):
    server.drip(path="/api/tags", seconds=0.01)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
    connection.request("GET", "/api/tags")
    reply = connection.getresponse()
    assert reply.status == 200 and reply.read(5) == b" " * 5
    connection.close()
    assert send(server, "GET", "/api/version")[0] == 200


def test_a_server_that_hangs_meets_the_timeout_of_the_client(server):
    server.hang()
    with (
        ollama.Client(host=server.url, timeout=0.05, trust_env=False) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.chat(CHAT_MODEL, HELLO)


def test_a_slow_load_waits_for_the_test(server, client):
    gate = server.hold()
    server.reply_with("loaded")
    thread, results = in_background(lambda: client.chat(CHAT_MODEL, HELLO))
    assert gate.arrived.wait(SOON)
    assert results == []
    gate.release()
    thread.join(SOON)
    assert results[0].message.content == "loaded"


def test_a_redirect_carries_the_request_to_another_server(server, client):
    with OllamaServer() as other:
        other.reply_with("from elsewhere")
        server.redirect(other.url)
        reply = client.chat(CHAT_MODEL, HELLO)
        assert reply.message.content == "from elsewhere"
        assert other.chats == server.chats
        server.redirect(other.url)
        with (
            ollama.Client(
                host=server.url, follow_redirects=False, trust_env=False
            ) as strict,
            pytest.raises(ollama.ResponseError) as caught,
        ):
            strict.chat(CHAT_MODEL, HELLO)
        assert caught.value.status_code == 307
        assert len(other.chats) == 1


def test_a_proxy_in_the_environment_is_seen_as_a_request(server, monkeypatch):
    with OllamaServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with ollama.Client(host=server.url, trust_env=False) as careful:
            careful.list()
        assert (len(server.requests), proxy.requests) == (1, [])
        with (
            ollama.Client(host=server.url) as trusting,
            pytest.raises(ollama.ResponseError),
        ):
            trusting.list()
        assert proxy.requests[0].path == f"{server.url}/api/tags"


def test_a_digest_changes_at_the_second_look(server, client):
    old = server.digest(CHAT_MODEL)
    new = server.change_digest(CHAT_MODEL)

    def look():
        return {model.model: model.digest for model in client.list().models}[CHAT_MODEL]

    assert [look(), look(), look()] == [old, new, new]


def test_a_model_changes_or_vanishes_during_generation(server, client):
    server.reply_with("x", times=2)
    new = server.change_digest(CHAT_MODEL, path="/api/chat")
    server.after("/api/chat", lambda: server.remove_model(CHAT_MODEL), count=2)
    client.chat(CHAT_MODEL, HELLO)
    assert server.digest(CHAT_MODEL) == new
    client.chat(CHAT_MODEL, HELLO)
    assert CHAT_MODEL not in [model.model for model in client.list().models]


# The stand-in itself


def test_requests_are_kept_as_they_came(server, client):
    assert server.requests == []
    client.list()
    server.reply_with("x")
    client.chat(CHAT_MODEL, HELLO, options={"seed": 7})
    first, second = server.requests
    assert (first.method, first.path, first.body) == ("GET", "/api/tags", None)
    assert second.headers["user-agent"].startswith("ollama-python/")
    assert json.loads(second.raw) == second.body == server.chats[0]
    assert server.requests_to("/api/embed") == []


def test_a_fault_of_a_test_s_own_function_is_not_hidden():
    with pytest.raises(ZeroDivisionError), OllamaServer() as server:
        server.reply_with(lambda body: 1 / 0)
        assert chat(server)[0] == 500


def test_settings_for_the_app(server):
    env = server.answer_env() | server.embed_env()
    assert env["OLLAMA_HOST"] == f"http://127.0.0.1:{server.port}"
    assert len(env["ANSWER_DIGEST"]) == len(env["EMBED_DIGEST"]) == 64
    assert (env["ANSWER_BACKEND"], env["EMBED_BACKEND"]) == ("ollama", "ollama")


def test_a_person_can_start_it():
    script = Path(__file__).with_name("ollama_server.py")
    command = [sys.executable, "-u", str(script), "--port", "0", "--replay"]
    running = subprocess.Popen(
        [*command, "evidence first, en"],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    try:
        assert running.stdout is not None
        url = running.stdout.readline().split()[3].rstrip(";")
        with ollama.Client(host=url, timeout=SOON, trust_env=False) as client:
            for _ in range(2):
                reply = client.chat(CHAT_MODEL, HELLO)
                assert "three to five working days" in reply.message.content
    finally:
        running.terminate()
        running.wait(SOON)
        running.stdout.close()
