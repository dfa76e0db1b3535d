"""Longboat's HTTP stack with no agent behind it: a prompt is decoded, committed once and answered with 202; an empty
request is answered after two commits. With a second argument, the commits are made in that PostgreSQL database."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import uvicorn
from litestar import Litestar, Request, Response, post
from litestar.datastructures import State

from benchmarks.floors.commits import Commits


class Prompt(msgspec.Struct):
    session_id: str
    prompt: str


@post("/agent", status_code=202)
async def accept(data: Prompt, state: State) -> Response[dict[str, object]]:
    await state.commits.commit(msgspec.json.encode(data))
    return Response({"session_id": data.session_id, "state": "accepted", "position": 0}, status_code=202)


@post("/cancel")
async def cancel(request: Request[object, object, State]) -> None:
    await request.app.state.commits.commit(b"cancel requested")
    await request.app.state.commits.commit(b"run finished")


@asynccontextmanager
async def _lifespan(app: Litestar) -> AsyncIterator[None]:
    if len(sys.argv) > 2:
        from benchmarks.floors.commits_postgres import PostgresCommits

        app.state.commits = PostgresCommits(sys.argv[2])
    else:
        app.state.commits = Commits(Path(sys.argv[1] + ".db"))
    yield


if __name__ == "__main__":
    uvicorn.run(
        Litestar([accept, cancel], lifespan=[_lifespan], openapi_config=None, logging_config=None),
        uds=sys.argv[1],
        loop="uvloop",
        http="httptools",
        log_level="critical",
        access_log=False,
    )
