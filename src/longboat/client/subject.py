"""What a tool call is about, in a few words: the file, the command, the pattern. Pure."""

from dataclasses import dataclass
from typing import Any

import msgspec

from longboat.wire.tools import UNKNOWN, Draw, ToolTraits

# For calls of tools that do not say what tells most.
LEADING = ("command", "pattern", "symbol", "path", "url", "query", "job_id", "text", "prompt", "name")
"""The arguments that tell most, most telling first."""
BESIDE = ("path", "new_name", "agent")
"""Arguments that are shown after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    text: str
    path: str = ""


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments; none while they are unfinished or no JSON object."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def subject_of(arguments: str, traits: ToolTraits | None) -> Subject:
    """The subject, by the traits of the tool if they are known; nothing of arguments that are no JSON object."""
    given = arguments_of(arguments)
    traits = traits or UNKNOWN
    if traits.draw is Draw.PLAN:
        return Subject(text=_plan(given.get("items")))
    if words := [given[name] for name in traits.heading if isinstance(given.get(name), str)]:
        path = given.get(traits.path)
        return Subject(text=" ".join(words), path=path if isinstance(path, str) else "")
    return _guess(given)


def _guess(given: dict[str, Any]) -> Subject:
    found = {name: given[name] for name in LEADING if isinstance(given.get(name), str)}
    lead = next(iter(found), None)
    words = [found[lead]] if lead is not None else [value for value in given.values() if isinstance(value, str)][:1]
    words += [given[name] for name in BESIDE if name != lead and isinstance(given.get(name), str)]
    return Subject(text=" ".join(words), path=found.get("path", ""))


def _plan(items: Any) -> str:
    """How far the plan is, and what is being done; of a plan that is only proposed, how many steps it has."""
    if isinstance(items, list) and items and all(isinstance(item, str) for item in items):
        return f"{len(items)} step{'s' * (len(items) != 1)}"
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    done = sum(item.get("state") == "completed" for item in known)
    now = next((str(item.get("text")) for item in known if item.get("state") == "in_progress"), "")
    return f"{done} of {len(known)} done" + (f": {now}" if now else "")
