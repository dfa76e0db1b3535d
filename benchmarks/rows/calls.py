"""A turn with 20 tool calls: what each adds over the tool's own time. In one process, with a scripted model."""

import asyncio
import statistics
from pathlib import Path

import uvloop

from benchmarks.harness import Row, scratch
from longboat.config.settings import Settings
from longboat.models.protocol import Model
from longboat.runtime.app import open_app
from longboat.runtime.workspace.workspace import Workspace
from longboat.testing import CallTool, Say, ScriptedModel, ScriptedTool
from longboat.wire.requests import CreateSession, Submit

ROUNDS, CALLS, BOUND_MS = 30, 20, 2.0


class _Source:
    def __init__(self, model: Model) -> None:
        self._model = model

    def resolve(self, name: str | None, role: str) -> Model:
        return self._model


def measure() -> list[Row]:
    with scratch() as path, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        per_call = runner.run(_measured(path))
    median = statistics.median(per_call)
    return [
        Row(
            work=f"one tool call of {CALLS} in a turn, over the tool's own time",
            floor="–",
            longboat=f"{median:.2f} ms",
            score="–",
            spread=f"{min(per_call):.2f}–{max(per_call):.2f}",
            bound=f"≤ {BOUND_MS:g} ms",
            passed=median <= BOUND_MS,
        )
    ]


async def _measured(path: Path) -> list[float]:
    """Milliseconds that each call adds, a figure a round: a turn with many calls less one with a single call."""
    steps = [step for _ in range(ROUNDS + 1) for count in (1, CALLS) for step in (_calls(count), [Say("done")])]
    settings = Settings(data_dir=path / "data", runtime_dir=path / "run", socket=None, token="x")
    project = path / "project"
    project.mkdir()
    (project / "longboat.json").write_text('{"titles": false}')
    source = _Source(ScriptedModel(steps, context_window=1_000_000))
    async with open_app(settings, models=source, tools=[ScriptedTool("look")]) as app:
        workspace, _ = await app.join(str(project), None)
        figures = []
        for _ in range(ROUNDS + 1):
            single, many = await _run(workspace), await _run(workspace)
            figures.append((many - single) * 1000 / (CALLS - 1))
    return figures[1:]


def _calls(count: int) -> list[CallTool]:
    return [CallTool("look", f'{{"at": {number}}}') for number in range(count)]


async def _run(workspace: Workspace) -> float:
    session = await workspace.create_session(CreateSession())
    clock = asyncio.get_running_loop().time
    start = clock()
    accepted = await workspace.submit(Submit(session_id=session.id, prompt="go"))
    await workspace.run(accepted.run_id, wait_s=60)
    return clock() - start
