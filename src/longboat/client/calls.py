"""Every route as a `Call`. Pure; whoever has a connection sends it.

Must not know httpx, sockets or event loops: the async client, the sync client and the command line share this.
"""

import os
from collections.abc import Mapping
from types import NoneType
from urllib.parse import quote

import msgspec

from longboat.client.call import Call
from longboat.wire import archive, asks, figures, listings, models, requests, review, workshop
from longboat.wire import inbox as inboxes
from longboat.wire import search as search_shapes
from longboat.wire.ids import new_id
from longboat.wire.model_requests import SentRequestBody, SentRequests
from longboat.wire.providers import Provider, ProviderCheck, ProviderPage

_encode = msgspec.json.Encoder().encode

LONG_S, SLOW = 300.0, 100_000
"""For answers of many megabytes: the slowest transfer to expect, in bytes per second."""


def _path(*segments: str) -> str:
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)


def _in(workspace_id: str, *segments: str) -> str:
    return _path("workspaces", workspace_id, *segments)


def _page(limit: int, after: str | None, **filters: str | None) -> dict[str, str]:
    params = {"limit": str(limit), "after": after} | filters
    return {name: value for name, value in params.items() if value is not None}


def _answering(answers: bool) -> dict[str, str]:
    return {"answers": "true"} if answers else {}


def _named(client_id: str | None) -> dict[str, str]:
    return {} if client_id is None else {"client_id": client_id}


def health() -> Call[models.Health]:
    return Call(method="GET", path=_path("health"), answer=models.Health, timeout_s=5)


def version() -> Call[models.Version]:
    return Call(method="GET", path=_path("version"), answer=models.Version, timeout_s=5)


def shutdown(*, if_idle: bool = False) -> Call[None]:
    """Stop the server; with `if_idle`, only if no run is unfinished (ServerBusy otherwise)."""
    body = _encode(requests.Control(command="shutdown", if_idle=if_idle))
    return Call(method="POST", path=_path("control"), answer=NoneType, body=body)


def open_web() -> Call[models.WebDoor]:
    """Let the server listen on TCP for a browser on its machine, if it does not yet."""
    return Call(method="POST", path=_path("web"), answer=models.WebDoor)


def providers() -> Call[ProviderPage]:
    """The providers of models: whether each is connected, and what it needs."""
    return Call(method="GET", path=_path("providers"), answer=ProviderPage)


def check_provider(provider: str, *, api_key: str | None = None, base_url: str | None = None) -> Call[ProviderCheck]:
    """Try a key or an address, by default those that the server has. Stores nothing."""
    body = _encode(requests.CheckProvider(api_key=api_key, base_url=base_url))
    path = _path("providers", provider, "check")
    return Call(method="POST", path=path, answer=ProviderCheck, body=body, timeout_s=60)


def connect_provider(
    provider: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    model: str | None = None,
    context_window: int | None = None,
) -> Call[Provider]:
    """Store a key and an address, and make a model the default. `model`: its name at the provider."""
    request = requests.ConnectProvider(api_key=api_key, base_url=base_url, model=model, context_window=context_window)
    path = _path("providers", provider)
    return Call(method="PUT", path=path, answer=Provider, body=_encode(request), timeout_s=60)


def forget_provider(provider: str) -> Call[Provider]:
    """Forget the stored key."""
    return Call(method="DELETE", path=_path("providers", provider), answer=Provider, timeout_s=60)


def workspaces() -> Call[models.WorkspacePage]:
    return Call(method="GET", path=_path("workspaces"), answer=models.WorkspacePage)


def join(
    path: str | os.PathLike[str], client_id: str | None, env: Mapping[str, str] | None = None
) -> Call[models.Workspace]:
    """The server resolves links; only we know what a relative path is relative to."""
    environ = None if env is None else dict(env)
    body = _encode(requests.CreateWorkspace(path=os.path.abspath(path), client_id=client_id, env=environ))
    return Call(method="POST", path=_path("workspaces"), answer=models.Workspace, body=body)


def workspace(workspace_id: str) -> Call[models.Workspace]:
    return Call(method="GET", path=_in(workspace_id), answer=models.Workspace)


def release(workspace_id: str, client_id: str) -> Call[None]:
    return Call(method="DELETE", path=_in(workspace_id), answer=NoneType, params={"client_id": client_id})


def drop_client(client_id: str) -> Call[None]:
    """Drop every claim of a client, this one's or another's."""
    return Call(method="DELETE", path=_path("clients", client_id), answer=NoneType)


