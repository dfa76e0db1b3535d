"""Which server a client means."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from longboat.client.address import Address, find
from longboat.errors import BadInput
from longboat.wire.discovery import DISCOVERY_NAME, Discovery


def announce(directory: Path, *, socket: str | None, url: str | None, pid: int | None = None) -> dict[str, str]:
    found = Discovery(
        pid=pid or os.getpid(),
        version="1",
        protocol=1,
        socket=socket,
        url=url,
        token="secret",
        data_dir="/d",
        started_at="t",
    )
    (directory / DISCOVERY_NAME).write_bytes(msgspec.json.encode(found))
    return {"LONGBOAT_RUNTIME_DIR": str(directory)}


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


def test_arguments_come_before_the_environment() -> None:
    environ = {"LONGBOAT_URL": "http://env", "LONGBOAT_TOKEN": "t"}
    assert find(url="http://arg/", environ=environ) == Address(url="http://arg", token="t")
    assert find(socket=Path("/s"), environ=environ) == Address(socket="/s", token="t")


def test_the_environment_comes_before_discovery(tmp_path: Path) -> None:
    environ = announce(tmp_path, socket="/found", url=None)
    assert find(environ=environ | {"LONGBOAT_URL": "http://env"}) == Address(url="http://env")
    assert find(environ=environ | {"LONGBOAT_SOCKET": "/env"}) == Address(socket="/env")


def test_a_discovered_socket_comes_before_a_discovered_url(tmp_path: Path) -> None:
    environ = announce(tmp_path, socket="/found", url="http://127.0.0.1:1")
    assert find(environ=environ) == Address(socket="/found", named=False)


def test_a_discovered_url_brings_its_token(tmp_path: Path) -> None:
    environ = announce(tmp_path, socket=None, url="http://127.0.0.1:1")
    assert find(environ=environ) == Address(url="http://127.0.0.1:1", token="secret", named=False)


def test_the_token_is_found_for_a_named_url_that_is_the_users_own_server_and_for_no_other(tmp_path: Path) -> None:
    environ = announce(tmp_path, socket=None, url="http://127.0.0.1:1")
    assert find(url="http://127.0.0.1:1", environ=environ).token == "secret"
    assert find(url="http://127.0.0.1:2", environ=environ).token is None


def test_the_url_of_a_dead_server_is_not_believed(tmp_path: Path) -> None:
    environ = announce(tmp_path, socket=None, url="http://127.0.0.1:1", pid=dead_pid())
    assert find(environ=environ) == Address(socket=str(tmp_path / "longboat.sock"), named=False)
    assert find(url="http://127.0.0.1:1", environ=environ).token is None, "somebody else may listen there by now"


def test_without_or_with_a_broken_discovery_file_it_is_the_default_socket(tmp_path: Path) -> None:
    environ = {"LONGBOAT_RUNTIME_DIR": str(tmp_path)}
    default = Address(socket=str(tmp_path / "longboat.sock"), named=False)
    assert find(environ=environ) == default
    (tmp_path / DISCOVERY_NAME).write_text("{")
    assert find(environ=environ) == default


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8911", "localhost", "box:80", "ftp://h", "http://:1", "http://h:port", "/s"]
)
def test_what_is_no_url_is_refused_by_the_name_it_was_given_under(url: str) -> None:
    with pytest.raises(BadInput, match=r"^url '.*' is not an address. Use one like http://") as refused:
        find(url=url, environ={})
    assert refused.value.code == "bad_url"
    with pytest.raises(BadInput, match=r"^LONGBOAT_URL '.*' is not an address"):
        find(environ={"LONGBOAT_URL": url})


@pytest.mark.parametrize("url", ["http://127.0.0.1:8911", "https://box", "http://[::1]:80", "https://box/longboat"])
def test_what_is_a_url_is_taken(url: str) -> None:
    assert find(url=url, environ={}).url == url
