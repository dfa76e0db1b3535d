"""Tool call ids that every provider accepts, wherever they came from: a session may switch models. Pure.

The call and its result get the same id, because it depends only on the old one.
"""

import hashlib
import re

_USUAL = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_NINE = re.compile(r"[a-zA-Z0-9]{9}")


def portable_id(call_id: str) -> str:
    """Letters, digits, _ and -, at most 40: what OpenAI, Anthropic and their likes accept."""
    return call_id if _USUAL.fullmatch(call_id) else f"call_{_digest(call_id)[:24]}"


def mistral_id(call_id: str) -> str:
    """Exactly nine letters or digits: what Mistral accepts."""
    return call_id if _NINE.fullmatch(call_id) else _digest(call_id)[:9]


def _digest(call_id: str) -> str:
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
