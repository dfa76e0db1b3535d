"""How this Longboat was installed, and the command that adds an optional part to it."""

import importlib.util
import json
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "longboat"


@cache
def install_command(extra: str) -> str:
    """The command, ready for a shell, that installs an extra where this program runs, from where it came."""
    return shlex.join([*_installer(Path(sys.prefix)), *_requirement(_origin(), extra)])


def _installer(environment: Path) -> list[str]:
    if (environment / "uv-receipt.toml").exists():
        return ["uv", "tool", "install", "--force"]
    if (environment / "pipx_metadata.json").exists():
        return ["pipx", "install", "--force"]
    if importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]


def _origin() -> Mapping[str, Any]:
    """What the installer recorded of the package's source (direct_url.json); empty if it came from an index."""
    try:
        recorded = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    origin: dict[str, Any] = json.loads(recorded) if recorded else {}
    return origin


def _requirement(origin: Mapping[str, Any], extra: str) -> list[str]:
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        directory = f"{unquote(urlsplit(url).path)}[{extra}]"
        return ["-e", directory] if origin["dir_info"].get("editable") else [directory]
    if "vcs_info" in origin:
        return [f"{NAME}[{extra}] @ {origin['vcs_info']['vcs']}+{url}"]
    return [f"{NAME}[{extra}] @ {url}" if url else f"{NAME}[{extra}]"]
