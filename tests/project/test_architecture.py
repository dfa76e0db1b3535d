"""The rooms and who may enter them (style.md, "Rooms"), and what a start-up must not load."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.api import read_configuration
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import longboat

PACKAGE = Path(longboat.__file__).parent
ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / ".importlinter")
FREE_ROOMS = {"cli"}
"""Rooms that may import anything but the fakes."""


def test_every_import_keeps_its_direction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The contracts of `.importlinter`, core's purity among them."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # the linter adds the working directory for good
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # and it silences every logger that is there
    status = lint_imports(config_filename=CONFIG, cache_dir=str(tmp_path))
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_every_room_has_a_contract() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} - FREE_ROOMS
    contracts = read_configuration(CONFIG)["contracts_options"]
    bound = {name.removeprefix("longboat.") for contract in contracts for name in contract.get("source_modules", ())}
    assert rooms <= bound


def calls_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of each method that is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.lineno, node.func.attr


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def test_every_task_has_an_owner() -> None:
    """ruff bans `asyncio.create_task` and `asyncio.ensure_future`; this finds the same methods of loops and groups."""
    bare = {"create_task", "ensure_future"}
    found = [f"{file}:{line}" for file, tree in sources() for line, name in calls_in(tree) if name in bare]
    assert {place.partition(":")[0] for place in found} == {"tasks.py"}, found


def test_no_constructor_starts_a_task() -> None:
    constructors = [
        (file, node)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__post_init__")
    ]
    assert len(constructors) > 100
    assert not [f"{file}:{line}" for file, node in constructors for line, name in calls_in(node) if name == "spawn"]


CLUSTER = ["asyncpg", "longboat.fleet", "longboat.store.postgres"]
"""What only a server with a PostgreSQL store needs (G14)."""


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("longboat.cli.main", ["httpx2", "litestar", "pydantic", "pydantic_ai", "sqlite3", "uvicorn", "xllamacpp"]),
        ("longboat.cli.main", CLUSTER),
        ("longboat.server.main", ["httpx2", "prometheus_client", "pydantic_ai", "xllamacpp", *CLUSTER]),
        ("longboat.server.asgi", CLUSTER),
        ("longboat.runtime.app", ["httpx2", "litestar", "pydantic", "pydantic_ai", "xllamacpp", *CLUSTER]),
        ("longboat.client", ["litestar", "pydantic", "pydantic_ai", "sqlite3", "uvicorn"]),
    ],
)
def test_a_start_up_loads_nothing_heavy(module: str, heavy: list[str]) -> None:
    """`longboat --help` answers at once, and `serve` listens before the model layer is imported."""
    program = f"import sys, {module}; print(*sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.split() == []


def test_every_module_that_a_docstring_names_exists() -> None:
    root = PACKAGE.parents[1]
    files = {path.name for folder in ("src", "tests") for path in (root / folder).rglob("*.py")}
    named = [
        (file, name)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for name in re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", ast.get_docstring(node) or "")
    ]
    assert len(named) > 5
    assert [(file, name) for file, name in named if name not in files] == []


PARTICIPLES = re.compile(
    "_*(alone|asked|bounded|drawn|lasted|listened|masked|noted|nudged|offered|played|referred|said|shown|spelled|"
    "spoken|told)"
)
"""Names that do not say what a function does. `finished()` and the like are handlers of an event, and may stay."""


def test_every_function_is_named_for_what_it_does() -> None:
    functions = [
        (file, node.name)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 3_000
    assert [each for each in functions if PARTICIPLES.fullmatch(each[1])] == [], "a verb and its object, please"


METAPHORS = re.compile(
    r"(^|_)(audience|berth|bulletin|environs|founding|helm|household|insist\w*|keeper|lookout|netting|outfit|patience|"
    r"patient|tally|toolbox|wished|workbench)(_|$)"
)
"""Words that were replaced by plainer ones: `send_with_retry` for `insist`, `SUCCESSOR_WAIT_S` for `PATIENCE_S`."""


def test_no_name_is_a_metaphor_that_was_given_up() -> None:
    named = set[tuple[str, str]]()
    for file, tree in sources():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    named.add((file, name))
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    named.add((file, name))
    assert len(named) > 20_000
    spelled = [(*each, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each[1]).lower()) for each in named]
    assert sorted((file, name) for file, name, words in spelled if METAPHORS.search(words)) == []
