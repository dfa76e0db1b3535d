"""What a server offers, read page by page; anything over the limits is left out."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from longboat.tools.mcp.state import Catalog, McpArgument, McpPrompt, McpResource, OfferedTool

logger = logging.getLogger(__name__)

TOOL_LIMIT = 200
OTHER_LIMIT = 1_000
DESCRIPTION_LIMIT = 8_000
SCHEMA_LIMIT = 50_000
SHORT_LIMIT = 500
_PAGES = 100

Page = TypeVar("Page", bound=types.PaginatedResult)
Item = TypeVar("Item")


async def list_all(client: Client, server: str) -> Catalog:
    """Tools must be listed; prompts and resources are left out if the server fails to list them."""
    can = client.server_capabilities
    return Catalog(
        tools=await _tools(client, server) if can.tools is not None else (),
        prompts=await _optional(_prompts, client, server) if can.prompts is not None else (),
        resources=await _optional(_resources, client, server) if can.resources is not None else (),
        instructions=(client.instructions or "")[:DESCRIPTION_LIMIT],
    )


async def _tools(client: Client, server: str) -> tuple[OfferedTool, ...]:
    # A name listed twice can be called only once.
    found: dict[str, OfferedTool] = {}
    for tool in await _all(client.list_tools, lambda page: page.tools, TOOL_LIMIT):
        if len(json.dumps(tool.input_schema)) > SCHEMA_LIMIT:
            logger.warning("mcp server %s: the schema of its tool %s is too long: left out", server, tool.name)
            continue
        description = (tool.description or tool.title or tool.name)[:DESCRIPTION_LIMIT]
        found[tool.name] = OfferedTool(
            name=tool.name,
            description=description,
            schema=_object(tool.input_schema),
            only_reads=tool.annotations is not None and tool.annotations.read_only_hint is True,
        )
    return tuple(found.values())


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as providers want it: of an object, with properties, and without the name of its dialect."""
    known = {key: value for key, value in schema.items() if key != "$schema"}
    return {"properties": {}, **known, "type": "object"}


async def _prompts(client: Client, server: str) -> tuple[McpPrompt, ...]:
    listed = await _all(client.list_prompts, lambda page: page.prompts, OTHER_LIMIT)
    return tuple(
        McpPrompt(
            server=server,
            name=prompt.name,
            description=(prompt.description or prompt.title or "")[:SHORT_LIMIT],
            arguments=tuple(
                McpArgument(
                    name=argument.name,
                    description=(argument.description or argument.title or "")[:SHORT_LIMIT],
                    required=bool(argument.required),
                )
                for argument in prompt.arguments or ()
            ),
        )
        for prompt in listed
    )


async def _resources(client: Client, server: str) -> tuple[McpResource, ...]:
    listed = await _all(client.list_resources, lambda page: page.resources, OTHER_LIMIT)
    found = [_resource(server, resource.uri, resource) for resource in listed]
    try:
        templates = await _all(client.list_resource_templates, lambda page: page.resource_templates, OTHER_LIMIT)
    except MCPError:
        # Servers without templates need not know the question.
        templates = []
    found += [_resource(server, template.uri_template, template, is_template=True) for template in templates]
    return tuple(found)


def _resource(
    server: str, uri: str, about: types.Resource | types.ResourceTemplate, *, is_template: bool = False
) -> McpResource:
    return McpResource(
        server=server,
        uri=uri,
        name=(about.title or about.name)[:SHORT_LIMIT],
        description=(about.description or "")[:SHORT_LIMIT],
        mime_type=about.mime_type or "",
        is_template=is_template,
    )


async def _optional(
    read: Callable[[Client, str], Awaitable[tuple[Item, ...]]], client: Client, server: str
) -> tuple[Item, ...]:
    try:
        return await read(client, server)
    except (MCPError, ValidationError) as error:
        logger.warning("mcp server %s: a list cannot be read: %s", server, error)
        return ()


async def _all(fetch: Callable[..., Awaitable[Page]], items: Callable[[Page], list[Item]], limit: int) -> list[Item]:
    found: list[Item] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await fetch(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if cursor is None:
            return found[:limit]
        if len(found) >= limit:
            break
    logger.warning("an mcp server lists too many items: only the first %d are used", min(len(found), limit))
    return found[:limit]
