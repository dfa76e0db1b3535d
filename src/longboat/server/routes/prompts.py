"""Prompts: submit one, see what the agent and a session are doing, cancel, read and clear the queue."""

from typing import Annotated

from litestar import Response, get, post
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import (
    ClientId,
    HttpRequest,
    S,
    W,
    accepted,
    key_of,
    name_of,
    read_body,
    readable_of,
    takes,
    workspace_of,
)
from longboat.wire.listings import ModelPage
from longboat.wire.models import Accepted, AgentInfo, Canceled, RunPage, SessionStatus
from longboat.wire.requests import Submit

Named = Annotated[str | None, QueryParameter(max_length=500, description="The state for a prompt with this model.")]


@get(W + "/agent")
async def get_agent(request: HttpRequest, model: Named = None) -> AgentInfo:
    """Which model answers, whether it is ready, and whether anything runs."""
    return await (await workspace_of(request)).agent(model)


@post(W + "/agent", status_code=202, opt=takes(Submit))
async def submit_prompt(request: HttpRequest) -> Response[Accepted]:
    """Submit a prompt. Responds once it is durable, without waiting for the turn. Sending the same run_id again
    returns the same run and starts nothing; so does the same `Idempotency-Key` header, for prompts without a
    run_id."""
    prompt = await read_body(request, Submit)
    workspace = await workspace_of(request)
    answer = await workspace.submit(prompt, traceparent=request.headers.get("traceparent"), key=key_of(request))
    return accepted(workspace.id, answer)


@get(W + "/models")
async def list_models(request: HttpRequest) -> ModelPage:
    """The models that a prompt can name, and the defaults if it names none."""
    return await (await workspace_of(request)).models()


@get(S)
async def get_session_status(request: HttpRequest, session_id: FromPath[str]) -> SessionStatus:
    """Whether a session is busy, and with which run."""
    return await (await readable_of(request)).session_status(session_id)


@post(S + "/cancel", status_code=200)
async def cancel_session(request: HttpRequest, session_id: FromPath[str], client_id: ClientId = None) -> Canceled:
    """Cancel everything accepted so far in a session. Does nothing if the session is idle. With an `Idempotency-Key`
    header, a repeated request returns the first answer and cancels nothing more."""
    workspace = await workspace_of(request)
    return await workspace.cancel_session(session_id, name_of(client_id), key=key_of(request))


@get(S + "/prompts/queued")
async def list_queued(request: HttpRequest, session_id: FromPath[str]) -> RunPage:
    """The waiting runs of a session, in order."""
    return await (await readable_of(request)).queued(session_id)


@post(S + "/prompts/clear", status_code=200)
async def clear_queue(request: HttpRequest, session_id: FromPath[str], client_id: ClientId = None) -> Canceled:
    """Cancel the waiting runs of a session, but not the active one. `Idempotency-Key` works as for a cancel."""
    workspace = await workspace_of(request)
    return await workspace.clear_queue(session_id, name_of(client_id), key=key_of(request))


HANDLERS = [get_agent, list_models, submit_prompt, get_session_status, cancel_session, list_queued, clear_queue]
