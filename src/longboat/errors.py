"""The error tree. Every error a client can see has a stable `code`; `server/errors.py` alone knows the statuses.

LongboatError
├── BadInput                  the request is wrong                                     400
│   ├── EmptyPrompt
│   ├── SessionMissing
│   └── ConfigInvalid         a config that cannot be used: names the file, the line and what was expected
│       └── ProjectNotTrusted a project's file asks for what only a trusted one gets: names the field and what to do
├── Unauthorized              no token, or a wrong one                                 401
├── ForeignOrigin             a page from elsewhere                                    403
├── NotFound                  nothing has this name or id                              404
│   ├── WorkspaceNotFound
│   ├── SessionNotFound
│   ├── RunNotFound
│   ├── PermissionNotFound
│   ├── QuestionNotFound
│   ├── JobNotFound
│   └── McpServerNotFound
├── Conflict                  valid, but not now                                       409
│   ├── WorkspaceClosing
│   ├── SessionClosing
│   ├── SessionIdTaken
│   ├── RunIdTaken
│   ├── RunNotEditable
│   ├── TooLate
│   ├── AlreadyAnswered       another client was first
│   ├── SessionBusy
│   ├── NothingToUndo
│   ├── UndoConflict          somebody else changed the file since
│   ├── SessionDamaged        a row of the session cannot be read; other sessions are not affected
│   ├── NoLoginPending        no MCP server waits for this login, or no longer
│   └── ServerBusy            asked to stop only if idle, and it is not
├── LengthRequired            a body whose length was not announced                    411
├── BodyTooLarge              more than the server takes in one request                413
├── ForeignHost               a Host header that this server does not answer to        421
├── TooManyAttempts           wrong tokens, too often                                  429
├── Unavailable               try again later                                          503
│   ├── ServerLeaving
│   ├── StoreUnavailable      the disk is full, locked or read-only; nothing was half-accepted
│   │   ├── DataDirGone       the data directory was deleted or replaced while the server runs
│   │   └── StoreDamaged      the database file is damaged where it was read or written
│   └── CancelNotDurable      the run was stopped, but the cancel is not on disk yet
├── DataDirError              the server cannot start on this data directory
├── ListenError               the server cannot listen where it was told to
├── ModelError                a model request failed: `retryable` tells whether to try again
└── ServerUnreachable         seen by clients only: nothing answers where the server should be
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
        super().__init__("The prompt is empty: give it text, or a text attachment.")


class SessionMissing(BadInput):
    code = "session_missing"

    def __init__(self) -> None:
        super().__init__("session_id is missing: create a session with POST …/sessions and pass its id.")


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
        super().__init__(f"No workspace {workspace_id!r} was ever opened here: POST /v1/workspaces with its path.")


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"No session {session_id!r} in this workspace: GET …/sessions lists them.")


class RunNotFound(NotFound):
    code = "run_not_found"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"No run {run_id!r} in this workspace: GET …/runs lists them.")


class PermissionNotFound(NotFound):
    code = "permission_not_found"

    def __init__(self, permission_id: str) -> None:
        super().__init__(f"No permission {permission_id!r} was asked here: GET …/permissions lists what is pending.")


class QuestionNotFound(NotFound):
    code = "question_not_found"

    def __init__(self, question_id: str) -> None:
        super().__init__(f"No question {question_id!r} was asked here: GET …/questions lists what is pending.")


class JobNotFound(NotFound):
    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"No job {job_id!r} in this workspace: GET …/jobs lists them.")


class McpServerNotFound(NotFound):
    code = "mcp_server_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"No MCP server {name!r} is configured here: GET …/mcp lists them.")


class Conflict(LongboatError):
    code = "conflict"


class WorkspaceClosing(Conflict):
    code = "workspace_closing"

    def __init__(self) -> None:
        super().__init__("This workspace is closing: try again in a moment and it opens anew.")


class SessionClosing(Conflict):
    code = "session_closing"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is being deleted.")


class SessionIdTaken(Conflict):
    code = "session_id_taken"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session {session_id!r} is of another workspace or of a sub-agent: choose another session_id."
        )


class RunIdTaken(Conflict):
    code = "run_id_taken"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} exists with another session or prompt: choose another run_id.")


class RunNotEditable(Conflict):
    code = "run_not_editable"

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"Run {run_id!r} is {state}: only accepted and queued runs can be edited.")


class TooLate(Conflict):
    code = "too_late"

    def __init__(self, run_id: str, host: str) -> None:
        super().__init__(f"Run {run_id!r} was folded into {host!r} and already sent to the model: cancel {host!r}.")


class AlreadyAnswered(Conflict):
    code = "already_answered"

    def __init__(self, who: str | None, what: str) -> None:
        super().__init__(f"{who or 'Somebody'} was faster: {what}.")


class SessionBusy(Conflict):
    code = "session_busy"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is busy: wait for its run to end, or cancel it.")


class NothingToUndo(Conflict):
    code = "nothing_to_undo"


class UndoConflict(Conflict):
    code = "undo_conflict"


class SessionDamaged(Conflict):
    code = "session_damaged"

    def __init__(self, session_id: str, what: str) -> None:
        super().__init__(
            f"{self.headline(session_id)}: {what} cannot be read. Other sessions are not affected. "
            f"`longboat session export {session_id}` saves what is readable; then delete the session, "
            "or restore a backup (`longboat store restore`)."
        )
        self.session_id = session_id
        self.what = what

    @staticmethod
    def headline(session_id: str) -> str:
        """By this the error of a run, which is only text, can be recognized."""
        return f"Session {session_id!r} is damaged"


class NoLoginPending(Conflict):
    code = "no_login_pending"

    def __init__(self, name: str) -> None:
        super().__init__(f"The MCP server {name!r} does not wait for this login, or no longer: begin it anew.")


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
        super().__init__(f"Too many wrong tokens: try again in {retry_after_s} s. The right one works at once.")
        self.retry_after_s = retry_after_s


class Unavailable(LongboatError):
    code = "unavailable"


class ServerLeaving(Unavailable):
    code = "server_leaving"

    def __init__(self) -> None:
        super().__init__("The server is stopping and takes no new prompts: start it again and resend.")


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


class CancelNotDurable(Unavailable):
    code = "cancel_not_durable"

    def __init__(self) -> None:
        super().__init__(
            "What was running is stopped, but the cancel could not be saved: the store cannot be written. Free some "
            "disk space; the server then saves it by itself. If the server stops before that, send the cancel again."
        )


class DataDirError(LongboatError):
    code = "data_dir"


class ListenError(LongboatError):
    code = "listen"


class ModelError(LongboatError):
    """A model request failed. `title` is a few words for a person; `message` is the detail."""

    code = "model_error"

    def __init__(
        self,
        message: str,
        *,
        title: str = "The model request failed",
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
