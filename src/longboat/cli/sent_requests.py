"""`longboat session show --wire`: what a run sent to models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from longboat.cli.console import ago, json_line, notice, one_line, safe, table
from longboat.cli.options import elsewhere
from longboat.wire.amounts import duration
from longboat.wire.model_requests import SentRequest, SentRequestBody

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

PARTS = {
    "system": "system prompt",
    "tools": "tools",
    "user": "user messages",
    "assistant": "agent messages",
    "tool": "tool results",
    "settings": "settings",
}
_MODES = {"native": "", "steps": ", asks for steps in JSON", "text": ", asks for tool calls as text"}
_WIDE = 100
"""Columns of a line of which there are many."""


def show_requests(
    connection: "Connection", workspace_id: str, run_id: str, *, number: int | None, style: str, cwd: str
) -> None:
    """All requests of a run, and one of them as a whole: this one, or the last."""
    from longboat.client import calls

    found = connection.send(calls.model_requests(workspace_id, run_id)).items
    if style == "json":
        for each in [number] if number is not None else [request.number for request in found]:
            json_line(connection.send(calls.model_request(workspace_id, run_id, each)))
        return
    if not found:
        click.echo("This run sent no requests to a model, or they are no longer stored.")
        return
    if number is None:
        _print_table(found)
    shown = connection.send(calls.model_request(workspace_id, run_id, number or found[-1].number))
    _print_request(shown)
    if number is None and len(found) > 1:
        notice(f"Another request: longboat session show --wire {run_id} --request 1{elsewhere(cwd)}")


def _print_table(found: Sequence[SentRequest]) -> None:
    table(
        ("#", "MODEL", "SENT", "MESSAGES", "INPUT", "CACHED", "OUTPUT", "TOOK", "ANSWER"),
        [
            (
                str(each.number),
                one_line(each.model),
                ago(each.sent_at),
                f"{each.messages} ({each.new_messages} new)",
                f"{each.usage.input_tokens:,}" if each.usage is not None else "-",
                f"{each.cached_tokens:,}" if each.cached_tokens is not None else "-",
                f"{each.usage.output_tokens:,}" if each.usage is not None else "-",
                duration(each.seconds) if each.seconds is not None else "-",
                _answer(each),
            )
            for each in found
        ],
        spare=("SENT", "TOOK"),
    )


def _answer(request: SentRequest) -> str:
    if request.error is not None:
        return f"failed: {one_line(request.error)}"
    return (request.stop_reason or "none yet").replace("_", " ") + (" (summary)" if request.summary else "")


def _print_request(shown: SentRequestBody) -> None:
    request, body = shown.request, shown.body
    click.echo()
    click.secho(f"Request {request.number} to {one_line(request.model)}{_MODES[request.tool_mode]}", bold=True)
    if not request.exact:
        click.echo("As passed to the provider's library, which converts it to the provider's own format.")
    if request.error is not None:
        click.echo(f"Failed: {safe(request.error)}")
    click.echo()
    rows = [
        (PARTS[part.name], f"{part.size:,}", f"about {part.tokens:,}" if part.tokens is not None else "-")
        for part in request.parts
    ]
    table(("PART", "BYTES", "TOKENS"), rows)
    if request.usage is not None:
        click.echo(
            f"The provider counted {request.usage.input_tokens:,} input tokens,"
            f" {request.cached_tokens or 0:,} of them from its cache. Their shares by part are estimates."
        )
    if isinstance(system := body.get("system"), str):
        _print_section("system", [safe(system)])
    for message in body.get("messages", []):
        _print_section(str(message.get("role", "")), _message_lines(message))
    if tools := body.get("tools"):
        _print_section("tools", [_tool_line(tool) for tool in tools])
    rest = {name: value for name, value in body.items() if name not in ("system", "messages", "tools")}
    _print_section("settings", [f"{safe(name)}: {_json(value)}" for name, value in rest.items()])


def _print_section(title: str, lines: Sequence[str]) -> None:
    click.echo()
    click.secho(safe(title), fg="cyan")
    click.echo("\n".join(lines))


def _message_lines(message: Mapping[str, Any]) -> list[str]:
    return [line for name, value in message.items() if name != "role" for line in _field_lines(name, value)]


def _field_lines(name: str, value: Any) -> Iterator[str]:
    """Text as it is; other things as JSON, behind their name."""
    match value:
        case str() if name == "content":
            yield safe(value)
        case list() if name in ("content", "parts"):
            for part in value:
                text = part.get("text") if isinstance(part, dict) else None
                yield safe(text) if isinstance(text, str) else _json(part)
        case list() if name == "tool_calls":
            yield from (_json(call.get("function", call)) for call in value)
        case None:
            return
        case _:
            yield f"{safe(name)}: {_json(value)}"


def _tool_line(tool: Mapping[str, Any]) -> str:
    described = tool.get("function", tool)
    about = f"{described.get('name')} ({len(msgspec.json.encode(tool)):,} bytes) {described.get('description', '')}"
    return one_line(about, _WIDE)


def _json(value: Any) -> str:
    return safe(msgspec.json.encode(value).decode())
