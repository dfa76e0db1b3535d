"""What several tests of the runtime use."""

import pytest
from running_app import TEST_STORE

from longboat.runtime.turn import surroundings
from longboat.tools.mcp import McpServers


class Today(surroundings.date):
    @classmethod
    def today(cls) -> "Today":
        return cls(2026, 11, 19)


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Around midnight, the second prompt of a test would come with a note that the date has changed."""
    monkeypatch.setattr(surroundings, "date", Today)


@pytest.fixture
def awaited_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns wait for MCP servers to start, and workspaces for their tools to end, as long as a busy machine needs."""
    monkeypatch.setitem(McpServers.__init__.__kwdefaults__, "wait_s", 60)
    monkeypatch.setattr("longboat.runtime.workspace.tools.LEAVE_S", 60)


ON_EVERY_STORE = {
    *("test_accept", "test_asks_one_end", "test_cancel", "test_cancel_instants", "test_log", "test_queue"),
    *("test_recovery", "test_search", "test_snapshot", "test_stats", "test_turns", "test_undo"),
}
"""Modules whose tests are run once with each store. Those that look into SQLite itself are marked `only_sqlite`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ in ON_EVERY_STORE and not list(metafunc.definition.iter_markers("only_sqlite")):
        metafunc.parametrize("a_store", ["sqlite", "postgres"], indirect=True)


@pytest.fixture(autouse=True)
def a_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one the servers of this test use."""
    if (kind := getattr(request, "param", None)) is not None:
        monkeypatch.setenv(TEST_STORE, kind)
