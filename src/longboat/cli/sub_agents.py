"""Shows a run's sub-agents at a terminal: a short line for each finished call, and how each sub-agent ended.

Takes typed events of sub-agents only. Must not know where lines go: a callback writes them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from longboat.cli.console import one_line
from longboat.cli.runs import OUTCOMES
from longboat.client.subject import subject_of
from longboat.wire.amounts import worked_s
from longboat.wire.events import Event
from longboat.wire.models import Message, Outcome, Run, RunComplete, ToolCallPart, ToolResultPart

Write = Callable[[str, bool], None]
"""Takes a line, and whether it reports a failure."""


@dataclass(slots=True, kw_only=True)
class _SubAgent:
    task: str = ""
    seconds: float | None = None
    """The duration, once it has ended."""
    calls: dict[str, str] = field(default_factory=dict)
    """A description of each call, by id."""
    over: set[str] = field(default_factory=set)
    """Ids of the finished calls."""


class SubAgents:
    def __init__(self, write: Write) -> None:
        self._write = write
        self._known: dict[str, _SubAgent] = {}
        """The running sub-agents, by run id."""
        self._last = ""
        """The run id of the last line written."""

    def show(self, event: Event) -> None:
        match event.payload:
            case Run() as run:
                agent = self._agent(run.run_id)
                agent.task, agent.seconds = one_line(run.prompt), worked_s(run)
            case Message() as message:
                for line, failed in self._news(message):
                    self._tell(message.run_id, line, failed=failed)
            case RunComplete() as complete:
                self._end(complete)

    def _agent(self, run_id: str) -> _SubAgent:
        return self._known.setdefault(run_id, _SubAgent())

    def _news(self, message: Message) -> Iterator[tuple[str, bool]]:
        agent = self._agent(message.run_id)
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.finished:
                agent.calls[part.id] = one_line(f"{part.name} {subject_of(part.input, part.traits).text}")
            elif isinstance(part, ToolResultPart) and part.finished and part.tool_call_id not in agent.over:
                agent.over.add(part.tool_call_id)
                about = agent.calls.get(part.tool_call_id) or one_line(part.name) or "tool call"
                yield (f"{about}: failed" if part.is_error else about), part.is_error

    def _end(self, complete: RunComplete) -> None:
        agent = self._agent(complete.run_id)
        calls = "1 call" if len(agent.over) == 1 else f"{len(agent.over)} calls"
        took = f", {agent.seconds:.0f} s" if agent.seconds is not None else ""
        said = one_line(complete.error or complete.text)
        failed = complete.outcome in (Outcome.ERROR, Outcome.INTERRUPTED)
        self._tell(
            complete.run_id, f"{OUTCOMES[complete.outcome]} ({calls}{took}){f': {said}' if said else ''}", failed=failed
        )
        del self._known[complete.run_id]

    def _tell(self, run_id: str, line: str, *, failed: bool) -> None:
        """Write a line. If several sub-agents are running, the task of this one comes first."""
        if self._last != run_id and (self._last or len(self._known) > 1):
            self._write(f"  ↳ {self._agent(run_id).task}", False)
        self._last = run_id
        self._write(f"    {line}", failed)
