"""What both clients can be asked where `calls` alone does not say it: because the client's own name goes along, or
because it is more than one request. Pure. The first parameter, `client_id`, is the client's to fill in.

`documented` gives the methods that the clients make of these, and of `calls`, their names, parameters and words.
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from longboat.client import calls, prompting
from longboat.client.call import Call
from longboat.client.following import Script, ask
from longboat.wire import asks, models, requests, review, workshop
from longboat.wire import inbox as inboxes
from longboat.wire.archive import SessionExport

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A script, and how long an outage may last while it is played."""

    script: Script[None]
    give_up_after_s: float | None


def documented(method: F, made_of: Callable[..., Any], *, leaving_out: int) -> F:
    """The method as its readers should see it: like the function it is made of, without its first parameters."""
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
    give_up_after_s: float | None = 60.0,
) -> Play:
    """Submit a prompt and yield the events of its run; the last one is its `run_complete`.

    Without `session_id` a session is created; without `workspace_id` the workspace is that of `path`, by default
    the working directory. With a `run_id` that is known there, it is that run in its session, and nothing new. A
    lost stream is taken up again; a server gone for `give_up_after_s` raises ServerUnreachable. Leaving early does
    not cancel the run: `cancel_run` does. `sub_agents`: also the events of those that the run sends, which have a
    `parent_session_id`; what they ask is yielded in any case.
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
    script = _run(workspace_id, path or ".", submit, sub_agents=sub_agents)
    return Play(script=script, give_up_after_s=give_up_after_s)


def _run(
    workspace_id: str | None, path: str | os.PathLike[str], submit: requests.Submit, *, sub_agents: bool
) -> Script[None]:
    if workspace_id is None:
        workspace_id = (yield from ask(calls.join(path, submit.client_id))).id
    yield from prompting.run(workspace_id, submit, sub_agents=sub_agents)


def watch(workspace_id: str, run_id: str, *, sub_agents: bool = False, give_up_after_s: float | None = 60.0) -> Play:
    """The events of a run that somebody submitted, from now to its `run_complete`, which may be the only one.
    `sub_agents`: also the events of those that it sends, as with `run`."""
    return Play(script=prompting.watch(workspace_id, run_id, sub_agents=sub_agents), give_up_after_s=give_up_after_s)


def join(
    client_id: str, path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None
) -> Call[models.Workspace]:
    """Create the workspace of a directory, or join it. `env`: the environment for the commands of this client's runs,
    which the server keeps in memory alone. It may hold secrets: think before you send it over TCP."""
    return calls.join(path, client_id, env)


def release(client_id: str, workspace_id: str) -> Call[None]:
    """Give up this client's claim on the workspace."""
    return calls.release(workspace_id, client_id)


def submit(client_id: str, workspace_id: str, request: requests.Submit) -> Call[models.Accepted]:
    """Hand in a prompt and return as soon as it is durable."""
    if request.client_id is None:
        request = msgspec.structs.replace(request, client_id=client_id)
    return calls.submit(workspace_id, request)


def edit_run(
    workspace_id: str, run_id: str, *, prompt: str | None = None, delivery: models.Delivery | None = None
) -> Call[models.Run]:
    """Change a run that has not started."""
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
    """Answer a permission; AlreadyAnswered if somebody was faster. `wide`: with the wider rules, if offered."""
    request = requests.AnswerPermission(answer=answer, wide=wide, reason=reason, client_id=client_id)
    return calls.answer_permission(workspace_id, permission_id, request)


def answer_question(client_id: str, workspace_id: str, question_id: str, *answer: str) -> Call[asks.Question]:
    """Answer a question; AlreadyAnswered if somebody was faster."""
    request = requests.AnswerQuestion(answer=answer, client_id=client_id)
    return calls.answer_question(workspace_id, question_id, request)


def inbox(client_id: str, *, limit: int = 50, before: str | None = None) -> Call[inboxes.InboxPage]:
    """What waits for an answer and which runs have ended, in all workspaces, newest first; `before` is the `next` of
    the former page."""
    return calls.inbox(client_id, limit=limit, before=before)


def mark_seen(client_id: str, *ids: str, up_to: str | None = None) -> Call[None]:
    """This person has seen these items of the inbox; with `up_to`, that one and all older ones."""
    return calls.mark_seen(inboxes.MarkSeen(client_id=client_id, ids=ids, up_to=up_to))


def subscribe_push(client_id: str, endpoint: str, *, p256dh: str, auth: str) -> Call[None]:
    """Send notifications to an endpoint of Web Push, encrypted with these keys, both base64url."""
    keys = inboxes.PushKeys(p256dh=p256dh, auth=auth)
    return calls.subscribe_push(inboxes.Subscribe(client_id=client_id, endpoint=endpoint, keys=keys))


def shell(
    client_id: str, workspace_id: str, session_id: str, command: str, *, run_id: str | None = None
) -> Call[models.Accepted]:
    """Run a command in the workspace as a person: a run like any other, which the model reads of afterwards."""
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
    `changes` gave you; if the change is no longer the same, this raises RevertConflict."""
    chosen = None if hunks is None else tuple(hunks)
    request = requests.Revert(path=path, digest=digest, hunks=chosen, client_id=client_id)
    return calls.revert(workspace_id, session_id, request)


def redo_revert(client_id: str, workspace_id: str, session_id: str, revert_id: str) -> Call[review.Reverted]:
    """Redo what was undone in a file. `revert` returns the `revert_id`, and `changes` lists those that can be redone.
    If it no longer fits into the file, this raises RedoConflict."""
    return calls.redo_revert(workspace_id, session_id, revert_id, requests.RedoRevert(client_id=client_id))


def cancel_session(client_id: str, workspace_id: str, session_id: str) -> Call[models.Canceled]:
    """Cancel everything accepted so far in the session."""
    return calls.cancel_session(workspace_id, session_id, client_id)


def clear_queue(client_id: str, workspace_id: str, session_id: str) -> Call[models.Canceled]:
    """Cancel the queued runs; the active run continues."""
    return calls.clear_queue(workspace_id, session_id, client_id)


def kill_job(client_id: str, workspace_id: str, job_id: str) -> Call[workshop.Job]:
    """End a command in the background and all that it started; one that has ended stays as it is."""
    return calls.kill_job(workspace_id, job_id, client_id)


def summarize_session(
    client_id: str, workspace_id: str, session_id: str, *, run_id: str | None = None, model: str | None = None
) -> Call[models.Accepted]:
    """Summarize the session, as a run: the model continues from the summary."""
    request = requests.Summarize(run_id=run_id, model=model, client_id=client_id)
    return calls.summarize_session(workspace_id, session_id, request)


def import_session(workspace_id: str, document: SessionExport) -> Call[models.Session]:
    """A new session from an export."""
    return calls.import_session(workspace_id, msgspec.json.encode(document))
