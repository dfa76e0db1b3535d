"""Which of several models answers, and which errors another one may make good (ADR 0043)."""

import pytest

from longboat.errors import ModelError
from longboat.models import failover
from longboat.models.failover import COOLDOWN, LONGEST_S, QUOTA_S, Cooldowns, Lineup, is_made_good, name_of
from longboat.testing import ScriptedModel

BIG, SMALL, OTHER = (
    ScriptedModel(provider=provider, name=name) for provider, name in (("a", "big"), ("a", "small"), ("b", "m"))
)


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stands still until somebody moves it."""
    made = Clock()
    monkeypatch.setattr(failover, "seconds", made)
    return made


def failure(code: str, *, retry_after_s: float | None = None) -> ModelError:
    return ModelError("no", title="No", code=code, retryable=True, retry_after_s=retry_after_s)


def names(lineup: Lineup) -> list[str]:
    return [name_of(model) for model in lineup.rest()]


def test_the_first_one_answers_and_one_that_failed_is_asked_last_until_its_cooldown_is_over(clock: Clock) -> None:
    lineup = Lineup((BIG, SMALL, OTHER), Cooldowns())
    assert names(lineup) == ["a/big", "a/small", "b/m"]
    lineup.cooldowns.begin(BIG, failure("rate_limited"))
    assert names(lineup) == ["a/small", "b/m", "a/big"]
    clock.at += COOLDOWN.base_s
    assert lineup.first() is BIG


@pytest.mark.parametrize("code", ["unreachable", "quota"])
def test_a_provider_that_is_gone_or_unpaid_takes_all_its_models_along(code: str) -> None:
    lineup = Lineup((BIG, SMALL, OTHER), Cooldowns())
    lineup.cooldowns.begin(BIG, failure(code))
    assert lineup.first() is OTHER
    assert names(lineup)[0] == "b/m"


def test_all_cooling_down_the_one_that_is_back_soonest_is_asked() -> None:
    lineup = Lineup((BIG, OTHER), Cooldowns())
    lineup.cooldowns.begin(BIG, failure("quota"))
    lineup.cooldowns.begin(OTHER, failure("server_error"))
    assert lineup.first() is OTHER


def test_a_cooldown_grows_with_each_failure_and_an_answer_ends_it(clock: Clock) -> None:
    cooldowns = Cooldowns()
    waits = [cooldowns.begin(OTHER, failure("server_error")).until - clock.at for _ in range(3)]
    assert waits == [COOLDOWN.base_s, 2 * COOLDOWN.base_s, 4 * COOLDOWN.base_s]
    assert cooldowns.end(OTHER)
    assert cooldowns.of("b/m") is None
    assert not cooldowns.end(OTHER)


@pytest.mark.parametrize(
    ("error", "wait_s"),
    [
        (failure("rate_limited", retry_after_s=300), 300),
        (failure("rate_limited", retry_after_s=1e9), LONGEST_S),
        (failure("quota"), QUOTA_S),
        (failure("quota", retry_after_s=2000), 2000),
    ],
)
def test_what_the_provider_asks_for_counts_within_reason(clock: Clock, error: ModelError, wait_s: float) -> None:
    assert Cooldowns().begin(OTHER, error).until - clock.at == wait_s


@pytest.mark.parametrize(
    ("code", "made_good"),
    [
        ("unreachable", True),
        ("timeout", True),
        ("server_error", True),
        ("stream_broken", True),
        ("rate_limited", True),
        ("quota", True),
        ("bad_request", False),
        ("loading", True),
        ("auth", False),
        ("model_not_found", False),
        ("context_overflow", False),
        ("loop_detected", False),
        ("model_not_configured", False),
    ],
)
def test_a_bad_request_and_a_wrong_key_are_nobody_elses_to_make_good(code: str, made_good: bool) -> None:
    assert is_made_good(failure(code)) is made_good
