"""What a refusal means, without any HTTP."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longboat.models.openai_refusal import Addressee, read_body, refusal, retry_after

TO = Addressee(provider="mine", model="m", url="http://here/v1", has_key=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        ("Wed, 21 Oct 2026 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2026 07:20:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("-3", None),
        ("", None),
        ("9" * 400, None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251_609_819_459.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    assert retry_after({"retry-after": value}, now=now) == seconds


def test_a_long_complaint_is_cut() -> None:
    error = refusal(400, read_body(b'{"message": "%s"}' % (b"x" * 10_000)), TO)
    assert len(error.message) < 600


@settings(deadline=None)
@given(st.text() | st.from_regex(r"\A(\w+, )?-?\d+[ -]\w+[ -]-?\d+ -?\d+:\d+(:\d+)?( [-+]?\w+)?\Z"))
def test_a_retry_after_of_any_kind_is_a_time_or_nothing(value: str) -> None:
    wait_s = retry_after({"retry-after": value})
    assert wait_s is None or 0 <= wait_s < 1e12


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":' * 5000 + b"1" + b"}" * 5000,
        b'{"message":' + b"[" * 900 + b"]" * 900 + b"}",
        b"[" * 100_000,
        b'{"error":{"message":"\xff"}}',
        b'{"error":{"code":' + b"9" * 5000 + b"}}",
    ],
    ids=["errors", "message", "open lists", "not UTF-8", "a long number"],
)
def test_a_body_that_cannot_be_read_is_a_refusal_still(body: bytes) -> None:
    error = refusal(400, read_body(body), TO)
    assert (error.code, error.retryable) == ("bad_request", False)
    assert len(error.message) < 600


@settings(deadline=None)
@given(st.binary())
def test_any_body_is_read(body: bytes) -> None:
    refusal(400, read_body(body), TO).message.encode()
