"""Cancel at every instant of a turn: one terminal event, a whole transcript, and the next prompt works."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of
from running_app import RunningApp, launch

from longboat.config.settings import Config
from longboat.errors import ModelError
from longboat.models.failover import Lineup
from longboat.models.protocol import Model
from longboat.runtime.turn.outcome import LOST
from longboat.testing import CallTool, Fail, Gate, Pause, Say, ScriptedModel, ScriptedTool, Step, Think, Use
from longboat.wire.models import (
    AgentEventType,
    Canceled,
    FinishPart,
    FinishReason,
    Outcome,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.tools import UNKNOWN

CANCELED = FinishPart(reason=FinishReason.CANCELED)


@dataclass
class Moment:
    """A way to bring a turn to an instant and hold it there until the cancel is answered."""

    steps: list[Step] = field(default_factory=list)
    reach: Callable[[RunningApp, Gate], Awaitable[None]] | None = None
    tool: bool = False
    retry_s: int = 0
    window: int = 128_000
    kept: Sequence[object] = ()
    """The last answer's parts but for its finish."""


async def at_gate(running: RunningApp, gate: Gate) -> None:
    await gate.reached()


async def retrying(running: RunningApp, gate: Gate) -> None:
    await running.watcher.until(lambda e: e.type == "agent_event" and e.payload.type is AgentEventType.RETRYING)


CALL = CallTool("look", {"at": "x"}, "c1")

MOMENTS: dict[str, Callable[[Gate], Moment]] = {
    "before the first delta": lambda gate: Moment([[Pause(gate)]]),
    "in the middle of text": lambda gate: Moment([[Say("half a"), Pause(gate)]], kept=[TextPart(text="half a")]),
    "in the middle of reasoning": lambda gate: Moment([[Think("hm"), Pause(gate)]], kept=[ReasoningPart(text="hm")]),
    "in the middle of a tool's arguments": lambda gate: Moment(
        [[Say("so"), CallTool("look", '{"at": "x', "c1"), Pause(gate)]],
        kept=[TextPart(text="so"), ToolCallPart(id="c1", name="look", input="{}", finished=True, traits=UNKNOWN)],
    ),
    "between two calls": lambda gate: Moment(
        [[CALL, Pause(gate), CALL]],
        kept=[ToolCallPart(id="c1", name="look", input='{"at":"x"}', finished=True, traits=UNKNOWN)],
    ),
    "while a tool runs": lambda gate: Moment(
        [[CALL, CallTool("look", {}, "c2")]],
        tool=True,
        kept=[
            ToolCallPart(id="c1", name="look", input='{"at":"x"}', finished=True, traits=UNKNOWN),
            ToolCallPart(id="c2", name="look", input="{}", finished=True, traits=UNKNOWN),
        ],
    ),
    "in the second step": lambda gate: Moment([[CALL], [Say("and"), Pause(gate)]], kept=[TextPart(text="and")]),
    "in the wait before a retry": lambda gate: Moment(
        [[Say("lost"), Fail(ModelError("try later", retryable=True))]], reach=retrying, retry_s=600
    ),
    "while summarizing": lambda gate: Moment(
        [[CALL, Use(input_tokens=900)], [Say("The sum"), Pause(gate)]],
        window=1000,
        # half a summary is no answer
        kept=[ToolCallPart(id="c1", name="look", input='{"at":"x"}', finished=True, traits=UNKNOWN)],
    ),
}


@pytest.mark.parametrize("by_run", [False, True], ids=["session", "run"])
@pytest.mark.parametrize("name", MOMENTS)
async def test_a_cancel_at_any_instant_ends_the_run_once_and_leaves_a_whole_transcript(
    tmp_path: Path, name: str, by_run: bool
) -> None:
    """T2, T3, E1, E4; crush #1206: the session goes on with a request that every provider accepts."""
    gate = Gate()
    moment = MOMENTS[name](gate)
    tool = ScriptedTool("look", gate=gate if moment.tool else None)
    model = ScriptedModel([*moment.steps, [Say("next")]], context_window=moment.window)
    config = f'{{"titles": false, "retry": {{"base_s": {moment.retry_s}, "max_s": {moment.retry_s}}}}}'
    async with launch(tmp_path, model, tools=[tool], config=config) as running:
        await running.submit("go", "r1")
        await (moment.reach or at_gate)(running, gate)
        if by_run:
            await running.workspace.cancel_run("r1")
        else:
            assert await running.workspace.cancel_session(running.session_id) == Canceled(canceled=("r1",))
        complete = await running.completed("r1")
        assert (complete.outcome, complete.cancelled, complete.error) == (Outcome.CANCELED, True, "")
        messages = await running.messages()
        answer = [message for message in messages if message.role is Role.ASSISTANT][-1]
        assert finish_of(answer) == CANCELED
        assert list(answer.parts) == [*moment.kept, CANCELED]
        assert complete.message_id == answer.id
        assert [message.parts for message in messages if message.role is Role.USER] == [(TextPart(text="go"),)]
        assert tool.canceled == moment.tool
        results = [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]
        assert {part.content for part in results if part.is_error} <= {LOST[Outcome.CANCELED]}
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


class HeldModels:
    """Hands out its model only when the gate opens."""

    def __init__(self, model: Model, gate: Gate, config: Config) -> None:
        self._model, self._gate, self._config = model, gate, config

    def config(self, directory: Path) -> Config:
        return self._config

    async def lineup(self, directory: Path, name: str | None, role: str) -> Lineup:
        await self._gate.arrive()
        return Lineup((self._model,))


async def test_a_cancel_before_the_model_is_found(tmp_path: Path) -> None:
    """T2: after the start, before the assistant message exists: the user message once and an answer canceled."""
    gate = Gate()
    model = ScriptedModel([[Say("next")]])
    async with launch(tmp_path, model) as running:
        running.workspace.services.models = HeldModels(model, gate, Config(titles=False))  # type: ignore[assignment]
        await running.submit("go", "r1")
        await gate.reached()
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")
        user, answer = await running.messages()
        assert (user.parts, answer.parts) == ((TextPart(text="go"),), (CANCELED,))
        gate.open()
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)


async def test_a_cancel_between_a_tool_and_the_next_step(tmp_path: Path) -> None:
    """T3: the tool's result is kept, the next request is never made."""
    gate = Gate()
    model = ScriptedModel([[CALL], [Say("next")]])
    async with launch(tmp_path, model, tools=[ScriptedTool("look", "seen", gate=gate)]) as running:
        await running.submit("go", "r1")
        await gate.reached()
        shut = await running.held_actor()
        gate.open()
        await running.posted(1)  # the turn asks what to fold
        cancel = asyncio.create_task(running.workspace.cancel_session(running.session_id))
        await running.posted(2)
        shut.open()
        await cancel
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        _, answer, results = await running.messages()
        assert finish_of(answer) == CANCELED
        (result,) = results.parts
        assert isinstance(result, ToolResultPart)
        assert (result.tool_call_id, result.content, result.is_error) == ("c1", "seen", False)
        assert len(model.requests) == 1
        await running.submit("next", "r2")
        assert (await running.completed("r2")).text == "next"
        check_requests(model.requests)
        await check_ends(running)
