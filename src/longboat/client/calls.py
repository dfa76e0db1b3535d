"""Every route as a `Call`. Pure: the clients that own a connection send it.

Must not know httpx, sockets or event loops: the async client, the sync client and the command line share this.
"""

import os
import re
from collections.abc import Mapping
from types import NoneType
from urllib.parse import quote

import msgspec

from longboat.client.call import Call
from longboat.wire import archive, asks, listings, models, requests, review, statistics, workspace_state
from longboat.wire import inbox as inboxes
from longboat.wire import search as search_shapes
from longboat.wire.ids import new_id, new_key
from longboat.wire.model_requests import SentRequestBody, SentRequests
from longboat.wire.providers import Provider, ProviderCheck, ProviderPage

_encode = msgspec.json.Encoder().encode

LONG_S, SLOW = 300.0, 100_000
"""Limits for responses of many megabytes: a timeout in seconds, and the slowest transfer to expect in bytes per
second."""


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
    """Check whether the server is alive and its store works."""
    return Call(method="GET", path=_path("health"), answer=models.Health, timeout_s=5)


def ready() -> Call[models.Health]:
    """Check whether the server takes work: raises ServerLeaving or StoreUnavailable if another one should be asked."""
    return Call(method="GET", path=_path("ready"), answer=models.Health, timeout_s=5)


def version() -> Call[models.Version]:
    """Get the version of the server and of its protocol."""
    return Call(method="GET", path=_path("version"), answer=models.Version, timeout_s=5)


def nodes() -> Call[listings.NodePage]:
    """List the nodes that share the server's database; none if there is only one."""
    return Call(method="GET", path=_path("nodes"), answer=listings.NodePage)


def shutdown(*, if_idle: bool = False) -> Call[None]:
    """Stop the server. With `if_idle`, stop it only if all runs are finished; otherwise this raises ServerBusy."""
    body = _encode(requests.Control(command="shutdown", if_idle=if_idle))
    return Call(method="POST", path=_path("control"), answer=NoneType, body=body)


def open_web() -> Call[models.BrowserAddress]:
    """Make the server listen on a loopback TCP port for a browser on its machine, unless it already listens on TCP."""
    return Call(method="POST", path=_path("web"), answer=models.BrowserAddress)


def providers() -> Call[ProviderPage]:
    """List the model providers: whether each one is connected, and what it needs."""
    return Call(method="GET", path=_path("providers"), answer=ProviderPage)


def check_provider(provider: str, *, api_key: str | None = None, base_url: str | None = None) -> Call[ProviderCheck]:
    """Test an API key or an address; by default, the ones the server already has. Stores nothing."""
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
    """Store an API key and an address, and set the default model. `model` is its name at the provider."""
    request = requests.ConnectProvider(api_key=api_key, base_url=base_url, model=model, context_window=context_window)
    path = _path("providers", provider)
    return Call(method="PUT", path=path, answer=Provider, body=_encode(request), timeout_s=60)


def forget_provider(provider: str) -> Call[Provider]:
    """Delete the stored API key."""
    return Call(method="DELETE", path=_path("providers", provider), answer=Provider, timeout_s=60)


def workspaces() -> Call[models.WorkspacePage]:
    """List all workspaces that were ever opened on this server."""
    return Call(method="GET", path=_path("workspaces"), answer=models.WorkspacePage)


_ON_NODE = re.compile(r"([A-Za-z0-9._-]+):(/.*)", re.DOTALL)


def split_node(path: str) -> tuple[str | None, str]:
    """The node that a directory is on, if it is given as `NODE:/path`, and its path, made absolute."""
    found = _ON_NODE.fullmatch(path)
    return (found[1], found[2]) if found else (None, os.path.abspath(path))


def join(
    path: str | os.PathLike[str], client_id: str | None, env: Mapping[str, str] | None = None
) -> Call[models.Workspace]:
    """Make the path absolute first: the server resolves links, but only the client knows its working directory.
    `NODE:/path` is a directory on that node of a cluster."""
    environ = None if env is None else dict(env)
    node, there = split_node(os.fspath(path))
    body = _encode(requests.CreateWorkspace(path=there, client_id=client_id, env=environ, node=node))
    return Call(method="POST", path=_path("workspaces"), answer=models.Workspace, body=body)


def move_workspace(workspace_id: str, node: str, *, force: bool = False) -> Call[models.Workspace]:
    """Move a workspace to another node. All nodes must share its directory. `force`: even if a run is active."""
    body = _encode(requests.MoveWorkspace(node=node, force=force))
    return Call(method="POST", path=_in(workspace_id, "move"), answer=models.Workspace, body=body, timeout_s=120)


