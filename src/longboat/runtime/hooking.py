"""Asking a workspace's hooks about what happens to a run (A5)."""

from typing import Any

from longboat.context.hooks import HookCall, HookEvent, Hooks, Verdict, ask
from longboat.runtime.home import Home
from longboat.wire.models import Run


async def ask_hooks(home: Home, hooks: Hooks, event: HookEvent, run: Run, **about: Any) -> Verdict:
    """What they say. `about` are further fields of the call."""
    if not hooks.of(event):
        return Verdict()
    call = HookCall(event=event, session_id=run.session_id, run_id=run.run_id, directory=str(home.directory), **about)
    return await ask(hooks, call, environ=home.bench.environ_of(run))