def agent(workspace_id: str, *, model: str | None = None) -> Call[models.AgentInfo]:
    """Who would answer a prompt, or one that names a model, and whether that could be."""
    params = {} if model is None else {"model": model}
    return Call(method="GET", path=_in(workspace_id, "agent"), answer=models.AgentInfo, params=params)


def create_session(workspace_id: str, title: str = "", session_id: str | None = None) -> Call[models.Session]:
    """Under an id of your own, or one that is made here: asked for again, it is the same session."""
    body = _encode(requests.CreateSession(title=title, session_id=session_id or new_id()))
    return Call(method="POST", path=_in(workspace_id, "sessions"), answer=models.Session, body=body)


def offered_models(workspace_id: str) -> Call[listings.ModelPage]:
    """The models that a prompt can name."""
    return Call(method="GET", path=_in(workspace_id, "models"), answer=listings.ModelPage)


def sessions(
    workspace_id: str,
    *,
    limit: int = 100,
    after: str | None = None,
    search: str = "",
    top: bool = False,
    archived: listings.Archived = listings.Archived.LEFT_OUT,
    order: listings.SessionOrder = listings.SessionOrder.PINNED,
) -> Call[models.SessionPage]:
    """Pinned ones first, then the newest; `after` is the `next` of the former page. `search`: words of the title.
    `top`: without the sessions of sub-agents."""
    which = {"archived": archived.value, "order": order.value}
    params = _page(limit, after, q=search or None, top="true" if top else None, **which)
    return Call(method="GET", path=_in(workspace_id, "sessions"), answer=models.SessionPage, params=params)


def session(workspace_id: str, session_id: str) -> Call[models.Session]:
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id), answer=models.Session)


def rename_session(workspace_id: str, session_id: str, title: str) -> Call[models.Session]:
    body = _encode(requests.UpdateSession(title=title))
    return Call(method="PATCH", path=_in(workspace_id, "sessions", session_id), answer=models.Session, body=body)


def mark_session(
    workspace_id: str, session_id: str, *, pinned: bool | None = None, archived: bool | None = None
) -> Call[models.Session]:
    """Pin or archive it, or take that back; None leaves it as it is."""
    body = _encode(requests.UpdateSession(pinned=pinned, archived=archived))
    return Call(method="PATCH", path=_in(workspace_id, "sessions", session_id), answer=models.Session, body=body)


def search_sessions(
    words: str, *, workspace_id: str | None = None, limit: int = 50, before: str | None = None
) -> Call[search_shapes.SearchPage]:
    """Messages and titles with these words, in one workspace or in all; `before` is the `next` of the former page."""
    params = _page(limit, None, q=words, workspace_id=workspace_id, before=before)
    return Call(method="GET", path=_path("search"), answer=search_shapes.SearchPage, params=params)


def delete_session(workspace_id: str, session_id: str) -> Call[None]:
    """Cancel its runs, then delete it."""
    return Call(method="DELETE", path=_in(workspace_id, "sessions", session_id), answer=NoneType, repeatable=False)


def messages(
    workspace_id: str, session_id: str, *, limit: int = 100, after: str | None = None, before: str | None = None
) -> Call[models.MessagePage]:
    """The transcript, oldest first. `before`: a page of its end (empty), or the one before a page (its `next`)."""
    path = _in(workspace_id, "sessions", session_id, "messages")
    return Call(method="GET", path=path, answer=models.MessagePage, params=_page(limit, after, before=before))


def todos(workspace_id: str, session_id: str) -> Call[workshop.Todos]:
    """The plan of a session."""
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id, "todos"), answer=workshop.Todos)


def shell(workspace_id: str, session_id: str, request: requests.RunShell) -> Call[models.Accepted]:
    """Repeatable only with a run_id, as a prompt is."""
    path = _in(workspace_id, "sessions", session_id, "shell")
    repeatable = request.run_id is not None
    return Call(method="POST", path=path, answer=models.Accepted, body=_encode(request), repeatable=repeatable)


def submit(workspace_id: str, request: requests.Submit) -> Call[models.Accepted]:
    """Repeatable only with a run_id: the server takes the same run_id once."""
    return Call(
        method="POST",
        path=_in(workspace_id, "agent"),
        answer=models.Accepted,
        body=_encode(request),
        repeatable=request.run_id is not None,
    )


