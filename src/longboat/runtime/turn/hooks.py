"""Runs a workspace's hooks for the events of a run (A5)."""

from collections.abc import Callable
from typing import Any

from longboat.context.hooks import HookCall, HookEvent, Hooks, Verdict, ask
from longboat.errors import ModelError
from longboat.runtime.protocols import WorkspaceServices
from longboat.wire.models import Run


async def ask_hooks(services: WorkspaceServices, hooks: Hooks, event: HookEvent, run: Run, **about: Any) -> Verdict:
    """What they say. `about` are further fields of the call."""
    if not hooks.of(event):
        return Verdict()
    call = HookCall(
        event=event, session_id=run.session_id, run_id=run.run_id, directory=str(services.directory), **about
    )
    return await ask(hooks, call, environ=services.tools.environ_of(run))


async def announce(
    services: WorkspaceServices, hooks: Hooks, run: Run, prompt: str, *, first: bool, problem: Callable[[str], None]
) -> tuple[str, ...]:
    """A prompt is about to be answered: what they want the model to read besides. What began the turn is refused where
    they deny it; to one that came later they can only object. `problem` tells people of hooks that fail."""
    verdict = await ask_hooks(services, hooks, HookEvent.PROMPT_SUBMITTED, run, prompt=prompt)
    for each in verdict.problems:
        problem(each)
    if verdict.decision != "deny":
        return verdict.context
    if first:
        raise ModelError(verdict.reason, title="A hook denied the prompt", code="prompt_denied")
    return (f"A hook denied {prompt!r}: {verdict.reason}", *verdict.context)


async def tell_finished(services: WorkspaceServices, hooks: Hooks, run: Run) -> None:
    """They are only told: nothing waits for what they say."""
    about = {"prompt": run.prompt, "outcome": run.outcome, "error": run.error}
    await ask_hooks(services, hooks, HookEvent.RUN_FINISHED, run, **about)
