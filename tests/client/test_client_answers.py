"""Refusals become error classes; a body that is no refusal is never shown (R5)."""

import pytest

from longboat import errors
from longboat.client import calls
from longboat.client.answers import error_from
from longboat.wire.models import RunState
from longboat.wire.requests import Submit


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "empty_prompt", errors.EmptyPrompt),
        (401, "unauthorized", errors.Unauthorized),
        (404, "session_not_found", errors.SessionNotFound),
        (409, "too_late", errors.TooLate),
        (409, "workspace_closing", errors.WorkspaceClosing),
        (503, "server_leaving", errors.ServerLeaving),
        (503, "store_unavailable", errors.StoreUnavailable),
    ],
)
def test_a_code_becomes_its_class_with_the_servers_message(
    status: int, code: str, expected: type[errors.LongboatError]
) -> None:
    error = error_from(status, b'{"code": "%b", "message": "so it is"}' % code.encode())
    assert (type(error), error.code, error.message, str(error)) == (expected, code, "so it is", "so it is")


def test_an_unknown_code_keeps_its_code_in_the_class_of_its_status() -> None:
    error = error_from(400, b'{"code": "bad_run_id", "message": "no"}')
    assert (type(error), error.code) == (errors.BadInput, "bad_run_id")
    error = error_from(418, b'{"code": "teapot", "message": "no"}')
    assert (type(error), error.code) == (errors.LongboatError, "teapot")


@pytest.mark.parametrize(
    "body", [b"", b"<html>secret</html>", b"\xff\xfe", b'"secret"', b'{"code": 1, "message": "secret"}', b"{}"]
)
def test_r5_a_malformed_body_falls_back_to_the_status_and_is_not_echoed(body: bytes) -> None:
    error = error_from(500, body)
    assert (error.code, error.message) == ("http_500", "The server answered 500 Internal Server Error.")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_r3_what_a_proxy_answers_for_a_server_that_is_away_is_an_outage(status: int) -> None:
    error = error_from(status, b"<html>secret</html>")
    assert (type(error), error.code) == (errors.ServerUnreachable, "server_unreachable")
    assert str(status) in error.message
    assert "secret" not in error.message


@pytest.mark.parametrize("status", [200, 202])
def test_r5_200_and_202_both_count_as_accepted(status: int) -> None:
    call = calls.submit("w", Submit(session_id="s", prompt="p", run_id="r"))
    accepted = call.read(status, b'{"run_id": "r", "seq": 7, "state": "active", "position": 0}')
    assert (accepted.run_id, accepted.state) == ("r", RunState.ACTIVE)


def test_an_answer_of_another_shape_is_an_error_that_does_not_echo_it() -> None:
    with pytest.raises(errors.LongboatError) as caught:
        calls.version().read(200, b"<html>secret</html>")
    assert caught.value.code == "bad_answer"
    assert "secret" not in caught.value.message


def test_ids_are_quoted_so_that_they_cannot_leave_their_place_in_the_path() -> None:
    assert calls.session("w/..", "a b?").path == "/v1/workspaces/w%2F../sessions/a%20b%3F"


def test_only_what_does_no_more_when_sent_twice_is_repeatable() -> None:
    assert calls.submit("w", Submit(run_id="r")).repeatable
    assert not calls.submit("w", Submit()).repeatable
    assert calls.create_session("w").repeatable
    assert calls.create_session("w").body != calls.create_session("w").body
    for cancel in (calls.cancel_session, calls.clear_queue):
        first, second = cancel("w", "s"), cancel("w", "s")
        assert first.repeatable
        assert first.key != second.key, "another cancel covers what is newer"
        assert first.headers == {"idempotency-key": first.key}
    assert not calls.undo("w", "s").repeatable
