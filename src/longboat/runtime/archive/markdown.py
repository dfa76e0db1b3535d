"""An exported session as Markdown for people: prompts, answers, collapsed tool calls, and diffs. Pure."""

import base64
import re
from collections.abc import Iterator, Sequence

from longboat.runtime.archive.net_changes import net_changes, unified_diff
from longboat.tools.files.text import truncate_lines
from longboat.wire.amounts import cost_of
from longboat.wire.archive import FileContent, SessionExport
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MAX_SHOWN = 4_000
"""Characters of one tool call's input, or of its result."""
MAX_DIFF = 20_000
MARKS = {"pending": " ", "in_progress": "~", "completed": "x"}


def render(document: SessionExport) -> str:
    session = document.session
    used = session.usage
    blocks = [
        f"# {_line(session.title) or 'Untitled session'}",
        f"Started {session.created_at}. {used.input_tokens:,} tokens in, {used.output_tokens:,} out, "
        f"cost {cost_of(used)}.",
    ]
    if document.left_out:
        blocks.append(f"Left out because it is damaged in the database: {_line(', '.join(document.left_out))}.")
    blocks += _messages(document.messages)
    for child in document.sub_agents:
        blocks += [f"## Sub-agent: {_line(child.session.title)}", *_messages(child.messages, below="#")]
    if document.todos:
        blocks += ["## Plan", "\n".join(f"- [{MARKS[item.state]}] {_line(item.text)}" for item in document.todos)]
    blocks += _diffs(document)
    return "\n\n".join(blocks) + "\n"


def _messages(messages: Sequence[Message], *, below: str = "") -> Iterator[str]:
    """`below`: what goes before the heads of messages that are under another head."""
    names = {part.id: part.name for message in messages for part in message.parts if isinstance(part, ToolCallPart)}
    for message in messages:
        said = [block for part in message.parts if (block := _part(part, names))]
        head = _head(message)
        yield from [*([below + head] if head and said else []), *said]


def _head(message: Message) -> str:
    """Results come below the answer that requested them."""
    if message.role is Role.TOOL:
        return ""
    if message.role is Role.USER:
        return "## Prompt"
    if message.summary:
        return "## Summary of the conversation so far"
    return f"## Answer ({message.provider}/{message.model})" if message.model else "## Answer"


def _part(part: Part, names: dict[str, str]) -> str:
    match part:
        case TextPart():
            return part.text.strip()
        case ToolCallPart():
            return _collapsible(f"Call: {_line(part.name)}", part.input)
        case ToolResultPart():
            kind = "Error" if part.is_error else "Result"
            said = [
                f"{kind} of {_line(names.get(part.tool_call_id, 'a call'))}",
                *(it.describe() for it in part.answers),
            ]
            return _collapsible(", ".join(map(_line, said)), part.content)
        case FilePart():
            return f"Attached: `{_line(part.name).replace('`', '')}` ({_line(part.media_type)})"
        case ReasoningPart() | FinishPart():
            return _aside(part)


def _aside(part: ReasoningPart | FinishPart) -> str:
    if isinstance(part, ReasoningPart):
        return _collapsible("Thoughts", part.text) if part.text.strip() else ""
    if part.reason is FinishReason.END_TURN:
        return ""
    told = ": ".join(_line(text) for text in (part.title, part.detail) if text)
    return f"*Ended: {part.reason.value.replace('_', ' ')}.* {told}".strip()


def _diffs(document: SessionExport) -> Iterator[str]:
    changes = ((each.path, _raw(each.before), _raw(each.after)) for each in document.changes)
    found = net_changes(changes)
    if found:
        yield "## Changed files"
    for stretch in found:
        text, _ = unified_diff(stretch, stretch.path, MAX_DIFF)
        yield f"### {_line(stretch.path)}\n\n" + (_fence(text, "diff") if text else "(not text)")


def _raw(content: FileContent | None) -> bytes | None:
    if content is None:
        return None
    return content.text.encode() if content.text is not None else base64.b64decode(content.data or "")


def _collapsible(title: str, text: str) -> str:
    shown = _fence(truncate_lines(text, MAX_SHOWN))
    return f"<details><summary>{_escaped(title)}</summary>\n\n{shown}\n\n</details>"


def _fence(text: str, language: str = "") -> str:
    """A fence that nothing inside it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
