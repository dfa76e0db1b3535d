"""Where the server listens: private from the first instant, never over a live server, found by its discovery file."""

import os
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from server_harness import TOKEN, settings_in

import longboat
from longboat.config.settings import Settings
from longboat.errors import ListenError
from longboat.server import listen
from longboat.server.listen import announce, discovery_path, open_listeners, read_discovery
from longboat.wire.discovery import Discovery


@pytest.fixture
def settings(tmp_path) -> Settings:
    return settings_in(tmp_path)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def can_connect(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def test_the_socket_is_0600_in_a_0700_directory_whatever_the_umask(settings):
    before = os.umask(0)
    try:
        with open_listeners(settings):
            assert mode_of(settings.socket) == 0o600
            assert mode_of(settings.runtime_dir) == 0o700
            assert can_connect(settings.socket)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not settings.socket.exists()


def test_our_own_directory_is_made_private_if_it_was_not(settings):
    settings.runtime_dir.mkdir()
    settings.runtime_dir.chmod(0o777)
    with open_listeners(settings):
        assert mode_of(settings.runtime_dir) == 0o700


def test_a_directory_that_the_user_named_is_not_changed_but_refused_if_others_may_write(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    settings = settings_in(tmp_path, socket=shared / "my.sock")
    shared.chmod(0o755)
    with open_listeners(settings):
        assert mode_of(shared / "my.sock") == 0o600
        assert mode_of(shared) == 0o755
    shared.chmod(0o1777)
    with pytest.raises(ListenError, match="Other users can write"), open_listeners(settings):
        pass


def test_a_directory_of_another_user_is_refused(settings, monkeypatch):
    settings.runtime_dir.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ListenError, match="another user"), open_listeners(settings):
        pass


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    settings = settings_in(tmp_path, runtime_dir=tmp_path / "file" / "run", socket=tmp_path / "file" / "run" / "s")
    with pytest.raises(ListenError, match="Cannot use"), open_listeners(settings):
        pass


def test_a_path_that_is_too_long_for_a_socket_is_told(tmp_path):
    settings = settings_in(tmp_path, socket=tmp_path / ("s" * 120))
    with pytest.raises(ListenError, match="--socket"), open_listeners(settings):
        pass


def test_a_stale_socket_is_replaced(settings):
    settings.runtime_dir.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(settings.socket))
    assert settings.socket.exists()
    with open_listeners(settings):
        assert can_connect(settings.socket)


def test_a_live_socket_is_refused_with_how_to_attach_and_left_alone(settings):
    settings.runtime_dir.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(settings.socket))
        alive.listen()
        with pytest.raises(ListenError, match="longboat run") as caught, open_listeners(settings):
            pass
        assert caught.value.code == "socket_in_use"
        assert can_connect(settings.socket)


def test_b5_a_server_waits_for_one_that_is_shutting_down_on_the_same_socket(settings, monkeypatch):
    """`longboat stop` returns, and the next command starts a server, while the old one still closes its store."""
    with ExitStack() as old:
        listeners = old.enter_context(open_listeners(settings))
        listeners.sockets[0].close()
        monkeypatch.setattr(time, "sleep", lambda _: old.close())
        with open_listeners(settings):
            assert can_connect(settings.socket)


def test_of_two_servers_on_one_socket_the_second_is_refused_even_before_the_first_listens(settings, monkeypatch):
    monkeypatch.setattr(listen, "_LEAVING_S", 0)
    with ExitStack() as stack:
        stack.enter_context(open_listeners(settings))
        settings.socket.unlink()
        with pytest.raises(ListenError, match="longboat stop"), open_listeners(settings):
            pass
    with open_listeners(settings):
        pass


def test_a_file_that_is_no_socket_is_not_removed(settings):
    settings.runtime_dir.mkdir(mode=0o700)
    settings.socket.write_text("precious")
    with pytest.raises(ListenError, match="not a socket"), open_listeners(settings):
        pass
    assert settings.socket.read_text() == "precious"


