"""Adding a rule to a project's `longboat.json` without disturbing what a person wrote there, comments included."""

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
    """Allow these from now on in the project's own file. A file that was as good as trusted stays so: it was the user
    who said “always”."""
    before = review(directory, environ=environ, user_dir=user_dir)
    add_allow_rules(directory / FILE_NAME, rules)
    if before.standing in (Standing.TRUSTED, Standing.HARMLESS):
        after = review(directory, environ=environ, user_dir=user_dir)
        record(trusted_file(user_config_file(environ, user_dir)), directory, after.digest)


def add_allow_rules(file: Path, rules: Sequence[str]) -> None:
    """Allow these from now on. Rules that are there already stay once."""
    text = file.read_text("utf-8") if file.exists() else _EMPTY
    value = jsonc.parse(text)
    known = value.get("permissions", {}).get("allow", [])
    new = [rule for rule in dict.fromkeys(rules) if rule not in known]
    if not new:
        return
    changed = _inserted(text, new)
    sayable = all(rule.isprintable() for rule in new)
    if changed is None or not sayable or jsonc.parse(changed) != _expected(value, new):
        raise ConfigInvalid(f"{file}: could not add {', '.join(new)} to permissions.allow: add it by hand.")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(changed, "utf-8")
    draft.replace(file)


def _inserted(text: str, rules: Sequence[str]) -> str | None:
    """The text with the rules at the front of the list. A comma too many is allowed in this file."""
    items = ", ".join(json.dumps(rule, ensure_ascii=False) for rule in rules)
    if section := _SECTION.search(text):
        if allow := _ALLOW.search(text, section.end()):
            return f"{text[: allow.end()]}{items}, {text[allow.end() :]}"
        return f'{text[: section.end()]}\n    "allow": [{items}],{text[section.end() :]}'
    start = text.find("{") + 1
    return f'{text[:start]}\n  "permissions": {{"allow": [{items}]}},{text[start:]}' if start else None


def _expected(value: dict[str, Any], rules: Sequence[str]) -> dict[str, Any]:
    section = value.get("permissions", {})
    return {**value, "permissions": {**section, "allow": [*rules, *section.get("allow", [])]}}
