"""Prices: those of the configuration, the catalogue's, and none."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from longboat.config.settings import Config, PriceSection
from longboat.core.turn import plausible
from longboat.models.catalogue import Counted, configured_tariff
from longboat.models.protocol import Finished, ModelRequest
from longboat.models.registry import Registry
from longboat.testing import Say, Use
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.listings import ModelPrice
from longboat.wire.models import Usage


def registry_of(url: str, **entry: Any) -> Registry:
    section = {"type": "openai-compatible", "base_url": url, "models": [{"id": "m", "context_window": 1000, **entry}]}
    config = msgspec.convert({"providers": {"mine": section}, "models": {"large": "mine/m"}}, Config)
    return Registry(config, {}, data_dir=Path("/nowhere"), look=lambda: None)


async def used(*, cost: float | None = None, **entry: Any) -> Usage:
    """What a step of a million tokens in and half a million out is counted as."""
    async with ScriptedEndpoint() as endpoint:
        endpoint.add([Say("ok"), Use(input_tokens=1_000_000, output_tokens=500_000, cost=cost)])
        models = registry_of(f"{endpoint.url}/v1", **entry)
        async with models.resolve(None, "large").stream(ModelRequest(system="", messages=())) as events:
            (*_, finished) = [event async for event in events]
        await models.aclose()
    assert isinstance(finished, Finished)
    return plausible(finished.usage)


async def test_an_endpoint_of_ones_own_has_an_unknown_price_not_none() -> None:
    assert await used() == Usage(input_tokens=1_000_000, output_tokens=500_000, cost=None, unpriced_tokens=1_500_000)


async def test_a_configured_price_is_what_a_step_costs() -> None:
    assert await used(price={"input": 3, "output": 15}) == Usage(
        input_tokens=1_000_000, output_tokens=500_000, cost=pytest.approx(10.5)
    )
    assert (await used(price={"input": 0, "output": 0})).cost == 0.0


async def test_what_the_server_says_it_cost_is_what_it_cost() -> None:
    assert (await used(cost=0.5, price={"input": 3, "output": 15})).cost == 0.5


def test_tokens_from_the_cache_have_their_own_price_if_one_is_set() -> None:
    counted = Counted(input_tokens=1_000_000, output_tokens=0, cache_read_tokens=900_000)
    assert configured_tariff(PriceSection(input=10, output=0, cached_input=1))(counted) == pytest.approx(1.9)
    assert configured_tariff(PriceSection(input=10, output=0))(counted) == pytest.approx(10)


def test_the_list_of_models_has_the_configured_price_and_effort() -> None:
    (mine, *_) = registry_of("http://127.0.0.1:9/v1", price={"input": 3, "output": 15}, effort="medium").models()
    assert (mine.name, mine.price, mine.default_effort) == ("mine/m", ModelPrice(input=3, output=15), "medium")
    (mine, *_) = registry_of("http://127.0.0.1:9/v1").models()
    assert (mine.price, mine.default_effort) == (None, None)


@pytest.mark.parametrize("price", [{"input": -1, "output": 1}, {"input": 1}, {"input": 1, "output": 2, "x": 3}])
def test_a_price_that_is_none_is_refused(price: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(price, PriceSection)