def workspace(workspace_id: str) -> Call[models.Workspace]:
    """Get one workspace and the clients attached to it."""
    return Call(method="GET", path=_in(workspace_id), answer=models.Workspace)


def release(workspace_id: str, client_id: str) -> Call[None]:
    return Call(method="DELETE", path=_in(workspace_id), answer=NoneType, params={"client_id": client_id})


def drop_client(client_id: str) -> Call[None]:
    """Release all claims of a client: this one or another."""
    return Call(method="DELETE", path=_path("clients", client_id), answer=NoneType)


def agent(workspace_id: str, *, model: str | None = None) -> Call[models.AgentInfo]:
    """Find out which model answers, whether it is ready, and whether anything runs. With `model`, get the state for a
    prompt with that model."""
    params = {} if model is None else {"model": model}
    return Call(method="GET", path=_in(workspace_id, "agent"), answer=models.AgentInfo, params=params)


def create_session(workspace_id: str, title: str = "", session_id: str | None = None) -> Call[models.Session]:
    """Create a session. Pass your own `session_id` to make the call safe to repeat: an existing session with this id is
    returned as it is."""
    body = _encode(requests.CreateSession(title=title, session_id=session_id or new_id()))
    return Call(method="POST", path=_in(workspace_id, "sessions"), answer=models.Session, body=body)


def offered_models(workspace_id: str) -> Call[listings.ModelPage]:
    """List the models that a prompt can name, and the defaults if it names none."""
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
    """List the sessions of a workspace: pinned ones first, then the others, each newest first. For the next page, pass
    `next` of the previous page as `after`. `search` matches words of the title; `top` leaves out the sessions of
    sub-agents."""
    which = {"archived": archived.value, "order": order.value}
    params = _page(limit, after, q=search or None, top="true" if top else None, **which)
    return Call(method="GET", path=_in(workspace_id, "sessions"), answer=models.SessionPage, params=params)


def session(workspace_id: str, session_id: str) -> Call[models.Session]:
    """Get one session."""
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id), answer=models.Session)


def rename_session(workspace_id: str, session_id: str, title: str) -> Call[models.Session]:
    """Change the title of a session."""
    body = _encode(requests.UpdateSession(title=title))
    return Call(method="PATCH", path=_in(workspace_id, "sessions", session_id), answer=models.Session, body=body)


def mark_session(
    workspace_id: str, session_id: str, *, pinned: bool | None = None, archived: bool | None = None
) -> Call[models.Session]:
    """Pin, unpin, archive or unarchive a session. None leaves a setting as it is."""
    body = _encode(requests.UpdateSession(pinned=pinned, archived=archived))
    return Call(method="PATCH", path=_in(workspace_id, "sessions", session_id), answer=models.Session, body=body)


def search_sessions(
    words: str, *, workspace_id: str | None = None, limit: int = 50, before: str | None = None
) -> Call[search_shapes.SearchPage]:
    """Search messages and session titles for these words, in one workspace or in all, newest first. For the next page,
    pass `next` of the previous page as `before`."""
    params = _page(limit, None, q=words, workspace_id=workspace_id, before=before)
    return Call(method="GET", path=_path("search"), answer=search_shapes.SearchPage, params=params)


def delete_session(workspace_id: str, session_id: str) -> Call[None]:
    """Cancel the runs of a session, then delete it and the sessions of its sub-agents."""
    return Call(method="DELETE", path=_in(workspace_id, "sessions", session_id), answer=NoneType, repeatable=False)


def messages(
    workspace_id: str, session_id: str, *, limit: int = 100, after: str | None = None, before: str | None = None
) -> Call[models.MessagePage]:
    """Get the transcript, oldest first. To page backwards, pass an empty `before` for the end of the transcript, then
    `next` of the previous page."""
    path = _in(workspace_id, "sessions", session_id, "messages")
    return Call(method="GET", path=path, answer=models.MessagePage, params=_page(limit, after, before=before))


def todos(workspace_id: str, session_id: str) -> Call[workspace_state.Todos]:
    """Get the plan of a session."""
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id, "todos"), answer=workspace_state.Todos)


def shell(workspace_id: str, session_id: str, request: requests.RunShell) -> Call[models.Accepted]:
    """Repeatable only with a run_id, like a prompt."""
    path = _in(workspace_id, "sessions", session_id, "shell")
    repeatable = request.run_id is not None
    return Call(method="POST", path=path, answer=models.Accepted, body=_encode(request), repeatable=repeatable)


