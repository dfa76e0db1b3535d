"""Tool calls in text: how to ask a model to write them, and how to parse calls that it writes anyway. Pure.

Models print calls as text if their server does not recognize them, or never passed the tools on. This parses the forms
that models were trained on: `<tool_call>{…}</tool_call>`, `<function=NAME>…</function>`, and JSON with a name and
arguments, fenced or at the beginning of a line.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from longboat.core.history import calls_of, text_of
from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.tool_texts import TextCall, arguments_of, describe_tools, write_as_text
from longboat.wire.models import Message

GUIDE = """\
To use a tool, end your reply with one or more calls, each exactly like this:
<tool_call>{"name": "NAME", "arguments": {...}}</tool_call>
The next message brings the results. Make calls that do not depend on each other in one reply. Never write results \
yourself. A reply without a call ends your turn: reply so only when the task is done and checked, or when a question \
can be answered.
Tools:
"""

_TAGS = ("<tool_call>", "<tools>", "<function_call>", "<function=", "<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]")
_NAMES = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_BESIDE = frozenset({"id", "type", "tool_call_id"})
_SCHEMA_KEYS = frozenset({"properties", "$schema"})
_OPENERS = re.compile(r"[<`{\[]")
_PLACE = re.compile(
    rf"(?P<tag>{'|'.join(re.escape(tag) for tag in _TAGS)})|^[ \t]*(?:```[\w-]*\s*)?(?=[\[{{])", re.MULTILINE
)
"""Where a call may begin."""
_JSON_HEAD = re.compile(r'[\[\s]*\{\s*"(?:' + "|".join((*_NAMES, *_ARGUMENTS, *_BESIDE, "tool_calls")) + r')"\s*:')
_HALF_JSON_HEAD = re.compile(r'[\[\s]*(?:\{\s*(?:"\w{0,20}(?:"\s*)?)?)?')
_FENCE = re.compile(r"[ \t]*```[\w-]*\s*")
_HALF_FENCE = re.compile(r"[ \t]*`{1,3}[\w-]{0,20}")
_FUNCTION = re.compile(r"<function=([\w.:-]+)>\s*(.*?)\s*(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_LEFT = re.compile(r"(?:\s|</?tool_call>|</?tools>|</function_call>|</function>|<\|[\w/]+\|>|```|,|\])*")
"""What may stand between and after calls without being text for people."""
MAX_CALLS = 6
"""The maximum number of calls in one answer, as in steps: weak models repeat themselves."""
_decoder = json.JSONDecoder(strict=False)  # many models do not escape line breaks in strings


def as_text(request: ModelRequest) -> ModelRequest:
    """The step for a model that writes its calls as text."""
    return replace(
        request,
        system=f"{request.system}\n\n{GUIDE}{describe_tools(request.tools)}",
        messages=write_as_text(request.messages, write_calls),
        tools=(),
    )


def write_calls(message: Message) -> str:
    calls = (msgspec.json.encode({"name": call.name, "arguments": arguments_of(call)}) for call in calls_of(message))
    written = (text_of(message), *(f"<tool_call>{call.decode()}</tool_call>" for call in calls))
    return "\n".join(text for text in written if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A parsed answer."""

    before: str
    """The text before the first call; without calls, all of it."""
    calls: tuple[TextCall, ...] = ()
    between: str = ""
    """The text between the calls."""
    after: str = ""
    """The text after the calls: often results that the model made up."""
    broken_at: int | None = None
    """Where a call begins that cannot be parsed, if there are no other calls."""


def find_calls(text: str, tools: Iterable[ToolSpec]) -> Found:
    known = {tool.name: tool for tool in tools}
    calls: list[TextCall] = []
    first, end = len(text), 0
    between = ""
    broken_at: int | None = None
    for place in _PLACE.finditer(text):
        if place.start() < end:
            continue
        read, after = _read_calls(text, place, known)
        if read and (place["tag"] or all(call.name in known for call in read)):
            between += text[_left(text, end) : place.start()].strip() if calls else ""
            calls += read
            first, end = min(first, place.start()), after
        elif broken_at is None and (read or _looks_like_call(text, place, known)):
            broken_at = place.start()
    if not calls:
        return Found(before=text, broken_at=broken_at)
    after_all = text[_left(text, end) :].strip()
    return Found(before=text[:first].rstrip(), calls=tuple(calls[:MAX_CALLS]), between=between, after=after_all)


