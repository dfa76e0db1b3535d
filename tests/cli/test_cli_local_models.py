"""`longboat models list` and `longboat doctor`: what they say of models on this machine."""

import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from gguf_files import write_gguf

from longboat.cli.doctor import Finding, Severity, examine
from longboat.cli.main import cli
from longboat.models.local.known import DEMO, QWEN_CODER


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a runtime that only pretends."""
    runtime = ModuleType("xllamacpp")
    runtime.__spec__ = ModuleSpec("xllamacpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", runtime)
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LONGBOAT_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "data").mkdir()
    return tmp_path


def configure(*entries: dict[str, object], large: str) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "longboat" / "longboat.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    providers = {"local": {"type": "local", "models": entries}}
    file.write_text(json.dumps({"providers": providers, "models": {"large": large, "detect": False}}))


def listed(home: Path) -> list[str]:
    result = CliRunner().invoke(cli, ["models", "list", "--cwd", str(home)])
    assert result.exit_code == 0, result.output
    return [line for line in result.output.splitlines() if line.startswith(("MODEL", "local/"))]


def local_findings(home: Path) -> list[Finding]:
    return [each for each in examine(home) if each.subject == "local models"]


def test_the_list_says_of_each_what_is_known_and_that_it_was_not_measured(home: Path) -> None:
    write_gguf(home / "data" / "models" / "super-coder.gguf", weights=500_000_000)
    head, demo, own, known = listed(home)
    assert QWEN_CODER.measured is not None
    assert head.split() == ["MODEL", "CONTEXT", "SIZE", "MEMORY", "TASKS", "SOLVED", "SPEED", "STATE"]
    assert demo.split()[:4] == ["local/smollm2-135m", "8,192", "0.1", "GB"]
    assert " ".join(own.split()) == "local/super-coder 12,288 0.5 GB 1.6 GB not measured unknown ready"
    assert known.split()[:4] == ["local/qwen2.5-coder-1.5b", "12,288", "1.1", "GB"]
    assert f"  {QWEN_CODER.measured.solved} of {QWEN_CODER.measured.tasks}  " in known
    assert known.endswith("Run `longboat models pull qwen2.5-coder-1.5b` (1.1 GB).")


def test_the_list_for_programs_has_numbers(home: Path) -> None:
    result = CliRunner().invoke(cli, ["models", "list", "--format", "json", "--cwd", str(home)])
    demo = next(each for each in json.loads(result.output) if each["name"] == "local/smollm2-135m")
    assert demo["local"]["size"] == 98_362_432
    assert DEMO.measured is not None
    assert (demo["local"]["solved"], demo["local"]["tasks"]) == (DEMO.measured.solved, DEMO.measured.tasks)
    assert demo["local"]["tokens_per_s"] == DEMO.measured.tokens_per_s


def test_doctor_names_what_each_needs(home: Path) -> None:
    path = write_gguf(home / "mine.gguf")
    configure({"id": "mine", "path": str(path)}, large="local/mine")
    [found] = local_findings(home)
    assert found.severity is Severity.OK
    assert found.detail.startswith("local/mine: needs about 1.1 GB of memory, a window of 12,288 tokens")


def test_doctor_finds_a_file_that_cannot_be_used(home: Path) -> None:
    broken = home / "broken.gguf"
    broken.write_bytes(b"<html>Please log in</html>")
    configure({"id": "mine", "path": str(broken)}, large="local/mine")
    [found] = local_findings(home)
    assert (found.severity, found.detail) == (Severity.WRONG, f"local/mine: {broken} is not a GGUF file.")


def test_doctor_finds_a_model_that_does_not_fit(home: Path) -> None:
    path = write_gguf(home / "mine.gguf")
    configure({"id": "mine", "path": str(path), "context_window": 900_000_000}, large="local/mine")
    [found] = local_findings(home)
    assert found.severity is Severity.WRONG
    assert found.detail.endswith("is free: set a smaller context_window, or use a smaller model")


def test_doctor_says_that_the_demo_comes_by_itself(home: Path) -> None:
    configure(large="local/smollm2-135m")
    [found] = local_findings(home)
    assert (found.severity, found.detail) == (
        Severity.NOTE,
        "local/smollm2-135m: not downloaded; the first prompt downloads it",
    )


def test_doctor_names_a_model_that_was_not_pulled(home: Path) -> None:
    configure(large="local/qwen2.5-coder-1.5b")
    found = next(each for each in examine(home) if each.subject == "models (shell)")
    assert (found.severity, found.detail) == (
        Severity.WRONG,
        "local/qwen2.5-coder-1.5b is not downloaded. Run `longboat models pull qwen2.5-coder-1.5b` (1.1 GB).",
    )
