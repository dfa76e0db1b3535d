"""The setup of a turn: its tools, its system prompt, its hooks, and the prompt's options if the model supports them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from longboat.context.hooks import HookCall, HookEvent, HookResult, Hooks, ask
from longboat.errors import ModelError
from longboat.models.protocol import Model
from longboat.runtime.turn.answer_schema import AnswerSchema
from longboat.store.records import RunOptions
from longboat.tools.protocol import Tool
from longboat.wire.models import Run
from longboat.wire.requests import Effort

if TYPE_CHECKING:
    from longboat.runtime.protocols import WorkspaceServices


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSetup:
    system: str
    tools: Mapping[str, Tool] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    problems: tuple[str, ...] = ()
    """Problems in the project's files for the agent, to show to people."""
    surroundings: bool = True
    """Whether to tell the model the date and the state of the repository."""
    effort: Effort | None = None
    form: AnswerSchema | None = None
    """The schema that the answer must match."""
    planning: bool = False
    """Whether the turn must change nothing: it then has only tools that read, and the one that proposes a plan."""


def apply_options(setup: TurnSetup, options: RunOptions, model: Model) -> TurnSetup:
    """Apply the prompt's options to the setup. If the model lacks one, people get a notice and the run continues."""
    form = AnswerSchema(options.schema) if options.schema is not None else None
    if options.effort is not None and not model.abilities.effort:
        told = f"{model.provider}/{model.name} has no reasoning effort setting; {options.effort} is ignored."
        return replace(_add_form(setup, form), problems=(*setup.problems, told))
    return replace(_add_form(setup, form), effort=options.effort)


def _add_form(setup: TurnSetup, form: AnswerSchema | None) -> TurnSetup:
    return setup if form is None else replace(setup, system=setup.system + form.instruction, form=form)


async def ask_hooks(
    services: "WorkspaceServices", hooks: Hooks, event: HookEvent, run: Run, **about: Any
) -> HookResult:
    """The result of the hooks. `about`: further fields of the call."""
    if not hooks.of(event):
        return HookResult()
    call = HookCall(
        event=event, session_id=run.session_id, run_id=run.run_id, directory=str(services.directory), **about
    )
    return await ask(hooks, call, environ=services.tools.environ_of(run), start=services.tools.start_hook)


async def announce(
    services: "WorkspaceServices", hooks: Hooks, run: Run, prompt: str, *, first: bool, problem: Callable[[str], None]
) -> tuple[str, ...]:
    """Tell the hooks that work on a prompt starts, and return the text they add for the model. They can deny the prompt
    that started the turn; to a later one they can only object. `problem` reports hooks that fail."""
    result = await ask_hooks(services, hooks, HookEvent.PROMPT_SUBMITTED, run, prompt=prompt)
    for each in result.problems:
        problem(each)
    if result.decision != "deny":
        return result.context
    if first:
        raise ModelError(result.reason, title="A hook denied the prompt", code="prompt_denied")
    return (f"A hook denied {prompt!r}: {result.reason}", *result.context)


async def tell_finished(services: "WorkspaceServices", hooks: Hooks, run: Run) -> None:
    """Notify the hooks. Nothing waits for their output."""
    about = {"prompt": run.prompt, "outcome": run.outcome, "error": run.error}
    await ask_hooks(services, hooks, HookEvent.RUN_FINISHED, run, **about)
