"""What a server offers is read to its end, but not without end."""

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server

from longboat.tools.mcp.listing import DESCRIPTION_LIMIT, SCHEMA_LIMIT, TOOL_LIMIT, list_all
from longboat.tools.mcp.state import Catalog, OfferedTool


def tool(name: str, **more: Any) -> types.Tool:
    return types.Tool(name=name, **({"input_schema": {"type": "object"}} | more))


async def listed(page: Callable[[str | None], types.ListToolsResult]) -> Catalog:
    async def on_list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return page(params.cursor if params else None)

    async with Client(Server("test", on_list_tools=on_list_tools), cache=None) as client:
        return await list_all(client, "test")


async def test_all_pages_are_read() -> None:
    pages = {
        None: types.ListToolsResult(tools=[tool("a")], next_cursor="2"),
        "2": types.ListToolsResult(tools=[tool("b", description="does b")]),
    }
    schema = {"properties": {}, "type": "object"}
    assert await listed(lambda cursor: pages[cursor]) == Catalog(
        tools=(
            OfferedTool(name="a", description="a", schema=schema),
            OfferedTool(name="b", description="does b", schema=schema),
        )
    )


async def test_pages_without_end_are_left_in_the_middle() -> None:
    def page(cursor: str | None) -> types.ListToolsResult:
        number = int(cursor or 0)
        return types.ListToolsResult(
            tools=[tool(f"t{number}-{index}") for index in range(30)], next_cursor=str(number + 1)
        )

    assert len((await listed(page)).tools) == TOOL_LIMIT
    assert (await listed(lambda _: types.ListToolsResult(tools=[], next_cursor="again"))).tools == ()


async def test_what_is_beyond_measure_is_cut_or_left_out() -> None:
    huge = {"type": "object", "description": "x" * SCHEMA_LIMIT}
    page = types.ListToolsResult(
        tools=[
            tool("wordy", description="x" * 100_000),
            tool("huge", input_schema=huge),
            tool("twice"),
            tool("twice", description="again"),
            tool("dialect", input_schema={"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
        ]
    )
    tools = {tool.name: tool for tool in (await listed(lambda _: page)).tools}
    assert list(tools) == ["wordy", "twice", "dialect"]
    assert len(tools["wordy"].description) == DESCRIPTION_LIMIT
    assert tools["dialect"].schema == {"properties": {}, "type": "object"}
