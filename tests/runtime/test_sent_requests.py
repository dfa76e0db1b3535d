"""What was sent to models can be seen afterwards, as it went out (ADR 0047)."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash import restarted
from running_app import RunningApp, configure, launch

from longboat.core.prompts import SUMMARIZE
from longboat.errors import RequestNotFound, RunNotFound
from longboat.models.protocol import as_json
from longboat.testing import CallTool, Gate, Pause, Refuse, Say, ScriptedModel, ScriptedTool, Use
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.model_requests import SentRequest
from longboat.wire.models import Usage
from longboat.wire.requests import Summarize
from secrecy import check_for_secrets, provider

BIG = 100_000


@asynccontextmanager
async def served(tmp_path: Path, **model: Any) -> AsyncIterator[tuple[RunningApp, ScriptedEndpoint]]:
    """A running app with the native adapter, and the server that it asks."""
    async with ScriptedEndpoint() as endpoint:
        entry = {"id": "m", "context_window": BIG, "tools": "native", **model}
        configure(providers={"lab": provider(endpoint.base_url, models=[entry])}, models={"large": "lab/m"})
        async with launch(tmp_path, None, tools=[ScriptedTool("look")]) as running:
            yield running, endpoint


async def requests(running: RunningApp, run_id: str) -> tuple[SentRequest, ...]:
    found = await running.workspace.ledger.requests(run_id)
    check_for_secrets(msgspec.json.encode(found), "the requests")
    return found.items


async def bodies(running: RunningApp, run_id: str) -> list[dict[str, Any]]:
    shown = [await running.workspace.ledger.request(run_id, each.number) for each in await requests(running, run_id)]
    check_for_secrets(msgspec.json.encode(shown), "the bodies")
    return [each.body for each in shown]


async def test_what_is_shown_is_what_the_server_got(tmp_path: Path) -> None:
    async with served(tmp_path) as (running, endpoint):
        endpoint.add(
            [CallTool("look"), Use(input_tokens=1000, output_tokens=10)], [Say("seen"), Use(input_tokens=1100)]
        )
        endpoint.add([Say("again")])
        for run_id in ("r1", "r2"):
            await running.submit("Look!", run_id)
            await running.completed(run_id)
        got = [exchange.body for exchange in endpoint.requests]
        assert await bodies(running, "r1") == got[:2]
        assert await bodies(running, "r2") == got[2:]
        first, second = await requests(running, "r1")
        assert (first.model, first.tool_mode, first.exact, first.summary) == ("lab/m", "native", True, False)
        assert (first.stop_reason, second.stop_reason) == ("tool_use", "end_turn")
        assert (first.messages, first.new_messages, second.messages, second.new_messages) == (2, 2, 4, 2)
        assert first.usage is not None
        assert first.usage.input_tokens == 1000
        assert sum(part.tokens or 0 for part in first.parts) == 1000
        assert [part.name for part in second.parts] == ["system", "tools", "user", "assistant", "tool", "settings"]


LANGUAGE_TOOLS = {"definition", "diagnostics", "references", "rename", "symbols"}


async def test_a_request_has_tools_of_language_servers_only_if_one_has_files_here(tmp_path: Path) -> None:
    """In the body that the provider got."""
    async with ScriptedEndpoint() as endpoint:
        configure(
            providers={"lab": provider(endpoint.base_url, models=[{"id": "m", "context_window": BIG}])},
            models={"large": "lab/m"},
            lsp={"mine": {"command": "true", "file_types": ["abc"]}},
        )
        async with launch(tmp_path, None) as running:
            for run_id, name in (("r1", "a.txt"), ("r2", "a.abc")):
                (tmp_path / "project" / name).write_text("x")
                await running.submit("Say hello.", run_id)
                await running.completed(run_id)
    offered = [{tool["function"]["name"] for tool in exchange.body["tools"]} for exchange in endpoint.requests]
    assert [LANGUAGE_TOOLS & names for names in offered] == [set(), LANGUAGE_TOOLS]
    assert offered[1] - offered[0] == LANGUAGE_TOOLS


async def test_the_store_gives_back_every_byte(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("look")], [Say("seen ☃")], [Say("ok")]], context_window=BIG)
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        for run_id in ("r1", "r2"):
            await running.submit("one \u2028 two", run_id)
            await running.completed(run_id)
        reads = running.workspace.store.reads
        stored = [await reads.request_body(running.workspace.id, *which) for which in (("r1", 1), ("r1", 2), ("r2", 1))]
        assert [each[1] for each in stored if each] == [as_json(each, model="scripted") for each in model.requests]


async def test_every_try_is_shown_with_its_error(tmp_path: Path) -> None:
    async with served(tmp_path) as (running, endpoint):
        endpoint.add([Refuse(503, message="overloaded")], [Say("now")])
        await running.submit("Hello", "r1")
        await running.completed("r1")
        refused, answered = await requests(running, "r1")
        assert "overloaded" in (refused.error or "")
        assert (refused.usage, refused.stop_reason) == (None, None)
        assert (answered.error, answered.stop_reason, answered.new_messages) == (None, "end_turn", 0)
        first, second = await bodies(running, "r1")
        assert first == second


async def test_a_model_in_steps_shows_the_request_with_its_form(tmp_path: Path) -> None:
    async with served(tmp_path, tools="steps") as (running, endpoint):
        endpoint.add([Say('{"thought": "", "action": {"answer": "Hi."}}')], [Say("Hi.")], [Say("Hi.")])
        await running.submit("Hello", "r1")
        await running.completed("r1")
        assert await bodies(running, "r1") == [exchange.body for exchange in endpoint.requests]
        first = (await requests(running, "r1"))[0]
        assert first.tool_mode == "steps"
        assert "tools" not in (await bodies(running, "r1"))[0]


async def test_a_summary_is_shown_as_one(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("noted")], [Say("Boats.")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("Boats!", "r1")
        await running.completed("r1")
        await running.workspace.summarize_session(running.session_id, Summarize(run_id="s"))
        await running.completed("s")
        (request,) = await requests(running, "s")
        assert (request.summary, request.exact) == (True, False)
        (body,) = await bodies(running, "s")
        assert body["messages"][-1]["parts"][0]["text"] == SUMMARIZE


async def test_a_request_without_an_answer_survives_a_crash_and_a_cancel_ends_it(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("half"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("Hello", "r1")
        await gate.reached()
        await running.watcher.until(lambda event: event.type == "message_delta")
        async with restarted(running, ScriptedModel()) as again:
            (open_request,) = await requests(again, "r1")
            assert (open_request.error, open_request.seconds, open_request.usage) == (None, None, None)
            assert "Hello" in str(await bodies(again, "r1"))
        await running.workspace.cancel_run("r1")
        await running.completed("r1")
        (canceled,) = await requests(running, "r1")
        assert canceled.error == "Canceled."


async def test_unknown_runs_and_requests_are_told_apart(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("a"), Use(input_tokens=1)]], context_window=BIG)) as running:
        await running.submit("Hello", "r1")
        await running.completed("r1")
        ledger = running.workspace.ledger
        with pytest.raises(RunNotFound):
            await ledger.requests("nobody")
        for number in (0, 2):
            with pytest.raises(RequestNotFound):
                await ledger.request("r1", number)
        (request,) = await requests(running, "r1")
        assert request.usage == Usage(input_tokens=1, cost=None, unpriced_tokens=1)


async def test_old_requests_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await running.submit("Hello", "r1")
        await running.completed("r1")
        await running.app.prune_once()
        assert len(await requests(running, "r1")) == 1
        days = running.app.settings.server.keep_events_days
        later = time.time() + (days + 3) * 86_400
        monkeypatch.setattr("longboat.runtime.pruning.time.time", lambda: later)
        await running.app.prune_once()
        assert not await requests(running, "r1")
