"""Answers of MCP servers as limited text for a model. Knows the SDK's types, not connections."""

import json
from collections.abc import Sequence

import mcp_types as types

from longboat.tools.mcp.state import Answer

HEAD = TAIL = 15_000
"""Characters kept of the beginning and of the end of an answer."""


def truncate_middle(text: str) -> str:
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return text
    return f"{text[:HEAD]}\n[… {left_out:,} characters left out; request less at a time …]\n{text[-TAIL:]}"


def call_answer(result: types.CallToolResult) -> Answer:
    parts = [_block(block) for block in result.content]
    structured = result.structured_content
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    if structured is not None and not _repeats(structured, texts):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=2))
    text = "\n".join(part for part in parts if part)
    return Answer(text=truncate_middle(text) or "[no content]", is_error=result.is_error)


def resource_text(result: types.ReadResourceResult) -> str:
    return truncate_middle("\n".join(_resource(contents) for contents in result.contents)) or "[empty]"


def prompt_text(result: types.GetPromptResult) -> str:
    """The prompt as one text to submit; what it has the assistant say is marked so."""
    parts = []
    for message in result.messages:
        text = _block(message.content)
        parts.append(text if message.role == "user" else f"[{message.role}] {text}")
    return truncate_middle("\n\n".join(parts))


def _block(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent():
            return _unseen("image", block.mime_type, block.data)
        case types.AudioContent():
            return _unseen("audio", block.mime_type, block.data)
        case types.ResourceLink():
            about = f" ({block.description})" if block.description else ""
            return f"[resource {block.uri}: {block.title or block.name}{about}]"
        case types.EmbeddedResource():
            return _resource(block.resource)


def _resource(contents: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(contents, types.TextResourceContents):
        return contents.text
    return _unseen(f"resource {contents.uri}", contents.mime_type or "binary", contents.blob)


def _unseen(what: str, mime_type: str, base64: str) -> str:
    return f"[{what}, {mime_type}, {len(base64.rstrip('=')) * 3 // 4:,} bytes; cannot be shown as text]"


def _repeats(structured: object, texts: Sequence[str]) -> bool:
    """Whether the text says the same: servers send both for clients that know only one."""
    if structured in [{"result": text} for text in texts]:
        return True
    said: list[object] = []
    for text in texts:
        try:
            said.append(json.loads(text))
        except ValueError:
            continue
    # A list comes as one text for each of its items.
    return any(structured in (one, {"result": one}) for one in (*said, said))
