"""Requests through the proxy that the environment names: HTTP or SOCKS, with or without TLS. A general client knows
them all, and here the proxy costs more than the client. Used where `http_client.DirectHttp` cannot be."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

import httpx2

from longboat.models.http_client import MAX_IDLE, Answer, ServerSilent, Timeouts, UnsendableRequest


class ProxiedHttp:
    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self._url = url
        # One limit for all reading: this client cannot tell the first piece from the others.
        read_s = max(timeouts.first_s, timeouts.idle_s)
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=MAX_IDLE),
            timeout=httpx2.Timeout(read_s, connect=timeouts.connect_s, pool=None),
        )
        self._read_s = read_s

    async def post(self, headers: Mapping[str, str], body: bytes) -> Answer:
        with _plain_errors(self._read_s):
            request = self._client.build_request("POST", self._url, content=body, headers=dict(headers))
            return _ProxiedAnswer(await self._client.send(request, stream=True), self._read_s)

    async def aclose(self) -> None:
        await self._client.aclose()


class _ProxiedAnswer:
    def __init__(self, response: httpx2.Response, read_s: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._pieces: AsyncIterator[bytes] = response.aiter_bytes()
        self._read_s = read_s
        self._began = False

    async def read(self) -> bytes:
        with _plain_errors(self._read_s, began=self._began):
            pieces = await anext(self._pieces, b"")
        self._began = True
        return pieces

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _plain_errors(read_s: float, *, began: bool = False) -> Iterator[None]:
    """The library's errors as the ones that `DirectHttp` has."""
    try:
        yield
    except httpx2.ReadTimeout:
        raise ServerSilent(read_s, began=began) from None
    except (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError):
        raise UnsendableRequest from None
    except httpx2.HTTPError as error:
        raise ConnectionError(str(error) or type(error).__name__) from None
