"""What a refusal means, without any HTTP."""

from datetime import UTC, datetime

import pytest

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
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    assert retry_after({"retry-after": value}, now=now) == seconds


def test_a_long_complaint_is_cut() -> None:
    error = refusal(400, read_body(b'{"message": "%s"}' % (b"x" * 10_000)), TO)
    assert len(error.message) < 600