def runs(
    workspace_id: str,
    *,
    state: models.RunState | None = None,
    session_id: str | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Call[models.RunPage]:
    """The ledger, newest first."""
    params = _page(limit, after, state=state, session_id=session_id)
    return Call(method="GET", path=_in(workspace_id, "runs"), answer=models.RunPage, params=params)


def get_run(workspace_id: str, run_id: str, *, wait_s: float = 0) -> Call[models.Run]:
    """One run; with `wait_s`, answered when it is finished or that time has passed."""
    params = {"wait": f"{wait_s:g}"} if wait_s else {}
    path = _in(workspace_id, "runs", run_id)
    return Call(method="GET", path=path, answer=models.Run, params=params, timeout_s=30 + wait_s)


def model_requests(workspace_id: str, run_id: str) -> Call[SentRequests]:
    """What a run sent to models: every request and every retry, with its size and tokens by part."""
    path = _in(workspace_id, "runs", run_id, "requests")
    return Call(method="GET", path=path, answer=SentRequests)


def model_request(workspace_id: str, run_id: str, number: int) -> Call[SentRequestBody]:
    """One of these requests with its body, without attachments."""
    path = _in(workspace_id, "runs", run_id, "requests", str(number))
    return Call(method="GET", path=path, answer=SentRequestBody)


def cancel_run(workspace_id: str, run_id: str, client_id: str | None = None) -> Call[models.Run]:
    path = _in(workspace_id, "runs", run_id, "cancel")
    return Call(method="POST", path=path, answer=models.Run, params=_named(client_id))


def edit_run(workspace_id: str, run_id: str, request: requests.EditRun) -> Call[models.Run]:
    return Call(method="PATCH", path=_in(workspace_id, "runs", run_id), answer=models.Run, body=_encode(request))


def cancel_session(workspace_id: str, session_id: str, client_id: str | None = None) -> Call[models.Canceled]:
    """Cancel everything accepted so far in the session."""
    # Not repeatable: a second one would also catch prompts accepted in between.
    path = _in(workspace_id, "agent", "sessions", session_id, "cancel")
    return Call(method="POST", path=path, answer=models.Canceled, params=_named(client_id), repeatable=False)


def clear_queue(workspace_id: str, session_id: str, client_id: str | None = None) -> Call[models.Canceled]:
    """Cancel the queued runs; the active run continues."""
    path = _in(workspace_id, "agent", "sessions", session_id, "prompts", "clear")
    return Call(method="POST", path=path, answer=models.Canceled, params=_named(client_id), repeatable=False)


def queued(workspace_id: str, session_id: str) -> Call[models.RunPage]:
    path = _in(workspace_id, "agent", "sessions", session_id, "prompts", "queued")
    return Call(method="GET", path=path, answer=models.RunPage)


def session_status(workspace_id: str, session_id: str) -> Call[models.SessionStatus]:
    path = _in(workspace_id, "agent", "sessions", session_id)
    return Call(method="GET", path=path, answer=models.SessionStatus)


def permissions(workspace_id: str) -> Call[asks.PermissionPage]:
    """What waits for somebody's word, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "permissions"), answer=asks.PermissionPage)


def answer_permission(
    workspace_id: str, permission_id: str, request: requests.AnswerPermission
) -> Call[asks.Permission]:
    """Not repeatable: a second answer gets 409 with who gave the first, even if that was us."""
    path = _in(workspace_id, "permissions", permission_id)
    return Call(method="POST", path=path, answer=asks.Permission, body=_encode(request), repeatable=False)


def questions(workspace_id: str) -> Call[asks.QuestionPage]:
    """What waits for an answer, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "questions"), answer=asks.QuestionPage)


def answer_question(workspace_id: str, question_id: str, request: requests.AnswerQuestion) -> Call[asks.Question]:
    path = _in(workspace_id, "questions", question_id)
    return Call(method="POST", path=path, answer=asks.Question, body=_encode(request), repeatable=False)


def inbox(client_id: str, *, limit: int = 50, before: str | None = None) -> Call[inboxes.InboxPage]:
    """What waits and what has ended in all workspaces, newest first; `before` is the `next` of the former page."""
    params = _named(client_id) | {"limit": str(limit)} | ({} if before is None else {"before": before})
    return Call(method="GET", path=_path("inbox"), answer=inboxes.InboxPage, params=params)


def mark_seen(request: inboxes.MarkSeen) -> Call[None]:
    return Call(method="POST", path=_path("inbox", "seen"), answer=NoneType, body=_encode(request))


def inbox_events(client_id: str, *, answers: bool = False) -> Call[None]:
    """The stream of the inbox: its answer is read frame by frame. `answers`: someone can answer at this client."""
    params = _named(client_id) | _answering(answers)
    return Call(method="GET", path=_path("inbox", "events"), answer=NoneType, params=params)


