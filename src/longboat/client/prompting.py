"""Decides which session gets a prompt: the named one, that of the run with the same run_id, or a new one, which it
deletes if the server refuses the prompt. A procedure that asks for I/O and never does any."""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from longboat.client import calls
from longboat.client.call import Call
from longboat.client.following import Asking, Procedure, ask, follow
from longboat.errors import LongboatError, RunIdTaken, RunNotFound, ServerUnreachable
from longboat.wire.ids import new_id
from longboat.wire.models import Accepted
from longboat.wire.requests import Submit

S = TypeVar("S")
T = TypeVar("T")


def run(workspace_id: str, submit: Submit, *, sub_agents: bool = False, asks_ahead: bool = False) -> Procedure[None]:
    """Submit the prompt and yield the events of its run, and what `sub_agents` and `asks_ahead` add (see `follow`)."""

    def hand_in(submit: Submit) -> Procedure[None]:
        session_id, run_id = submit.session_id, submit.run_id or ""
        return follow(workspace_id, session_id, run_id, submit, sub_agents=sub_agents, asks_ahead=asks_ahead)

    return _placed(workspace_id, submit, hand_in)


def detach(workspace_id: str, submit: Submit) -> Asking[Accepted]:
    """Submit the prompt without following its run."""
    return _placed(workspace_id, submit, lambda submit: ask(calls.submit(workspace_id, submit)))


def watch(workspace_id: str, run_id: str, *, sub_agents: bool = False, asks_ahead: bool = False) -> Procedure[None]:
    """Yield the events of a run that any client submitted, and what `sub_agents` and `asks_ahead` add."""
    session_id = (yield from ask(calls.get_run(workspace_id, run_id))).session_id
    yield from follow(workspace_id, session_id, run_id, sub_agents=sub_agents, asks_ahead=asks_ahead)


def _placed(
    workspace_id: str, submit: Submit, hand_in: Callable[[Submit], Generator[S, Any, T]]
) -> Generator[Call[Any] | S, Any, T]:
    """Submit the prompt to its session. Two callers that use the same run_id at the same time end in the same
    session."""
    named, submit = submit.run_id, msgspec.structs.replace(submit, run_id=submit.run_id or new_id())
    if submit.session_id:
        return (yield from hand_in(submit))
    known = (yield from _session_of(workspace_id, named)) if named is not None else None
    if known is not None:
        return (yield from hand_in(_into(known, submit)))
    made = (yield from ask(calls.create_session(workspace_id))).id
    try:
        return (yield from hand_in(_into(made, submit)))
    except ServerUnreachable:
        raise  # the server may have accepted it
    except LongboatError as refusal:
        yield from _take_back(workspace_id, made)
        if named is None or not isinstance(refusal, RunIdTaken):
            raise
        known = yield from _session_of(workspace_id, named)
        if known is None:
            raise
    # Another client was faster. The server checks whether it is the same prompt.
    return (yield from hand_in(_into(known, submit)))


def _into(session_id: str, submit: Submit) -> Submit:
    return msgspec.structs.replace(submit, session_id=session_id)


def _session_of(workspace_id: str, run_id: str) -> Asking[str | None]:
    """Return the session of a run, or None if the run does not exist."""
    try:
        return (yield from ask(calls.get_run(workspace_id, run_id))).session_id
    except RunNotFound:
        return None


def _take_back(workspace_id: str, session_id: str) -> Asking[None]:
    """Delete the session created for a refused prompt, unless it has a run."""
    with suppress(LongboatError):
        if not (yield from ask(calls.runs(workspace_id, session_id=session_id, limit=1))).items:
            yield from ask(calls.delete_session(workspace_id, session_id))
