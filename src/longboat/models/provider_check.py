"""Checks whether a provider works with a key and an address: one cheap request for its list of models.

Owns what a refusal means for a person who sets up the provider. Stores nothing. Sends the key only to the given
address, and follows no redirects. Holds no thread while it waits, so a slow server delays no one else (E5).
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpx2

from longboat.config.settings import ModelEntry, ProviderSection
from longboat.models.adapters import Access, defaults_of
from longboat.models.error_quotes import quote_error, secrets_of
from longboat.models.model_list import ListRequest, Refused, fetch_bounded, headers_of, list_request, read_models
from longboat.models.openai_refusal import read_body
from longboat.models.providers import KNOWN, USER_AGENT, without_chat_path
from longboat.models.refreshed_catalogue import Listed

CHECK_S = 10.0
"""For the whole check."""
MAX_MODELS = 300
MAX_SAID = 200

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
    is_elsewhere: bool = False
    """A server answers, but there is no list at this address."""


async def check(title: str, section: ProviderSection, access: Access, *, within_s: float = CHECK_S) -> Checked:
    """`title`: how a person calls the provider."""
    until = asyncio.get_running_loop().time() + within_s
    if section.type == "openai-compatible" and access.base_url:
        access = replace(access, base_url=without_chat_path(access.base_url))
    found = await _try(title, section, access, until)
    base = (access.base_url or "").rstrip("/")
    if not found.is_elsewhere or section.type != "openai-compatible" or base.endswith("/v1"):
        return found
    further = await _try(title, section, replace(access, base_url=f"{base}/v1"), until)  # people leave it out
    return found if further.is_elsewhere else further


async def _try(title: str, section: ProviderSection, access: Access, until: float) -> Checked:
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
            if section.type == "openrouter":  # its list is public: it says nothing about the key
                base = (access.base_url or KNOWN["openrouter"].chat_url or "").rstrip("/")
                await fetch_bounded(client, ListRequest(url=f"{base}/key", headers=headers_of(section, access)))
            body = await fetch_bounded(client, request)
        models = await asyncio.to_thread(lambda: read_models(json.loads(body)))
    except Refused as refused:
        said = quote_error(
            read_body(refused.body).message, secrets_of(access.key, access.headers, access.base_url), limit=MAX_SAID
        )
        problem = _refusal(title, refused.status, said, has_key=access.key is not None)
        return Checked(problem=problem, is_elsewhere=refused.status == 404)
    except (TimeoutError, httpx2.TimeoutException):
        return Checked(problem=f"{host} did not answer in time. Check the network and the address.")
    except (httpx2.ConnectError, OSError):
        own = "Is the server running, and is the address correct?"
        advice = own if access.base_url else "Check your network connection."
        return Checked(problem=f"Cannot connect to {host}. {advice}")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
        problem = f"{host} answered, but not with a list of models. Is the address correct?"
        return Checked(problem=problem, is_elsewhere=True)
    return Checked(base_url=access.base_url, models=_useful(section, models))


def _refusal(title: str, status: int, said: str, *, has_key: bool) -> str:
    told = f" Response: {' '.join(said.split())}" if said else ""
    if status in (401, 403):
        return (
            f"{title} rejected the API key (status {status}).{told}" if has_key else f"{title} needs an API key.{told}"
        )
    if status == 404:
        return f"There is no list of models at this address (status 404). Base URLs usually end in /v1.{told}"
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
