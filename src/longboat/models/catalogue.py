"""What is known about models without any configuration: windows, limits, abilities and prices.

Owns the order of sources: what the provider itself listed (`longboat models refresh`), then the price list of
genai-prices, then our `catalogue.json`. Must not know how a model is called. The price list takes a fifth of a second
to import, so it is loaded on first use, on the thread that builds the model.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from longboat.config.settings import PriceSection
from longboat.models import refreshed_catalogue
from longboat.wire.listings import ModelPrice

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

DEFAULT_WINDOW = 128_000
"""Assumed for an unknown model."""

_PRICED_AS = {"bedrock": "aws"}
"""Providers that the price list calls otherwise."""
_SAMPLE = 1_000
"""Tokens for which a price is asked: few enough for the first of several rates."""
_COMPATIBLE = frozenset({"openai-compatible", "anthropic-compatible", "local"})


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Similar models. A pattern matches a normalized name: lower case, no vendor prefix, dashes for dots."""

    match: tuple[str, ...]
    window: int | None = None
    """Only where the price list does not have it."""
    output: int | None = None
    images: bool = True
    tools: bool = True
    effort: bool = True


class _Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    families: tuple[Family, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a provider counted in one step. The cached tokens are among the input tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


Tariff = Callable[[Counted], float | None]
"""What a step costs, in dollars; None if that cannot be told."""


FREE = PriceSection(input=0, output=0)
"""For models that run on this machine."""


def configured_tariff(price: PriceSection) -> Tariff:
    cached_input = price.input if price.cached_input is None else price.cached_input

    def cost(counted: Counted) -> float:
        cached = min(counted.cache_read_tokens, counted.input_tokens)
        fresh = counted.input_tokens - cached
        dollars = fresh * price.input + cached * cached_input + counted.output_tokens * price.output
        return dollars / 1_000_000

    return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about one model; None if unknown."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    images: bool | None = None
    tools: bool | None = None
    effort: bool | None = None


def facts_of(
    kind: str, model: str, *, base_url: str | None, listed: Mapping[str, "refreshed_catalogue.Listed"]
) -> Facts:
    """What is known of `model` at a provider of that kind; `listed` is what the provider said of its models."""
    said = listed.get(model) or refreshed_catalogue.Listed()
    known = of_family(family_of(model))
    return replace(
        known,
        context_window=said.context_window or _priced_window(kind, model, base_url) or known.context_window,
        max_output_tokens=said.max_output_tokens or known.max_output_tokens,
        images=known.images if said.images is None else said.images,
    )


def of_family(family: Family | None) -> Facts:
    if family is None:
        return Facts()
    return Facts(
        context_window=family.window,
        max_output_tokens=family.output,
        images=family.images,
        tools=family.tools,
        effort=family.effort,
    )


def family_of(model: str) -> Family | None:
    plain = plain_name(model)
    return next((family for family in families() if any(fnmatchcase(plain, each) for each in family.match)), None)


def plain_name(model: str) -> str:
    """`anthropic/claude-sonnet-4.5`, `us.anthropic.claude-sonnet-4-5-v1:0` and `claude-sonnet-4-5` are one family."""
    name = model.lower().rpartition("/")[2]
    name = re.sub(r"^(?:(?:us|eu|apac|au|jp|global)\.)?[a-z0-9-]*[a-z]\.(?=[a-z])", "", name)
    return name.replace(".", "-")


@cache
def families() -> tuple[Family, ...]:
    data = files("longboat.models").joinpath("catalogue.json").read_bytes()
    return msgspec.json.decode(data, type=_Catalogue).families


def tariff_of(kind: str, model: str, *, base_url: str | None) -> Tariff | None:
    """How to price the steps of this model; None if unknown."""
    found = _priced(kind, model, base_url)
    if found is None:
        return None
    provider, info = found

    def cost(counted: Counted) -> float | None:
        from genai_prices import Usage

        usage = Usage(
            input_tokens=counted.input_tokens,
            output_tokens=counted.output_tokens,
            cache_read_tokens=counted.cache_read_tokens,
            cache_write_tokens=counted.cache_write_tokens,
        )
        try:
            return float(info.calc_price(usage, provider, genai_request_timestamp=datetime.now(UTC)).total_price)
        except (LookupError, ValueError):
            return None  # nonsense was counted, or a kind of token has no price

    return cost


def price_of(kind: str, model: str, *, base_url: str | None) -> ModelPrice | None:
    """In dollars per million tokens, at the rate for short prompts; None if unknown."""
    tariff = tariff_of(kind, model, base_url=base_url)
    if tariff is None:
        return None
    read = tariff(Counted(input_tokens=_SAMPLE, output_tokens=0)) or 0.0
    written = tariff(Counted(input_tokens=0, output_tokens=_SAMPLE)) or 0.0
    scale = 1_000_000 / _SAMPLE
    return ModelPrice(input=round(read * scale, 4), output=round(written * scale, 4)) if read or written else None


def _priced_window(kind: str, model: str, base_url: str | None) -> int | None:
    found = _priced(kind, model, base_url)
    return found[1].context_window if found else None


def _priced(kind: str, model: str, base_url: str | None) -> "tuple[Provider, ModelInfo] | None":
    if base_url is None and kind in _COMPATIBLE:
        return None
    if base_url is not None and _on_this_machine(base_url):
        return None
    from genai_prices.data_snapshot import get_snapshot

    # A name of ours says nothing about who is behind an address; the address does.
    name, url = (None, base_url) if base_url is not None else (_PRICED_AS.get(kind, kind), None)
    try:
        return get_snapshot().find_provider_model(model, None, name, url)
    except LookupError:
        return None


def _on_this_machine(base_url: str) -> bool:
    return re.match(r"https?://(?:[^/@]*@)?(?:127\.|localhost\b|\[::1\])", base_url) is not None
