"""Costs and durations as text."""

import pytest

from longboat.wire.amounts import cost_of, duration, price_text
from longboat.wire.listings import ModelPrice
from longboat.wire.models import Usage

UNKNOWN = Usage(input_tokens=5, cost=None, unpriced_tokens=5)


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), "$0"),
        (Usage(input_tokens=5, cost=0.0), "$0"),
        (UNKNOWN, "unknown"),
        (Usage(cost=0.12), "$0.12"),
        (Usage(cost=1234.5), "$1,234.50"),
        (Usage(cost=0.0012), "$0.0012"),
        (Usage(cost=0.00001), "<$0.0001"),
        (UNKNOWN + Usage(cost=0.12), "≥ $0.12"),
        (Usage(cost=0.12) + UNKNOWN, "≥ $0.12"),
        (UNKNOWN + Usage(input_tokens=5, cost=0.0), "unknown"),
        (UNKNOWN + UNKNOWN, "unknown"),
    ],
)
def test_a_cost_is_never_zero_where_a_price_is_unknown(usage: Usage, text: str) -> None:
    assert cost_of(usage) == text


def test_prices_and_durations() -> None:
    assert price_text(None) == "price unknown"
    assert price_text(ModelPrice(input=3, output=0.25)) == "$3 in, $0.25 out per M"
    assert price_text(ModelPrice(input=0, output=0)) == "free"
    assert [duration(at) for at in (0.3, 4.25, 52, 61, 3_700)] == ["300 ms", "4.2 s", "52 s", "1 min 1 s", "1 h 1 min"]
