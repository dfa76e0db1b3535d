"""The client methods that are more than a function of `calls`: they add the client's own name, or need more than one
request. Pure. The client fills in the first parameter, `client_id`.

`documented` gives the methods that the clients build from these functions, and from `calls`, their names, parameters
and docstrings.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from longboat.client import calls, prompting
from longboat.client.call import Call
from longboat.client.following import Procedure, ask
from longboat.wire import asks, models, requests, review, workspace_state
from longboat.wire import inbox as inboxes
from longboat.wire.archive import SessionExport

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProcedure:
    """A procedure, and how long an outage may last while a client carries it out."""

    procedure: Procedure[None]
    give_up_after_s: float | None


def documented(method: F, made_of: Callable[..., Any], *, leaving_out: int) -> F:
    """Give a method the name, signature and docstring of the function it is built from, without that function's first
    parameters."""
    told = inspect.signature(made_of)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *list(told.parameters.values())[leaving_out:]]
    answer, *_ = get_args(told.return_annotation) or (inspect.Signature.empty,)
    method.__name__ = made_of.__name__
    method.__qualname__ = made_of.__name__
    method.__doc__ = made_of.__doc__
    method.__signature__ = told.replace(parameters=parameters, return_annotation=answer)  # type: ignore[attr-defined]
    return method


def run(
    client_id: str,
    prompt: str,
    *,
    session_id: str | None = None,
    workspace_id: str | None = None,
    path: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    delivery: models.Delivery | None = None,
    model: str | None = None,
    attachments: Sequence[models.Attachment] = (),
    approve: requests.Approve = requests.Approve.ASK,
    effort: requests.Effort | None = None,
    schema: dict[str, Any] | None = None,
    plan: bool = False,
    wait_for_answers: bool = False,
    sub_agents: bool = False,
    asks_ahead: bool = False,
    give_up_after_s: float | None = 60.0,
) -> EventProcedure:
    """Submit a prompt and yield the events of its run; the last one is `run_complete`.

    Without `session_id`, this creates a session. Without `workspace_id`, it uses the workspace of `path`, by default
    the working directory. If the workspace already has a run with this `run_id`, it follows that run and starts
    nothing. After a lost connection, it resumes the stream; if the server stays away for `give_up_after_s`, it raises
    ServerUnreachable. Leaving the loop early does not cancel the run: call `cancel_run`. With `sub_agents`, it also
    yields the events of the run's sub-agents, which have a `parent_session_id`; it always yields their permissions and
    questions. With `asks_ahead`, it also yields the permissions and questions of the session's other runs until this
    run starts: it may be waiting for someone to answer them.
    """
    submit = requests.Submit(
        session_id=session_id or "",
        prompt=prompt,
        run_id=run_id,
        delivery=delivery,
        model=model,
        attachments=tuple(attachments),
        approve=approve,
        effort=effort,
        schema=schema,
        plan=plan,
        wait_for_answers=wait_for_answers,
        client_id=client_id,
    )
    procedure = _run(workspace_id, path or ".", submit, sub_agents=sub_agents, asks_ahead=asks_ahead)
    return EventProcedure(procedure=procedure, give_up_after_s=give_up_after_s)


def _run(
    workspace_id: str | None,
    path: str | os.PathLike[str],
    submit: requests.Submit,
    *,
    sub_agents: bool,
    asks_ahead: bool,
) -> Procedure[None]:
    if workspace_id is None:
        workspace_id = (yield from ask(calls.join(path, submit.client_id))).id
    yield from prompting.run(workspace_id, submit, sub_agents=sub_agents, asks_ahead=asks_ahead)


def watch(
    workspace_id: str,
    run_id: str,
    *,
    sub_agents: bool = False,
    asks_ahead: bool = False,
    give_up_after_s: float | None = 60.0,
) -> EventProcedure:
    """Yield the events of a run that any client submitted, from now to its `run_complete`, which may be the only one.
    `sub_agents` and `asks_ahead` work as in `run`."""
    procedure = prompting.watch(workspace_id, run_id, sub_agents=sub_agents, asks_ahead=asks_ahead)
    return EventProcedure(procedure=procedure, give_up_after_s=give_up_after_s)


def join(
    client_id: str, path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None
) -> Call[models.Workspace]:
    """Create or join the workspace of a directory. `env` is the environment for the commands of this client's runs; the
    server keeps it in memory only. It may contain secrets: think before you send it over TCP."""
    return calls.join(path, client_id, env)


def release(client_id: str, workspace_id: str) -> Call[None]:
    """Release this client's claim on the workspace."""
    return calls.release(workspace_id, client_id)


