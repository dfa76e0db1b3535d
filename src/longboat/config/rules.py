"""Adds a rule to a project's `longboat.json` and leaves the rest of the file, comments included, as it is."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longboat.config import jsonc
from longboat.config.load import FILE_NAME, review, user_config_file
from longboat.config.trust import Standing, record, trusted_file
from longboat.errors import ConfigInvalid

_SECTION = re.compile(r'"permissions"\s*:\s*\{')
_ALLOW = re.compile(r'"allow"\s*:\s*\[')
_EMPTY = "{\n}\n"


def remember(directory: Path, rules: Sequence[str], *, environ: Mapping[str, str], user_dir: Path) -> None:
    """Allow these from now on in the project's own file. A trusted or harmless file stays trusted: the user chose
    “always”. Only what is written here is trusted, never what someone else writes at the same time."""
    file = directory / FILE_NAME
    before = review(directory, environ=environ, user_dir=user_dir)
    content = file.read_bytes() if file.exists() else b""
    if content and hashlib.sha256(content).hexdigest() != before.digest:
        raise ConfigInvalid(f"{file} is being changed right now, so nothing was added to it.")
    changed = with_rules(file, content.decode() or _EMPTY, rules).encode()
    if before.standing in (Standing.TRUSTED, Standing.HARMLESS):
        trusted = trusted_file(user_config_file(environ, user_dir))
        record(trusted, directory, hashlib.sha256(changed).hexdigest())
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_bytes(changed)
    draft.replace(file)


def rules_file(directory: Path, *, user_dir: Path) -> str:
    """The file that `remember` changes, as people write it: from the home directory, if it is in there."""
    file = directory / FILE_NAME
    return f"~/{file.relative_to(user_dir)}" if file.is_relative_to(user_dir) else str(file)


def with_rules(file: Path, text: str, rules: Sequence[str]) -> str:
    """The file's text with these rules added. Existing rules are not repeated."""
    value = jsonc.parse(text)
    known = value.get("permissions", {}).get("allow", [])
    new = [rule for rule in dict.fromkeys(rules) if rule not in known]
    if not new:
        return text
    changed = _inserted(text, new)
    # A command may have several lines. Other signs that cannot be seen would hide what is allowed.
    sayable = all(rule.replace("\n", " ").replace("\t", " ").isprintable() for rule in new)
    if changed is None or not sayable or jsonc.parse(changed) != _expected(value, new):
        raise ConfigInvalid(f"{file}: could not add {', '.join(new)} to permissions.allow. Add it by hand.")
    return changed


def _inserted(text: str, rules: Sequence[str]) -> str | None:
    """The text with the rules at the front of the list; a comma only where something follows."""
    items = ", ".join(json.dumps(rule, ensure_ascii=False) for rule in rules)
    if section := _SECTION.search(text):
        if allow := _ALLOW.search(text, section.end()):
            return _put(text, allow.end(), items, "]", space=" ")
        return _put(text, section.end(), f'\n    "allow": [{items}]', "}")
    start = text.find("{") + 1
    return _put(text, start, f'\n  "permissions": {{"allow": [{items}]}}', "}") if start else None


def _put(text: str, at: int, item: str, closing: str, *, space: str = "") -> str:
    is_last = text[at:].lstrip().startswith(closing)
    return f"{text[:at]}{item}{'' if is_last else ',' + space}{text[at:]}"


def _expected(value: dict[str, Any], rules: Sequence[str]) -> dict[str, Any]:
    section = value.get("permissions", {})
    return {**value, "permissions": {**section, "allow": [*rules, *section.get("allow", [])]}}
