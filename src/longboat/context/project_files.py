"""A project's own files, for a first survey: each is read once; a missing or broken file is empty."""

import json
import re
import tomllib
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from longboat.context.file_cache import BadFile, FileCache

MAX_README = 4_000
"""Characters in which a README has said what it is about."""
MAX_TESTS = 5
_READMES = ("README.md", "README.rst", "README.txt", "README", "readme.md")


class ProjectFiles:
    """The project's package files. Each is read once; a missing or broken file is empty."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._cache = FileCache()
        self.pyproject: dict[str, Any] = {}
        self.package: dict[str, Any] = {}
        self.cargo: dict[str, Any] = {}
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            self.pyproject = tomllib.loads(self.text("pyproject.toml"))
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            self.cargo = tomllib.loads(self.text("Cargo.toml"))
        self.package = self.json("package.json")

    def has(self, name: str) -> bool:
        return (self.directory / name).exists()

    def text(self, name: str) -> str:
        try:
            return self._cache.text(self.directory / name, within=self.directory) or ""
        except BadFile:
            return ""

    def json(self, name: str) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            return table(json.loads(self.text(name) or "{}"))
        return {}

    def opening(self) -> str:
        """The first sentence of the README that is neither a heading nor a row of badges."""
        text = next((self.text(name) for name in _READMES if self.has(name)), "")
        for block in re.split(r"\n[ \t]*\n", text[:MAX_README]):
            said = " ".join(line for line in block.splitlines() if not line.startswith(("#", "=", "-")))
            if re.match(r"[\w*_`\"]", said.strip()):
                return line_of(re.split(r"(?<=[.!?])\s", said.strip(), maxsplit=1)[0])
        return ""

    def tests(self) -> list[str]:
        """The text of some Python tests."""
        found = chain.from_iterable(map(self.directory.glob, ("tests/test_*.py", "test_*.py", "tests/*/test_*.py")))
        return [self.text(str(file.relative_to(self.directory))) for file in islice(found, MAX_TESTS)]

    def first(self, key: str) -> str:
        """What the package files call the project."""
        tables = (table(self.pyproject.get("project")), self.package, table(self.cargo.get("package")))
        return next((line_of(each[key]) for each in tables if isinstance(each.get(key), str)), "")


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def line_of(text: str) -> str:
    """One short line of Markdown text."""
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:159]}…"
