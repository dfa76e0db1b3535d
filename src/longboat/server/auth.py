"""Who may call. Pure decisions based on headers and addresses, and the thin ASGI layer that applies them.

A request over the unix socket is trusted: the socket's file mode protects it. Over TCP, the Host must be ours
(otherwise a foreign DNS name could lead a browser here), an Origin must be the same site, and the token must be right.
A loopback address proves nothing: every user and every web page on the machine has one.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from longboat.errors import (
    BodyTooLarge,
    ForeignHost,
    ForeignOrigin,
    LengthRequired,
    LongboatError,
    TooManyAttempts,
    Unauthorized,
)
from longboat.server.connection import ADMISSION, Admission
from longboat.server.errors import JSON_HEADERS, refusal
from longboat.server.wrong_tokens import WrongTokens

PUBLIC_PATHS = frozenset({"/v1/health", "/v1/ready", "/login"})
"""What needs no token: it tells nothing, or is where a browser brings it."""

PAGE_PATHS = frozenset({"/", "/stats", "/nodes"})
"""What a person opens in a browser: without the token, it asks for it."""

LOGIN_FORM = ("POST", "/login")
"""The only request whose body is read without a token."""
MAX_FORM = 4_096

_LOOKED_AT = frozenset({b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site", b"x-forwarded-proto"})
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Authority:
    """A host and port as written in Host and Origin."""

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "Authority | None":
        """None if it is not a plain `host[:port]`."""
        if not text or any(char in text for char in "/@?#\\") or not text.isprintable() or " " in text:
            return None
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        return cls(_plain(host), port) if host else None


def _plain(host: str) -> str:
    """One spelling of a host: lower case, no final dot, addresses in their shortest form."""
    host = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The server's settings for authentication."""

    token: str
    listen_host: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    cluster: str = ""
    """What the nodes of a cluster have in common, and no other server: a browser is logged in at all of them."""

    def check(self, *, local: tuple[str, int], path: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Raise unless a TCP request to our address `local` may continue. True if it has the token."""
        found = _pick(headers)
        host = self.check_host(found.get("host", []), local_address=local[0])
        for origin in found.get("origin", []):
            self.check_origin(origin, host=host, by_tls=self._is_by_tls(host, found))
        if not found.get("origin") and path not in PAGE_PATHS | PUBLIC_PATHS:  # where a link from anywhere may lead
            self.check_site(found.get("sec-fetch-site", []))
        known = self._is_known(found, local_port=local[1])
        if not known and path not in PUBLIC_PATHS:
            raise Unauthorized(
                "TCP requests need a token: send `Authorization: Bearer …` with the token from the server's "
                "discovery file, or open /login?token=… in a browser."
            )
        return known

    def check_host(self, values: list[str], *, local_address: str) -> Authority:
        """The one Host, if it names an address we listen on or a name the owner allowed."""
        host = Authority.parse(values[0]) if len(values) == 1 else None
        if host is None or not (self._is_listening(host.host, _plain(local_address)) or self._is_allowed(host)):
            raise ForeignHost(
                f"This server does not accept the Host {', '.join(values)[:200]!r}: "
                "add the name to server.allowed_hosts in your longboat.json."
            )
        return host

    def check_site(self, values: list[str]) -> None:
        """A browser tells whether another page made it ask, also where it sends no Origin: for a picture, for one."""
        if any(value not in ("same-origin", "none") for value in values):
            raise ForeignOrigin("Pages of other sites may not call this server.")

    def check_origin(self, value: str, *, host: Authority, by_tls: bool = False) -> None:
        """A page may call only the server it came from. Another port of the same machine is another origin, also of a
        name that is allowed: unless it is allowed with that port, for a proxy that does not hand on the Host."""
        scheme, _, rest = value.partition("://")
        origin = Authority.parse(rest) if scheme in _PORTS else None
        if origin is not None:
            # Of a Host without a port, only the scheme tells which one was called.
            ours = Authority(host.host, host.port or _PORTS[scheme])
            origin = Authority(origin.host, origin.port or _PORTS[scheme])
            if (origin == ours and not (by_tls and scheme != "https")) or origin in self._allowed():
                return
        raise ForeignOrigin(
            f"A page of {value[:200]!r} may not call this server. If it is the server's own page behind a proxy, let "
            "the proxy pass on the Host, or add the name with its port to server.allowed_hosts in your longboat.json."
        )

    def is_token(self, given: bytes) -> bool:
        """In constant time. An empty token opens nothing."""
        return bool(self.token) and hmac.compare_digest(given, self.token.encode())

    def cookie(self, *, local_port: int | None, secure: bool = False) -> str:
        """The Set-Cookie value for a browser that brought the token. `secure`: it may come back over TLS only."""
        pair = f"{self._cookie_name(local_port)}={self._cookie_value()}"
        return f"{pair}; HttpOnly; SameSite=Lax; Path=/{'; Secure' if secure else ''}"

    def came_by_tls(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a reverse proxy says that the browser came to it over TLS. Believed under an allowed name alone: by
        the others no proxy reaches us, and a browser without TLS would throw a secure cookie away."""
        found = _pick(headers)
        host = Authority.parse(found.get("host", [""])[0])
        return host is not None and self._is_by_tls(host, found)

    def _is_by_tls(self, host: Authority, found: Mapping[str, list[str]]) -> bool:
        return self._is_allowed(host) and found.get("x-forwarded-proto") == ["https"]

    def _cookie_value(self) -> str:
        """Derived from the token: a stolen cookie works in a browser, but does not reveal the token."""
        return hmac.digest(self.token.encode(), b"longboat cookie", hashlib.sha256).hex()

    def _is_known(self, found: Mapping[str, list[str]], *, local_port: int) -> bool:
        for value in found.get("authorization", []):
            scheme, _, given = value.partition(" ")
            if scheme.lower() == "bearer":
                return self.is_token(given.strip().encode("latin-1"))
        given = _cookie(found.get("cookie", []), self._cookie_name(local_port))
        return bool(self.token and given) and hmac.compare_digest(
            given.encode("latin-1"), self._cookie_value().encode()
        )

    def shows_token(self, *, local_port: int, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether the caller shows any token or cookie for this server, right or wrong."""
        found = _pick(headers)
        return bool(found.get("authorization") or _cookie(found.get("cookie", []), self._cookie_name(local_port)))

    def _cookie_name(self, local_port: int | None) -> str:
        """One per port: two servers on one host would else log each other's browsers out. One for all nodes of a
        cluster: behind a load balancer, each request of a browser may go to another."""
        return f"longboat_{self.cluster or local_port or 0}"

    def _is_listening(self, host: str, local: str) -> bool:
        if host == local or (self.listen_host is not None and host == _plain(self.listen_host)):
            return True
        return _is_loopback(local) and host in _LOCAL_NAMES

    def _is_allowed(self, host: Authority) -> bool:
        """An allowed name without a port is answered to at every port."""
        ports = {None, host.port} if host.port is not None else {None, *_PORTS.values()}
        return any(it.host == host.host and it.port in ports for it in self._allowed())

    def _allowed(self) -> list[Authority]:
        return [it for it in map(Authority.parse, self.allowed_hosts) if it is not None]


def _pick(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        if name in _LOOKED_AT:
            found.setdefault(name.decode(), []).append(value.decode("latin-1"))
    return found


def _cookie(values: list[str], name: str) -> str:
    """By hand: other programs on this host set cookies too, and a strict parser stops at the first odd one."""
    for pair in "; ".join(values).split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return ""


class Gate:
    """The ASGI layer in front of all routes."""

    def __init__(
        self,
        app: ASGIApp,
        policy: Policy,
        wrong_tokens: WrongTokens,
        *,
        is_from_node: Callable[[Any], bool | None] = lambda _: None,
    ) -> None:
        """`is_from_node`: whether another node of the cluster hands a request on; None: it does not say so."""
        self._is_from_node = is_from_node
        self._app = app
        self._policy = policy
        self._wrong_tokens = wrong_tokens

    def judge(self, scope: Any) -> Admission:
        """Decide about a request by its head alone. Called once per request, before its body is read."""
        if _is_unix(scope.get("server")):
            return Admission(known=True, takes_body=True)
        if (from_node := self._is_from_node(scope)) is not None:
            wrong = None if from_node else Unauthorized("No node of this cluster has signed this request.")
            return Admission(known=from_node, takes_body=from_node, refusal=wrong)
        local = _local(scope.get("server"))
        try:
            known = self._policy.check(local=local, path=scope["path"], headers=scope["headers"])
            if not known and (scope["method"], scope["path"]) == LOGIN_FORM:
                _check_form(scope["headers"])
                return Admission(known=False, takes_body=True)
        except Unauthorized as error:
            shown = self._policy.shows_token(local_port=local[1], headers=scope["headers"])
            too_many = self._wrong_tokens.count(address_of(scope)) if shown else None
            return Admission(known=False, takes_body=False, refusal=too_many or error)
        except LongboatError as error:
            return Admission(known=False, takes_body=False, refusal=error)
        return Admission(known=known, takes_body=known)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            return
        error = scope["state"][ADMISSION].refusal
        if error is None:
            await self._app(scope, receive, send)
        elif isinstance(error, Unauthorized | TooManyAttempts) and _is_page(scope):
            await _ask_for_token(error, send)
        else:
            await refuse(error, send)


def _check_form(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise unless the body is short enough for a login form, and says so beforehand."""
    found = dict(headers)
    if b"transfer-encoding" in found:
        raise LengthRequired("Send the login form with a Content-Length.")
    check_form_size(int(found.get(b"content-length", b"0")))


def check_form_size(size: int) -> None:
    if size > MAX_FORM:
        raise BodyTooLarge(f"A login form may be at most {MAX_FORM >> 10} KB.")


def address_of(scope: Any) -> str:
    """The caller's address; of a reverse proxy, if there is one."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _is_unix(server: Any) -> bool:
    """uvicorn gives the socket's path and no port. What has neither path nor port is not trusted."""
    return server is not None and bool(server[0]) and server[1] is None


def _local(server: Any) -> tuple[str, int]:
    return (server[0], server[1] or 0) if server is not None else ("", 0)


def _is_page(scope: Any) -> bool:
    """Whether a person looks at this in a browser."""
    return scope["path"] in PAGE_PATHS and scope["method"] == "GET"


async def _ask_for_token(error: LongboatError, send: Send) -> None:
    from longboat.server.page import LOGIN_HEADERS, login_page

    answer = refusal(error)
    told = answer.message if isinstance(error, TooManyAttempts) else ""
    await _send(send, answer.status, login_page(told).encode(), {**LOGIN_HEADERS, **answer.headers})


async def refuse(error: LongboatError, send: Send) -> None:
    answer = refusal(error)
    body = msgspec.json.encode(answer.body)
    await _send(send, answer.status, body, {**JSON_HEADERS, **answer.headers})


async def _send(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    whole = {"content-length": str(len(body)), **headers}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in whole.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
