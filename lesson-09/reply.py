"""The reply of a model: what it must look like, and what is wrong with it if not."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from server import ServerError

FIELDS = ("status", "text", "source_ids")
STATUSES = ("answered", "insufficient")
# A server holds the model to this form while it writes. Whether the ids are among
# those sent, and whether they fit the status, no schema can say.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": list(FIELDS),
    "properties": {
        "status": {"type": "string", "enum": list(STATUSES)},
        "text": {"type": "string"},
        "source_ids": {"type": "array", "items": {"type": "string"}},
    },
}
LONGEST = 6000  # characters of text
# An address reaches to white space, a bracket or a quotation mark, in any script. The
# full stop behind it is no part of it.
OUTSIDE = r"\s<>|\"“”«»‹›。，；、：！？（）《》「」『』【】"
ADDRESS = re.compile(
    r"(?i)(?:[a-z][a-z0-9+.-]{0,30}://|www\.|mailto:)"
    rf"[^{OUTSIDE}]*[^{OUTSIDE}.,;:!?…'’`*_)\]}}]"
)


class AnswerError(ServerError):
    """There is no answer to be shown; `reason` names the kind of trouble."""


class Reply(TypedDict):
    """A reply that was accepted. Its `text` is the model's; nobody has verified it."""

    status: str
    text: str
    source_ids: list[str]


def accepted(response: Any, sent: Sequence[str], least: int) -> Reply:
    """Return the reply in a `ChatResponse` of the client, if it keeps all the rules.

    `sent` are the ids of the sources, `least` the tokens that the model must have
    read. Raises AnswerError with the reason; the message repeats nothing of the reply.
    """
    content = response.message.content or ""
    if not content.strip():
        raise AnswerError("empty_content", "the model wrote nothing")
    if response.done is not True or response.done_reason != "stop":
        raise AnswerError(
            "truncated",
            "the reply was cut off: ANSWER_OUTPUT sets its length in tokens",
        )
    if (response.prompt_eval_count or 0) < least:
        raise AnswerError(
            "prompt_truncated",
            f"the model read {response.prompt_eval_count or 0} tokens of {least} at"
            " least: part was lost",
        )
    try:
        value = json.loads(content, object_pairs_hook=without_doubles)
    except (ValueError, RecursionError):
        raise AnswerError(
            "bad_json", "the reply is not JSON and nothing else"
        ) from None
    return checked(value, sent)


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    """Make an object of its pairs; None where a key stands twice: which one holds?"""
    value = dict(pairs)
    return value if len(value) == len(pairs) else None


def checked(value: Any, sent: Sequence[str]) -> Reply:
    """Return the reply that a JSON value is; AnswerError with the first fault."""
    if not isinstance(value, dict) or set(value) != set(FIELDS):
        raise AnswerError("bad_shape", "the reply has other fields than were asked for")
    status, text, ids = value["status"], value["text"], value["source_ids"]
    if status not in STATUSES or not isinstance(ids, list):
        raise AnswerError("bad_shape", "the reply has a field of another kind")
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise AnswerError("bad_text", f"the text is not of 1 to {LONGEST} characters")
    if not all(cited in sent for cited in ids):
        raise AnswerError("unknown_source", "the reply cites what was never sent")
    if status == "answered" and not ids:
        raise AnswerError("no_citations", "the model answers, but cites no source")
    if status == "insufficient" and ids:
        raise AnswerError("cited_refusal", "the model refuses, but cites sources")
    text = ADDRESS.sub("[address left out]", text)
    return {"status": status, "text": text, "source_ids": ids}
