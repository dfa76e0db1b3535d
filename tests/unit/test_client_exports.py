"""The SDK's front door, and that its two halves agree."""

import inspect
import subprocess
import sys

import longboat.client
from longboat.client import Client, SyncClient


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
