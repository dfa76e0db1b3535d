"""Where a file of ours is expected there may be anything: a pipe, a device, a directory. Nothing waits for it for ever.

Each is tried with a pipe that nobody writes to and that nobody reads, which is what used to hold the program up.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from longboat.cli.background import LOG_NAME
from longboat.cli.main import cli
from longboat.client.address import Address, find, read_discovery
from longboat.config.trust import record, recorded
from longboat.errors import ConfigInvalid, DataDirError
from longboat.models import refreshed_catalogue
from longboat.regular_files import opener
from longboat.server import listen
from longboat.server.browser_port import _kept_port
from longboat.server.token import token_for
from longboat.store.datadir import hold_data_dir
from longboat.tools.mcp import logins
from longboat.tui.saved_state import AUTO, SavedState
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME

GIVE_UP_S = 10


@pytest.fixture(autouse=True)
def impatience() -> Iterator[None]:
    """A call that waits fails its own test, and not the whole run."""

    def give_up(*_: object) -> None:
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(GIVE_UP_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def device(path: Path) -> None:
    path.symlink_to("/dev/ptmx")  # which has nothing to read, ever


ODDITIES: dict[str, Callable[[Path], None]] = {"pipe": os.mkfifo, "directory": os.mkdir, "device": device}


@pytest.fixture(params=sorted(ODDITIES))
def odd(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    return ODDITIES[request.param]


Odd = Callable[[Path], None]


def test_a_discovery_file_that_is_none_is_as_if_there_were_none(tmp_path: Path, odd: Odd) -> None:
    odd(tmp_path / DISCOVERY_NAME)
    environ = {"LONGBOAT_RUNTIME_DIR": str(tmp_path)}
    assert read_discovery(environ) is None
    assert listen.read_discovery(tmp_path / DISCOVERY_NAME) is None
    assert find(environ=environ) == Address(socket=str(tmp_path / SOCKET_NAME), named=False)


def test_a_token_that_is_no_file_is_made_anew(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")
    made = token_for(tmp_path, {})
    assert token_for(tmp_path, {}) == made


def test_what_the_terminal_app_keeps_is_forgotten_where_there_is_no_file(tmp_path: Path, odd: Odd) -> None:
    for name in ("terminal.json", "prompts.jsonl"):
        odd(tmp_path / name)
    keeping = SavedState(tmp_path)
    assert keeping.theme == AUTO
    keeping.keep_prompt("/a", "hello")
    assert keeping.prompts("/a") == []
    keeping.keep_theme("nord")


def test_the_port_of_the_page_and_what_was_fetched_are_as_if_there_were_none(tmp_path: Path, odd: Odd) -> None:
    (tmp_path / "models").mkdir()
    for name in (
        "web-port",
        "login.json",
        f"models/{refreshed_catalogue.LISTED}",
        f"models/{refreshed_catalogue.PRICES}",
    ):
        odd(tmp_path / name)
    assert _kept_port(tmp_path / "web-port") == 0
    assert logins.load(tmp_path / "login.json") == {}
    assert refreshed_catalogue.listing(tmp_path) == {}
    assert not refreshed_catalogue.use_prices(tmp_path)


def test_a_data_directory_whose_lock_is_no_file_is_refused(tmp_path: Path, odd: Odd) -> None:
    odd(tmp_path / "lock")
    with pytest.raises(DataDirError, match="Cannot use the data directory"), hold_data_dir(tmp_path):
        pass


@pytest.mark.parametrize("name", ["trusted.json", "trusted.lock"])
def test_trust_is_not_recorded_beside_what_is_no_file(tmp_path: Path, odd: Odd, name: str) -> None:
    odd(tmp_path / name)
    with pytest.raises(ConfigInvalid, match=r"trusted\.json: (expected a regular file|cannot be)"):
        record(tmp_path / "trusted.json", tmp_path, "digest")
    if name != "trusted.json":
        assert recorded(tmp_path / "trusted.json") == {}


def test_the_commands_say_that_the_log_or_the_lock_is_no_file(
    tmp_path: Path, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path))
    odd(tmp_path / LOG_NAME)
    shown = CliRunner().invoke(cli, ["logs"])
    assert isinstance(shown.exception, OSError)  # which `main` tells in a line
    assert str(tmp_path / LOG_NAME) in str(shown.exception)


def test_only_a_regular_file_is_opened(tmp_path: Path, odd: Odd) -> None:
    odd(tmp_path / "x")
    for mode in ("rb", "wb", "ab"):
        with pytest.raises(OSError), open(tmp_path / "x", mode, opener=opener):
            pass
    with open(tmp_path / "new", "w", opener=opener) as file:
        file.write("text")
    assert (tmp_path / "new").read_text() == "text"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_what_was_left_in_the_place_of_the_next_record_is_removed_unread(tmp_path: Path, odd: Odd) -> None:
    left = tmp_path / "trusted.new"
    odd(left)
    if left.is_dir():
        with pytest.raises(ConfigInvalid, match=r"trusted\.json: cannot be written: Is a directory"):
            record(tmp_path / "trusted.json", tmp_path, "digest")
        left.rmdir()
    record(tmp_path / "trusted.json", tmp_path, "digest")
    assert recorded(tmp_path / "trusted.json") == {str(tmp_path.resolve()): "digest"}
    assert (tmp_path / "trusted.json").is_file()
    assert not left.exists()
