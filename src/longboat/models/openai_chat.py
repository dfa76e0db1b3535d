"""The native adapter for servers with OpenAI's chat API: OpenRouter, vLLM, llama.cpp, Ollama and most others.

Owns the HTTP of a model request: connect, time out, close. Must not know turns or retries. `openai_request` builds the
request, `openai_stream` reads the answer, `openai_refusal` explains errors.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import httpx2

from longboat.errors import ModelError
from longboat.models.catalogue import Tariff
from longboat.models.error_quotes import secrets_of
from longboat.models.images import without_unsupported_images
from longboat.models.openai_refusal import Addressee, Complaint, read_body, refusal, retry_after
from longboat.models.openai_request import PLAIN, Dialect, SendReasoning, encode_request, own_reasoning, sends_reasoning
from longboat.models.openai_stream import StreamReader
from longboat.models.protocol import EVERYTHING, Abilities, ModelEvent, ModelRequest

CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 120.0
REST_TIMEOUT_S = 1.0
"""How long the end of a finished answer may take before its connection is given up instead of kept for the next."""
IDLE_CONNECTIONS = 8
"""Kept for the next requests. The pool probes each of them at every request: very many cost more than they save."""

_MAX_ERROR_BODY = 64 * 1024


class OpenAIChatModel:
    """A model behind an OpenAI-chat-compatible URL. Give it a shared client, or `aclose` it when done."""

    def __init__(
        self,
        *,
        provider: str,
        name: str,
        base_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        context_window: int = 128_000,
        abilities: Abilities = EVERYTHING,
        dialect: Dialect = PLAIN,
        tariff: Tariff | None = None,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.provider = provider
        self.name = name
        self.context_window = context_window
        self.abilities = abilities
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._to = Addressee(
            provider=provider,
            model=name,
            url=_display_url(base_url),
            has_key=bool(api_key),
            secrets=secrets_of(api_key, headers or {}, base_url),
        )
        # Compressed streams arrive in blocks, long after they were said.
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key.strip()}"
        self._dialect = dialect if abilities.effort else replace(dialect, effort=None)
        self._tariff = tariff
        self._timeout = httpx2.Timeout(idle_timeout_s, connect=CONNECT_TIMEOUT_S, pool=None)
        self._client = client
        self._own_client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """Send the request. Leaving the context before the end closes the connection at once."""
        request = own_reasoning(request, provider=self.provider, model=self.name)
        response = await self._open(request)
        try:
            async with aclosing(self._events(response)) as events:
                yield events
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the client, if it is our own."""
        client, self._own_client = self._own_client, None  # first: who asks meanwhile gets a new one
        if client is not None:
            await client.aclose()

    async def _open(self, request: ModelRequest) -> httpx2.Response:
        """The answer to the request. A server that wants reasoning sent back in another way is asked once more."""
        response = await self._send(request)
        try:
            if response.status_code == 200 and not _is_whole_document(response):
                return response
            refused = await self._refusal(response)
        except BaseException:
            await response.aclose()
            raise
        await response.aclose()
        other = self._other_reasoning(refused, request)
        if other is None:
            raise refused
        self._dialect = replace(self._dialect, send_reasoning=other)
        return await self._open(request)

    def _other_reasoning(self, refused: ModelError, request: ModelRequest) -> SendReasoning | None:
        """What may please a server that refused the request because of the reasoning in it, or for lack of it."""
        said = refused.message.lower()
        if refused.code != "bad_request" or "reasoning" not in said or "effort" in said:
            return None
        if self._dialect.send_reasoning != "turn":
            return None  # the configuration says so, or it was tried
        if sends_reasoning(request, "turn"):
            return "never"
        return "always" if sends_reasoning(request, "always") else None

    async def _send(self, request: ModelRequest) -> httpx2.Response:
        body = encode_request(
            without_unsupported_images(request, self.abilities), model=self.name, dialect=self._dialect
        )
        try:
            client = self._client or self._make_client()
            post = client.build_request("POST", self._url, content=body, headers=self._headers, timeout=self._timeout)
            return await client.send(post, stream=True)
        except (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError):
            # The library's own message would quote the header, which may be the key.
            raise ModelError(
                f"The request to {self._to.provider} cannot be sent: its base_url {self._to.url}, its key or one of its"
                " headers contains characters that HTTP does not allow. Check them in longboat.json.",
                title="The provider's settings are wrong",
                code="bad_request",
            ) from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._unreachable(error) from None

    def _make_client(self) -> httpx2.AsyncClient:
        if self._own_client is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS)
            self._own_client = httpx2.AsyncClient(limits=limits)
        return self._own_client

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[ModelEvent, None]:
        reader = StreamReader(self._to, tariff=self._tariff)
        async with aclosing(response.aiter_bytes()) as pieces:
            try:
                async for piece in pieces:
                    for event in reader.feed(piece):
                        yield event
                    if reader.done:
                        break
            except (httpx2.HTTPError, OSError) as error:
                if not reader.answered:
                    raise self._cut_off(error, reader) from None
            # Before the last event: whoever has that one leaves, and a connection left half-read is closed.
            await _read_rest(pieces)
            for event in reader.finish():
                yield event

    async def _refusal(self, response: httpx2.Response) -> ModelError:
        complaint = read_body(await _bounded_body(response))
        if response.status_code == 200 and complaint.status is None:
            kind = response.headers.get("content-type")
            said = complaint.message or f"It sent {kind}; is {self._to.url} the base_url of a chat API?"
            complaint = Complaint(message=f"no event stream. {said}", kind=complaint.kind)
        wait_s = retry_after(response.headers)
        status = complaint.status if response.status_code == 200 and complaint.status else response.status_code
        return refusal(status, complaint, self._to, retry_after_s=wait_s)

    def _unreachable(self, error: Exception) -> ModelError:
        if isinstance(error, httpx2.ReadTimeout):
            return self._silent()
        reason = str(error) or type(error).__name__
        return ModelError(
            f"{self._to.provider} at {self._to.url} cannot be reached: {self._to.quote(reason)}",
            title="The provider cannot be reached",
            code="unreachable",
            retryable=True,
        )

    def _cut_off(self, error: Exception, reader: StreamReader) -> ModelError:
        if isinstance(error, httpx2.ReadTimeout):
            return self._silent()
        reason = str(error) or type(error).__name__
        return reader.broken(f"dropped the connection before the answer was complete ({self._to.quote(reason)})")

    def _silent(self) -> ModelError:
        return ModelError(
            f"{self._to.provider} sent nothing for {self._timeout.read:g} s.",
            title="The provider stopped responding",
            code="timeout",
            retryable=True,
        )


def _display_url(base_url: str) -> str:
    """The URL as errors may show it: a user, a password or a query may hold secrets."""
    try:
        return str(httpx2.URL(base_url).copy_with(userinfo=b"", query=None))
    except httpx2.InvalidURL:
        return "(not a URL)"


def _is_whole_document(response: httpx2.Response) -> bool:
    """Some servers refuse with status 200, and a wrong base_url often leads to a web page."""
    kind = response.headers.get("content-type", "")
    return kind.startswith(("application/json", "text/html"))


async def _bounded_body(response: httpx2.Response) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S), aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > _MAX_ERROR_BODY:
                    break
    except (httpx2.HTTPError, OSError, TimeoutError):
        pass  # the status alone has to do
    return body[:_MAX_ERROR_BODY]


async def _read_rest(pieces: AsyncIterator[bytes]) -> None:
    """Read to the end, so that the connection can serve the next request; a server that dawdles loses it."""
    try:
        async with asyncio.timeout(REST_TIMEOUT_S):
            async for _ in pieces:
                pass
    except (httpx2.HTTPError, OSError, TimeoutError):
        pass