def push_info() -> Call[inboxes.PushInfo]:
    """The key with which a browser subscribes to notifications."""
    return Call(method="GET", path=_path("push"), answer=inboxes.PushInfo)


def subscribe_push(request: inboxes.Subscribe) -> Call[None]:
    return Call(method="POST", path=_path("push", "subscriptions"), answer=NoneType, body=_encode(request))


def unsubscribe_push(endpoint: str) -> Call[None]:
    """Send no more notifications to this endpoint."""
    return Call(method="DELETE", path=_path("push", "subscriptions"), answer=NoneType, params={"endpoint": endpoint})


def jobs(workspace_id: str) -> Call[workshop.JobPage]:
    """The commands in the background of a workspace."""
    return Call(method="GET", path=_in(workspace_id, "jobs"), answer=workshop.JobPage)


def job(workspace_id: str, job_id: str, *, after: int | None = None, wait_s: float = 0) -> Call[workshop.JobOutput]:
    """One of them with its newest output, or with what follows `after`; waits up to `wait_s` seconds for more."""
    params = {} if after is None else {"after": str(after), "wait": str(wait_s)}
    path = _in(workspace_id, "jobs", job_id)
    return Call(method="GET", path=path, answer=workshop.JobOutput, params=params, timeout_s=wait_s + 30)


def kill_job(workspace_id: str, job_id: str, client_id: str | None = None) -> Call[workshop.Job]:
    """End a job and all that it started; one that has ended stays as it is."""
    path = _in(workspace_id, "jobs", job_id, "kill")
    return Call(method="POST", path=path, answer=workshop.Job, params=_named(client_id))


def mcp(workspace_id: str) -> Call[workshop.McpPage]:
    """The MCP servers of a workspace and how they are doing."""
    # Connecting to them for the first time may take a while.
    return Call(method="GET", path=_in(workspace_id, "mcp"), answer=workshop.McpPage, timeout_s=60)


def mcp_login(workspace_id: str, server: str, redirect_url: str | None = None) -> Call[workshop.McpEvent]:
    """Begin a login to an MCP server: `authorization_url` of the answer is the page to open. Or end it, with the
    address that the browser was sent to."""
    path, body = _in(workspace_id, "mcp", server, "login"), _encode(requests.McpLogin(redirect_url=redirect_url))
    # A second end finds nobody waiting.
    return Call(
        method="POST",
        path=path,
        answer=workshop.McpEvent,
        body=body,
        repeatable=redirect_url is None,
        timeout_s=60,
    )


def lsp(workspace_id: str) -> Call[workshop.LspPage]:
    """The language servers that were needed so far."""
    return Call(method="GET", path=_in(workspace_id, "lsp"), answer=workshop.LspPage)


def skills(workspace_id: str) -> Call[workshop.SkillPage]:
    """What the files of the project and of the user offer: skills, custom commands, sub-agents."""
    return Call(method="GET", path=_in(workspace_id, "skills"), answer=workshop.SkillPage)


def undo(workspace_id: str, session_id: str) -> Call[workshop.Undone]:
    """Take the newest turn back: its own file changes, and its messages."""
    path = _in(workspace_id, "sessions", session_id, "undo")
    return Call(method="POST", path=path, answer=workshop.Undone, repeatable=False)


def redo(workspace_id: str, session_id: str) -> Call[workshop.Undone]:
    """Bring back what was undone last."""
    path = _in(workspace_id, "sessions", session_id, "redo")
    return Call(method="POST", path=path, answer=workshop.Undone, repeatable=False)


def revert(workspace_id: str, session_id: str, request: requests.Revert) -> Call[review.Reverted]:
    """Undo what is left of a session's changes to a file, or some hunks of it."""
    path = _in(workspace_id, "sessions", session_id, "revert")
    return Call(method="POST", path=path, answer=review.Reverted, body=_encode(request), repeatable=False)


def redo_revert(
    workspace_id: str, session_id: str, revert_id: str, request: requests.RedoRevert
) -> Call[review.Reverted]:
    """Redo what was undone in a file."""
    path = _in(workspace_id, "sessions", session_id, "reverts", revert_id, "redo")
    return Call(method="POST", path=path, answer=review.Reverted, body=_encode(request), repeatable=False)


def fork_session(workspace_id: str, session_id: str, message_id: str | None = None) -> Call[models.Session]:
    """A new session with the same transcript, up to a message or all that is finished."""
    body = _encode(requests.ForkSession(message_id=message_id))
    path = _in(workspace_id, "sessions", session_id, "fork")
    return Call(method="POST", path=path, answer=models.Session, body=body, repeatable=False)


