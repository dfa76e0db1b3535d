"""What an OpenAI-compatible server's error means: a `ModelError` that says whether to retry and what to do.

Owns the table of statuses and the many forms of the same error. Must not know HTTP clients.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from longboat.errors import ModelError
from longboat.models.error_quotes import quote_error, with_advice
from longboat.models.openai_request import NULL_CONTENT, OPTIONAL, STREAM, SYSTEM_ROLE, SendReasoning

MAX_DETAIL = 500
"""How many characters of a server's own words go into an error."""

_QUOTA = re.compile(r"insufficient_(quota|credits|balance|funds)|billing")
_OVERFLOW = re.compile(
    r"context.?length|context.?window|context.?size|maximum context|max_model_len|(prompt|input|request) is too long"
    r"|too many (input )?tokens|input length .*exceed|reduce the length|exceeds? the (maximum|model).*tokens",
    re.IGNORECASE | re.DOTALL,
)
TOOLS_REFUSED = "tools_unsupported"
"""The code of an error that says: this server has no tools for this model."""
_NO_JINJA = "tools param requires --jinja"
"""llama.cpp without its templates: its status is 500, which it shares with failures that pass."""
_TOOLS = r"(?:tools|tool[ _-]?(?:use|usage|calls?|calling)|function[ _-]?(?:calls?|calling))[`'\"]?"
_BEFORE = r"(?:^|[-.:;,({\[`'\"]\s*|\b(?:the|param|parameter|field|property|argument)\s+[`'\"]?)"
_AFTER = r"(?=\s*(?:$|[;,!)\]}]|\.(?:\s|$)|yet\b|(?:with|for|by|in|on|at) (?:this|the|streaming)\b))"
_NO_TOOLS = re.compile(
    rf"{_BEFORE}{_TOOLS} (?:(?:is|are) )?(?:currently )?(?:not (?:yet )?|un)"
    rf"(?:supported|enabled|available|allowed){_AFTER}"
    rf"|\b(?:does not|doesn't|do not) (?:currently )?support [`'\"]?{_TOOLS}{_AFTER}"
    rf"|\b(?:unsupported|unrecognized|unknown|unexpected) (?:\w+ ){{0,3}}?\w+: ?[`'\"]?tools[`'\"]?{_AFTER}"
    rf"|no endpoints found that support tool use|{_NO_JINJA}|\btool choice requires --",
    re.IGNORECASE,
)
"""Ollama, vLLM, llama.cpp, OpenRouter, Groq, Mistral, Bedrock, and others in these words. A complaint about one tool,
its schema, a message or parallel calls is none."""
_MISSES = re.compile(r"\bmissing\b|must be (?:passed|sent|provided|included|present)|\brequire|\bpass(?:ed)? back\b")
"""A complaint that reasoning is not there, rather than that it is: DeepSeek and Moonshot in these words."""
_UNKNOWN_FIELD = re.compile(
    r"unsupported|unrecognized|unknown|unexpected|\bnot (?:supported|permitted|allowed|recognized|known)"
    r"|\bextra (?:inputs|fields)|invalid (?:field|param|argument)",
    re.IGNORECASE,
)
_TOOLS_WITH_STREAM = "Cannot use tools with stream"
"""An older llama.cpp. Its status is 500, which it shares with failures that pass."""
_HABITS: tuple[tuple[str, bytes, re.Pattern[str]], ...] = (
    (
        STREAM,
        b'"stream":true',
        re.compile(
            rf"{_TOOLS_WITH_STREAM}|\bstream(?:ing)?\b.{{0,30}}(?:\bnot\b|unsupported|\bfalse\b)"
            r"|(?:un(?:supported|known|recognized)|not support).{0,30}\bstream(?:ing)?\b",
            re.IGNORECASE,
        ),
    ),
    (
        NULL_CONTENT,
        b'"content":null',
        re.compile(r"\bcontent\b.*(?:null|none|<?nil>?|string|type mismatch)|type mismatch.*\bcontent\b", re.I | re.S),
    ),
    (
        SYSTEM_ROLE,
        b'"role":"system"',
        re.compile(r"system role|not support '?system'?|roles must alternate", re.IGNORECASE),
    ),
)
"""What else a server may refuse: how it stands in the body, where text has its quotes escaped, and in whose words."""
_PASSING = "tool_use_failed"
"""Groq could not read the model's tool call; the next one may be better."""
_LOADING = re.compile(r"\bloading\b", re.IGNORECASE)
_STATUS_OF_WORD = {
    "rate_limit": 429,
    "authentication": 401,
    "invalid_api_key": 401,
    "permission": 403,
    "model_not_found": 404,
    "invalid_request": 400,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """An error body, whichever of the usual shapes it came in."""

    message: str = ""
    """In full: `Addressee.quote` makes it fit to be shown."""
    kind: str = ""
    """Its `code` and `type`, for matching."""
    status: int | None = None
    """A status that the body itself tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """The provider and model of a request, for error messages."""

    provider: str
    model: str
    url: str
    has_key: bool
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def quote(self, text: str) -> str:
        """Its own words, as errors may show them."""
        return quote_error(text, self.secrets, limit=MAX_DETAIL)


def read_body(body: bytes) -> Complaint:
    """The complaint in the body of a refused request; plain text is taken as it is, a web page is not."""
    try:
        return read_value(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode(errors="replace").strip()
        return Complaint() if text.startswith("<") else Complaint(message=text)


def read_value(value: Any) -> Complaint:
    """The complaint in `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or a list of such."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return Complaint(message=str(value or ""))
    if error := value.get("error") or value.get("errors"):
        return read_value(error)
    message = value.get("message") or value.get("detail") or ""
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    code = str(value.get("code") or "")
    return Complaint(
        message=text,
        kind=f"{code} {value.get('type') or ''}".lower(),
        status=int(code) if re.fullmatch("[45][0-9][0-9]", code) else None,
    )


def status_in_stream(complaint: Complaint) -> int:
    """The status that an error inside a stream stands for. Without any hint it is a server error."""
    if complaint.status is not None:
        return complaint.status
    if _QUOTA.search(complaint.kind) or _overflows(complaint):
        return 400
    return next((status for word, status in _STATUS_OF_WORD.items() if word in complaint.kind), 500)


def _overflows(complaint: Complaint) -> bool:
    return _OVERFLOW.search(f"{complaint.kind} {complaint.message[:MAX_DETAIL]}") is not None


def refusal(status: int, complaint: Complaint, to: Addressee, *, retry_after_s: float | None = None) -> ModelError:
    """The error for a status and an error body."""
    said = f"{to.provider} answered {status}" + (f": {to.quote(complaint.message)}" if complaint.message else ".")
    if _has_no_tools(status, complaint.message[:MAX_DETAIL]):
        advice = f'Set "tools": "steps" for {to.model} in longboat.json, or "none" to chat without tools.'
        return ModelError(with_advice(said, advice), title="The model has no tools", code=TOOLS_REFUSED)
    if status == 503 and _LOADING.search(complaint.message):
        return ModelError(said, title="The model is being loaded", code="loading", retryable=True)
    if status in (408, 409) or (status >= 500 and _TOOLS_WITH_STREAM not in said) or _PASSING in complaint.kind:
        return ModelError(
            said,
            title="Provider error",
            code="server_error",
            retryable=True,
            retry_after_s=retry_after_s,
        )
    if status == 402 or _QUOTA.search(complaint.kind):
        return ModelError(
            with_advice(said, "Check the account's credit and plan."), title="The quota is used up", code="quota"
        )
    if status == 429:
        return ModelError(
            said, title="Too many requests", code="rate_limited", retryable=True, retry_after_s=retry_after_s
        )
    return _final(status, complaint, to, said)


def broken_answer(to: Addressee, what: str) -> ModelError:
    """The rest of the answer cannot be had; another attempt may succeed."""
    return ModelError(
        f"{to.provider} {what}.", title="The model's answer broke off", code="stream_broken", retryable=True
    )


def _has_no_tools(status: int, said: str) -> bool:
    """Whether the server cannot do tools at all for this model. Other failures of the server itself may pass."""
    return _NO_JINJA in said if status >= 500 else status in (400, 404, 422) and _NO_TOOLS.search(said) is not None


def ways_to_send_reasoning(refused: ModelError) -> tuple[SendReasoning, ...]:
    """What may please a server that refused a request because of the reasoning in it, or for lack of it: all ways, the
    likeliest first. None if it refused for another reason."""
    said = refused.message.lower()
    if refused.code != "bad_request" or "reasoning" not in said or "effort" in said:
        return ()
    return ("always", "turn", "never") if _MISSES.search(said) else ("never", "turn", "always")


def refused_field(refused: ModelError, body: bytes) -> str | None:
    """The optional field or habit of the request that the server does not know. None if it refused for another reason,
    such as the value of a field."""
    if refused.code != "bad_request":
        return None
    said = refused.message
    if _UNKNOWN_FIELD.search(said) and "value" not in said:
        sent = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        field = next((name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", said)), None)
        if field is not None:
            return field
    return next((name for name, sent_as, words in _HABITS if sent_as in body and words.search(said)), None)


def _final(status: int, complaint: Complaint, to: Addressee, said: str) -> ModelError:
    """The errors for which a retry is pointless."""
    if status in (401, 403):
        setting = f"providers.{to.provider}.api_key"
        cause = (
            f"Check {setting} in longboat.json."
            if to.has_key
            else f"No API key is set. Run `longboat connect`, or set {setting}."
        )
        return ModelError(with_advice(said, cause), title="The API key was rejected", code="auth")
    if status == 404:
        advice = f"Check the model id {to.model!r} and the base_url {to.url}."
        return ModelError(with_advice(said, advice), title="No such model", code="model_not_found")
    if status in (400, 413, 422) and _overflows(complaint):
        return ModelError(said, title="The context window is full", code="context_overflow")
    return ModelError(said, title="The request was rejected", code="bad_request")


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """How many seconds the server asks us to wait, from `Retry-After` in seconds or as a date."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
