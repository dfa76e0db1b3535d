"""Sub-agents: a task that a turn delegates, done in a child session and canceled with its parent (A1).

Owns the child's run from prompt to answer. Must not know which tools a sub-agent has: `WorkspaceTools` does.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import msgspec

from longboat.core.history import text_of
from longboat.errors import LongboatError
from longboat.models.protocol import ModelRole
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.session.submit import run_from_prompt
from longboat.store.records import RunOptions, RunRecord
from longboat.tools.context import ToolError
from longboat.wire.ids import new_id
from longboat.wire.models import Accepted, Message, Outcome, Role, Run, Session
from longboat.wire.requests import CreateSession, Submit

TITLE_LENGTH = 80
FOR_EVER_S = 1e9
CALL_OFF_S = 10.0
"""How long a canceled parent waits for its child: longer than ending a shell and the last writes take."""
ROLES: dict[str | None, ModelRole] = {"small": "small", "large": "large"}


async def delegate(
    services: WorkspaceServices,
    parent: RunRecord,
    call_id: str,
    prompt: str,
    agent: str | None,
    *,
    planning: bool,
    waited: Callable[[float], None],
) -> str:
    """Return a sub-agent's answer to the prompt; a ToolError says why there is none. `planning`: it must change
    nothing. Calls `waited` with how long the sub-agent waited for people."""
    try:
        model = await _model(services, parent, agent)
        title = (prompt.strip().splitlines() or ["Sub-agent"])[0][:TITLE_LENGTH]
        session = await services.host.create_session(
            CreateSession(title=title), sent_by=(parent.run.session_id, call_id)
        )
        run = await _see_through(services, _record(session, parent, prompt, model, agent, planning=planning))
        waited(run.waited_s)
    except LongboatError as error:
        raise ToolError(f"The sub-agent could not be started: {error.message}") from None
    text = _answer(await services.store.reads.messages(session.id))
    if run.outcome is not Outcome.END_TURN:
        said = f"\n\nIts last message: {text}" if text else ""
        raise ToolError(f"The sub-agent ended with {run.outcome}: {run.error or 'no answer'}{said}")
    return text or "The sub-agent returned no answer."


async def _see_through(services: WorkspaceServices, record: RunRecord) -> Run:
    """Return the child's run once it has ended. A cancel ends the child first, so that no child works for a parent that
    is over. That includes a child that is just being accepted, because an accept cannot be undone."""
    run_id = record.run.run_id
    accepting = services.tasks.spawn(services.host.accept(record), name=f"accept {run_id}", awaited=True)
    try:
        await asyncio.shield(accepting)
        return await services.host.run(run_id, wait_s=FOR_EVER_S)
    except asyncio.CancelledError:
        calling_off = services.tasks.spawn(_call_off(services, accepting, run_id), name=f"call off {run_id}")
        while not calling_off.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([calling_off])
        raise


async def _call_off(services: WorkspaceServices, accepting: "asyncio.Future[Accepted]", run_id: str) -> None:
    # A workspace that closes has ended the child itself.
    with suppress(LongboatError):
        await accepting
        await services.host.cancel_run(run_id)
        await services.host.run(run_id, wait_s=CALL_OFF_S)


async def _model(services: WorkspaceServices, parent: RunRecord, agent: str | None) -> str | None:
    """The model that the agent's file names, if any: by name or by role."""
    wanted = services.tools.agent(agent).model if agent is not None else None
    if wanted in ROLES:
        model = await services.model(None, ROLES[wanted])
        return f"{model.provider}/{model.name}"
    return wanted or parent.model


def _record(
    session: Session, parent: RunRecord, prompt: str, model: str | None, agent: str | None, *, planning: bool
) -> RunRecord:
    request = Submit(
        session_id=session.id,
        prompt=prompt,
        run_id=new_id(),
        model=model,
        approve=parent.approve,
        client_id=parent.run.client_id,
    )
    record = run_from_prompt(request)
    run = msgspec.structs.replace(record.run, parent_run_id=parent.run.run_id, parent_session_id=parent.run.session_id)
    return replace(record, run=run, options=RunOptions(agent=agent, effort=parent.options.effort, plan=planning))


def _answer(messages: list[Message]) -> str:
    answers = [message for message in messages if message.role is Role.ASSISTANT]
    return text_of(answers[-1]) if answers else ""
