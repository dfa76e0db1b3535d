"""Values set in the user's own longboat.json: the rest of it stays as its owner wrote it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from longboat.config import jsonc
from longboat.config.edit import change_user_config, with_value
from longboat.config.load import user_config_file
from longboat.errors import ConfigInvalid

COMMENTED = """{
  // Which model answers.
  "models": {
    "large": "a/old", // the old one
    "small": "a/tiny",
  },
  /* "providers": {}, */
  "titles": false, // no
}
"""


@pytest.mark.parametrize(
    ("text", "path", "value", "changed"),
    [
        ("{}", ("models", "large"), "a/b", '{\n  "models": {"large": "a/b"}\n}'),
        ("{\n}\n", ("models", "large"), "a/b", '{\n  "models": {"large": "a/b"}\n}\n'),
        ('{"titles": false}', ("models", "large"), "a/b", '{\n  "models": {"large": "a/b"},"titles": false}'),
        (
            '{"models": {"small": "a/s"}}',
            ("models", "large"),
            "a/b",
            '{"models": {\n    "large": "a/b","small": "a/s"}}',
        ),
        (COMMENTED, ("models", "large"), "b/new", COMMENTED.replace("a/old", "b/new")),
        ('{"models": null}', ("models",), {"large": "x"}, '{"models": {"large": "x"}}'),
        ("{ // only this\n}", ("titles",), True, '{\n  "titles": true // only this\n}'),
    ],
)
def test_a_value_is_set_and_nothing_else(text: str, path: tuple[str, ...], value: Any, changed: str) -> None:
    assert with_value(text, path, value) == changed


def test_comments_stay_where_something_is_added() -> None:
    changed = with_value(COMMENTED, ("providers", "mine"), {"type": "openai-compatible", "base_url": "http://x/v1"})
    assert [line for line in COMMENTED.splitlines() if line not in changed] == []
    assert jsonc.parse(changed)["providers"] == {"mine": {"type": "openai-compatible", "base_url": "http://x/v1"}}


def test_a_value_that_is_in_the_way_is_not_lost() -> None:
    with pytest.raises(ConfigInvalid, match=r"models\.large could not be set"):
        with_value('{"models": [1]}', ("models", "large"), "a/b")


_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


@given(whole=some.dictionaries(some.sampled_from("abc"), _values, max_size=3), value=_values)
def test_whatever_is_there_what_is_read_afterwards_is_what_was_set(whole: dict[str, Any], value: Any) -> None:
    path = ("a", "b")
    text = json.dumps(whole, indent=2)
    if isinstance(whole.get("a", {}), dict):
        assert jsonc.parse(with_value(text, path, value)) == whole | {"a": whole.get("a", {}) | {"b": value}}


def change(*changes: tuple[tuple[str, ...], Any]) -> Path:
    change_user_config(changes, environ=os.environ, user_dir=Path.home())
    return user_config_file(os.environ, Path.home())


def test_a_file_is_made_for_its_owner_alone() -> None:
    file = change((("models", "large"), "a/b"), (("titles",), False))
    assert jsonc.parse(file.read_text()) == {"models": {"large": "a/b"}, "titles": False}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_linked_file_stays_linked_and_keeps_its_mode(tmp_path: Path) -> None:
    file, real = user_config_file(os.environ, Path.home()), tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    change((("titles",), False))
    assert file.is_symlink()
    assert jsonc.parse(real.read_text()) == {"titles": False}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("text", ["{ oh", '{"titels": false}', '{"models": 3}'])
def test_a_file_that_is_not_valid_stays_as_it_is_and_the_error_names_it(text: str) -> None:
    file = user_config_file(os.environ, Path.home())
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(ConfigInvalid, match=str(file)):
        change((("models", "large"), "a/b"))
    assert file.read_text() == text
