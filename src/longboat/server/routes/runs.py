"""Runs: list them, wait for one, cancel one, edit a waiting one, see what one sent to models."""

import re
from typing import Annotated

from litestar import get, patch, post
from litestar.params import FromPath, FromQuery, QueryParameter

from longboat.server.routes.request import (
    After,
    ClientId,
    HttpRequest,
    Limit,
    W,
    name_of,
    read_body,
    readable_of,
    takes,
    workspace_of,
)
from longboat.wire.model_requests import SentRequestBody, SentRequests
from longboat.wire.models import Run, RunPage, RunState
from longboat.wire.requests import EditRun

ONE = W + "/runs/{run_id:str}"

State = Annotated[RunState | None, QueryParameter(name="state", description="Only runs in this state.")]
Wait = Annotated[float, QueryParameter(ge=0, le=60, description="Seconds to wait for the run to finish.")]


@get(W + "/runs")
async def list_runs(
    request: HttpRequest,
    run_state: State = None,
    session_id: FromQuery[str | None] = None,
    limit: Limit = 100,
    after: After = None,
) -> RunPage:
    """The runs of a workspace, newest first."""
    workspace = await readable_of(request)
    return await workspace.runs(state=run_state, session_id=session_id, limit=limit, after=after)


@get(ONE)
async def get_run(request: HttpRequest, run_id: FromPath[str], wait: Wait = 0.0) -> Run:
    """One run, immediately or when it is finished."""
    return await (await readable_of(request)).run(run_id, wait_s=wait)


@post(ONE + "/cancel", status_code=200)
async def cancel_run(request: HttpRequest, run_id: FromPath[str], client_id: ClientId = None) -> Run:
    """Cancel one run in any state. Does nothing if it is finished. With client_id, others see who canceled it."""
    return await (await workspace_of(request)).cancel_run(run_id, name_of(client_id))


@patch(ONE, opt=takes(EditRun))
async def edit_run(request: HttpRequest, run_id: FromPath[str]) -> Run:
    """Change the prompt or the delivery of a run that is accepted or queued."""
    wanted = await read_body(request, EditRun)
    return await (await workspace_of(request)).edit_run(run_id, wanted)


@get(ONE + "/requests")
async def list_model_requests(request: HttpRequest, run_id: FromPath[str]) -> SentRequests:
    """What the run sent to models: every request and every retry, with its size and tokens by part."""
    return await (await readable_of(request)).ledger.requests(run_id)


@get(ONE + "/requests/{number:str}")
async def get_model_request(request: HttpRequest, run_id: FromPath[str], number: FromPath[str]) -> SentRequestBody:
    """One of these requests with its body: system prompt, tools and messages. Headers and keys are not stored;
    attachments are replaced by their size."""
    known = re.fullmatch("[1-9][0-9]{0,8}", number)
    return await (await readable_of(request)).ledger.request(run_id, int(number) if known else 0)


HANDLERS = [list_runs, get_run, cancel_run, edit_run, list_model_requests, get_model_request]
