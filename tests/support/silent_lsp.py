"""A language server that answers the greeting and says nothing more: `python silent_lsp.py`."""

import json
import sys


def read() -> "dict[str, object] | None":
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    return json.loads(sys.stdin.buffer.read(length)) if length else None


while message := read():
    if message.get("method") == "initialize":
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": {}}}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
