"""An MCP server of before 2026 without any SDK, one JSON message a line: `python mcp_old_server.py DIRECTORY [--deaf]`.

It keeps what it was told in files of DIRECTORY: `canceled` (the id of a canceled request), `roots`. With `--deaf` it
ends neither when its input ends nor on SIGTERM.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

directory = Path(sys.argv[1])
deaf = "--deaf" in sys.argv
tools = ["hang", "grow", "garble"]


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def called(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    if name == "hang":
        (directory / "hanging").write_text(json.dumps(request["id"]))
        return
    if name == "grow":
        tools.append(f"grown{len(tools)}")
        say(method="notifications/tools/list_changed")
    if name == "garble":
        print("this is no message", flush=True)
        say(id=request["id"], result={"content": "neither is this"})
        return
    say(id=request["id"], result={"content": [{"type": "text", "text": "done"}]})


def heard(message: dict[str, Any]) -> None:
    match message:
        case {"method": "initialize", "id": number}:
            info = {"name": "old", "version": "1"}
            capabilities = {"tools": {"listChanged": True}, "resources": {}}
            say(
                id=number,
                result={"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info},
            )
        case {"method": "notifications/initialized"}:
            say(id="r1", method="roots/list")
        case {"id": "r1", "result": result}:
            (directory / "roots").write_text(json.dumps(result))
        case {"method": "tools/list", "id": number, **rest}:
            # Two pages, and a schema that leaves out what it can.
            first = not rest.get("params", {}).get("cursor")
            names = tools[:1] if first else tools[1:]
            page: dict[str, Any] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
            say(id=number, result=page | ({"nextCursor": "more"} if first else {}))
        case {"method": "tools/call"}:
            called(message)
        case {"method": "notifications/cancelled", "params": {"requestId": number}}:
            (directory / "canceled").write_text(json.dumps(number))
        case {"method": method, "id": number}:
            say(id=number, error={"code": -32601, "message": f"{method}: never heard of it"})


if deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
(directory / "pid").write_text(f"{os.getpid()}\n")
for line in sys.stdin:
    heard(json.loads(line))
while deaf:
    time.sleep(600)