def _read_calls(text: str, place: re.Match[str], known: Mapping[str, ToolSpec]) -> tuple[list[TextCall], int]:
    """Parse the calls at this place; return them and where they end. Several may follow each other within one tag or
    fence."""
    calls: list[TextCall] = []
    at = end = place.start() if place["tag"] == "<function=" else _left(text, place.end())
    while True:
        read, after = _read_function(text, at, known) if text.startswith("<function=", at) else _read_json(text, at)
        if not read:
            return calls, end
        calls += read
        end, at = after, _left(text, after)


def _left(text: str, at: int) -> int:
    found = _LEFT.match(text, at)
    return found.end() if found is not None else at


def _read_json(text: str, at: int) -> tuple[list[TextCall], int]:
    """Parse the calls in the JSON value at this place; return them and where it ends."""
    try:
        value, end = _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return [], at
    return list(_calls_in(value)), end


def _calls_in(value: Any) -> Iterator[TextCall]:
    match value:
        case [*values]:
            for each in values:
                yield from _calls_in(each)
        case {"tool_calls": [*values]}:
            yield from _calls_in(values)
        case {"function": {**function}}:
            yield from _calls_in(function)
        case {**fields}:
            name = next((named for key in _NAMES if isinstance(named := fields.get(key), str)), None)
            key = next((key for key in _ARGUMENTS if key in fields), "")
            # An object with other fields is not a call: a package.json has a name too.
            alone = fields.keys() <= {*_NAMES, *_ARGUMENTS, *_BESIDE} and not _is_schema(key, fields.get(key))
            if name is not None and alone and (written := _written(fields.get(key))) is not None:
                yield TextCall(name=name, arguments=written)


def _is_schema(key: str, value: Any) -> bool:
    """Whether this describes a tool instead of calling it."""
    is_object = isinstance(value, dict) and (value.get("type") == "object" or not value.keys().isdisjoint(_SCHEMA_KEYS))
    return key == "parameters" and is_object


def _written(arguments: Any) -> str | None:
    """Arguments as JSON: some models encode them twice."""
    match arguments:
        case {}:
            return json.dumps(arguments)
        case str():
            try:
                return json.dumps(inner) if isinstance(inner := _decoder.decode(arguments), dict) else None
            except (ValueError, RecursionError):
                return None
        case _:
            return None


def _read_function(text: str, at: int, known: Mapping[str, ToolSpec]) -> tuple[list[TextCall], int]:
    """Parse `<function=NAME>` with a JSON object inside, or with parameters in their own tags."""
    found = _FUNCTION.match(text, at)
    if found is None:
        return [], at
    name, inner = found[1], found[2]
    fields = known[name].schema.get("properties", {}) if name in known else {}
    parameters = {key: _typed(value, fields.get(key, {})) for key, value in _PARAMETER.findall(inner)}
    written = json.dumps(parameters) if parameters or not inner else _written(inner)
    return ([] if written is None else [TextCall(name=name, arguments=written)]), found.end()


def _typed(value: str, field: Any) -> Any:
    """A parameter is text, unless its field requires another type."""
    kind = field.get("type", "string") if isinstance(field, Mapping) else "string"
    if "string" in kind:
        return value
    try:
        return _decoder.decode(value.strip())
    except (ValueError, RecursionError):
        return value