def submit(workspace_id: str, request: requests.Submit) -> Call[models.Accepted]:
    """Repeatable only with a run_id: the server accepts each run_id once."""
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
    """List the runs of a workspace, newest first."""
    params = _page(limit, after, state=state, session_id=session_id)
    return Call(method="GET", path=_in(workspace_id, "runs"), answer=models.RunPage, params=params)


def get_run(workspace_id: str, run_id: str, *, wait_s: float = 0) -> Call[models.Run]:
    """Get one run. With `wait_s`, wait up to that many seconds for it to finish."""
    params = {"wait": f"{wait_s:g}"} if wait_s else {}
    path = _in(workspace_id, "runs", run_id)
    return Call(method="GET", path=path, answer=models.Run, params=params, timeout_s=30 + wait_s)


def model_requests(workspace_id: str, run_id: str) -> Call[SentRequests]:
    """List what a run sent to models: every request and every retry, with its size and tokens by part."""
    path = _in(workspace_id, "runs", run_id, "requests")
    return Call(method="GET", path=path, answer=SentRequests)


def model_request(workspace_id: str, run_id: str, number: int) -> Call[SentRequestBody]:
    """Get one of these requests with its body, without attachments."""
    path = _in(workspace_id, "runs", run_id, "requests", str(number))
    return Call(method="GET", path=path, answer=SentRequestBody)


def cancel_run(workspace_id: str, run_id: str, client_id: str | None = None) -> Call[models.Run]:
    """Cancel one run in any state."""
    path = _in(workspace_id, "runs", run_id, "cancel")
    return Call(method="POST", path=path, answer=models.Run, params=_named(client_id))


def edit_run(workspace_id: str, run_id: str, request: requests.EditRun) -> Call[models.Run]:
    """Change the prompt or the delivery of a run that has not started."""
    return Call(method="PATCH", path=_in(workspace_id, "runs", run_id), answer=models.Run, body=_encode(request))


def cancel_session(workspace_id: str, session_id: str, client_id: str | None = None) -> Call[models.Canceled]:
    """Cancel everything accepted so far in a session."""
    path = _in(workspace_id, "agent", "sessions", session_id, "cancel")
    # Without the key, a repeated one would also catch prompts accepted in between.
    return Call(method="POST", path=path, answer=models.Canceled, params=_named(client_id), key=new_key())


def clear_queue(workspace_id: str, session_id: str, client_id: str | None = None) -> Call[models.Canceled]:
    """Cancel the waiting runs of a session, but not the active one."""
    path = _in(workspace_id, "agent", "sessions", session_id, "prompts", "clear")
    return Call(method="POST", path=path, answer=models.Canceled, params=_named(client_id), key=new_key())


def queued(workspace_id: str, session_id: str) -> Call[models.RunPage]:
    """List the waiting runs of a session, in order."""
    path = _in(workspace_id, "agent", "sessions", session_id, "prompts", "queued")
    return Call(method="GET", path=path, answer=models.RunPage)


def session_status(workspace_id: str, session_id: str) -> Call[models.SessionStatus]:
    """Check whether a session is busy, and with which run."""
    path = _in(workspace_id, "agent", "sessions", session_id)
    return Call(method="GET", path=path, answer=models.SessionStatus)


def permissions(workspace_id: str) -> Call[asks.PermissionPage]:
    """List the pending permissions, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "permissions"), answer=asks.PermissionPage)


def answer_permission(
    workspace_id: str, permission_id: str, request: requests.AnswerPermission
) -> Call[asks.Permission]:
    """Not repeatable: a second answer gets 409 with the name of who answered first, even if that was this client."""
    path = _in(workspace_id, "permissions", permission_id)
    return Call(method="POST", path=path, answer=asks.Permission, body=_encode(request), repeatable=False)


def questions(workspace_id: str) -> Call[asks.QuestionPage]:
    """List the pending questions, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "questions"), answer=asks.QuestionPage)


def answer_question(workspace_id: str, question_id: str, request: requests.AnswerQuestion) -> Call[asks.Question]:
    """Not repeatable, like the answer to a permission."""
    path = _in(workspace_id, "questions", question_id)
    return Call(method="POST", path=path, answer=asks.Question, body=_encode(request), repeatable=False)


def inbox(client_id: str, *, limit: int = 50, before: str | None = None) -> Call[inboxes.InboxPage]:
    """List the inbox of all workspaces, newest first. For the next page, pass `next` of the previous page as
    `before`."""
    params = _named(client_id) | {"limit": str(limit)} | ({} if before is None else {"before": before})
    return Call(method="GET", path=_path("inbox"), answer=inboxes.InboxPage, params=params)


