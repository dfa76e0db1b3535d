"""Which database `longboat store` and `longboat doctor` look at."""

import os
from pathlib import Path

import msgspec
import pytest

from longboat.cli.data_dirs import DataDir, choose_data_dir
from longboat.cli.doctor import examine
from longboat.wire.discovery import Discovery


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Discovery:
    """A server that runs on a directory which is not where the user's own data would be."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LONGBOAT_RUNTIME_DIR", str(tmp_path / "run"))
    for name in ("LONGBOAT_DATA_DIR", "LONGBOAT_URL", "LONGBOAT_SOCKET", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    found = Discovery(
        pid=os.getpid(),
        version="1",
        protocol=1,
        socket=str(tmp_path / "run" / "longboat.sock"),
        url="http://127.0.0.1:9",
        token="t",
        data_dir=str(tmp_path / "servers"),
        started_at="now",
    )
    for name in ("home", "run", "servers"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "server.json").write_bytes(msgspec.json.encode(found))
    return found


def test_the_running_servers_directory_is_meant_unless_another_is_named(
    running: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = Path(running.data_dir)
    assert choose_data_dir(None) == DataDir(servers)
    assert choose_data_dir(str(tmp_path)) == DataDir(tmp_path)
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path))
    note = f"The running server uses another data directory: --data-dir {servers}"
    assert choose_data_dir(None) == DataDir(tmp_path, note)
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(servers))
    assert choose_data_dir(None) == DataDir(servers)


def test_a_server_that_is_gone_does_not_count(running: Discovery, tmp_path: Path) -> None:
    dead = msgspec.structs.replace(running, pid=2**22 + 1)
    (tmp_path / "run" / "server.json").write_bytes(msgspec.json.encode(dead))
    assert choose_data_dir(None) == DataDir(tmp_path / "home" / ".local" / "share" / "longboat")


def test_a_server_that_is_named_and_does_not_say_where_its_data_is_is_mentioned(
    running: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGBOAT_URL", "http://127.0.0.1:9/")
    assert choose_data_dir(None) == DataDir(Path(running.data_dir))
    monkeypatch.setenv("LONGBOAT_URL", "http://127.0.0.1:8")
    chosen = choose_data_dir(None)
    assert chosen.path == tmp_path / "home" / ".local" / "share" / "longboat"
    assert chosen.note.startswith("The server in LONGBOAT_URL does not publish its data directory. Using ")


def test_a_server_on_a_socket_of_its_own_says_where_its_data_is(
    running: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGBOAT_SOCKET", str(tmp_path / "other.sock"))
    assert choose_data_dir(None).note.startswith("The server in LONGBOAT_SOCKET does not publish")
    other = msgspec.structs.replace(running, data_dir=str(tmp_path / "others"))
    (tmp_path / "other.sock.json").write_bytes(msgspec.json.encode(other))
    assert choose_data_dir(None) == DataDir(tmp_path / "others")


def test_doctor_names_the_database_it_looked_at(running: Discovery, tmp_path: Path) -> None:
    for directory, given in ((tmp_path / "servers", None), (tmp_path / "home", str(tmp_path / "home"))):
        (directory / "longboat.db").touch()
        found = next(each for each in examine(tmp_path, given) if each.subject == "database")
        assert found.detail.startswith(f"{directory / 'longboat.db'} is damaged: Not a Longboat database.")
