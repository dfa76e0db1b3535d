"""The server itself: health, version, metrics, stopping it, its description, and the way in for a browser."""

from litestar import Response, get, post
from litestar.params import FromQuery
from litestar.response import Redirect

import longboat
from longboat.errors import ServerBusy, Unauthorized
from longboat.server.auth import Policy
from longboat.server.bodies import read_body
from longboat.server.routes.request import HttpRequest, app_of, takes
from longboat.wire.models import PROTOCOL, Health, Version
from longboat.wire.requests import Control


@get("/v1/health")
async def health(request: HttpRequest) -> Health:
    """Whether the server is alive and its store works."""
    return app_of(request).health()


@get("/v1/version")
async def version() -> Version:
    """The server's version and the number of the protocol it speaks."""
    return Version(version=longboat.__version__, protocol=PROTOCOL)


@get("/v1/metrics", media_type="text/plain")
async def metrics(request: HttpRequest) -> Response[bytes]:
    """Prometheus text."""
    from longboat.server.metrics import CONTENT_TYPE, render

    return Response(render(app_of(request).gauges()), media_type=CONTENT_TYPE)


@post("/v1/control", status_code=202, opt=takes(Control))
async def control(request: HttpRequest) -> Health:
    """Stop the server. With `if_idle`, only if no run is unfinished."""
    wanted = await read_body(request, Control)
    app = app_of(request)
    if wanted.if_idle and app.busy:
        raise ServerBusy("A run is unfinished: wait for it, cancel it, or stop without if_idle.")
    app.request_stop()
    return Health(status="leaving")


@get("/v1/openapi.json")
async def openapi(request: HttpRequest) -> Response[bytes]:
    """This API in OpenAPI 3.1."""
    from longboat.server.openapi import document_bytes

    return Response(document_bytes(request.app), media_type="application/json")


@get("/v1/docs", media_type="text/html")
async def docs(request: HttpRequest) -> Response[str]:
    """This API for people."""
    from longboat.server.docs import HEADERS, render
    from longboat.server.openapi import document

    return Response(render(document(request.app)), media_type="text/html", headers=HEADERS)


@get("/login", status_code=303, media_type="text/html")
async def login(request: HttpRequest, token: FromQuery[str] = "") -> Redirect:
    """Trade the token for a browser's cookie."""
    policy: Policy = request.app.state["policy"]
    if not policy.is_token(token.encode("utf-8", "surrogateescape")):
        raise Unauthorized("This token is not the server's: its discovery file has the right one.")
    server = request.scope.get("server")
    headers = {
        "set-cookie": policy.cookie(local_port=server[1] if server else None),
        # The address bar held the token: it goes no further.
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    return Redirect("/", status_code=303, headers=headers)


@get("/", status_code=303, media_type="text/html")
async def front() -> Redirect:
    """The way to the page for people."""
    return Redirect("/v1/docs", status_code=303)


HANDLERS = [health, version, metrics, control, openapi, docs, login, front]
