"""The reply of a model: what it must look like, and what is wrong with it if not."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from server import ServerError

FIELDS = {"evidence", "text"}
QUOTED = {"quote", "source_id"}
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
    """A reply that keeps the form. Its quotes can be checked, its own text cannot.

    `evidence` holds quotes, each with the `source_id` of where it is said to stand.
    """

    evidence: list[dict[str, str]]
    text: str


def schema(ids: Sequence[str]) -> dict[str, Any]:
    """Return the form to which a server holds the model while it writes.

    Evidence comes first, and in it the quote: when the model words its answer, it has
    before it what it copied. Some servers sort the fields by name, so the names are
    chosen to keep that order. Whether a quote is true, no schema can say.
    """
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(FIELDS),
        "properties": {
            "evidence": {
                "type": "array",
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": sorted(QUOTED),
                    "properties": {
                        "quote": {"type": "string", "maxLength": 400},
                        "source_id": {"enum": list(ids)},
                    },
                },
            },
            "text": {"type": "string", "maxLength": 600},
        },
    }


def accepted(
    response: Any, sent: Sequence[str], least: int, exact: bool = False
) -> Reply:
    """Return the reply in a `ChatResponse` of the client, if it keeps all the rules.

    `sent` are the ids of the sources, `least` the tokens that the model must have
    read; with `exact` they were counted with its own tokeniser, and it must have read
    just as many. Raises AnswerError with the reason; the message repeats nothing of
    the reply.
    """
    content = response.message.content or ""
    if not content.strip():
        raise AnswerError("empty_content", "the model wrote nothing")
    if response.done is not True or response.done_reason != "stop":
        raise AnswerError(
            "truncated",
            "the reply was cut off: ANSWER_OUTPUT sets its length in tokens",
        )
    read = response.prompt_eval_count or 0
    if read < least:
        text = f"the model read {read} tokens of {least}{'' if exact else ' at least'}"
        raise AnswerError("prompt_truncated", f"{text}: part was lost")
    if exact and read > least:
        text = f"the model read {read} tokens, but {least} were counted"
        raise AnswerError("miscounted", f"{text}: see ANSWER_TOKENS, ANSWER_TEMPLATE")
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
    if not isinstance(value, dict) or set(value) != FIELDS:
        raise AnswerError("bad_shape", "the reply has other fields than were asked for")
    evidence, text = value["evidence"], value["text"]
    if not isinstance(evidence, list) or not all(map(is_evidence, evidence)):
        raise AnswerError("bad_shape", "the reply has a field of another kind")
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise AnswerError("bad_text", f"the text is not of 1 to {LONGEST} characters")
    if not all(entry["source_id"] in sent for entry in evidence):
        raise AnswerError("unknown_source", "the reply cites what was never sent")
    return {"evidence": evidence, "text": without_addresses(text)}


def is_evidence(entry: Any) -> bool:
    """Return whether a JSON value is a quote with a source id."""
    return (
        isinstance(entry, dict)
        and set(entry) == QUOTED
        and all(isinstance(value, str) for value in entry.values())
    )


def without_addresses(text: str) -> str:
    """Return words of a model without the addresses in them: it may invent some."""
    return ADDRESS.sub("[address left out]", text)