def test_nothing_to_listen_on_is_told(tmp_path):
    with (
        pytest.raises(ListenError, match="Nothing to listen on"),
        open_listeners(settings_in(tmp_path, socket=None, host=None)),
    ):
        pass


def test_tcp_is_opened_only_when_asked_and_tells_its_url(tmp_path):
    with open_listeners(settings_in(tmp_path, host=None)) as listeners:
        assert (len(listeners.sockets), listeners.url) == (1, None)
    with open_listeners(settings_in(tmp_path, socket=None)) as listeners:
        (sock,) = listeners.sockets
        assert listeners.url == f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_localhost_listens_on_all_its_addresses_at_one_port(tmp_path):
    with open_listeners(settings_in(tmp_path, socket=None, host="localhost")) as listeners:
        assert len({sock.getsockname()[1] for sock in listeners.sockets}) == 1
        assert "127.0.0.1" in {sock.getsockname()[0] for sock in listeners.sockets}


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80"), ("box", "http://box:80")]
)
def test_the_url_is_one_that_can_be_called(host, url):
    assert listen.url_of(host, 80) == url


def test_a_port_in_use_an_unknown_host_and_a_missing_token_are_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = settings_in(tmp_path, port=taken.getsockname()[1])
        with pytest.raises(ListenError, match="--port"), open_listeners(busy):
            pass
    assert not busy.socket.exists(), "a failed start leaves no socket behind"
    with pytest.raises(ListenError, match="--host"), open_listeners(settings_in(tmp_path, host="203.0.113.1")):
        pass
    with pytest.raises(ListenError, match="LONGBOAT_TOKEN"), open_listeners(settings_in(tmp_path, token="")):
        pass


def test_the_discovery_file_is_private_whole_and_gone_at_the_end(settings):
    path = settings.runtime_dir / "server.json"
    with announce(settings, "http://127.0.0.1:1") as told:
        found = told.found
        assert mode_of(path) == 0o600
        assert msgspec.json.decode(path.read_bytes(), type=Discovery) == found
        assert found == Discovery(
            pid=os.getpid(),
            version=longboat.__version__,
            protocol=1,
            socket=str(settings.socket),
            url="http://127.0.0.1:1",
            token=TOKEN,
            data_dir=str(settings.data_dir),
            started_at=found.started_at,
            keys=found.keys,
        )
        assert "PATH" in found.keys
        assert os.environ["PATH"].encode() not in path.read_bytes(), "names, never values"
        assert [item.name for item in settings.runtime_dir.iterdir()] == ["server.json"]
    assert not path.exists()


def test_a_discovery_file_that_another_server_wrote_since_is_left_alone(settings):
    path = settings.runtime_dir / "server.json"
    with announce(settings, None) as told:
        theirs = msgspec.structs.replace(told.found, pid=told.found.pid + 1)
        path.write_bytes(msgspec.json.encode(theirs))
    assert read_discovery(path) == theirs


def test_a_server_on_a_socket_of_its_own_does_not_take_the_place_of_the_default_one(tmp_path, settings):
    own = settings_in(tmp_path, socket=tmp_path / "my.sock")
    assert discovery_path(settings) == settings.runtime_dir / "server.json"
    assert discovery_path(own) == tmp_path / "my.sock.json"


def test_a_server_without_a_socket_is_the_default_one_unless_such_a_server_lives(tmp_path, settings):
    bare = settings_in(tmp_path, socket=None)
    assert discovery_path(bare) == settings.runtime_dir / "server.json"
    with announce(settings, None) as told:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        with process:
            other = msgspec.structs.replace(told.found, pid=process.pid)
            (settings.runtime_dir / "server.json").write_bytes(msgspec.json.encode(other))
            assert discovery_path(bare).name == f"server-{os.getpid()}.json"
            process.communicate(b"\n")
        assert discovery_path(bare) == settings.runtime_dir / "server.json"