def _looks_like_call(text: str, place: re.Match[str], known: Mapping[str, ToolSpec]) -> bool:
    """Whether text that cannot be parsed was meant as a call: a tag at the beginning of a line, which no one writes by
    accident, or JSON that begins with the name of a tool. JSON that can be parsed and is no call is an answer."""
    if place["tag"]:
        begins_line = _ends_line(text[: place.start()], before=True)
        return begins_line and (place["tag"] == "<tool_call>" or text.startswith(("{", "["), _left(text, place.end())))
    names = "|".join(re.escape(name) for name in known)
    head = r'[\[\s]*\{\s*"(?:' + "|".join(_NAMES) + rf')"\s*:\s*"(?:{names})"'
    named = bool(known) and re.compile(head).match(text, place.end()) is not None
    return named and not _is_json(text, place.end())


def _is_json(text: str, at: int) -> bool:
    try:
        _decoder.raw_decode(text, _left(text, at))
    except (ValueError, RecursionError):
        return False
    return True


def broken_call_at(text: str, tools: Iterable[ToolSpec]) -> int | None:
    """Where a call of one of the tools begins that has arguments which cannot be parsed. None if there is none, or if
    anything else may be meant: a list of the tools, JSON for people, or a call that is followed by text."""
    names = "|".join(re.escape(tool.name) for tool in tools)
    head = re.compile(
        rf'[\[\s]*\{{\s*"(?:{"|".join(_NAMES)})"\s*:\s*"(?:{names})"\s*,\s*"(?:arguments|args)"\s*:\s*\{{'
    )
    places = (place for place in _PLACE.finditer(text) if head.match(text, _left(text, place.end())))
    first = next(places, None)
    last = text.rfind("}")
    if not names or first is None or _is_json(text, first.end()) or (last >= 0 and text[_left(text, last + 1) :]):
        return None
    return first.start()


def salvage_call(text: str, tools: Iterable[ToolSpec]) -> TextCall | None:
    """Keep a call whose arguments cannot be parsed: its result tells the model why."""
    names = "|".join(re.escape(tool.name) for tool in tools)
    head = rf'"(?:{"|".join(_NAMES)})"\s*:\s*"({names})"\s*,\s*"(?:{"|".join(_ARGUMENTS)})"\s*:\s*(.*)'
    found = re.search(head, text, re.DOTALL)
    return None if found is None else TextCall(name=found[1], arguments=found[2])


class CallWatch:
    """Feed it an answer as it streams: it returns text to show, and holds back what may become a call."""

    def __init__(self) -> None:
        self._held = ""
        self._line_start = True
        """Nothing but white space has come since the last line end."""

    def feed(self, text: str) -> str:
        if not self._held and _OPENERS.search(text) is None:
            self._line_start = _ends_line(text, before=self._line_start)
            return text
        self._held += text
        return self._release()

    def finish(self) -> str:
        """Return the text held back."""
        held, self._held = self._held, ""
        return held

    def _release(self) -> str:
        """Show everything up to where a call may begin."""
        at = 0
        while (opener := _OPENERS.search(self._held, at)) is not None:
            start = opener.start()
            line_start = _ends_line(self._held[:start], before=self._line_start)
            if _may_be_call(self._held[start:], line_start=line_start):
                break
            at = start + 1
        shown = self._held if opener is None else self._held[: opener.start()]
        self._held = self._held[len(shown) :]
        self._line_start = _ends_line(shown, before=self._line_start)
        return shown


def _ends_line(text: str, *, before: bool) -> bool:
    """Whether nothing but white space follows the last line end. `before`: so it was before this text."""
    line = text.rpartition("\n")
    return not line[2].strip() and (bool(line[1]) or before)


def _may_be_call(text: str, *, line_start: bool) -> bool:
    """Whether text that begins like this is a call, or may still become one."""
    if any(text.startswith(tag) or tag.startswith(text) for tag in _TAGS):
        return True
    if not line_start:
        return False
    if text.startswith("`"):
        if _HALF_FENCE.fullmatch(text):
            return True
        fence = _FENCE.match(text)
        text = text[fence.end() :] if fence is not None else "-"
        if any(text.startswith(tag) or (text and tag.startswith(text)) for tag in _TAGS):
            return True
    return _JSON_HEAD.match(text) is not None or _HALF_JSON_HEAD.fullmatch(text) is not None
