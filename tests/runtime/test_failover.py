"""A turn goes on with the next model of the list when a provider fails (ADR 0043): real adapters, scripted servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_transcript, finish_of
from running_app import RunningApp, configure, launch

from longboat.models import failover
from longboat.testing import CallTool, Gate, Pause, Refuse, Say, Use
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.testing.script import Break
from longboat.wire.models import Message, Outcome, Role
from longboat.wire.requests import Approve
from secrecy import provider

DOWN = Refuse(503, message="overloaded")
PRICE = {"input": 100, "output": 0}


@asynccontextmanager
async def two(tmp_path: Path, **config: Any) -> AsyncIterator[tuple[RunningApp, ScriptedEndpoint, ScriptedEndpoint]]:
    """A running app with the models `first/m` and `second/m`, in this order, and their servers."""
    async with ScriptedEndpoint() as first, ScriptedEndpoint() as second:
        window, first_entry = config.pop("window", 100_000), config.pop("first_entry", {})
        settings = {
            "providers": {
                "first": provider(
                    first.base_url, models=[{"id": "m", "context_window": 100_000, "price": PRICE, **first_entry}]
                ),
                "second": provider(second.base_url, models=[{"id": "m", "context_window": window, "price": PRICE}]),
            },
            "models": {"large": ["first/m", "second/m"]},
            **config,
        }
        configure(**settings)
        async with launch(tmp_path, None) as running:
            yield running, first, second


def told(running: RunningApp) -> list[str]:
    return [event.message for event in running.watcher.of("agent_event") if event.type == "notice"]


def speakers(messages: Any) -> list[str]:
    said: list[Message] = [message for message in messages if message.role is Role.ASSISTANT]
    return [f"{message.provider}/{message.model}" for message in said]


@pytest.mark.parametrize(
    ("trouble", "asked"),
    [
        ([DOWN], 3),
        ([Refuse(429, message="slow down")], 3),
        ([Refuse(429, message="slow down", retry_after="600")], 1),
        ([Refuse(429, message="no money", code="insufficient_quota")], 1),
        ([Refuse(402, message="no money")], 1),
        ([Say("half an ans"), Break(drop=True)], 3),
    ],
    ids=["down", "limited", "limited-for-long", "quota", "unpaid", "broken"],
)
async def test_the_next_model_continues_after_the_providers_own_retries_or_at_once_where_they_are_no_use(
    tmp_path: Path, trouble: list[Any], asked: int
) -> None:
    async with two(tmp_path) as (running, first, second):
        first.add(trouble, repeat=True)
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, "Here I am.", "")
        assert (len(first.requests), len(second.requests)) == (asked, 1)
        messages = await running.messages()
        check_transcript(list(messages))
        assert speakers(messages) == ["second/m"]
        (notice,) = told(running)
        assert notice.startswith("first/m: ")
        assert "Continuing with second/m." in notice
        await check_ends(running)


async def test_a_model_that_is_still_loading_after_its_time_is_not_waited_for_again(tmp_path: Path) -> None:
    async with two(tmp_path, first_entry={"first_token_s": 0.5}) as (running, first, second):
        first.add([Refuse(503, "Loading model")], repeat=True)
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert (len(first.requests), len(second.requests)) == (1, 1)
        (notice,) = told(running)
        assert notice.startswith("first/m: The model is being loaded. Continuing with second/m.")


async def test_a_silent_model_gives_way_after_its_first_silence(tmp_path: Path) -> None:
    """Each further try would cost the turn the same time again."""
    async with two(tmp_path, first_entry={"first_token_s": 0.2}) as (running, first, second):
        first.add([Pause(Gate())], repeat=True)
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert (len(first.requests), len(second.requests)) == (1, 1)
        (notice,) = told(running)
        assert notice.startswith("first/m: The provider stopped responding. Continuing with second/m.")


async def test_a_model_that_falls_silent_in_its_answer_gives_way_too(tmp_path: Path) -> None:
    async with two(tmp_path, first_entry={"idle_s": 0.2}) as (running, first, second):
        first.add([Say("half an ans"), Pause(Gate())], repeat=True)
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert len(first.requests) == 1


async def test_a_silent_model_leaves_the_next_one_half_of_the_turns_time(tmp_path: Path) -> None:
    """It may be silent for ten minutes, but the turn has no more than six seconds."""
    async with two(tmp_path, limits={"minutes": 0.1, "approved_minutes": 0.1}) as (running, first, second):
        first.add([Pause(Gate())], repeat=True)
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert (len(first.requests), len(second.requests)) == (1, 1)


async def test_a_silent_model_that_is_alone_is_asked_again(tmp_path: Path) -> None:
    async with two(tmp_path, first_entry={"first_token_s": 0.2}, models={"large": "first/m"}) as (running, first, _):
        first.add([Pause(Gate())])
        first.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert len(first.requests) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        Refuse(400, message="unknown field"),
        Refuse(401, message="bad key"),
        Refuse(403, message="flagged"),
        Refuse(404, message="no such model"),
    ],
    ids=["bad-request", "wrong-key", "forbidden", "no-such-model"],
)
async def test_what_is_not_the_providers_trouble_ends_the_run(tmp_path: Path, trouble: Refuse) -> None:
    async with two(tmp_path) as (running, first, second):
        first.add([trouble], repeat=True)
        await running.submit("go", "r1")
        assert (await running.completed("r1")).outcome is Outcome.ERROR
        assert len(second.requests) == 0
        assert (await running.workspace.models()).cooldowns == ()


async def test_in_the_middle_of_a_turn_the_next_one_has_what_was_done_and_each_step_is_its_makers(
    tmp_path: Path,
) -> None:
    """Costs and names are recorded per step; the half answer of the failed model is withdrawn (T7)."""
    async with two(tmp_path) as (running, first, second):
        first.add([CallTool("ls", '{"path": "."}'), Use(input_tokens=10_000)])
        first.add(*[[Say("half"), Break(drop=True)]] * 3)
        second.add([CallTool("ls", '{"path": ".", "depth": 2}'), Use(input_tokens=20_000)])
        second.add([Say("Done."), Use(input_tokens=20_000)])
        await running.submit("go", "r1", approve=Approve.ALL)
        assert (await running.completed("r1")).text == "Done."
        messages = await running.messages()
        assert speakers(messages) == ["first/m", "second/m", "second/m"]
        check_transcript(list(messages))
        assert "half" not in str(messages)
        assert [message["role"] for message in second.requests[0].body["messages"]][-2:] == ["assistant", "tool"]
        systems = {each.body["messages"][0]["content"] for each in (*first.requests, *second.requests)}
        assert len(systems) == 1, "what the first model was told of date and branch, the second is told too"
        assert (await running.workspace.session(running.session_id)).usage.cost == 5.0
        by_model = {figure.model: figure.usage.cost for figure in (await running.app.stats(None, days=1)).models}
        assert by_model == {"first/m": 1.0, "second/m": 4.0}
        await check_ends(running)


async def test_a_model_that_failed_is_passed_over_until_its_cooldown_ends_and_then_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_s = 0.0
    monkeypatch.setattr(failover, "seconds", lambda: 1_000_000 + passed_s)
    async with two(tmp_path) as (running, first, second):
        first.add([DOWN], [DOWN], [DOWN], [DOWN], [Say("Back again.")])
        second.add([Say("one")], [Say("two")], [Say("three")])

        async def turn(run_id: str) -> str:
            await running.submit("go", run_id)
            return (await running.completed(run_id)).text

        assert await turn("r1") == "one"
        page = await running.workspace.models()
        assert (page.large, page.large_list) == ("second/m", ("first/m", "second/m"))
        assert [(each.name, each.why) for each in page.cooldowns] == [("first/m", "Provider error")]
        assert (await running.workspace.agent()).provider == "second"

        assert await turn("r2") == "two"
        assert len(first.requests) == 3
        assert told(running)[-1] == "Using second/m: first/m is unavailable (Provider error)."

        passed_s = 61
        assert await turn("r3") == "three"
        assert len(first.requests) == 4, "on trial it is asked once"

        passed_s += 121
        assert await turn("r4") == "Back again."
        assert told(running)[-1] == "first/m answers again."
        assert (await running.workspace.models()).cooldowns == ()
        await check_ends(running)


async def test_when_all_fail_the_run_ends_with_the_last_error(tmp_path: Path) -> None:
    async with two(tmp_path) as (running, first, second):
        first.add([DOWN], repeat=True)
        second.add([Refuse(429, message="slow down")], repeat=True)
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert complete.error.startswith("Too many requests: ")
        assert finish_of((await running.messages())[-1]).title == "Too many requests"
        assert (len(first.requests), len(second.requests)) == (3, 3)
        await check_ends(running)


async def test_a_model_that_the_prompt_names_is_the_only_one(tmp_path: Path) -> None:
    async with two(tmp_path) as (running, first, second):
        first.add([DOWN], repeat=True)
        await running.submit("go", "r1", model="first/m")
        assert (await running.completed("r1")).outcome is Outcome.ERROR
        assert len(second.requests) == 0


async def test_a_smaller_window_is_made_room_in_before_the_next_model_is_asked(tmp_path: Path) -> None:
    """T8: the same run continues after a summary."""
    async with two(tmp_path, window=20_000) as (running, first, second):
        first.add([Say("word " * 16_000)], *[[DOWN]] * 3)
        second.add([Say("It was long.")], [Say("Here I am.")])
        await running.submit("tell me much", "r1")
        await running.completed("r1")
        await running.submit("and now", "r2")
        assert (await running.completed("r2")).text == "Here I am."
        assert len(second.requests) == 2
        await check_ends(running)


async def test_a_cancel_while_the_next_model_answers_is_a_cancel_of_the_run(tmp_path: Path) -> None:
    async with two(tmp_path) as (running, first, second):
        first.add([DOWN], repeat=True)
        gate: Gate = second.gate("answering")
        second.add([Say("some"), Pause(gate), Say("more")])
        await running.submit("go", "r1")
        await gate.reached()
        await running.workspace.cancel_run("r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.CANCELED, "some")
        gate.open()
        await check_ends(running)


async def test_a_title_comes_from_the_next_small_model(tmp_path: Path) -> None:
    models = {"large": "second/m", "small": ["first/m", "second/m"]}
    async with two(tmp_path, models=models) as (running, first, second):
        (running.workspace.directory / "longboat.json").write_text('{"titles": true}')
        first.add([DOWN], repeat=True)
        second.add([Say("A fine title")], repeat=True)
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "session" and event.payload.title == "A fine title")


async def test_entries_that_are_not_ready_are_left_out(tmp_path: Path) -> None:
    async with two(tmp_path, models={"large": ["anthropic/claude-sonnet-5-5", "second/m"]}) as (running, _, second):
        second.add([Say("Here I am.")])
        await running.submit("go", "r1")
        assert (await running.completed("r1")).text == "Here I am."
        assert (await running.workspace.models()).large_list == ("second/m",)
        assert told(running) == []
