"""Print the answer of every run in the current directory, from any client. Ctrl-C ends it.

The stream reconnects automatically: stop the server, start it again, and you miss nothing.

    python examples/watcher.py [COUNT]     (ends after COUNT runs)
"""

import asyncio
import sys
from contextlib import aclosing, suppress

from longboat.client import Client


async def main(count: int | None) -> None:
    async with Client() as client:
        workspace = await client.join(".")
        async with aclosing(client.events(workspace.id)) as events:
            async for event in events:
                if event.type == "snapshot":
                    print(f"watching {workspace.path}", flush=True)
                elif event.type == "run_complete":
                    print(f"{event.payload.outcome}: {event.payload.text or event.payload.error}", flush=True)
                    count = None if count is None else count - 1
                if count == 0:
                    break


with suppress(KeyboardInterrupt):
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else None))
