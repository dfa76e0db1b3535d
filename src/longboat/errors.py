"""The error tree. Every error a client can see has a stable `code`; `server/errors.py` alone knows the statuses.

LongboatError
├── BadInput                  the request is invalid                                   400
│   ├── EmptyPrompt
│   ├── SessionMissing
│   └── ConfigInvalid         the configuration is invalid: names file, line and expected value
│       └── ProjectNotTrusted an untrusted project sets a field that needs trust: names the field and what to do
├── Unauthorized              the token is missing or wrong                            401
├── ForeignOrigin             the request comes from a page of another origin          403
├── NotFound                  nothing has this name or id                              404
│   ├── WorkspaceNotFound
│   ├── SessionNotFound
│   ├── RunNotFound
│   ├── RequestNotFound       the run sent no such request to a model, or it is no longer stored
│   ├── PermissionNotFound
│   ├── QuestionNotFound
│   ├── JobNotFound
│   ├── ChangeNotFound
│   ├── RevertNotFound        no undo has this id, or its whole turn was undone
│   ├── ProviderNotFound
│   └── McpServerNotFound
├── Conflict                  valid, but not in the current state                      409
│   ├── WorkspaceClosing
│   ├── TreeAway              the directory is on a node that is down or stopping
│   ├── TreePinned            the directory is on one node's disk, so no other node can work on it
│   ├── WorkspaceBusy         asked to move only if no run is active, but one is
│   ├── SessionClosing
│   ├── SessionIdTaken
│   ├── RunIdTaken
│   ├── RunNotEditable
│   ├── TooLate
│   ├── AlreadyAnswered       another client answered first
│   ├── SessionBusy
│   ├── NothingToUndo
│   ├── UndoConflict          someone else has changed the file since
│   ├── RevertConflict        the change to undo has changed since you looked at it
│   ├── RedoConflict          the undone change no longer fits into the file, or someone redid it already
│   ├── SessionDamaged        a row of the session cannot be read; other sessions are not affected
│   ├── NoLoginPending        no MCP server is waiting for this login
│   └── ServerBusy            asked to stop only if idle, but the server is busy
├── LengthRequired            the request body has no Content-Length                   411
├── BodyTooLarge              the request body is larger than the server accepts       413
├── ForeignHost               the Host header names another host                       421
├── TooManyAttempts           too many wrong tokens                                    429
├── Unavailable               try again later                                          503
│   ├── ServerLeaving
│   ├── OwnedElsewhere        another node works on the workspace
│   ├── OwnerUnreachable      the node that works on the workspace cannot be reached
│   ├── StoreUnavailable      the disk is full, locked or read-only; nothing was partly accepted
│   │   ├── DataDirGone       the data directory was deleted or replaced while the server was running
│   │   ├── StoreDamaged      the database file is damaged
│   │   ├── OwnerLost         the node that worked on the workspace lost it: the outcome is unknown
│   │   └── StoreLost         another server uses the database now, or it lost its last writes
│   └── CancelNotDurable      the run was stopped, but the cancel is not saved yet
├── DataDirError              the server cannot use this data directory
├── ListenError               the server cannot listen on this address or socket
├── LimitReached              a turn took too many steps, failed too often or worked too long
├── ModelError                a model request failed; `retryable` says whether to try again
└── ServerUnreachable         raised by clients only: no server answers
"""


class LongboatError(Exception):
    """Base of all errors that Longboat raises on purpose."""

    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class BadInput(LongboatError):
    code = "bad_input"


class EmptyPrompt(BadInput):
    code = "empty_prompt"

    def __init__(self) -> None:
        super().__init__("The prompt is empty. Send some text or attach a text file.")


class SessionMissing(BadInput):
    code = "session_missing"

    def __init__(self) -> None:
        super().__init__("session_id is missing. Create a session with POST …/sessions and pass its id.")


class ConfigInvalid(BadInput):
    code = "config_invalid"


class ProjectNotTrusted(ConfigInvalid):
    code = "project_not_trusted"


class Unauthorized(LongboatError):
    code = "unauthorized"


class ForeignOrigin(LongboatError):
    code = "foreign_origin"


class NotFound(LongboatError):
    code = "not_found"


