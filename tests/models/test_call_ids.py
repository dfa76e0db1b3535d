"""Tool call ids in another provider's format (A6: switch in mid-session)."""

import re

import pytest

from longboat.models.call_ids import mistral_id, portable_id


@pytest.mark.parametrize("call_id", ["toolu_01A09q90qw90lq917835lq9", "call_abc-1", "pyd_ai_" + "0" * 32, "a"])
def test_an_id_that_all_take_stays_as_it_is(call_id: str):
    assert portable_id(call_id) == call_id


@pytest.mark.parametrize("call_id", ["functions.ls:0", "", "x" * 64, "fc_1|call_2", "é", "\ud800"])
def test_any_other_becomes_one_that_all_take_and_always_the_same(call_id: str):
    assert re.fullmatch(r"call_[0-9a-f]{24}", portable_id(call_id))
    assert portable_id(call_id) == portable_id(call_id)
    assert portable_id(call_id) != portable_id(call_id + "1")


def test_mistral_gets_nine_letters_and_digits():
    assert mistral_id("D681PevKs") == "D681PevKs"
    assert re.fullmatch("[0-9a-z]{9}", mistral_id("toolu_01A09q90qw90lq917835lq9"))
