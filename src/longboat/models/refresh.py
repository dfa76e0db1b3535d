"""Fetches the newest data about models: the price list, and each configured provider's own list.

Owns the requests of `longboat models refresh`; nothing else fetches these. What cannot be fetched stays unchanged. Keys
are sent only to the provider they belong to. `refreshed_catalogue.py` stores the results.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from longboat.config.settings import ProviderSection
from longboat.models import refreshed_catalogue
from longboat.models.adapters import Access
from longboat.models.error_quotes import quote_error, secrets_of
from longboat.models.providers import KNOWN
from longboat.models.refreshed_catalogue import Listed

TIMEOUT_S = 15.0
MAX_BODY = 32 * 2**20
MAX_REASON = 300

_OWN_URLS = {"anthropic": "https://api.anthropic.com", "mistral": "https://api.mistral.ai/v1"}
_WINDOWS = ("context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens", "n_ctx")
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one fetch, as a sentence for people."""

    ok: bool
    text: str


def refresh(
    data_dir: Path, providers: Mapping[str, tuple[ProviderSection, Access]], *, prices_url: str | None = None
) -> Iterator[Report]:
    """Fetch all there is, one report for each."""
    with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
        yield _prices(client, data_dir, prices_url or _default_prices_url())
        known = refreshed_catalogue.listing(data_dir)
        for name, (section, access) in providers.items():
            if (url := _models_url(section, access)) is not None:
                report, models = _list_models(client, name, url, section, access)
                known |= {name: models} if models else {}
                yield report
        refreshed_catalogue.save_listing(data_dir, known)


def _default_prices_url() -> str:
    from genai_prices.update_prices import DEFAULT_UPDATE_URL

    return DEFAULT_UPDATE_URL


def _prices(client: httpx2.Client, data_dir: Path, url: str) -> Report:
    try:
        raw = _get(client, url, {})
        fits = refreshed_catalogue.parse_prices(json.loads(raw))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
        return Report(ok=False, text=f"The price list could not be fetched: {_reason(error)} The current one is kept.")
    if not fits:
        return Report(
            ok=False, text="The price list has a format that this version cannot read. The current one is kept."
        )
    refreshed_catalogue.save_prices(data_dir, raw)
    return Report(ok=True, text="The price list is up to date.")


def _models_url(section: ProviderSection, access: Access) -> str | None:
    """Where the provider lists its models with what they can do; None where it does not."""
    known = KNOWN.get(section.type)
    base = access.base_url or (known.chat_url if known else None) or _OWN_URLS.get(section.type)
    if base is None or section.type in ("google", "azure", "bedrock"):
        return None
    return f"{base.rstrip('/')}/{'v1/' if 'anthropic' in section.type else ''}models"


def _list_models(
    client: httpx2.Client, name: str, url: str, section: ProviderSection, access: Access
) -> tuple[Report, dict[str, Listed]]:
    headers = dict(access.headers)
    if access.key and "anthropic" in section.type:
        headers |= {"x-api-key": access.key, "anthropic-version": "2023-06-01"}
    elif access.key:
        headers |= {"Authorization": f"Bearer {access.key}"}
    try:
        models = _models(json.loads(_get(client, url, headers)))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
        said = quote_error(_reason(error), secrets_of(access.key, access.headers, access.base_url), limit=MAX_REASON)
        return Report(ok=False, text=f"{name} did not list its models: {said}"), {}
    told = sum(model.context_window is not None for model in models.values())
    return Report(ok=True, text=f"{name} lists {len(models)} models; {told} of them with their context window."), models


def _get(client: httpx2.Client, url: str, headers: Mapping[str, str]) -> bytes:
    body = bytearray()
    with client.stream("GET", url, headers=dict(headers)) as response:
        response.raise_for_status()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > MAX_BODY:
                raise ValueError(f"It is larger than {MAX_BODY >> 20} MB.")
    return bytes(body)


def _models(answer: Any) -> dict[str, Listed]:
    items = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(items, list):
        raise ValueError("It did not send a list of models.")
    return {item["id"]: _one(item) for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}


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


def _reason(error: Exception) -> str:
    said = (str(error) or type(error).__name__).partition("\n")[0]
    return said if said.endswith(".") else f"{said}."