class WorkspaceNotFound(NotFound):
    code = "workspace_not_found"

    def __init__(self, workspace_id: str) -> None:
        super().__init__(f"There is no workspace {workspace_id!r} here. Open it with POST /v1/workspaces.")


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id!r} in this workspace. GET …/sessions lists them.")


class RunNotFound(NotFound):
    code = "run_not_found"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"There is no run {run_id!r} in this workspace. GET …/runs lists them.")


class RequestNotFound(NotFound):
    code = "request_not_found"

    def __init__(self, run_id: str, number: int) -> None:
        super().__init__(
            f"There is no request {number} of run {run_id!r}, or it is no longer stored. GET …/requests lists them."
        )


class PermissionNotFound(NotFound):
    code = "permission_not_found"

    def __init__(self, permission_id: str) -> None:
        super().__init__(
            f"There is no permission request {permission_id!r} here. GET …/permissions lists the pending ones."
        )


class QuestionNotFound(NotFound):
    code = "question_not_found"

    def __init__(self, question_id: str) -> None:
        super().__init__(f"There is no question {question_id!r} here. GET …/questions lists the pending ones.")


class JobNotFound(NotFound):
    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"There is no job {job_id!r} in this workspace. GET …/jobs lists them.")


class ChangeNotFound(NotFound):
    code = "change_not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"This session has no current changes to {path!r}. GET …/changes lists the changed files.")


class RevertNotFound(NotFound):
    code = "revert_not_found"

    def __init__(self, revert_id: str) -> None:
        super().__init__(
            f"There is nothing to redo under {revert_id!r}: no such undo, or the whole turn was undone. "
            "GET …/changes lists what you can redo."
        )


class ProviderNotFound(NotFound):
    code = "provider_not_found"

    def __init__(self, provider: str) -> None:
        super().__init__(f"There is no provider {provider!r}. GET /v1/providers lists them.")


class McpServerNotFound(NotFound):
    code = "mcp_server_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"No MCP server named {name!r} is configured here. GET …/mcp lists them.")


class Conflict(LongboatError):
    code = "conflict"


class WorkspaceClosing(Conflict):
    code = "workspace_closing"

    def __init__(self) -> None:
        super().__init__("This workspace is closing. Try again in a moment.")


class TreeAway(Conflict):
    code = "tree_away"

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"The directory {directory} is on a node that is down or stopping. Prompts are queued until it is back."
        )


class TreePinned(Conflict):
    code = "tree_pinned"

    def __init__(self, directory: str, home: str) -> None:
        super().__init__(
            f"The directory {directory} is on the disk of {home}, so no other node can work on it. You can only move "
            "workspaces whose directory all nodes share (`server.shared_trees`)."
        )


class WorkspaceBusy(Conflict):
    code = "workspace_busy"

    def __init__(self) -> None:
        super().__init__(
            "A run is active. Wait for it, cancel it, or move with force: then it has a few seconds to end, and is "
            "interrupted or resumed on the other node as after a restart."
        )


class SessionClosing(Conflict):
    code = "session_closing"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is being deleted.")


class SessionIdTaken(Conflict):
    code = "session_id_taken"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session {session_id!r} belongs to another workspace or to a sub-agent. Choose another session_id."
        )


class RunIdTaken(Conflict):
    code = "run_id_taken"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} already exists with another session or prompt. Choose another run_id.")


class RunNotEditable(Conflict):
    code = "run_not_editable"

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"Run {run_id!r} is {state}. Only accepted and queued runs can be edited.")


class TooLate(Conflict):
    code = "too_late"

    def __init__(self, run_id: str, host: str) -> None:
        super().__init__(f"Run {run_id!r} was folded into {host!r} and already sent to the model. Cancel {host!r}.")


class AlreadyAnswered(Conflict):
    code = "already_answered"

    def __init__(self, who: str | None, what: str) -> None:
        super().__init__(f"{who} answered first: {what}." if who else f"No longer needs an answer: {what}.")


class SessionBusy(Conflict):
    code = "session_busy"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is busy. Wait until its run ends, or cancel it.")


class NothingToUndo(Conflict):
    code = "nothing_to_undo"


class UndoConflict(Conflict):
    code = "undo_conflict"


