"""Two clients share one session: both prompt, and both see everything in the same order.

python examples/two_clients.py
"""

import asyncio
from contextlib import aclosing

from longboat.client import Client, Event


async def watch(client: Client, workspace_id: str, session_id: str, listening: asyncio.Event) -> list[Event]:
    """Collect the events of the session until both runs have ended."""
    seen: list[Event] = []
    async with aclosing(client.events(workspace_id, session_id)) as events:
        async for event in events:
            listening.set()
            if event.type in ("message", "message_delta", "run", "run_complete"):
                seen.append(event)
            if sum(each.type == "run_complete" for each in seen) == 2:
                break
    return seen


async def ask(client: Client, workspace_id: str, session_id: str, prompt: str) -> str:
    answer = ""
    async for event in client.run(prompt, workspace_id=workspace_id, session_id=session_id):
        if event.type == "run_complete":
            answer = event.payload.text
    return answer


async def main() -> None:
    async with Client() as anna, Client() as ben, asyncio.TaskGroup() as tasks:
        workspace = await anna.join(".")
        session = await anna.create_session(workspace.id, "shared")
        place = (workspace.id, session.id)
        ready = [asyncio.Event(), asyncio.Event()]
        annas_view = tasks.create_task(watch(anna, *place, ready[0]))
        bens_view = tasks.create_task(watch(ben, *place, ready[1]))
        for each in ready:
            await each.wait()
        # Both at once: the session runs them one after the other, in the order of acceptance.
        answers = await asyncio.gather(ask(anna, *place, "I am Anna."), ask(ben, *place, "And I am Ben."))
        print(f"Anna's answer: {answers[0]}\nBen's answer: {answers[1]}")
        same = await annas_view == await bens_view
        print(f"Both saw the same {len(await annas_view)} events in the same order: {same}")


asyncio.run(main())
