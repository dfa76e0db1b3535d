"""Wrong tokens are counted, by address and in all, in bounded memory (D15)."""

from longboat.server import wrong_tokens
from longboat.server.wrong_tokens import IN_ALL, PER_ADDRESS, WrongTokens


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_an_address_may_err_a_few_times_and_then_waits() -> None:
    clock = Clock()
    wrong = WrongTokens(clock)
    for _ in range(PER_ADDRESS.at_once):
        assert wrong.count("192.0.2.1") is None
    refused = wrong.count("192.0.2.1")
    assert refused is not None
    assert refused.retry_after_s == PER_ADDRESS.every_s
    assert wrong.count("192.0.2.2") is None, "another address is not held up"
    clock.now += refused.retry_after_s
    assert wrong.count("192.0.2.1") is None
    assert wrong.count("192.0.2.1") is not None, "one more, not the whole allowance"


def test_who_goes_on_all_the_same_does_not_wait_longer() -> None:
    clock = Clock()
    wrong = WrongTokens(clock)
    for _ in range(1_000):
        wrong.count("192.0.2.1")
    clock.now += PER_ADDRESS.every_s
    assert wrong.count("192.0.2.1") is None


def test_many_addresses_together_are_slowed_too() -> None:
    clock = Clock()
    wrong = WrongTokens(clock)
    allowed = [wrong.count(f"10.0.{n // 250}.{n % 250}") is None for n in range(1_000)]
    assert sum(allowed) == IN_ALL.at_once
    clock.now += IN_ALL.every_s * 3
    assert sum(wrong.count(f"10.1.0.{n}") is None for n in range(250)) == 3


def test_an_ipv6_network_is_one_address() -> None:
    wrong = WrongTokens(Clock())
    allowed = [wrong.count(f"2001:db8:0:1::{n:x}") is None for n in range(50)]
    assert sum(allowed) == PER_ADDRESS.at_once
    assert wrong.count("2001:db8:0:2::1") is None


def test_an_ipv4_address_is_the_same_through_ipv6() -> None:
    wrong = WrongTokens(Clock())
    for _ in range(PER_ADDRESS.at_once):
        assert wrong.count("::ffff:192.0.2.1") is None
    assert wrong.count("192.0.2.1") is not None


def test_only_so_many_addresses_are_remembered() -> None:
    wrong = WrongTokens(Clock())
    for n in range(3 * wrong_tokens.MAX_ADDRESSES):
        wrong.count(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(wrong._due_at) == wrong_tokens.MAX_ADDRESSES