def summarize_session(workspace_id: str, session_id: str, request: requests.Summarize) -> Call[models.Accepted]:
    """Repeatable only with a run_id, as a prompt is."""
    path = _in(workspace_id, "sessions", session_id, "summarize")
    repeatable = request.run_id is not None
    return Call(method="POST", path=path, answer=models.Accepted, body=_encode(request), repeatable=repeatable)


def export_session(workspace_id: str, session_id: str) -> Call[archive.SessionExport]:
    """All that is finished of a session."""
    path = _in(workspace_id, "sessions", session_id, "export")
    return Call(method="GET", path=path, answer=archive.SessionExport, timeout_s=LONG_S)


def export_text(workspace_id: str, session_id: str, style: str) -> Call[bytes]:
    """The export as it comes: `json` or `markdown`."""
    path, params = _in(workspace_id, "sessions", session_id, "export"), {"format": style}
    return Call(method="GET", path=path, answer=bytes, params=params, timeout_s=LONG_S)


def import_session(workspace_id: str, document: bytes) -> Call[models.Session]:
    path, timeout_s = _in(workspace_id, "sessions", "import"), LONG_S + len(document) / SLOW
    return Call(method="POST", path=path, answer=models.Session, body=document, repeatable=False, timeout_s=timeout_s)


def files(workspace_id: str, path: str = ".", *, everything: bool = False) -> Call[listings.FilePage]:
    """A directory of the workspace; with `everything`, hidden and ignored names too."""
    params = {"path": path} | ({"all": "true"} if everything else {})
    return Call(method="GET", path=_in(workspace_id, "files"), answer=listings.FilePage, params=params)


def search(workspace_id: str, query: str, *, limit: int = 50) -> Call[listings.FoundPage]:
    """Files whose path matches, the best first."""
    params = {"q": query, "limit": str(limit)}
    return Call(method="GET", path=_in(workspace_id, "search"), answer=listings.FoundPage, params=params, timeout_s=90)


def diff(workspace_id: str, *, session_id: str | None = None, run_id: str | None = None) -> Call[listings.DiffPage]:
    """What a session or a run changed in files."""
    given = {"session_id": session_id, "run_id": run_id}
    params = {name: value for name, value in given.items() if value is not None}
    return Call(method="GET", path=_in(workspace_id, "diff"), answer=listings.DiffPage, params=params)


def changes(
    workspace_id: str,
    *,
    session_id: str | None = None,
    run_id: str | None = None,
    path: str | None = None,
    stat: bool = False,
) -> Call[review.ChangesPage]:
    """What is left of the changes of a session or a run, file by file, or in one file; `stat`: without diffs."""
    given = {"session_id": session_id, "run_id": run_id, "path": path, "stat": "true" if stat else None}
    params = {name: value for name, value in given.items() if value is not None}
    return Call(method="GET", path=_in(workspace_id, "changes"), answer=review.ChangesPage, params=params)


def file_text(workspace_id: str, path: str) -> Call[review.FileText]:
    """The text of a file of the workspace, or its beginning."""
    return Call(method="GET", path=_in(workspace_id, "file"), answer=review.FileText, params={"path": path})


def welcome(workspace_id: str) -> Call[listings.Welcome]:
    """The git branch of a workspace, and three prompts to try that fit its directory."""
    return Call(method="GET", path=_in(workspace_id, "welcome"), answer=listings.Welcome)


def session_usage(workspace_id: str, session_id: str) -> Call[figures.SessionUsage]:
    """What the newest runs of a session used, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id, "usage"), answer=figures.SessionUsage)


def session_timeline(workspace_id: str, session_id: str) -> Call[figures.SessionTimeline]:
    """When the tools of the newest runs of a session were called, how long they waited for people and how long they
    ran."""
    path = _in(workspace_id, "sessions", session_id, "timeline")
    return Call(method="GET", path=path, answer=figures.SessionTimeline)


def stats(workspace_id: str | None = None, *, days: int = 30) -> Call[figures.Stats]:
    """What was used and done in a workspace, or in all."""
    path = _path("stats") if workspace_id is None else _in(workspace_id, "stats")
    return Call(method="GET", path=path, answer=figures.Stats, params={"days": str(days)})


def events(workspace_id: str, client_id: str, session_id: str | None, *, answers: bool = False) -> Call[None]:
    """The event stream: its answer is read frame by frame. `answers`: someone can answer at this client."""
    params = {"client_id": client_id} | ({"session_id": session_id} if session_id is not None else {})
    params |= _answering(answers)
    return Call(method="GET", path=_in(workspace_id, "events"), answer=NoneType, params=params)
