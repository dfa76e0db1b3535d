"""The command line for tests: `home` is a user with one server for the whole file, `own_home` one for a single test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_home import Endpoint, Home, home_with, scripted_endpoint


@pytest.fixture(scope="session")
def endpoint_process() -> Iterator[Endpoint]:
    with scripted_endpoint() as found:
        yield found


@pytest.fixture(scope="module")
def endpoint(endpoint_process: Endpoint) -> Iterator[Endpoint]:
    """The scripted model. It forgets the scripts and gates of each file at the end of the file."""
    yield endpoint_process
    endpoint_process.reset()


@pytest.fixture(scope="module")
def new_home(endpoint: Endpoint) -> Iterator[Home]:
    """Without a server, for files that configure it first."""
    with home_with(endpoint) as found:
        yield found


@pytest.fixture(scope="module")
def home(new_home: Home) -> Home:
    """One server for all tests of a file; each works in a directory of its own.

    It runs already: else the first command would say that it starts one, and any test may be the first.
    """
    assert new_home.longboat("session", "list", cwd=new_home.workspace("first")).code == 0
    return new_home


@pytest.fixture
def own_home(endpoint: Endpoint) -> Iterator[Home]:
    """For tests that start, stop or configure a server."""
    with home_with(endpoint) as found:
        yield found


@pytest.fixture
def cwd(home: Home, request: pytest.FixtureRequest) -> Path:
    return home.workspace(request.node.name.translate(str.maketrans("[]/ ", "__+_")))
