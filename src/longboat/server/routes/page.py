"""The web page: its files, the login for browsers, and text rendered as HTML."""

from typing import Annotated
from urllib.parse import parse_qs

from litestar import Response, get, post
from litestar.params import FromPath, FromQuery, QueryParameter

from longboat.errors import BadInput, BodyTooLarge, LongboatError, NotFound, Unauthorized
from longboat.server.auth import Policy, address_of, check_form_size
from longboat.server.errors import refusal
from longboat.server.routes.request import HttpRequest, read_body, read_bytes, takes
from longboat.server.routes.service import own_page
from longboat.server.wrong_tokens import WrongTokens
from longboat.wire.requests import Render
from longboat.wire.workspace_state import Rendered, RenderedItem

To = Annotated[str, QueryParameter(max_length=2_048, description="Where to go after the login: a path of this server.")]

MAX_TEXT = 2_000_000
"""The most characters in all items of a request together."""
WRONG = "Wrong token. `longboat web --no-open` on the server prints the right one."


def _file(request: HttpRequest, name: str) -> Response[bytes]:
    from longboat.server.page import HEADERS, asset

    found = asset(name)
    if found is None:
        raise NotFound(f"The page has no file {name[:200]!r}.", code="not_found")
    headers = {**HEADERS, "etag": found.etag}
    if found.is_held(request.headers.get("if-none-match", "")):
        return Response(b"", status_code=304, headers=headers, media_type=found.media_type)
    return Response(found.body, headers=headers, media_type=found.media_type)


@get("/", media_type="text/html")
async def page(request: HttpRequest) -> Response[bytes]:
    """The web page, or the login page without a token."""
    return _file(request, "index.html")


@get("/stats", media_type="text/html")
async def stats_page(request: HttpRequest) -> Response[bytes]:
    """The statistics page."""
    return _file(request, "stats.html")


@get("/nodes", media_type="text/html")
async def nodes_page(request: HttpRequest) -> Response[bytes]:
    """The page of the servers that share a database."""
    return _file(request, "nodes.html")


@get("/assets/{name:path}", media_type="text/plain")
async def page_file(request: HttpRequest, name: FromPath[str]) -> Response[bytes]:
    """A file of the page."""
    return _file(request, str(name).removeprefix("/"))


@get("/login", status_code=303, media_type="text/html")
async def login(request: HttpRequest, token: FromQuery[str] = "", to: To = "/") -> Response[bytes]:
    """Exchange the token for a cookie and redirect to a page of this server."""
    if not _policy(request).is_token(token.encode("utf-8", "surrogateescape")):
        raise _wrong(request)
    return _welcome(request, to)


@post("/login", status_code=303, media_type="text/html", opt={"form": ("token",), "refused_as": "text/html"})
async def login_by_form(request: HttpRequest) -> Response[bytes]:
    """The same for the login form, which keeps the token out of the address."""
    from longboat.server.page import LOGIN_HEADERS, login_page

    body = await read_bytes(request)
    check_form_size(len(body))
    try:
        given = parse_qs(body.decode("ascii"), max_num_fields=10).get("token", [""])[0].strip()
    except ValueError:
        raise BadInput("Not a login form: send token=….") from None
    if _policy(request).is_token(given.encode("utf-8", "surrogateescape")):
        return _welcome(request)
    answer = refusal(_wrong(request))
    headers = {**LOGIN_HEADERS, **answer.headers}
    return Response(
        login_page(answer.message).encode(), status_code=answer.status, headers=headers, media_type="text/html"
    )


def _wrong(request: HttpRequest) -> LongboatError:
    """The error for a wrong token."""
    wrong_tokens: WrongTokens = request.app.state["wrong_tokens"]
    return wrong_tokens.count(address_of(request.scope)) or Unauthorized(WRONG)


def _policy(request: HttpRequest) -> Policy:
    policy: Policy = request.app.state["policy"]
    return policy


def _welcome(request: HttpRequest, to: str = "/") -> Response[bytes]:
    server = request.scope.get("server")
    policy = _policy(request)
    secure = policy.came_by_tls(request.scope["headers"])
    headers = {
        "set-cookie": policy.cookie(local_port=server[1] if server else None, secure=secure),
        "location": own_page(to),
        # The address may contain the token: do not pass it on.
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    return Response(b"", status_code=303, headers=headers, media_type="text/html")


@post("/v1/render", status_code=200, opt=takes(Render))
async def render_text(request: HttpRequest) -> Rendered:
    """Render Markdown, code and diffs as safe HTML with classes for syntax colors. Text that takes too long to render
    is returned as plain text. At most 2,000,000 characters in all items together."""
    wanted = await read_body(request, Render)
    if sum(len(item.text) for item in wanted.items) > MAX_TEXT:
        raise BodyTooLarge(f"The items have more than {MAX_TEXT:,} characters together. Send them in several requests.")
    made = await request.app.state["renderer"].render(wanted.items)
    return Rendered(items=tuple(RenderedItem(html=html) for html in made))


HANDLERS = [page, stats_page, nodes_page, page_file, login, login_by_form, render_text]
