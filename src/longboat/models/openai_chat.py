"""The native adapter for servers with OpenAI's chat API: OpenRouter, vLLM, llama.cpp, Ollama and most others.

Owns what is sent where and how long to wait for it. Must not know turns or retries. `http_client` owns connections,
`openai_request` builds the request, `openai_reply` finds out what came, `openai_stream` reads it, `openai_refusal`
explains errors.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import msgspec

from longboat.errors import ModelError
from longboat.models.catalogue import Tariff
from longboat.models.chat_habits import UNKNOWN, ChatHabits, ChatMemory
from longboat.models.error_quotes import secrets_of
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
from longboat.models.openai_refusal import (
    Addressee,
    Complaint,
    broken_answer,
    read_body,
    refusal,
    refused_field,
    retry_after,
    ways_to_send_reasoning,
)
from longboat.models.openai_reply import Reply, read_error_body, read_reply
from longboat.models.openai_request import EFFORT, PLAIN, Dialect, encode_request, own_reasoning
from longboat.models.openai_stream import StreamReader
from longboat.models.protocol import EVERYTHING, Abilities, ModelEvent, ModelRequest, Notice, Progress, Sent
from longboat.models.providers import USER_AGENT, endpoint_url
from longboat.models.silence import silence_limit_s, silent_error, still_loading_error

CONNECT_TIMEOUT_S = 10.0
LOADING_POLL_S = 1.0
LAST_WORDS_S = 5.0
"""How long what follows a finish_reason may take, usage in most cases. Some servers send neither that nor an end."""
REST_TIMEOUT_S = 1.0
"""How long the end of a finished answer may take before its connection is given up instead of kept for the next."""


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
        idle_s: float | None = None,
        direct: bool = False,
        memory: ChatMemory | None = None,
    ) -> None:
        """`direct`: never through a proxy that the environment names. `memory` keeps what is learned of the server."""
        self.provider = provider
        self.name = name
        self.context_window = context_window
        self.abilities = abilities
        self._url = endpoint_url(base_url, "chat/completions")
        self._to = Addressee(
            provider=provider,
            model=name,
            url=_display_url(base_url),
            has_key=bool(api_key),
            secrets=secrets_of(api_key, headers or {}, base_url),
        )
        self._headers = _headers(headers or {})
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key.strip()}"
        self._dialect = dialect if abilities.effort else replace(dialect, effort=None)
        self._memory = memory
        self._habits = (memory.recall() if memory is not None else None) or UNKNOWN
        self._tariff = tariff
        self._timeouts = Timeouts(
            connect_s=CONNECT_TIMEOUT_S,
            first_s=silence_limit_s(base_url, first_token_s),
            idle_s=silence_limit_s(base_url, idle_s),
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
        left_s, told = self._timeouts.first_s, False
        dialect = usual = self._usual_dialect()
        bodies = [self._encode(request, dialect)]
        refusals: list[ModelError] = []
        yield Sent(bodies[-1])
        while isinstance(reply := await self._open(bodies[-1]), ModelError):
            if reply.code != "loading":
                refusals.append(reply)
                known, dialect = dialect, self._other_dialect(request, dialect, refusals, bodies)
                if EFFORT in dialect.refused - known.refused:
                    yield Notice(f"{self.provider}/{self.name} has no reasoning effort setting; it is ignored.")
                bodies.append(self._encode(request, dialect))
                yield Sent(bodies[-1])
                continue
            if left_s < LOADING_POLL_S:
                raise still_loading_error(reply, self.name, self._timeouts.first_s)
            if not told:
                yield Progress(f"{self.provider} is loading {self.name}.")
            left_s, told = left_s - LOADING_POLL_S, True
            await asyncio.sleep(LOADING_POLL_S)
        # Where the server holds the model to a schema, there is no place for thoughts.
        in_thought = self._habits.begins_in_thought and request.schema is None
        reader = StreamReader(self._to, tariff=self._tariff, in_thought=in_thought)
        answer = reply.answer
        try:
            await self._learn_dialect(dialect, usual)
            pieces = reply.begun
            try:
                while pieces:
                    for event in reader.feed(pieces):
                        yield event
                    pieces = b"" if reader.answered else await answer.read()
            except OSError as error:
                raise self._cut_off(error) from None
            async for event in self._ending(answer, reader):
                yield event
        finally:
            await answer.aclose()

    def _usual_dialect(self) -> Dialect:
        """As configured, else as the server was found to want it."""
        send_reasoning = self._dialect.send_reasoning or self._habits.send_reasoning
        return replace(self._dialect, send_reasoning=send_reasoning, refused=frozenset(self._habits.refused))

    def _encode(self, request: ModelRequest, dialect: Dialect) -> bytes:
        request = without_unsupported_images(request, self.abilities)
        return encode_request(request, model=self.name, dialect=dialect)

    def _other_dialect(
        self, request: ModelRequest, dialect: Dialect, refusals: list[ModelError], bodies: list[bytes]
    ) -> Dialect:
        """Another way to send this request: without a field that the server does not know, or with other reasoning.
        Only what this request has tried counts: another one may meanwhile have found what works. Raises the refusal if
        there is no other way."""
        if field := refused_field(refusals[-1], bodies[-1]):
            return replace(dialect, refused=dialect.refused | {field})
        ways = ways_to_send_reasoning(refusals[-1])
        if self._dialect.send_reasoning is None:  # else the configuration says so
            for other in (replace(dialect, send_reasoning=way) for way in ways):
                if self._encode(request, other) not in bodies:
                    return other
        # The first one is of the usual request; a later one counts if it is about something else.
        raise refusals[0] if ways else refusals[-1]

    async def _learn_dialect(self, dialect: Dialect, usual: Dialect) -> None:
        """Remember how the server took a request, if it had refused it at first."""
        if dialect == usual:
            return
        refused = tuple(sorted(dialect.refused.union(self._habits.refused)))
        habits = msgspec.structs.replace(self._habits, refused=refused)
        if self._dialect.send_reasoning is None:
            habits = msgspec.structs.replace(habits, send_reasoning=dialect.send_reasoning)
        await self._learn(habits)

    async def _ending(self, answer: Answer, reader: StreamReader) -> AsyncGenerator[ModelEvent, None]:
        """What follows once the answer is whole. What was learned is kept, and the connection read to its end, before
        the last event: the caller leaves after that one, and a connection left half-read is closed."""
        async for event in _last_words(answer, reader):
            yield event
        if reader.begins_in_thought is not None:
            await self._learn(msgspec.structs.replace(self._habits, begins_in_thought=reader.begins_in_thought))
        if reader.done:
            await _read_rest(answer)
        for event in reader.finish():
            yield event

    async def _learn(self, habits: ChatHabits) -> None:
        if habits == self._habits:
            return
        self._habits = habits
        if self._memory is not None:
            with suppress(OSError):  # then Longboat finds out again after a restart
                await asyncio.to_thread(self._memory.keep, habits)

    async def _open(self, body: bytes) -> Reply | ModelError:
        """The reply to the request, or why there is none that another request could mend: the model is being loaded,
        or the server refuses the body."""
        answer = await self._send(body)
        try:
            refused = await self._reply(answer)
            if isinstance(refused, Reply):
                return refused
        except BaseException:
            await answer.aclose()
            raise
        await answer.aclose()
        if refused.code in ("loading", "bad_request"):
            return refused
        raise refused

    async def _reply(self, answer: Answer) -> Reply | ModelError:
        if not _is_success(answer):
            return self._refusal(answer, await read_error_body(answer))
        try:
            reply = await read_reply(answer, self._to)
        except OSError as error:
            raise self._cut_off(error) from None
        return reply if isinstance(reply, Reply) else self._refusal(answer, reply.body)

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

    def _refusal(self, answer: Answer, body: bytes) -> ModelError:
        complaint = read_body(body)
        if _is_success(answer) and complaint.status is None:
            kind = answer.headers.get("content-type")
            said = complaint.message or f"It sent {kind}; is {self._to.url} the base_url of a chat API?"
            complaint = Complaint(message=f"no event stream. {said}", kind=complaint.kind)
        wait_s = retry_after(answer.headers)
        status = complaint.status if _is_success(answer) and complaint.status else answer.status
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

    def _cut_off(self, error: OSError) -> ModelError:
        if isinstance(error, ServerSilent):
            return self._silent(error)
        reason = self._to.quote(str(error) or type(error).__name__)
        return broken_answer(self._to, f"dropped the connection before the answer was complete ({reason})")

    def _silent(self, error: ServerSilent) -> ModelError:
        return silent_error(self._to.provider, self._to.model, error.seconds, began=error.began)


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    own = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",  # compressed streams arrive in blocks, long after they were said
        "User-Agent": USER_AGENT,  # firewalls refuse requests without one
    }
    replaced = {name.lower() for name in given}
    return {name: value for name, value in own.items() if name.lower() not in replaced} | dict(given)


def _display_url(base_url: str) -> str:
    """The URL as errors may show it: a user, a password or a query may hold secrets."""
    try:
        parts = urlsplit(base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "(not a URL)"


def _is_success(answer: Answer) -> bool:
    return 200 <= answer.status < 300


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
