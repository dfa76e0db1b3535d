"""The rooms and who may enter them (style.md, "Rooms"), and what a start-up must not load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.api import read_configuration
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import longboat

ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / ".importlinter")
FREE_ROOMS = {"cli", "testing"}
"""Rooms that may import anything; nobody imports them."""


def test_every_import_keeps_its_direction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The contracts of `.importlinter`, core's purity among them."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # the linter adds the working directory for good
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # and it silences every logger that is there
    status = lint_imports(config_filename=CONFIG, cache_dir=str(tmp_path))
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_every_room_has_a_contract() -> None:
    package = Path(longboat.__file__).parent
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()} - FREE_ROOMS
    contracts = read_configuration(CONFIG)["contracts_options"]
    bound = {name.removeprefix("longboat.") for contract in contracts for name in contract.get("source_modules", ())}
    assert rooms <= bound


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("longboat.cli.main", ["httpx2", "litestar", "pydantic", "pydantic_ai", "sqlite3", "uvicorn", "xllamacpp"]),
        ("longboat.server.main", ["httpx2", "prometheus_client", "pydantic_ai", "xllamacpp"]),
        ("longboat.runtime.app", ["httpx2", "litestar", "pydantic", "pydantic_ai", "xllamacpp"]),
        ("longboat.client", ["litestar", "pydantic", "pydantic_ai", "sqlite3", "uvicorn"]),
    ],
)
def test_a_start_up_loads_nothing_heavy(module: str, heavy: list[str]) -> None:
    """`longboat --help` answers at once, and `serve` listens before the model layer is imported."""
    program = f"import sys, {module}; print(*sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.split() == []
