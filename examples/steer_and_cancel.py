"""Start a long run, send a second prompt meanwhile, then cancel the first: the second still runs.

python examples/steer_and_cancel.py
"""

import asyncio
from contextlib import aclosing

from longboat.client import Client, Submit
from longboat.wire.models import Delivery


async def main() -> None:
    async with Client() as client:
        workspace = await client.join(".")
        session = await client.create_session(workspace.id)
        story_id = ""
        async with aclosing(
            client.run("Tell a very long story.", workspace_id=workspace.id, session_id=session.id)
        ) as story:
            async for event in story:
                if event.type == "message_delta":
                    story_id = event.payload.run_id
                    print(f"It begins: {event.payload.text!r}")
                    break
        # The run continues without us. `steer` adds our prompt at its next step, or runs it next if there is none.
        steering = Submit(session_id=session.id, prompt="Make it a poem.", delivery=Delivery.STEER)
        accepted = await client.submit(workspace.id, steering)
        print(f"The second prompt is accepted, {accepted.position} before it.")
        await client.cancel_run(workspace.id, story_id)
        for name, run_id in (("story", story_id), ("poem", accepted.run_id)):
            run = await client.get_run(workspace.id, run_id, wait_s=30)
            print(f"{name}: {run.outcome}")


asyncio.run(main())
