"""Ask one question and print the answer as it is written.

Needs a server (`longboat serve`, or the one that `longboat run` leaves in the background):

    python examples/hello.py "Why is the sky blue?"
"""

import asyncio
import sys

from longboat.client import Client


async def main(prompt: str) -> int:
    async with Client() as client:
        async for event in client.run(prompt):
            if event.type == "message_delta":
                print(event.payload.text, end="", flush=True)
            elif event.type == "run_complete":
                print(f"\n[{event.payload.outcome}] {event.payload.error}")
                return 0 if event.payload.outcome == "end_turn" else 1
    return 1


sys.exit(asyncio.run(main(" ".join(sys.argv[1:]) or "Say hello.")))
