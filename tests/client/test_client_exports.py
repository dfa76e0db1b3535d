"""The SDK's front door, and that its two halves agree."""

import inspect
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import longboat.client
from longboat.client import Client, SyncClient

SCRIPT = Path(__file__).parents[2] / "scripts" / "generate_sync_client.py"


def load() -> ModuleType:
    spec = spec_from_file_location("generate_sync_client", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_sync_client_is_what_the_async_one_makes() -> None:
    assert load().main(["--check"]) == 0, "src/longboat/client/sync.py is stale: run make generate"


def test_the_check_names_a_stale_sync_client_and_leaves_it_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, target = load(), tmp_path / "sync.py"
    target.write_text("by hand\n", encoding="utf-8")
    assert script.main(["--check"], target) == 1
    assert "sync.py is stale: run make generate" in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == "by hand\n"
    assert script.main([], target) == 0
    assert script.main(["--check"], target) == 0


def test_a_substitution_that_finds_nothing_in_the_async_client_is_an_error() -> None:
    with pytest.raises(SystemExit, match="nothing for the substitution"):
        load().generate("import time\n")


def test_all_is_sorted_and_everything_in_it_is_there() -> None:
    assert longboat.client.__all__ == sorted(longboat.client.__all__)
    assert all(getattr(longboat.client, name) is not None for name in longboat.client.__all__)
    public = {name for name in vars(longboat.client) if name[0].isupper() and name != "TYPE_CHECKING"}
    assert public <= set(longboat.client.__all__)


def _shape(cls: type) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, member in vars(cls).items():
        if not name.startswith("_") and inspect.isfunction(member):
            found[name] = tuple(str(parameter) for parameter in inspect.signature(member).parameters.values())
    return found


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    asynchronous = _shape(Client)
    asynchronous["close"] = asynchronous.pop("aclose")
    assert asynchronous == _shape(SyncClient)


def test_the_calls_can_be_used_without_loading_an_http_library() -> None:
    code = "import sys, longboat.client.calls; print('httpx2' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
