"""How a project is set up, tested and checked, as far as its own files tell."""

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longboat.context.shelf import BadFile, Shelf

MAX_COMMANDS = 30
_WORDS = (
    "setup install bootstrap deps build compile test tests check lint format fmt typecheck types run dev start serve"
)
_WANTED = frozenset([*_WORDS.split(), "docs", "bench", "e2e", "coverage", "clean", "generate", "codegen", "migrate"])
_TARGET = re.compile(r"^([a-zA-Z0-9][\w-]*)[ \t]*::?(?!=)([^#\n]*)(?:##?[ \t]*(.+))?$", re.MULTILINE)
_RECIPE = re.compile(r"^(?:#[ \t]*(.+)\n)?@?([a-zA-Z][\w-]*)[^:=\n]*:(?!=)", re.MULTILINE)

_FIXED = {
    "Cargo.toml": (
        ("cargo build", "build"),
        ("cargo test", "test"),
        ("cargo clippy --all-targets", "lint"),
        ("cargo fmt", "format"),
    ),
    "go.mod": (
        ("go build ./...", "build"),
        ("go test ./...", "test"),
        ("go vet ./...", "lint"),
        ("gofmt -w .", "format"),
    ),
    "mix.exs": (("mix deps.get", "set up"), ("mix test", "test"), ("mix format", "format")),
    "Package.swift": (("swift build", "build"), ("swift test", "test")),
    "deno.json": (("deno test", "test"), ("deno lint", "lint"), ("deno fmt", "format")),
    "composer.json": (("composer install", "set up"),),
    "Gemfile": (("bundle install", "set up"),),
    ".rspec": (("bundle exec rspec", "test"),),
    "pom.xml": (("mvn verify", "build and test"),),
    "build.gradle": (("./gradlew build", "build and test"),),
    "build.gradle.kts": (("./gradlew build", "build and test"),),
    "tox.ini": (("tox", "test"),),
    "noxfile.py": (("nox", "test"),),
    "CMakeLists.txt": (
        ("cmake -B build && cmake --build build", "build"),
        ("ctest --test-dir build --output-on-failure", "test"),
    ),
    ".pre-commit-config.yaml": (("pre-commit run --all-files", "lint and format"),),
}
"""What every project with such a file understands."""
_NODE_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_PYTHON_LOCKS = {
    "uv.lock": ("uv run ", "uv sync"),
    "poetry.lock": ("poetry run ", "poetry install"),
    "pdm.lock": ("pdm run ", "pdm install"),
}
_PYTHON_TOOLS = {
    "ruff": (("ruff check", "lint"), ("ruff format", "format")),
    "black": (("black .", "format"),),
    "mypy": (("mypy", "types"),),
    "pyright": (("pyright", "types"),),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A command to run and what it is for."""

    command: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    name: str
    description: str
    steps: tuple[Step, ...]
    needs: tuple[str, ...]
    """Versions that the project asks for."""


def find_toolchain(directory: Path) -> Toolchain:
    desk = _Desk(directory)
    steps = dict.fromkeys([*_make(desk), *_just(desk), *_node(desk), *_python(desk), *_fixed(desk)])
    return Toolchain(
        name=desk.first("name") or directory.name,
        description=desk.first("description"),
        steps=tuple(steps)[:MAX_COMMANDS],
        needs=tuple(_needs(desk)),
    )


class _Desk:
    """The project's package files, each read once; one that is missing or broken is empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shelf = Shelf()
        self.pyproject: dict[str, Any] = {}
        self.package: dict[str, Any] = {}
        self.cargo: dict[str, Any] = {}
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            self.pyproject = tomllib.loads(self.text("pyproject.toml"))
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            self.cargo = tomllib.loads(self.text("Cargo.toml"))
        with suppress(ValueError, RecursionError):
            self.package = _table(json.loads(self.text("package.json") or "{}"))

    def has(self, name: str) -> bool:
        return (self._directory / name).exists()

    def text(self, name: str) -> str:
        try:
            return self._shelf.text(self._directory / name, within=self._directory) or ""
        except BadFile:
            return ""

    def first(self, key: str) -> str:
        """What the package files call the project."""
        tables = (_table(self.pyproject.get("project")), self.package, _table(self.cargo.get("package")))
        return next((_line(table[key]) for table in tables if isinstance(table.get(key), str)), "")


def _make(desk: _Desk) -> Iterator[Step]:
    text = next((desk.text(name) for name in ("GNUmakefile", "makefile", "Makefile") if desk.has(name)), "")
    for match in _TARGET.finditer(text):
        if match[1] in _WANTED:
            yield Step(f"make {match[1]}", _line(match[3] or ""))


def _just(desk: _Desk) -> Iterator[Step]:
    text = next((desk.text(name) for name in ("justfile", "Justfile", ".justfile") if desk.has(name)), "")
    for match in _RECIPE.finditer(text):
        if match[2] in _WANTED:
            yield Step(f"just {match[2]}", _line(match[1] or ""))


def _node(desk: _Desk) -> Iterator[Step]:
    if not desk.package:
        return
    given = str(desk.package.get("packageManager", "")).split("@")[0]
    locked = next((name for lock, name in _NODE_LOCKS.items() if desk.has(lock)), "npm")
    program = given if given in ("npm", "pnpm", "yarn", "bun") else locked
    yield Step(f"{program} install", "set up")
    for name, script in _table(desk.package.get("scripts")).items():
        if re.split(r"[:-]", name)[0] in _WANTED and isinstance(script, str) and "no test specified" not in script:
            yield Step(f"{program} run {name}", _line(script))


def _python(desk: _Desk) -> Iterator[Step]:
    runner, setup = next((found for lock, found in _PYTHON_LOCKS.items() if desk.has(lock)), ("", ""))
    if desk.pyproject and not setup:
        extras = _table(_table(desk.pyproject.get("project")).get("optional-dependencies"))
        setup = "pip install -e '.[dev]'" if "dev" in extras else "pip install -e ."
    elif not setup and desk.has("requirements.txt"):
        setup = "pip install -r requirements.txt"
    if setup:
        yield Step(setup, "set up")
    tools = _table(desk.pyproject.get("tool"))
    if "pytest" in tools or desk.has("pytest.ini") or desk.has("conftest.py") or desk.has("tests/conftest.py"):
        yield Step(f"{runner}pytest", "test")
    for name, steps in _PYTHON_TOOLS.items():
        if name in tools or desk.has(f"{name}.toml") or desk.has(f"{name}.ini"):
            yield from (Step(f"{runner}{command}", purpose) for command, purpose in steps)


def _fixed(desk: _Desk) -> Iterator[Step]:
    for name, steps in _FIXED.items():
        if desk.has(name):
            yield from (Step(command, purpose) for command, purpose in steps)


def _needs(desk: _Desk) -> Iterator[str]:
    found = {
        "Python": _table(desk.pyproject.get("project")).get("requires-python"),
        "Node": _table(desk.package.get("engines")).get("node"),
        "Rust": _table(desk.cargo.get("package")).get("rust-version"),
        "Go": (re.findall(r"^go ([\d.]+)$", desk.text("go.mod"), re.MULTILINE) or [None])[0],
    }
    yield from (f"{name} {_line(version)}" for name, version in found.items() if isinstance(version, str))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _line(text: str) -> str:
    """One short line of Markdown text."""
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:159]}…"
