"""Sets values in the user's own `longboat.json` and leaves the rest of the file, comments included, as it is."""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longboat.config import jsonc
from longboat.config.load import load_user_config, user_config_file
from longboat.config.private_file import locked
from longboat.errors import ConfigInvalid
from longboat.regular_files import opener

Change = tuple[tuple[str, ...], Any]
"""The keys that lead to a value, and the value."""

EMPTY = "{\n}\n"
"""What a new file begins as."""


def change_user_config(changes: Sequence[Change], *, environ: Mapping[str, str], user_dir: Path) -> None:
    """A file that is not valid stays as it is: the error names the line."""
    named = user_config_file(environ, user_dir)
    with locked(named):
        load_user_config(environ=environ, user_dir=user_dir)
        file = Path(os.path.realpath(named))  # people link it from where they keep their settings
        text = file.read_text("utf-8-sig") if file.exists() else EMPTY
        changed = text
        for path, value in changes:
            changed = with_value(changed, path, value)
        if changed != text:
            replace_file(file, changed)


def with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text of a valid file with this value at this path; objects on the way are made."""
    wanted = _expected(jsonc.parse(text), path, value)
    changed = _edited(text, path, value)
    if changed is None or jsonc.parse(changed) != wanted:
        raise ConfigInvalid(f"{'.'.join(path)} could not be set in your longboat.json. Set it by hand.")
    return changed


def _edited(text: str, path: tuple[str, ...], value: Any) -> str | None:
    where = jsonc.spans(text)
    known = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in where)
    start, end = where[known]
    if known == path:
        return f"{text[:start]}{_encode(value)}{text[end:]}"
    if text[start] != "{":
        return None
    first, *inner = path[len(known) :]
    for key in reversed(inner):
        value = {key: value}
    item = f"\n{'  ' * (len(known) + 1)}{_encode(first)}: {_encode(value)}"
    followed = any(other[: len(known)] == known and len(other) > len(known) for other in where)
    closed = f"\n{'  ' * len(known)}" if text[start:end] == "{}" else ""
    return f"{text[: start + 1]}{item}{',' if followed else ''}{closed}{text[start + 1 :]}"


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _expected(whole: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    key, *rest = path
    below = whole.get(key)
    inner = _expected(below if isinstance(below, dict) else {}, tuple(rest), value) if rest else value
    return {**whole, key: inner}


def replace_file(file: Path, text: str, *, new_mode: int = 0o600) -> None:
    """Replace the file in one step. It keeps its mode; a new one gets `new_mode`."""
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else new_mode
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(draft, "w", encoding="utf-8", opener=opener) as opened:
        opened.write(text)
    draft.chmod(mode)
    draft.replace(file)
