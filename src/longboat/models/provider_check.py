"""Checks whether a provider works with a key and an address: one cheap request for its list of models. A server
without such a list gets an empty chat request, which tells it from a wrong address.

Owns what a refusal means for a person who sets up the provider. Stores nothing. Sends the key only to the given
address, and follows no redirects. Holds no thread while it waits, so a slow server delays no one else (E5).
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpx2

from longboat.config.settings import ModelEntry, ProviderSection
from longboat.models.adapters import Access, defaults_of
from longboat.models.error_quotes import quote_error, secrets_of
from longboat.models.model_list import ListRequest, Refused, fetch_bounded, headers_of, list_request, read_models
from longboat.models.openai_refusal import read_body
from longboat.models.providers import KNOWN, USER_AGENT, endpoint_url, without_chat_path
from longboat.models.refreshed_catalogue import Listed

CHECK_S = 10.0
"""For the whole check."""
MAX_MODELS = 300
MAX_SAID = 200
MAX_REFUSAL = 64 * 1024

_OTHER_KINDS = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|imagen|audio|realtime|transcri|rerank|guard|sora|veo|davinci|babbage"
    r"|ocr|speech|music|lyria|aqa",
    re.IGNORECASE,
)
"""Models that do not hold a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    problem: str | None = None
    base_url: str | None = None
    """The address that worked."""
    models: tuple[ModelEntry, ...] = ()
    """Empty: the server has no list."""
    is_elsewhere: bool = False
    """A server answers, but not as a provider would at this address."""
    has_no_list: bool = False
    """It says so itself (404). It may still have a chat."""


async def check(title: str, section: ProviderSection, access: Access, *, within_s: float = CHECK_S) -> Checked:
    """`title`: how a person calls the provider."""
    until = asyncio.get_running_loop().time() + within_s
    if section.type == "openai-compatible" and access.base_url:
        access = replace(access, base_url=without_chat_path(access.base_url))
    found = await _try(title, section, access, until, _list)
    if not found.is_elsewhere or section.type != "openai-compatible":
        return found
    tried, base = [(access, found)], (access.base_url or "").rstrip("/")
    if not base.endswith("/v1"):  # people leave it out
        access = replace(access, base_url=f"{base}/v1")
        further = await _try(title, section, access, until, _list)
        if not further.is_elsewhere:
            return further
        tried.append((access, further))
    for access, listed in tried:
        if listed.has_no_list and not (chat := await _try(title, section, access, until, _chat)).is_elsewhere:
            return chat
    return found


Ask = Callable[[httpx2.AsyncClient, ProviderSection, Access], Awaitable[tuple[ModelEntry, ...]]]


async def _try(title: str, section: ProviderSection, access: Access, until: float, ask: Ask) -> Checked:
    request = list_request(section, access)
    host = urlsplit(request.url).netloc.rpartition("@")[2]
    verify = await asyncio.to_thread(httpx2.create_ssl_context)
    try:
        async with (
            asyncio.timeout_at(until),
            httpx2.AsyncClient(
                timeout=None, follow_redirects=False, verify=verify, headers={"User-Agent": USER_AGENT}
            ) as client,
        ):
            models = await ask(client, section, access)
    except Refused as refused:
        said = quote_error(
            read_body(refused.body).message, secrets_of(access.key, access.headers, access.base_url), limit=MAX_SAID
        )
        advice = "Is it correct?" if request.url.endswith("/v1/models") else "Base URLs usually end in /v1."
        problem = _refusal(title, refused.status, said, has_key=access.key is not None, advice=advice)
        is_missing = refused.status == 404
        return Checked(problem=problem, is_elsewhere=is_missing, has_no_list=is_missing)
    except (TimeoutError, httpx2.TimeoutException):
        return Checked(problem=f"{host} did not answer in time. Check the network and the address.")
    except (httpx2.ConnectError, OSError):
        own = "Is the server running, and is the address correct?"
        advice = own if access.base_url else "Check your network connection."
        return Checked(problem=f"Cannot connect to {host}. {advice}")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        problem = f"{host} answered, but not with a list of models. Is the address correct?"
        return Checked(problem=problem, is_elsewhere=True)
    return Checked(base_url=access.base_url, models=models)


async def _list(client: httpx2.AsyncClient, section: ProviderSection, access: Access) -> tuple[ModelEntry, ...]:
    if section.type == "openrouter":  # its list is public: it says nothing about the key
        base = (access.base_url or KNOWN["openrouter"].chat_url or "").rstrip("/")
        await fetch_bounded(client, ListRequest(url=f"{base}/key", headers=headers_of(section, access)))
    body = await fetch_bounded(client, list_request(section, access))
    return _useful(section, await asyncio.to_thread(lambda: read_models(json.loads(body))))


async def _chat(client: httpx2.AsyncClient, section: ProviderSection, access: Access) -> tuple[ModelEntry, ...]:
    """No models, if the address has a chat; refused with 404 if not. The request has no message, so no model answers
    it: any answer of a chat will do, also that the request is wrong."""
    url = endpoint_url(access.base_url or "", "chat/completions")
    empty = {"model": "", "messages": [], "max_tokens": 1}
    async with client.stream("POST", url, headers=headers_of(section, access), json=empty) as response:
        status, is_page = response.status_code, "html" in response.headers.get("content-type", "")
        if is_page or response.is_redirect or status in (405, 501):
            raise Refused(404, b"")
        if status in (401, 403, 404):
            body = await _start_of(response)
            if status != 404 or "model" not in read_body(body).message.lower():  # else it knows no model without a name
                raise Refused(status, body)
    return ()


async def _start_of(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= MAX_REFUSAL:
            break
    return bytes(body)


def _refusal(title: str, status: int, said: str, *, has_key: bool, advice: str) -> str:
    told = f" Response: {' '.join(said.split())}" if said else ""
    if status in (401, 403):
        return (
            f"{title} rejected the API key (status {status}).{told}" if has_key else f"{title} needs an API key.{told}"
        )
    if status == 404:
        return f"There is no chat and no list of models at this address (status 404). {advice}{told}"
    if status in (402, 429):
        return (
            f"The key works, but the account has no quota left or has sent too many requests (status {status}).{told}"
        )
    return f"{title} answered with status {status}.{told}"


def _useful(section: ProviderSection, listed: Mapping[str, Listed]) -> tuple[ModelEntry, ...]:
    """The models for conversations: recommended ones first, then those in the configuration."""
    known: dict[str, ModelEntry] = {entry.id: entry for entry in (*(defaults_of(section) or ()), *section.models)}
    talking = sorted(name for name in listed if not _OTHER_KINDS.search(name))
    names = dict.fromkeys((*(name for name in known if name in listed), *(talking or sorted(listed))))
    return tuple(
        _with_window(known.get(name) or ModelEntry(id=name), listed[name]) for name in list(names)[:MAX_MODELS]
    )


def _with_window(entry: ModelEntry, listed: Listed) -> ModelEntry:
    """What the configuration says counts; else what the provider says."""
    if entry.context_window is not None or listed.context_window is None:
        return entry
    return ModelEntry(id=entry.id, context_window=listed.context_window)
