"""Adds a rule to a project's `longboat.json` and leaves the rest of the file, comments included, as it is."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longboat.config import jsonc
from longboat.config.edit import EMPTY, replace_file, with_value
from longboat.config.load import FILE_NAME, review, user_config_file
from longboat.config.trust import Standing, record, trusted_file
from longboat.errors import ConfigInvalid

_ALLOW = ("permissions", "allow")


def remember(directory: Path, rules: Sequence[str], *, environ: Mapping[str, str], user_dir: Path) -> None:
    """Allow these from now on in the project's own file. A trusted or harmless file stays trusted: the user chose
    “always”. Only what is written here is trusted, never what someone else writes at the same time."""
    file = directory / FILE_NAME
    before = review(directory, environ=environ, user_dir=user_dir)
    content = file.read_bytes() if file.exists() else b""
    if content and hashlib.sha256(content).hexdigest() != before.digest:
        raise ConfigInvalid(f"{file} is being changed right now: could not add {', '.join(rules)}. Add it by hand.")
    changed = with_rules(file, content.decode("utf-8-sig") or EMPTY, rules)
    if before.standing in (Standing.TRUSTED, Standing.HARMLESS):
        trusted = trusted_file(user_config_file(environ, user_dir))
        record(trusted, directory, hashlib.sha256(changed.encode()).hexdigest())
    replace_file(file, changed, new_mode=0o644)  # a link is replaced, not followed: a stranger chose where it leads


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
    if not sayable or jsonc.parse(changed) != _expected(value, new):
        raise ConfigInvalid(f"{file}: could not add {', '.join(new)} to permissions.allow. Add it by hand.")
    return changed


def _inserted(text: str, rules: Sequence[str]) -> str:
    """The text with the rules at the front of the list, whose comments stay."""
    where = jsonc.spans(text)
    if _ALLOW not in where:
        return with_value(text, _ALLOW, rules)
    at = where[_ALLOW][0] + 1
    items = ", ".join(json.dumps(rule, ensure_ascii=False) for rule in rules)
    return f"{text[:at]}{items}{', ' if (*_ALLOW, 0) in where else ''}{text[at:]}"


def _expected(value: dict[str, Any], rules: Sequence[str]) -> dict[str, Any]:
    section = value.get("permissions", {})
    return {**value, "permissions": {**section, "allow": [*rules, *section.get("allow", [])]}}
