"""The native adapter for servers with OpenAI's chat API: OpenRouter, vLLM, llama.cpp, Ollama and most others.

Owns what is sent where and how long to wait for it. Must not know turns or retries. `http_client` owns connections,
`openai_request` builds the request, `openai_stream` reads the answer, `openai_refusal` explains errors.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from longboat.errors import ModelError
from longboat.models.catalogue import Tariff
from longboat.models.error_quotes import secrets_of
from longboat.models.first_token import first_token_s as limit_s
from longboat.models.first_token import silent_error
from longboat.models.http_client import (
    Answer,
    DirectHttp,
    HttpClient,
    ServerSilent,
    Timeouts,
    UnsendableRequest,
    needs_proxy,
)
from longboat.models.images import without_unsupported_images
from longboat.models.openai_refusal import Addressee, Complaint, read_body, refusal, retry_after
from longboat.models.openai_request import PLAIN, Dialect, SendReasoning, encode_request, own_reasoning, sends_reasoning
from longboat.models.openai_stream import StreamReader
from longboat.models.protocol import EVERYTHING, Abilities, ModelEvent, ModelRequest, Progress, Sent

CONNECT_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 120.0
LOADING_POLL_S = 1.0
LAST_WORDS_S = 5.0
"""How long what follows a finish_reason may take, usage in most cases. Some servers send neither that nor an end."""
REST_TIMEOUT_S = 1.0
"""How long the end of a finished answer may take before its connection is given up instead of kept for the next."""

_MAX_ERROR_BODY = 64 * 1024


class OpenAIChatModel:
    """A model behind an OpenAI-chat-compatible URL. `aclose` it when done."""

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
        first_token_s: float | None = None,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        direct: bool = False,
    ) -> None:
        """`direct`: never through a proxy that the environment names."""
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
        self._timeouts = Timeouts(
            connect_s=CONNECT_TIMEOUT_S,
            first_s=limit_s(base_url, first_token_s),
            idle_s=idle_timeout_s,
        )
        self._direct = direct
        self._client: HttpClient | None = None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """Send the request. Leaving the context before the end closes the connection at once."""
        request = own_reasoning(request, provider=self.provider, model=self.name)
        async with aclosing(self._events(request)) as events:
            yield events

    async def aclose(self) -> None:
        client, self._client = self._client, None  # first: who asks meanwhile gets a new one
        if client is not None:
            await client.aclose()

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        patience_s, told = self._timeouts.first_s, False
        body = self._encode(request)
        yield Sent(body)
        while isinstance(answer := await self._open(request, body), ModelError):
            if answer.code != "loading":
                body = self._encode(request)
                yield Sent(body)
                continue
            if patience_s < LOADING_POLL_S:
                raise answer
            if not told:
                yield Progress(f"{self.provider} is loading {self.name}.")
            patience_s, told = patience_s - LOADING_POLL_S, True
            await asyncio.sleep(LOADING_POLL_S)
        reader = StreamReader(self._to, tariff=self._tariff)
        try:
            try:
                while not reader.answered and (pieces := await answer.read()):
                    for event in reader.feed(pieces):
                        yield event
            except OSError as error:
                raise self._cut_off(error, reader) from None
            async for event in _ending(answer, reader):
                yield event
        finally:
            await answer.aclose()

    def _encode(self, request: ModelRequest) -> bytes:
        request = without_unsupported_images(request, self.abilities)
        return encode_request(request, model=self.name, dialect=self._dialect)

    async def _open(self, request: ModelRequest, body: bytes) -> Answer | ModelError:
        """The answer to the request, or why to send it again: the model is being loaded, or the server wants reasoning
        sent back in another way, as the dialect now has it."""
        answer = await self._send(body)
        try:
            if answer.status == 200 and not _is_whole_document(answer):
                return answer
            refused = await self._refusal(answer)
        except BaseException:
            await answer.aclose()
            raise
        await answer.aclose()
        if refused.code == "loading":
            return refused
        other = self._other_reasoning(refused, request)
        if other is None:
            raise refused
        self._dialect = replace(self._dialect, send_reasoning=other)
        return refused

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

    async def _send(self, body: bytes) -> Answer:
        self._client = self._client or self._make_client()
        try:
            return await self._client.post(self._headers, body)
        except UnsendableRequest:
            raise ModelError(
                f"The request to {self._to.provider} cannot be sent: its base_url {self._to.url}, its key or one of its"
                " headers contains characters that HTTP does not allow. Check them in longboat.json.",
                title="The provider's settings are wrong",
                code="bad_request",
            ) from None
        except OSError as error:
            raise self._unreachable(error) from None

    async def _refusal(self, answer: Answer) -> ModelError:
        complaint = read_body(await _bounded_body(answer))
        if answer.status == 200 and complaint.status is None:
            kind = answer.headers.get("content-type")
            said = complaint.message or f"It sent {kind}; is {self._to.url} the base_url of a chat API?"
            complaint = Complaint(message=f"no event stream. {said}", kind=complaint.kind)
        wait_s = retry_after(answer.headers)
        status = complaint.status if answer.status == 200 and complaint.status else answer.status
        return refusal(status, complaint, self._to, retry_after_s=wait_s)

    def _make_client(self) -> HttpClient:
        if self._direct or not needs_proxy(self._url):
            return DirectHttp(self._url, self._timeouts)
        from longboat.models.proxied_http import ProxiedHttp

        return ProxiedHttp(self._url, self._timeouts)

    def _unreachable(self, error: OSError) -> ModelError:
        if isinstance(error, ServerSilent):
            return self._silent(error)
        reason = str(error) or type(error).__name__
        return ModelError(
            f"{self._to.provider} at {self._to.url} cannot be reached: {self._to.quote(reason)}",
            title="The provider cannot be reached",
            code="unreachable",
            retryable=True,
        )

    def _cut_off(self, error: OSError, reader: StreamReader) -> ModelError:
        if isinstance(error, ServerSilent):
            return self._silent(error)
        reason = str(error) or type(error).__name__
        return reader.broken(f"dropped the connection before the answer was complete ({self._to.quote(reason)})")

    def _silent(self, error: ServerSilent) -> ModelError:
        return silent_error(self._to.provider, self._to.model, error.seconds, began=error.began)


def _display_url(base_url: str) -> str:
    """The URL as errors may show it: a user, a password or a query may hold secrets."""
    try:
        parts = urlsplit(base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "(not a URL)"


def _is_whole_document(answer: Answer) -> bool:
    """Some servers refuse with status 200, and a wrong base_url often leads to a web page."""
    kind = answer.headers.get("content-type", "")
    return kind.startswith(("application/json", "text/html"))


async def _bounded_body(answer: Answer) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            while len(body) <= _MAX_ERROR_BODY and (pieces := await answer.read()):
                body += pieces
    except OSError:
        pass  # the status alone has to do
    return body[:_MAX_ERROR_BODY]


async def _ending(answer: Answer, reader: StreamReader) -> AsyncGenerator[ModelEvent, None]:
    async for event in _last_words(answer, reader):
        yield event
    if reader.done:
        # Before the last event: whoever has that one leaves, and a connection left half-read is closed.
        await _read_rest(answer)
    for event in reader.finish():
        yield event


async def _last_words(answer: Answer, reader: StreamReader) -> AsyncGenerator[ModelEvent, None]:
    """What follows a finish_reason, if it comes soon: usage, the end, and more of the answer from the few servers that
    name a reason with every chunk."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LAST_WORDS_S
    while not reader.done:
        try:
            async with asyncio.timeout_at(until):
                pieces = await answer.read()
        except OSError:
            return
        if not pieces:
            return
        for event in reader.feed(pieces):
            until = loop.time() + LAST_WORDS_S
            yield event


async def _read_rest(answer: Answer) -> None:
    """Read to the end, so that the connection can serve the next request; a server that dawdles loses it."""
    try:
        async with asyncio.timeout(REST_TIMEOUT_S):
            while await answer.read():
                pass
    except OSError:
        pass
