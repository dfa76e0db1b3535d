"""What several tests of the runtime use."""

import pytest

from longboat.tools.mcp import McpServers


@pytest.fixture
def awaited_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turn waits for MCP servers as long as they need: on a busy machine five seconds may be too short."""
    monkeypatch.setitem(McpServers.__init__.__kwdefaults__, "wait_s", 60)
