"""How a project is set up, tested and checked, according to its own files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from longboat.context.project_files import ProjectFiles, line_of, table

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


def find_toolchain(files: ProjectFiles) -> Toolchain:
    steps = dict.fromkeys([*_make(files), *_just(files), *_node(files), *_python(files), *_fixed(files)])
    return Toolchain(
        name=files.first("name") or files.directory.name,
        description=files.first("description") or files.opening(),
        steps=tuple(steps)[:MAX_COMMANDS],
        needs=tuple(_needs(files)),
    )


def _make(files: ProjectFiles) -> Iterator[Step]:
    text = next((files.text(name) for name in ("GNUmakefile", "makefile", "Makefile") if files.has(name)), "")
    phony = set(" ".join(re.findall(r"^\.PHONY[ \t]*:(.*)$", text, re.MULTILINE)).split())
    targets = list(_TARGET.finditer(text))
    told = [match for match in targets if match[1] in _WANTED or match[1] in phony or match[3]]
    if targets and not told:
        yield Step("make", f"makes {targets[0][1]}")
    yield from (Step(f"make {match[1]}", line_of(match[3] or "")) for match in told)


def _just(files: ProjectFiles) -> Iterator[Step]:
    text = next((files.text(name) for name in ("justfile", "Justfile", ".justfile") if files.has(name)), "")
    for match in _RECIPE.finditer(text):
        if match[2] in _WANTED or match[1]:
            yield Step(f"just {match[2]}", line_of(match[1] or ""))


def _node(files: ProjectFiles) -> Iterator[Step]:
    if not files.package:
        return
    given = str(files.package.get("packageManager", "")).split("@")[0]
    locked = next((name for lock, name in _NODE_LOCKS.items() if files.has(lock)), "npm")
    program = given if given in ("npm", "pnpm", "yarn", "bun") else locked
    yield Step(f"{program} install", "set up")
    for name, script in table(files.package.get("scripts")).items():
        if _is_for_people(name) and isinstance(script, str) and "no test specified" not in script:
            yield Step(f"{program} run {name}", line_of(script))
    main = files.package.get("main")
    if "start" not in table(files.package.get("scripts")) and isinstance(main, str) and files.has(main):
        yield Step(f"node {line_of(main)}", "run")


def _is_for_people(script: str) -> bool:
    """Not what the package manager calls by itself, nor what leaves the machine."""
    first = re.split(r"[:-]", script)[0]
    return first in _WANTED or not re.match(r"pre|post|publish|release|deploy|version|install|uninstall", first)


def _python(files: ProjectFiles) -> Iterator[Step]:
    runner, setup = next((found for lock, found in _PYTHON_LOCKS.items() if files.has(lock)), ("", ""))
    if setup := setup or _pip(files):
        yield Step(setup, "set up")
    if test := _python_test(files):
        yield Step(f"{runner}{test}", "test")
    tools, named = table(files.pyproject.get("tool")), _dependencies(files)
    for name, steps in _PYTHON_TOOLS.items():
        if name in tools or name in named or files.has(f"{name}.toml") or files.has(f"{name}.ini"):
            yield from (Step(f"{runner}{command}", purpose) for command, purpose in steps)
    for name, place in table(table(files.pyproject.get("project")).get("scripts")).items():
        yield Step(f"{runner}{line_of(name)}", f"run ({line_of(str(place))})")


def _pip(files: ProjectFiles) -> str:
    for name in ("requirements-dev.txt", "requirements.txt"):
        if files.has(name) and not files.pyproject:
            return f"pip install -r {name}"
    if not files.pyproject:
        return "pip install -e ." if files.has("setup.py") else ""
    extras = table(table(files.pyproject.get("project")).get("optional-dependencies"))
    extra = next((name for name in ("dev", "test", "tests") if name in extras), None)
    groups = " --group dev" if "dev" in table(files.pyproject.get("dependency-groups")) else ""
    return f"pip install -e '.[{extra}]'{groups}" if extra else f"pip install -e .{groups}"


def _python_test(files: ProjectFiles) -> str:
    settled = ("pytest.ini", "conftest.py", "tests/conftest.py")
    if (
        "pytest" in table(files.pyproject.get("tool"))
        or any(map(files.has, settled))
        or "pytest" in _dependencies(files)
    ):
        return "pytest"
    if files.has("manage.py"):
        return "python manage.py test"
    tests = files.tests()
    if not tests:
        return ""
    if all("unittest" in text for text in tests):
        return "python -m unittest discover" + (" -s tests" if files.has("tests") else "")
    named = any(re.search(r"^(import|from) pytest\b|^(async )?def test_|^class Test", text, re.M) for text in tests)
    # A file with another shape may be a program of its own: the project knows how it is run.
    return "pytest" if named else ""


def _dependencies(files: ProjectFiles) -> set[str]:
    """The names of all packages that the project asks for, for use or for work on it."""
    project = table(files.pyproject.get("project"))
    lists = chain(
        [project.get("dependencies")],
        table(project.get("optional-dependencies")).values(),
        table(files.pyproject.get("dependency-groups")).values(),
    )
    wanted = [name for each in lists if isinstance(each, list) for name in each if isinstance(name, str)]
    wanted += chain.from_iterable(
        files.text(name).splitlines() for name in ("requirements.txt", "requirements-dev.txt")
    )
    return {found[0].lower() for name in wanted if (found := re.match(r"[\w.-]+", name))}


def _fixed(files: ProjectFiles) -> Iterator[Step]:
    for name, steps in _FIXED.items():
        if files.has(name):
            yield from (Step(command, purpose) for command, purpose in steps)


def _needs(files: ProjectFiles) -> Iterator[str]:
    found = {
        "Python": table(files.pyproject.get("project")).get("requires-python") or _pinned(files, ".python-version"),
        "Node": table(files.package.get("engines")).get("node") or _pinned(files, ".nvmrc"),
        "Rust": table(files.cargo.get("package")).get("rust-version"),
        "Go": (re.findall(r"^go ([\d.]+)$", files.text("go.mod"), re.MULTILINE) or [None])[0],
    }
    yield from (f"{name} {line_of(version)}" for name, version in found.items() if isinstance(version, str))


def _pinned(files: ProjectFiles, name: str) -> str | None:
    return files.text(name).strip() or None
