"""Fetches the newest data about models: the price list, and each configured provider's own list.

Owns the requests of `longboat models refresh`; nothing else fetches these. What cannot be fetched stays unchanged. Keys
are sent only to the provider they belong to. `refreshed_catalogue.py` stores the results.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from longboat.config.settings import ProviderSection
from longboat.models import refreshed_catalogue
from longboat.models.adapters import Access
from longboat.models.error_quotes import quote_error, secrets_of
from longboat.models.memory import forget_learned
from longboat.models.model_list import ListRequest, catalogued_url, fetch, headers_of, read_models
from longboat.models.providers import USER_AGENT
from longboat.models.refreshed_catalogue import Listed

TIMEOUT_S = 15.0
MAX_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one fetch, as a sentence for people."""

    ok: bool
    text: str


def refresh(
    data_dir: Path, providers: Mapping[str, tuple[ProviderSection, Access]], *, prices_url: str | None = None
) -> Iterator[Report]:
    """Download everything, with one report for each source. Also forgets what was learned of models by using them."""
    forget_learned(data_dir)
    with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False, headers={"User-Agent": USER_AGENT}) as client:
        yield _prices(client, data_dir, prices_url or _default_prices_url())
        known = refreshed_catalogue.listing(data_dir)
        for name, (section, access) in providers.items():
            if (url := catalogued_url(section, access)) is not None:
                report, models = _list_models(client, name, url, section, access)
                known |= {name: models} if models else {}
                yield report
        refreshed_catalogue.save_listing(data_dir, known)


def _default_prices_url() -> str:
    from genai_prices.update_prices import DEFAULT_UPDATE_URL

    return DEFAULT_UPDATE_URL


def _prices(client: httpx2.Client, data_dir: Path, url: str) -> Report:
    try:
        raw = fetch(client, ListRequest(url=url))
        fits = refreshed_catalogue.parse_prices(json.loads(raw))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
        return Report(ok=False, text=f"The price list could not be fetched: {_reason(error)} The current one is kept.")
    if not fits:
        return Report(
            ok=False, text="The price list has a format that this version cannot read. The current one is kept."
        )
    refreshed_catalogue.save_prices(data_dir, raw)
    return Report(ok=True, text="The price list is up to date.")


def _list_models(
    client: httpx2.Client, name: str, url: str, section: ProviderSection, access: Access
) -> tuple[Report, dict[str, Listed]]:
    try:
        request = ListRequest(url=url, headers=headers_of(section, access))
        models = read_models(json.loads(fetch(client, request)))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
        said = quote_error(_reason(error), secrets_of(access.key, access.headers, access.base_url), limit=MAX_REASON)
        return Report(ok=False, text=f"{name} did not list its models: {said}"), {}
    told = sum(model.context_window is not None for model in models.values())
    return Report(ok=True, text=f"{name} lists {len(models)} models; {told} with a context window."), models


def _reason(error: Exception) -> str:
    said = (str(error) or type(error).__name__).partition("\n")[0]
    return said if said.endswith(".") else f"{said}."