def submit(client_id: str, workspace_id: str, request: requests.Submit) -> Call[models.Accepted]:
    """Submit a prompt. Returns as soon as the prompt is durable, without waiting for the turn."""
    if request.client_id is None:
        request = msgspec.structs.replace(request, client_id=client_id)
    return calls.submit(workspace_id, request)


def edit_run(
    workspace_id: str, run_id: str, *, prompt: str | None = None, delivery: models.Delivery | None = None
) -> Call[models.Run]:
    """Change the prompt or the delivery of a run that has not started."""
    return calls.edit_run(workspace_id, run_id, requests.EditRun(prompt=prompt, delivery=delivery))


def answer_permission(
    client_id: str,
    workspace_id: str,
    permission_id: str,
    answer: asks.PermissionAnswer,
    *,
    wide: bool = False,
    reason: str = "",
) -> Call[asks.Permission]:
    """Answer a permission. The first answer wins; later ones raise AlreadyAnswered. `wide` chooses the wider rules, if
    the permission offers them."""
    request = requests.AnswerPermission(answer=answer, wide=wide, reason=reason, client_id=client_id)
    return calls.answer_permission(workspace_id, permission_id, request)


def answer_question(client_id: str, workspace_id: str, question_id: str, *answer: str) -> Call[asks.Question]:
    """Answer a question. The first answer wins; later ones raise AlreadyAnswered."""
    request = requests.AnswerQuestion(answer=answer, client_id=client_id)
    return calls.answer_question(workspace_id, question_id, request)


def inbox(client_id: str, *, limit: int = 50, before: str | None = None) -> Call[inboxes.InboxPage]:
    """List pending permissions and questions, and the runs that have ended, in all workspaces, newest first. For the
    next page, pass `next` of the previous page as `before`."""
    return calls.inbox(client_id, limit=limit, before=before)


def mark_seen(client_id: str, *ids: str, up_to: str | None = None) -> Call[None]:
    """Mark items of the inbox as seen by this person. With `up_to`, mark that item and all older ones."""
    return calls.mark_seen(inboxes.MarkSeen(client_id=client_id, ids=ids, up_to=up_to))


def subscribe_push(client_id: str, endpoint: str, *, p256dh: str, auth: str) -> Call[None]:
    """Send notifications to a Web Push endpoint, encrypted with these keys, both base64url."""
    keys = inboxes.PushKeys(p256dh=p256dh, auth=auth)
    return calls.subscribe_push(inboxes.Subscribe(client_id=client_id, endpoint=endpoint, keys=keys))


def shell(
    client_id: str, workspace_id: str, session_id: str, command: str, *, run_id: str | None = None
) -> Call[models.Accepted]:
    """Run a shell command in the workspace as a person. This is a run like any other; the model reads its output with
    the next prompt."""
    request = requests.RunShell(command=command, run_id=run_id, client_id=client_id)
    return calls.shell(workspace_id, session_id, request)


def revert(
    client_id: str,
    workspace_id: str,
    session_id: str,
    path: str,
    *,
    digest: str,
    hunks: Sequence[int] | None = None,
) -> Call[review.Reverted]:
    """Undo what is left of a session's changes to a file, or some of its hunks, numbered from 0. Pass the `digest` that
    `changes` returned; if the change is no longer the same, this raises RevertConflict."""
    chosen = None if hunks is None else tuple(hunks)
    request = requests.Revert(path=path, digest=digest, hunks=chosen, client_id=client_id)
    return calls.revert(workspace_id, session_id, request)


def redo_revert(client_id: str, workspace_id: str, session_id: str, revert_id: str) -> Call[review.Reverted]:
    """Redo what a person undid in a file. `revert` returns the `revert_id`, and `changes` lists the reverts you can
    redo. If the text no longer fits into the file, this raises RedoConflict."""
    return calls.redo_revert(workspace_id, session_id, revert_id, requests.RedoRevert(client_id=client_id))


def kill_job(client_id: str, workspace_id: str, job_id: str) -> Call[workspace_state.Job]:
    """Stop a background command and all processes it started. Does nothing if it has ended."""
    return calls.kill_job(workspace_id, job_id, client_id)


def summarize_session(
    client_id: str, workspace_id: str, session_id: str, *, run_id: str | None = None, model: str | None = None
) -> Call[models.Accepted]:
    """Summarize the conversation; the model continues from the summary. This is a run like any other."""
    request = requests.Summarize(run_id=run_id, model=model, client_id=client_id)
    return calls.summarize_session(workspace_id, session_id, request)


def import_session(workspace_id: str, document: SessionExport) -> Call[models.Session]:
    """Create a session from an export, with new ids and with its sub-agents."""
    return calls.import_session(workspace_id, msgspec.json.encode(document))
