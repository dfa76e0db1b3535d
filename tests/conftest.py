"""What every test gets: no real model is reached, no user's files are read, no secret comes out unnoticed."""

import compileall
import gc
import itertools
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import longboat
import secrecy
from environment import NO_KEYRING, is_hidden

# Every worker rewrites the asserts of all test files, which takes half of its start, unless it finds the result.
sys.dont_write_bytecode = False

# An example that takes longer than 200 ms on a busy machine is no failure.
hypothesis.settings.register_profile("without a clock", deadline=None)
hypothesis.settings.load_profile("without a clock")

# A shell that runs us in the background has SIGINT ignored, and every process we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The garbage collector took a third of the time of tests in this process: see `pytest_collection_finish`.
gc.disable()


@pytest.fixture(scope="session")
def new_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path for each test. `mktemp` would search all earlier ones for the next free number."""
    return map(tmp_path_factory.mktemp("homes").joinpath, map(str, itertools.count()))


@pytest.fixture(autouse=True)
def a_home_of_its_own(new_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests never see the keys, the configuration or the server of whoever runs them."""
    home = next(new_homes)
    home.mkdir()
    for name in list(os.environ):
        if is_hidden(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("LONGBOAT_RUNTIME_DIR", str(home / "run"))
    return home


def pytest_configure(config: pytest.Config) -> None:
    os.environ.update(NO_KEYRING)
    config.addinivalue_line("markers", "only_sqlite: looks into SQLite itself, so it is not run with other stores")
    config.addinivalue_line("markers", "shows_secrets(*names, reason): what this test lets out on purpose, and why")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # Tests start many hundred processes. With PYTHONDONTWRITEBYTECODE each would compile the source again.
        compileall.compile_dir(Path(longboat.__file__).parent, quiet=1)


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but rarely, and all tests and modules are no longer searched for it."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


@pytest.fixture(autouse=True)
def no_secret_comes_out(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[secrecy.LeakRecorder]:
    """Whatever passes a harness is searched for the secrets that it gave its server: see `secrecy`."""
    for name, value in secrecy.ENVIRON.items():
        monkeypatch.setenv(name, value)
    secrecy.recorder.leaks.clear()
    check, logger, own = secrecy.LogCheck(), logging.getLogger(), logging.getLogger("longboat")
    level = own.level
    own.setLevel(logging.DEBUG)  # what is usually not told is searched as well
    logger.addHandler(check)
    yield secrecy.recorder
    logger.removeHandler(check)
    own.setLevel(level)
    allowed = [name for mark in request.node.iter_markers("shows_secrets") for name in mark.args]
    if complaint := secrecy.recorder.complaint(*allowed):
        pytest.fail(f"A secret came out:{complaint}", pytrace=False)
