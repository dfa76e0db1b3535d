"""`longboat config`."""

import os
import re
from pathlib import Path
from typing import Any

import click

from longboat.cli.options import local_cwd_option

_REFERENCE = re.compile(r"(\$\w+|\$\{\w+\})")
HIDDEN = "(hidden)"


@click.command(short_help="Show the effective configuration.")
@click.option("--schema", is_flag=True, help="Show the JSON Schema of longboat.json instead.")
@local_cwd_option
def config(schema: bool, cwd: str) -> None:
    """Show the configuration of this directory: the user's longboat.json merged with the project's, without secrets.

    \b
    longboat config
    longboat config --schema > longboat.schema.json
    """
    import msgspec

    from longboat.cli.console import json_page, notice
    from longboat.config.load import FILE_NAME, json_schema, load_config, user_config_file

    if schema:
        json_page(json_schema())
        return
    for file in (user_config_file(os.environ, Path.home()), Path(cwd) / FILE_NAME):
        notice(f"{file}{'' if file.exists() else ' (does not exist)'}")
    effective = load_config(Path(cwd), environ=os.environ, user_dir=Path.home())
    json_page(without_secrets(msgspec.to_builtins(effective)))


def without_secrets(config: dict[str, Any]) -> dict[str, Any]:
    """A copy that can be shown. Keeps references to variables; hides literal keys, headers and environments."""
    return {key: _hide(value) if key in _SECRET else _walk(value) for key, value in config.items()}


_SECRET = {"api_key", "key", "headers", "env", "environment", "token"}


def _walk(value: Any) -> Any:
    if isinstance(value, dict):
        return without_secrets(value)
    if isinstance(value, list | tuple):
        return [_walk(item) for item in value]
    return value


def _hide(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hide(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hide(item) for item in value]
    if isinstance(value, str) and not _REFERENCE.fullmatch(value):
        return HIDDEN if value else ""
    return value
