"""How each provider is asked for the list of its models, and what the list says.

Owns addresses, headers and the many words for the same facts. Must not know what the list is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from longboat.config.settings import ProviderSection
from longboat.models.adapters import Access
from longboat.models.providers import KNOWN, endpoint_url
from longboat.models.refreshed_catalogue import Listed

MAX_BODY = 32 * 2**20

_OWN_URLS = {"anthropic": "https://api.anthropic.com", "mistral": "https://api.mistral.ai/v1"}
_OPENAI = "https://api.openai.com/v1"
_GOOGLE = "https://generativelanguage.googleapis.com"
_WINDOWS = (
    *("context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens", "n_ctx"),
    "inputTokenLimit",
)
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "max_tokens", "outputTokenLimit")


class Refused(ValueError):
    """The server answered with another status than 200."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"It answered with status {status}.")
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def catalogued_url(section: ProviderSection, access: Access) -> str | None:
    """Where the provider lists its models with what they can do; None where the list would have only names."""
    known = KNOWN.get(section.type)
    base = access.base_url or (known.chat_url if known else None) or _OWN_URLS.get(section.type)
    if base is None or section.type in ("google", "azure", "bedrock"):
        return None
    return endpoint_url(base, "v1/models" if "anthropic" in section.type else "models")


def list_request(section: ProviderSection, access: Access) -> ListRequest:
    """The request for the list, of any provider."""
    base = (access.base_url or "").rstrip("/")
    match section.type:
        case "google":
            url = f"{(base or _GOOGLE).removesuffix('/v1beta')}/v1beta/models?pageSize=1000"
        case "azure":
            url = f"{base if '/openai' in base else f'{base}/openai/v1'}/models"
        case "bedrock":
            url = f"{base.removesuffix('/v1')}/v1/models"
        case _:
            url = catalogued_url(section, access) or f"{base or _OPENAI}/models"
    return ListRequest(url=url, headers=headers_of(section, access))


def headers_of(section: ProviderSection, access: Access) -> dict[str, str]:
    """The provider's key, in the header where it wants it."""
    headers = dict(access.headers)
    if access.key is None:
        return headers
    if "anthropic" in section.type:
        return headers | {"x-api-key": access.key, "anthropic-version": "2023-06-01"}
    if section.type == "google":
        return headers | {"x-goog-api-key": access.key}
    if section.type == "azure":
        return headers | {"api-key": access.key}
    return headers | {"Authorization": f"Bearer {access.key}"}


def fetch(client: httpx2.Client, request: ListRequest) -> bytes:
    """The body. Blocking."""
    body = bytearray()
    with client.stream("GET", request.url, headers=dict(request.headers)) as response:
        for piece in response.iter_bytes():
            body += piece
            if len(body) > MAX_BODY:
                raise ValueError(f"It is larger than {MAX_BODY >> 20} MB.")
        if not response.is_success:
            raise Refused(response.status_code, bytes(body))
    return bytes(body)


async def fetch_bounded(client: httpx2.AsyncClient, request: ListRequest) -> bytes:
    """The same on the loop, for a caller that limits the time of all of it: headers may trickle for hours."""
    body = bytearray()
    async with client.stream("GET", request.url, headers=dict(request.headers)) as response:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_BODY:
                raise ValueError(f"It is larger than {MAX_BODY >> 20} MB.")
        if not response.is_success:
            raise Refused(response.status_code, bytes(body))
    return bytes(body)


def read_models(answer: Any) -> dict[str, Listed]:
    items = answer.get("data", answer.get("models")) if isinstance(answer, dict) else answer
    if not isinstance(items, list):
        raise ValueError("It did not send a list of models.")
    found = ((_name(item), item) for item in items if isinstance(item, dict))
    return {name: _one(item) for name, item in found if name}


def _name(item: dict[str, Any]) -> str:
    name = item.get("id") or item.get("name")
    return name.removeprefix("models/") if isinstance(name, str) else ""


def _one(item: dict[str, Any]) -> Listed:
    """Every server has its own words for the same three facts."""
    places = [item, *(item[key] for key in ("top_provider", "meta") if isinstance(item.get(key), dict))]
    return Listed(
        context_window=_number(places, _WINDOWS),
        max_output_tokens=_number(places, _OUTPUTS),
        images=_sees(item),
    )


def _number(places: list[dict[str, Any]], names: tuple[str, ...]) -> int | None:
    found = (place.get(name) for place in places for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), None)


def _sees(item: dict[str, Any]) -> bool | None:
    architecture, capabilities = item.get("architecture"), item.get("capabilities")
    if isinstance(architecture, dict) and isinstance(architecture.get("input_modalities"), list):
        return "image" in architecture["input_modalities"]
    if isinstance(capabilities, dict) and isinstance(capabilities.get("vision"), bool):
        return bool(capabilities["vision"])
    return None
