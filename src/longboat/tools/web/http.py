"""Fetches a URL from the public web: every redirect is checked, everything is limited.

Owns what may be reached: a web page or a model must not lead a tool to what only this machine can reach, such as
itself, its network and its cloud's keys. A host name is resolved here and the connection goes to the checked address,
so it does not matter if the name resolves differently a moment later. Does not know tools or files.
"""

import asyncio
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM, gaierror
from typing import TYPE_CHECKING

from longboat import __version__
from longboat.tools.context import ToolError

if TYPE_CHECKING:
    import httpx2

MAX_HOPS = 10
MAX_ADDRESSES = 4
TIMEOUT_S = 30.0
_REDIRECTS = {301, 302, 303, 307, 308}

Permit = Callable[[str], Awaitable[None]]
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    url: str
    """Where it was found in the end."""
    status: int
    reason: str
    content_type: str
    """As the server says, without its parameters."""
    charset: str | None
    body: bytes
    is_whole: bool


class Web:
    """`allowed_networks` are private networks that may be reached, such as `10.1.0.0/16`; `verify` is for custom
    certificates."""

    def __init__(
        self,
        *,
        allowed_networks: Iterable[str] = (),
        timeout_s: float = TIMEOUT_S,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = networks(allowed_networks)
        self._timeout_s = timeout_s
        self._verify = verify

    async def get(
        self, url: str, *, limit: int, permit: Permit, accept: str = "*/*", timeout_s: float | None = None
    ) -> Page:
        """The page, of at most `limit` bytes. `permit` is asked for the URL, and again for every other host that it
        leads to. Only the time of the net counts, not that of the people asked."""
        import httpx2

        here = _checked(url)
        left_s = timeout_s = timeout_s or self._timeout_s
        await permit(str(here))
        try:
            for _ in range(MAX_HOPS):
                began = time.monotonic()
                async with asyncio.timeout(left_s):
                    found = await self._hop(here, limit, accept)
                if isinstance(found, Page):
                    return found
                left_s -= time.monotonic() - began
                if _site(found) != _site(here):
                    await permit(str(found))
                here = found
        except TimeoutError:
            raise ToolError(f"{here} did not answer within {timeout_s:g} s.") from None
        except (httpx2.HTTPError, zlib.error) as error:
            raise ToolError(f"{here} could not be fetched: {str(error) or type(error).__name__}.") from None
        raise ToolError(f"{url} redirects more than {MAX_HOPS} times.")

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> int:
        """Send a body; the status of the answer, which is not read. No redirect is followed. The addresses are checked
        as by `check_post`, and one of those that were checked is connected to."""
        import httpx2

        there = _checked(url)
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = await self._addresses_to_post(there)
                async with self._answer(there, "POST", headers, body, addresses=addresses) as response:
                    return response.status_code
        except TimeoutError:
            raise ToolError(f"{there.host} did not answer within {self._timeout_s:g} s.") from None
        except httpx2.HTTPError as error:
            raise ToolError(f"{there.host} could not be reached: {str(error) or type(error).__name__}.") from None

    async def check_post(self, url: str) -> None:
        """Raise unless the host is in the allowed networks, or is public and the URL uses https."""
        await self._addresses_to_post(_checked(url))

    async def _addresses_to_post(self, url: "httpx2.URL") -> list[str]:
        addresses = await self._resolve(url)
        if url.scheme != "https":
            addresses = [address for address in addresses if not may_reach(address)]
        if not addresses:
            raise ToolError(f"{url.host} is a public host, so the URL must use https.")
        return addresses

    async def _hop(self, url: "httpx2.URL", limit: int, accept: str) -> "Page | httpx2.URL":
        async with self._answer(url, "GET", {"Accept": accept, "Accept-Encoding": "gzip"}) as response:
            location = response.headers.get("location")
            if response.status_code in _REDIRECTS and location:
                return _checked(location, base=url)
            body, is_whole = await _read_at_most(response, limit)
            content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            return Page(
                url=str(url),
                status=response.status_code,
                reason=response.reason_phrase,
                content_type=content_type,
                charset=response.charset_encoding,
                body=body,
                is_whole=is_whole,
            )

    @asynccontextmanager
    async def _answer(
        self,
        url: "httpx2.URL",
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        addresses: Sequence[str] = (),
    ) -> "AsyncIterator[httpx2.Response]":
        """`addresses`: those that were checked already."""
        import httpx2

        addresses = addresses or await self._resolve(url)
        if self._verify is None:
            self._verify = await asyncio.to_thread(httpx2.create_ssl_context)
        # No proxy from the environment: it would resolve names in our place.
        async with httpx2.AsyncClient(trust_env=False, verify=self._verify, timeout=self._timeout_s) as client:
            for address in addresses:
                request = _request(client, method, url=url, address=address, headers=headers, body=body)
                try:
                    response = await client.send(request, stream=True)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    if address == addresses[-1]:
                        raise
                    continue
                try:
                    yield response
                finally:
                    await response.aclose()
                return

    async def _resolve(self, url: "httpx2.URL") -> list[str]:
        """The addresses of a host that may be reached. Whatever way an address is spelled, this is what it means."""
        host = url.raw_host.decode("ascii")
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.getaddrinfo(host, url.port or 0, type=SOCK_STREAM)
        except (gaierror, UnicodeError):
            raise ToolError(f"The host {host!r} was not found. Check the URL.") from None
        found = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        open_to_us = [address for address in found if may_reach(address, self._allowed)]
        if not open_to_us:
            raise ToolError(
                f"{host} is a private or local address ({', '.join(found)}), which may not be fetched. "
                "If you need it, tell the user: they can allow its network in the configuration."
            )
        return open_to_us[:MAX_ADDRESSES]


def _checked(url: str, *, base: "httpx2.URL | None" = None) -> "httpx2.URL":
    """The URL in its plain form, without fragment."""
    import httpx2

    try:
        parsed = httpx2.URL(url) if base is None else base.join(url)
        parsed.raw_host.decode("ascii")
        plain = parsed.copy_with(fragment=None)
    except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise ToolError(f"{url[:200]!r} is not a URL: {error}.") from None
    if plain.scheme not in ("http", "https") or not plain.host:
        raise ToolError(f"{url[:200]!r} is not an http or https URL; only those can be fetched.")
    if plain.userinfo:
        raise ToolError("The URL contains a user name or password. Remove it.")
    return plain


def _site(url: "httpx2.URL") -> str:
    return url.host.removeprefix("www.")


def _request(
    client: "httpx2.AsyncClient",
    method: str,
    *,
    url: "httpx2.URL",
    address: str,
    headers: Mapping[str, str],
    body: bytes | None,
) -> "httpx2.Request":
    """To the address that was checked, in the name of the host: its Host header, its certificate."""
    whole = {"Host": url.netloc.decode("ascii"), "User-Agent": f"longboat/{__version__}", **headers}
    name = {"sni_hostname": url.raw_host.decode("ascii")}
    return client.build_request(method, url.copy_with(host=address), headers=whole, content=body, extensions=name)


async def _read_at_most(response: "httpx2.Response", limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of the body, and whether that is all. Unpacked here, so that a small answer cannot fill the
    memory."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise ToolError(f"The server answered in the encoding {encoding!r}, which was not requested.")
    unpack = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    body = bytearray()
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            body += unpack.decompress(chunk, limit + 1 - len(body)) if unpack else chunk
            if len(body) > limit:
                return bytes(body[:limit]), False
    return bytes(body), True


# Which addresses may be reached

_NAT64 = ip_network("64:ff9b::/96")
_CLOSED = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind carriers' NAT; a cloud keeps its keys here
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own service on a public number
        "169.254.0.0/16",  # most clouds keep their keys here
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_OPEN_V6 = ip_network("2000::/3")
_CLOSED_V6 = tuple(ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """The networks a setting names; a ValueError says which text is none."""
    return tuple(ip_network(text, strict=False) for text in texts)


def may_reach(text: str, allowed: Iterable[Network] = ()) -> bool:
    """Whether an address is public, or in a network that the user allowed."""
    address = _inner(ip_address(text.partition("%")[0]))
    if any(address in network for network in allowed):
        return True
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED)
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only wraps."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address