class RevertConflict(Conflict):
    code = "revert_conflict"


class RedoConflict(Conflict):
    code = "redo_conflict"


class SessionDamaged(Conflict):
    code = "session_damaged"

    def __init__(self, session_id: str, what: str) -> None:
        super().__init__(
            f"{self.headline(session_id)}: {what} cannot be read. Other sessions are not affected. "
            f"`longboat session export {session_id}` saves what can still be read; then delete the session "
            "or restore a backup (`longboat store restore`)."
        )
        self.session_id = session_id
        self.what = what

    @staticmethod
    def headline(session_id: str) -> str:
        """The start of the message. A run keeps only the text of its error; this is how to recognize it."""
        return f"Session {session_id!r} is damaged"


class NoLoginPending(Conflict):
    code = "no_login_pending"

    def __init__(self, name: str) -> None:
        super().__init__(f"The MCP server {name!r} is not waiting for this login. Start the login again.")


class ServerBusy(Conflict):
    code = "server_busy"


class LengthRequired(LongboatError):
    code = "length_required"


class BodyTooLarge(LongboatError):
    code = "body_too_large"


class ForeignHost(LongboatError):
    code = "foreign_host"


class TooManyAttempts(LongboatError):
    code = "too_many_attempts"
    retry_after_s = 1

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many wrong tokens. Try again in {retry_after_s} s. The right token works immediately.")
        self.retry_after_s = retry_after_s


class Unavailable(LongboatError):
    code = "unavailable"


class ServerLeaving(Unavailable):
    code = "server_leaving"

    def __init__(self) -> None:
        super().__init__("The server is stopping and accepts no new prompts. Start it again and resend.")


class StoreUnavailable(Unavailable):
    code = "store_unavailable"


class DataDirGone(StoreUnavailable):
    code = "data_dir_gone"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The data directory {path} was deleted, moved or replaced while the server was running, so nothing can be "
            "saved. Sessions can still be read and exported until the server stops. Then put the directory back or "
            "restore a backup (`longboat store restore`), and start the server again."
        )


class StoreDamaged(StoreUnavailable):
    code = "store_damaged"

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"The database is damaged: {detail}. `longboat store check` shows what is affected; "
            "`longboat store restore` puts a backup in its place."
        )


class StoreLost(StoreUnavailable):
    code = "store_lost"

    def __init__(self, why: str) -> None:
        super().__init__(f"This server can no longer use its database: {why}. Stop the server and start it again.")


class OwnedElsewhere(Unavailable):
    """Another node is the owner of the workspace, or should be."""

    code = "owned_elsewhere"

    def __init__(self, workspace_id: str) -> None:
        super().__init__(f"Another node now owns workspace {workspace_id}. Try again in a moment.")


class OwnerUnreachable(Unavailable):
    code = "owner_unreachable"

    def __init__(self, url: str) -> None:
        super().__init__(f"The node at {url} owns this workspace and cannot be reached. Try again in a moment.")


class OwnerLost(StoreUnavailable):
    """The workspace was closed here before the answer was known: the server stops, or its lease is over."""

    code = "owner_lost"

    def __init__(self) -> None:
        super().__init__(
            "The server that was handling this request stopped or lost the workspace before it could answer. The "
            "request may or may not have taken effect: check before you send it again."
        )


class CancelNotDurable(Unavailable):
    code = "cancel_not_durable"

    def __init__(self) -> None:
        super().__init__(
            "The run was stopped, but the cancel could not be saved because the store is not writable. Free some disk "
            "space; the server then saves it automatically. If the server stops before that, send the cancel again."
        )


class DataDirError(LongboatError):
    code = "data_dir"


class ListenError(LongboatError):
    code = "listen"


class LimitReached(LongboatError):
    """A turn reached a limit, and no one lets it continue. `message` says which limit."""

    code = "limit"


class ModelError(LongboatError):
    """A model request failed. `title` is a few words for a person; `message` is the detail."""

    code = "model_error"

    def __init__(
        self,
        message: str,
        *,
        title: str = "Model request failed",
        code: str = "model_error",
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.title = title
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class ServerUnreachable(LongboatError):
    code = "server_unreachable"
