"""What a tool call is about, in a few words, from the arguments as the model wrote them. Pure."""

from typing import Any

import msgspec

LEADING = ("command", "pattern", "symbol", "path", "url", "query", "job_id", "text", "prompt", "name")
"""The arguments that tell most, most telling first."""
BESIDE = ("path", "new_name", "agent")
"""Told after the first."""


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments; none while they are unfinished or no JSON object."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def subject_of(tool: str, arguments: str) -> str:
    given = arguments_of(arguments)
    if tool == "todos":
        return _plan(given.get("items"))
    found = [name for name in LEADING if isinstance(given.get(name), str)]
    lead = found[0] if found else next((name for name, value in given.items() if isinstance(value, str)), None)
    words = [given[lead]] if lead is not None else []
    return " ".join([*words, *(given[name] for name in BESIDE if name != lead and isinstance(given.get(name), str))])


def _plan(items: Any) -> str:
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    done = sum(item.get("state") == "completed" for item in known)
    now = next((str(item.get("text")) for item in known if item.get("state") == "in_progress"), "")
    return f"{done} of {len(known)} done" + (f": {now}" if now else "")
