"""`/server:prompt arguments`: when the turn starts, the text of an MCP server's prompt replaces the call.

Owns the syntax of such a call and its arguments. Must not know connections, sessions or the store.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from longboat.context.library import words_in
from longboat.core.history import text_of
from longboat.core.stream import encodable
from longboat.errors import ModelError
from longboat.tools.context import ToolError
from longboat.wire.models import Message, Run, TextPart
from longboat.wire.workspace_state import CommandArgument, CommandInfo

if TYPE_CHECKING:
    from longboat.runtime.workspace.tools import WorkspaceTools
    from longboat.tools.mcp import McpArgument, McpPrompt, McpServers

_CALL = re.compile(r"/([A-Za-z0-9_-]+):(\S+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCall:
    server: str
    name: str
    arguments: str

    def __str__(self) -> str:
        return f"/{self.server}:{self.name}"


def find_call(prompt: str) -> PromptCall | None:
    """Return what the prompt would call, if there is a server of that name."""
    call = _CALL.fullmatch(prompt)
    return PromptCall(server=call[1], name=call[2], arguments=call[3] or "") if call is not None else None


def command_info(prompt: "McpPrompt") -> CommandInfo:
    """The prompt as clients list it, beside the commands."""
    return CommandInfo(
        name=f"{prompt.server}:{_join_words(prompt.name)}",
        description=prompt.description,
        argument_hint=_hint(prompt.arguments),
        server=prompt.server,
        arguments=tuple(
            CommandArgument(name=each.name, description=each.description, required=each.required)
            for each in prompt.arguments
        ),
    )


async def fetch_prompt(servers: "McpServers", call: PromptCall) -> str:
    """Get the text for the call; ToolError says why that is not possible."""
    offered = await servers.list_prompts(call.server)
    prompt = next((each for each in offered if _join_words(each.name) == call.name), None)
    if prompt is None:
        names = ", ".join(_join_words(each.name) for each in offered) or "none"
        raise ToolError(f"The MCP server {call.server} has no prompt {call.name!r}. Its prompts: {names}.")
    text = await servers.prompt(call.server, prompt.name, pair_arguments(prompt, call.arguments))
    if not text.strip():
        raise ToolError(f"The MCP server {call.server} answered {call} with an empty prompt.")
    return encodable(text)


async def fill_in_prompt(tools: "WorkspaceTools", run: Run, message: Message, notice: Callable[[str], None]) -> Message:
    """Replace the call in a run's user message with the text. A message already filled in before a restart stays as it
    is; so does a sub-agent's task, because no person wrote it."""
    call = find_call(run.prompt)
    if call is None or run.parent_run_id is not None or text_of(message) != run.prompt:
        return message
    try:
        text = await tools.mcp_prompt(call)
    except ToolError as error:
        reason = str(error)
        raise ModelError(reason, title="The MCP prompt cannot be used", code="mcp_prompt") from None
    if text is None:
        notice(f"{call} was sent as plain text: there is no MCP server {call.server!r}.")
        return message
    files = [part for part in message.parts if not isinstance(part, TextPart)]
    return msgspec.structs.replace(message, parts=(TextPart(text=text), *files))


def pair_arguments(prompt: "McpPrompt", text: str) -> dict[str, str]:
    """Assign `name=value` words by name, and the others to the remaining arguments in order; the last argument takes
    all remaining words. ToolError names what is missing or too much."""
    names = [each.name for each in prompt.arguments]
    given: dict[str, str] = {}
    words: list[str] = []
    for word in words_in(text):
        name, equals, value = word.partition("=")
        if equals and name in names and name not in given:
            given[name] = value
        else:
            words.append(word)
    free = [name for name in names if name not in given]
    given |= _in_order(free, words)
    usage = f"/{prompt.server}:{_join_words(prompt.name)} {_hint(prompt.arguments)}".rstrip()
    if words and not free:
        raise ToolError(f"Too many arguments: {' '.join(words)!r}. Usage: {usage}")
    missing = [each.name for each in prompt.arguments if each.required and each.name not in given]
    if missing:
        raise ToolError(f"Missing: {', '.join(missing)}. Usage: {usage}")
    return given


def _in_order(names: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    given = dict(zip(names, words, strict=False))
    if len(words) > len(names) > 0:
        given[names[-1]] = " ".join(words[len(names) - 1 :])
    return given


def _join_words(name: str) -> str:
    """A prompt's name as one word."""
    return re.sub(r"\s", "_", name)


def _hint(arguments: "Sequence[McpArgument]") -> str:
    return " ".join(each.name if each.required else f"[{each.name}]" for each in arguments)
