"""How a project is set up, tested and checked, according to its own files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from longboat.context.desk import Desk, line_of, table

MAX_COMMANDS = 30
_WORDS = (
    "setup install bootstrap deps build compile test tests check lint format fmt typecheck types run dev start serve"
)
_WANTED = frozenset(
    [*_WORDS.split(), "all", "docs", "bench", "e2e", "coverage", "clean", "generate", "codegen", "migrate"]
)
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


def find_toolchain(desk: Desk) -> Toolchain:
    steps = dict.fromkeys([*_make(desk), *_just(desk), *_node(desk), *_python(desk), *_fixed(desk)])
    return Toolchain(
        name=desk.first("name") or desk.directory.name,
        description=desk.first("description") or desk.opening(),
        steps=tuple(steps)[:MAX_COMMANDS],
        needs=tuple(_needs(desk)),
    )


def _make(desk: Desk) -> Iterator[Step]:
    text = next((desk.text(name) for name in ("GNUmakefile", "makefile", "Makefile") if desk.has(name)), "")
    phony = set(" ".join(re.findall(r"^\.PHONY[ \t]*:(.*)$", text, re.MULTILINE)).split())
    targets = list(_TARGET.finditer(text))
    told = [match for match in targets if match[1] in _WANTED or match[1] in phony or match[3]]
    if targets and not told:
        yield Step("make", f"makes {targets[0][1]}")
    yield from (Step(f"make {match[1]}", line_of(match[3] or "")) for match in told)


def _just(desk: Desk) -> Iterator[Step]:
    text = next((desk.text(name) for name in ("justfile", "Justfile", ".justfile") if desk.has(name)), "")
    for match in _RECIPE.finditer(text):
        if match[2] in _WANTED or match[1]:
            yield Step(f"just {match[2]}", line_of(match[1] or ""))


def _node(desk: Desk) -> Iterator[Step]:
    if not desk.package:
        return
    given = str(desk.package.get("packageManager", "")).split("@")[0]
    locked = next((name for lock, name in _NODE_LOCKS.items() if desk.has(lock)), "npm")
    program = given if given in ("npm", "pnpm", "yarn", "bun") else locked
    yield Step(f"{program} install", "set up")
    for name, script in table(desk.package.get("scripts")).items():
        if _is_for_people(name) and isinstance(script, str) and "no test specified" not in script:
            yield Step(f"{program} run {name}", line_of(script))
    main = desk.package.get("main")
    if "start" not in table(desk.package.get("scripts")) and isinstance(main, str) and desk.has(main):
        yield Step(f"node {line_of(main)}", "run")


def _is_for_people(script: str) -> bool:
    """Not what the package manager calls by itself, nor what leaves the machine."""
    first = re.split(r"[:-]", script)[0]
    return first in _WANTED or not re.match(r"pre|post|publish|release|deploy|version|install|uninstall", first)


def _python(desk: Desk) -> Iterator[Step]:
    runner, setup = next((found for lock, found in _PYTHON_LOCKS.items() if desk.has(lock)), ("", ""))
    if setup := setup or _pip(desk):
        yield Step(setup, "set up")
    if test := _python_test(desk):
        yield Step(f"{runner}{test}", "test")
    tools, named = table(desk.pyproject.get("tool")), _dependencies(desk)
    for name, steps in _PYTHON_TOOLS.items():
        if name in tools or name in named or desk.has(f"{name}.toml") or desk.has(f"{name}.ini"):
            yield from (Step(f"{runner}{command}", purpose) for command, purpose in steps)
    for name, place in table(table(desk.pyproject.get("project")).get("scripts")).items():
        yield Step(f"{runner}{line_of(name)}", f"run ({line_of(str(place))})")


def _pip(desk: Desk) -> str:
    for name in ("requirements-dev.txt", "requirements.txt"):
        if desk.has(name) and not desk.pyproject:
            return f"pip install -r {name}"
    if not desk.pyproject:
        return "pip install -e ." if desk.has("setup.py") else ""
    extras = table(table(desk.pyproject.get("project")).get("optional-dependencies"))
    extra = next((name for name in ("dev", "test", "tests") if name in extras), None)
    groups = " --group dev" if "dev" in table(desk.pyproject.get("dependency-groups")) else ""
    return f"pip install -e '.[{extra}]'{groups}" if extra else f"pip install -e .{groups}"


def _python_test(desk: Desk) -> str:
    settled = ("pytest.ini", "conftest.py", "tests/conftest.py")
    if "pytest" in table(desk.pyproject.get("tool")) or any(map(desk.has, settled)) or "pytest" in _dependencies(desk):
        return "pytest"
    if desk.has("manage.py"):
        return "python manage.py test"
    tests = desk.tests()
    if not tests:
        return ""
    if all("unittest" in text for text in tests):
        return "python -m unittest discover" + (" -s tests" if desk.has("tests") else "")
    named = any(re.search(r"^(import|from) pytest\b|^(async )?def test_|^class Test", text, re.M) for text in tests)
    # A file with another shape may be a program of its own: the project knows how it is run.
    return "pytest" if named else ""


def _dependencies(desk: Desk) -> set[str]:
    """The names of all packages that the project asks for, for use or for work on it."""
    project = table(desk.pyproject.get("project"))
    lists = chain(
        [project.get("dependencies")],
        table(project.get("optional-dependencies")).values(),
        table(desk.pyproject.get("dependency-groups")).values(),
    )
    wanted = [name for each in lists if isinstance(each, list) for name in each if isinstance(name, str)]
    wanted += chain.from_iterable(desk.text(name).splitlines() for name in ("requirements.txt", "requirements-dev.txt"))
    return {found[0].lower() for name in wanted if (found := re.match(r"[\w.-]+", name))}


def _fixed(desk: Desk) -> Iterator[Step]:
    for name, steps in _FIXED.items():
        if desk.has(name):
            yield from (Step(command, purpose) for command, purpose in steps)


def _needs(desk: Desk) -> Iterator[str]:
    found = {
        "Python": table(desk.pyproject.get("project")).get("requires-python") or _pinned(desk, ".python-version"),
        "Node": table(desk.package.get("engines")).get("node") or _pinned(desk, ".nvmrc"),
        "Rust": table(desk.cargo.get("package")).get("rust-version"),
        "Go": (re.findall(r"^go ([\d.]+)$", desk.text("go.mod"), re.MULTILINE) or [None])[0],
    }
    yield from (f"{name} {line_of(version)}" for name, version in found.items() if isinstance(version, str))


def _pinned(desk: Desk, name: str) -> str | None:
    return desk.text(name).strip() or None
