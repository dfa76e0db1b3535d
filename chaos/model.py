"""`python -m chaos.model COMPLAINTS`: the language model, in a process of its own that no kill reaches.

It plays the plan in the last prompt of a request (`chaos.plan`) and remembers nothing. A request that no provider would
take, such as one with a tool call that has no result, is a broken transcript: it becomes a line in the file COMPLAINTS.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from chaos.plan import Kind, Step, call_of, decode
from longboat.testing import Break, CallTool, Delay, HttpStep, Refuse, Say
from longboat.testing.answer import Answer, Dropped

Message = dict[str, Any]
BETWEEN_WORDS_S = 0.02
WORDS = {Kind.SAY: 4, Kind.SAY_SLOWLY: 60}


class Model:
    """An ASGI application that speaks as much of OpenAI's chat wire as Longboat asks for."""

    def __init__(self, complaints: Path) -> None:
        self._complaints = complaints
        self._requests = 0

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        messages = msgspec.json.decode(body)["messages"]
        if complaint := complaint_about(messages):
            with self._complaints.open("ab") as file:
                file.write(msgspec.json.encode({"complaint": complaint, "messages": messages}) + b"\n")
        self._requests += 1
        with suppress(Dropped):
            await Answer(send, model="m", number=self._requests).play(answer_to(messages))


def complaint_about(messages: list[Message]) -> str:
    """What a strict provider would refuse these messages for; empty if nothing."""
    open_calls: list[str] = []
    former = ""
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                return f"a result of the call {message['tool_call_id']} that nobody made"
            open_calls.remove(message["tool_call_id"])
            former = role
            continue
        if open_calls:
            return f"calls without a result: {open_calls}"
        if role == former:
            return f"two messages of the {role} in a row"
        if not message.get("content") and not message.get("tool_calls"):
            return f"an empty message of the {role}"
        former = role
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    if open_calls:
        return f"calls without a result: {open_calls}"
    return "" if messages[-1]["role"] in ("user", "tool") else "the last message is the model's own"


def answer_to(messages: list[Message]) -> HttpStep:
    """The next step of the plan in the last prompt."""
    place = max(index for index, message in enumerate(messages) if message["role"] == "user")
    done = sum(message["role"] == "assistant" for message in messages[place + 1 :])
    steps = decode(_text(messages[place]))
    return _play(steps[done]) if done < len(steps) else [Say("Done.")]


def _text(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _play(step: Step) -> HttpStep:
    if step.kind is Kind.REFUSED:
        return [Refuse(400, message=f"refused {step.token}")]
    if step.kind is Kind.BROKEN:
        return [Say(f"Broken {step.token}"), Break(drop=True)]
    if (call := call_of(step)) is not None:
        return [Say("I call a tool. "), Delay(BETWEEN_WORDS_S), CallTool(*call, call_id=f"call-{step.token}")]
    pieces = [(Say(f"{step.token} word {number}. "), Delay(BETWEEN_WORDS_S)) for number in range(WORDS[step.kind])]
    return [item for piece in pieces for item in piece]


async def _serve(complaints: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
        config = uvicorn.Config(Model(complaints), log_level="critical", access_log=False, lifespan="off")
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
