"""Where browsers come back to, and the files that keep what was granted."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from longboat.tools.mcp.logins import Logins, load, save
from longboat.tools.mcp.oauth import discreet


async def knock(address: str, request: bytes) -> bytes:
    port = urlsplit(address).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_only_the_browser_that_was_sent_away_is_let_in(tmp_path: Path) -> None:
    logins = Logins(tmp_path / "logins")
    address = logins.address()
    async with logins.expecting("right") as came:
        for request in (
            b"GET /callback?code=1&state=wrong HTTP/1.1",
            b"POST /callback?state=right HTTP/1.1",
            b"nonsense",
        ):
            assert (await knock(address, request + b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        assert not came.done()
        answer = await knock(address, b"GET /callback?code=1%2F2&state=right HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert came.result() == {"code": "1/2", "state": "right"}
    late = await knock(address, b"GET /callback?code=2&state=right HTTP/1.1\r\n\r\n")
    assert late.startswith(b"HTTP/1.1 404 ")
    logins.close()
    with pytest.raises(OSError, match="onnect"):
        await knock(address, b"")


async def test_two_logins_wait_side_by_side(tmp_path: Path) -> None:
    logins = Logins(tmp_path / "logins")
    async with logins.expecting("one") as first, logins.expecting("two") as second:
        assert logins.arrive("/callback?code=b&state=two")
        assert logins.arrive("/callback?code=a&state=one")
        assert (first.result()["code"], second.result()["code"]) == ("a", "b")
    logins.close()


def test_the_port_is_the_same_after_a_restart_unless_it_was_taken(tmp_path: Path) -> None:
    first = Logins(tmp_path)
    address = first.address()
    other = Logins(tmp_path)
    assert other.address() != address
    other.close()
    first.close()
    save(tmp_path / "port.json", {"port": urlsplit(address).port})
    again = Logins(tmp_path)
    assert again.address() == address
    again.close()


def test_what_is_kept_is_private_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.json"
    assert load(file) == {}
    save(file, {"a": 1})
    save(file, {"a": 2})
    assert load(file) == {"a": 2}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["a.json"]
    file.write_text("{broken")
    assert load(file) == {}


def test_what_is_said_of_a_failed_login_holds_no_secret() -> None:
    quoted = 'Token exchange failed (400): {"error_description": "there is no code c0de"}'
    assert discreet(quoted, "c0de") == 'Token exchange failed (400): {"error_description": "there is no code ***"}'
    unread = "Invalid token response: 1 validation error, input_value={'refresh_token': 'hush'}"
    assert discreet(unread, "c0de") == "Invalid token response"
    assert discreet("No refresh token available", "") == "No refresh token available"
