"""Keys that are stored: who can read them, for whom they are, and that two writers lose nothing."""

import importlib
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

import longboat.config.system_keyring
from longboat.config.credentials import Credentials, credentials_file, forget_key, read_credentials, store_key
from longboat.errors import ConfigInvalid
from secrecy import SECRETS

KEY = SECRETS["stored key"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return credentials_file(tmp_path / "longboat" / "longboat.json")


def stored(file: Path, provider: str = "anthropic", kind: str = "anthropic", base_url: str | None = None) -> str | None:
    return read_credentials(file).key_for(provider, kind, base_url)


def test_a_stored_key_is_the_owners_alone(file: Path) -> None:
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert stored(file) == KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_with_the_next_key(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    (file.with_suffix(".new")).write_text("left behind")
    (file.with_suffix(".new")).chmod(0o644)
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_is_given_out_for_its_kind_and_its_address_alone(file: Path) -> None:
    store_key(file, "work", kind="openai-compatible", base_url="https://a.example/v1", api_key=KEY)
    assert stored(file, "work", "openai-compatible", "https://a.example/v1") == KEY
    assert stored(file, "work", "openai-compatible", "https://b.example/v1") is None
    assert stored(file, "work", "openai-compatible", None) is None
    assert stored(file, "work", "anthropic-compatible", "https://a.example/v1") is None
    assert stored(file, "other", "openai-compatible", "https://a.example/v1") is None


def test_a_key_is_replaced_and_forgotten(file: Path) -> None:
    assert not forget_key(file, "anthropic")
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key="first")
    before = read_credentials(file)
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert read_credentials(file) != before, "a server must notice"
    assert stored(file) == KEY
    assert forget_key(file, "anthropic")
    assert stored(file) is None
    assert KEY not in file.read_text()


def test_no_description_of_the_credentials_has_a_key(file: Path) -> None:
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert KEY not in repr(read_credentials(file))


def test_keys_stored_at_the_same_time_are_all_there(file: Path) -> None:
    names = [f"p{number}" for number in range(12)]
    threads = [
        threading.Thread(target=store_key, args=(file, name), kwargs={"kind": "k", "base_url": None, "api_key": name})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: stored(file, name, "k") for name in names} == {name: name for name in names}


@pytest.mark.parametrize("content", ["{", "[]", '{"anthropic": "sk-verysecret"}', '{"a": {"api_key": 7}}', "\xff"])
def test_a_file_of_another_shape_is_refused_and_not_quoted(file: Path, content: str) -> None:
    file.parent.mkdir()
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigInvalid, match="Delete it and connect again") as refused:
        read_credentials(file)
    assert "verysecret" not in str(refused.value)


def test_there_is_nothing_where_nothing_was_stored(file: Path) -> None:
    assert read_credentials(file) == Credentials(file=file)


class MemoryKeyring(KeyringBackend):
    """A keyring as a system has one, for the test's own process."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.reads = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.reads += 1
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def system_keyring() -> Iterator[MemoryKeyring]:
    before, found = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


def test_with_a_keyring_the_file_has_no_key(file: Path, system_keyring: MemoryKeyring) -> None:
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert KEY not in file.read_text()
    assert list(system_keyring.kept.values()) == [KEY]
    reads = system_keyring.reads
    assert [stored(file), stored(file)] == [KEY, KEY]
    assert system_keyring.reads == reads, "it is asked once for each key"
    before = read_credentials(file)
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key="another")
    assert read_credentials(file) != before, "a server must notice"
    assert stored(file) == "another"
    assert forget_key(file, "anthropic")
    assert system_keyring.kept == {}


def test_a_kill_between_keyring_and_file_gives_no_key_to_another_address(
    file: Path, system_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file still names the old address: the new key is not for it, and the old one works on."""

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    old, new = "https://a.example/v1", "https://b.example/v1"
    store_key(file, "work", kind="openai-compatible", base_url=old, api_key=KEY)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", kill)
        with pytest.raises(Killed):
            store_key(file, "work", kind="openai-compatible", base_url=new, api_key="for b alone")
    importlib.reload(longboat.config.system_keyring)  # the next process remembers nothing
    found = read_credentials(file)
    assert found.key_for("work", "openai-compatible", old) == KEY
    assert found.key_for("work", "openai-compatible", new) is None
    store_key(file, "work", kind="openai-compatible", base_url=new, api_key="for b alone")
    assert read_credentials(file).key_for("work", "openai-compatible", new) == "for b alone"
    assert KEY not in system_keyring.kept.values(), "what was replaced is deleted"


def test_a_keyring_that_fails_leaves_the_key_to_the_file(
    file: Path, system_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(service: str, username: str, password: str) -> None:
        raise OSError("locked")

    monkeypatch.setattr(system_keyring, "set_password", refuse)
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    assert stored(file) == KEY
    assert json.loads(file.read_text())["anthropic"]["api_key"] == KEY


def test_a_key_that_left_the_keyring_is_missing(file: Path, system_keyring: MemoryKeyring) -> None:
    store_key(file, "anthropic", kind="anthropic", base_url=None, api_key=KEY)
    system_keyring.kept.clear()
    store_key(file, "other", kind="anthropic", base_url=None, api_key=KEY)
    copy = file.with_name("copy.json")
    copy.write_text(file.read_text().replace(read_credentials(file).by_provider["anthropic"].keyring or "", "0" * 16))
    copy.replace(file)
    assert stored(file) is None
