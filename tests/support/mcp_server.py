"""A real MCP server for the tests, made with the SDK: `python mcp_server.py stdio DIRECTORY`, or http, or sse.

What happens to it goes into files of DIRECTORY: `pid`, `started` (a line per start), `hanging`, `canceled`. `--old`
makes it deny the protocol of 2026 over http, so that a client falls back to the handshake and its sessions.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations

PIXEL = bytes.fromhex("89504e470d0a1a0a")


def build(directory: Path) -> MCPServer:
    server = MCPServer("test server", instructions="Echo before you shout.", log_level="ERROR")
    _add_plain(server)
    _add_odd(server)
    _add_trouble(server, directory)
    _add_others(server, directory)
    return server


def _add_plain(server: MCPServer) -> None:
    @server.tool()
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    async def fail(text: str) -> str:
        raise ToolError(text)

    @server.tool()
    async def environment(name: str) -> str:
        return os.environ.get(name, "(not set)")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def header(name: str, ctx: Context) -> str:
        return (ctx.headers or {}).get(name, "(not sent)")


def _add_odd(server: MCPServer) -> None:
    @server.tool(name="odd.name/of.a.tool")
    async def odd() -> str:
        return "odd"

    @server.tool()
    async def much(count: int) -> str:
        return "x" * count

    @server.tool(structured_output=False)
    async def picture() -> list[Any]:
        return ["before", Image(data=PIXEL, format="png"), "after"]

    @server.tool()
    async def structured() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="two things")], structured_content={"things": [1, 2]})


def _add_trouble(server: MCPServer, directory: Path) -> None:
    def note(name: str) -> None:
        (directory / name).write_text("so it is\n")

    @server.tool()
    async def hang(ctx: Context) -> str:
        await ctx.report_progress(1, 3, "hanging")
        note("hanging")
        try:
            await anyio.sleep_forever()
        finally:
            note("canceled")
        return "never"

    @server.tool()
    async def die() -> str:
        print("my last words", file=sys.stderr, flush=True)
        os._exit(3)

    @server.tool()
    async def child() -> str:
        """Start a process that outlives us, in a session of its own."""
        return str(_spawn().pid)

    @server.tool()
    async def grow(name: str, ctx: Context) -> str:
        async def grown() -> str:
            return "grown"

        server.add_tool(grown, name=name)
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "done"


def _spawn() -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, start_new_session=True, stdin=null, stdout=null, stderr=null)


def _add_others(server: MCPServer, directory: Path) -> None:
    def note(name: str) -> None:
        (directory / name).write_text("so it is\n")

    @server.resource("memo://today", name="memo", mime_type="text/plain")
    async def memo() -> str:
        """What is on today."""
        return "buy rope"

    @server.resource("memo://day/{day}")
    async def memo_of(day: str) -> str:
        return f"nothing on {day}"

    @server.prompt()
    async def review(path: str, tone: str = "kind") -> str:
        """Review a file."""
        return f"Review {path} in a {tone} tone."

    @server.prompt()
    async def dawdle() -> str:
        note("hanging")
        try:
            await anyio.sleep_forever()
        finally:
            note("canceled")
        return "never"


def without_2026(app: Any) -> Any:
    async def old(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"mcp-method", b"server/discover") in scope["headers"]:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return old


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http", "sse"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--old", action="store_true")
    options = parser.parse_args()
    directory: Path = options.directory
    with (directory / "started").open("a") as file:
        file.write("started\n")
    (directory / "pid").write_text(f"{os.getpid()}\n")
    server = build(directory)
    if options.transport == "stdio":
        server.run("stdio")
        return
    app = server.streamable_http_app() if options.transport == "http" else server.sse_app()
    uvicorn.run(without_2026(app) if options.old else app, port=options.port, log_level="error")


if __name__ == "__main__":
    main()
