"""The TCP door for a browser on this machine, and the token that opens it: both outlive a restart."""

import os
import socket
import stat
from pathlib import Path

import httpx2
import pytest
from server_harness import serve_in

from longboat.server.browser_port import PORT_FILE
from longboat.server.listen import read_discovery
from longboat.server.routes.service import own_page
from longboat.server.token import FILE, token_for


async def test_a_server_on_its_socket_alone_opens_a_door_for_a_browser_when_asked(tmp_path: Path) -> None:
    async with serve_in(tmp_path, host=None) as served:
        assert served.serving.discovery.url is None
        url = (await served.unix.post("/v1/web")).json()["url"]
        assert (await served.unix.post("/v1/web")).json()["url"] == url
        assert url.startswith("http://127.0.0.1:")
        found = read_discovery(served.settings.runtime_dir / "server.json")
        assert found == served.serving.discovery
        assert found.url == url
        async with httpx2.AsyncClient(base_url=url) as browser:
            refused = await browser.get("/v1/version")
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
            token = served.settings.token
            entered = await browser.get("/login", params={"token": token, "to": "/v1/version"}, follow_redirects=True)
            assert entered.json()["protocol"] == 1
            assert token not in str(entered.url)
            assert (await browser.get("/v1/version", headers={"host": "evil.example"})).status_code == 421
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))


async def test_a_server_that_listens_on_tcp_has_its_door_already(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        assert (await served.unix.post("/v1/web")).json()["url"] == served.serving.discovery.url


async def test_a_page_finds_the_server_where_it_was_after_a_restart(tmp_path: Path) -> None:
    async with serve_in(tmp_path, host=None) as served:
        url = (await served.unix.post("/v1/web")).json()["url"]
    async with serve_in(tmp_path, host=None) as served:
        assert served.serving.discovery.url is None, "one that its user started listens where they said, only"
    async with serve_in(tmp_path, host=None, idle_exit_s=60.0) as served:
        assert served.serving.discovery.url == url


async def test_a_port_that_is_taken_by_now_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / PORT_FILE).write_text(str(port))
        async with serve_in(tmp_path, host=None, idle_exit_s=60.0) as served:
            assert served.serving.discovery.url not in (None, f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("kept", ["", "x", "0", "70000", "\udcff"])
async def test_a_port_file_that_says_nothing_is_no_obstacle(tmp_path: Path, kept: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / PORT_FILE).write_bytes(kept.encode("utf-8", "surrogateescape"))
    async with serve_in(tmp_path, host=None, idle_exit_s=60.0) as served:
        assert served.serving.discovery.url is None


def test_the_token_is_made_once_and_kept_for_its_user_alone(tmp_path: Path) -> None:
    made = token_for(tmp_path / "data", {})
    assert len(made) >= 32
    assert stat.S_IMODE((tmp_path / "data" / FILE).stat().st_mode) == 0o600
    assert token_for(tmp_path / "data", {}) == made
    assert token_for(tmp_path / "data", {"LONGBOAT_TOKEN": "mine"}) == "mine"
    assert token_for(tmp_path / "data", {}) == made
    assert token_for(tmp_path / "other", {}) != made


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o644), lambda path: path.write_bytes(b"\xff")])
def test_a_token_that_others_could_read_is_made_anew(tmp_path: Path, spoil) -> None:  # type: ignore[no-untyped-def]
    made = token_for(tmp_path, {})
    spoil(tmp_path / FILE)
    again = token_for(tmp_path, {})
    assert again != made
    assert token_for(tmp_path, {}) == again


def test_a_link_in_place_of_the_token_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    os.chmod(elsewhere, 0o600)
    (tmp_path / FILE).symlink_to(elsewhere)
    assert token_for(tmp_path, {}) != "theirs"
    assert elsewhere.read_text() == "theirs"


@pytest.mark.parametrize(
    ("wanted", "page"),
    [
        ("/", "/"),
        ("/#/abc", "/#/abc"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil", "/"),
        ("/\t/evil.example", "/"),
        ("/a\r\nset-cookie: x=1", "/"),
        ("", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_a_login_leads_to_pages_of_this_server_alone(wanted: str, page: str) -> None:
    assert own_page(wanted) == page
