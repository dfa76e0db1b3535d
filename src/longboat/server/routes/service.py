"""The server itself: health, version, metrics, shutdown, API description."""

from litestar import Response, get, post

import longboat
from longboat.errors import ServerBusy
from longboat.server.routes.request import HttpRequest, app_of, read_body, takes
from longboat.wire.listings import NodePage
from longboat.wire.models import PROTOCOL, BrowserAddress, Health, Version
from longboat.wire.requests import Control


@get("/v1/health")
async def health(request: HttpRequest) -> Health:
    """Whether the server is alive and its store works."""
    return app_of(request).health()


@get("/v1/ready")
async def ready(request: HttpRequest) -> Health:
    """Whether to send clients to this server: 503 while it is leaving, or while a node of a cluster cannot reach the
    database. For load balancers."""
    return app_of(request).check_ready()


@get("/v1/version")
async def version() -> Version:
    """The version of the server and of its protocol."""
    return Version(version=longboat.__version__, protocol=PROTOCOL)


@get("/v1/metrics", media_type="text/plain")
async def metrics(request: HttpRequest) -> Response[bytes]:
    """Metrics in the Prometheus text format."""
    from longboat.server.metrics import CONTENT_TYPE, render

    app = app_of(request)
    node = "" if app.ownership.alone else app.settings.node
    return Response(render(app.gauges(), node=node), media_type=CONTENT_TYPE)


@get("/v1/nodes")
async def list_nodes(request: HttpRequest) -> NodePage:
    """The nodes that share this server's database, or this one alone."""
    return await app_of(request).nodes()


@post("/v1/control", status_code=202, opt=takes(Control))
async def control(request: HttpRequest) -> Health:
    """Stop the server. With `if_idle`, only if all runs are finished."""
    wanted = await read_body(request, Control)
    app = app_of(request)
    if wanted.if_idle and app.busy:
        raise ServerBusy("A run is not finished: wait for it, cancel it, or stop without if_idle.")
    app.request_stop()
    return Health(status="leaving")


@post("/v1/web", status_code=200)
async def open_web(request: HttpRequest) -> BrowserAddress:
    """Listen on a loopback TCP port for a browser on this machine, unless the server already listens on TCP. The port
    stays the same across restarts if possible."""
    return BrowserAddress(url=await request.app.state["loopback"].open())


@get("/v1/openapi.json")
async def openapi(request: HttpRequest) -> Response[bytes]:
    """The OpenAPI 3.1 description of this API."""
    from longboat.server.openapi import document_bytes

    return Response(document_bytes(request.app), media_type="application/json")


@get("/v1/docs", media_type="text/html")
async def docs(request: HttpRequest) -> Response[str]:
    """The documentation of this API."""
    from longboat.server.docs import HEADERS, render
    from longboat.server.openapi import document

    return Response(render(document(request.app)), media_type="text/html", headers=HEADERS)


def own_page(to: str) -> str:
    """A path of this server. Browsers treat `//host` and `/\\host` as another server."""
    plain = to.isprintable() and to.isascii() and to.startswith("/") and not to.startswith(("//", "/\\"))
    return to if plain else "/"


HANDLERS = [health, ready, version, metrics, list_nodes, control, open_web, openapi, docs]
