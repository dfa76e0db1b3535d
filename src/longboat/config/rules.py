"""Adds a rule to a project's `longboat.json` and leaves the rest of the file, comments included, as it is."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longboat.config import jsonc
from longboat.config.edit import EMPTY, replace_file, with_value
from longboat.config.load import FILE_NAME, Review, review, user_config_file
from longboat.config.trust import TrustState, follow, record, trusted_file
from longboat.errors import ConfigInvalid

_ALLOW = ("permissions", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRules:
    """A project's file with more rules, before it is written."""

    directory: Path
    text: str
    digest: str
    before: Review
    trusted: Path

    @property
    def trust_step(self) -> tuple[str, str] | None:
        """The digests before and after, for `longboat.config.trust.follow`; None if the file does not stay trusted."""
        match self.before.trust_state:
            case TrustState.TRUSTED:
                return self.before.digest, self.digest
            case TrustState.HARMLESS:
                return "", self.digest
        return None

    def write(self) -> None:
        """A trusted or harmless file stays trusted: the user chose “always”. Only what is written here is trusted,
        never what someone else writes at the same time."""
        stays_trusted = self.trust_step is not None
        if stays_trusted:  # others read the file while it is replaced
            record(self.trusted, self.directory, self.before.digest, self.digest)
        # A link is replaced, not followed: a stranger chose where it leads.
        replace_file(self.directory / FILE_NAME, self.text, new_mode=0o644)
        if stays_trusted:
            record(self.trusted, self.directory, self.digest)


def add_rules(directory: Path, rules: Sequence[str], *, environ: Mapping[str, str], user_dir: Path) -> AddedRules:
    """Allow these from now on in the project's own file, once the result is written."""
    file = directory / FILE_NAME
    before = review(directory, environ=environ, user_dir=user_dir)
    content = file.read_bytes() if file.exists() else b""
    if content and hashlib.sha256(content).hexdigest() != before.digest:
        raise ConfigInvalid(f"{file} is being changed right now: could not add {', '.join(rules)}. Add it by hand.")
    changed = with_rules(file, content.decode("utf-8-sig") or EMPTY, rules)
    return AddedRules(
        directory=directory,
        text=changed,
        digest=hashlib.sha256(changed.encode()).hexdigest(),
        before=before,
        trusted=trusted_file(user_config_file(environ, user_dir)),
    )


def follow_trust(
    directory: Path, steps: Collection[tuple[str, str]], *, environ: Mapping[str, str], user_dir: Path
) -> None:
    """Trust what “always” on other nodes made of a project's file that was trusted or harmless."""
    found = review(directory, environ=environ, user_dir=user_dir)
    if found.trust_state in (TrustState.STRANGER, TrustState.CHANGED):
        follow(trusted_file(user_config_file(environ, user_dir)), directory, found.digest, steps)


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