def mark_seen(request: inboxes.MarkSeen) -> Call[None]:
    """Mark items of the inbox as seen."""
    return Call(method="POST", path=_path("inbox", "seen"), answer=NoneType, body=_encode(request))


def inbox_events(client_id: str, *, answers: bool = False) -> Call[None]:
    """Stream the inbox; the client reads the response frame by frame. `answers`: someone at this client can answer
    questions."""
    params = _named(client_id) | _answering(answers)
    return Call(method="GET", path=_path("inbox", "events"), answer=NoneType, params=params)


def push_info() -> Call[inboxes.PushInfo]:
    """Get the key that a browser needs to subscribe to notifications."""
    return Call(method="GET", path=_path("push"), answer=inboxes.PushInfo)


def subscribe_push(request: inboxes.Subscribe) -> Call[None]:
    """Send notifications to a browser."""
    return Call(method="POST", path=_path("push", "subscriptions"), answer=NoneType, body=_encode(request))


def unsubscribe_push(endpoint: str) -> Call[None]:
    """Stop sending notifications to this endpoint."""
    return Call(method="DELETE", path=_path("push", "subscriptions"), answer=NoneType, params={"endpoint": endpoint})


def jobs(workspace_id: str) -> Call[workspace_state.JobPage]:
    """List the background commands of a workspace, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "jobs"), answer=workspace_state.JobPage)


def job(
    workspace_id: str, job_id: str, *, after: int | None = None, wait_s: float = 0
) -> Call[workspace_state.JobOutput]:
    """Get one background command with its newest output, or with the output that follows `after`. Waits up to `wait_s`
    seconds for more."""
    params = {} if after is None else {"after": str(after), "wait": str(wait_s)}
    path = _in(workspace_id, "jobs", job_id)
    return Call(method="GET", path=path, answer=workspace_state.JobOutput, params=params, timeout_s=wait_s + 30)


def kill_job(workspace_id: str, job_id: str, client_id: str | None = None) -> Call[workspace_state.Job]:
    """Stop a job and all processes it started. Does nothing if it has ended."""
    path = _in(workspace_id, "jobs", job_id, "kill")
    return Call(method="POST", path=path, answer=workspace_state.Job, params=_named(client_id))


def mcp(workspace_id: str) -> Call[workspace_state.McpPage]:
    """List the MCP servers of a workspace and their state."""
    # Connecting to them for the first time may take a while.
    return Call(method="GET", path=_in(workspace_id, "mcp"), answer=workspace_state.McpPage, timeout_s=60)


def mcp_login(workspace_id: str, server: str, redirect_url: str | None = None) -> Call[workspace_state.McpEvent]:
    """Log in to an MCP server. The first call returns the page to open as `authorization_url`. If the browser cannot
    reach the server, complete the login with a second call: pass the address where the browser ended as
    `redirect_url`."""
    path, body = _in(workspace_id, "mcp", server, "login"), _encode(requests.McpLogin(redirect_url=redirect_url))
    # Only once: after a login is complete, nothing waits for a second completion.
    return Call(
        method="POST",
        path=path,
        answer=workspace_state.McpEvent,
        body=body,
        repeatable=redirect_url is None,
        timeout_s=60,
    )


def lsp(workspace_id: str) -> Call[workspace_state.LspPage]:
    """List the language servers that were needed so far, and their state."""
    return Call(method="GET", path=_in(workspace_id, "lsp"), answer=workspace_state.LspPage)


def skills(workspace_id: str) -> Call[workspace_state.SkillPage]:
    """List the skills, custom commands and sub-agents in the project's and the user's files."""
    return Call(method="GET", path=_in(workspace_id, "skills"), answer=workspace_state.SkillPage)


def undo(workspace_id: str, session_id: str) -> Call[workspace_state.Undone]:
    """Undo the newest turn: its file changes and its messages."""
    path = _in(workspace_id, "sessions", session_id, "undo")
    return Call(method="POST", path=path, answer=workspace_state.Undone, repeatable=False)


def redo(workspace_id: str, session_id: str) -> Call[workspace_state.Undone]:
    """Redo what was undone last."""
    path = _in(workspace_id, "sessions", session_id, "redo")
    return Call(method="POST", path=path, answer=workspace_state.Undone, repeatable=False)


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
    """Create a session with the same transcript: up to `message_id`, or all finished turns."""
    body = _encode(requests.ForkSession(message_id=message_id))
    path = _in(workspace_id, "sessions", session_id, "fork")
    return Call(method="POST", path=path, answer=models.Session, body=body, repeatable=False)


def summarize_session(workspace_id: str, session_id: str, request: requests.Summarize) -> Call[models.Accepted]:
    """Repeatable only with a run_id, like a prompt."""
    path = _in(workspace_id, "sessions", session_id, "summarize")
    repeatable = request.run_id is not None
    return Call(method="POST", path=path, answer=models.Accepted, body=_encode(request), repeatable=repeatable)


def export_session(workspace_id: str, session_id: str) -> Call[archive.SessionExport]:
    """Export the finished turns of a session."""
    path = _in(workspace_id, "sessions", session_id, "export")
    return Call(method="GET", path=path, answer=archive.SessionExport, timeout_s=LONG_S)


def export_text(workspace_id: str, session_id: str, style: str) -> Call[bytes]:
    """Export the finished turns of a session as bytes. `style` is `json` or `markdown`."""
    path, params = _in(workspace_id, "sessions", session_id, "export"), {"format": style}
    return Call(method="GET", path=path, answer=bytes, params=params, timeout_s=LONG_S)


def import_session(workspace_id: str, document: bytes) -> Call[models.Session]:
    """Create a session from an export."""
    path, timeout_s = _in(workspace_id, "sessions", "import"), LONG_S + len(document) / SLOW
    return Call(method="POST", path=path, answer=models.Session, body=document, repeatable=False, timeout_s=timeout_s)


def files(workspace_id: str, path: str = ".", *, everything: bool = False) -> Call[listings.FilePage]:
    """List a directory of the workspace. `everything` includes hidden and git-ignored files."""
    params = {"path": path} | ({"all": "true"} if everything else {})
    return Call(method="GET", path=_in(workspace_id, "files"), answer=listings.FilePage, params=params)


def search(workspace_id: str, query: str, *, limit: int = 50) -> Call[listings.FoundPage]:
    """Find files by part of their path, best match first."""
    params = {"q": query, "limit": str(limit)}
    return Call(method="GET", path=_in(workspace_id, "search"), answer=listings.FoundPage, params=params, timeout_s=90)


def diff(workspace_id: str, *, session_id: str | None = None, run_id: str | None = None) -> Call[listings.DiffPage]:
    """Get the file changes of a session or a run as unified diffs."""
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
    """List what is left of the file changes of a session or a run, one item for each file. `path` selects one file;
    `stat` leaves out the diffs."""
    given = {"session_id": session_id, "run_id": run_id, "path": path, "stat": "true" if stat else None}
    params = {name: value for name, value in given.items() if value is not None}
    return Call(method="GET", path=_in(workspace_id, "changes"), answer=review.ChangesPage, params=params)


def file_text(workspace_id: str, path: str) -> Call[review.FileText]:
    """Get the text of a file of the workspace, or the beginning of a long one."""
    return Call(method="GET", path=_in(workspace_id, "file"), answer=review.FileText, params={"path": path})


def welcome(workspace_id: str) -> Call[listings.Welcome]:
    """Get the git branch of a workspace, and three prompts to try that fit its directory."""
    return Call(method="GET", path=_in(workspace_id, "welcome"), answer=listings.Welcome)


def session_usage(workspace_id: str, session_id: str) -> Call[statistics.SessionUsage]:
    """Get the usage of the newest runs of a session, oldest first."""
    return Call(method="GET", path=_in(workspace_id, "sessions", session_id, "usage"), answer=statistics.SessionUsage)


def session_timeline(workspace_id: str, session_id: str) -> Call[statistics.SessionTimeline]:
    """Get the tool calls of the newest runs of a session: when each was made, how long it waited for people and how
    long it ran."""
    path = _in(workspace_id, "sessions", session_id, "timeline")
    return Call(method="GET", path=path, answer=statistics.SessionTimeline)


def stats(workspace_id: str | None = None, *, days: int = 30) -> Call[statistics.Stats]:
    """Get tokens, cost, runs, tool calls and run times of a workspace, or of all workspaces."""
    path = _path("stats") if workspace_id is None else _in(workspace_id, "stats")
    return Call(method="GET", path=path, answer=statistics.Stats, params={"days": str(days)})


def events(workspace_id: str, client_id: str, session_id: str | None, *, answers: bool = False) -> Call[None]:
    """Stream the events of a workspace; the client reads the response frame by frame. `answers`: someone at this client
    can answer questions."""
    params = {"client_id": client_id} | ({"session_id": session_id} if session_id is not None else {})
    params |= _answering(answers)
    return Call(method="GET", path=_in(workspace_id, "events"), answer=NoneType, params=params)
