"""One session, several models: what one has thought and called, the others go on from (A6)."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_transcript
from running_app import RunningApp, configure, launch
from wire_rules import check_anthropic, check_openai

from longboat.testing import CallTool, Say, Think
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Outcome
from longboat.wire.requests import Approve
from secrecy import provider
from wires import Wires, wires

CHAT, CLAUDE, GPT = "chat/m", "claude/claude-sonnet-5-5", "gpt/gpt-6.1-sol"
LOOK = CallTool("ls", json.dumps({"path": "."}))


def answers(text: str) -> list[list[Any]]:
    """Two steps: it thinks, looks twice at once, and says something."""
    return [[Think(f"thought of {text}"), Say("Looking."), LOOK, LOOK], [Say(text)]]


def providers(chat: ScriptedEndpoint, others: Wires) -> dict[str, Any]:
    known = {"context_window": 100_000}
    return {
        "chat": provider(chat.base_url, models=[{"id": "m", **known}]),
        "claude": provider(others.url, type="anthropic-compatible", models=[{"id": "claude-sonnet-5-5", **known}]),
        "gpt": provider(others.url, type="azure", models=[{"id": "gpt-6.1-sol", **known}]),
    }


def check_responses(body: Mapping[str, Any]) -> None:
    """OpenAI's Responses wire: each call once, each result after its call, none left over."""
    items = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert len(calls) == len(set(calls))
    assert sorted(calls) == sorted(results)
    assert all(isinstance(json.loads(item["arguments"]), dict) for item in items if item.get("type") == "function_call")
    for call_id in calls:
        places = [place for place, item in enumerate(items) if item.get("call_id") == call_id]
        assert items[places[0]]["type"] == "function_call"
    assert all(item.get("encrypted_content") for item in items if item.get("type") == "reasoning")


def check_all(chat: ScriptedEndpoint, others: Wires) -> None:
    for exchange in chat.requests:
        check_openai(exchange.body)
    for asked in others.asked:
        (check_anthropic if asked.path.endswith("/messages") else check_responses)(asked.body)


async def turns(running: RunningApp, order: tuple[str, ...]) -> None:
    for number, model in enumerate(order):
        await running.submit(f"prompt {number}", f"r{number}", model=model, approve=Approve.ALL)
        complete = await running.completed(f"r{number}")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, f"answer {number}", "")


@pytest.mark.parametrize("order", [*itertools.permutations((CHAT, CLAUDE, GPT)), (CHAT, CLAUDE, CHAT, CLAUDE)])
async def test_a_session_goes_on_with_another_model_and_every_wire_takes_its_transcript(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """A6, T3: live, on three wires, with reasoning and parallel calls in the history of each."""
    scripts = [answers(f"answer {number}") for number in range(len(order))]
    elsewhere = [step for model, steps in zip(order, scripts, strict=True) if model != CHAT for step in steps]
    async with ScriptedEndpoint() as chat, wires(*elsewhere) as others:
        chat.add(*(step for model, steps in zip(order, scripts, strict=True) if model == CHAT for step in steps))
        configure(providers=providers(chat, others), models={"large": CHAT})
        async with launch(tmp_path, None) as running:
            await turns(running, order)
            messages = list(await running.messages())
            check_transcript(messages)
            spoken = [f"{message.provider}/{message.model}" for message in messages if message.role == "assistant"]
            assert list(dict.fromkeys(spoken)) == list(dict.fromkeys(order))
            await check_ends(running)
        check_all(chat, others)
        bodies = [exchange.body for exchange in chat.requests] + [asked.body for asked in others.asked]
        last = max((json.dumps(body) for body in bodies), key=len)
        assert all(f"prompt {number}" in last for number in range(len(order)))


async def test_signed_reasoning_goes_back_to_its_own_provider_and_to_no_other(tmp_path: Path) -> None:
    """A6: Claude wants its signed thoughts again after a call; a signature means nothing to anybody else."""
    async with ScriptedEndpoint() as chat, wires(*answers("answer 0"), *answers("answer 2")) as others:
        chat.add(*answers("answer 1"))
        configure(providers=providers(chat, others), models={"large": CHAT})
        async with launch(tmp_path, None) as running:
            await turns(running, (CLAUDE, CHAT, CLAUDE))
        check_all(chat, others)
        within = json.dumps(others.asked[1].body["messages"])
        assert "signed-1" in within, "within its own turn the thought comes back"
        assert "signed-" not in "".join(json.dumps(exchange.body) for exchange in chat.requests)
        thoughts = [
            block
            for message in others.asked[-1].body["messages"]
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "thinking"
        ]
        assert thoughts, "it still has its own"
        assert all(block["signature"].startswith("signed-") for block in thoughts)


async def test_a_model_that_is_not_there_ends_the_run_and_the_session_goes_on_with_another(tmp_path: Path) -> None:
    """A6, E1."""
    async with ScriptedEndpoint() as chat, wires(*answers("answer 0")) as others:
        configure(providers=providers(chat, others), models={"large": CHAT})
        async with launch(tmp_path, None) as running:
            await running.submit("x", "bad", model="nobody/none")
            refused = await running.completed("bad")
            assert refused.outcome is Outcome.ERROR
            assert "There is no provider 'nobody'" in refused.error
            await turns(running, (CLAUDE,))
            await check_ends(running)
        check_all(chat, others)
